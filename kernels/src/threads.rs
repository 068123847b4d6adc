//! A pool of threads for kernels.
//!
//! The only part of the crate that starts threads; nobody has to use it.

use core::any::Any;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{Builder, JoinHandle};
use std::vec::Vec;

use crate::parallel::Parallel;

/// How often an idle worker looks for a job before it sleeps; some tens of microseconds.
const SPINS: usize = 2_000;

/// Threads that share the tasks of one caller at a time.
///
/// The calling thread takes part, so that a pool of 1 has no thread of its own. A caller that
/// finds the pool busy, or is itself a task of a pool, runs its tasks alone: nobody ever waits for
/// another caller. Workers sleep while there is nothing to do. Dropping the pool ends and joins
/// them; a library that may be unloaded drops it before. A child of `fork` has the calling thread
/// only, and its pool works with that one.
pub struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the caller whose tasks run.
    busy: Mutex<()>,
}

struct Shared {
    state: Mutex<State>,
    /// Rises with every job; read without the lock by workers that spin.
    jobs: AtomicU64,
    /// As [`State::inside`]; read without the lock by a caller that spins.
    inside: AtomicUsize,
    /// Signals a job or the end.
    work: Condvar,
    /// Signals that the last worker has left a job.
    left: Condvar,
}

struct State {
    /// The job that workers may join.
    job: Option<JobPointer>,
    /// Workers inside the job.
    inside: usize,
    end: bool,
}

/// Tasks that are shared out.
struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    tasks: usize,
    next: AtomicUsize,
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

#[derive(Clone, Copy)]
struct JobPointer(*const Job<'static>);

// SAFETY: a `Job` is `Sync`: it holds a `Sync` function, an atomic and a lock. `ThreadPool::run`
// keeps it alive while a worker can reach it.
unsafe impl Send for JobPointer {}

std::thread_local! {
    /// Whether this thread runs a task of a pool.
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

impl Job<'_> {
    /// Runs tasks until none is left.
    fn work(&self) {
        let before = IN_TASK.replace(true);
        loop {
            let task = self.next.fetch_add(1, Ordering::Relaxed);
            if task >= self.tasks {
                break;
            }
            if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.task)(task))) {
                lock(&self.panic).get_or_insert(panic);
            }
        }
        IN_TASK.set(before);
    }
}

impl ThreadPool {
    /// A pool of `threads` threads, the caller's among them; at least 1. Where the system gives
    /// fewer, the pool has fewer.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        let shared = Arc::new(Shared {
            state: Mutex::new(State {
                job: None,
                inside: 0,
                end: false,
            }),
            jobs: AtomicU64::new(0),
            inside: AtomicUsize::new(0),
            work: Condvar::new(),
            left: Condvar::new(),
        });
        let workers = (1..threads)
            .map_while(|index| {
                let shared = Arc::clone(&shared);
                Builder::new()
                    .name(std::format!("kernels-{index}"))
                    .spawn(move || shared.serve())
                    .ok()
            })
            .collect();
        Self {
            shared,
            workers,
            busy: Mutex::new(()),
        }
    }
}

impl Parallel for ThreadPool {
    fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let alone = tasks <= 1 || self.workers.is_empty() || IN_TASK.get();
        let busy = if alone {
            None
        } else {
            self.busy.try_lock().ok()
        };
        let job = Job {
            task,
            tasks,
            next: AtomicUsize::new(0),
            panic: Mutex::new(None),
        };
        if busy.is_none() {
            job.work();
        } else {
            // The lifetime alone changes.
            let pointer = JobPointer(core::ptr::from_ref(&job).cast());
            lock(&self.shared.state).job = Some(pointer);
            self.shared.jobs.fetch_add(1, Ordering::Release);
            self.shared.work.notify_all();
            job.work();
            // No worker joins any more, and those inside are waited for: after this nobody has
            // the pointer, whatever happened in the tasks.
            lock(&self.shared.state).job = None;
            let mut spins = 0;
            while self.shared.inside.load(Ordering::Acquire) > 0 && spins < SPINS {
                core::hint::spin_loop();
                spins += 1;
            }
            let mut state = lock(&self.shared.state);
            while state.inside > 0 {
                state = self
                    .shared
                    .left
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
        }
        drop(busy);
        let panic = lock(&job.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        lock(&self.shared.state).end = true;
        self.shared.jobs.fetch_add(1, Ordering::Release);
        self.shared.work.notify_all();
        for worker in self.workers.drain(..) {
            // A worker catches the panics of its tasks, so it has nothing to report.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// The life of a worker.
    fn serve(&self) {
        let mut seen = 0;
        loop {
            let mut spins = 0;
            while self.jobs.load(Ordering::Acquire) == seen && spins < SPINS {
                core::hint::spin_loop();
                spins += 1;
            }
            let mut state = lock(&self.state);
            let job = loop {
                if state.end {
                    return;
                }
                let jobs = self.jobs.load(Ordering::Acquire);
                if jobs != seen {
                    seen = jobs;
                    if let Some(job) = state.job {
                        state.inside += 1;
                        self.inside.store(state.inside, Ordering::Release);
                        break job;
                    }
                }
                state = self
                    .work
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            };
            drop(state);
            // SAFETY: `inside` has counted this worker while the job was on offer, and `run` waits
            // until it is 0 before the job ends.
            unsafe { &*job.0 }.work();
            let mut state = lock(&self.state);
            state.inside -= 1;
            self.inside.store(state.inside, Ordering::Release);
            if state.inside == 0 {
                self.left.notify_all();
            }
        }
    }
}

/// The lock, also after a panic: what it protects is always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(pool: &ThreadPool, tasks: usize) {
        let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
        pool.run(tasks, &|i| {
            counts[i].fetch_add(1, Ordering::Relaxed);
        });
        assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn every_task_runs_once() {
        for threads in [0, 1, 2, 5] {
            let pool = ThreadPool::new(threads);
            assert_eq!(pool.threads(), threads.max(1));
            for round in 0..300 {
                counts(&pool, round % 17);
            }
        }
    }

    #[test]
    fn tasks_and_other_callers_may_use_the_pool() {
        let pool = ThreadPool::new(3);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..50 {
                        pool.run(4, &|_| counts(&pool, 3));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_reaches_the_caller_after_all_tasks() {
        let pool = ThreadPool::new(3);
        let ran = AtomicUsize::new(0);
        let result = catch_unwind(AssertUnwindSafe(|| {
            pool.run(20, &|i| {
                ran.fetch_add(1, Ordering::Relaxed);
                assert_ne!(i, 7);
            });
        }));
        assert!(result.is_err());
        assert_eq!(ran.load(Ordering::Relaxed), 20);
        counts(&pool, 9);
    }
}
