//! Batch normalisation over all axes but the channels, and its gradient: `FusedBatchNorm*` and
//! `FusedBatchNormGrad*` of TensorFlow.
//!
//! Sums run in `f64`, channel by channel, in an order that does not depend on the threads.

use crate::adapt::check_shape;
use crate::bias_add::Channels;
use crate::conv::attributes::Format;
use crate::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, Variant, no_scratch};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::math;
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
    ($($(#[$doc:meta])* $name:ident $op:literal $variants:ident $attrs:ident $outputs:expr, $run:ident;)*) => {$(
        $(#[$doc])*
        pub static $name: KernelDef = KernelDef {
            op: $op,
            variants: $variants,
            attrs: $attrs,
            forward: &[],
            outputs: $outputs,
            scratch: no_scratch,
            run: $run,
        };
    )*};
}

definitions! {
    /// `FusedBatchNorm` of TensorFlow.
    FUSED_BATCH_NORM "FusedBatchNorm" FIRST ATTRS |i, sink| outputs(i, sink, 4), run;
    /// `FusedBatchNormV2` of TensorFlow.
    FUSED_BATCH_NORM_V2 "FusedBatchNormV2" LATER ATTRS |i, sink| outputs(i, sink, 4), run;
    /// `FusedBatchNormV3` of TensorFlow; its last output means nothing.
    FUSED_BATCH_NORM_V3 "FusedBatchNormV3" LATER ATTRS |i, sink| {
        outputs(i, sink, 4)?;
        sink(DType::F32, Shape::SCALAR)
    }, run;
    /// `FusedBatchNormGrad` of TensorFlow.
    FUSED_BATCH_NORM_GRAD "FusedBatchNormGrad" FIRST GRADIENT_ATTRS gradient_outputs, run_gradient;
    /// `FusedBatchNormGradV2` of TensorFlow.
    FUSED_BATCH_NORM_GRAD_V2 "FusedBatchNormGradV2" LATER GRADIENT_ATTRS gradient_outputs,
        run_gradient;
    /// `FusedBatchNormGradV3` of TensorFlow.
    FUSED_BATCH_NORM_GRAD_V3 "FusedBatchNormGradV3" LATER GRADIENT_ATTRS gradient_outputs,
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

/// Elements of a channel: runs of `inner` elements, `stride` apart.
#[derive(Clone, Copy)]
struct Channel {
    first: usize,
    runs: usize,
    stride: usize,
    inner: usize,
}

impl Channel {
    fn of(sizes: &Channels, channel: usize) -> Self {
        Self {
            first: channel * sizes.inner,
            runs: sizes.outer,
            stride: sizes.channels * sizes.inner,
            inner: sizes.inner,
        }
    }

    /// Calls `body` with the number of each element.
    #[inline(always)]
    fn each(self, mut body: impl FnMut(usize)) {
        for run in 0..self.runs {
            let start = self.first + run * self.stride;
            (start..start + self.inner).for_each(&mut body);
        }
    }

    fn count(self) -> usize {
        self.runs * self.inner
    }
}

/// Mean and mean squared deviation of a channel; NaN of an empty one.
fn moments(x: &[f32], channel: Channel) -> (f64, f64) {
    let count = channel.count() as f64;
    let mut sum = 0.0;
    channel.each(|i| sum += f64::from(x[i]));
    let mean = sum / count;
    let mut squares = 0.0;
    channel.each(|i| {
        let gap = f64::from(x[i]) - mean;
        squares += gap * gap;
    });
    (mean, squares / count)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let sizes = channels(&call.inputs, 0, "x")?;
    let attrs = call.inputs.attrs;
    let training = attrs.boolean("is_training")?;
    let epsilon = f64::from(attrs.float("epsilon")?);
    let new = f64::from(attrs.float("exponential_avg_factor")?);
    let [x, scale, offset, mean, variance] =
        f32s(&call.inputs, ["x", "scale", "offset", "mean", "variance"])?;
    // The batch's statistics by channel: for the caller, and for the gradient.
    let outputs = &mut *call.outputs;
    for channel in 0..sizes.channels {
        let place = Channel::of(&sizes, channel);
        let (center, spread, kept) = if training && place.count() > 0 {
            let (center, spread) = moments(x, place);
            // The unbiased estimate; of one element there is none.
            let count = place.count();
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
        let y = output(outputs, 0)?;
        place.each(|i| y[i] = (f64::from(x[i]) * factor + shift) as f32);
        let values = [kept.0, kept.1, center, spread];
        for (index, value) in (1..).zip(values) {
            output(outputs, index)?[channel] = value as f32;
        }
    }
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
    let outputs = &mut *call.outputs;
    for channel in 0..sizes.channels {
        let place = Channel::of(&sizes, channel);
        let center = f64::from(mean[channel]);
        let squared = f64::from(variance[channel]) + epsilon;
        let root = 1.0 / math::sqrt(squared);
        let (mut sum, mut product) = (0.0, 0.0);
        place.each(|i| {
            let gradient = f64::from(gradient[i]);
            sum += gradient;
            product += gradient * (f64::from(x[i]) - center);
        });
        let factor = f64::from(scale[channel]) * root;
        let (level, slope) = if training {
            let count = place.count() as f64;
            (sum / count, product / count / squared)
        } else {
            (0.0, 0.0)
        };
        let x_gradient = output(outputs, 0)?;
        place.each(|i| {
            let gap = f64::from(x[i]) - center;
            x_gradient[i] = (factor * (f64::from(gradient[i]) - level - gap * slope)) as f32;
        });
        output(outputs, 1)?[channel] = (product * root) as f32;
        output(outputs, 2)?[channel] = sum as f32;
    }
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
    use crate::testing::numbers;

    #[test]
    fn channels_first_and_last_have_the_same_elements() {
        let last = Channels {
            outer: 6,
            channels: 2,
            inner: 1,
        };
        let first = Channels {
            outer: 2,
            channels: 2,
            inner: 3,
        };
        let numbers_of = |sizes: &Channels, channel| {
            let mut numbers = Vec::new();
            Channel::of(sizes, channel).each(|i| numbers.push(i));
            numbers
        };
        assert_eq!(numbers_of(&last, 1), [1, 3, 5, 7, 9, 11]);
        assert_eq!(numbers_of(&first, 1), [3, 4, 5, 9, 10, 11]);
    }

    #[test]
    fn moments_are_those_of_the_channel() {
        let x = numbers(40, 3);
        let place = Channel {
            first: 1,
            runs: 10,
            stride: 4,
            inner: 1,
        };
        let values: Vec<f64> = (0..10).map(|i| f64::from(x[1 + 4 * i])).collect();
        let mean = values.iter().sum::<f64>() / 10.0;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 10.0;
        let found = moments(&x, place);
        assert!((found.0 - mean).abs() < 1e-12 && (found.1 - variance).abs() < 1e-12);
    }
}
