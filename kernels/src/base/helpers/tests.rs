//! Tests of helpers, which threads of std are here.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::AtomicUsize;
use std::thread;

use super::*;

/// Helpers of a test's own, and a flag that ends them.
fn shared() -> (&'static Shared, &'static AtomicBool) {
    let shared: &Shared = Box::leak(Box::new(Shared::new()));
    shared.waker.set(|| {}).unwrap();
    (shared, Box::leak(Box::new(AtomicBool::new(false))))
}

/// Calls `run` while so many threads serve.
fn with_helpers(count: usize, run: impl FnOnce(&'static Shared)) {
    let (shared, end) = shared();
    thread::scope(|scope| {
        for index in 1..=count {
            scope.spawn(move || {
                while !end.load(Ordering::SeqCst) && !shared.failed.load(Ordering::SeqCst) {
                    let _ = catch_unwind(|| shared.serve(index));
                    thread::yield_now();
                }
            });
        }
        let result = catch_unwind(AssertUnwindSafe(|| run(shared)));
        end.store(true, Ordering::SeqCst);
        result.unwrap();
    });
}

fn counts(pool: &Helpers, tasks: usize) {
    let counts: Vec<AtomicUsize> = (0..tasks).map(|_| AtomicUsize::new(0)).collect();
    pool.run(tasks, &|i| {
        counts[i].fetch_add(1, Ordering::Relaxed);
    });
    assert!(counts.iter().all(|c| c.load(Ordering::Relaxed) == 1));
}

#[test]
fn every_task_runs_once_whoever_comes() {
    let rounds = if cfg!(miri) { 20 } else { 2000 };
    for (helpers, threads) in [(0, 2), (1, 2), (2, 3), (2, 8)] {
        with_helpers(helpers, |shared| {
            let pool = Helpers::of(shared, threads);
            assert_eq!(pool.threads(), threads);
            for round in 0..rounds {
                counts(&pool, round % 17);
            }
        });
    }
}

#[test]
fn a_helper_takes_part() {
    with_helpers(1, |shared| {
        let met = AtomicUsize::new(0);
        Helpers::of(shared, 2).run(2, &|_| {
            met.fetch_add(1, Ordering::SeqCst);
            while met.load(Ordering::SeqCst) < 2 {
                thread::yield_now();
            }
        });
    });
}

#[test]
fn callers_beside_each_other_and_tasks_get_through() {
    with_helpers(1, |shared| {
        let pool = &Helpers::of(shared, 2);
        thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| (0..20).for_each(|_| pool.run(4, &|_| counts(pool, 3))));
            }
        });
    });
}

#[test]
fn a_helper_that_stops_is_told_and_not_waited_for() {
    with_helpers(1, |shared| {
        let pool = Helpers::of(shared, 2);
        let caller = thread::current().id();
        let run = || {
            pool.run(2, &|_| {
                if thread::current().id() == caller {
                    // Until the helper has come, and stopped.
                    while !shared.failed.load(Ordering::SeqCst) {
                        thread::yield_now();
                    }
                } else {
                    panic!("as in a test");
                }
            });
        };
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        assert!(catch_unwind(AssertUnwindSafe(|| pool.run(2, &|_| {}))).is_err());
    });
}

#[test]
fn a_caller_that_panics_leaves_no_job() {
    with_helpers(1, |shared| {
        let pool = Helpers::of(shared, 2);
        let caller = thread::current().id();
        let run = || pool.run(9, &|_| assert!(thread::current().id() != caller));
        assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
        counts(&pool, 9);
    });
}

#[test]
fn tasks_that_a_panic_has_left_are_not_of_the_next_job() {
    let (shared, _) = shared();
    let run = || Helpers::of(shared, 8).run(64, &|_| panic!("as in a test"));
    assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
    let pool = Helpers::of(shared, 2);
    // The helper comes while the caller is in its first task.
    let count = AtomicUsize::new(0);
    pool.run(2, &|task| {
        assert!(task < 2);
        if count.fetch_add(1, Ordering::SeqCst) == 0 {
            let job = shared.job.load(Ordering::SeqCst);
            // SAFETY: the job of this task, which its caller waits for.
            unsafe { &*job }.share(1, &shared.seats);
        }
    });
    assert_eq!(count.load(Ordering::SeqCst), 2);
}

#[test]
fn a_helper_leaves_when_nothing_comes_and_remembers_the_job() {
    let (shared, _) = shared();
    assert_eq!(shared.serve(1), 0);
    counts(&Helpers::of(shared, 3), 5);
    assert_eq!(shared.serve(1), 1);
    assert!(shared.seats[1].away.load(Ordering::SeqCst));
}

#[test]
fn nobody_who_can_be_woken_is_one_thread() {
    let shared: &Shared = Box::leak(Box::new(Shared::new()));
    let pool = Helpers::of(shared, 4);
    assert_eq!(pool.threads(), 1);
    counts(&pool, 5);
    let (shared, _) = self::shared();
    assert_eq!(Helpers::of(shared, 0).threads(), 1);
    assert_eq!(Helpers::of(shared, usize::MAX).threads(), MOST);
}

#[test]
fn those_who_are_away_are_woken() {
    static WOKEN: AtomicUsize = AtomicUsize::new(0);
    let shared: &Shared = Box::leak(Box::new(Shared::new()));
    let wake: fn() = || {
        WOKEN.fetch_add(1, Ordering::SeqCst);
    };
    shared.waker.set(wake).unwrap();
    let pool = Helpers::of(shared, 2);
    counts(&pool, 2);
    assert_eq!(WOKEN.load(Ordering::SeqCst), 1);
    shared.seats[1].away.store(false, Ordering::SeqCst);
    counts(&pool, 2);
    assert_eq!(WOKEN.load(Ordering::SeqCst), 1);
}
