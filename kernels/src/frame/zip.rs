//! The one loop of all element-wise operations of two arguments, with broadcasting.

use crate::base::adapt::{Element, check_len};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, Inputs, OutputSink};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::{MAX_RANK, Shape};
use crate::frame::map::{dispatch_for, waits_for_memory};
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
    /// [`Error::Value`] if the operation has no result for one.
    #[inline(always)]
    fn accept(_: &[T]) -> Result<()> {
        Ok(())
    }
}

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
    fn rows(&self) -> usize {
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
/// [`Error::Incompatible`] if they can't be,
/// [`Error::Length`] if a slice does not fit its shape,
/// [`Error::Value`] if the operation has no result for an element of
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

/// One output of the first input's type and the broadcast shape.
pub(crate) fn outputs_broadcast(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let x = inputs.get(0, "x")?;
    let shape = x.shape().broadcast(&inputs.shape(1, "y")?, ("x", "y"))?;
    sink(x.dtype(), shape)
}

/// One output of the type and shape that both inputs have.
pub(crate) fn outputs_of_one_shape(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (x, y) = (inputs.get(0, "x")?, inputs.shape(1, "y")?);
    check_same(x.shape() == &y, x.shape(), y)?;
    sink(x.dtype(), *x.shape())
}

/// One output like the first input. The second one has as many elements, in whatever shape.
pub(crate) fn outputs_of_one_count(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (x, y) = (inputs.get(0, "x")?, inputs.shape(1, "y")?);
    check_same(x.shape().elements() == y.elements(), x.shape(), y)?;
    sink(x.dtype(), *x.shape())
}

fn check_same(is_same: bool, expected: &Shape, found: Shape) -> Result<()> {
    if is_same {
        return Ok(());
    }
    Err(Error::Shape {
        argument: "y",
        found,
        expected: *expected,
    })
}

/// One bool output of the broadcast shape.
pub(crate) fn outputs_broadcast_bool(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let shape = inputs
        .shape(0, "x")?
        .broadcast(&inputs.shape(1, "y")?, ("x", "y"))?;
    sink(crate::base::dtype::DType::Bool, shape)
}

/// Runs `op` on two inputs, in place if the buffer of one was forwarded.
pub(crate) fn run_zip<O: Zip<T, Out = T>, T: Element>(op: O, call: &mut Call<'_>) -> Result<()> {
    run_loop(call, O::COST, &Op(op))
}

fn run_loop<T: Element>(call: &mut Call<'_>, cost: usize, rows: &dyn Loop<T, T>) -> Result<()> {
    let (a, b) = (call.inputs.get(0, "x")?, call.inputs.get(1, "y")?);
    let parallel = call.parallel;
    let output = call.output(0)?;
    let mut shapes = [*a.shape(), *b.shape(), *output.shape()];
    // Nothing is repeated then, and the shapes need not be the same.
    let count = shapes[2].elements();
    if shapes.iter().all(|shape| shape.elements() == count) {
        shapes = [Shape::new(&[count])?; 3];
    }
    let [a_shape, b_shape, shape] = &shapes;
    let out = T::view_mut(output, "z")?;
    if a.is_forwarded() || b.is_forwarded() {
        let left = a.is_forwarded();
        let other = if left {
            (T::view(&b, "y")?, b_shape)
        } else {
            (T::view(&a, "x")?, a_shape)
        };
        zip_loop_in_place((out, shape), other, left, cost, parallel, rows)
    } else {
        let a = (T::view(&a, "x")?, a_shape);
        let b = (T::view(&b, "y")?, b_shape);
        zip_loop(a, b, out, cost, parallel, rows)
    }
}

/// Runs `op`, whose result has another type, on two inputs.
pub(crate) fn run_zip_to<O: Zip<T>, T: Element>(op: O, call: &mut Call<'_>) -> Result<()> {
    run_loop_to(call, O::COST, &Op(op))
}

fn run_loop_to<T: Element, U: Element>(
    call: &mut Call<'_>,
    cost: usize,
    rows: &dyn Loop<T, U>,
) -> Result<()> {
    let (a, b) = (call.inputs.get(0, "x")?, call.inputs.get(1, "y")?);
    let parallel = call.parallel;
    let out = U::view_mut(call.output(0)?, "z")?;
    let a = (T::view(&a, "x")?, a.shape());
    let b = (T::view(&b, "y")?, b.shape());
    zip_loop(a, b, out, cost, parallel, rows)
}

/// Kernels of element-wise operations of two arguments whose result has the arguments' type: a type
/// that is a [`Zip`], a function on slices, a [`KernelDef`](crate::base::def::KernelDef) per row.
///
/// `forward` has the inputs whose memory the result may take, `outputs` the function that says which
/// shapes fit each other. A type after `in` has all arguments in
/// host memory if that is `host`; a function after `if` accepts or refuses the second argument.
macro_rules! zip_kernels {
    (
        forward $forward:expr;
        outputs $outputs:ident;
        $(
            $(#[$doc:meta])*
            $def:ident $op:ident $function:ident $cost:literal {
                $(
                    $type:ident $dtype:ident $(in $host:ident)? $(if $check:ident)?
                        => |$x:ident, $y:ident| $body:expr;
                )*
            }
        )*
    ) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        $(
            impl $crate::frame::zip::Zip<$type> for $op {
                type Out = $type;

                const COST: usize = $cost;

                #[inline(always)]
                fn apply(self, $x: $type, $y: $type) -> $type {
                    $body
                }
                $(
                    #[inline(always)]
                    fn accept(second: &[$type]) -> $crate::base::error::Result<()> {
                        $check(second)
                    }
                )?
            }
        )*

        $(#[$doc])*
        ///
        /// # Errors
        /// As [`zip`](crate::frame::zip::zip()).
        pub fn $function<T: $crate::base::adapt::Element>(
            x: (&[T], &$crate::base::shape::Shape),
            y: (&[T], &$crate::base::shape::Shape),
            out: &mut [T],
            parallel: &dyn $crate::base::parallel::Parallel,
        ) -> $crate::base::error::Result<()>
        where
            $op: $crate::frame::zip::Zip<T, Out = T>,
        {
            $crate::frame::zip::zip($op, x, y, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: $crate::base::def::KernelDef = $crate::base::def::KernelDef {
            variants: $crate::base::adapt::variants!($(
                ["T": $dtype] host $crate::frame::zip::zip_kernels!(@arguments $($host)?);
            )*),
            forward: $forward,
            outputs: $crate::frame::zip::$outputs,
            run: |call| match call.inputs.get(0, "x")?.dtype() {
                $($crate::base::dtype::DType::$dtype => {
                    $($check(<$type as $crate::base::adapt::Element>::view(
                        &call.inputs.get(1, "y")?,
                        "y",
                    )?)?;)?
                    $crate::frame::zip::run_zip::<$op, $type>($op, call)
                })*
                found => Err($crate::base::adapt::unserved("x", found)),
            },
            ..$crate::base::def::KernelDef::of(stringify!($op))
        };
    )*};
    (@arguments) => {
        &[]
    };
    (@arguments host) => {
        &["x", "y", "z"]
    };
}
pub(crate) use zip_kernels;

#[cfg(test)]
mod tests;
