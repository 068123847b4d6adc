//! The types of variables.

use tfp_core::{DataType, Result, Tensor};

use super::Weights;
use super::sharing::lock;
use crate::checkpoint::host;
use crate::nn::Policy;
use crate::ops;

impl Weights {
    /// Sets the types in which layers that are made here compute and keep their variables. It holds for
    /// what is made with the returned weights, so set it before the first layer.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        if policy == Policy::MixedFloat16 {
            lock(&self.shared).is_scaled = true;
        }
        Self { policy, ..self }
    }

    /// Returns the policy of layers that are made here.
    #[must_use]
    pub fn layer_policy(&self) -> Policy {
        self.policy
    }

    /// Whether a layer has gradients of float16 for variables of float32.
    pub(crate) fn is_scaled(&self) -> bool {
        lock(&self.shared).is_scaled
    }
}

/// A tensor of real numbers of another type.
pub(crate) fn cast_tensor(value: Tensor, dtype: DataType) -> Result<Tensor> {
    if value.dtype() == dtype {
        return Ok(value);
    }
    let value = ops::cast(&host()?, &value, dtype, ops::CastOptions::default())?;
    value.to_tensor()
}
