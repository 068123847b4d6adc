//! The calls of a layer, as a configuration lists them.

use tfp_core::{Error, Result};

use super::config::object;
use crate::formats::json::Json;

/// An output of a call of a layer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Value {
    pub layer: String,
    pub call: usize,
    pub output: usize,
}

/// What is read of a call.
#[derive(Debug, Default)]
pub(super) struct Call {
    pub inputs: Vec<Value>,
    /// The masks: Keras notes those that come with the inputs, too.
    pub masks: Vec<Value>,
    /// Whether each step sees only those before it.
    pub is_causal: bool,
    /// Whether a layer with two ways goes back.
    pub is_reversed: bool,
    /// The name of an argument that would change the result and can't be read.
    pub unknown: Option<String>,
}

/// The calls of a layer.
pub(super) fn calls(json: &Json) -> Result<Vec<Call>> {
    let list = json.get("inbound_nodes").and_then(Json::list);
    let list = list.unwrap_or_default().iter();
    list.map(call).collect()
}

fn call(json: &Json) -> Result<Call> {
    let wrong = || Error::argument("a call of a layer that Keras 3 does not write");
    let arguments = json.get("args").and_then(Json::list).ok_or_else(wrong)?;
    let mut call = Call::default();
    for argument in arguments {
        tensors(argument, &mut call.inputs);
    }
    let Some(Json::Object(named)) = json.get("kwargs") else {
        return Ok(call);
    };
    for key in ["query", "value", "key", "initial_state"] {
        let found = named.iter().find(|(name, _)| name == key);
        if let Some((_, json)) = found {
            tensors(json, &mut call.inputs);
        }
    }
    for (name, json) in named {
        match (name.as_str(), json) {
            (_, Json::Null) | ("query" | "value" | "key" | "initial_state", _) => {}
            ("mask" | "query_mask" | "value_mask" | "key_mask", _) => {
                tensors(json, &mut call.masks);
            }
            ("reverse", Json::Bool(is_reversed)) => call.is_reversed = *is_reversed,
            ("use_causal_mask", Json::Bool(is_causal)) => call.is_causal = *is_causal,
            // In a functional model, that of the whole model's call counts.
            ("training", _) | (_, Json::Bool(false)) => {}
            _ => call.unknown = Some(name.clone()),
        }
    }
    Ok(call)
}

/// Collects the tensors of an argument.
fn tensors(json: &Json, into: &mut Vec<Value>) {
    if let Json::List(list) = json {
        list.iter().for_each(|one| tensors(one, into));
    } else if let Some(("__keras_tensor__", config)) = object(json) {
        into.extend(config.0.get("keras_history").and_then(history));
    }
}

/// `[layer, call, output]`
pub(super) fn history(json: &Json) -> Option<Value> {
    match json.list()? {
        [layer, call, output] => Some(Value {
            layer: layer.text()?.to_owned(),
            call: usize::try_from(call.integer()?).ok()?,
            output: usize::try_from(output.integer()?).ok()?,
        }),
        _ => None,
    }
}

/// Why the calls of a layer can't be made, if they can't.
pub(super) fn problem(calls: &[Call]) -> Option<String> {
    if let Some(name) = calls.iter().find_map(|call| call.unknown.as_ref()) {
        return Some(format!("a call with '{name}' is not supported"));
    }
    let causal = calls.iter().filter(|call| call.is_causal).count();
    let mixed = causal > 0 && causal < calls.len();
    mixed.then(|| "calls with and without a causal mask are not supported".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem_of(kwargs: &[&str]) -> Result<Option<String>> {
        let call = |kwargs: &&str| format!(r#"{{"args": [], "kwargs": {{{kwargs}}}}}"#);
        let nodes: Vec<String> = kwargs.iter().map(call).collect();
        let json = format!(r#"{{"inbound_nodes": [{}]}}"#, nodes.join(", "));
        Ok(problem(&calls(&Json::parse(json.as_bytes())?)?))
    }

    #[test]
    fn arguments_that_change_the_result_are_refused() -> Result<()> {
        let plain = r#""training": false, "mask": null, "return_attention_scores": false"#;
        assert_eq!(problem_of(&[plain])?, None);
        let mask = r#""attention_mask": {"class_name": "__keras_tensor__", "config": {}}"#;
        assert!(problem_of(&[mask])?.is_some_and(|why| why.contains("'attention_mask'")));
        let scores = problem_of(&[plain, r#""return_attention_scores": true"#])?;
        assert!(scores.is_some_and(|why| why.contains("'return_attention_scores'")));
        Ok(())
    }

    #[test]
    fn a_causal_mask_is_for_all_calls_of_a_layer() -> Result<()> {
        let causal = r#""use_causal_mask": true"#;
        assert_eq!(problem_of(&[causal, causal])?, None);
        assert!(problem_of(&[causal, ""])?.is_some_and(|why| why.contains("causal")));
        Ok(())
    }
}
