//! Models as Keras' files: the configuration of a model, and where its variables are.

use std::collections::{BTreeMap, HashMap};

use tfp_core::{DataType, Error, ErrorKind, Result, Tensor};

use super::names::{numbered, snake_case};
use super::order::{Graph, Operation};
use super::typed::{inherit, storable};
use crate::formats::hdf5_write;
use crate::formats::json::Json;
use crate::nn::layer::described::{Arguments, KerasLayer, Places, object};
use crate::nn::layer::{Model, Port};
use crate::variable::Variable;

/// What a file says of a model.
pub(super) struct Saved {
    pub config: Json,
    /// The variables with their places, in the order of Keras' `model.variables`.
    pub variables: Vec<(String, Variable)>,
    /// Places that have some of them once more.
    copies: Vec<(String, Variable)>,
}

impl Saved {
    /// Describes a model. `input` is the type of inputs that don't say theirs.
    pub fn of(model: &Model, input: DataType) -> Result<Self> {
        let mut saved = Self {
            config: Json::Null,
            variables: Vec::new(),
            copies: Vec::new(),
        };
        let mut problems = Vec::new();
        saved.config = saved.model(model, "model", "", &mut problems, input)?;
        if problems.is_empty() {
            return Ok(saved);
        }
        Err(Error::argument(format!(
            "{} of its layers can't be saved for Keras:\n  {}",
            problems.len(),
            problems.join("\n  ")
        )))
    }

    /// The file of the variables' values, which are given by name, and of more datasets.
    pub fn weights(
        &self,
        values: &HashMap<String, Tensor>,
        more: &[(String, Tensor)],
    ) -> Result<Vec<u8>> {
        let mut datasets = Vec::new();
        for (path, variable) in self.variables.iter().chain(&self.copies) {
            let value = values.get(variable.name()).ok_or_else(|| {
                Error::argument(format!("the model has no variable '{}'", variable.name()))
            })?;
            datasets.push((path.clone(), storable(value)?));
        }
        for (path, value) in more {
            datasets.push((path.clone(), storable(value)?));
        }
        let datasets: Vec<(String, &Tensor)> = datasets
            .iter()
            .map(|(path, value)| (path.clone(), value))
            .collect();
        hdf5_write::write(&datasets)
    }

    /// The description of a model, whose variables are below a place.
    fn model(
        &mut self,
        model: &Model,
        name: &str,
        place: &str,
        problems: &mut Vec<String>,
        input: DataType,
    ) -> Result<Json> {
        let graph = Graph::of(model);
        let is_sequence = graph.is_sequence();
        let mut names = Names::default();
        let named: Vec<String> = graph
            .operations
            .iter()
            .map(|one| names.of(one.name(model)))
            .collect();
        let mut places = Vec::new();
        let mut layers = Vec::new();
        for (operation, name) in graph.operations.iter().zip(&named) {
            let described = match operation {
                Operation::Input(index) => {
                    layers.push(input_layer(&model.inputs()[*index], name, input));
                    continue;
                }
                Operation::Layer(steps) => &model.steps()[steps[0]].call.keras,
            };
            let described = match described {
                Some(Ok(described)) => described,
                Some(Err(error)) => {
                    problems.push(problem(name, model, operation, error));
                    continue;
                }
                None => continue,
            };
            let class = match described.model::<Model>() {
                Some(inner) => class_of(inner),
                None => &described.class,
            };
            let inside = format!(
                "{place}layers/{}/",
                numbered(&snake_case(class), &mut places)
            );
            let mut layer = match (described.inner::<Model>(), &described.around) {
                (Some(inner), None) => self.model(inner, name, &inside, problems, input)?,
                (Some(inner), Some(own)) => {
                    let inside = format!("{inside}layer/");
                    let inner = self.model(inner, own, &inside, problems, input)?;
                    around(described, name, inner)
                }
                (None, _) => self.layer((model, operation), described, name, &inside)?,
            };
            if let Json::Object(members) = &mut layer
                && !is_sequence
            {
                let calls = graph.calls(model, operation, described, &named);
                members.push(("name".to_owned(), name.as_str().into()));
                members.push(("inbound_nodes".to_owned(), Json::List(calls)));
            }
            layers.push(layer);
        }
        let mut config = vec![
            ("name".to_owned(), name.into()),
            ("trainable".to_owned(), true.into()),
        ];
        config.push(("layers".to_owned(), Json::List(layers)));
        if is_sequence {
            return Ok(object("keras", "Sequential", config));
        }
        let ends = graph.ends(model, &named);
        config.push(("input_layers".to_owned(), ends.0));
        config.push(("output_layers".to_owned(), ends.1));
        Ok(object("keras.src.models.functional", "Functional", config))
    }

    /// The description of a layer, whose variables are below a place.
    fn layer(
        &mut self,
        (model, operation): (&Model, &Operation),
        described: &KerasLayer,
        name: &str,
        place: &str,
    ) -> Result<Json> {
        let variables = operation.variables(model);
        match &described.places {
            Places::Within(inside) => {
                for (index, variable) in variables.iter().enumerate() {
                    let path = format!("{place}{inside}vars/{index}");
                    self.variables.push((path, variable.clone()));
                }
            }
            Places::Listed(places) if places.len() == variables.len() => {
                for (path, variable) in places.iter().zip(variables) {
                    self.variables
                        .push((format!("{place}{path}"), variable.clone()));
                }
            }
            Places::Listed(places) => {
                return Err(Error::argument(format!(
                    "layer '{name}' has {} variables, and its description places for {}",
                    variables.len(),
                    places.len()
                )));
            }
        }
        for &(index, path) in described.copies() {
            let variable = variables.get(index).cloned();
            let copy = variable.map(|variable| (format!("{place}{path}"), variable));
            self.copies.extend(copy);
        }
        let could: Vec<Variable> = variables
            .iter()
            .filter(|one| one.is_trainable())
            .cloned()
            .collect();
        let trained = model.weights().trained(could.clone());
        if !trained.is_empty() && trained.len() < could.len() {
            return Err(Error::argument(format!(
                "layer '{name}' is frozen in part, which Keras does not have"
            )));
        }
        let mut config = described.config.clone();
        config.retain(|(key, _)| key != "name");
        config.insert(0, ("name".to_owned(), name.into()));
        // Not all classes without variables take it.
        if let Some(first) = variables.first() {
            // Of a normalization that has states alone, it says which mean it takes.
            let is_trainable = match could.is_empty() {
                true => !model.weights().is_frozen_at(first.name()),
                false => !trained.is_empty(),
            };
            config.retain(|(key, _)| key != "trainable");
            config.insert(1, ("trainable".to_owned(), is_trainable.into()));
        }
        let Some(outer) = &described.outer else {
            let policy = config.iter().find(|(key, _)| key == "dtype");
            match policy.map(|(_, policy)| policy.clone()) {
                Some(policy @ Json::Object(_)) => {
                    config.iter_mut().for_each(|(_, one)| inherit(one, &policy));
                }
                Some(_) => {}
                None => config.insert(1, ("dtype".to_owned(), "float32".into())),
            }
            return Ok(object("keras.layers", &described.class, config));
        };
        let mut outer = (**outer).clone();
        if let Json::Object(members) = &mut outer {
            members.retain(|(key, _)| !matches!(&**key, "name" | "inbound_nodes" | "config"));
            members.push(("config".to_owned(), Json::Object(config)));
            // Entries of `.h5` files lack it, and Keras then reads them by rules that lose several axes.
            if !members.iter().any(|(key, _)| key == "module") {
                let module = module_of(&described.class);
                members.push(("module".to_owned(), module.into()));
                members.push(("registered_name".to_owned(), Json::Null));
            }
        }
        Ok(outer)
    }
}

/// Where Python has a class of layers.
fn module_of(class: &str) -> &'static str {
    match class {
        "CustomScaleLayer" => "keras.src.applications.inception_resnet_v2",
        "LayerScale" => "keras.src.applications.convnext",
        _ => "keras.layers",
    }
}

/// A layer around a model.
fn around(layer: &KerasLayer, name: &str, inner: Json) -> Json {
    let policy = layer.config.iter().find(|(key, _)| key == "dtype");
    let policy = policy.map_or_else(|| "float32".into(), |(_, policy)| policy.clone());
    let config = vec![
        ("name".to_owned(), name.into()),
        ("trainable".to_owned(), true.into()),
        ("dtype".to_owned(), policy),
        ("layer".to_owned(), inner),
    ];
    object("keras.layers", &layer.class, config)
}

/// Why a layer can't be saved.
fn problem(name: &str, model: &Model, operation: &Operation, error: &Error) -> String {
    let why = match error.kind() {
        ErrorKind::Argument { message } => message.clone(),
        _ => error.to_string(),
    };
    format!("'{name}' ({}): {why}", operation.kind(model))
}

/// The class that a model has.
pub(super) fn class_of(model: &Model) -> &'static str {
    match Graph::of(model).is_sequence() {
        true => "Sequential",
        false => "Functional",
    }
}

fn input_layer(port: &Port, name: &str, input: DataType) -> Json {
    let config = vec![
        ("batch_shape".to_owned(), batch_shape(&port.shape)),
        (
            "dtype".to_owned(),
            port.dtype.unwrap_or(input).to_string().into(),
        ),
        ("name".to_owned(), name.into()),
    ];
    let mut layer = object("keras.layers", "InputLayer", config);
    if let Json::Object(members) = &mut layer {
        members.push(("name".to_owned(), name.into()));
        members.push(("inbound_nodes".to_owned(), Json::List(Vec::new())));
    }
    layer
}

fn batch_shape(sample: &[i64]) -> Json {
    let sizes = sample.iter().map(|&size| match size {
        -1 => Json::Null,
        size => size.into(),
    });
    Json::List([Json::Null].into_iter().chain(sizes).collect())
}

/// Names that one model has once, without the paths of the models around it.
#[derive(Default)]
struct Names(BTreeMap<String, usize>);

impl Names {
    fn of(&mut self, path: &str) -> String {
        let name = path.rsplit('/').next().unwrap_or(path);
        let mut unique = name.to_owned();
        let mut number = 0;
        while self.0.contains_key(&unique) {
            number += 1;
            unique = format!("{name}_{number}");
        }
        self.0.insert(unique.clone(), number);
        unique
    }
}

impl Graph {
    /// The calls of a layer, as a configuration lists them.
    fn calls(
        &self,
        model: &Model,
        operation: &Operation,
        first: &KerasLayer,
        names: &[String],
    ) -> Vec<Json> {
        let Operation::Layer(steps) = operation else {
            return Vec::new();
        };
        let calls = steps.iter().map(|&step| {
            let call = &model.steps()[step];
            // How it is called depends on the inputs of each call.
            let described = call.call.keras.as_ref().and_then(|one| one.as_ref().ok());
            let style = described.map_or(first.call, |one| one.call);
            let tensors = call.inputs.iter().zip(&call.call.parents);
            let tensors = tensors.map(|(&value, node)| {
                let at = self.origins[value];
                let history = history(&names[at.0], at.1, at.2);
                let config = Json::object([
                    ("shape", batch_shape(node.shape())),
                    ("dtype", "float32".into()),
                    ("keras_history", history),
                ]);
                Json::object([
                    ("class_name", "__keras_tensor__".into()),
                    ("config", config),
                ])
            });
            arguments(style, tensors.collect())
        });
        calls.collect()
    }

    /// The inputs and the outputs of a model.
    fn ends(&self, model: &Model, names: &[String]) -> (Json, Json) {
        let history_of = |port: &Port| {
            let at = self.origins[port.value];
            // A functional model has a call of its own before all others.
            let is_functional = match &self.operations[at.0] {
                Operation::Input(_) => false,
                Operation::Layer(steps) => {
                    let keras = &model.steps()[steps[0]].call.keras;
                    let inner = keras
                        .as_ref()
                        .and_then(|one| one.as_ref().ok()?.model::<Model>());
                    inner.is_some_and(|inner| class_of(inner) == "Functional")
                }
            };
            history(&names[at.0], at.1 + usize::from(is_functional), at.2)
        };
        let list = |ports: &[Port]| match ports {
            [port] => history_of(port),
            _ => Json::List(ports.iter().map(history_of).collect()),
        };
        let outputs = match model.outputs() {
            [port] => history_of(port),
            ports if self.outputs_by_layer => list(ports),
            ports => {
                let named = ports
                    .iter()
                    .map(|port| (port.name.clone(), history_of(port)));
                Json::Object(named.collect())
            }
        };
        (list(model.inputs()), outputs)
    }
}

/// `[layer, call, output]`
fn history(layer: &str, call: usize, output: usize) -> Json {
    Json::List(vec![
        layer.into(),
        (call as i64).into(),
        (output as i64).into(),
    ])
}

/// The arguments of a call.
fn arguments(style: Arguments, mut tensors: Vec<Json>) -> Json {
    let mut named = Vec::new();
    let args = match style {
        Arguments::Each => tensors,
        Arguments::List => vec![Json::List(tensors)],
        Arguments::States => {
            let states = tensors.split_off(tensors.len().min(1));
            named.push(("initial_state".to_owned(), Json::List(states)));
            tensors
        }
        Arguments::Reversed => {
            named.push(("reverse".to_owned(), true.into()));
            tensors
        }
        Arguments::Attend { causal, list } => {
            if causal {
                named.push(("use_causal_mask".to_owned(), true.into()));
            }
            if let [only] = tensors.as_slice() {
                tensors.push(only.clone());
            }
            if list {
                vec![Json::List(tensors)]
            } else {
                if tensors.len() > 2 {
                    named.push(("key".to_owned(), tensors.remove(2)));
                }
                tensors
            }
        }
    };
    Json::object([("args", Json::List(args)), ("kwargs", Json::Object(named))])
}
