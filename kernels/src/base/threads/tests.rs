//! Tests of the pool.

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
#[cfg_attr(miri, ignore = "starts as many threads as there may be")]
fn more_threads_than_memory_has_room_for_are_fewer() {
    let pool = ThreadPool::new(usize::MAX);
    assert!((1..=MOST_THREADS).contains(&pool.threads()));
    counts(&pool, 2000);
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
fn workers_that_sleep_are_woken_and_slow_ones_are_waited_for() {
    let pool = ThreadPool::with_waking(3, Duration::ZERO);
    for pause in [0, 1, 3] {
        std::thread::sleep(Duration::from_millis(pause));
        counts(&pool, 9);
        let met = AtomicUsize::new(0);
        pool.run(3, &|_| {
            // Three threads must meet here, and one of them leaves late.
            let place = met.fetch_add(1, Ordering::SeqCst);
            while met.load(Ordering::SeqCst) < 3 {
                thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(place as u64));
        });
        assert_eq!(met.load(Ordering::SeqCst), 3);
    }
}

#[test]
fn a_thread_begins_with_the_same_part_of_every_job() {
    let pool = ThreadPool::with_waking(2, Duration::ZERO);
    let first = Mutex::new(None);
    for _ in 0..20 {
        let met = AtomicUsize::new(0);
        let ids = [const { Mutex::new(None) }; 2];
        pool.run(2, &|i| {
            *lock(&ids[i]) = Some(thread::current().id());
            // Neither thread may take both tasks.
            met.fetch_add(1, Ordering::SeqCst);
            while met.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
        });
        let ids = ids.map(|id| *lock(&id));
        assert_eq!(*lock(&first).get_or_insert(ids), ids);
    }
    assert_eq!(lock(&first).unwrap()[0], Some(thread::current().id()));
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

/// A pool whose workers sleep, and are woken for so much work.
fn asleep(threads: usize, waking: Duration) -> ThreadPool {
    let pool = ThreadPool::with_waking(threads, waking);
    wait_until_asleep(&pool);
    pool
}

/// Waits until the workers sleep, and for longer than a caller remembers them awake.
fn wait_until_asleep(pool: &ThreadPool) {
    thread::sleep(2 * PATIENCE);
    while !all_asleep(pool) {
        thread::yield_now();
    }
}

fn all_asleep(pool: &ThreadPool) -> bool {
    let mut workers = pool.shared.parts[1..].iter();
    workers.all(|part| part.asleep.load(Ordering::SeqCst))
}

/// Whether a job of two tasks, each of so many microseconds, had help.
fn has_help(pool: &ThreadPool, micros: u64) -> bool {
    let caller = thread::current().id();
    let helped = AtomicBool::new(false);
    pool.run(2, &|_| {
        let start = Instant::now();
        while start.elapsed() < Duration::from_micros(micros) {
            core::hint::spin_loop();
        }
        helped.fetch_or(thread::current().id() != caller, Ordering::SeqCst);
    });
    helped.load(Ordering::SeqCst)
}

#[test]
fn nobody_is_woken_for_small_work() {
    let pool = asleep(3, Duration::from_secs(3600));
    for round in 0..20 {
        counts(&pool, round);
        assert!(!has_help(&pool, 1) && all_asleep(&pool));
    }
}

#[test]
fn workers_are_woken_for_the_rest_of_long_work() {
    let pool = asleep(3, Duration::from_millis(1));
    let met = AtomicUsize::new(0);
    pool.run(9, &|task| {
        if task == 0 {
            return thread::sleep(Duration::from_millis(2));
        }
        // Three threads must meet here.
        met.fetch_add(1, Ordering::SeqCst);
        while met.load(Ordering::SeqCst) < 3 {
            thread::yield_now();
        }
    });
    assert_eq!(met.load(Ordering::SeqCst), 8);
}

#[test]
fn workers_are_woken_for_much_small_work_in_a_row() {
    let pool = asleep(2, Duration::from_millis(1));
    assert!((0..10_000).any(|_| has_help(&pool, 100)));
}

/// Whether both tasks of a job ran at the same time: each waits a while for the other.
fn meet(pool: &ThreadPool) -> bool {
    let met = AtomicUsize::new(0);
    pool.run(2, &|_| {
        met.fetch_add(1, Ordering::SeqCst);
        let start = Instant::now();
        while met.load(Ordering::SeqCst) < 2 && start.elapsed() < Duration::from_millis(20) {
            thread::yield_now();
        }
        // A task that was alone leaves before the next one begins.
        if met.load(Ordering::SeqCst) < 2 {
            met.store(0, Ordering::SeqCst);
        }
    });
    met.load(Ordering::SeqCst) == 2
}

#[test]
fn workers_are_woken_for_long_tasks_in_a_row() {
    let pool = asleep(2, Duration::from_micros(200));
    assert!((0..20).any(|_| meet(&pool)));
}

#[test]
fn a_caller_expects_as_much_work_as_before_the_workers_slept() {
    let pool = asleep(2, Duration::from_micros(200));
    assert!((0..20).any(|_| {
        wait_until_asleep(&pool);
        meet(&pool)
    }));
}

#[test]
fn a_caller_learns_that_there_is_little_work() {
    // As long as a task waits, and longer than a busy machine lets a thread wait.
    let pool = asleep(2, Duration::from_millis(20));
    meet(&pool);
    let woken = (0..100).filter(|_| {
        wait_until_asleep(&pool);
        counts(&pool, 2);
        !all_asleep(&pool)
    });
    // Once, unless the machine takes the caller away for so long that a row seems to be long.
    assert!(woken.count() <= usize::from(EXPECTATIONS / 4));
}
