//! Gradients: dense tensors, or the slices of one that are not zero.

use tfp_core::Result;

use crate::context::value::AnyValue;

/// Some slices of a tensor along its first axis, as the gradient of an embedding table.
#[derive(Clone, Debug)]
pub struct IndexedSlices<V> {
    /// The slices, of shape `[n, ...]`.
    pub values: V,
    /// The position of each slice on the first axis, `int32` or `int64` of shape `[n]`. A position
    /// that occurs more than once has the sum of its slices.
    pub indices: V,
    /// The shape of the whole tensor, `int32` or `int64` of one dimension.
    pub dense_shape: V,
}

/// The gradient of a sum with respect to a tensor.
#[derive(Clone, Debug)]
pub enum Gradient<V> {
    /// A tensor.
    Dense(V),
    /// A tensor that is zero outside some slices.
    Slices(IndexedSlices<V>),
}

impl From<AnyValue> for Gradient<AnyValue> {
    fn from(value: AnyValue) -> Self {
        Self::Dense(value)
    }
}

impl<V> Gradient<V> {
    /// Returns the same gradient with each tensor changed.
    pub(crate) fn try_map<W>(self, mut f: impl FnMut(V) -> Result<W>) -> Result<Gradient<W>> {
        Ok(match self {
            Self::Dense(value) => Gradient::Dense(f(value)?),
            Self::Slices(slices) => Gradient::Slices(IndexedSlices {
                values: f(slices.values)?,
                indices: f(slices.indices)?,
                dense_shape: f(slices.dense_shape)?,
            }),
        })
    }
}
