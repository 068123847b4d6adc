//! Splits an output between tasks.

use crate::base::parallel::Parallel;
use crate::base::worth::Work;
use crate::simd::blocks::for_each_chunk_of_all;

/// Length of the chunks into which `len` outputs are split: a multiple of `unit`, and the whole if
/// splitting does not pay. `cost` is the work per output in units of one addition from memory.
#[must_use]
pub(crate) fn chunk_len(parallel: &dyn Parallel, len: usize, unit: usize, cost: usize) -> usize {
    if !Work::Elements(len, cost).repays() {
        return len.max(1);
    }
    let threads = parallel.threads().max(1);
    if threads == 1 {
        return len.max(1);
    }
    // Two tasks per thread, so that a thread that was held up does not hold up all.
    let wanted = len.div_ceil(2 * threads).max(Work::least_elements(cost));
    let unit = unit.max(1);
    wanted.div_ceil(unit).saturating_mul(unit)
}

/// Calls `task` with each chunk of `out` and the index of its first element. All chunks but the
/// last have `chunk` elements.
pub(crate) fn for_each_chunk<T: Send>(
    parallel: &dyn Parallel,
    out: &mut [T],
    chunk: usize,
    task: &(dyn Fn(usize, &mut [T]) + Sync),
) {
    for_each_chunk_of_all(parallel, [out], chunk, &|start, [out]| task(start, out));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;

    /// Runs every task on its own thread, and one of them twice.
    struct Threads;

    impl Parallel for Threads {
        fn threads(&self) -> usize {
            3
        }

        fn run(&self, tasks: usize, task: &(dyn Fn(usize) + Sync)) {
            std::thread::scope(|scope| {
                for index in 0..=tasks {
                    scope.spawn(move || task(index.min(tasks - 1)));
                }
            });
        }
    }

    #[test]
    fn chunks_cover_the_output_once() {
        for (len, chunk) in [(0, 4), (1, 4), (4, 4), (10, 4), (7, 0), (100, 7)] {
            for parallel in [&Serial as &dyn Parallel, &Threads] {
                let mut out = vec![0_usize; len];
                for_each_chunk(parallel, &mut out, chunk, &|start, part| {
                    for (i, value) in part.iter_mut().enumerate() {
                        *value += start + i + 1;
                    }
                });
                assert!(out.iter().enumerate().all(|(i, &v)| v == i + 1));
            }
        }
    }

    #[test]
    fn several_outputs_are_cut_alike() {
        for lens in [[100, 100], [100, 0], [0, 0], [100, 33]] {
            let [mut a, mut b] = lens.map(|len| vec![0_usize; len]);
            for_each_chunk_of_all(&Threads, [&mut a, &mut b], 7, &|start, parts| {
                for part in parts {
                    for (i, value) in part.iter_mut().enumerate() {
                        *value += start + i + 1;
                    }
                }
            });
            for out in [a, b] {
                assert!(out.iter().enumerate().all(|(i, &v)| v == i + 1));
            }
        }
    }

    #[test]
    fn small_work_stays_whole() {
        assert_eq!(chunk_len(&Threads, 1000, 1, 1), 1000);
        let chunk = chunk_len(&Threads, 1 << 20, 1000, 1);
        assert!(chunk.is_multiple_of(1000) && chunk < 1 << 20);
        assert_eq!(chunk_len(&Serial, 1 << 20, 1, 1), 1 << 20);
    }
}
