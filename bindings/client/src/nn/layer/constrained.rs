//! Layers some of whose weights keep to a constraint.

use std::sync::Arc;

use tfp_core::{Error, Result};

use super::described::{KerasLayer, constraint};
use super::{Built, BuiltMany, Layer, chosen};
use crate::nn::{ConstraintFunction, Weights};

/// A layer with a constraint of some of its weights; [`Layer::constrained`] makes it.
#[derive(Clone, Debug)]
pub struct Constrained<L> {
    /// The layer.
    pub layer: L,
    /// The last part of the variables' names, as `kernel`.
    pub variable: String,
    /// What each fulfils after a step.
    pub constraint: Arc<dyn ConstraintFunction>,
}

impl<L: Layer> Layer for Constrained<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let found = self.constraint.as_constraint().ok_or_else(|| {
            Error::argument(format!("Keras has no constraint {:?}", self.constraint))
        })?;
        let layer = self.layer.keras(inputs)?;
        chosen::check_class(&layer.class, "a constraint")?;
        let key = format!("{}_constraint", chosen::key(&self.variable));
        Ok(layer.set(&key, constraint(&found)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.kept(weights, |weights| self.layer.build(weights, input))
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        self.kept(weights, |weights| self.layer.build_many(weights, inputs))
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }

    fn casts(&self) -> bool {
        self.layer.casts()
    }
}

impl<L> Constrained<L> {
    fn kept<T>(&self, weights: &Weights, build: impl FnOnce(&Weights) -> Result<T>) -> Result<T> {
        self.constraint.check()?;
        let (built, variables) = chosen::build(weights, &self.variable, "a constraint", build)?;
        for variable in &variables {
            weights.constrain(variable, self.constraint.clone());
        }
        Ok(built)
    }
}
