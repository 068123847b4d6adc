//! Layers, one after the other.

use std::fmt;

use tfp_core::{Error, ErrorKind, Result};

use super::node::Node;
use super::{Layer, Model, Pass};
use crate::context::value::AnyValue;
use crate::nn::Weights;

/// A model of layers, one after the other, from an input `x` to an output `y`.
#[derive(Clone)]
pub struct Sequential {
    model: Model,
}

impl Sequential {
    /// Builds layers for inputs of a shape, which is without the batch.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for the first layer that does not take
    /// what it gets, with its number from 0 on, and what TensorFlow says.
    pub fn new(weights: &Weights, input: &[i64], layers: &[&dyn Layer]) -> Result<Self> {
        let input = Node::any_input(weights, "x", None, input)?;
        let mut node = input.clone();
        for (number, layer) in layers.iter().enumerate() {
            node = node.then(*layer).map_err(|error| at_layer(number, error))?;
        }
        Ok(Self {
            model: Model::of_nodes(&[&input], &[("y", &node)], true)?,
        })
    }

    /// Computes all layers: (batch, ...) to (batch, ...). Afterwards the pass has the mask of the
    /// result.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn call(&self, pass: &Pass<'_>, x: &AnyValue) -> Result<AnyValue> {
        let (y, mask) = self
            .model
            .run(pass, vec![(x.clone(), None)])?
            .pop()
            .ok_or_else(|| Error::argument("a model returned no value"))?;
        pass.enter(vec![mask]);
        Ok(y)
    }

    /// Returns the input's shape, without the batch.
    #[must_use]
    pub fn input_shape(&self) -> &[i64] {
        self.model.inputs().first().map_or(&[], |port| &port.shape)
    }

    /// Returns the output's shape, without the batch.
    #[must_use]
    pub fn output_shape(&self) -> &[i64] {
        self.model.outputs().first().map_or(&[], |port| &port.shape)
    }

    /// Returns the model's variables.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        self.model.weights()
    }
}

impl From<Sequential> for Model {
    fn from(sequential: Sequential) -> Self {
        sequential.model
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequential")
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// Says which layer an error is about.
fn at_layer(number: usize, error: Error) -> Error {
    match error.kind() {
        ErrorKind::Argument { message } => Error::argument(format!("layer {number}: {message}")),
        _ => error,
    }
}
