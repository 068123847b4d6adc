//! Models in `.h5` files, as Keras 2 writes them, and Keras 3 under that name: the configuration is an
//! attribute, and each layer of the outermost model has a list of its weights.

use std::collections::BTreeMap;

use tfp_core::{Error, Result, Tensor};

use super::graph;
use super::keras_2::modernize;
use super::names::export;
use super::order::{Graph, Operation};
use super::typed::castable;
use crate::formats::hdf5::Datasets;
use crate::formats::json::Json;
use crate::nn::layer::Model;
use crate::nn::weights::cast_tensor;
use crate::variable::Variable;

/// The group of the weights in the file of a whole model.
const WEIGHTS: &str = "model_weights";
const LAYERS: &str = "layer_names";
const NAMES: &str = "weight_names";

/// Reads the graph of layers of a file, whose layers then know their datasets. Layers that are not
/// supported become problems.
pub(super) fn parse(datasets: &Datasets<'_>, problems: &mut Vec<String>) -> Result<graph::Graph> {
    let Some(config) = text(datasets, "model_config")? else {
        let what = match has_layers(datasets) {
            true => "weights alone, which Model::load_weights reads",
            false => "no model: it has no attribute 'model_config'",
        };
        return Err(Error::argument(format!("the file has {what}")));
    };
    let mut config = Json::parse(config.as_bytes())?;
    // Files of the first versions don't say theirs.
    let version = text(datasets, "keras_version")?.unwrap_or_default();
    if version.is_empty() || version.starts_with(['1', '2']) {
        config = modernize(&config, problems)?;
    }
    export(&mut config);
    let mut graph = graph::Graph::parse(&config, "", problems)?;
    if problems.is_empty() {
        graph.place(|layer, count| {
            let names = weights_of(datasets, WEIGHTS, layer)?;
            check(layer, names.len(), count)?;
            Ok(names)
        })?;
    }
    Ok(graph)
}

/// Whether the file has the weights of layers.
pub(super) fn has_layers(datasets: &Datasets<'_>) -> bool {
    place(datasets).is_some()
}

/// The group that has the layers: that of a whole model's file, or the root.
fn place(datasets: &Datasets<'_>) -> Option<&'static str> {
    ["", WEIGHTS]
        .into_iter()
        .find(|group| several(datasets, group, LAYERS).is_ok_and(|found| found.is_some()))
}

/// Reads the values of a model's variables by name: those of its layers, in Keras' order.
pub(super) fn values(datasets: &Datasets<'_>, model: &Model) -> Result<BTreeMap<String, Tensor>> {
    let group = place(datasets).unwrap_or_default();
    let mut found = Vec::new();
    for layer in several(datasets, group, LAYERS)?.unwrap_or_default() {
        let names = weights_of(datasets, group, &layer)?;
        if !names.is_empty() {
            found.push((layer, names));
        }
    }
    let graph = Graph::of(model);
    let mut layers = Vec::new();
    for operation in &graph.operations {
        let all = variables_of(model, operation);
        let trained = model.weights().trained(all.clone());
        let is_trained = |one: &Variable| trained.iter().any(|other| other.name() == one.name());
        let (mut first, last): (Vec<_>, Vec<_>) = all.into_iter().partition(is_trained);
        first.extend(last);
        if !first.is_empty() {
            layers.push((operation.name(model), first));
        }
    }
    if found.len() != layers.len() {
        return Err(Error::argument(format!(
            "the file has weights of {} layers, and the model of {}",
            found.len(),
            layers.len()
        )));
    }
    let mut values = BTreeMap::new();
    for ((layer, places), (own, variables)) in found.iter().zip(layers) {
        check(own, places.len(), variables.len())?;
        for (place, variable) in places.iter().zip(variables) {
            let value = datasets.read(place)?;
            let fits = value.shape().is_compatible_with(variable.shape());
            if !fits || !castable(&value, &variable) {
                return Err(Error::argument(format!(
                    "'{place}' of layer '{layer}' is {} of shape {}, and '{}' {} of shape {}",
                    value.dtype(),
                    value.shape(),
                    variable.name(),
                    variable.dtype(),
                    variable.shape()
                )));
            }
            let value = cast_tensor(value, variable.dtype())?;
            values.insert(variable.name().to_owned(), value);
        }
    }
    Ok(values)
}

/// The variables of a layer, those of a model by its own layers.
fn variables_of(model: &Model, operation: &Operation) -> Vec<Variable> {
    let inner = match operation {
        Operation::Input(_) => None,
        Operation::Layer(steps) => model.steps()[steps[0]].call.keras.as_ref(),
    };
    let inner = inner.and_then(|one| one.as_ref().ok()?.inner::<Model>());
    match inner {
        Some(inner) => {
            let graph = Graph::of(inner);
            let all = graph.operations.iter();
            all.flat_map(|one| variables_of(inner, one)).collect()
        }
        None => operation.variables(model).to_vec(),
    }
}

fn check(layer: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::argument(format!(
        "layer '{layer}' has {expected} variables, and the file {found} weights of it"
    )))
}

/// The paths of a layer's weights.
fn weights_of(datasets: &Datasets<'_>, group: &str, layer: &str) -> Result<Vec<String>> {
    let inside = match group {
        "" => layer.to_owned(),
        _ => format!("{group}/{layer}"),
    };
    let names = several(datasets, &inside, NAMES)?.unwrap_or_default();
    let path = |name: String| format!("{inside}/{name}");
    Ok(names.into_iter().map(path).collect())
}

fn text(datasets: &Datasets<'_>, name: &str) -> Result<Option<String>> {
    let found = datasets.texts("", name)?;
    Ok(found.and_then(|texts| texts.into_iter().next()))
}

/// A list of texts, which lies in numbered pieces where it is too long for one attribute.
fn several(datasets: &Datasets<'_>, group: &str, name: &str) -> Result<Option<Vec<String>>> {
    if let Some(found) = datasets.texts(group, name)? {
        return Ok(Some(found));
    }
    let mut all = None;
    for index in 0.. {
        let Some(piece) = datasets.texts(group, &format!("{name}{index}"))? else {
            break;
        };
        all.get_or_insert_with(Vec::new).extend(piece);
    }
    Ok(all)
}
