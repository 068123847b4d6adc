//! Layers that compute in a type of their own.

use tfp_core::Result;

use super::described::KerasLayer;
use super::{Built, BuiltMany, Layer, only};
use crate::nn::{Policy, Weights};

/// A layer with a policy of its own; [`Layer::policy`] makes it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithPolicy<L> {
    /// The layer.
    pub layer: L,
    /// The types of its computation and its variables.
    pub policy: Policy,
}

impl<L: Layer> Layer for WithPolicy<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        Ok(self.layer.keras(inputs)?.with_policy(self.policy))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        only(self.build_many(weights, &[input])?)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let weights = weights.clone().policy(self.policy);
        let built = self.layer.build_many(&weights, inputs)?;
        match self.layer.casts() {
            true => casting(built, self.policy),
            false => Ok(built),
        }
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }

    // It casts to its own type.
    fn casts(&self) -> bool {
        false
    }
}

/// A layer that computes in float32, and whose result is cast to the type in which layers of these weights
/// compute.
pub(super) fn narrowed(built: Built, weights: &Weights) -> Result<Built> {
    let (policy, forward) = (weights.layer_policy(), built.forward);
    Built::new(built.output, move |pass, x| {
        policy.cast(pass.context(), &forward(pass, x)?)
    })
}

/// A layer whose inputs are cast to the type in which it computes.
pub(super) fn casting(built: BuiltMany, policy: Policy) -> Result<BuiltMany> {
    let BuiltMany { forward, outputs } = built;
    BuiltMany::new(outputs, move |pass, inputs| {
        if inputs.iter().all(|input| policy.takes(input)) {
            return forward(pass, inputs);
        }
        let cx = pass.context();
        let inputs = inputs.iter().map(|input| policy.cast(cx, input));
        forward(pass, &inputs.collect::<Result<Vec<_>>>()?)
    })
}
