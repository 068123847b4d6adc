//! Parts that tasks write in turn, and read in whole.

use core::marker::PhantomData;

use super::{Block, Shared};
use crate::base::parallel::Parallel;
use crate::base::rounds::{MOST, rounds};

/// A dense matrix of which each task has some columns.
pub(crate) struct Board<'a> {
    /// The elements.
    pub data: &'a mut [f32],
    /// Columns of the matrix.
    pub columns: usize,
    /// Where the columns of each task begin, and where those of the last one end.
    pub bounds: [usize; MOST + 1],
}

impl<'a> Board<'a> {
    /// Two matrices of equal columns.
    pub(crate) fn pair(
        (first, second): (&'a mut [f32], &'a mut [f32]),
        columns: usize,
        bounds: [usize; MOST + 1],
    ) -> [Self; 2] {
        [first, second].map(|data| Self {
            data,
            columns,
            bounds,
        })
    }
}

/// What a task does in a round with what it owns, what it reads and what it writes.
pub(crate) type Turn<'a, T> = dyn Fn(usize, &mut T, &[f32], Block<'_, f32>) + Sync + 'a;

/// Calls `task` once for each round and each element of `own`, with that element: the rounds one
/// after the other, the elements of a round spread over `parallel`. In the first round and every
/// other one after it, a task reads the second board and writes its columns of the first; in the
/// rounds between, it reads the first and writes its columns of the second.
///
/// # Panics
/// If there are more than [`MOST`] elements; if bounds fall, or lie outside of a matrix.
pub(crate) fn relay<T: Send>(
    parallel: &dyn Parallel,
    count: usize,
    own: &mut [T],
    boards: [Board<'_>; 2],
    task: &Turn<'_, T>,
) {
    let tasks = own.len();
    let boards = boards.map(|board| {
        let (len, columns, bounds) = (board.data.len(), board.columns, board.bounds);
        let last = *bounds.get(tasks).expect("too many tasks");
        let rows = len.checked_div(columns).unwrap_or(0);
        assert!(
            bounds[..=tasks].is_sorted() && last <= columns,
            "columns outside the matrix"
        );
        (
            Shared(board.data.as_mut_ptr()),
            (len, rows, columns),
            bounds,
        )
    });
    let own = Shared(own.as_mut_ptr());
    rounds(parallel, count, tasks, &|round, index| {
        let [first, second] = &boards;
        let (to, from) = if round.is_multiple_of(2) {
            (first, second)
        } else {
            (second, first)
        };
        // SAFETY: `rounds` calls each task below `tasks` once in a round, and the rounds one after
        // the other, so that nobody else has this element meanwhile.
        let own = unsafe { &mut *own.get().add(index) };
        // SAFETY: as above, all tasks that run now read this board and write the other one; both
        // are borrowed until `rounds` has returned.
        let read = unsafe { core::slice::from_raw_parts(from.0.get(), from.1.0) };
        let ((_, rows, ld), bounds) = (to.1, &to.2);
        let block = Block {
            start: to.0.get().wrapping_add(bounds[index]),
            ld,
            row: 0,
            column: bounds[index],
            rows,
            columns: bounds[index + 1] - bounds[index],
            shared: tasks > 1,
            matrix: PhantomData,
        };
        task(round, own, read, block);
    });
}

#[cfg(test)]
mod tests {
    use super::super::tests::Twice;
    use super::*;
    use crate::base::parallel::Serial;

    #[test]
    fn tasks_read_what_all_wrote_in_the_round_before() {
        let pool = crate::base::threads::ThreadPool::new(2);
        for parallel in [&Serial as &dyn Parallel, &Twice, &pool] {
            for tasks in [1, 2, 3] {
                let (mut a, mut b) = ([0.0; 10], [1.0; 15]);
                let mut own = [0_usize; 3];
                let bounds = |at: fn(usize, usize) -> usize| {
                    core::array::from_fn(|task| at(task.min(tasks), tasks))
                };
                let bounds = [
                    bounds(|task, tasks| 5 * task / tasks),
                    bounds(|task, tasks| 5 - 5 * (tasks - task) / tasks),
                ];
                let boards = [
                    Board {
                        data: &mut a,
                        columns: 5,
                        bounds: bounds[0],
                    },
                    Board {
                        data: &mut b,
                        columns: 5,
                        bounds: bounds[1],
                    },
                ];
                relay(
                    parallel,
                    8,
                    &mut own[..tasks],
                    boards,
                    &|round, own, read, mut to| {
                        assert_eq!(read.len(), 10 + 5 * ((round + 1) % 2));
                        assert!(read.iter().all(|&x| x == read[0]), "{read:?}");
                        *own += 1;
                        for row in 0..to.rows {
                            to.row(row).fill(read[0] + 1.0);
                        }
                    },
                );
                assert!(a.iter().all(|&x| x == 8.0) && b.iter().all(|&x| x == 9.0));
                assert_eq!(own[..tasks], [8; 3][..tasks]);
            }
        }
    }
}
