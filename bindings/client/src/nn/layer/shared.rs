//! Layers that are called several times with the same variables.

use std::sync::{Arc, Mutex, PoisonError};

use tfp_core::{Error, Result};

use super::described::{KerasLayer, fresh_identity};
use super::{Built, BuiltMany, Layer};
use crate::nn::Weights;
use crate::nn::weights::Taken;

/// A layer whose first call makes its variables, and whose other calls use them.
pub struct SharedLayer<L> {
    layer: L,
    first: Mutex<Option<First>>,
    identity: u64,
}

/// What the first call took.
struct First {
    taken: Arc<Mutex<Taken>>,
    weights: Weights,
}

impl<L: Layer> SharedLayer<L> {
    /// Makes a layer one that can be shared.
    pub fn new(layer: L) -> Self {
        Self {
            layer,
            first: Mutex::new(None),
            identity: fresh_identity(),
        }
    }
}

impl<L: Layer> SharedLayer<L> {
    /// The layer, without what its calls share.
    pub(super) fn layer(&self) -> &L {
        &self.layer
    }

    /// Builds with the variables of the first call.
    pub(crate) fn share<T>(
        &self,
        weights: &Weights,
        build: impl FnOnce(&Weights) -> Result<T>,
    ) -> Result<T> {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(First { taken, weights: of }) = &*first {
            if !of.is_same(weights) {
                return Err(Error::argument(format!(
                    "a shared {} has its variables in other weights",
                    self.layer.kind()
                )));
            }
            return build(&of.taking(taken));
        }
        let taken = Arc::default();
        let built = build(&weights.noting(&taken))?;
        *first = Some(First {
            taken,
            weights: weights.clone(),
        });
        Ok(built)
    }
}

impl<L: Layer> Layer for SharedLayer<L> {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let layer = self.layer.keras(inputs)?;
        Ok(KerasLayer {
            identity: Some(layer.identity.unwrap_or(self.identity)),
            ..layer
        })
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.share(weights, |weights| self.layer.build(weights, input))
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        self.share(weights, |weights| self.layer.build_many(weights, inputs))
    }

    fn kind(&self) -> String {
        self.layer.kind()
    }

    fn casts(&self) -> bool {
        self.layer.casts()
    }
}
