//! A pool of threads for kernels.
//!
//! The only part of the crate that starts threads; nobody has to use it.

use core::any::Any;
use core::cell::Cell;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use core::time::Duration;
use std::boxed::Box;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, Builder, JoinHandle};
use std::time::Instant;
use std::vec::Vec;

use self::place::{NOWHERE, Place};
use crate::base::parallel::Parallel;
use crate::base::tasks::Tasks;

mod place;
#[cfg(test)]
mod tests;

/// More threads than any machine has a use for.
const MOST_THREADS: usize = 1024;
/// How often a thread that waits looks again before it lets others have the processor; ten to
/// thirty microseconds.
const SPINS: usize = 500;
/// How long it then goes on looking, between turns of other threads, before it sleeps: longer than
/// the kernels of a model let it wait.
const PATIENCE: Duration = Duration::from_micros(500);
/// How often it looks between two such turns: a system call takes more from a thread that shares
/// the core than looking does.
const LOOKS: usize = 16;
/// Work for which workers that sleep are woken. To wake one costs the caller about 20 microseconds,
/// and the worker comes 50 to 150 microseconds later.
const WAKING: Duration = Duration::from_micros(200);
/// Rows of jobs whose first caller wakes the workers immediately, after one whose work repaid it.
const EXPECTATIONS: u8 = 16;

/// Threads that share the tasks of one caller at a time.
///
/// The calling thread takes part, so that a pool of 1 has no thread of its own. A caller that finds
/// the pool busy, or is itself a task of a pool, runs its tasks alone: nobody ever waits for
/// another caller. Each thread begins with the same part of the tasks of every job, so that it
/// finds in its caches what it wrote before, and then helps the others. Workers stay awake for a
/// part of a millisecond after a job, and sleep then. A caller that finds them asleep begins alone,
/// and wakes them when the rest of its tasks, or many callers' small ones in a row, take longer
/// than that; or wakes them first, if that was right the last time. Where there are several
/// processors, Linux is told to run workers on others than the caller's. Dropping the pool ends and
/// joins them; a library that may be unloaded drops it before. A child of `fork` has the calling
/// thread only, and its pool works with that one.
pub struct ThreadPool {
    shared: Arc<Shared>,
    workers: Vec<JoinHandle<()>>,
    /// Held by the caller whose tasks run.
    busy: Mutex<Crew>,
    /// The process that has the workers.
    process: u32,
}

/// What callers know of the workers.
struct Crew {
    /// Where each may run.
    places: Vec<Place>,
    /// Work for which they are woken.
    waking: Duration,
    /// What callers did alone since they last waited for longer than workers do, ...
    alone: Duration,
    /// ... and when they did the last of it.
    last: Instant,
    /// For how many rows of jobs, each after such a wait, they are woken before any work.
    expected: u8,
    /// What a row must still take that they were woken for so, or zero.
    unproved: Duration,
}

struct Shared {
    /// Rises with every job, and in the end.
    jobs: AtomicU64,
    /// The job that workers may join, or null.
    job: AtomicPtr<Job<'static>>,
    /// Workers that may have the job.
    inside: AtomicUsize,
    /// Whether a caller sleeps until nobody is inside.
    sleeping: AtomicBool,
    end: AtomicBool,
    /// The tasks of each thread that nobody has begun.
    parts: Box<[Part]>,
    lock: Mutex<()>,
    /// Signals a caller that sleeps.
    left: Condvar,
}

/// What the threads share.
struct Job<'a> {
    task: &'a (dyn Fn(usize) + Sync),
    panic: Mutex<Option<Box<dyn Any + Send>>>,
}

std::thread_local! {
    /// Whether this thread runs a task of a pool.
    static IN_TASK: Cell<bool> = const { Cell::new(false) };
}

/// What a thread looks at, on a cache line of its own.
#[repr(align(128))]
struct Part {
    tasks: Tasks,
    /// The processor on which the thread began to look for jobs.
    place: AtomicU32,
    /// Whether it sleeps, or is about to.
    asleep: AtomicBool,
}

impl Part {
    const fn new() -> Self {
        Self {
            tasks: Tasks::new(),
            place: AtomicU32::new(NOWHERE),
            asleep: AtomicBool::new(false),
        }
    }
}

impl Job<'_> {
    fn call(&self, task: usize) {
        if let Err(panic) = catch_unwind(AssertUnwindSafe(|| (self.task)(task))) {
            lock(&self.panic).get_or_insert(panic);
        }
    }

    /// Runs all tasks on this thread.
    fn alone(&self, tasks: usize) {
        let before = IN_TASK.replace(true);
        (0..tasks).for_each(|task| self.call(task));
        IN_TASK.set(before);
    }

    /// Runs the tasks of thread `index`, then those of others, until none is left or `go_on` says
    /// so, which is asked before each.
    fn share(&self, index: usize, parts: &[Part], mut go_on: impl FnMut() -> bool) {
        let before = IN_TASK.replace(true);
        let (others, own) = parts.split_at(index.min(parts.len()));
        for (i, part) in own.iter().chain(others).enumerate() {
            while go_on()
                && let Some(task) = part.tasks.take(i == 0)
            {
                self.call(task);
            }
        }
        IN_TASK.set(before);
    }
}

impl ThreadPool {
    /// A pool of `threads` threads, the caller's among them; at least 1, at most 1024. Where the
    /// system gives fewer, the pool has fewer.
    #[must_use]
    pub fn new(threads: usize) -> Self {
        Self::with_waking(threads.min(MOST_THREADS), WAKING)
    }

    /// A pool whose workers are woken for so much work.
    fn with_waking(threads: usize, waking: Duration) -> Self {
        let shared = Arc::new(Shared {
            jobs: AtomicU64::new(0),
            job: AtomicPtr::default(),
            inside: AtomicUsize::new(0),
            sleeping: AtomicBool::new(false),
            end: AtomicBool::new(false),
            parts: (0..threads.max(1)).map(|_| Part::new()).collect(),
            lock: Mutex::new(()),
            left: Condvar::new(),
        });
        let workers: Vec<_> = (1..threads)
            .map_while(|index| {
                let shared = Arc::clone(&shared);
                Builder::new()
                    .name(std::format!("kernels-{index}"))
                    .spawn(move || shared.serve(index))
                    .ok()
            })
            .collect();
        let places = workers.iter().map(|_| Place::default()).collect();
        Self {
            shared,
            workers,
            busy: Mutex::new(Crew {
                places,
                waking,
                alone: Duration::ZERO,
                last: Instant::now(),
                expected: 0,
                unproved: Duration::ZERO,
            }),
            process: std::process::id(),
        }
    }
}

impl Parallel for ThreadPool {
    fn threads(&self) -> usize {
        self.workers.len() + 1
    }

    fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
        let job = Job {
            task,
            panic: Mutex::new(None),
        };
        let alone = tasks <= 1 || self.workers.is_empty() || IN_TASK.get();
        let count = u32::try_from(tasks).ok().filter(|_| !alone);
        match count.and_then(|count| Some((count, self.busy.try_lock().ok()?))) {
            Some((count, mut crew)) => self.share(&job, count, &mut crew),
            None => job.alone(tasks),
        }
        let panic = lock(&job.panic).take();
        if let Some(panic) = panic {
            resume_unwind(panic);
        }
    }
}

impl ThreadPool {
    /// Runs the tasks of a job on all threads. The caller holds `busy`.
    fn share(&self, job: &Job<'_>, tasks: u32, crew: &mut Crew) {
        let shared = &*self.shared;
        let threads = self.threads().min(tasks as usize);
        for (index, part) in shared.parts.iter().enumerate() {
            part.tasks.give(tasks, index, threads);
        }
        // The lifetime alone changes; workers get the pointer as a shared reference.
        let pointer = core::ptr::from_ref(job).cast::<Job<'static>>();
        shared.job.store(pointer.cast_mut(), Ordering::SeqCst);
        shared.jobs.fetch_add(1, Ordering::SeqCst);
        // In one order with a worker's last look before it sleeps: it is seen to sleep, or sees
        // the job.
        let asleep = shared.parts[1..threads]
            .iter()
            .any(|part| part.asleep.load(Ordering::SeqCst));
        if !asleep || self.begin(job, tasks, crew) {
            self.call_workers(threads, asleep, crew);
            let start = (!crew.unproved.is_zero()).then(Instant::now);
            job.share(0, &shared.parts, || true);
            if asleep {
                crew.last = Instant::now();
            }
            if let Some(start) = start {
                crew.unproved = crew.unproved.saturating_sub(start.elapsed());
            }
        }
        // No worker gets the pointer any more, and those that may have it are waited for: after
        // this nobody has it, whatever happened in the tasks.
        shared.job.store(core::ptr::null_mut(), Ordering::SeqCst);
        let idle = || shared.inside.load(Ordering::SeqCst) == 0;
        if !wait_for(idle) {
            let mut guard = lock(&shared.lock);
            shared.sleeping.store(true, Ordering::SeqCst);
            while !idle() {
                guard = shared
                    .left
                    .wait(guard)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            shared.sleeping.store(false, Ordering::SeqCst);
        }
    }
}

impl ThreadPool {
    /// Runs tasks of a job until the rest repays to wake the workers, if it does: returns whether.
    fn begin(&self, job: &Job<'_>, tasks: u32, crew: &mut Crew) -> bool {
        let start = Instant::now();
        if start.saturating_duration_since(crew.last) > PATIENCE {
            crew.alone = Duration::ZERO;
            if !crew.unproved.is_zero() {
                // The row before was too short to wake anybody.
                crew.expected = 0;
            }
            crew.unproved = Duration::ZERO;
            if let Some(left) = crew.expected.checked_sub(1) {
                crew.expected = left;
                // They share what is left when they come.
                crew.unproved = crew.waking / 2;
                return true;
            }
        }
        let parts = &*self.shared.parts;
        let mut repays = false;
        job.share(0, parts, || {
            let left = parts.iter().map(|part| part.tasks.left()).sum::<u32>();
            let begun = tasks.saturating_sub(left);
            let rest = if begun == 0 {
                Duration::ZERO
            } else {
                start.elapsed().saturating_mul(left) / begun
            };
            repays = left > 0 && crew.alone + rest >= crew.waking;
            !repays
        });
        crew.last = Instant::now();
        crew.alone += crew.last - start;
        if repays {
            crew.expected = EXPECTATIONS;
        }
        repays
    }

    /// Keeps the workers of a job from the caller's processor, and wakes those that sleep if there
    /// is work for them.
    fn call_workers(&self, threads: usize, asleep: bool, crew: &mut Crew) {
        let here = place::here();
        let workers = self.workers.iter().zip(&mut crew.places);
        for ((worker, place), part) in workers.zip(&self.shared.parts[1..threads]) {
            let wake = asleep && part.asleep.load(Ordering::SeqCst);
            let at = part.place.load(Ordering::Relaxed);
            // A child of `fork` has handles of its parent's workers.
            let beside = at == here && !wake;
            if (wake || beside || at == NOWHERE) && std::process::id() == self.process {
                place.keep_from(worker, here, beside);
            }
            if wake {
                worker.thread().unpark();
            }
        }
    }
}

impl Drop for ThreadPool {
    fn drop(&mut self) {
        self.shared.end.store(true, Ordering::SeqCst);
        self.shared.jobs.fetch_add(1, Ordering::SeqCst);
        for worker in self.workers.drain(..) {
            worker.thread().unpark();
            // A worker catches the panics of its tasks, so it has nothing to report.
            let _ = worker.join();
        }
    }
}

impl Shared {
    /// The life of worker `index`.
    fn serve(&self, index: usize) {
        let mut seen = 0;
        let part = &self.parts[index];
        loop {
            let news = || self.jobs.load(Ordering::SeqCst) != seen;
            part.place.store(place::here(), Ordering::Relaxed);
            if !wait_for(news) {
                part.asleep.store(true, Ordering::SeqCst);
                while !news() {
                    thread::park();
                }
                part.asleep.store(false, Ordering::SeqCst);
            }
            seen = self.jobs.load(Ordering::SeqCst);
            if self.end.load(Ordering::SeqCst) {
                return;
            }
            // Too late. This look also keeps most of those who come late out of `inside`, which a
            // child of `fork` would wait for.
            if self.job.load(Ordering::SeqCst).is_null() {
                continue;
            }
            self.inside.fetch_add(1, Ordering::SeqCst);
            let job = self.job.load(Ordering::SeqCst);
            if !job.is_null() {
                // SAFETY: `inside` counted this worker before it found the job on offer. The
                // caller takes the job off offer before it looks at `inside`, and all four
                // accesses are in one order: it sees this worker, and keeps the job alive until
                // it has left.
                unsafe { &*job }.share(index, &self.parts, || true);
            }
            let last = self.inside.fetch_sub(1, Ordering::SeqCst) == 1;
            if last && self.sleeping.load(Ordering::SeqCst) {
                // Under the lock, so that the caller is either before its last look or asleep.
                let _guard = lock(&self.lock);
                self.left.notify_all();
            }
        }
    }
}

/// Looks for something until it is there, or for about [`PATIENCE`]; returns whether it is.
fn wait_for(there: impl Fn() -> bool) -> bool {
    for _ in 0..SPINS {
        if there() {
            return true;
        }
        core::hint::spin_loop();
    }
    let start = Instant::now();
    while start.elapsed() < PATIENCE {
        thread::yield_now();
        for _ in 0..LOOKS {
            if there() {
                return true;
            }
            core::hint::spin_loop();
        }
    }
    false
}

/// The lock, also after a panic: what it protects is always whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
