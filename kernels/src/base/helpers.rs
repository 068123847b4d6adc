//! Threads that others start and that lend themselves to kernels.
//!
//! A module of WebAssembly can't start threads; its host does, on the same memory. Each calls
//! [`serve`] again and again, and sleeps in between until the number at [`jobs`] is another one.
//! Nothing that a task does there may allocate, lock or use thread-local variables, because std
//! takes the module for one thread; kernels do none of it.

use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use std::sync::OnceLock;

use crate::base::parallel::Parallel;
use crate::base::tasks::Tasks;

#[cfg(test)]
mod tests;

/// Most threads that share a job, the caller's among them.
pub const MOST: usize = 16;
/// How often a helper looks for a job before it leaves: a part of a millisecond, longer than
/// what lies between the kernels of a model.
const LOOKS: usize = if cfg!(miri) { 10 } else { 100_000 };

/// What a module's threads share.
struct Shared {
    /// Rises with every job.
    jobs: AtomicU32,
    /// The job that helpers may join, or null.
    job: AtomicPtr<Job<'static>>,
    /// Whether a caller has the helpers.
    busy: AtomicBool,
    /// Whether one has stopped in the middle of a task.
    failed: AtomicBool,
    seats: [Seat; MOST],
    waker: OnceLock<fn()>,
}

/// What one thread looks at, on a cache line of its own.
#[repr(align(128))]
struct Seat {
    tasks: Tasks,
    /// The last job that the thread has seen.
    seen: AtomicU32,
    /// Whether the thread may have the job.
    inside: AtomicBool,
    /// Whether the thread has left [`serve`], or is about to.
    away: AtomicBool,
}

struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
}

static SHARED: Shared = Shared::new();

/// Threads that share the tasks of one caller at a time: the caller's, and helpers as far as they
/// come.
///
/// Nobody waits for a helper that has not begun: what it leaves, the caller does. A caller that
/// finds the helpers taken runs its tasks alone. All pools of a program have the same helpers.
pub struct Helpers {
    shared: &'static Shared,
    threads: usize,
}

impl Helpers {
    /// A pool of so many threads, at least 1 and at most [`MOST`]; of the caller's alone, if nobody
    /// has said how helpers are woken ([`set_waker`]).
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self::of(&SHARED, threads)
    }

    fn of(shared: &'static Shared, threads: usize) -> Self {
        let most = if shared.waker.get().is_some() {
            MOST
        } else {
            1
        };
        Self {
            shared,
            threads: threads.clamp(1, most),
        }
    }
}

/// Tells how helpers are woken that wait for the number at [`jobs`] to change: all of them, without
/// waiting for them. The first one to tell it is heard.
pub fn set_waker(waker: fn()) {
    let _ = SHARED.waker.set(waker);
}

/// The number that every job changes, for helpers to wait on.
pub fn jobs() -> &'static AtomicU32 {
    &SHARED.jobs
}

/// Lends the calling thread to jobs, as number `index` below [`MOST`], until there is none for a
/// part of a millisecond; returns the number at [`jobs`] of the last one. No two threads have the
/// same number, and 0 is the caller's.
///
/// # Panics
/// If the number is too large, or if a task does.
pub fn serve(index: usize) -> u32 {
    SHARED.serve(index)
}

/// Tells that the helper `index` has ended in the middle of [`serve`]: callers panic then, now and
/// later, and don't wait for it.
pub fn fail(index: usize) {
    SHARED.fail(index);
}

/// Whether a helper has ended in the middle of a task.
#[must_use]
pub fn failed() -> bool {
    SHARED.failed.load(Ordering::SeqCst)
}

/// # Panics
/// If a helper has ended in the middle of a task, which others may wait for.
pub(crate) fn check() {
    assert!(!failed(), "a helper has stopped");
    core::hint::spin_loop();
}

impl Parallel for Helpers {
    fn threads(&self) -> usize {
        self.threads
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let shared = self.shared;
        let threads = self.threads.min(tasks);
        match u32::try_from(tasks) {
            Ok(count) if threads > 1 && !shared.busy.swap(true, Ordering::Acquire) => {
                shared.share(&Job { task }, count, threads);
            }
            _ => (0..tasks).for_each(task),
        }
    }
}

impl Job<'_> {
    /// Runs the tasks of thread `index`, then those of others, until nobody has one left.
    fn share(&self, index: usize, seats: &[Seat]) {
        let (others, own) = seats.split_at(index);
        for (i, seat) in own.iter().chain(others).enumerate() {
            while let Some(task) = seat.tasks.take(i == 0) {
                (self.task)(task);
            }
        }
    }
}

/// Ends a job, also when a task of the caller panics.
struct Offer<'a>(&'a Shared);

impl Drop for Offer<'_> {
    fn drop(&mut self) {
        let shared = self.0;
        shared.job.store(core::ptr::null_mut(), Ordering::SeqCst);
        let inside = |seat: &Seat| seat.inside.load(Ordering::SeqCst);
        while shared.seats.iter().any(inside) {
            core::hint::spin_loop();
        }
        // Tasks that a panic has left would be the next job's.
        if std::thread::panicking() {
            shared
                .seats
                .iter()
                .for_each(|seat| seat.tasks.give(0, 0, 1));
        }
        shared.busy.store(false, Ordering::Release);
    }
}

impl Shared {
    const fn new() -> Self {
        Self {
            jobs: AtomicU32::new(0),
            job: AtomicPtr::new(core::ptr::null_mut()),
            busy: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            seats: [const {
                Seat {
                    tasks: Tasks::new(),
                    seen: AtomicU32::new(0),
                    inside: AtomicBool::new(false),
                    away: AtomicBool::new(true),
                }
            }; MOST],
            waker: OnceLock::new(),
        }
    }

    /// Runs the tasks of a job on all threads. The caller holds `busy`.
    fn share(&self, job: &Job<'_>, tasks: u32, threads: usize) {
        let seats = &self.seats[..threads];
        for (index, seat) in seats.iter().enumerate() {
            seat.tasks.give(tasks, index, threads);
        }
        let offer = Offer(self);
        // The lifetime alone changes; helpers get the pointer as a shared reference.
        let pointer = core::ptr::from_ref(job).cast::<Job<'static>>();
        self.job.store(pointer.cast_mut(), Ordering::SeqCst);
        self.jobs.fetch_add(1, Ordering::SeqCst);
        // In one order with a helper's last look before it leaves: it is seen to be away, or sees
        // the job.
        let away = |seat: &Seat| seat.away.load(Ordering::SeqCst);
        if seats[1..].iter().any(away)
            && let Some(wake) = self.waker.get()
        {
            wake();
        }
        job.share(0, seats);
        drop(offer);
        assert!(!self.failed.load(Ordering::SeqCst), "a helper has stopped");
    }

    fn serve(&self, index: usize) -> u32 {
        /// Tells of a panic.
        struct Guard<'a>(&'a Shared, usize);

        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0.fail(self.1);
            }
        }

        let seat = &self.seats[index];
        seat.away.store(false, Ordering::SeqCst);
        loop {
            let seen = seat.seen.load(Ordering::Relaxed);
            let news = || self.jobs.load(Ordering::SeqCst) != seen;
            if !looked(&news) {
                seat.away.store(true, Ordering::SeqCst);
                if !news() {
                    return seen;
                }
                seat.away.store(false, Ordering::SeqCst);
            }
            let number = self.jobs.load(Ordering::SeqCst);
            seat.seen.store(number, Ordering::Relaxed);
            // A caller whose job has ended doesn't wait for those who come late.
            if self.job.load(Ordering::SeqCst).is_null() {
                continue;
            }
            seat.inside.store(true, Ordering::SeqCst);
            let job = self.job.load(Ordering::SeqCst);
            let guard = Guard(self, index);
            if !job.is_null() {
                // SAFETY: `inside` told of this helper before it found the job on offer. The
                // caller takes the job off offer before it looks at `inside`, and all four
                // accesses are in one order: it sees this helper, and keeps the job alive until
                // it has left.
                unsafe { &*job }.share(index, &self.seats);
            }
            core::mem::forget(guard);
            seat.inside.store(false, Ordering::SeqCst);
        }
    }

    fn fail(&self, index: usize) {
        self.failed.store(true, Ordering::SeqCst);
        if let Some(seat) = self.seats.get(index) {
            seat.inside.store(false, Ordering::SeqCst);
        }
    }
}

/// Looks for something until it is there, or for a while; returns whether it is.
fn looked(there: &impl Fn() -> bool) -> bool {
    for _ in 0..LOOKS {
        if there() {
            return true;
        }
        core::hint::spin_loop();
    }
    false
}
