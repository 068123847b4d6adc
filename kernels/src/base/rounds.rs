//! Tasks that meet again and again: those of a round begin when all of the round before have ended.
//!
//! The members that [`Parallel::run`] starts each take their own task of every round. A member that
//! is away — not started yet, or held up by the system — has its tasks done by the others, so that
//! one thread that runs the members one after the other gets through, too.

use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::base::parallel::Parallel;

/// Most tasks of a round.
pub(crate) const MOST: usize = 8;
/// Whether the processor has an instruction by which members can agree on who takes a task. A
/// Cortex-M0 has none: the caller's thread runs all pairs.
const CLAIMS: bool = cfg!(target_has_atomic = "ptr");
/// How often a member looks whether another has ended its task before it looks whether that one
/// has begun: a microsecond or two.
const GRACE: usize = 64;
/// How often it looks before it lets others have the processor, ...
#[cfg(feature = "std")]
const SPINS: usize = 500;
/// ... and before it sleeps.
#[cfg(feature = "std")]
const TURNS: usize = 1000;

/// How far the task of a member is. What others look at is not where the member counts.
struct Place {
    begun: Begun,
    ended: Ended,
}

/// Rounds whose task somebody has begun.
#[repr(align(128))]
struct Begun(AtomicUsize);

#[repr(align(128))]
struct Ended {
    /// Rounds whose task has ended.
    rounds: AtomicUsize,
    /// Whether the member was there when it was last needed.
    there: AtomicBool,
}

/// What the members share.
struct Rounds<'a> {
    places: [Place; MOST],
    tasks: usize,
    rounds: usize,
    /// Whether a task has panicked.
    broken: AtomicBool,
    task: &'a (dyn Fn(usize, usize) + Sync),
}

/// Calls `task` with every round below `rounds` and every number below `tasks`, once for each pair;
/// what the tasks of a round have done is seen by all of the next. Whatever `parallel` does, no pair
/// is called twice and no round begins before the one before has ended; all pairs are called if it
/// keeps its contract, unless one panics.
///
/// # Panics
/// If there are more than [`MOST`] tasks; if a task does.
pub(crate) fn rounds(
    parallel: &dyn Parallel,
    rounds: usize,
    tasks: usize,
    task: &(dyn Fn(usize, usize) + Sync),
) {
    assert!(tasks <= MOST, "too many tasks");
    if tasks <= 1 || !CLAIMS {
        return (0..rounds * tasks).for_each(|pair| task(pair / tasks, pair % tasks));
    }
    let shared = Rounds {
        places: [const {
            Place {
                begun: Begun(AtomicUsize::new(0)),
                ended: Ended {
                    rounds: AtomicUsize::new(0),
                    there: AtomicBool::new(false),
                },
            }
        }; MOST],
        tasks,
        rounds,
        broken: AtomicBool::new(false),
        task,
    };
    parallel.run(tasks, &|member| {
        if member < tasks {
            shared.take_part(member);
        }
    });
}

impl Rounds<'_> {
    /// All rounds of a member that are left.
    fn take_part(&self, member: usize) {
        let own = &self.places[member];
        own.ended.there.store(true, Ordering::Relaxed);
        let mut round = 0;
        while round < self.rounds {
            if self.begin(member, round) {
                self.call(round, member);
            } else {
                // Others have done it. Of a round that anybody has begun, those before have ended.
                own.ended.there.store(true, Ordering::Relaxed);
                round = own.begun.0.load(Ordering::Acquire).max(round + 1) - 1;
            }
            if !(0..self.tasks).all(|task| self.meet(task, round)) {
                return;
            }
            round += 1;
        }
    }

    /// Whether nobody had begun a task of a round. The caller has met all of the round before.
    #[cfg(target_has_atomic = "ptr")]
    fn begin(&self, task: usize, round: usize) -> bool {
        let begun = &self.places[task].begun.0;
        begun
            .compare_exchange(round, round + 1, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    /// Without [`CLAIMS`], there are no members.
    #[cfg(not(target_has_atomic = "ptr"))]
    fn begin(&self, _task: usize, _round: usize) -> bool {
        false
    }

    /// Runs a task that the caller has begun.
    fn call(&self, round: usize, task: usize) {
        /// Tells the others of a panic.
        struct Guard<'a>(&'a AtomicBool);

        impl Drop for Guard<'_> {
            fn drop(&mut self) {
                self.0.store(true, Ordering::Release);
            }
        }

        let guard = Guard(&self.broken);
        (self.task)(round, task);
        core::mem::forget(guard);
        let ended = &self.places[task].ended.rounds;
        ended.store(round + 1, Ordering::Release);
    }

    /// Waits until a task of a round has ended, or runs it if its member is away. Returns whether
    /// it has ended well.
    fn meet(&self, task: usize, round: usize) -> bool {
        let place = &self.places[task];
        let mut looks = 0;
        while place.ended.rounds.load(Ordering::Acquire) <= round {
            if self.broken.load(Ordering::Acquire) {
                return false;
            }
            let late = looks % GRACE == GRACE - 1;
            if (late || !place.ended.there.load(Ordering::Relaxed))
                && place.begun.0.load(Ordering::Relaxed) == round
                && self.begin(task, round)
            {
                place.ended.there.store(false, Ordering::Relaxed);
                self.call(round, task);
                return true;
            }
            pause(looks);
            looks += 1;
        }
        true
    }
}

/// Lets some time pass, the more the longer the caller waits already.
fn pause(looks: usize) {
    #[cfg(feature = "std")]
    if cfg!(all(target_family = "wasm", target_os = "unknown")) {
        // Threads can't sleep there, and one that trapped has told nobody else.
        crate::base::helpers::check();
    } else if looks >= SPINS + TURNS {
        return std::thread::sleep(core::time::Duration::from_micros(50));
    } else if looks >= SPINS {
        return std::thread::yield_now();
    }
    let _ = looks;
    core::hint::spin_loop();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::base::threads::ThreadPool;
    use crate::testing::{Interleaved, Threads};
    use std::panic::{AssertUnwindSafe, catch_unwind};

    /// Runs the first tasks only, and those twice.
    struct Careless;

    impl Parallel for Careless {
        fn threads(&self) -> usize {
            2
        }

        fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
            (0..tasks).for_each(|_| task(0));
        }
    }

    fn check(parallel: &dyn Parallel, count: usize, tasks: usize) {
        let calls: Vec<AtomicUsize> = (0..count * tasks).map(|_| AtomicUsize::new(0)).collect();
        rounds(parallel, count, tasks, &|round, task| {
            if let Some(before) = round.checked_sub(1) {
                let before = &calls[before * tasks..][..tasks];
                assert!(before.iter().all(|call| call.load(Ordering::Relaxed) == 1));
            }
            calls[round * tasks + task].fetch_add(1, Ordering::Relaxed);
        });
        assert!(calls.iter().all(|call| call.load(Ordering::Relaxed) == 1));
    }

    #[test]
    fn rounds_follow_each_other() {
        let pools = [1, 2, 3].map(ThreadPool::new);
        let mut parallel: Vec<&dyn Parallel> = vec![&Serial, &Interleaved, &Careless, &Threads(3)];
        parallel.extend(pools.iter().map(|pool| pool as &dyn Parallel));
        let most = if cfg!(miri) { 4 } else { 400 };
        for parallel in parallel {
            for tasks in [0, 1, 2, 3, 5, MOST] {
                for count in [0, 1, 2, 7, most] {
                    check(parallel, count, tasks);
                }
            }
        }
    }

    #[test]
    fn a_member_that_is_held_up_is_not_waited_for() {
        let (begun, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        /// Holds up the second member until all rounds have ended.
        struct Late<'a>(&'a AtomicUsize);

        impl Parallel for Late<'_> {
            fn threads(&self) -> usize {
                2
            }

            fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
                Threads(tasks).run(tasks, &|member| {
                    while member == 1 && self.0.load(Ordering::Relaxed) < 100 {
                        std::thread::yield_now();
                    }
                    task(member);
                });
            }
        }
        rounds(&Late(&done), 50, 2, &|round, _| {
            begun.fetch_max(round, Ordering::Relaxed);
            done.fetch_add(1, Ordering::Relaxed);
        });
        assert_eq!(begun.load(Ordering::Relaxed), 49);
    }

    #[test]
    fn a_panic_ends_all() {
        let pool = ThreadPool::new(3);
        for parallel in [&Serial as &dyn Parallel, &pool, &Interleaved] {
            for bad in [0, 2] {
                let last = AtomicUsize::new(0);
                let run = || {
                    rounds(parallel, 50, 3, &|round, task| {
                        assert!((round, task) != (20, bad));
                        last.fetch_max(round, Ordering::Relaxed);
                    });
                };
                assert!(catch_unwind(AssertUnwindSafe(run)).is_err());
                assert!(last.load(Ordering::Relaxed) <= 20);
            }
        }
        check(&pool, 9, 3);
    }

    #[test]
    #[should_panic(expected = "too many tasks")]
    fn too_many_tasks_panic() {
        rounds(&Serial, 1, MOST + 1, &|_, _| {});
    }
}
