//! How the rows of operands meet that are broadcast against each other.

use crate::base::shape::{MAX_RANK, Shape};

/// How the rows of two operands meet: the fewest axes that describe the broadcast.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan<const N: usize> {
    rank: usize,
    dims: [usize; MAX_RANK],
    /// Distance in elements between neighbours along an axis, 0 where the operand is repeated.
    strides: [[usize; MAX_RANK]; N],
}

impl<const N: usize> Plan<N> {
    /// For operands of these shapes; `out` is the shape that they broadcast to.
    #[inline(never)]
    pub(crate) fn new(shapes: [&Shape; N], out: &Shape) -> Self {
        let mut plan = Self {
            rank: 0,
            dims: [1; MAX_RANK],
            strides: [[0; MAX_RANK]; N],
        };
        let mut steps = [1_usize; N];
        let mut last = [false; N];
        // Axes are collected from the innermost outwards and put in order below.
        for back in 1..=out.rank() {
            let dim = out[out.rank() - back];
            if dim == 1 {
                continue;
            }
            let mut steps_along = [false; N];
            for (flag, shape) in steps_along.iter_mut().zip(shapes) {
                *flag = shape.rank() >= back && shape[shape.rank() - back] != 1;
            }
            if plan.rank > 0 && steps_along == last {
                plan.dims[plan.rank - 1] *= dim;
            } else {
                plan.dims[plan.rank] = dim;
                for n in 0..N {
                    plan.strides[n][plan.rank] = if steps_along[n] { steps[n] } else { 0 };
                }
                plan.rank += 1;
                last = steps_along;
            }
            for n in 0..N {
                if steps_along[n] {
                    steps[n] *= dim;
                }
            }
        }
        plan.rank = plan.rank.max(1);
        plan.dims[..plan.rank].reverse();
        for strides in &mut plan.strides {
            strides[..plan.rank].reverse();
        }
        plan
    }

    /// Length of a row: the innermost axis.
    pub(crate) fn row(&self) -> usize {
        self.dims[self.rank - 1]
    }

    /// Number of rows.
    pub(super) fn rows(&self) -> usize {
        self.dims[..self.rank - 1].iter().product()
    }

    /// Whether operand `n` advances along a row.
    pub(crate) fn steps(&self, n: usize) -> bool {
        self.strides[n][self.rank - 1] != 0
    }

    /// A walk over the rows from row `first` on.
    #[inline(never)]
    pub(crate) fn walk(&self, first: usize) -> Walk<'_, N> {
        let mut walk = Walk {
            plan: self,
            index: [0; MAX_RANK],
            offsets: [0; N],
        };
        let mut rest = first;
        for axis in (0..self.rank - 1).rev() {
            let dim = self.dims[axis].max(1);
            walk.index[axis] = rest % dim;
            rest /= dim;
            for n in 0..N {
                walk.offsets[n] += walk.index[axis] * self.strides[n][axis];
            }
        }
        walk
    }
}

/// Where the current row of each operand starts.
pub(crate) struct Walk<'a, const N: usize> {
    plan: &'a Plan<N>,
    index: [usize; MAX_RANK],
    pub(crate) offsets: [usize; N],
}

impl<const N: usize> Walk<'_, N> {
    /// Goes to the next row; after the last one to the first.
    #[inline(always)]
    pub(crate) fn next(&mut self) {
        for axis in (0..self.plan.rank - 1).rev() {
            self.index[axis] += 1;
            for n in 0..N {
                self.offsets[n] += self.plan.strides[n][axis];
            }
            if self.index[axis] < self.plan.dims[axis] {
                return;
            }
            self.index[axis] = 0;
            for n in 0..N {
                self.offsets[n] -= self.plan.strides[n][axis] * self.plan.dims[axis];
            }
        }
    }
}
