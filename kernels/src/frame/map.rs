//! The one loop of all element-wise operations of one argument.

use crate::base::adapt::{Element, check_count};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, Inputs, OutputSink};
use crate::base::error::Result;
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::simd::body::dispatch_simd;
use crate::simd::stream::{self, Each, Fence};
use crate::simd::{Body, One, Portable, Simd};

/// An operation on one element of type `T`.
pub trait Map<T>: Copy + Sync {
    /// Type of the result.
    type Out: Element;

    /// Work per element in units of one addition, to decide about threads.
    const COST: usize = 1;

    /// The result for one element.
    fn apply(self, x: T) -> Self::Out;

    /// `out[i] = op(x[i])` of as many elements as both have, with the instructions of `s`. The bits
    /// of a result depend on its argument and on `S`, but not on the place. Must be
    /// `#[inline(always)]`.
    #[inline(always)]
    fn each<S: Simd>(self, s: S, x: &[T], out: &mut [Self::Out])
    where
        T: Copy,
    {
        let _ = s;
        for (out, &x) in out.iter_mut().zip(x) {
            *out = self.apply(x);
        }
    }
}

/// A function of an `f32` that is written in vectors. [`map_in_vectors`] makes a [`Map`] of it.
pub(crate) trait Function: Copy + Sync {
    /// Its values, lane by lane. Must be `#[inline(always)]`.
    fn of<S: Simd>(self, s: S, x: S::F) -> S::F;

    /// The value of one element.
    #[inline(always)]
    fn of_one(self, x: f32) -> f32 {
        self.of(One, x)
    }

    /// [`Map::each`]
    #[inline(always)]
    fn of_each<S: Simd>(self, s: S, x: &[f32], out: &mut [f32]) {
        // The compiler knows best which vectors the target has.
        if const { matches!(S::LEVEL, Level::Portable) } {
            for (out, &x) in out.iter_mut().zip(x) {
                *out = self.of_one(x);
            }
            return;
        }
        let count = x.len().min(out.len());
        let mut from = x[..count].chunks_exact(S::LANES);
        let mut to = out[..count].chunks_exact_mut(S::LANES);
        for (x, out) in (&mut from).zip(&mut to) {
            s.store(out, self.of(s, s.load(x)));
        }
        let (x, out) = (from.remainder(), to.into_remainder());
        if !out.is_empty() {
            s.store_partial(out, self.of(s, s.load_partial(x)));
        }
    }
}

/// Makes a [`Map`] of each [`Function`], with its cost.
macro_rules! map_in_vectors {
    ($($op:ty, $cost:expr;)*) => {$(
        impl $crate::frame::map::Map<f32> for $op {
            type Out = f32;

            const COST: usize = $cost;

            #[inline(always)]
            fn apply(self, x: f32) -> f32 {
                $crate::frame::map::Function::of_one(self, x)
            }

            #[inline(always)]
            fn each<S: $crate::simd::Simd>(self, s: S, x: &[f32], out: &mut [f32]) {
                $crate::frame::map::Function::of_each(self, s, x, out);
            }
        }
    )*};
}
pub(crate) use map_in_vectors;

/// An operation as what a loop is made of.
struct Op<O>(O);

impl<O: Map<T>, T: Copy> Each<T, O::Out> for Op<O> {
    #[inline(always)]
    fn each<S: Simd>(&self, s: S, x: &[T], out: &mut [O::Out]) {
        self.0.each(s, x, out);
    }
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
        stream::map(s, x, out, fence.as_ref(), Op(op));
    }
}

/// Runs a loop over elements of type `T`: with the level in use, or the portable one for rare
/// types.
#[inline]
pub(crate) fn dispatch_for<T: Element, B: Body<Out = ()>>(body: B) {
    if T::LEVELS {
        dispatch_simd(body);
    } else {
        body.run(Portable);
    }
}

/// Whether a loop of this cost per element is about as fast as memory, so that it is of use to
/// write past the caches. Rare element types do without: it is a second loop.
pub(crate) const fn waits_for_memory<T: Element>(cost: usize) -> bool {
    T::LEVELS && cost <= 8
}

/// The loop of one operation. What surrounds it is compiled once per element type and not per
/// operation.
// A table of `dyn Fn` has two entries more, one of which is a function of its own.
trait Loop<T, U>: Sync {
    /// Arguments, results, and whether those go past the caches.
    fn run(&self, x: &[T], out: &mut [U], far: bool);
}

impl<O: Map<T>, T: Element> Loop<T, O::Out> for Op<O> {
    fn run(&self, x: &[T], out: &mut [O::Out], far: bool) {
        let op = self.0;
        dispatch_for::<T, _>(Copied { op, x, out, far });
    }
}

/// `out[i] = op(x[i])` of as many elements as both have, on this thread.
pub(crate) fn map_here<O: Map<T>, T: Element>(op: O, x: &[T], out: &mut [O::Out]) {
    Op(op).run(x, out, false);
}

/// `out[i] = op(x[i])`.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
pub fn map<O: Map<T>, T: Element>(
    op: O,
    x: &[T],
    out: &mut [O::Out],
    parallel: &dyn Parallel,
) -> Result<()> {
    map_loop(x, out, O::COST, parallel, &Op(op))
}

fn map_loop<T: Element, U: Element>(
    x: &[T],
    out: &mut [U],
    cost: usize,
    parallel: &dyn Parallel,
    body: &dyn Loop<T, U>,
) -> Result<()> {
    check_count("out", out.len(), x.len())?;
    let chunk = chunk_len(parallel, out.len(), 16, cost);
    let far = stream::is_far::<U>(out.len());
    for_each_chunk(parallel, out, chunk, &|start, out| {
        body.run(x.get(start..).unwrap_or_default(), out, far);
    });
    Ok(())
}

/// Elements that are worked on at a time in place; their old values are kept meanwhile.
const BLOCK: usize = 256;
/// As [`BLOCK`], for tensors that have no more: clearing a large block would cost more than the
/// work.
const SMALL: usize = 16;

/// `values[i] = op(values[i])`.
pub fn map_in_place<O: Map<T, Out = T>, T: Element>(
    op: O,
    values: &mut [T],
    parallel: &dyn Parallel,
) {
    map_loop_in_place(values, O::COST, parallel, &Op(op));
}

fn map_loop_in_place<T: Element>(
    values: &mut [T],
    cost: usize,
    parallel: &dyn Parallel,
    body: &dyn Loop<T, T>,
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
    body: &dyn Loop<T, T>,
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
fn in_block<T: Element>(out: &mut [T], kept: &mut [T], body: &dyn Loop<T, T>) {
    let x = &mut kept[..out.len()];
    x.copy_from_slice(out);
    body.run(x, out, false);
}

/// One output of the first input's type and shape.
pub(crate) fn outputs_like_first(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let x = inputs.get(0, "x")?;
    sink(x.dtype(), *x.shape())
}

/// One bool output of the first input's shape.
pub(crate) fn outputs_bool(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    sink(crate::base::dtype::DType::Bool, inputs.shape(0, "x")?)
}

/// Runs `op` on the first input, in place if its buffer was forwarded.
pub(crate) fn run_map<O: Map<T, Out = T>, T: Element>(op: O, call: &mut Call<'_>) -> Result<()> {
    run_loop(call, O::COST, &Op(op))
}

fn run_loop<T: Element>(call: &mut Call<'_>, cost: usize, body: &dyn Loop<T, T>) -> Result<()> {
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
    run_loop_to(call, O::COST, &Op(op))
}

fn run_loop_to<T: Element, U: Element>(
    call: &mut Call<'_>,
    cost: usize,
    body: &dyn Loop<T, U>,
) -> Result<()> {
    let x = call.inputs.get(0, "x")?;
    let parallel = call.parallel;
    let out = U::view_mut(call.output(0)?, "y")?;
    map_loop(T::view(&x, "x")?, out, cost, parallel, body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::elementwise::unary::{Erf, Exp, Log, Relu, Sigmoid, Tanh};
    use crate::simd::body::forced::each_level;
    use crate::testing::{Interleaved, numbers};

    fn check<O: Map<f32, Out = f32>>(op: O) {
        for len in [0, 1, 15, 16, 17, 100, 70_000] {
            let x: Vec<f32> = numbers(len, 3).iter().map(|x| x * 9.0).collect();
            let outs = each_level(|| {
                let mut out = vec![0.0; len];
                map(op, &x, &mut out, &Interleaved).unwrap();
                out
            });
            let in_places = each_level(|| {
                let mut values = x.clone();
                map_in_place(op, &mut values, &Interleaved);
                values
            });
            let ones = each_level(|| {
                let one = |x: &f32| {
                    let mut out = 0.0;
                    map_here(
                        op,
                        core::slice::from_ref(x),
                        core::slice::from_mut(&mut out),
                    );
                    out
                };
                x.iter().map(one).collect()
            });
            for level in 0..3 {
                for ((out, in_place), one) in
                    outs[level].iter().zip(&in_places[level]).zip(&ones[level])
                {
                    let expected = (one.to_bits(), one.to_bits());
                    assert_eq!((out.to_bits(), in_place.to_bits()), expected);
                }
            }
            // The portable body is the function of one element.
            for (&x, out) in x.iter().zip(&outs[0]) {
                assert_eq!(op.apply(x).to_bits(), out.to_bits());
            }
        }
    }

    #[test]
    fn every_element_has_the_bits_of_one_alone() {
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
            Err(crate::base::error::Error::Length {
                found: 1,
                expected: 2,
                ..
            })
        ));
    }
}
