//! Batch normalisation over all axes but the channels, and its gradient: `FusedBatchNorm*` and
//! `FusedBatchNormGrad*` of TensorFlow.
//!
//! Sums run in `f64`, channel by channel, in an order that does not depend on the threads.

use crate::adapt::check_shape;
use crate::bias_add::Channels;
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

/// Sums over the elements of each channel: `terms` gives the two numbers of an element of a
/// channel. Two numbers per channel come out. The order is that of the elements, whatever the
/// threads.
struct Sums<'a, F> {
    sizes: &'a Channels,
    first: usize,
    terms: F,
    out: &'a mut [[f64; 2]],
}

impl<F: Fn(usize, usize) -> [f64; 2]> Body for Sums<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Channels {
            outer,
            channels,
            inner,
        } = *self.sizes;
        for (block, out) in self.out.chunks_mut(LANES).enumerate() {
            let first = self.first + block * LANES;
            let mut sums = [[0.0; 2]; LANES];
            for outer in 0..outer {
                let base = (outer * channels + first) * inner;
                if inner == 1 && out.len() == LANES {
                    for (lane, sums) in sums.iter_mut().enumerate() {
                        let [a, b] = (self.terms)(base + lane, first + lane);
                        *sums = [sums[0] + a, sums[1] + b];
                    }
                } else {
                    for (lane, sums) in sums.iter_mut().enumerate().take(out.len()) {
                        for i in 0..inner {
                            let [a, b] = (self.terms)(base + lane * inner + i, first + lane);
                            *sums = [sums[0] + a, sums[1] + b];
                        }
                    }
                }
            }
            out.copy_from_slice(&sums[..out.len()]);
        }
    }
}

/// Fills `out`, two numbers per channel, as [`Sums`] says.
fn sum<F: Fn(usize, usize) -> [f64; 2] + Copy + Sync>(
    sizes: &Channels,
    out: &mut [[f64; 2]],
    parallel: &dyn Parallel,
    terms: F,
) {
    let cost = SUM_COST * sizes.outer.saturating_mul(sizes.inner);
    let chunk = chunk_len(parallel, out.len(), LANES, cost);
    for_each_chunk(parallel, out, chunk, &|first, out| {
        dispatch(Sums {
            sizes,
            first,
            terms,
            out,
        });
    });
}

/// A part of the elements: `value` gives that of an element of a channel.
struct Apply<'a, F> {
    sizes: &'a Channels,
    start: usize,
    value: F,
    out: &'a mut [f32],
}

impl<F: Fn(usize, usize) -> f64> Body for Apply<'_, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Channels {
            channels, inner, ..
        } = *self.sizes;
        if inner == 1 {
            for (row, out) in self.out.chunks_mut(channels).enumerate() {
                let base = self.start + row * channels;
                for (channel, out) in out.iter_mut().enumerate() {
                    *out = (self.value)(base + channel, channel) as f32;
                }
            }
        } else {
            let first = self.start / inner;
            for (run, out) in self.out.chunks_mut(inner).enumerate() {
                let (base, channel) = ((first + run) * inner, (first + run) % channels);
                for (i, out) in out.iter_mut().enumerate() {
                    *out = (self.value)(base + i, channel) as f32;
                }
            }
        }
    }
}

/// Computes every element of `out`.
fn apply<F: Fn(usize, usize) -> f64 + Copy + Sync>(
    sizes: &Channels,
    out: &mut [f32],
    parallel: &dyn Parallel,
    value: F,
) {
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
            value,
            out,
        });
    });
}

/// Two pairs per channel.
fn scratch(inputs: &Inputs<'_>, index: usize) -> Result<usize> {
    let channels = channels(inputs, index, "x")?.channels;
    channels
        .checked_mul(2 * size_of::<[f64; 2]>())
        .ok_or(Error::Overflow {
            argument: "scratch",
        })
}

/// Two numbers per channel.
type Pairs = [[f64; 2]];

/// The scratch memory as two lists of pairs.
fn pairs(scratch: &mut [u8], channels: usize) -> Result<(&mut Pairs, &mut Pairs)> {
    let (pairs, _) = f64s(scratch).as_chunks_mut::<2>();
    let found = pairs.len();
    let pairs = pairs.get_mut(..2 * channels).ok_or(Error::Length {
        argument: "scratch",
        found,
        expected: 2 * channels,
    })?;
    Ok(pairs.split_at_mut(channels))
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
    let (sums, lines) = pairs(call.scratch, sizes.channels)?;
    let count = sizes.outer * sizes.inner;
    if training && count > 0 {
        // The mean first: squares are of what is left.
        sum(&sizes, sums, parallel, |i, _| [f64::from(x[i]), 0.0]);
        for (line, sums) in lines.iter_mut().zip(&*sums) {
            line[0] = sums[0] / count as f64;
        }
        let means = &*lines;
        sum(&sizes, sums, parallel, |i, channel| {
            let gap = f64::from(x[i]) - means[channel][0];
            [0.0, gap * gap]
        });
    }
    // The batch's statistics by channel: for the caller, and for the gradient.
    for channel in 0..sizes.channels {
        let (center, spread, kept) = if training && count > 0 {
            let (center, spread) = (lines[channel][0], sums[channel][1] / count as f64);
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
        lines[channel] = [factor, shift];
        let values = [kept.0, kept.1, center, spread];
        for (index, value) in (1..).zip(values) {
            output(outputs, index)?[channel] = value as f32;
        }
    }
    let lines = &*lines;
    apply(&sizes, output(outputs, 0)?, parallel, |i, channel| {
        let [factor, shift] = lines[channel];
        f64::from(x[i]) * factor + shift
    });
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
    let (sums, lines) = pairs(call.scratch, sizes.channels)?;
    sum(&sizes, sums, parallel, |i, channel| {
        let gradient = f64::from(gradient[i]);
        [
            gradient,
            gradient * (f64::from(x[i]) - f64::from(mean[channel])),
        ]
    });
    let count = (sizes.outer * sizes.inner) as f64;
    for channel in 0..sizes.channels {
        let [sum, product] = sums[channel];
        let squared = f64::from(variance[channel]) + epsilon;
        let root = 1.0 / math::sqrt(squared);
        let (level, slope) = if training {
            (sum / count, product / count / squared)
        } else {
            (0.0, 0.0)
        };
        lines[channel] = [level, slope];
        sums[channel] = [f64::from(scale[channel]) * root, 0.0];
        output(outputs, 1)?[channel] = (product * root) as f32;
        output(outputs, 2)?[channel] = sum as f32;
    }
    let (factors, lines) = (&*sums, &*lines);
    apply(&sizes, output(outputs, 0)?, parallel, |i, channel| {
        let [level, slope] = lines[channel];
        let gap = f64::from(x[i]) - f64::from(mean[channel]);
        factors[channel][0] * (f64::from(gradient[i]) - level - gap * slope)
    });
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
            let mut sums = vec![[f64::NAN; 2]; channels];
            sum(&sizes, &mut sums, &Interleaved, |i, channel| {
                [f64::from(x[i]), channel as f64]
            });
            for (channel, found) in sums.iter().enumerate() {
                let of = |i: &usize| i / inner % channels == channel;
                let own: Vec<usize> = (0..x.len()).filter(of).collect();
                let exact: f64 = own.iter().map(|&i| f64::from(x[i])).sum();
                assert_eq!(*found, [exact, (channel * own.len()) as f64]);
            }
            let mut out = vec![f32::NAN; x.len()];
            apply(&sizes, &mut out, &Interleaved, |i, channel| {
                f64::from(x[i]) + channel as f64
            });
            for (i, &found) in out.iter().enumerate() {
                let channel = (i / inner % channels) as f64;
                assert_eq!(found, (f64::from(x[i]) + channel) as f32);
            }
        }
    }
}
