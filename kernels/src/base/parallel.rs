//! Threads as an argument.

/// Something that runs the parts of a kernel, perhaps at the same time.
///
/// Kernels call it only where the work is large enough to repay the hand-over, and never from
/// inside a task.
pub trait Parallel: Sync {
    /// How many tasks can make progress at the same time; at least 1.
    fn threads(&self) -> usize;

    /// Calls `task` once with each number in `0..tasks`, in any order and on any thread, and
    /// returns when all calls have returned. A panic of a task is passed on to the caller after
    /// all others have ended.
    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync));
}

/// Runs every task on the calling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Serial;

impl Parallel for Serial {
    fn threads(&self) -> usize {
        1
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        (0..tasks).for_each(task);
    }
}
