//! Batch normalisation over all axes but the channels, and its gradient: `FusedBatchNorm*` and
//! `FusedBatchNormGrad*` of TensorFlow.
//!
//! Sums run in `f64`, channel by channel, in an order that does not depend on the threads.

// Indices keep several slices of one length in step.
#![allow(clippy::needless_range_loop)]

use crate::adapt::check_shape;
use crate::bias_add::Channels;
use crate::blocks::for_each_pair;
use crate::body::{Body, dispatch};
use crate::chunks::{chunk_len, for_each_chunk};
use crate::conv::attributes::Format;
use crate::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, Variant};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::math;
use crate::parallel::Parallel;
use crate::scratch::f64s;
use crate::shape::Shape;

const ATTRS: &[(&str, AttrKind)] = &[
    ("epsilon", AttrKind::Float),
    ("exponential_avg_factor", AttrKind::Float),
    ("data_format", AttrKind::String),
    ("is_training", AttrKind::Bool),
];

const GRADIENT_ATTRS: &[(&str, AttrKind)] = &[
    ("epsilon", AttrKind::Float),
    ("data_format", AttrKind::String),
    ("is_training", AttrKind::Bool),
];

/// The types of the first version, which has one attribute.
const FIRST: &[Variant] = &[Variant {
    types: &[("T", DType::F32)],
    host: &[],
}];

/// The types of the later versions, whose statistics have an attribute of their own.
const LATER: &[Variant] = &[Variant {
    types: &[("T", DType::F32), ("U", DType::F32)],
    host: &[],
}];

macro_rules! definitions {
    ($($(#[$doc:meta])* $name:ident $op:literal $variants:ident $attrs:ident $x:literal
        $outputs:expr, $run:ident;)*) => {$(
        $(#[$doc])*
        pub static $name: KernelDef = KernelDef {
            op: $op,
            variants: $variants,
            attrs: $attrs,
            forward: &[],
            outputs: $outputs,
            scratch: |inputs| scratch(inputs, $x),
            run: $run,
        };
    )*};
}

definitions! {
    /// `FusedBatchNorm` of TensorFlow.
    FUSED_BATCH_NORM "FusedBatchNorm" FIRST ATTRS 0 |i, sink| outputs(i, sink, 4), run;
    /// `FusedBatchNormV2` of TensorFlow.
    FUSED_BATCH_NORM_V2 "FusedBatchNormV2" LATER ATTRS 0 |i, sink| outputs(i, sink, 4), run;
    /// `FusedBatchNormV3` of TensorFlow; its last output means nothing.
    FUSED_BATCH_NORM_V3 "FusedBatchNormV3" LATER ATTRS 0 |i, sink| {
        outputs(i, sink, 4)?;
        sink(DType::F32, Shape::SCALAR)
    }, run;
    /// `FusedBatchNormGrad` of TensorFlow.
    FUSED_BATCH_NORM_GRAD "FusedBatchNormGrad" FIRST GRADIENT_ATTRS 1 gradient_outputs,
        run_gradient;
    /// `FusedBatchNormGradV2` of TensorFlow.
    FUSED_BATCH_NORM_GRAD_V2 "FusedBatchNormGradV2" LATER GRADIENT_ATTRS 1 gradient_outputs,
        run_gradient;
    /// `FusedBatchNormGradV3` of TensorFlow.
    FUSED_BATCH_NORM_GRAD_V3 "FusedBatchNormGradV3" LATER GRADIENT_ATTRS 1 gradient_outputs,
        run_gradient;
}

/// The channels of input number `index`.
fn channels(inputs: &Inputs<'_>, index: usize, argument: &'static str) -> Result<Channels> {
    let format = match inputs.attrs.string("data_format")? {
        "NHWC" | "NDHWC" => Format::Nhwc,
        "NCHW" | "NCDHW" => Format::Nchw,
        _ => {
            return Err(Error::Value {
                argument: "data_format",
                expected: "NHWC, NCHW, NDHWC or NCDHW",
            });
        }
    };
    Channels::new(argument, &inputs.shape(index, argument)?, format)
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>, statistics: usize) -> Result<()> {
    let channels = channels(inputs, 0, "x")?.channels;
    let vector = Shape::new(&[channels])?;
    for (index, argument) in [(1, "scale"), (2, "offset")] {
        check_shape(argument, &inputs.shape(index, argument)?, &vector)?;
    }
    let given = !inputs.attrs.boolean("is_training")?
        || inputs.attrs.float("exponential_avg_factor")? != 1.0;
    for (index, argument) in [(3, "mean"), (4, "variance")] {
        if given {
            check_shape(argument, &inputs.shape(index, argument)?, &vector)?;
        }
    }
    sink(DType::F32, inputs.shape(0, "x")?)?;
    for _ in 0..statistics {
        sink(DType::F32, vector)?;
    }
    Ok(())
}

fn gradient_outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let shape = inputs.shape(1, "x")?;
    check_shape("y_backprop", &inputs.shape(0, "y_backprop")?, &shape)?;
    let vector = Shape::new(&[channels(inputs, 1, "x")?.channels])?;
    for (index, argument) in [(2, "scale"), (3, "reserve_space_1"), (4, "reserve_space_2")] {
        check_shape(argument, &inputs.shape(index, argument)?, &vector)?;
    }
    sink(DType::F32, shape)?;
    sink(DType::F32, vector)?;
    sink(DType::F32, vector)?;
    let empty = Shape::new(&[0])?;
    sink(DType::F32, empty)?;
    sink(DType::F32, empty)
}

/// Channels whose sums run side by side.
const LANES: usize = 16;
/// Work per element of the sums in units of one addition.
const SUM_COST: usize = 2;

/// Sums over the elements of each channel: `terms` gives two numbers for the elements of the inputs
/// at a place and the center of their channel. Two numbers per channel come out. The order is that
/// of the elements, whatever the threads.
struct Sums<'a, F, const K: usize> {
    sizes: &'a Channels,
    first: usize,
    inputs: [&'a [f32]; K],
    centers: &'a [f64],
    terms: F,
    out: [&'a mut [f64]; 2],
}

impl<F: Fn([f64; K], f64) -> [f64; 2], const K: usize> Body for Sums<'_, F, K> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Channels {
            outer,
            channels,
            inner,
        } = *self.sizes;
        let [firsts, seconds] = self.out;
        let blocks = firsts.chunks_mut(LANES).zip(seconds.chunks_mut(LANES));
        for (block, (firsts, seconds)) in blocks.enumerate() {
            let (first, count) = (self.first + block * LANES, firsts.len());
            let mut centers = [0.0; LANES];
            centers[..count].copy_from_slice(&self.centers[first..][..count]);
            let (mut a, mut b) = ([0.0; LANES], [0.0; LANES]);
            for outer in 0..outer {
                let base = (outer * channels + first) * inner;
                let from = self.inputs.map(|x| &x[base..][..count * inner]);
                if let (1, Some(from)) = (inner, whole(from)) {
                    for lane in 0..LANES {
                        let x = core::array::from_fn(|k| f64::from(from[k][lane]));
                        let terms = (self.terms)(x, centers[lane]);
                        a[lane] += terms[0];
                        b[lane] += terms[1];
                    }
                } else {
                    for lane in 0..count {
                        for i in lane * inner..(lane + 1) * inner {
                            let x = core::array::from_fn(|k| f64::from(from[k][i]));
                            let terms = (self.terms)(x, centers[lane]);
                            a[lane] += terms[0];
                            b[lane] += terms[1];
                        }
                    }
                }
            }
            firsts.copy_from_slice(&a[..count]);
            seconds.copy_from_slice(&b[..count]);
        }
    }
}

/// Slices of as many elements as there are lanes.
#[inline(always)]
fn whole<const K: usize>(from: [&[f32]; K]) -> Option<[&[f32; LANES]; K]> {
    let mut lanes = [&[0.0; LANES]; K];
    for (lanes, from) in lanes.iter_mut().zip(from) {
        *lanes = from.try_into().ok()?;
    }
    Some(lanes)
}

/// Fills the two lists of `out` as [`Sums`] says.
fn sum<F: Fn([f64; K], f64) -> [f64; 2] + Copy + Sync, const K: usize>(
    sizes: &Channels,
    (inputs, centers): ([&[f32]; K], &[f64]),
    [firsts, seconds]: [&mut [f64]; 2],
    parallel: &dyn Parallel,
    terms: F,
) {
    let cost = SUM_COST * sizes.outer.saturating_mul(sizes.inner);
    let chunk = chunk_len(parallel, firsts.len(), LANES, cost);
    let lists = ((firsts, chunk), (seconds, chunk));
    for_each_pair(parallel, lists.0, lists.1, |index, firsts, seconds| {
        dispatch(Sums {
            sizes,
            first: index * chunk,
            inputs,
            centers,
            terms,
            out: [firsts, seconds],
        });
    });
}

/// A part of the elements: `value` gives that of the elements of the inputs at a place and the
/// numbers of their channel.
struct Apply<'a, F, const K: usize, const N: usize> {
    sizes: &'a Channels,
    start: usize,
    inputs: [&'a [f32]; K],
    numbers: [&'a [f64]; N],
    value: F,
    out: &'a mut [f32],
}

impl<F, const K: usize, const N: usize> Body for Apply<'_, F, K, N>
where
    F: Fn([f64; K], [f64; N]) -> f64,
{
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Channels {
            channels, inner, ..
        } = *self.sizes;
        let run = if inner == 1 { channels } else { inner };
        let first = self.start / run;
        for (row, out) in self.out.chunks_mut(run).enumerate() {
            let len = out.len();
            let from = self.inputs.map(|x| &x[self.start + row * run..][..len]);
            if inner == 1 {
                let numbers = self.numbers.map(|numbers| &numbers[..len]);
                for i in 0..len {
                    let x = core::array::from_fn(|k| f64::from(from[k][i]));
                    out[i] = (self.value)(x, core::array::from_fn(|n| numbers[n][i])) as f32;
                }
            } else {
                let numbers = self
                    .numbers
                    .map(|numbers| numbers[(first + row) % channels]);
                for i in 0..len {
                    let x = core::array::from_fn(|k| f64::from(from[k][i]));
                    out[i] = (self.value)(x, numbers) as f32;
                }
            }
        }
    }
}

/// Computes every element of `out`.
fn apply<F, const K: usize, const N: usize>(
    sizes: &Channels,
    (inputs, numbers): ([&[f32]; K], [&[f64]; N]),
    out: &mut [f32],
    parallel: &dyn Parallel,
    value: F,
) where
    F: Fn([f64; K], [f64; N]) -> f64 + Copy + Sync,
{
    let unit = if sizes.inner == 1 {
        sizes.channels
    } else {
        sizes.inner
    };
    let chunk = chunk_len(parallel, out.len(), unit, 2);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        dispatch(Apply {
            sizes,
            start,
            inputs,
            numbers,
            value,
            out,
        });
    });
}

/// Numbers per channel: two sums and three more.
const NUMBERS: usize = 5;

fn scratch(inputs: &Inputs<'_>, index: usize) -> Result<usize> {
    let channels = channels(inputs, index, "x")?.channels;
    channels
        .checked_mul(NUMBERS * size_of::<f64>())
        .ok_or(Error::Overflow {
            argument: "scratch",
        })
}

/// The scratch memory as lists of a number per channel.
fn lists(scratch: &mut [u8], channels: usize) -> Result<[&mut [f64]; NUMBERS]> {
    let numbers = f64s(scratch);
    let (found, expected) = (numbers.len(), NUMBERS * channels);
    let mut rest = numbers.get_mut(..expected).ok_or(Error::Length {
        argument: "scratch",
        found,
        expected,
    })?;
    Ok(core::array::from_fn(|_| {
        let list;
        (list, rest) = core::mem::take(&mut rest).split_at_mut(channels);
        list
    }))
}

/// The square of a channel's distance from its center, in variances, from which on rounding would
/// be seen in the variance.
const FAR: f64 = 1e4;

/// Mean and variance of each channel into `means` and `variances`, of `count` elements.
fn moments(
    sizes: &Channels,
    x: &[f32],
    [firsts, seconds]: [&mut [f64]; 2],
    [centers, means, variances]: [&mut [f64]; 3],
    parallel: &dyn Parallel,
) {
    let count = (sizes.outer * sizes.inner) as f64;
    for (channel, center) in centers.iter_mut().enumerate() {
        *center = f64::from(x[channel * sizes.inner]);
    }
    // Around an element of the channel first, which is mostly near enough, then around the mean.
    for _ in 0..2 {
        let sums = [&mut *firsts, &mut *seconds];
        sum(sizes, ([x], &*centers), sums, parallel, |[x], center| {
            let gap = x - center;
            [gap, gap * gap]
        });
        let mut far = false;
        for (channel, (gaps, squares)) in firsts.iter().zip(&*seconds).enumerate() {
            let gap = gaps / count;
            means[channel] = centers[channel] + gap;
            variances[channel] = (squares / count - gap * gap).max(0.0);
            far |= gap * gap > FAR * variances[channel];
        }
        if !far {
            return;
        }
        centers.copy_from_slice(means);
    }
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let sizes = channels(&call.inputs, 0, "x")?;
    let attrs = call.inputs.attrs;
    let training = attrs.boolean("is_training")?;
    let epsilon = f64::from(attrs.float("epsilon")?);
    let new = f64::from(attrs.float("exponential_avg_factor")?);
    let [x, scale, offset, mean, variance] =
        f32s(&call.inputs, ["x", "scale", "offset", "mean", "variance"])?;
    let (parallel, outputs) = (call.parallel, &mut *call.outputs);
    let [firsts, seconds, factors, shifts, variances] = lists(call.scratch, sizes.channels)?;
    let count = sizes.outer * sizes.inner;
    if training && count > 0 {
        let lists = [&mut *factors, &mut *shifts, &mut *variances];
        moments(&sizes, x, [firsts, seconds], lists, parallel);
    }
    // The batch's statistics by channel: for the caller, and for the gradient.
    for channel in 0..sizes.channels {
        let (center, spread, kept) = if training && count > 0 {
            let (center, spread) = (shifts[channel], variances[channel]);
            // The unbiased estimate; of one element there is none.
            let unbiased = spread * count as f64 / count.saturating_sub(1).max(1) as f64;
            let old = |values: &[f32]| values.get(channel).copied().map_or(0.0, f64::from);
            let blend = |batch: f64, old: f64| {
                if new == 1.0 {
                    batch
                } else {
                    old * (1.0 - new) + batch * new
                }
            };
            let kept = (blend(center, old(mean)), blend(unbiased, old(variance)));
            (center, spread, kept)
        } else if training {
            (0.0, 0.0, (f64::NAN, f64::NAN))
        } else {
            let (center, spread) = (f64::from(mean[channel]), f64::from(variance[channel]));
            (center, spread, (center, spread))
        };
        let factor = f64::from(scale[channel]) / math::sqrt(spread + epsilon);
        let shift = f64::from(offset[channel]) - center * factor;
        (factors[channel], shifts[channel]) = (factor, shift);
        let values = [kept.0, kept.1, center, spread];
        for (index, value) in (1..).zip(values) {
            output(outputs, index)?[channel] = value as f32;
        }
    }
    let numbers = [&*factors, &*shifts];
    let out = output(outputs, 0)?;
    apply(
        &sizes,
        ([x], numbers),
        out,
        parallel,
        |[x], [factor, shift]| x * factor + shift,
    );
    if outputs.len() > 5 {
        output(outputs, 5)?.fill(0.0);
    }
    Ok(())
}

fn run_gradient(call: &mut Call<'_>) -> Result<()> {
    let sizes = channels(&call.inputs, 1, "x")?;
    let attrs = call.inputs.attrs;
    let training = attrs.boolean("is_training")?;
    let epsilon = f64::from(attrs.float("epsilon")?);
    let [gradient, x, scale, mean, variance] = f32s(
        &call.inputs,
        [
            "y_backprop",
            "x",
            "scale",
            "reserve_space_1",
            "reserve_space_2",
        ],
    )?;
    let (parallel, outputs) = (call.parallel, &mut *call.outputs);
    let [firsts, seconds, centers, slopes, shifts] = lists(call.scratch, sizes.channels)?;
    for (center, &mean) in centers.iter_mut().zip(mean) {
        *center = f64::from(mean);
    }
    let inputs = [gradient, x];
    sum(
        &sizes,
        (inputs, &*centers),
        [&mut *firsts, &mut *seconds],
        parallel,
        |[gradient, x], center| [gradient, gradient * (x - center)],
    );
    let factors = centers;
    let count = (sizes.outer * sizes.inner) as f64;
    for channel in 0..sizes.channels {
        let (sum, product) = (firsts[channel], seconds[channel]);
        let squared = f64::from(variance[channel]) + epsilon;
        let root = 1.0 / math::sqrt(squared);
        let (level, slope) = if training {
            (sum / count, product / count / squared)
        } else {
            (0.0, 0.0)
        };
        let factor = f64::from(scale[channel]) * root;
        factors[channel] = factor;
        slopes[channel] = -factor * slope;
        shifts[channel] = factor * (f64::from(mean[channel]) * slope - level);
        output(outputs, 1)?[channel] = (product * root) as f32;
        output(outputs, 2)?[channel] = sum as f32;
    }
    let numbers = [&*factors, &*slopes, &*shifts];
    let out = output(outputs, 0)?;
    apply(
        &sizes,
        (inputs, numbers),
        out,
        parallel,
        |[gradient, x], [factor, slope, shift]| gradient * factor + (x * slope + shift),
    );
    Ok(())
}

/// The first five inputs.
fn f32s<'a>(inputs: &Inputs<'a>, names: [&'static str; 5]) -> Result<[&'a [f32]; 5]> {
    let mut found = [&[][..]; 5];
    for (index, (slot, name)) in found.iter_mut().zip(names).enumerate() {
        *slot = inputs.get(index, name)?.f32(name)?;
    }
    Ok(found)
}

fn output<'x>(outputs: &'x mut [crate::def::TensorMut<'_>], index: usize) -> Result<&'x mut [f32]> {
    let missing = Error::Value {
        argument: "output",
        expected: "an output tensor",
    };
    outputs.get_mut(index).ok_or(missing)?.f32_mut("output")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};

    #[test]
    fn sums_and_values_are_those_of_the_channel() {
        for (outer, channels, inner) in [(6, 2, 1), (2, 2, 3), (900, 40, 1), (3, 17, 50), (0, 3, 1)]
        {
            let sizes = Channels {
                outer,
                channels,
                inner,
            };
            let x = numbers(outer * channels * inner, 3);
            let own: Vec<f64> = (0..channels).map(|channel| channel as f64).collect();
            let [mut firsts, mut seconds] = [(); 2].map(|()| vec![f64::NAN; channels]);
            sum(
                &sizes,
                ([&x], &own),
                [&mut firsts, &mut seconds],
                &Interleaved,
                |[x], channel| [x, channel],
            );
            for (channel, found) in firsts.iter().zip(&seconds).enumerate() {
                let of = |i: &usize| i / inner % channels == channel;
                let own: Vec<usize> = (0..x.len()).filter(of).collect();
                let exact: f64 = own.iter().map(|&i| f64::from(x[i])).sum();
                assert_eq!(found, (&exact, &((channel * own.len()) as f64)));
            }
            let mut out = vec![f32::NAN; x.len()];
            let inputs = ([&x[..]], [&own[..]]);
            apply(&sizes, inputs, &mut out, &Interleaved, |[x], [channel]| {
                x + channel
            });
            for (i, &found) in out.iter().enumerate() {
                let channel = (i / inner % channels) as f64;
                assert_eq!(found, (f64::from(x[i]) + channel) as f32);
            }
        }
    }
    /// Whatever the first element of a channel is, and however far the mean is from 0.
    #[test]
    fn moments_are_those_of_two_passes() {
        for (outer, channels, inner) in [(1, 3, 1), (300, 19, 1), (70, 16, 1), (3, 5, 40)] {
            let sizes = Channels {
                outer,
                channels,
                inner,
            };
            let mut x = numbers(outer * channels * inner, 4);
            for (i, x) in x.iter_mut().enumerate() {
                match i / inner % channels {
                    1 => *x = 1000.0 + *x / 64.0,
                    2 if i < channels * inner => *x = 1e6,
                    _ => {}
                }
            }
            let [mut firsts, mut seconds] = [(); 2].map(|()| vec![f64::NAN; channels]);
            let mut lists = [(); 3].map(|()| vec![f64::NAN; channels]);
            let [a, b, c] = &mut lists;
            let sums = [&mut firsts[..], &mut seconds[..]];
            moments(&sizes, &x, sums, [a, b, c], &Interleaved);
            for channel in 0..channels {
                let of = |i: &usize| i / inner % channels == channel;
                let own = || (0..x.len()).filter(of).map(|i| f64::from(x[i]));
                let count = own().count() as f64;
                let mean = own().sum::<f64>() / count;
                let variance = own().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
                assert!((lists[1][channel] - mean).abs() <= 1e-12 * mean.abs() + 1e-12);
                assert!((lists[2][channel] - variance).abs() <= 1e-11 * variance);
            }
        }
    }
}
