//! Layers that models of `keras.applications` define beside those of `keras.layers`, and their arithmetic
//! with numbers.

use tfp_core::{Error, Result};

use super::super::config::{Config, object};
use super::super::described::Described;
use crate::formats::json::Json;
use crate::nn::layer::{Built, BuiltMany, Layer, Scaling};
use crate::nn::{Initializer, Policy, Weights};
use crate::ops;

/// Describes a layer of one of these classes.
pub fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    Some(match class {
        "LayerScale" => config
            .float("init_values")
            .and_then(|first| Described::own(LayerScale { first }, 1)),
        "CustomScaleLayer" => config
            .float("scale")
            .and_then(|scale| Described::plain(ScaledSum { scale })),
        _ => return None,
    })
}

/// Whether an entry of a file is a function between layers, such as `x + y`. `.h5` files don't say so, but
/// all that is said of layers there has their type or whether they are trained.
pub fn is_function(json: &Json) -> bool {
    if let Some(module) = json.get("module").and_then(Json::text) {
        return module.starts_with("keras.src.ops") || module.starts_with("keras.ops");
    }
    let says = |key| {
        json.get("config")
            .is_some_and(|config| config.get(key).is_some())
    };
    // A pipeline has layers in place of a dtype.
    !says("dtype") && !says("trainable") && !says("layers")
}

/// The type of a tensor of real numbers, as that of a policy.
fn tensor_policy(json: &Json) -> Option<Policy> {
    let (class, config) = object(json)?;
    let dtype = config.text("dtype").ok()?;
    (class == "__keras_tensor__").then(|| Policy::named(dtype))?
}

/// The type in which a function between layers computes, as that of a policy: that of its inputs, or a
/// wider one where they differ. None where it is not known, and for what is not a function.
pub fn function_policy(json: &Json) -> Option<Policy> {
    if !is_function(json) {
        return None;
    }
    let calls = json.get("inbound_nodes")?.list()?;
    let arguments = calls.first()?.get("args")?.list()?.iter();
    let each = arguments.flat_map(|one| one.list().unwrap_or(std::slice::from_ref(one)));
    each.filter_map(tensor_policy).reduce(|one, other| {
        if one == other {
            one
        } else if [one, other].contains(&Policy::Float64) {
            Policy::Float64
        } else {
            Policy::Float32
        }
    })
}

/// The function between layers that adds, subtracts, multiplies or divides by a number, as in `x * 0.5`;
/// none for another entry of a file. Its first call says all.
pub fn arithmetic(json: &Json) -> Option<Scaling> {
    if !is_function(json) {
        return None;
    }
    let [call] = json.get("inbound_nodes")?.list()? else {
        return None;
    };
    let [first, second] = call.get("args")?.list()? else {
        return None;
    };
    // Arithmetic of integers stays with integers there.
    let is_tensor = |json: &Json| tensor_policy(json).is_some();
    let (number, is_first) = match (first.number(), second.number()) {
        (Some(number), None) if is_tensor(second) => (number as f32, true),
        (None, Some(number)) if is_tensor(first) => (number as f32, false),
        _ => return None,
    };
    let class = json.get("class_name").and_then(Json::text)?;
    let (scale, offset) = match (class, is_first) {
        ("Add", _) => (1.0, number),
        ("Subtract", false) => (1.0, -number),
        ("Subtract", true) => (-1.0, number),
        ("Multiply", _) => (number, 0.0),
        ("Divide" | "TrueDivide", false) => (1.0 / number, 0.0),
        _ => return None,
    };
    Some(Scaling {
        scale: vec![scale],
        offset: vec![offset],
    })
}

/// A factor per channel that is trained: of ConvNeXt.
struct LayerScale {
    first: f32,
}

impl Layer for LayerScale {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let channels = input.last().copied().unwrap_or(-1);
        if channels < 1 {
            return Err(Error::argument(format!(
                "LayerScale takes known channels, found samples of shape {input:?}"
            )));
        }
        let weights = weights.layer("layer_scale");
        let gamma = weights.trainable("gamma", &[channels], Initializer::Constant(self.first))?;
        Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            ops::mul(cx, x, gamma.read(cx)?)
        })
    }
}

/// `a + scale * b`: of InceptionResNetV2.
struct ScaledSum {
    scale: f32,
}

impl Layer for ScaledSum {
    fn build(&self, _: &Weights, _: &[i64]) -> Result<Built> {
        Err(Error::argument(
            "CustomScaleLayer takes two inputs, found one",
        ))
    }

    fn build_many(&self, _: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        let &[first, second] = inputs else {
            return Err(Error::argument(format!(
                "CustomScaleLayer takes two inputs, found {}",
                inputs.len()
            )));
        };
        if first != second {
            return Err(Error::argument(format!(
                "CustomScaleLayer takes inputs of one shape, found {first:?} and {second:?}"
            )));
        }
        let scale = self.scale;
        BuiltMany::new(vec![first.to_vec()], move |pass, inputs| {
            let [a, b] = inputs else {
                return Err(Error::argument("CustomScaleLayer takes two inputs"));
            };
            let cx = pass.context();
            Ok(vec![ops::add_v2(cx, a, ops::mul(cx, b, scale)?)?])
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn product(dtype: &str) -> Result<Json> {
        let text = format!(
            r#"{{"module": "keras.src.ops.numpy", "class_name": "Multiply", "config": {{}},
            "inbound_nodes": [{{"args": [{{"class_name": "__keras_tensor__", "config":
            {{"shape": [null, 3], "dtype": "{dtype}", "keras_history": ["x", 0, 0]}}}}, 0.5],
            "kwargs": {{}}}}]}}"#
        );
        Json::parse(text.as_bytes())
    }

    #[test]
    fn only_arithmetic_of_real_numbers_is_a_layer() -> Result<()> {
        let half = Scaling {
            scale: vec![0.5],
            offset: vec![0.0],
        };
        for dtype in ["float32", "float16", "bfloat16", "float64"] {
            let json = product(dtype)?;
            assert_eq!(arithmetic(&json), Some(half.clone()), "{dtype}");
            assert_eq!(function_policy(&json), Policy::named(dtype));
        }
        for other in ["int32", "bool", "mixed_float32"] {
            let json = product(other)?;
            assert_eq!((arithmetic(&json), function_policy(&json)), (None, None));
        }
        Ok(())
    }
}
