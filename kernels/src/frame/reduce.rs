//! The one loop of all reductions over axes.
//!
//! Sums of `f32` run in blocks of at most 64 terms per lane, and the blocks are added in `f64`: the
//! error stays below 64 roundings however long the axis is. Neither the instruction set nor the
//! number of threads changes a bit of the result.

use crate::base::adapt::{Element, check_len};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, Inputs, OutputSink};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::{MAX_RANK, Shape};
use crate::simd::body::{Body, dispatch};

/// Partial results side by side within a row.
const LANES: usize = 64;
/// Steps of a lane before it is widened.
const BLOCK: usize = 64;
/// Columns that are reduced side by side.
const TILE: usize = 256;
/// Parts of a reduction to a single value.
const PARTS: usize = 32;

/// An associative operation that reduces elements of type `T`.
pub trait Reduce<T>: Copy + Sync {
    /// Type in which blocks are combined.
    type Wide: Copy + Send + Sync;

    /// The result of nothing.
    const EMPTY: T;
    /// The result of nothing, widened.
    const EMPTY_WIDE: Self::Wide;

    /// Combines two partial results.
    fn step(self, a: T, b: T) -> T;
    /// Combines a widened partial result with one more.
    fn widen(self, a: Self::Wide, b: T) -> Self::Wide;
    /// Combines two widened partial results.
    fn merge(self, a: Self::Wide, b: Self::Wide) -> Self::Wide;
    /// The result for `count` elements.
    fn finish(self, wide: Self::Wide, count: usize) -> T;
}

/// The axes of a tensor that a reduction removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    reduced: [bool; MAX_RANK],
}

impl Axes {
    /// The axes with these numbers, which count from the end when negative.
    ///
    /// # Errors
    /// [`Error::Axis`] out of range, [`Error::Value`] if one appears twice.
    pub fn new(shape: &Shape, axes: &[i64]) -> Result<Self> {
        let mut reduced = [false; MAX_RANK];
        for &axis in axes {
            let slot = &mut reduced[shape.axis("reduction_indices", axis)?];
            if *slot {
                return Err(Error::Value {
                    argument: "reduction_indices",
                    expected: "axes that differ",
                });
            }
            *slot = true;
        }
        Ok(Self { reduced })
    }

    /// The shape after the reduction; reduced axes are 1 or missing.
    ///
    /// # Errors
    /// As [`Shape::new`].
    pub fn output(&self, shape: &Shape, keep_dims: bool) -> Result<Shape> {
        let mut out = Shape::SCALAR;
        for (&dim, &reduced) in shape.iter().zip(&self.reduced) {
            match (reduced, keep_dims) {
                (false, _) => out.push(dim)?,
                (true, true) => out.push(1)?,
                (true, false) => {}
            }
        }
        Ok(out)
    }
}

/// Some axes of a tensor with their strides in elements.
#[derive(Clone, Copy, Debug)]
struct Grid {
    rank: usize,
    dims: [usize; MAX_RANK],
    strides: [usize; MAX_RANK],
}

impl Grid {
    const POINT: Self = Self {
        rank: 0,
        dims: [1; MAX_RANK],
        strides: [0; MAX_RANK],
    };

    fn points(&self) -> usize {
        self.dims[..self.rank].iter().product()
    }

    /// Offset of point number `index` in row-major order.
    #[inline(always)]
    fn offset(&self, mut index: usize) -> usize {
        let mut offset = 0;
        for axis in (0..self.rank).rev() {
            let dim = self.dims[axis].max(1);
            offset += index % dim * self.strides[axis];
            index /= dim;
        }
        offset
    }

    fn prepend(&mut self, dim: usize, stride: usize) {
        self.dims.copy_within(..MAX_RANK - 1, 1);
        self.strides.copy_within(..MAX_RANK - 1, 1);
        self.dims[0] = dim;
        self.strides[0] = stride;
        self.rank += 1;
    }
}

/// A reduction with adjacent axes of the same kind merged. The data are blocks of `rows` rows of
/// `row` elements. Either rows are reduced to a value each (`along`), or all rows of a block are
/// combined to one row.
#[derive(Clone, Copy, Debug)]
struct Plan {
    along: bool,
    row: usize,
    rows: usize,
    /// Where blocks start, for each kept point and for each further reduced one.
    kept: Grid,
    reduced: Grid,
    count: usize,
}

impl Plan {
    fn new(shape: &Shape, axes: &Axes) -> Self {
        // Merged axes, innermost first.
        let mut merged = [(1_usize, false); MAX_RANK];
        let mut rank = 0;
        for (&dim, &reduced) in shape.iter().zip(&axes.reduced).rev() {
            if dim == 1 {
                continue;
            }
            if rank > 0 && merged[rank - 1].1 == reduced {
                merged[rank - 1].0 *= dim;
            } else {
                merged[rank] = (dim, reduced);
                rank += 1;
            }
        }
        let (row, along) = merged[0];
        let mut plan = Self {
            along,
            row,
            rows: 1,
            kept: Grid::POINT,
            reduced: Grid::POINT,
            count: if along { row } else { 1 },
        };
        let mut stride = row;
        for (place, &(dim, reduced)) in merged[..rank].iter().enumerate().skip(1) {
            if reduced {
                plan.count *= dim;
            }
            match (place, reduced) {
                (1, true) => plan.rows = dim,
                (_, true) => plan.reduced.prepend(dim, stride),
                (_, false) => plan.kept.prepend(dim, stride),
            }
            stride *= dim;
        }
        plan
    }
}

struct Along<'a, R, T> {
    op: R,
    plan: &'a Plan,
    x: &'a [T],
    start: usize,
    out: &'a mut [T],
}

impl<R: Reduce<T>, T: Element> Body for Along<'_, R, T> {
    type Output = ();

    const LEVELS: bool = T::LEVELS;

    #[inline(always)]
    fn run(self) {
        let (op, plan) = (self.op, self.plan);
        let points = plan.reduced.points();
        for (index, out) in self.out.iter_mut().enumerate() {
            let base = plan.kept.offset(self.start + index);
            let mut wide = R::EMPTY_WIDE;
            for point in 0..points {
                let row = &self.x[base + plan.reduced.offset(point)..][..plan.row];
                wide = reduce_row(op, wide, row);
            }
            *out = op.finish(wide, plan.count);
        }
    }
}

#[inline(always)]
fn reduce_row<R: Reduce<T>, T: Element>(op: R, mut wide: R::Wide, row: &[T]) -> R::Wide {
    for block in row.chunks(LANES * BLOCK) {
        let (chunks, rest) = block.as_chunks::<LANES>();
        let mut total = R::EMPTY;
        if !chunks.is_empty() {
            let mut lanes = [R::EMPTY; LANES];
            for chunk in chunks {
                for (lane, &x) in lanes.iter_mut().zip(chunk) {
                    *lane = op.step(*lane, x);
                }
            }
            let mut width = LANES;
            while width > 1 {
                width /= 2;
                let (low, high) = lanes.split_at_mut(width);
                for (low, &high) in low.iter_mut().zip(&*high) {
                    *low = op.step(*low, high);
                }
            }
            total = lanes[0];
        }
        let tail = rest.iter().fold(R::EMPTY, |tail, &x| op.step(tail, x));
        wide = op.widen(wide, op.step(total, tail));
    }
    wide
}

struct Across<'a, R, T> {
    op: R,
    plan: &'a Plan,
    x: &'a [T],
    start: usize,
    out: &'a mut [T],
}

impl<R: Reduce<T>, T: Element> Body for Across<'_, R, T> {
    type Output = ();

    const LEVELS: bool = T::LEVELS;

    #[inline(always)]
    fn run(self) {
        let plan = self.plan;
        let (mut done, mut start) = (0, self.start);
        while done < self.out.len() {
            let column = start % plan.row;
            let columns = (plan.row - column).min(TILE).min(self.out.len() - done);
            let base = plan.kept.offset(start / plan.row) + column;
            let out = &mut self.out[done..done + columns];
            // Few columns: several rows side by side, folded at the end.
            let fold = if columns == plan.row {
                (TILE / columns).min(plan.rows).max(1)
            } else {
                1
            };
            let wide = reduce_columns(self.op, plan, &self.x[base..], columns, fold);
            for (j, out) in out.iter_mut().enumerate() {
                let mut total = wide[j];
                for k in 1..fold {
                    total = self.op.merge(total, wide[k * columns + j]);
                }
                *out = self.op.finish(total, plan.count);
            }
            done += columns;
            start += columns;
        }
    }
}

#[inline(always)]
fn reduce_columns<R: Reduce<T>, T: Element>(
    op: R,
    plan: &Plan,
    x: &[T],
    columns: usize,
    fold: usize,
) -> [R::Wide; TILE] {
    let mut wide = [R::EMPTY_WIDE; TILE];
    let width = columns * fold;
    let steps = plan.rows / fold;
    for point in 0..plan.reduced.points() {
        let x = &x[plan.reduced.offset(point)..];
        let mut step = 0;
        while step < steps {
            let end = (step + BLOCK).min(steps);
            let mut lanes = [R::EMPTY; TILE];
            let lanes = &mut lanes[..width];
            while step < end {
                let row = &x[step * fold * plan.row..][..width];
                for (lane, &x) in lanes.iter_mut().zip(row) {
                    *lane = op.step(*lane, x);
                }
                step += 1;
            }
            for (wide, &lane) in wide.iter_mut().zip(&*lanes) {
                *wide = op.widen(*wide, lane);
            }
        }
        for row in steps * fold..plan.rows {
            let row = &x[row * plan.row..][..columns];
            for (wide, &x) in wide.iter_mut().zip(row) {
                *wide = op.widen(*wide, x);
            }
        }
    }
    wide
}

/// Reduces the given axes of `x`; `out` has the kept ones, in order.
///
/// # Errors
/// [`Error::Length`] if a slice does not fit the shape.
pub fn reduce<R: Reduce<T>, T: Element>(
    op: R,
    (x, shape): (&[T], &Shape),
    axes: &Axes,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_len("input", x.len(), shape)?;
    check_len("output", out.len(), &axes.output(shape, false)?)?;
    if out.is_empty() {
        return Ok(());
    }
    if x.is_empty() {
        out.fill(op.finish(R::EMPTY_WIDE, 0));
        return Ok(());
    }
    let plan = Plan::new(shape, axes);
    if let ([out], true) = (&mut *out, x.len() >= PARTS * LANES * BLOCK) {
        let part = x.len().div_ceil(PARTS);
        let mut wides = [R::EMPTY_WIDE; PARTS];
        for_each_chunk(parallel, &mut wides, 1, &|index, wides| {
            let row = x.get(index * part..).unwrap_or_default();
            let row = row.get(..part).unwrap_or(row);
            if let Some(wide) = wides.first_mut() {
                *wide = dispatch(Row { op, row });
            }
        });
        let wide = wides.into_iter().reduce(|a, b| op.merge(a, b));
        *out = op.finish(wide.unwrap_or(R::EMPTY_WIDE), plan.count);
        return Ok(());
    }
    let unit = if plan.along { 1 } else { plan.row.min(TILE) };
    let chunk = chunk_len(parallel, out.len(), unit, plan.count);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let plan = &plan;
        if plan.along {
            dispatch(Along {
                op,
                plan,
                x,
                start,
                out,
            });
        } else {
            dispatch(Across {
                op,
                plan,
                x,
                start,
                out,
            });
        }
    });
    Ok(())
}

struct Row<'a, R, T> {
    op: R,
    row: &'a [T],
}

impl<R: Reduce<T>, T: Element> Body for Row<'_, R, T> {
    type Output = R::Wide;

    const LEVELS: bool = T::LEVELS;

    #[inline(always)]
    fn run(self) -> R::Wide {
        reduce_row(self.op, R::EMPTY_WIDE, self.row)
    }
}

/// The attribute of all reductions.
pub(crate) const KEEP_DIMS: &[(&str, AttrKind)] = &[("keep_dims", AttrKind::Bool)];

/// The axes that the second input names.
fn axes_of(inputs: &Inputs<'_>) -> Result<(Shape, Axes)> {
    let shape = inputs.shape(0, "input")?;
    let axes = Axes::new(&shape, &inputs.ints_of_any_rank(1, "reduction_indices")?)?;
    Ok((shape, axes))
}

/// One output of the first input's type without the reduced axes.
pub(crate) fn outputs_reduced(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (shape, axes) = axes_of(inputs)?;
    let keep_dims = inputs.attrs.boolean("keep_dims")?;
    sink(
        inputs.get(0, "input")?.dtype(),
        axes.output(&shape, keep_dims)?,
    )
}

/// Reduces the first input over the axes that the second one names.
pub(crate) fn run_reduce<R: Reduce<T>, T: Element>(op: R, call: &mut Call<'_>) -> Result<()> {
    let (shape, axes) = axes_of(&call.inputs)?;
    let x = call.inputs.get(0, "input")?;
    let x = T::view(&x, "input")?;
    let parallel = call.parallel;
    let out = T::view_mut(call.output(0)?, "output")?;
    reduce(op, (x, &shape), &axes, out, parallel)
}

#[cfg(test)]
mod tests;
