//! Batch normalization where it is not the plain one: of images, and of masked steps.

use tfp_core::{DataType, Result, Tensor};

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::functional::Moments;
use crate::ops;

/// Whether a value is float32 images (batch, height, width, channels), for which there is one op.
pub(super) fn is_image(x: &AnyValue) -> Result<bool> {
    Ok(x.dtype() == DataType::FLOAT && x.shape()?.rank() == Some(4))
}

/// [`batch_norm`](crate::nn::functional::batch_norm) of images by one op. No gradient passes through the moments.
pub(super) fn image_norm(
    cx: &AnyContext,
    x: &AnyValue,
    scale: Option<&AnyValue>,
    offset: Option<&AnyValue>,
    epsilon: f32,
) -> Result<(AnyValue, Moments<AnyValue>)> {
    let sizes = ops::shape(cx, x, ops::ShapeOptions::default())?;
    let channels = || {
        let options = ops::StridedSliceOptions::default();
        ops::strided_slice(cx, &sizes, [3], [4], [1], options)
    };
    let of = |given: Option<&AnyValue>, other: f32| match given {
        Some(given) => Ok(given.clone()),
        None => ops::fill(cx, channels()?, other),
    };
    let nothing = Tensor::from_slice::<f32>(&[], &[0])?;
    let options = ops::FusedBatchNormV3Options {
        epsilon: Some(epsilon),
        ..Default::default()
    };
    let (scale, offset) = (of(scale, 1.0)?, of(offset, 0.0)?);
    let found = ops::fused_batch_norm_v3(cx, x, scale, offset, &nothing, &nothing, options)?;
    // The op divides by one less than there are numbers, if there are several.
    let pixels = ops::slice(cx, sizes, [0], [3])?;
    let pixels = ops::cast(cx, pixels, DataType::FLOAT, ops::CastOptions::default())?;
    let count = ops::prod(cx, pixels, 0, ops::ProdOptions::default())?;
    let share = ops::div(cx, ops::sub(cx, &count, 1.0_f32)?, count)?;
    let moments = Moments {
        mean: found.batch_mean,
        variance: ops::mul(cx, found.batch_variance, share)?,
    };
    Ok((found.y, moments))
}

/// Mean and variance of the last dimension over the steps for which a mask (batch, steps) is true.
pub(super) fn masked_moments(
    cx: &AnyContext,
    x: &AnyValue,
    mask: &AnyValue,
) -> Result<Moments<AnyValue>> {
    let rank = x.shape()?.rank().unwrap_or(3);
    let mut mask = ops::cast(cx, mask, x.dtype(), ops::CastOptions::default())?;
    for _ in mask.shape()?.rank().unwrap_or(2)..rank {
        mask = ops::expand_dims(cx, mask, -1)?;
    }
    let axes: Vec<i32> = (0..rank as i32 - 1).collect();
    let sum = |x: AnyValue| ops::sum(cx, x, axes.as_slice(), ops::SumOptions::default());
    // As Keras does: a little more, so that nothing is not divided by zero.
    let count = ops::add_v2(cx, sum(mask.clone())?, 1e-7)?;
    let mean = ops::div(cx, sum(ops::mul(cx, x, &mask)?)?, &count)?;
    let square = ops::squared_difference(cx, x, &mean)?;
    let variance = ops::div(cx, sum(ops::mul(cx, square, mask)?)?, count)?;
    Ok(Moments { mean, variance })
}
