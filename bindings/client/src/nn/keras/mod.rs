//! Models of Keras 3: `.keras` files, which are archives of a configuration and of weights.

mod bytes;
mod calls;
mod config;
mod described;
mod graph;
mod hdf5;

mod layers;
mod names;
mod recurrent;
mod zip;

use std::path::Path;

use tfp_core::{Error, ErrorKind, Result};

use self::graph::Graph;
use self::hdf5::Datasets;
use super::json::Json;
use super::Weights;
use super::layer::Model;
use crate::files::{file_error, read_file};

/// The members of the archive.
const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.weights.h5";

impl Model {
    /// Reads a model that Python's `model.save("model.keras")` wrote: layers, and the values of their
    /// weights. Inputs, outputs and layers have Keras' names. The model can be trained further. Layers
    /// whose `trainable` is false are frozen.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a file that does not exist; [`ErrorKind::File`] for one that can't be
    /// read, is damaged, or has layers that are not supported, with a line for each of them.
    pub fn from_keras(weights: &Weights, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = read_file(path)?;
        Self::from_keras_bytes(weights, &bytes).map_err(|error| match error.kind() {
            ErrorKind::Argument { message } => file_error(path, message),
            _ => error,
        })
    }

    /// Reads a model from the bytes of a `.keras` file.
    ///
    /// # Errors
    /// As for [`Self::from_keras`], with [`ErrorKind::Argument`].
    pub fn from_keras_bytes(weights: &Weights, bytes: &[u8]) -> Result<Self> {
        let config = Json::parse(zip::member(bytes, CONFIG)?)?;
        let datasets = Datasets::open(zip::member(bytes, WEIGHTS)?)?;
        let mut problems = Vec::new();
        let graph = Graph::parse(&config, "", &mut problems)?;
        if !problems.is_empty() {
            return Err(Error::argument(format!(
                "{} of its layers can't be read:\n  {}",
                problems.len(),
                problems.join("\n  ")
            )));
        }
        graph.build(weights, &datasets)
    }
}
