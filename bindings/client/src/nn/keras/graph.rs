//! The graph of layers of a configuration.

mod check;
mod loaded;
mod made;
mod places;
#[cfg(test)]
mod tests;
mod vocabulary;

use tfp_core::{DataType, Error, ErrorKind, Result};

use self::vocabulary::{Vocabularies, with_vocabulary};
use super::calls::{Value, calls, history, problem};
use super::config::{Config, object};
use super::described::Described;
use super::keras_2::is_around_model;
use super::layers::{arithmetic, describe, function_policy, is_function};
use super::names::{numbered, snake_case};
use crate::formats::json::Json;
use crate::nn::layer::described::KerasLayer;

/// How deep models may lie in each other.
const DEEPEST: usize = 16;

/// A model of a configuration.
pub(super) struct Graph {
    name: String,
    layers: Vec<Entry>,
    inputs: Vec<Value>,
    /// The outputs with their names.
    outputs: Vec<(String, Value)>,
    is_sequence: bool,
}

/// A layer.
struct Entry {
    name: String,
    class: String,
    kind: Kind,
    /// What each call is given.
    calls: Vec<Vec<Value>>,
    /// The masks of each call, where the file names some.
    masks: Vec<Vec<Value>>,
    /// Whether each call is one of the way back.
    reversed: Vec<bool>,
    is_trainable: bool,
}

enum Kind {
    Input(DataType, Vec<i64>),
    Layer(Described, Box<KerasLayer>),
    Model(Box<Graph>),
    /// A model that computes each step of a sequence.
    EachStep(Box<Graph>),
    /// One whose description failed, which is a problem only where it is used.
    Unknown(String),
}

impl Graph {
    /// Reads a configuration. Layers that are not supported become problems. `place` is where the file
    /// has the model's variables.
    pub fn parse(json: &Json, place: &str, problems: &mut Vec<String>) -> Result<Self> {
        Self::parse_with(json, place, &|_| None, problems)
    }

    /// Reads a configuration, of a file that has more for some of its layers' places.
    pub fn parse_with(
        json: &Json,
        place: &str,
        more: &Vocabularies<'_>,
        problems: &mut Vec<String>,
    ) -> Result<Self> {
        Self::parse_at(json, place, more, problems, 0)
    }

    fn parse_at(
        json: &Json,
        place: &str,
        more: &Vocabularies<'_>,
        problems: &mut Vec<String>,
        depth: usize,
    ) -> Result<Self> {
        let (class, config) =
            object(json).ok_or_else(|| Error::argument("the configuration is not one of Keras"))?;
        if depth > DEEPEST {
            return Err(Error::argument("its models lie too deep in each other"));
        }
        let list = config.0.get("layers").and_then(Json::list);
        let (Some(list), "Functional" | "Sequential" | "Model") = (list, class) else {
            return Err(Error::argument(format!(
                "a model of the class {class}; functional and sequential ones can be read, since others \
                 have their computation in Python"
            )));
        };
        let mut graph = Self {
            name: config.text("name").unwrap_or("model").to_owned(),
            layers: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            is_sequence: class == "Sequential",
        };
        let mut names = Vec::new();
        for json in list {
            let (class, inner) = object(json)
                .ok_or_else(|| Error::argument("a layer that is not an object of Keras"))?;
            let name = json.get("name").or_else(|| inner.0.get("name"));
            let name = name.and_then(Json::text).unwrap_or(class).to_owned();
            let calls = calls(json)?;
            let place = match class {
                "InputLayer" => String::new(),
                _ => format!(
                    "{place}layers/{}/",
                    numbered(&snake_case(class), &mut names)
                ),
            };
            let is_causal = calls.iter().any(|call| call.is_causal);
            let is_reversed = calls.iter().any(|call| call.is_reversed);
            let is_trainable = inner.0.get("trainable").and_then(Json::bool) != Some(false);
            let kind = match (class, problem(&calls)) {
                ("InputLayer", _) => input(inner)?,
                (_, Some(problem)) => Kind::Unknown(problem),
                ("Functional" | "Sequential", None) => Kind::Model(Box::new(Self::parse_at(
                    json,
                    &place,
                    more,
                    problems,
                    depth + 1,
                )?)),
                ("TimeDistributed", None) if is_around_model(json) => {
                    let model = inner.0.get("layer").unwrap_or(&Json::Null);
                    let place = format!("{place}layer/");
                    let model = Self::parse_at(model, &place, more, problems, depth + 1)?;
                    Kind::EachStep(Box::new(model))
                }
                (_, None) => match layer(&with_vocabulary(json, &place, more), is_causal) {
                    Ok((Described { reversed: None, .. }, _)) if is_reversed => {
                        Kind::Unknown("a call with 'reverse' is not supported".to_owned())
                    }
                    Ok((mut described, keras)) => {
                        for one in &mut described.places {
                            *one = format!("{place}{one}");
                        }
                        Kind::Layer(described, Box::new(keras))
                    }
                    Err(error) => Kind::Unknown(match error.kind() {
                        ErrorKind::Argument { message } => message.clone(),
                        _ => error.to_string(),
                    }),
                },
            };
            graph.layers.push(Entry {
                name,
                class: class.to_owned(),
                kind,
                masks: calls.iter().map(|call| call.masks.clone()).collect(),
                reversed: calls.iter().map(|call| call.is_reversed).collect(),
                calls: calls.into_iter().map(|call| call.inputs).collect(),
                is_trainable,
            });
        }
        if graph.is_sequence {
            graph.chain(config)?;
        } else {
            graph.inputs = ends(config, "input_layers")?
                .into_iter()
                .map(|(_, one)| one)
                .collect();
            graph.outputs = ends(config, "output_layers")?;
            // A functional model counts a call of its own before all others.
            for (_, value) in &mut graph.outputs {
                let is_inner = |entry: &&Entry| entry.name == value.layer;
                let inner = graph.layers.iter().find(is_inner);
                if inner.is_some_and(|entry| entry.class == "Functional") {
                    value.call = value.call.saturating_sub(1);
                }
            }
        }
        graph.check(problems)?;
        Ok(graph)
    }

    /// Makes each layer of a sequence be called with the one before.
    fn chain(&mut self, config: Config<'_>) -> Result<()> {
        let has_input = |entry: &Entry| matches!(entry.kind, Kind::Input(..));
        if !self.layers.first().is_some_and(has_input) {
            let shape = config.shape("build_input_shape").map_err(|_| {
                Error::argument("a sequential model that was not built: it knows no input shape")
            })?;
            let sample = shape.get(1..).unwrap_or_default().to_vec();
            let input = Entry {
                name: format!("{}_input", self.name),
                class: "InputLayer".to_owned(),
                kind: Kind::Input(DataType::FLOAT, sample),
                calls: Vec::new(),
                masks: Vec::new(),
                reversed: Vec::new(),
                is_trainable: true,
            };
            self.layers.insert(0, input);
        }
        let mut before: Option<Value> = None;
        for entry in &mut self.layers {
            if let Some(before) = before.take() {
                entry.calls = vec![vec![before]];
            }
            before = Some(Value {
                layer: entry.name.clone(),
                call: 0,
                output: 0,
            });
        }
        let named = |entry: &Entry| Value {
            layer: entry.name.clone(),
            call: 0,
            output: 0,
        };
        self.inputs = self.layers.first().map(named).into_iter().collect();
        let last = self.layers.last().map(named);
        self.outputs = last
            .map(|last| (last.layer.clone(), last))
            .into_iter()
            .collect();
        Ok(())
    }
}

/// Describes the layer of an entry, and what is written of it.
fn layer(json: &Json, is_causal: bool) -> Result<(Described, KerasLayer)> {
    let (class, config) =
        object(json).ok_or_else(|| Error::argument("a layer that is not an object of Keras"))?;
    let described = match arithmetic(json) {
        Some(function) => Described::plain(function)?,
        None => describe(class, config, is_causal)?,
    };
    let described = match function_policy(json) {
        Some(policy) => described.with_policy(policy),
        None => described,
    };
    let keras = match is_function(json) {
        // Layers take its place in what is written.
        true => KerasLayer {
            name: config.text("name").ok().map(str::to_owned),
            ..described.layer.keras(&[])?
        },
        false => described.keras(json, is_causal),
    };
    Ok((described, keras))
}

fn input(config: Config<'_>) -> Result<Kind> {
    let shape = config.shape("batch_shape")?;
    let sample = shape.get(1..).unwrap_or_default().to_vec();
    let dtype = match config.text("dtype").unwrap_or("float32") {
        "float32" => DataType::FLOAT,
        "float16" => DataType::HALF,
        "bfloat16" => DataType::BFLOAT16,
        "float64" => DataType::DOUBLE,
        "int32" => DataType::INT32,
        "int64" => DataType::INT64,
        "bool" => DataType::BOOL,
        "string" => DataType::STRING,
        other => return Err(Config::unsupported(&format!("an input of type {other}"))),
    };
    Ok(Kind::Input(dtype, sample))
}

/// The inputs or outputs of a model, with their names.
fn ends(config: Config<'_>, key: &str) -> Result<Vec<(String, Value)>> {
    let wrong = || Error::argument(format!("'{key}' is not a list of values"));
    let json = config.0.get(key).ok_or_else(wrong)?;
    let named = |json: &Json| {
        let value = history(json).ok_or_else(wrong)?;
        Ok((value.layer.clone(), value))
    };
    match json {
        Json::List(list) if history(json).is_none() => list.iter().map(named).collect(),
        Json::List(_) => Ok(vec![named(json)?]),
        Json::Object(members) => {
            let of = |(name, json): &(String, Json)| Ok((name.clone(), named(json)?.1));
            members.iter().map(of).collect()
        }
        _ => Err(wrong()),
    }
}
