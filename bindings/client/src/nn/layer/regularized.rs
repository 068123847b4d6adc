//! Layers some of whose weights have a penalty.

use std::sync::Arc;

use tfp_core::{Error, Result};

use super::described::{KerasLayer, penalty};
use super::{Built, BuiltMany, Layer, chosen};
use crate::nn::{RegularizerFunction, Weights};

/// A layer with a penalty of some of its weights; [`Layer::regularized`] makes it.
#[derive(Clone, Debug)]
pub struct Regularized<L> {
    /// The layer.
    pub layer: L,
    /// The last part of the variables' names, as `kernel`.
    pub variable: String,
    /// The penalty of each.
    pub regularizer: Arc<dyn RegularizerFunction>,
}

impl<L: Layer> Layer for Regularized<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let regularizer = self.regularizer.as_regularizer().ok_or_else(|| {
            Error::argument(format!("Keras has no regularizer {:?}", self.regularizer))
        })?;
        let layer = self.layer.keras(inputs)?;
        chosen::check_class(&layer.class, "a penalty")?;
        let key = format!("{}_regularizer", chosen::key(&self.variable));
        Ok(layer.set(&key, penalty(regularizer)))
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

    fn casts(&self) -> bool {
        self.layer.casts()
    }
}

impl<L> Regularized<L> {
    fn penalized<T>(
        &self,
        weights: &Weights,
        build: impl FnOnce(&Weights) -> Result<T>,
    ) -> Result<T> {
        self.regularizer.check()?;
        let (built, variables) = chosen::build(weights, &self.variable, "a regularizer", build)?;
        for variable in &variables {
            weights.penalize_by(variable, self.regularizer.clone());
        }
        Ok(built)
    }
}
