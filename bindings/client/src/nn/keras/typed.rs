//! The types of values and of layers in Keras' files.

use tfp_core::{DataType, Result, Tensor};

use crate::formats::json::Json;
use crate::nn::weights::cast_tensor;
use crate::variable::Variable;

/// Whether a value of a file is one of a variable: real numbers may be of another type.
pub(super) fn castable(value: &Tensor, variable: &Variable) -> bool {
    let (found, own) = (value.dtype(), variable.dtype());
    found == own || found.is_float() && own.is_float()
}

/// A value as these files have it. They have no bfloat16, of which float32 has all numbers.
pub(super) fn storable(value: &Tensor) -> Result<Tensor> {
    match value.dtype() {
        DataType::BFLOAT16 => cast_tensor(value.share()?, DataType::FLOAT),
        _ => value.share(),
    }
}

/// Gives layers inside of a configuration its policy, as far as they don't say theirs.
pub(super) fn inherit(config: &mut Json, policy: &Json) {
    match config {
        Json::List(list) => list.iter_mut().for_each(|one| inherit(one, policy)),
        Json::Object(members) => {
            let says = |key: &str, value: &str| {
                let mut members = members.iter();
                members.any(|(one, json)| one == key && json.text() == Some(value))
            };
            let is_layer = says("module", "keras.layers");
            for (key, value) in members {
                if let (true, Json::Object(config)) = (is_layer && key == "config", &mut *value)
                    && !config.iter().any(|(key, _)| key == "dtype")
                {
                    config.push(("dtype".to_owned(), policy.clone()));
                }
                inherit(value, policy);
            }
        }
        _ => {}
    }
}
