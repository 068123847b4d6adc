//! Models of Keras 3: `.keras` files, which are archives of a configuration and of weights.

mod bytes;
mod config;
mod graph;
mod hdf5;
mod json;
mod layers;
mod recurrent;
mod zip;

use std::fs;
use std::path::Path;

use tfp_core::{Error, ErrorKind, Result};

use self::graph::Graph;
use self::hdf5::Datasets;
use self::json::Json;
use super::Weights;
use super::layer::Model;
use crate::files::file_error;

/// The members of the archive.
const CONFIG: &str = "config.json";
const WEIGHTS: &str = "model.weights.h5";

impl Model {
    /// Reads a model that Python's `model.save("model.keras")` wrote: layers, and the values of their
    /// weights. Inputs, outputs and layers have Keras' names. The model can be trained further. Layers
    /// whose `trainable` is false are frozen.
    ///
    /// # Errors
    /// [`ErrorKind::File`] for a file that can't be read, is damaged, or has layers that are not
    /// supported, with a line for each of them.
    pub fn from_keras(weights: &Weights, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let bytes = fs::read(path).map_err(|error| file_error(path, &error.to_string()))?;
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

/// Classes whose name in a configuration is another than in Python's code, by which weights are stored.
const EXPORTED: &[(&str, &str)] = &[("GroupQueryAttention", "GroupedQueryAttention")];

/// The name of a class as Keras writes it into files: `Conv2DTranspose` to `conv2d_transpose`.
fn snake_case(class: &str) -> String {
    let known = EXPORTED.iter().find(|(exported, _)| *exported == class);
    let class = known.map_or(class, |(_, class)| class);
    let letters: Vec<char> = class.chars().filter(|one| one.is_alphanumeric()).collect();
    let is = |at: usize, test: fn(&char) -> bool| letters.get(at).is_some_and(test);
    let mut words = String::new();
    let mut at = 0;
    while at < letters.len() {
        words.push(letters[at]);
        let begins = |at| is(at, char::is_ascii_uppercase) && is(at + 1, char::is_ascii_lowercase);
        at += 1;
        if begins(at) {
            words.push('_');
            words.push(letters[at]);
            at += 1;
            while is(at, char::is_ascii_lowercase) {
                words.push(letters[at]);
                at += 1;
            }
        }
    }
    let mut snake = String::new();
    let mut before = ' ';
    for letter in words.chars() {
        if before.is_ascii_lowercase() && letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
        before = letter;
    }
    snake
}

/// A name with the number of others of this name before it, as `dense`, `dense_1`.
fn numbered(name: &str, before: &mut Vec<String>) -> String {
    let count = before.iter().filter(|other| *other == name).count();
    before.push(name.to_owned());
    match count {
        0 => name.to_owned(),
        _ => format!("{name}_{count}"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn classes_have_the_names_of_keras() {
        for (class, name) in [
            ("Dense", "dense"),
            ("Conv2DTranspose", "conv2d_transpose"),
            ("DepthwiseConv1D", "depthwise_conv1d"),
            ("ConvLSTM2D", "conv_lstm2d"),
            ("PReLU", "p_re_lu"),
            ("GRUCell", "gru_cell"),
            ("RMSNormalization", "rms_normalization"),
            ("StackedRNNCells", "stacked_rnn_cells"),
        ] {
            assert_eq!(super::snake_case(class), name);
        }
    }
}
