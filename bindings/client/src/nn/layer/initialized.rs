//! Layers some of whose weights begin with values of your own.

use std::sync::Arc;

use tfp_core::{Error, Result};

use super::described::{KerasLayer, initializer};
use super::{Built, BuiltMany, Layer, chosen};
use crate::nn::{InitializerFunction, Weights};

/// A layer with first values of some of its weights; [`Layer::initialized`] makes it.
#[derive(Clone, Debug)]
pub struct Initialized<L> {
    /// The layer.
    pub layer: L,
    /// The last part of the variables' names, as `kernel`.
    pub variable: String,
    /// What each is before training.
    pub initializer: Arc<dyn InitializerFunction>,
}

impl<L: Layer> Layer for Initialized<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let found = self.initializer.as_initializer().ok_or_else(|| {
            Error::argument(format!("Keras has no initializer {:?}", self.initializer))
        })?;
        let layer = self.layer.keras(inputs)?;
        chosen::check_class(&layer.class, "an initializer")?;
        let key = format!("{}_initializer", chosen::key(&self.variable));
        Ok(layer.set(&key, initializer(found)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.begun(weights, |weights| self.layer.build(weights, input))
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        self.begun(weights, |weights| self.layer.build_many(weights, inputs))
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }

    fn casts(&self) -> bool {
        self.layer.casts()
    }
}

impl<L> Initialized<L> {
    fn begun<T>(&self, weights: &Weights, build: impl FnOnce(&Weights) -> Result<T>) -> Result<T> {
        let weights = weights.beginning(&self.variable, self.initializer.clone());
        let (built, _) = chosen::build(&weights, &self.variable, "an initializer", build)?;
        Ok(built)
    }
}
