//! Normalizations.

use tfp_core::{Context, Error, Result};
use tfp_ops as ops;

use super::{known, rank, shape_of};

/// Mean and variance.
#[derive(Clone, Debug)]
pub struct Moments<V> {
    /// The mean.
    pub mean: V,
    /// The mean squared distance from it.
    pub variance: V,
}

/// Mean and variance over dimensions.
///
/// # Errors
/// What TensorFlow says.
pub fn moments<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    axes: &[i32],
    keep_dims: bool,
) -> Result<Moments<C::Value>> {
    let options = |keep: bool| ops::MeanOptions {
        keep_dims: Some(keep),
    };
    let mean = ops::mean(cx, x, axes, options(true))?;
    // The mean's own gradient through the square is zero, as TensorFlow's Python knows too.
    let fixed = ops::stop_gradient(cx, &mean)?;
    let square = ops::squared_difference(cx, x, fixed)?;
    let variance = ops::mean(cx, square, axes, options(keep_dims))?;
    let mean = if keep_dims {
        mean
    } else {
        let axes: Vec<i64> = axes.iter().map(|&axis| i64::from(axis)).collect();
        let options = ops::SqueezeOptions {
            squeeze_dims: Some(&axes),
        };
        ops::squeeze(cx, mean, options)?
    };
    Ok(Moments { mean, variance })
}

/// `(x - mean) / sqrt(variance + epsilon) * scale + offset`, by broadcasting.
///
/// # Errors
/// What TensorFlow says.
pub fn normalize<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    moments: &Moments<C::Value>,
    scale: Option<&C::Value>,
    offset: Option<&C::Value>,
    epsilon: f32,
) -> Result<C::Value> {
    let mut factor = ops::rsqrt(cx, ops::add_v2(cx, &moments.variance, epsilon)?)?;
    if let Some(scale) = scale {
        factor = ops::mul(cx, factor, scale)?;
    }
    let mut shift = ops::neg(cx, ops::mul(cx, &moments.mean, &factor)?)?;
    if let Some(offset) = offset {
        shift = ops::add_v2(cx, shift, offset)?;
    }
    ops::add_v2(cx, ops::mul(cx, x, factor)?, shift)
}

/// Batch normalization over the last dimension with the batch's own moments, which are returned: what
/// training does. The variance is the one that Keras keeps a running mean of.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when the rank is not known, and what
/// TensorFlow says.
pub fn batch_norm<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    scale: Option<&C::Value>,
    offset: Option<&C::Value>,
    epsilon: f32,
) -> Result<(C::Value, Moments<C::Value>)> {
    let axes: Vec<i32> = (0..rank("batch_norm", x)? as i32 - 1).collect();
    let moments = moments(cx, x, &axes, false)?;
    let y = normalize(cx, x, &moments, scale, offset, epsilon)?;
    Ok((y, moments))
}

/// Layer normalization over the last dimension.
///
/// # Errors
/// What TensorFlow says.
pub fn layer_norm<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    scale: Option<&C::Value>,
    offset: Option<&C::Value>,
    epsilon: f32,
) -> Result<C::Value> {
    let moments = moments(cx, x, &[-1], true)?;
    normalize(cx, x, &moments, scale, offset, epsilon)
}

/// Root-mean-square normalization over the last dimension.
///
/// # Errors
/// What TensorFlow says.
pub fn rms_norm<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    scale: &C::Value,
    epsilon: f32,
) -> Result<C::Value> {
    let options = ops::MeanOptions {
        keep_dims: Some(true),
    };
    let square = ops::mean(cx, ops::square(cx, x)?, -1, options)?;
    let factor = ops::rsqrt(cx, ops::add_v2(cx, square, epsilon)?)?;
    ops::mul(cx, ops::mul(cx, x, factor)?, scale)
}

/// Group normalization: the channels of the last dimension in groups, each with all positions of its
/// sample.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when rank or channels are not known or
/// the groups don't divide them, and what TensorFlow says.
pub fn group_norm<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    groups: i64,
    scale: Option<&C::Value>,
    offset: Option<&C::Value>,
    epsilon: f32,
) -> Result<C::Value> {
    let rank = rank("group_norm", x)? as i32;
    let channels = known("group_norm", x, -1)?;
    if groups < 1 || channels % groups != 0 {
        return Err(Error::argument(format!(
            "group_norm: {groups} groups don't divide {channels} channels"
        )));
    }
    let (count, width) = (groups as i32, (channels / groups) as i32);
    let shape = shape_of(cx, x)?;
    let outer = super::part(cx, &shape, 0, Some(-1))?;
    let grouped = ops::reshape(cx, x, ops::concat_v2(cx, (outer, [count, width]), 0)?)?;
    let axes: Vec<i32> = (1..rank - 1).chain([rank]).collect();
    let moments = moments(cx, &grouped, &axes, true)?;
    let per_group = |weight: Option<&C::Value>| {
        weight
            .map(|weight| ops::reshape(cx, weight, [count, width]))
            .transpose()
    };
    let (scale, offset) = (per_group(scale)?, per_group(offset)?);
    let y = normalize(
        cx,
        &grouped,
        &moments,
        scale.as_ref(),
        offset.as_ref(),
        epsilon,
    )?;
    ops::reshape(cx, y, shape)
}
