//! Models of Keras 3: `.keras` files, which are archives of a configuration and of weights.

mod bytes;
mod calls;
mod compile;
mod config;
mod described;
mod graph;
mod hdf5;
mod hdf5_write;
mod layers;
mod names;
mod order;
mod recurrent;
mod save;
mod zip;

use std::collections::HashMap;
use std::path::Path;

use tfp_core::{DataType, Error, ErrorKind, Result, Session, Tensor};

use self::graph::Graph;
use self::hdf5::Datasets;
use self::save::Saved;
use super::Weights;
use super::json::Json;
use super::layer::Model;
use crate::files::{file_error, read_file, write};
use crate::variable::{self, Variable};

/// The version of Keras whose files are written.
const VERSION: &str = "3.15.1";
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

    /// Writes the model with its weights as a `.keras` file, which Python's `keras.models.load_model` and
    /// [`Self::from_keras`] read: layers, names, what is frozen. The file that is there stays until the
    /// new one is whole.
    ///
    /// A model made by [`Sequential`](super::layer::Sequential) is a sequential one in Python, others are
    /// functional. Several outputs are a list if they have the names of their layers, else a dictionary.
    /// The random state of dropout is not part of the file.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a model in a graph, whose values are in a session
    /// ([`Self::save_keras_from`]), and for layers that Keras does not have, with a line for each;
    /// [`ErrorKind::File`] for a file that can't be written.
    pub fn save_keras(&self, path: impl AsRef<Path>) -> Result<()> {
        if !self.weights().context().is_eager() {
            return Err(Error::argument(
                "the values of the model's variables are in a session: Model::save_keras_from or \
                 Trainer::save_keras writes them",
            ));
        }
        let values = self.variables().iter().map(Variable::to_tensor);
        let values = values.collect::<Result<Vec<_>>>()?;
        write_model(self, values, DataType::FLOAT, path.as_ref())
    }

    /// Writes a model in a graph, as [`Self::save_keras`], with the values of a session.
    ///
    /// # Errors
    /// As for [`Self::save_keras`], and what TensorFlow says.
    pub fn save_keras_from(&self, session: &Session, path: impl AsRef<Path>) -> Result<()> {
        let values = variable::values_in(session, self.variables())?;
        write_model(self, values, DataType::FLOAT, path.as_ref())
    }
}

fn write_model(model: &Model, values: Vec<Tensor>, input: DataType, path: &Path) -> Result<()> {
    let saved = Saved::of(model, input)?;
    let names = model.variables().iter().map(|one| one.name().to_owned());
    let values: HashMap<String, Tensor> = names.zip(values).collect();
    let config = saved.config.to_string();
    let weights = saved.weights(&values, &[])?;
    write(path, &archive(&config, &weights)?)
}

/// The bytes of a `.keras` file.
fn archive(config: &str, weights: &[u8]) -> Result<Vec<u8>> {
    let metadata = Json::object([("keras_version", VERSION.into())]).to_string();
    zip::archive(&[
        ("metadata.json", metadata.as_bytes()),
        (CONFIG, config.as_bytes()),
        (WEIGHTS, weights),
    ])
}
