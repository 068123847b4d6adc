//! Ranges of tasks that threads take from both ends.

use core::sync::atomic::{AtomicU64, Ordering};

/// A range of tasks that nobody has begun, first and end in one word.
pub(crate) struct Tasks(AtomicU64);

impl Tasks {
    pub(crate) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// How many are left.
    pub(crate) fn left(&self) -> u32 {
        let word = self.0.load(Ordering::Relaxed);
        ((word >> 32) as u32).saturating_sub(word as u32)
    }

    /// Gives the range of thread `index` of `threads` that share so many tasks: none to those above.
    pub(crate) fn give(&self, tasks: u32, index: usize, threads: usize) {
        let bound = |index: usize| {
            let index = index.min(threads) as u64;
            u64::from(tasks) * index / threads as u64
        };
        let word = bound(index) | bound(index + 1) << 32;
        self.0.store(word, Ordering::Relaxed);
    }

    /// Takes a task: the owner from the front, others from the back.
    pub(crate) fn take(&self, owner: bool) -> Option<usize> {
        let mut task = 0;
        let taken = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, |word| {
                let (first, end) = (word & u64::from(u32::MAX), word >> 32);
                if first >= end {
                    return None;
                }
                task = if owner { first } else { end - 1 };
                Some(if owner { word + 1 } else { word - (1 << 32) })
            });
        taken.is_ok().then_some(task as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_have_parts_that_cover_all_tasks() {
        for (tasks, threads) in [(0, 1), (1, 3), (7, 3), (8, 2), (u32::MAX, 5)] {
            let all: Vec<Tasks> = (0..threads + 2).map(|_| Tasks::new()).collect();
            for (index, part) in all.iter().enumerate() {
                part.give(tasks, index, threads);
            }
            let left: u64 = all.iter().map(|part| u64::from(part.left())).sum();
            assert_eq!(left, u64::from(tasks));
            assert!(all[threads..].iter().all(|part| part.take(true).is_none()));
        }
    }

    #[test]
    fn owners_take_from_the_front_and_others_from_the_back() {
        let part = Tasks::new();
        part.give(10, 1, 2);
        let taken = [true, false, true, false, true, true].map(|owner| part.take(owner));
        assert_eq!(taken, [Some(5), Some(9), Some(6), Some(8), Some(7), None]);
        assert_eq!(part.left(), 0);
    }
}
