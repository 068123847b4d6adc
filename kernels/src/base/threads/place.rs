//! On which processors threads run.
//!
//! A system may let a thread that it wakes wait for the very processor that its waker keeps busy,
//! while others are idle: virtual machines do, where an idle processor looks like one that is taken
//! away. It stays so until the system balances its load, which is later than most jobs end.

use std::thread::JoinHandle;

/// No processor.
pub(super) const NOWHERE: u32 = u32::MAX;

/// Where a worker may run.
#[derive(Default)]
pub(super) struct Place {
    /// What the owner of the process says.
    own: Mask,
    /// What was set last, so that a change by someone else is seen.
    given: Mask,
    /// The processor that is left out.
    without: Option<u32>,
}

impl Place {
    /// Keeps a worker from a processor, on which it may be already, if it may run on another one.
    pub(super) fn keep_from(&mut self, worker: &JoinHandle<()>, processor: u32, is_there: bool) {
        if processor == NOWHERE || (self.without == Some(processor) && !is_there) {
            return;
        }
        let Some(mask) = system::mask(worker) else {
            return;
        };
        if self.without.is_none() || mask != self.given {
            self.own = mask;
        }
        let mut others = self.own;
        others.remove(processor);
        if !others.is_empty() && system::set_mask(worker, &others) {
            (self.given, self.without) = (others, Some(processor));
        }
    }
}

/// A set of processors, in the words of the system.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
struct Mask([u64; 16]);

impl Mask {
    fn remove(&mut self, processor: u32) {
        if let Some(word) = self.0.get_mut(processor as usize / 64) {
            *word &= !(1 << (processor % 64));
        }
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

/// The processor that runs the calling thread, or [`NOWHERE`] if the system doesn't tell.
pub(super) fn here() -> u32 {
    system::processor().unwrap_or(NOWHERE)
}

#[cfg(all(target_os = "linux", not(miri)))]
mod system {
    use std::os::unix::thread::{JoinHandleExt, RawPthread};
    use std::thread::JoinHandle;

    use super::Mask;

    // Of the C library that `std` links.
    unsafe extern "C" {
        safe fn sched_getcpu() -> i32;
        fn pthread_getaffinity_np(thread: RawPthread, size: usize, mask: *mut Mask) -> i32;
        fn pthread_setaffinity_np(thread: RawPthread, size: usize, mask: *const Mask) -> i32;
    }

    pub(super) fn processor() -> Option<u32> {
        u32::try_from(sched_getcpu()).ok()
    }

    pub(super) fn mask(thread: &JoinHandle<()>) -> Option<Mask> {
        let mut mask = Mask::default();
        // SAFETY: the handle's thread has not been joined, and `mask` has the bytes that it says.
        let error =
            unsafe { pthread_getaffinity_np(thread.as_pthread_t(), size_of::<Mask>(), &mut mask) };
        (error == 0).then_some(mask)
    }

    pub(super) fn set_mask(thread: &JoinHandle<()>, mask: &Mask) -> bool {
        // SAFETY: as above.
        unsafe { pthread_setaffinity_np(thread.as_pthread_t(), size_of::<Mask>(), mask) == 0 }
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
mod system {
    use std::thread::JoinHandle;

    use super::Mask;

    pub(super) fn processor() -> Option<u32> {
        None
    }

    pub(super) fn mask(_: &JoinHandle<()>) -> Option<Mask> {
        None
    }

    pub(super) fn set_mask(_: &JoinHandle<()>, _: &Mask) -> bool {
        false
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    /// Runs a test on a thread that waits.
    fn with_worker(test: impl FnOnce(&JoinHandle<()>)) {
        let (end, ended) = channel::<()>();
        let worker = std::thread::spawn(move || {
            let _ = ended.recv();
        });
        test(&worker);
        drop(end);
        worker.join().unwrap();
    }

    fn processors(mask: &Mask) -> Vec<u32> {
        let has = |at: &u32| mask.0[*at as usize / 64] >> (at % 64) & 1 == 1;
        (0..1024).filter(has).collect()
    }

    fn only(processor: u32) -> Mask {
        let mut mask = Mask::default();
        mask.0[processor as usize / 64] |= 1 << (processor % 64);
        mask
    }

    #[test]
    fn a_worker_is_kept_from_one_processor_at_a_time() {
        with_worker(|worker| {
            let own = system::mask(worker).unwrap();
            let mut place = Place::default();
            for processor in processors(&own).into_iter().chain([NOWHERE]) {
                let mut expected = own;
                expected.remove(processor);
                if processor == NOWHERE || expected.is_empty() {
                    expected = system::mask(worker).unwrap();
                }
                place.keep_from(worker, processor, true);
                assert!(system::mask(worker) == Some(expected));
            }
        });
    }

    #[test]
    fn what_the_owner_says_later_counts() {
        with_worker(|worker| {
            let all = processors(&system::mask(worker).unwrap());
            let [first, .., last] = all[..] else {
                return;
            };
            let mut place = Place::default();
            place.keep_from(worker, first, false);
            assert!(system::set_mask(worker, &only(first)));
            for processor in [last, first] {
                place.keep_from(worker, processor, true);
                assert!(system::mask(worker) == Some(only(first)));
            }
        });
    }

    #[test]
    fn a_processor_beyond_all_is_none() {
        let mut mask = only(3);
        mask.remove(5000);
        assert_eq!(processors(&mask), [3]);
        mask.remove(3);
        assert!(mask.is_empty());
    }
}
