//! Layers some of whose weights have a penalty.

use tfp_core::{Error, Result};

use super::described::{KerasLayer, penalty};
use super::{Built, BuiltMany, Layer};
use crate::nn::{Regularizer, Weights};

/// A layer with a penalty of some of its weights; [`Layer::regularized`] makes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Regularized<L> {
    /// The layer.
    pub layer: L,
    /// The last part of the variables' names, as `kernel`.
    pub variable: String,
    /// The penalty of each.
    pub regularizer: Regularizer,
}

impl<L: Layer> Layer for Regularized<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let layer = self.layer.keras(inputs)?;
        if matches!(&*layer.class, "TimeDistributed" | "Bidirectional" | "RNN") {
            return Err(Error::argument(
                "a penalty of a layer inside of another can't be described",
            ));
        }
        let key = match &*self.variable {
            "recurrent_kernel" => "recurrent",
            other => other,
        };
        Ok(layer.set(&format!("{key}_regularizer"), penalty(self.regularizer)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.penalized(weights, |weights| self.layer.build(weights, input))
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        self.penalized(weights, |weights| self.layer.build_many(weights, inputs))
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }
}

impl<L> Regularized<L> {
    fn penalized<T>(
        &self,
        weights: &Weights,
        build: impl FnOnce(&Weights) -> Result<T>,
    ) -> Result<T> {
        let Regularizer { l1, l2 } = self.regularizer;
        if ![l1, l2]
            .iter()
            .all(|factor| (0.0..).contains(factor) && factor.is_finite())
        {
            return Err(Error::argument(format!(
                "a regularizer with factors {l1} and {l2}; expected 0 or more"
            )));
        }
        let before = weights.asked();
        let built = build(weights)?;
        let made = weights.asked_since(before);
        let mut names = Vec::new();
        let mut count = 0;
        for variable in &made {
            let (_, name) = variable.name().rsplit_once('/').unwrap_or_default();
            if name == self.variable {
                weights.penalize(variable, self.regularizer);
                count += 1;
            }
            names.push(format!("'{name}'"));
        }
        if count == 0 {
            return Err(Error::argument(format!(
                "a regularizer of '{}'; the layer's variables are [{}]",
                self.variable,
                names.join(", ")
            )));
        }
        Ok(built)
    }
}
