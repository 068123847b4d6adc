//! Descriptions of Keras 2, rewritten as Keras 3 has them.

use tfp_core::{Error, Result};

use super::config::{Config, HARD_SIGMOID};
use crate::formats::json::Json;

type Members = Vec<(String, Json)>;

/// Arguments that Keras 3 has under other names, by class.
const RENAMED: &[(&str, &str, &str)] = &[
    ("InputLayer", "batch_input_shape", "batch_shape"),
    ("LeakyReLU", "alpha", "negative_slope"),
    ("ThresholdedReLU", "theta", "threshold"),
];
/// Classes that Keras 3 has under other names.
const CLASSES: &[(&str, &str)] = &[("Model", "Functional"), ("ThresholdedReLU", "ReLU")];
/// Arguments that Keras 3 refuses and that change no result. An empty class stands for all of them.
const DROPPED: &[(&str, &str)] = &[
    ("", "batch_input_shape"),
    ("", "input_length"),
    ("Attention", "causal"),
    ("AdditiveAttention", "causal"),
    ("BatchNormalization", "adjustment"),
    ("BatchNormalization", "fused"),
    ("MultiHeadAttention", "key_shape"),
    ("MultiHeadAttention", "query_shape"),
    ("MultiHeadAttention", "value_shape"),
    ("SeparableConv1D", "kernel_constraint"),
    ("SeparableConv1D", "kernel_initializer"),
    ("SeparableConv1D", "kernel_regularizer"),
    ("SeparableConv2D", "kernel_constraint"),
    ("SeparableConv2D", "kernel_initializer"),
    ("SeparableConv2D", "kernel_regularizer"),
    ("SpatialDropout1D", "trainable"),
    ("SpatialDropout2D", "trainable"),
    ("SpatialDropout3D", "trainable"),
];
/// Arguments that Keras 3 does not have, by a part of the class' name, with the only value that it has
/// a form for.
const NEUTRAL: &[(&str, &str, Json)] = &[
    ("", "time_major", Json::Bool(false)),
    ("BatchNormalization", "virtual_batch_size", Json::Null),
    ("Transpose", "groups", Json::Number(1.0)),
    ("Depthwise", "groups", Json::Number(1.0)),
    ("Separable", "groups", Json::Number(1.0)),
    ("SpatialDropout", "noise_shape", Json::Null),
    ("MultiHead", "softmax_robust_masking", Json::Bool(false)),
];
/// Where Keras 3 has the objects of arguments that end so. Early files do not say it.
const MODULES: &[(&str, &str)] = &[
    ("_initializer", "keras.initializers"),
    ("_regularizer", "keras.regularizers"),
    ("_constraint", "keras.constraints"),
];

/// Layers within layers whose names begin with `_` in archives of Keras 2.
const PRIVATE: &[&str] = &["query_dense", "key_dense", "value_dense", "output_dense"];

/// Rewrites the description of a model. Each layer that has no form in Keras 3 becomes a problem.
pub(super) fn modernize(json: &Json, problems: &mut Vec<String>) -> Result<Json> {
    model(json, problems)
}

/// Where an archive of Keras 2 has a variable that one of Keras 3 has at a place.
pub(super) fn place(place: &str) -> String {
    let parts = place.split('/').map(|part| match PRIVATE.contains(&part) {
        true => format!("_{part}"),
        false => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}

fn wrong(what: &str) -> Error {
    Error::argument(format!("{what} that Keras 2 does not write"))
}

fn text<'j>(json: &'j Json, key: &str) -> &'j str {
    json.get(key).and_then(Json::text).unwrap_or_default()
}

fn is_sequence_of(json: &Json) -> bool {
    text(json, "class_name") == "Sequential"
}

/// The name of a layer, which is in the configuration alone within a sequence.
fn name_of(layer: &Json) -> &str {
    match layer.get("name").and_then(Json::text) {
        Some(name) => name,
        None => text(layer.get("config").unwrap_or(layer), "name"),
    }
}

fn model(json: &Json, problems: &mut Vec<String>) -> Result<Json> {
    let class = text(json, "class_name");
    let config = json.get("config").unwrap_or(&Json::Null);
    let is_sequence = is_sequence_of(json);
    // Early files have the list of the layers alone.
    let list = config.list().or_else(|| config.get("layers")?.list());
    let Some(list) = list else {
        return Ok(json.clone());
    };
    let counted: Vec<&Json> = list.iter().filter(|one| has_own_call(one)).collect();
    // Keras 3 counts the own call of functional models among the outputs, too.
    let sequences = counted.iter().filter(|one| is_sequence_of(one));
    let sequences: Vec<&str> = sequences.map(|one| name_of(one)).collect();
    let counted: Vec<&str> = counted.into_iter().map(name_of).collect();
    let mut layers = Vec::new();
    if let (true, Some(input)) = (is_sequence, list.first().and_then(first_input)) {
        layers.push(input);
    }
    for one in list {
        layers.push(layer(one, &counted, problems)?);
    }
    let mut members = match config {
        Json::Object(members) => members.clone(),
        _ => Vec::new(),
    };
    set(&mut members, "layers", Json::List(layers));
    if let Some(outputs) = config.get("output_layers") {
        set(
            &mut members,
            "output_layers",
            recounted(outputs, &sequences),
        );
    }
    let mut outer = members_of(json);
    set(&mut outer, "class_name", new_class(class).into());
    set(&mut outer, "config", Json::Object(members));
    Ok(Json::Object(outer))
}

/// The input of a sequence whose first layer says its shape.
fn first_input(first: &Json) -> Option<Json> {
    let config = first.get("config")?;
    let shape = config.get("batch_input_shape")?;
    if text(first, "class_name") == "InputLayer" {
        return None;
    }
    // Words are given as numbers of any type.
    let dtype = config.get("dtype").filter(|dtype| dtype.text().is_some());
    let config = Json::object([
        ("batch_shape", shape.clone()),
        ("dtype", dtype.cloned().unwrap_or_else(|| "float32".into())),
        ("name", format!("{}_input", text(config, "name")).into()),
    ]);
    Some(Json::object([
        ("class_name", "InputLayer".into()),
        ("config", config),
    ]))
}

/// Whether calls of a layer are counted from one: those of a model with inputs, whose own call is the
/// first.
fn has_own_call(layer: &Json) -> bool {
    let layers = layer.get("config").and_then(|config| match config {
        Json::List(list) => Some(list.as_slice()),
        _ => config.get("layers")?.list(),
    });
    let is_model = matches!(
        text(layer, "class_name"),
        "Functional" | "Model" | "Sequential"
    );
    let first = layers.and_then(|layers| layers.first());
    is_model && first.is_some_and(|first| text(first, "class_name") == "InputLayer")
}

/// Whether the layer inside of a layer is a model.
pub(super) fn is_around_model(json: &Json) -> bool {
    let inner = json.get("config").and_then(|config| config.get("layer"));
    inner.is_some_and(|inner| {
        matches!(
            text(inner, "class_name"),
            "Functional" | "Model" | "Sequential"
        )
    })
}

fn layer(json: &Json, counted: &[&str], problems: &mut Vec<String>) -> Result<Json> {
    let class = text(json, "class_name");
    let mut outer = match class {
        "Functional" | "Model" | "Sequential" => members_of(&model(json, problems)?),
        "TimeDistributed" if is_around_model(json) => around_model(json, problems)?,
        _ => members_of(&match object(json) {
            Ok(made) => made,
            Err(error) => {
                problems.push(format!("'{}' ({class}): {error}", name_of(json)));
                return Ok(json.clone());
            }
        }),
    };
    if let Some(nodes) = json.get("inbound_nodes") {
        let is_causal = json
            .get("config")
            .and_then(|config| config.get("causal")?.bool());
        let wrong = || wrong(&format!("the calls of layer '{}'", name_of(json)));
        let nodes = nodes.list().ok_or_else(wrong)?.iter();
        let nodes = nodes.map(|node| {
            let entries = node.list().ok_or_else(wrong)?;
            // Functions of TensorFlow have the only tensor without a list.
            let entries = match tensor(entries, counted) {
                Some(_) => std::slice::from_ref(node),
                None => entries,
            };
            Ok(call(entries, counted, is_causal == Some(true)))
        });
        let nodes = nodes.collect::<Result<_>>()?;
        set(&mut outer, "inbound_nodes", Json::List(nodes));
    }
    Ok(Json::Object(outer))
}

/// Rewrites a layer around a model.
fn around_model(json: &Json, problems: &mut Vec<String>) -> Result<Members> {
    let mut outer = members_of(json);
    let mut config = members_of(json.get("config").unwrap_or(&Json::Null));
    let inner = config.iter().find(|(key, _)| key == "layer");
    let inner = model(inner.map_or(&Json::Null, |(_, inner)| inner), problems)?;
    set(&mut config, "layer", inner);
    set(&mut outer, "config", Json::Object(config));
    Ok(outer)
}

/// Rewrites an object and those inside of it.
fn object(json: &Json) -> Result<Json> {
    let class = text(json, "class_name");
    let Some(Json::Object(config)) = json.get("config") else {
        return Ok(json.clone());
    };
    let mut members = Members::new();
    for (key, value) in config {
        if let Some((.., neutral)) = NEUTRAL
            .iter()
            .find(|(of, name, _)| name == key && class.contains(of))
        {
            if value != neutral {
                return Err(Config::unsupported(key));
            }
            continue;
        }
        let renamed = RENAMED
            .iter()
            .find(|(of, old, _)| *of == class && old == key);
        let key = match renamed {
            Some((.., new)) => *new,
            None => key.as_str(),
        };
        if DROPPED
            .iter()
            .any(|(of, name)| *name == key && (of.is_empty() || *of == class))
        {
            continue;
        }
        members.push((key.to_owned(), argument_of(class, key, value)?));
    }
    if class == "Bidirectional" {
        add_backward(&mut members);
    }
    let mut outer = members_of(json);
    set(&mut outer, "class_name", new_class(class).into());
    set(&mut outer, "config", Json::Object(members));
    if is_layer(json) {
        set(&mut outer, "module", "keras.layers".into());
        set(&mut outer, "registered_name", Json::Null);
    }
    Ok(Json::Object(outer))
}

/// Rewrites the value of an argument of an object.
fn argument_of(class: &str, key: &str, value: &Json) -> Result<Json> {
    let is_function = key == "activation" || key == "recurrent_activation";
    let module = MODULES.iter().find(|(end, _)| key.ends_with(end));
    Ok(match value {
        Json::Text(name) if is_function && name == "hard_sigmoid" => Json::object([
            ("class_name", HARD_SIGMOID.into()),
            ("config", Json::Object(Vec::new())),
        ]),
        // Of one axis, Keras 3 wants the number.
        Json::List(axes) if key == "axis" && axes.len() == 1 && class == "BatchNormalization" => {
            axes[0].clone()
        }
        Json::List(list) => Json::List(list.iter().map(object).collect::<Result<_>>()?),
        Json::Object(_) if key == "dtype" => match value.get("config").map(|one| text(one, "name"))
        {
            Some(name) if !name.is_empty() => name.into(),
            _ => value.clone(),
        },
        Json::Object(_) => {
            let mut members = members_of(&object(value)?);
            if let Some((_, module)) = module {
                set(&mut members, "module", (*module).into());
                set(&mut members, "registered_name", Json::Null);
            }
            Json::Object(members)
        }
        other => other.clone(),
    })
}

/// Whether an object is a layer: others have a module, or no name.
fn is_layer(json: &Json) -> bool {
    json.get("config")
        .is_some_and(|config| config.get("name").is_some() && config.get("dtype").is_some())
}

/// Whether a description has a function that Keras 3 computes in another way.
pub(super) fn has_old_function(json: &Json) -> bool {
    match json {
        Json::Object(members) => members.iter().any(|(key, value)| {
            let is_old = key == "class_name" && value.text() == Some(HARD_SIGMOID);
            is_old || has_old_function(value)
        }),
        Json::List(list) => list.iter().any(has_old_function),
        _ => false,
    }
}

/// The layer that goes backwards is like the other one where the file has none.
fn add_backward(config: &mut Members) {
    let of = |key: &str| config.iter().find(|(one, _)| one == key);
    let known = of("backward_layer").is_some_and(|(_, layer)| *layer != Json::Null);
    let Some((_, ahead)) = of("layer").filter(|_| !known) else {
        return;
    };
    let mut layer = members_of(ahead);
    let mut inner = members_of(ahead.get("config").unwrap_or(&Json::Null));
    let goes_back = inner.iter().find(|(key, _)| key == "go_backwards");
    let goes_back = goes_back.and_then(|(_, value)| value.bool());
    set(&mut inner, "go_backwards", (goes_back != Some(true)).into());
    let name = format!("backward_{}", text(&Json::Object(inner.clone()), "name"));
    set(&mut inner, "name", name.into());
    set(&mut layer, "config", Json::Object(inner));
    set(config, "backward_layer", Json::Object(layer));
}

/// Rewrites a call: a list of tensors, each with the arguments by name.
fn call(entries: &[Json], counted: &[&str], is_causal: bool) -> Json {
    let mut tensors = Vec::new();
    let mut named = Members::new();
    for entry in entries {
        let list = entry.list().unwrap_or_default();
        match tensor(list, counted) {
            Some(tensor) => tensors.push(tensor),
            // The reader of calls says that it has no form for it.
            None => named.push(("a constant".to_owned(), true.into())),
        }
        if let (true, Some(Json::Object(more))) = (named.is_empty(), list.get(3)) {
            let more = more.iter();
            named.extend(more.map(|(key, value)| (key.clone(), argument(value, counted))));
        }
    }
    if is_causal {
        named.push(("use_causal_mask".to_owned(), true.into()));
    }
    if tensors.len() > 1 {
        tensors = vec![Json::List(tensors)];
    }
    Json::object([
        ("args", Json::List(tensors)),
        ("kwargs", Json::Object(named)),
    ])
}

/// An argument by name, which may be tensors.
fn argument(json: &Json, counted: &[&str]) -> Json {
    let Json::List(list) = json else {
        return json.clone();
    };
    let tensor = tensor(list, counted);
    tensor.unwrap_or_else(|| Json::List(list.iter().map(|one| argument(one, counted)).collect()))
}

/// `[layer, call, output, ..]`
fn tensor(list: &[Json], counted: &[&str]) -> Option<Json> {
    let [Json::Text(_), Json::Number(_), Json::Number(_), ..] = list else {
        return None;
    };
    let history = Json::List(list[..3].to_vec());
    let history = recounted(&history, counted);
    let config = Json::object([("keras_history", history)]);
    Some(Json::object([
        ("class_name", "__keras_tensor__".into()),
        ("config", config),
    ]))
}

/// Tensors whose calls are counted from zero.
fn recounted(json: &Json, counted: &[&str]) -> Json {
    match json {
        Json::List(list) => match list.as_slice() {
            [Json::Text(name), Json::Number(call), output] if counted.contains(&name.as_str()) => {
                let call = Json::Number((call - 1.0).max(0.0));
                Json::List(vec![Json::Text(name.clone()), call, output.clone()])
            }
            _ => Json::List(list.iter().map(|one| recounted(one, counted)).collect()),
        },
        Json::Object(members) => {
            let of = |(key, one): &(String, Json)| (key.clone(), recounted(one, counted));
            Json::Object(members.iter().map(of).collect())
        }
        _ => json.clone(),
    }
}

fn new_class(class: &str) -> &str {
    let found = CLASSES.iter().find(|(old, _)| *old == class);
    found.map_or(class, |(_, new)| new)
}

fn members_of(json: &Json) -> Members {
    match json {
        Json::Object(members) => members.clone(),
        _ => Members::new(),
    }
}

fn set(members: &mut Members, key: &str, value: Json) {
    members.retain(|(one, _)| one != key);
    members.push((key.to_owned(), value));
}
