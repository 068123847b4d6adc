//! Pooling.

use tfp_core::{Context, Error, Result};
use tfp_ops as ops;

use super::conv::four;
use super::{Padding, not_causal, rank, spatial};

/// What a window becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pool {
    /// Its largest element.
    Max,
    /// The mean of its elements that are inside the image.
    Average,
}

/// Pools windows of (rows, columns); one-dimensional inputs use the first number.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for an input of another rank than 3 or 4,
/// causal padding, and what TensorFlow says.
pub fn pool<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kind: Pool,
    size: (i64, i64),
    strides: (i64, i64),
    padding: Padding,
) -> Result<C::Value> {
    not_causal("pool", padding)?;
    let dims = spatial("pool", x)?;
    let image = if dims == 1 {
        &ops::expand_dims(cx, x, 1)?
    } else {
        x
    };
    let (size, strides) = (four(dims, size), four(dims, strides));
    let padding = padding.op();
    let y = match kind {
        Pool::Max => {
            let options = ops::MaxPoolOptions::default();
            ops::max_pool(cx, image, &size, &strides, padding, options)?
        }
        Pool::Average => {
            let options = ops::AvgPoolOptions::default();
            ops::avg_pool(cx, image, &size, &strides, padding, options)?
        }
    };
    if dims == 2 {
        return Ok(y);
    }
    let options = ops::SqueezeOptions {
        squeeze_dims: Some(&[1]),
    };
    ops::squeeze(cx, y, options)
}

/// Pools windows of (planes, rows, columns).
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for causal padding, and what TensorFlow says.
pub fn pool3d<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kind: Pool,
    size: [i64; 3],
    strides: [i64; 3],
    padding: Padding,
) -> Result<C::Value> {
    not_causal("pool3d", padding)?;
    let five = |[planes, rows, columns]: [i64; 3]| [1, planes, rows, columns, 1];
    let (size, strides, padding) = (five(size), five(strides), padding.op());
    match kind {
        Pool::Max => {
            let options = ops::MaxPool3DOptions::default();
            ops::max_pool3d(cx, x, &size, &strides, padding, options)
        }
        Pool::Average => {
            let options = ops::AvgPool3DOptions::default();
            ops::avg_pool3d(cx, x, &size, &strides, padding, options)
        }
    }
}

/// Pools each channel to one number, or to dimensions of size 1 when they are kept.
///
/// # Errors
/// As for [`pool`].
pub fn global_pool<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kind: Pool,
    keep_dims: bool,
) -> Result<C::Value> {
    let axes: &[i32] = match rank("global_pool", x)? {
        3 => &[1],
        4 => &[1, 2],
        5 => &[1, 2, 3],
        other => {
            return Err(Error::argument(format!(
                "global_pool: the input has rank {other}, expected 3 to 5"
            )));
        }
    };
    let keep_dims = Some(keep_dims);
    match kind {
        Pool::Max => ops::max(cx, x, axes, ops::MaxOptions { keep_dims }),
        Pool::Average => ops::mean(cx, x, axes, ops::MeanOptions { keep_dims }),
    }
}
