//! Models of Keras: `.keras` files, which are archives of a configuration and of weights, and `.h5`
//! files of Keras 2 and 3.

mod calls;
mod compile;
mod config;
mod described;
mod graph;
mod h5;
mod keras_2;
mod layers;
mod names;
mod order;
mod recurrent;
mod save;
mod typed;

use std::collections::HashMap;
use std::path::Path;

use tfp_core::{DataType, Error, ErrorKind, Result, Session, Tensor};

use self::graph::Graph;
use self::save::Saved;
use self::typed::castable;
use super::Weights;
use super::layer::Model;
use super::optimizer::Rule;
use super::training::Trainer;
use super::weights::cast_tensor;
use crate::files::{file_error, read_file, write};
use crate::formats::hdf5::{self, Datasets};
use crate::formats::json::Json;
use crate::formats::zip;
use crate::variable::{self, Variable};

/// The version of Keras whose files are written.
const VERSION: &str = "3.15.1";
/// The members of the archive.
const METADATA: &str = "metadata.json";
const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.weights.h5";

impl Model {
    /// Reads a model that Python's `model.save("model.keras")` wrote: layers, and the values of their
    /// weights. Inputs, outputs and layers have Keras' names. The model can be trained further. Layers
    /// whose `trainable` is false are frozen.
    ///
    /// A file of the older format, `model.save("model.h5")`, is read too. A layer that is part of several
    /// models in such a file has a copy of its weights in each. Files of Keras 2 are read in both formats.
    /// What they describe keeps its meaning: the `hard_sigmoid` of Keras 2 has the slope 0.2.
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

    /// Reads a model from the bytes of a `.keras` or `.h5` file.
    ///
    /// # Errors
    /// As for [`Self::from_keras`], with [`ErrorKind::Argument`].
    pub fn from_keras_bytes(weights: &Weights, bytes: &[u8]) -> Result<Self> {
        let mut problems = Vec::new();
        let (graph, datasets) = if hdf5::is_hdf5(bytes) {
            let datasets = Datasets::open(bytes)?;
            (h5::parse(&datasets, &mut problems)?, datasets)
        } else {
            let config = Json::parse(zip::member(bytes, CONFIG)?)?;
            let datasets = Datasets::open(zip::member(bytes, WEIGHTS)?)?;
            let graph = match is_of_keras_2(bytes) {
                true => {
                    let config = keras_2::modernize(&config, &mut problems)?;
                    let mut graph = Graph::parse(&config, "", &mut problems)?;
                    graph.rename(keras_2::place);
                    graph
                }
                false => {
                    let more = |place: &str| vocabulary(bytes, place);
                    Graph::parse_with(&config, "", &more, &mut problems)?
                }
            };
            (graph, datasets)
        };
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
        let values = eager_values(self)?;
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

/// Whether Keras 2 wrote an archive. Without a version it is one of Keras 3.
fn is_of_keras_2(bytes: &[u8]) -> bool {
    let metadata = zip::member(bytes, METADATA).and_then(Json::parse);
    let version = metadata.ok();
    let version = version.as_ref().and_then(|json| json.get("keras_version"));
    version
        .and_then(Json::text)
        .is_some_and(|version| version.starts_with("2."))
}

/// The integers that an adapted layer knows, which an archive has a line for each.
fn vocabulary(bytes: &[u8], place: &str) -> Option<Json> {
    let lines = zip::member(bytes, &format!("assets/{place}vocabulary.txt")).ok()?;
    let lines = std::str::from_utf8(lines).ok()?.lines();
    let integers: Option<Vec<i64>> = lines.map(|line| line.parse().ok()).collect();
    Some(integers?.into())
}

/// The values of a model's variables by name, in eager mode.
fn eager_values(model: &Model) -> Result<Vec<Tensor>> {
    if !model.weights().context().is_eager() {
        return Err(Error::argument(
            "the values of the model's variables are in a session: Model::save_keras_from or the \
             methods of Trainer read and write them",
        ));
    }
    model.variables().iter().map(Variable::to_tensor).collect()
}

impl Model {
    /// Writes the values of the variables as a `.weights.h5` file, which `load_weights` reads in Python,
    /// of a model of the same layers.
    ///
    /// # Errors
    /// As for [`Self::save_keras`].
    pub fn save_weights(&self, path: impl AsRef<Path>) -> Result<()> {
        write_weights(self, eager_values(self)?, path.as_ref())
    }

    /// Sets the variables to the values of a `.weights.h5` file, which Python's `save_weights` wrote of a
    /// model of the same layers. If one of them does not fit, none is changed. The weights of an `.h5` file
    /// of Keras 2, alone or with a model, are those of the layers in Keras' order.
    ///
    /// # Errors
    /// [`ErrorKind::File`] for a file that lacks a variable or has another shape of it, and as for
    /// [`Self::save_keras`].
    pub fn load_weights(&self, path: impl AsRef<Path>) -> Result<()> {
        eager_values(self)?;
        let values = read_weights(self, path.as_ref())?;
        for (variable, value) in self.variables().iter().zip(&values) {
            variable.assign(self.weights().context(), value)?;
        }
        Ok(())
    }
}

impl<R: Rule> Trainer<R> {
    /// Writes the values of the model's variables, as [`Model::save_weights`].
    ///
    /// # Errors
    /// As for [`Model::save_weights`].
    pub fn save_weights(&self, path: impl AsRef<Path>) -> Result<()> {
        write_weights(self.model(), self.values()?, path.as_ref())
    }

    /// Sets the model's variables, as [`Model::load_weights`].
    ///
    /// # Errors
    /// As for [`Model::load_weights`].
    pub fn load_weights(&self, path: impl AsRef<Path>) -> Result<()> {
        self.set_values(&read_weights(self.model(), path.as_ref())?)
    }
}

fn named(model: &Model, values: Vec<Tensor>) -> HashMap<String, Tensor> {
    let names = model.variables().iter().map(|one| one.name().to_owned());
    names.zip(values).collect()
}

fn write_weights(model: &Model, values: Vec<Tensor>, path: &Path) -> Result<()> {
    let saved = Saved::of(model, DataType::FLOAT)?;
    write(path, &saved.weights(&named(model, values), &[])?)
}

/// Reads the values of a model's variables, in their order.
fn read_weights(model: &Model, path: &Path) -> Result<Vec<Tensor>> {
    let saved = Saved::of(model, DataType::FLOAT)?;
    let bytes = read_file(path)?;
    let at_file = |error: Error| match error.kind() {
        ErrorKind::Argument { message } => file_error(path, message),
        _ => error,
    };
    let datasets = Datasets::open(&bytes).map_err(at_file)?;
    if h5::has_layers(&datasets) {
        let mut found = h5::values(&datasets, model).map_err(at_file)?;
        return in_order(model, |name| found.remove(name));
    }
    let mut found = HashMap::new();
    for (place, variable) in &saved.variables {
        let value = datasets.read(place).map_err(at_file)?;
        let fits = value.shape().is_compatible_with(variable.shape());
        if !fits || !castable(&value, variable) {
            return Err(file_error(
                path,
                format!(
                    "'{place}' is {} of shape {}, and '{}' {} of shape {}",
                    value.dtype(),
                    value.shape(),
                    variable.name(),
                    variable.dtype(),
                    variable.shape()
                ),
            ));
        }
        found.insert(variable.name(), cast_tensor(value, variable.dtype())?);
    }
    in_order(model, |name| found.remove(name))
}

/// The values of a model's variables, in their order.
fn in_order(model: &Model, mut value: impl FnMut(&str) -> Option<Tensor>) -> Result<Vec<Tensor>> {
    let values = model.variables().iter().map(|variable| {
        value(variable.name()).ok_or_else(|| {
            Error::argument(format!("no layer of the model has '{}'", variable.name()))
        })
    });
    values.collect()
}

fn write_model(model: &Model, values: Vec<Tensor>, input: DataType, path: &Path) -> Result<()> {
    let saved = Saved::of(model, input)?;
    let values = named(model, values);
    let config = saved.config.to_string();
    let weights = saved.weights(&values, &[])?;
    write(path, &archive(&config, &weights)?)
}

/// The bytes of a `.keras` file.
fn archive(config: &str, weights: &[u8]) -> Result<Vec<u8>> {
    let metadata = Json::object([("keras_version", VERSION.into())]).to_string();
    zip::archive(&[
        (METADATA, metadata.as_bytes()),
        (CONFIG, config.as_bytes()),
        (WEIGHTS, weights),
    ])
}
