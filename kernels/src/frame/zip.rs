//! The one loop of all element-wise operations of two arguments, with broadcasting.

pub(crate) mod call;
pub(crate) mod plan;

use crate::base::adapt::{Element, check_len};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::map::{dispatch_for, waits_for_memory};
use crate::frame::zip::plan::Plan;
use crate::simd::stream::{self, Fence};
use crate::simd::{Body, Simd};

/// An operation on two elements of type `T`.
pub trait Zip<T>: Copy + Sync {
    /// Type of the result.
    type Out: Element;

    /// Work per element in units of one addition, to decide about threads.
    const COST: usize = 1;

    /// The result for one pair of elements.
    fn apply(self, a: T, b: T) -> Self::Out;

    /// Accepts all second elements, or none.
    ///
    /// # Errors
    /// [`Error::Value`](crate::base::error::Error::Value) if the operation has no result for one.
    #[inline(always)]
    fn accept(_: &[T]) -> Result<()> {
        Ok(())
    }
}

/// Elements of a repeated operand that are laid out at a time.
const SPLAT: usize = 256;

/// Elements of a row from which on it is worth writing past the caches.
const FAR_ROW: usize = 4096;

/// A run of whole rows of the output, or a part of one row.
struct Part<'a, T, U> {
    plan: &'a Plan<2>,
    operands: [&'a [T]; 2],
    /// Index in the whole operand of the first element of each slice.
    bases: [usize; 2],
    /// Index of the first element of `out`.
    start: usize,
    out: &'a mut [U],
    /// Past the caches.
    far: bool,
}

struct Rows<'a, O, T, U> {
    op: O,
    part: Part<'a, T, U>,
}

impl<O: Zip<T>, T: Element> Body for Rows<'_, O, T, O::Out> {
    type Out = ();

    // One inner loop, whatever is repeated: a loop per case and level would be the largest part of
    // the library.
    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { op, part } = self;
        let Part {
            plan,
            operands: [a, b],
            bases,
            start,
            out,
            far,
        } = part;
        let fence = Fence::new(s, far && const { waits_for_memory::<T>(O::COST) });
        let row = plan.row();
        if row == 0 {
            return;
        }
        let (sa, sb) = (plan.steps(0), plan.steps(1));
        let step = if sa && sb { row } else { SPLAT.min(row) };
        let mut splats = [[T::default(); SPLAT]; 2];
        let within = start % row;
        let mut walk = plan.walk(start / row);
        for out in out.chunks_mut(row) {
            let ia = walk.offsets[0] + within * usize::from(sa) - bases[0];
            let ib = walk.offsets[1] + within * usize::from(sb) - bases[1];
            if !sa {
                splats[0][..step].fill(a[ia]);
            }
            if !sb {
                splats[1][..step].fill(b[ib]);
            }
            let mut at = 0;
            while at < out.len() {
                let n = step.min(out.len() - at);
                let out = &mut out[at..at + n];
                let a = if sa {
                    &a[ia + at..][..n]
                } else {
                    &splats[0][..n]
                };
                let b = if sb {
                    &b[ib + at..][..n]
                } else {
                    &splats[1][..n]
                };
                at += stream::zip_first(a, b, out, fence.as_ref(), |a, b| op.apply(a, b));
            }
            walk.next();
        }
    }
}

/// A chunk length at which chunks start where rows do, unless there is only one row.
#[inline(never)]
fn chunk_of<const N: usize>(
    plan: &Plan<N>,
    parallel: &dyn Parallel,
    len: usize,
    cost: usize,
) -> usize {
    let unit = if plan.rows() == 1 { 16 } else { plan.row() };
    chunk_len(parallel, len, unit, cost)
}

/// An operand and its shape.
type Operand<'a, T> = (&'a [T], &'a Shape);

/// The loop of one operation. What surrounds it is compiled once per element type and not per
/// operation.
// A table of `dyn Fn` has two entries more, one of which is a function of its own.
trait Loop<T, U>: Sync {
    fn run(&self, part: Part<'_, T, U>);
}

/// An operation as what a loop is made of.
struct Op<O>(O);

impl<O: Zip<T>, T: Element> Loop<T, O::Out> for Op<O> {
    fn run(&self, part: Part<'_, T, O::Out>) {
        let op = self.0;
        dispatch_for::<T, _>(Rows { op, part });
    }
}

/// `out = op(a, b)`, where `a` and `b` are broadcast against each other.
///
/// # Errors
/// [`Error::Incompatible`](crate::base::error::Error::Incompatible) if they can't be,
/// [`Error::Length`](crate::base::error::Error::Length) if a slice does not fit its shape,
/// [`Error::Value`](crate::base::error::Error::Value) if the operation has no result for an element of
/// `b`, such as a divisor of integers that is 0.
pub fn zip<O: Zip<T>, T: Element>(
    op: O,
    a: (&[T], &Shape),
    b: (&[T], &Shape),
    out: &mut [O::Out],
    parallel: &dyn Parallel,
) -> Result<()> {
    if !out.is_empty() {
        O::accept(b.0)?;
    }
    zip_loop(a, b, out, O::COST, parallel, &Op(op))
}

fn zip_loop<T: Element, U: Element>(
    (a, a_shape): Operand<'_, T>,
    (b, b_shape): Operand<'_, T>,
    out: &mut [U],
    cost: usize,
    parallel: &dyn Parallel,
    rows: &dyn Loop<T, U>,
) -> Result<()> {
    let out_shape = a_shape.broadcast(b_shape, ("x", "y"))?;
    check_len("x", a.len(), a_shape)?;
    check_len("y", b.len(), b_shape)?;
    check_len("out", out.len(), &out_shape)?;
    let plan = Plan::new([a_shape, b_shape], &out_shape);
    let chunk = chunk_of(&plan, parallel, out.len(), cost);
    // Short rows cut too many lines; tests want them all the same.
    let long = plan.row() >= FAR_ROW || cfg!(test);
    let far = long && stream::is_far::<U>(out.len());
    for_each_chunk(parallel, out, chunk, &|start, out| {
        rows.run(Part {
            plan: &plan,
            operands: [a, b],
            bases: [0, 0],
            start,
            out,
            far,
        });
    });
    Ok(())
}

/// Elements that are worked on at a time in place.
const BLOCK: usize = 1024;

/// `values = op(values, other)`, or `op(other, values)` unless `LEFT`; `other` is broadcast to
/// the shape of `values`.
///
/// # Errors
/// As [`zip`]; also if `other` would stretch `values`.
pub fn zip_in_place<O: Zip<T, Out = T>, T: Element, const LEFT: bool>(
    op: O,
    values: (&mut [T], &Shape),
    other: (&[T], &Shape),
    parallel: &dyn Parallel,
) -> Result<()> {
    if !values.0.is_empty() {
        O::accept(if LEFT { other.0 } else { values.0 })?;
    }
    zip_loop_in_place(values, other, LEFT, O::COST, parallel, &Op(op))
}

fn zip_loop_in_place<T: Element>(
    (values, shape): (&mut [T], &Shape),
    (other, other_shape): Operand<'_, T>,
    left: bool,
    cost: usize,
    parallel: &dyn Parallel,
    rows: &dyn Loop<T, T>,
) -> Result<()> {
    let out_shape = shape.broadcast(other_shape, ("x", "y"))?;
    crate::base::adapt::check_count("values", shape.elements(), out_shape.elements())?;
    check_len("values", values.len(), shape)?;
    check_len("other", other.len(), other_shape)?;
    let shapes = if left {
        [shape, other_shape]
    } else {
        [other_shape, shape]
    };
    let plan = Plan::new(shapes, &out_shape);
    let row = plan.row().max(1);
    // A block is whole rows or a part of one; its old values are kept while it is written.
    let step = if row < BLOCK { BLOCK / row * row } else { row };
    let chunk = chunk_of(&plan, parallel, values.len(), cost);
    for_each_chunk(parallel, values, chunk, &|start, values| {
        let mut kept = [T::default(); BLOCK];
        let mut at = start;
        for part in values.chunks_mut(step) {
            for out in part.chunks_mut(BLOCK.min(step)) {
                let (start, kept) = (at, &mut kept[..out.len()]);
                kept.copy_from_slice(out);
                at += out.len();
                let (operands, bases): ([&[T]; 2], _) = if left {
                    ([kept, other], [start, 0])
                } else {
                    ([other, kept], [0, start])
                };
                rows.run(Part {
                    plan: &plan,
                    operands,
                    bases,
                    start,
                    out,
                    far: false,
                });
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests;
