//! The one loop of all element-wise operations of one argument.

use crate::adapt::{Element, check_count};
use crate::body::dispatch_simd;
use crate::chunks::{chunk_len, for_each_chunk};
use crate::def::{Call, Inputs, OutputSink};
use crate::error::Result;
use crate::parallel::Parallel;
use crate::simd::stream::{self, Fence};
use crate::simd::{Body, Portable, Simd};

/// An operation on one element of type `T`.
pub trait Map<T>: Copy + Sync {
    /// Type of the result.
    type Out: Element;

    /// Work per element in units of one addition, to decide about threads.
    const COST: usize = 1;

    /// The result for one element.
    fn apply(self, x: T) -> Self::Out;
}

struct Copied<'a, O, T, U> {
    op: O,
    x: &'a [T],
    out: &'a mut [U],
    /// Past the caches.
    far: bool,
}

impl<O: Map<T>, T: Element> Body for Copied<'_, O, T, O::Out> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { op, x, out, far } = self;
        let fence = Fence::new(s, far && const { waits_for_memory::<T>(O::COST) });
        stream::map(x, out, fence.as_ref(), |x| op.apply(x));
    }
}

/// Runs a loop over elements of type `T`: with the level in use, or the portable one for rare types.
#[inline]
pub(crate) fn dispatch_for<T: Element, B: Body<Out = ()>>(body: B) {
    if T::LEVELS {
        dispatch_simd(body);
    } else {
        body.run(Portable);
    }
}

/// Whether a loop of this cost per element is about as fast as memory, so that it is of use to write
/// past the caches. Rare element types do without: it is a second loop.
pub(crate) const fn waits_for_memory<T: Element>(cost: usize) -> bool {
    T::LEVELS && cost <= 8
}

/// The loop of one operation, past the caches or not. What surrounds it is compiled once per
/// element type and not per operation.
type Loop<'a, T, U> = dyn Fn(&[T], &mut [U], bool) + Sync + 'a;

/// The loop of `op`: arguments, results, and whether those go past the caches.
fn loop_of<O: Map<T>, T: Element>(op: O) -> impl Fn(&[T], &mut [O::Out], bool) + Sync {
    move |x, out, far| dispatch_for::<T, _>(Copied { op, x, out, far })
}

/// `out[i] = op(x[i])` of as many elements as both have, on this thread.
pub(crate) fn map_here<O: Map<T>, T: Element>(op: O, x: &[T], out: &mut [O::Out]) {
    loop_of(op)(x, out, false);
}

/// `out[i] = op(x[i])`.
///
/// # Errors
/// [`Error::Length`](crate::error::Error::Length) unless `out` is as long as `x`.
pub fn map<O: Map<T>, T: Element>(
    op: O,
    x: &[T],
    out: &mut [O::Out],
    parallel: &dyn Parallel,
) -> Result<()> {
    map_loop(x, out, O::COST, parallel, &loop_of(op))
}

fn map_loop<T: Element, U: Element>(
    x: &[T],
    out: &mut [U],
    cost: usize,
    parallel: &dyn Parallel,
    body: &Loop<'_, T, U>,
) -> Result<()> {
    check_count("out", out.len(), x.len())?;
    let chunk = chunk_len(parallel, out.len(), 16, cost);
    let far = stream::is_far::<U>(out.len());
    for_each_chunk(parallel, out, chunk, &|start, out| {
        body(x.get(start..).unwrap_or_default(), out, far);
    });
    Ok(())
}

/// Elements that are worked on at a time in place; their old values are kept meanwhile.
const BLOCK: usize = 256;
/// As [`BLOCK`], for tensors that have no more: clearing a large block would cost more than the work.
const SMALL: usize = 16;

/// `values[i] = op(values[i])`.
pub fn map_in_place<O: Map<T, Out = T>, T: Element>(
    op: O,
    values: &mut [T],
    parallel: &dyn Parallel,
) {
    map_loop_in_place(values, O::COST, parallel, &loop_of(op));
}

fn map_loop_in_place<T: Element>(
    values: &mut [T],
    cost: usize,
    parallel: &dyn Parallel,
    body: &Loop<'_, T, T>,
) {
    if values.len() <= SMALL {
        in_block(values, &mut [T::default(); SMALL], body);
    } else {
        map_chunks_in_place(values, cost, parallel, body);
    }
}

#[inline(never)]
fn map_chunks_in_place<T: Element>(
    values: &mut [T],
    cost: usize,
    parallel: &dyn Parallel,
    body: &Loop<'_, T, T>,
) {
    let chunk = chunk_len(parallel, values.len(), 16, cost);
    for_each_chunk(parallel, values, chunk, &|_, values| {
        let mut kept = [T::default(); BLOCK];
        for out in values.chunks_mut(BLOCK) {
            in_block(out, &mut kept, body);
        }
    });
}

/// `kept` is at least as long as `out`.
#[inline(always)]
fn in_block<T: Element>(out: &mut [T], kept: &mut [T], body: &Loop<'_, T, T>) {
    let x = &mut kept[..out.len()];
    x.copy_from_slice(out);
    body(x, out, false);
}

/// One output of the first input's type and shape.
pub(crate) fn outputs_like_first(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let x = inputs.get(0, "x")?;
    sink(x.dtype(), *x.shape())
}

/// One bool output of the first input's shape.
pub(crate) fn outputs_bool(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    sink(crate::dtype::DType::Bool, inputs.shape(0, "x")?)
}

/// Runs `op` on the first input, in place if its buffer was forwarded.
pub(crate) fn run_map<O: Map<T, Out = T>, T: Element>(op: O, call: &mut Call<'_>) -> Result<()> {
    run_loop(call, O::COST, &loop_of(op))
}

fn run_loop<T: Element>(call: &mut Call<'_>, cost: usize, body: &Loop<'_, T, T>) -> Result<()> {
    let x = call.inputs.get(0, "x")?;
    let parallel = call.parallel;
    let out = T::view_mut(call.output(0)?, "y")?;
    if x.is_forwarded() {
        map_loop_in_place(out, cost, parallel, body);
        Ok(())
    } else {
        map_loop(T::view(&x, "x")?, out, cost, parallel, body)
    }
}

/// Runs `op`, whose result has another type, on the first input.
pub(crate) fn run_map_to<O: Map<T>, T: Element>(op: O, call: &mut Call<'_>) -> Result<()> {
    run_loop_to(call, O::COST, &loop_of(op))
}

fn run_loop_to<T: Element, U: Element>(
    call: &mut Call<'_>,
    cost: usize,
    body: &Loop<'_, T, U>,
) -> Result<()> {
    let x = call.inputs.get(0, "x")?;
    let parallel = call.parallel;
    let out = U::view_mut(call.output(0)?, "y")?;
    map_loop(T::view(&x, "x")?, out, cost, parallel, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::forced::same_bits;
    use crate::testing::{Interleaved, numbers};
    use crate::unary::{Erf, Exp, Log, Relu, Sigmoid, Tanh};

    fn check<O: Map<f32, Out = f32>>(op: O) {
        for len in [0, 1, 15, 16, 17, 100, 70_000] {
            let x: Vec<f32> = numbers(len, 3).iter().map(|x| x * 9.0).collect();
            let out = same_bits(|| {
                let mut out = vec![0.0; len];
                map(op, &x, &mut out, &Interleaved).unwrap();
                out
            });
            let in_place = same_bits(|| {
                let mut values = x.clone();
                map_in_place(op, &mut values, &Interleaved);
                values
            });
            for ((&x, out), in_place) in x.iter().zip(out).zip(in_place) {
                let expected = op.apply(x).to_bits();
                assert_eq!((out.to_bits(), in_place.to_bits()), (expected, expected));
            }
        }
    }

    #[test]
    fn all_bodies_give_the_bits_of_one_element() {
        check(Relu);
        check(Exp);
        check(Log);
        check(Tanh);
        check(Sigmoid);
        check(Erf);
    }

    #[test]
    fn a_short_output_is_refused() {
        let result = map(Relu, &[1.0_f32, 2.0], &mut [0.0], &Interleaved);
        assert!(matches!(
            result,
            Err(crate::error::Error::Length {
                found: 1,
                expected: 2,
                ..
            })
        ));
    }
}
