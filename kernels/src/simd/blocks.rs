//! Disjoint parts of an output, one per task, so that tasks write without locks or `unsafe`.

use core::marker::PhantomData;
use core::ops::Range;
#[cfg(target_has_atomic = "ptr")]
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::base::parallel::Parallel;
use crate::simd::patch::Patch;

mod relay;

pub(crate) use relay::{Board, relay};

/// A block of a row-major matrix that one task writes.
pub struct Block<'a, T> {
    start: *mut T,
    ld: usize,
    /// First row of the block in the matrix.
    pub row: usize,
    /// First column of the block in the matrix.
    pub column: usize,
    /// Rows of the block.
    pub rows: usize,
    /// Columns of the block.
    pub columns: usize,
    /// Whether the matrix has other blocks: another processor may have written these elements last.
    pub(crate) shared: bool,
    matrix: PhantomData<&'a mut [T]>,
}

impl Block<'_, f32> {
    /// Some columns of some rows, checked once for all.
    ///
    /// # Panics
    /// If the block has no such row or column.
    #[inline(always)]
    pub(crate) fn patch(&mut self, rows: Range<usize>, columns: Range<usize>) -> Patch<'_> {
        assert!(
            rows.start <= rows.end && rows.end <= self.rows,
            "rows outside the block"
        );
        assert!(
            columns.start <= columns.end && columns.end <= self.columns,
            "columns outside the block"
        );
        let start = self
            .start
            .wrapping_add(rows.start * self.ld + columns.start);
        // SAFETY: as for `row`, for each of the rows; the block is borrowed as long as the patch.
        unsafe { Patch::new(start, self.ld, (rows.len(), columns.len())) }
    }
}

impl<'a, T> Block<'a, T> {
    /// All of a matrix of rows of `columns` elements that are `ld` apart.
    ///
    /// # Panics
    /// If the rows overlap or the slice is too short.
    #[must_use]
    pub fn new(matrix: &'a mut [T], ld: usize, rows: usize, columns: usize) -> Self {
        assert!(columns <= ld || rows <= 1, "rows overlap");
        let needed = if rows == 0 {
            0
        } else {
            (rows - 1) * ld + columns
        };
        assert!(needed <= matrix.len(), "matrix is too short");
        Self {
            start: matrix.as_mut_ptr(),
            ld,
            row: 0,
            column: 0,
            rows,
            columns,
            shared: false,
            matrix: PhantomData,
        }
    }

    /// Row `index` of the block.
    ///
    /// # Panics
    /// If the block has no such row.
    #[inline(always)]
    #[must_use]
    pub fn row(&mut self, index: usize) -> &mut [T] {
        assert!(index < self.rows, "row outside the block");
        // SAFETY: `new` checked that all rows lie in the matrix, and blocks of one matrix are
        // disjoint, so that this block alone can reach these elements.
        unsafe { core::slice::from_raw_parts_mut(self.start.add(index * self.ld), self.columns) }
    }

    /// The columns before `column`, and the others.
    ///
    /// # Panics
    /// If the block has no such column.
    pub(crate) fn split_columns(self, column: usize) -> (Self, Self) {
        assert!(column <= self.columns, "column outside the block");
        let right = Self {
            start: self.start.wrapping_add(column),
            column: self.column + column,
            columns: self.columns - column,
            ..self
        };
        let left = Self {
            columns: column,
            ..self
        };
        (left, right)
    }

    /// Copies row `from` over row `to`.
    ///
    /// # Panics
    /// If the block has no such row.
    pub(crate) fn copy_row(&mut self, from: usize, to: usize)
    where
        T: Copy,
    {
        assert!(from < self.rows && to < self.rows, "row outside the block");
        // SAFETY: as for `row`; the block, which is borrowed, reaches both rows.
        unsafe {
            let from = self.start.add(from * self.ld);
            core::ptr::copy(from, self.start.add(to * self.ld), self.columns);
        }
    }

    /// Applies a function to some columns of some rows, in pieces that are as long as can be.
    ///
    /// # Panics
    /// If the block has no such row or column.
    #[inline(always)]
    pub fn apply(&mut self, rows: &[usize], columns: Range<usize>, function: fn(&mut [T])) {
        let whole = columns == (0..self.columns) && self.columns == self.ld;
        let follow = rows.is_sorted_by(|a, b| a.checked_add(1) == Some(*b));
        if let (true, true, Some(&first), Some(&last)) = (whole, follow, rows.first(), rows.last())
        {
            assert!(last < self.rows, "row outside the block");
            let len = rows.len() * self.columns;
            // SAFETY: as for `row`; the rows from one to the other are one piece without gaps.
            let piece =
                unsafe { core::slice::from_raw_parts_mut(self.start.add(first * self.ld), len) };
            function(piece);
            return;
        }
        for &row in rows {
            function(&mut self.row(row)[columns.clone()]);
        }
    }

    /// All elements, if the rows follow each other without a gap.
    #[must_use]
    pub fn contiguous(&mut self) -> Option<&mut [T]> {
        (self.ld == self.columns || self.rows <= 1).then(|| {
            // SAFETY: as for `row`; without gaps all rows are one piece.
            unsafe { core::slice::from_raw_parts_mut(self.start, self.rows * self.columns) }
        })
    }
}

// SAFETY: a block is a mutable borrow of its elements, which no other one reaches.
unsafe impl<T: Send> Send for Block<'_, T> {}

/// How a matrix is cut into blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cut {
    /// Rows of a block; those at the bottom may have fewer.
    pub rows: usize,
    /// Columns of a block; those at the right may have fewer.
    pub columns: usize,
    /// A rest of at most so many columns is added to the block before it.
    pub rest: usize,
}

/// Cuts a row-major matrix of `rows` rows of `columns` elements, `ld` apart, into blocks and calls
/// `task` once for each, spread over `parallel`. Blocks of the same columns follow each other.
///
/// # Panics
/// If the rows overlap or the slice is too short.
#[allow(clippy::too_many_arguments)]
pub fn for_each_block<T: Send>(
    parallel: &dyn Parallel,
    matrix: &mut [T],
    ld: usize,
    (rows, columns): (usize, usize),
    cut: Cut,
    task: impl Fn(Block<'_, T>) + Sync,
) {
    let whole = Block::new(matrix, ld, rows, columns);
    if rows == 0 || columns == 0 {
        return;
    }
    let (block_rows, block_columns) = (cut.rows.max(1), cut.columns.max(1));
    let down = rows.div_ceil(block_rows);
    let across = columns
        .saturating_sub(cut.rest)
        .div_ceil(block_columns)
        .max(1);
    let start = Shared(whole.start);
    tickets(parallel, down * across, &|ticket| {
        let row = ticket % down * block_rows;
        let column = ticket / down * block_columns;
        task(Block {
            // SAFETY: row and column lie inside the matrix that `Block::new` checked.
            start: unsafe { start.get().add(row * ld + column) },
            ld,
            row,
            column,
            rows: block_rows.min(rows - row),
            columns: if ticket / down + 1 == across {
                columns - column
            } else {
                block_columns
            },
            shared: down * across > 1,
            matrix: PhantomData,
        });
    });
}

/// Cuts a slice into chunks of `chunk` elements (the last may be shorter) and calls `task` once
/// for each with the index of its first element, spread over `parallel`.
pub fn for_each_chunk<T: Send>(
    parallel: &dyn Parallel,
    slice: &mut [T],
    chunk: usize,
    task: impl Fn(usize, &mut [T]) + Sync,
) {
    let length = slice.len();
    let cut = Cut {
        rows: 1,
        columns: chunk,
        rest: 0,
    };
    for_each_block(parallel, slice, length, (1, length), cut, |mut block| {
        task(block.column, block.row(0));
    });
}

/// Cuts two slices into chunks and calls `task` once for each pair of chunks of the same number,
/// spread over `parallel`. What has no partner is left out.
pub(crate) fn for_each_pair<T: Send, U: Send>(
    parallel: &dyn Parallel,
    (left, left_chunk): (&mut [T], usize),
    (right, right_chunk): (&mut [U], usize),
    task: impl Fn(usize, &mut [T], &mut [U]) + Sync,
) {
    let (left_chunk, right_chunk) = (left_chunk.max(1), right_chunk.max(1));
    let (left_len, right_len) = (left.len(), right.len());
    let count = left_len.div_ceil(left_chunk);
    let count = count.min(right_len.div_ceil(right_chunk));
    let (left, right) = (Shared(left.as_mut_ptr()), Shared(right.as_mut_ptr()));
    tickets(parallel, count, &|index| {
        let (l, r) = (index * left_chunk, index * right_chunk);
        let (l_len, r_len) = (left_chunk.min(left_len - l), right_chunk.min(right_len - r));
        // SAFETY: the chunk lies in the slice, which is borrowed until `tickets` has returned, and
        // each index is given once.
        let a = unsafe { core::slice::from_raw_parts_mut(left.get().add(l), l_len) };
        // SAFETY: as above.
        let b = unsafe { core::slice::from_raw_parts_mut(right.get().add(r), r_len) };
        task(index, a, b);
    });
}

/// Calls `task` with each chunk of several outputs of one length and the index of its first
/// element. All chunks but the last have `chunk` elements. A shorter one has no part in the chunks
/// that it does not fill.
pub(crate) fn for_each_chunk_of_all<T: Send, const N: usize>(
    parallel: &dyn Parallel,
    outs: [&mut [T]; N],
    chunk: usize,
    task: &(dyn Fn(usize, [&mut [T]; N]) + Sync),
) {
    let len = outs.iter().map(|out| out.len()).max().unwrap_or(0);
    if len == 0 {
        return;
    }
    if chunk == 0 || chunk >= len {
        task(0, outs);
        return;
    }
    let tasks = len.div_ceil(chunk);
    let bases = outs.map(|out| (out.len(), Shared(out.as_mut_ptr())));
    tickets(parallel, tasks, &|index| {
        let start = index * chunk;
        let parts = bases.each_ref().map(|(len, base)| {
            let start = start.min(*len);
            let count = chunk.min(len - start);
            // SAFETY: `start + count <= len` lies within the output, which is borrowed until
            // `tickets` has returned; it gives each index once, so that no two of these slices
            // overlap.
            unsafe { core::slice::from_raw_parts_mut(base.get().add(start), count) }
        });
        task(start, parts);
    });
}

/// Tasks that are told apart by a bit each.
#[cfg(target_has_atomic = "ptr")]
const MARKED: usize = 256;
#[cfg(target_has_atomic = "ptr")]
const WORD: usize = usize::BITS as usize;

/// Calls `task` with each number below `count` at most once, whatever `parallel` does, and exactly
/// once if it keeps its contract: disjointness must not rest on a safe trait. Up to 256 tasks are
/// run on the threads that `parallel` means for them.
#[cfg(target_has_atomic = "ptr")]
pub(crate) fn tickets(parallel: &dyn Parallel, count: usize, task: &(dyn Fn(usize) + Sync)) {
    if count <= 1 {
        return (0..count).for_each(task);
    }
    if count > MARKED {
        let next = AtomicUsize::new(0);
        return parallel.run(count, &|_| {
            let ticket = next.fetch_add(1, Ordering::Relaxed);
            if ticket < count {
                task(ticket);
            }
        });
    }
    let begun = [const { AtomicUsize::new(0) }; MARKED / WORD];
    parallel.run(count, &|ticket| {
        let mark = 1 << (ticket % WORD);
        if ticket < count && begun[ticket / WORD].fetch_or(mark, Ordering::Relaxed) & mark == 0 {
            task(ticket);
        }
    });
}

/// Calls `task` with each number below `count`, in order, on the caller's thread: the processor,
/// such as a Cortex-M0, has no instruction by which threads could agree on who takes a number.
#[cfg(not(target_has_atomic = "ptr"))]
pub(crate) fn tickets(_parallel: &dyn Parallel, count: usize, task: &(dyn Fn(usize) + Sync)) {
    (0..count).for_each(task);
}

/// A pointer that tasks may share, because each of them gets a disjoint part.
struct Shared<T>(*mut T);

impl<T> Shared<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

// SAFETY: the functions above give every task a disjoint part, and `T: Send` there.
unsafe impl<T: Send> Sync for Shared<T> {}

#[cfg(test)]
pub(super) mod tests;
