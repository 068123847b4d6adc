//! The configuration of a layer, as Keras writes it.

use tfp_core::{Error, Result};

use crate::formats::json::Json;
use crate::nn::functional::{ConvOptions, Padding};
use crate::nn::layer::Interpolation;
use crate::nn::{Activation, Constraint, Regularizer};

/// What stands for a function of Keras 2 that Keras 3 computes in another way: `clip(0.2 x + 0.5, 0, 1)`.
pub(super) const HARD_SIGMOID: &str = "keras_2_hard_sigmoid";
const HARD_SIGMOID_SLOPE: f32 = 0.2;

/// The configuration of a layer.
#[derive(Clone, Copy)]
pub(super) struct Config<'j>(pub &'j Json);

impl<'j> Config<'j> {
    fn wrong(key: &str, expected: &str) -> Error {
        Error::argument(format!("'{key}' is not {expected}"))
    }

    /// An error about what is not supported.
    pub fn unsupported(what: &str) -> Error {
        Error::argument(format!("{what} is not supported"))
    }

    pub fn has(self, key: &str) -> bool {
        self.0.get(key).is_some()
    }

    pub fn integer(self, key: &str) -> Result<i64> {
        let value = self.0.get(key).and_then(Json::integer);
        value.ok_or_else(|| Self::wrong(key, "an integer"))
    }

    pub fn float(self, key: &str) -> Result<f32> {
        let value = self.0.get(key).and_then(Json::number);
        let value = value.ok_or_else(|| Self::wrong(key, "a number"))?;
        Ok(value as f32)
    }

    /// A number, or zero where there is none.
    pub fn float_or_zero(self, key: &str) -> Result<f32> {
        if self.has(key) {
            self.float(key)
        } else {
            Ok(0.0)
        }
    }

    /// A truth value, false where there is none.
    pub fn flag(self, key: &str) -> bool {
        self.0.get(key).and_then(Json::bool).unwrap_or(false)
    }

    pub fn text(self, key: &str) -> Result<&'j str> {
        let value = self.0.get(key).and_then(Json::text);
        value.ok_or_else(|| Self::wrong(key, "a text"))
    }

    /// One or several integers.
    pub fn integers(self, key: &str) -> Result<Vec<i64>> {
        let value = self.0.get(key);
        let found = value.and_then(|value| match value {
            Json::Number(_) => Some(vec![value.integer()?]),
            _ => value.list()?.iter().map(Json::integer).collect(),
        });
        found.ok_or_else(|| Self::wrong(key, "one or several integers"))
    }

    /// A number for each of some dimensions, which may be one for all.
    pub fn sizes(self, key: &str, count: usize) -> Result<Vec<i64>> {
        let found = self.integers(key)?;
        match found.as_slice() {
            &[one] => Ok(vec![one; count]),
            _ if found.len() == count => Ok(found),
            _ => Err(Self::wrong(key, &format!("{count} integers"))),
        }
    }

    /// A shape in which null stands for any size.
    pub fn shape(self, key: &str) -> Result<Vec<i64>> {
        let size = |size: &Json| match size {
            Json::Null => Some(-1),
            _ => size.integer(),
        };
        let list = self.0.get(key).and_then(Json::list);
        let found = list.and_then(|list| list.iter().map(size).collect());
        found.ok_or_else(|| Self::wrong(key, "a shape"))
    }

    /// A number, or those of nested lists in their order; none where there is nothing.
    pub fn numbers(self, key: &str) -> Result<Option<Vec<f32>>> {
        fn add(json: &Json, to: &mut Vec<f32>) -> Option<()> {
            match json {
                Json::List(list) => list.iter().try_for_each(|one| add(one, to)),
                one => {
                    to.push(one.number()? as f32);
                    Some(())
                }
            }
        }
        let Some(json) = self.0.get(key) else {
            return Ok(None);
        };
        let mut numbers = Vec::new();
        match add(json, &mut numbers) {
            Some(()) => Ok(Some(numbers)),
            None => Err(Self::wrong(key, "numbers")),
        }
    }

    /// How pixels are made.
    pub fn interpolation(self) -> Result<Interpolation> {
        match self.text("interpolation")? {
            "nearest" => Ok(Interpolation::Nearest),
            "bilinear" => Ok(Interpolation::Bilinear),
            other => Err(Self::unsupported(&format!("interpolation '{other}'"))),
        }
    }

    /// Pairs of numbers for the sides of each dimension.
    pub fn sides(self, key: &str, count: usize) -> Result<Vec<(i64, i64)>> {
        let wrong = || Self::wrong(key, &format!("two integers for each of {count} dimensions"));
        if let Ok(found) = self.integers(key) {
            return match found.as_slice() {
                [one] => Ok(vec![(*one, *one); count]),
                [first, last] if count == 1 => Ok(vec![(*first, *last)]),
                _ => Err(wrong()),
            };
        }
        let list = self.0.get(key).and_then(Json::list).ok_or_else(wrong)?;
        let pair = |pair: &Json| match pair.list()? {
            [first, last] => Some((first.integer()?, last.integer()?)),
            _ => None,
        };
        let pairs: Option<Vec<(i64, i64)>> = list.iter().map(pair).collect();
        pairs.filter(|pairs| pairs.len() == count).ok_or_else(wrong)
    }

    pub fn padding(self) -> Result<Padding> {
        Ok(match self.text("padding")? {
            "valid" => Padding::Valid,
            "same" => Padding::Same,
            "causal" => Padding::Causal,
            other => return Err(Self::unsupported(&format!("padding '{other}'"))),
        })
    }

    /// Refuses channels that come first.
    pub fn channels_last(self) -> Result<()> {
        match self.0.get("data_format").and_then(Json::text) {
            None | Some("channels_last") => Ok(()),
            Some(other) => Err(Self::unsupported(&format!("data format '{other}'"))),
        }
    }

    /// What convolutions in one or two dimensions share.
    pub fn conv_options(self, dims: usize) -> Result<ConvOptions> {
        self.channels_last()?;
        let pair = |key: &str| -> Result<(i64, i64)> {
            let sizes = match self.has(key) {
                true => self.sizes(key, dims)?,
                false => vec![1; dims],
            };
            Ok(match sizes.as_slice() {
                &[first, second] => (first, second),
                _ => (sizes.first().copied().unwrap_or(1), 1),
            })
        };
        Ok(ConvOptions {
            strides: pair("strides")?,
            dilations: pair("dilation_rate")?,
            padding: self.padding()?,
            groups: if self.has("groups") {
                self.integer("groups")?
            } else {
                1
            },
        })
    }

    /// The function of a key, linear where there is none.
    pub fn activation(self, key: &str) -> Result<Activation> {
        match self.0.get(key) {
            None => Ok(Activation::Linear),
            Some(Json::Text(name)) => activation(name),
            Some(json) if object(json).is_some_and(|(class, _)| class == "LeakyReLU") => {
                let slope = self.inner(key)?.1.float("negative_slope")?;
                Ok(Activation::LeakyRelu(slope))
            }
            Some(json) if object(json).is_some_and(|(class, _)| class == "ELU") => {
                Ok(Activation::Elu(self.inner(key)?.1.float("alpha")?))
            }
            Some(json) if object(json).is_some_and(|(class, _)| class == HARD_SIGMOID) => {
                Ok(Activation::HardSigmoidSlope(HARD_SIGMOID_SLOPE))
            }
            Some(_) => Err(Self::unsupported(&format!(
                "an '{key}' that is not one of Keras' by name"
            ))),
        }
    }

    /// The penalty of a key.
    pub fn regularizer(self, key: &str) -> Result<Option<Regularizer>> {
        let Some(json) = self.0.get(key) else {
            return Ok(None);
        };
        let class = json.get("class_name").and_then(Json::text).unwrap_or("?");
        let config = json.get("config").unwrap_or(&Json::Null);
        let factor = |key: &str| Config(config).float_or_zero(key);
        match class {
            "L1" | "L2" | "L1L2" => Ok(Some(Regularizer {
                l1: factor("l1")?,
                l2: factor("l2")?,
            })),
            other => Err(Self::unsupported(&format!("regularizer {other}"))),
        }
    }

    /// The constraint of a key.
    pub fn constraint(self, key: &str) -> Result<Option<Constraint>> {
        if self.0.get(key).is_none_or(|json| *json == Json::Null) {
            return Ok(None);
        }
        let (class, config) = self.inner(key)?;
        let axes = || config.integers("axis");
        Ok(Some(match class {
            "MaxNorm" => Constraint::MaxNorm {
                max: config.float("max_value")?,
                axes: axes()?,
            },
            "MinMaxNorm" => Constraint::MinMaxNorm {
                min: config.float("min_value")?,
                max: config.float("max_value")?,
                rate: config.float("rate")?,
                axes: axes()?,
            },
            "NonNeg" => Constraint::NonNegative,
            "UnitNorm" => Constraint::UnitNorm { axes: axes()? },
            other => return Err(Self::unsupported(&format!("constraint {other}"))),
        }))
    }

    /// The class and the configuration of an object inside.
    pub fn inner(self, key: &str) -> Result<(&'j str, Config<'j>)> {
        let json = self
            .0
            .get(key)
            .ok_or_else(|| Self::wrong(key, "an object"))?;
        object(json).ok_or_else(|| Self::wrong(key, "an object of Keras"))
    }

    /// Keys of this ending whose values are not null.
    pub fn ending(self, end: &str) -> Vec<&'j str> {
        let Json::Object(members) = self.0 else {
            return Vec::new();
        };
        let found = members
            .iter()
            .filter(|(key, value)| key.ends_with(end) && *value != Json::Null);
        found.map(|(key, _)| key.as_str()).collect()
    }
}

/// The class and the configuration of an object.
pub(super) fn object(json: &Json) -> Option<(&str, Config<'_>)> {
    let class = json.get("class_name")?.text()?;
    Some((class, Config(json.get("config")?)))
}

/// The function that has a name.
pub(super) fn activation(name: &str) -> Result<Activation> {
    Ok(match name {
        "linear" => Activation::Linear,
        "celu" => Activation::Celu(1.0),
        "elu" => Activation::Elu(1.0),
        "exponential" => Activation::Exponential,
        "gelu" => Activation::Gelu,
        "hard_shrink" => Activation::HardShrink(0.5),
        "hard_sigmoid" => Activation::HardSigmoid,
        "hard_silu" | "hard_swish" => Activation::HardSilu,
        "hard_tanh" => Activation::HardTanh,
        "leaky_relu" => Activation::LeakyRelu(0.2),
        "log_sigmoid" => Activation::LogSigmoid,
        "log_softmax" => Activation::LogSoftmax,
        "mish" => Activation::Mish,
        "relu" => Activation::Relu,
        "relu6" => Activation::Relu6,
        "selu" => Activation::Selu,
        "sigmoid" => Activation::Sigmoid,
        "silu" | "swish" => Activation::Silu,
        "soft_shrink" => Activation::SoftShrink(0.5),
        "softmax" => Activation::Softmax,
        "softplus" => Activation::Softplus,
        "softsign" => Activation::Softsign,
        "sparse_plus" => Activation::SparsePlus,
        "sparse_sigmoid" => Activation::SparseSigmoid,
        "squareplus" => Activation::Squareplus(4.0),
        "tanh" => Activation::Tanh,
        "tanh_shrink" => Activation::TanhShrink,
        other => return Err(Config::unsupported(&format!("activation '{other}'"))),
    })
}
