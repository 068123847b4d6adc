//! Batch normalisation over all axes but the channels, and its gradient: `FusedBatchNorm*` and
//! `FusedBatchNormGrad*` of TensorFlow.
//!
//! Sums run in `f64`, channel by channel, in an order that does not depend on the threads.

mod passes;

use crate::base::adapt::{check_rank, check_shape, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, Variants};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch::f64s;
use crate::base::shape::Shape;
use crate::conv::attributes::Format;
use crate::math;
use crate::ops::matrix::bias_add::Channels;
use passes::{MORE, apply, parts, sum};

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
const FIRST: &[Variants] = variants!(["T": F32];);

/// The types of the later versions, whose statistics have an attribute of their own.
const LATER: &[Variants] = variants!(["T": F32, "U": F32];);

macro_rules! definitions {
    ($($(#[$doc:meta])* $name:ident $op:literal $variants:ident $attrs:ident $x:literal
        $outputs:expr, $run:ident;)*) => {$(
        $(#[$doc])*
        pub static $name: KernelDef = KernelDef {
            variants: $variants,
            attrs: $attrs,
            outputs: $outputs,
            scratch: |inputs| scratch(inputs, $x),
            run: $run,
            ..KernelDef::of($op)
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
        let shape = inputs.shape(index, argument)?;
        check_rank(&shape, argument, 1, "1")?;
        // A training does not read them.
        if given {
            check_shape(argument, &shape, &vector)?;
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

/// Elements of the lists that the scratch memory holds: two for the sums of each part, and three
/// for numbers of the channels.
fn lens(sizes: &Channels) -> Result<[usize; 5]> {
    let overflow = Error::Overflow {
        argument: "scratch",
    };
    let sums = sizes.channels.checked_mul(parts(sizes)).ok_or(overflow)?;
    let numbers = sizes.channels.checked_add(MORE).ok_or(overflow)?;
    Ok([sums, sums, numbers, numbers, numbers])
}

fn scratch(inputs: &Inputs<'_>, index: usize) -> Result<usize> {
    let lens = lens(&channels(inputs, index, "x")?)?;
    let all = lens
        .iter()
        .try_fold(0_usize, |all, &len| all.checked_add(len));
    all.and_then(|all| all.checked_mul(size_of::<f64>()))
        .ok_or(Error::Overflow {
            argument: "scratch",
        })
}

/// The scratch memory as the lists of [`lens`].
fn lists<'a>(scratch: &'a mut [u8], sizes: &Channels) -> Result<[&'a mut [f64]; 5]> {
    let (numbers, lens) = (f64s(scratch), lens(sizes)?);
    let (found, expected) = (numbers.len(), lens.iter().sum());
    let mut rest = numbers.get_mut(..expected).ok_or(Error::Length {
        argument: "scratch",
        found,
        expected,
    })?;
    Ok(lens.map(|len| {
        let list;
        (list, rest) = core::mem::take(&mut rest).split_at_mut(len);
        list
    }))
}

/// The square of a channel's distance from its center, in variances, from which on rounding would
/// be seen in the variance.
const FAR: f64 = 1e4;

/// Mean and variance of each channel into `means` and `variances`; the lists of sums are those of
/// [`sum`].
fn moments(
    sizes: &Channels,
    x: &[f32],
    [firsts, seconds]: [&mut [f64]; 2],
    [centers, means, variances]: [&mut [f64]; 3],
    parallel: &dyn Parallel,
) {
    let count = (sizes.outer * sizes.inner) as f64;
    let channels = sizes.channels;
    for (channel, center) in centers[..channels].iter_mut().enumerate() {
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
        let sums = firsts[..channels].iter().zip(&*seconds);
        for (channel, (gaps, squares)) in sums.enumerate() {
            let gap = gaps / count;
            means[channel] = centers[channel] + gap;
            variances[channel] = (squares / count - gap * gap).max(0.0);
            far |= gap * gap > FAR * variances[channel];
        }
        if !far {
            return;
        }
        centers[..channels].copy_from_slice(&means[..channels]);
    }
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let sizes = channels(&call.inputs, 0, "x")?;
    if sizes.channels == 0 {
        return no_channels(call);
    }
    let attrs = call.inputs.attrs;
    let training = attrs.boolean("is_training")?;
    let epsilon = f64::from(attrs.float("epsilon")?);
    let new = f64::from(attrs.float("exponential_avg_factor")?);
    let [x, scale, offset, mean, variance] =
        f32s(&call.inputs, ["x", "scale", "offset", "mean", "variance"])?;
    let (parallel, outputs) = (call.parallel, &mut *call.outputs);
    let [firsts, seconds, factors, shifts, variances] = lists(call.scratch, &sizes)?;
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
    let numbers = [factors, shifts];
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
    if sizes.channels == 0 {
        return no_channels(call);
    }
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
    let [firsts, seconds, centers, slopes, shifts] = lists(call.scratch, &sizes)?;
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
    let numbers = [factors, slopes, shifts];
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

/// Fills what an op has besides numbers by channel, of which there are none. Other dimensions may be
/// so large that a loop around nothing takes hours.
fn no_channels(call: &mut Call<'_>) -> Result<()> {
    for index in 0..call.outputs.len() {
        output(call.outputs, index)?.fill(0.0);
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

fn output<'x>(
    outputs: &'x mut [crate::base::def::TensorMut<'_>],
    index: usize,
) -> Result<&'x mut [f32]> {
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
            let all = channels * outer.min(3);
            let [mut firsts, mut seconds] = [(); 2].map(|()| vec![f64::NAN; all]);
            let mut lists = [(); 3].map(|()| vec![f64::NAN; channels]);
            let [a, b, c] = &mut lists;
            let sums = [&mut firsts[..], &mut seconds[..]];
            moments(&sizes, &x, sums, [a, b, c], &Interleaved);
            for (channel, (found_mean, found_variance)) in
                lists[1].iter().zip(&lists[2]).enumerate()
            {
                let of = |i: &usize| i / inner % channels == channel;
                let own = || (0..x.len()).filter(of).map(|i| f64::from(x[i]));
                let count = own().count() as f64;
                let mean = own().sum::<f64>() / count;
                let variance = own().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
                assert!((found_mean - mean).abs() <= 1e-12 * mean.abs() + 1e-12);
                assert!((found_variance - variance).abs() <= 1e-11 * variance);
            }
        }
    }
}
