//! What normalizations share: scale and offset, and the type of statistics.

use tfp_core::{DataType, Result};

use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::policy::{as_type, wide};
use crate::nn::{Initializer, Policy, Weights};
use crate::variable::Variable;

/// The scale and the offset of a normalization, as far as there are some.
pub(super) struct Affine {
    scale: Option<Variable>,
    offset: Option<Variable>,
}

impl Affine {
    pub fn new(weights: &Weights, shape: &[i64], scale: bool, center: bool) -> Result<Self> {
        let make = |wanted: bool, name: &str, first| {
            wanted
                .then(|| weights.trainable(name, shape, first))
                .transpose()
        };
        Ok(Self {
            scale: make(scale, "gamma", Initializer::Ones)?,
            offset: make(center, "beta", Initializer::Zeros)?,
        })
    }

    /// Reads both in the type in which the statistics are computed.
    pub fn read(
        &self,
        cx: &AnyContext,
        dtype: DataType,
    ) -> Result<(Option<AnyValue>, Option<AnyValue>)> {
        let read = |one: &Option<Variable>| match one {
            Some(one) => as_type(cx, &one.stored().read(cx)?, dtype).map(Some),
            None => Ok(None),
        };
        Ok((read(&self.scale)?, read(&self.offset)?))
    }
}

/// Computes in a type that is wide enough for means and variances, and returns the layer's type.
pub(super) fn widened(
    cx: &AnyContext,
    policy: Policy,
    x: &AnyValue,
    function: impl FnOnce(&AnyValue, DataType) -> Result<AnyValue>,
) -> Result<AnyValue> {
    let dtype = wide(x.dtype());
    let y = function(&as_type(cx, x, dtype)?, dtype)?;
    as_type(cx, &y, policy.compute())
}
