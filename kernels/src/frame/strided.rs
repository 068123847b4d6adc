//! The one loop of all operations that only move elements: reads a tensor in strides.

use crate::base::adapt::check_count;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::MAX_RANK;

/// Largest number of axes of a view: tiling needs two per axis of the tensor.
const AXES: usize = 2 * MAX_RANK;

/// Side of the blocks in which a matrix is transposed.
const SIDE: usize = 16;

/// Which element of a source each element of a dense output is: the one at `offset` plus the
/// indices times the strides.
#[derive(Clone, Copy, Debug)]
pub struct View {
    rank: usize,
    dims: [usize; AXES],
    strides: [isize; AXES],
    offset: usize,
}

impl View {
    /// A view of one element.
    #[must_use]
    pub fn new(offset: usize) -> Self {
        Self {
            rank: 0,
            dims: [1; AXES],
            strides: [0; AXES],
            offset,
        }
    }

    /// Appends an axis, merged with the last one if they step alike.
    ///
    /// # Errors
    /// [`Error::Rank`] above 16 axes that do not merge.
    pub fn push(&mut self, dim: usize, stride: isize) -> Result<()> {
        if dim == 1 {
            return Ok(());
        }
        if let Some(last) = self.rank.checked_sub(1)
            && stride.checked_mul(dim as isize) == Some(self.strides[last])
        {
            self.dims[last] *= dim;
            self.strides[last] = stride;
            return Ok(());
        }
        if self.rank == AXES {
            return Err(Error::Rank {
                argument: "view",
                found: AXES + 1,
                expected: "at most 16",
            });
        }
        self.dims[self.rank] = dim;
        self.strides[self.rank] = stride;
        self.rank += 1;
        Ok(())
    }

    /// The offset, and the axes with their sizes and steps.
    pub fn axes(&self) -> (usize, impl Iterator<Item = (usize, isize)> + '_) {
        let axes = self.dims.iter().zip(&self.strides).take(self.rank);
        (self.offset, axes.map(|(&dim, &stride)| (dim, stride)))
    }

    /// Number of elements of the output.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.dims[..self.rank].iter().product()
    }

    /// Fails unless all elements that the view reads lie in a source of `len` elements.
    pub(crate) fn check(&self, len: usize) -> Result<()> {
        if self.elements() == 0 {
            return Ok(());
        }
        let (mut low, mut high) = (self.offset as i128, self.offset as i128);
        for (&dim, &stride) in self.dims[..self.rank].iter().zip(&self.strides) {
            let reach = stride as i128 * (dim as i128 - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        if low >= 0 && high < len as i128 {
            Ok(())
        } else {
            Err(Error::Index {
                argument: "view",
                index: if low < 0 { low } else { high } as i64,
                limit: len,
            })
        }
    }

    /// Offset of the row that holds output number `index`, and its indices.
    fn locate(&self, mut index: usize) -> ([usize; AXES], isize) {
        let mut at = [0; AXES];
        let mut offset = self.offset as isize;
        for axis in (0..self.rank).rev() {
            at[axis] = index % self.dims[axis];
            index /= self.dims[axis];
            offset += at[axis] as isize * self.strides[axis];
        }
        (at, offset)
    }
}

impl View {
    /// `out[view(i)] = x[i]`. The view must have been checked for `out`, and `x` be as long as it.
    pub(crate) fn write<T: Copy>(&self, x: &[T], out: &mut [T]) {
        let last = self.rank.saturating_sub(1);
        let row = if self.rank == 0 { 1 } else { self.dims[last] };
        if x.is_empty() || row == 0 {
            return;
        }
        let (mut at, mut offset) = self.locate(0);
        for x in x.chunks(row) {
            for (index, x) in x.iter().enumerate() {
                out[(offset + index as isize * self.strides[last]) as usize] = *x;
            }
            self.advance(last, &mut at, &mut offset);
        }
    }

    /// Goes from one row to the next.
    fn advance(&self, last: usize, at: &mut [usize; AXES], offset: &mut isize) {
        for axis in (0..last).rev() {
            at[axis] += 1;
            *offset += self.strides[axis];
            if at[axis] < self.dims[axis] {
                return;
            }
            at[axis] = 0;
            *offset -= self.strides[axis] * self.dims[axis] as isize;
        }
    }
}

/// `out[i] = x[view(i)]`.
///
/// # Errors
/// [`Error::Length`] unless `out` has as many elements as the view, [`Error::Index`] if the view
/// reaches outside `x`.
pub fn read<T: Copy + Send + Sync>(
    x: &[T],
    view: &View,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("output", out.len(), view.elements())?;
    view.check(x.len())?;
    if out.is_empty() {
        return Ok(());
    }
    if let Some(matrix) = Matrix::of(view) {
        let chunk = chunk_len(parallel, out.len(), SIDE * matrix.columns, 2);
        for_each_chunk(parallel, out, chunk, &|start, out| {
            matrix.read_rows(x, view, start / matrix.columns, out);
        });
        return Ok(());
    }
    let row = view.rank.checked_sub(1).map_or(1, |last| view.dims[last]);
    let chunk = chunk_len(parallel, out.len(), row, 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        read_rows(x, view, row, start, out);
    });
    Ok(())
}

fn read_rows<T: Copy>(x: &[T], view: &View, row: usize, start: usize, out: &mut [T]) {
    let last = view.rank.saturating_sub(1);
    let stride = view.strides[last];
    let (mut at, mut offset) = view.locate(start);
    for out in out.chunks_mut(row) {
        let base = offset as usize;
        match stride {
            1 => {
                // Short rows are common, and a call per row would cost more than the row.
                let x = &x[base..base + out.len()];
                if out.len() >= 16 {
                    out.copy_from_slice(x);
                } else {
                    for (out, &x) in out.iter_mut().zip(x) {
                        *out = x;
                    }
                }
            }
            0 => out.fill(x[base]),
            _ => {
                for (index, out) in out.iter_mut().enumerate() {
                    *out = x[(offset + index as isize * stride) as usize];
                }
            }
        }
        view.advance(last, &mut at, &mut offset);
    }
}

/// The two innermost axes of a view whose rows are columns of the source.
struct Matrix {
    rows: usize,
    columns: usize,
    /// Distance in the source between neighbours in a row.
    stride: usize,
}

impl Matrix {
    fn of(view: &View) -> Option<Self> {
        let last = view.rank.checked_sub(1)?;
        let above = last.checked_sub(1)?;
        let stride = usize::try_from(view.strides[last]).ok()?;
        let large = view.dims[last] >= 4 && view.dims[above] >= 4;
        (view.strides[above] == 1 && stride > 1 && large).then_some(Self {
            rows: view.dims[above],
            columns: view.dims[last],
            stride,
        })
    }

    /// Writes rows of the output, from the one with number `row` on; a view may have many matrices.
    fn read_rows<T: Copy>(&self, x: &[T], view: &View, mut row: usize, mut out: &mut [T]) {
        while !out.is_empty() {
            let (number, first) = (row / self.rows, row % self.rows);
            let rows = (self.rows - first).min(out.len().div_ceil(self.columns));
            let (_, offset) = view.locate(number * self.rows * self.columns);
            let x = x.get(offset as usize + first..).unwrap_or_default();
            let (part, rest) = out.split_at_mut((rows * self.columns).min(out.len()));
            self.transpose(x, part);
            out = rest;
            row += rows;
        }
    }

    /// Writes some rows of a matrix; `x` begins with the first element of the first.
    fn transpose<T: Copy>(&self, x: &[T], out: &mut [T]) {
        let rows = out.len() / self.columns;
        for left in (0..self.columns).step_by(SIDE) {
            let width = SIDE.min(self.columns - left);
            for top in (0..rows).step_by(SIDE) {
                let height = SIDE.min(rows - top);
                let x = &x[left * self.stride + top..];
                let out = &mut out[top * self.columns + left..];
                if (height, width) == (SIDE, SIDE) {
                    self.block(x, out);
                    continue;
                }
                for row in 0..height {
                    let out = &mut out[row * self.columns..][..width];
                    for (out, x) in out.iter_mut().zip(x[row..].iter().step_by(self.stride)) {
                        *out = *x;
                    }
                }
            }
        }
    }

    /// A whole block. Lines of the source that are far apart push each other out of the cache, so
    /// that each is read once.
    fn block<T: Copy>(&self, x: &[T], out: &mut [T]) {
        let mut block = [[x[0]; SIDE]; SIDE];
        for (index, line) in block.iter_mut().enumerate() {
            line.copy_from_slice(&x[index * self.stride..][..SIDE]);
        }
        for (row, out) in out.chunks_mut(self.columns).take(SIDE).enumerate() {
            for (out, line) in out[..SIDE].iter_mut().zip(&block) {
                *out = line[row];
            }
        }
    }
}

/// Strides in elements of a dense tensor.
#[must_use]
pub(crate) fn dense_strides(dims: &[usize]) -> [isize; MAX_RANK] {
    let mut strides = [0; MAX_RANK];
    let mut stride = 1_isize;
    for axis in (0..dims.len().min(MAX_RANK)).rev() {
        strides[axis] = stride;
        let dim = dims[axis];
        stride = stride.saturating_mul(dim.max(1) as isize);
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Interleaved;
    use crate::trial::{cases, indices};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn reads_and_writes_follow_the_view(
            axes in proptest::collection::vec((1_usize..7, -40_isize..40), 0..4),
            unit: bool,
        ) {
            let mut axes = axes;
            if unit && let Some(last) = axes.last_mut() {
                last.1 = 1;
            }
            let low: isize = axes.iter().map(|&(d, s)| (d as isize - 1) * s.min(0)).sum();
            let high: isize = axes.iter().map(|&(d, s)| (d as isize - 1) * s.max(0)).sum();
            let mut view = View::new(low.unsigned_abs());
            for &(dim, stride) in &axes {
                view.push(dim, stride).unwrap();
            }
            let x: Vec<i32> = (0..(high - low + 1) as i32).collect();
            let mut out = vec![-1; view.elements()];
            read(&x, &view, &mut out, &Interleaved).unwrap();
            let dims: Vec<usize> = axes.iter().map(|axis| axis.0).collect();
            for (i, &found) in out.iter().enumerate() {
                let at = indices(&dims, i);
                let place: isize = at.iter().zip(&axes).map(|(&i, axis)| i as isize * axis.1).sum();
                prop_assert_eq!(found as isize, place - low);
            }
            let mut back = vec![-1; x.len()];
            view.write(&out, &mut back);
            prop_assert!(back.iter().zip(&x).all(|(&back, &x)| back == -1 || back == x));
            let short = read(&x[..x.len() - 1], &view, &mut out, &Interleaved);
            prop_assert_eq!(short.is_err(), !out.is_empty());
        }
    }
}
