//! Layers as functions of their weights, in both modes. Data is channels-last, weights have Keras'
//! shapes and orders.

mod attention;
mod conv;
mod dense;
mod norm;
mod pool;
mod recurrent;

use tfp_core::{Context, Error, Result, Value};
use tfp_ops as ops;

pub use attention::{MultiHead, attention};
pub use conv::{ConvOptions, conv, conv_transpose, conv3d, conv3d_transpose, depthwise_conv2d};
pub(crate) use conv::{not_causal, transposable};
pub use dense::{dense, dropout, embedding, flatten};
pub use norm::{Moments, batch_norm, group_norm, layer_norm, moments, normalize, rms_norm};
pub use pool::{Pool, global_pool, pool, pool3d};
pub(crate) use recurrent::zero_state;
pub use recurrent::{Cell, Gru, Lstm, RnnOptions, SimpleRnn, run};

/// How borders are treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Padding {
    /// Only whole windows.
    #[default]
    Valid,
    /// As many outputs as inputs, divided by the stride.
    Same,
    /// One-dimensional: as [`Padding::Same`], with all of it before the first input, so that no
    /// output sees the future.
    Causal,
}

impl Padding {
    fn op(self) -> ops::Padding {
        match self {
            Self::Same => ops::Padding::Same,
            // Causal inputs are padded before the op.
            Self::Valid | Self::Causal => ops::Padding::Valid,
        }
    }
}

/// The rank of a value, which must be known.
fn rank<V: Value>(what: &str, x: &V) -> Result<usize> {
    x.shape()?
        .rank()
        .ok_or_else(|| Error::argument(format!("{what}: the input's rank is not known")))
}

/// The size of a dimension, counted from the end when negative, which must be known.
fn known<V: Value>(what: &str, x: &V, axis: i64) -> Result<i64> {
    let shape = x.shape()?;
    let index = match shape.rank() {
        Some(rank) if axis < 0 => usize::try_from(axis + rank as i64).ok(),
        _ => usize::try_from(axis).ok(),
    };
    index
        .and_then(|index| shape.dim(index))
        .ok_or_else(|| Error::argument(format!("{what}: dimension {axis} of {shape} is not known")))
}

/// The number of a rank from 3 to 4 as Keras counts: without batch and channels.
fn spatial<V: Value>(what: &str, x: &V) -> Result<usize> {
    match rank(what, x)? {
        3 => Ok(1),
        4 => Ok(2),
        other => Err(Error::argument(format!(
            "{what}: the input has rank {other}, expected 3 (batch, steps, channels) or 4 (batch, \
             rows, columns, channels)"
        ))),
    }
}

/// The sizes of all dimensions as an int32 vector.
fn shape_of<C: Context + ?Sized>(cx: &C, x: &C::Value) -> Result<C::Value> {
    ops::shape(cx, x, ops::ShapeOptions::default())
}

/// Elements `begin..end` of a vector; negative ones count from the end, `None` is the end.
fn part<C: Context + ?Sized>(
    cx: &C,
    vector: &C::Value,
    begin: i32,
    end: Option<i32>,
) -> Result<C::Value> {
    let options = ops::StridedSliceOptions {
        end_mask: Some(i64::from(end.is_none())),
        ..Default::default()
    };
    ops::strided_slice(cx, vector, [begin], [end.unwrap_or(0)], [1], options)
}
