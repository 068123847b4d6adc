//! Layers, one after the other.

use std::fmt;

use tfp_core::{Error, ErrorKind, Result};

use super::{Built, Forward, LARGEST, Layer, Pass};
use crate::context::value::AnyValue;
use crate::nn::Weights;

/// A model of layers, one after the other.
pub struct Sequential {
    layers: Vec<Forward>,
    weights: Weights,
    input: Vec<i64>,
    output: Vec<i64>,
}

impl Sequential {
    /// Builds layers for inputs of a shape, which is without the batch.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for the first layer that does not take
    /// what it gets, with its number from 0 on, and what TensorFlow says.
    pub fn new(weights: &Weights, input: &[i64], layers: &[&dyn Layer]) -> Result<Self> {
        let mut shape = input.to_vec();
        let mut forwards = Vec::with_capacity(layers.len());
        for (number, layer) in layers.iter().enumerate() {
            if shape.iter().any(|&size| size > LARGEST) {
                return Err(Error::argument(format!(
                    "layer {number}: an input of shape {shape:?} per sample, expected sizes up to \
                     {LARGEST}"
                )));
            }
            let built = layer.build(weights, &shape);
            let Built { forward, output } = built.map_err(|error| at_layer(number, error))?;
            forwards.push(forward);
            shape = output;
        }
        Ok(Self {
            layers: forwards,
            weights: weights.clone(),
            input: input.to_vec(),
            output: shape,
        })
    }

    /// Computes all layers: (batch, ...) to (batch, ...). Afterwards the pass has the mask of the
    /// result.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn call(&self, pass: &Pass<'_>, x: &AnyValue) -> Result<AnyValue> {
        let mut value = x.clone();
        pass.next_layer();
        for layer in &self.layers {
            value = layer(pass, &value)?;
            pass.next_layer();
        }
        Ok(value)
    }

    /// Returns the input's shape, without the batch.
    #[must_use]
    pub fn input_shape(&self) -> &[i64] {
        &self.input
    }

    /// Returns the output's shape, without the batch.
    #[must_use]
    pub fn output_shape(&self) -> &[i64] {
        &self.output
    }

    /// Returns the model's variables.
    #[must_use]
    pub fn weights(&self) -> &Weights {
        &self.weights
    }
}

impl fmt::Debug for Sequential {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequential")
            .field("layers", &self.layers.len())
            .field("input", &self.input)
            .field("output", &self.output)
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
