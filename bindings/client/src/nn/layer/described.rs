//! What Keras' files say of a layer.

use std::any::Any;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_core::{Error, Result};

use crate::formats::json::Json;
use crate::nn::functional::{ConvOptions, Padding};
use crate::nn::{Activation, Constraint, Fans, Initializer, Policy, Regularizer};

/// How Keras' files describe a layer: its class, its options, and where its variables are.
#[derive(Clone, Debug)]
pub struct KerasLayer {
    pub(crate) class: String,
    pub(crate) config: Vec<(String, Json)>,
    pub(crate) places: Places,
    pub(crate) call: Arguments,
    /// The name that a file gave it.
    pub(crate) name: Option<String>,
    /// What several calls of one layer have in common.
    pub(crate) identity: Option<u64>,
    /// The model that the layer is, or is around.
    pub(crate) model: Option<Inside>,
    /// The name of the model that the layer is around.
    pub(crate) around: Option<String>,
    /// What the file that it was read from had beside the options.
    pub(crate) outer: Option<Arc<Json>>,
}

/// A model that is a layer. Models are made of layers, so this file doesn't name their type.
#[derive(Clone)]
pub(crate) struct Inside(pub Arc<dyn Any + Send + Sync>);

impl fmt::Debug for Inside {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Inside")
    }
}

/// Where a file has a layer's variables, in the order in which the layer makes them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Places {
    /// All of them in one object: the layer for an empty path, or one inside.
    Within(String),
    Listed(Vec<String>),
}

/// How Keras is given the inputs of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arguments {
    Each,
    /// A list as the only argument.
    List,
    /// Queries, values and keys.
    Attend {
        causal: bool,
        list: bool,
    },
    /// A sequence, and the states that it begins with.
    States,
    /// What a layer with two ways is given on its way back.
    Reversed,
}

/// A number that no other layer has.
pub(crate) fn fresh_identity() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl KerasLayer {
    /// A layer of one of Keras' classes, whose variables are its own.
    pub(crate) fn new(class: impl Into<String>) -> Self {
        Self {
            class: class.into(),
            config: Vec::new(),
            places: Places::Within(String::new()),
            call: Arguments::Each,
            name: None,
            identity: None,
            model: None,
            around: None,
            outer: None,
        }
    }

    /// The model that the layer is, if it is one.
    pub(crate) fn model<M: 'static>(&self) -> Option<&M> {
        match self.around {
            Some(_) => None,
            None => self.inner(),
        }
    }

    /// The model that the layer is, or is around.
    pub(crate) fn inner<M: 'static>(&self) -> Option<&M> {
        self.model.as_ref()?.0.downcast_ref()
    }

    /// A layer around one that is a model.
    ///
    /// # Errors
    /// For a layer that has several inputs, or has a model around it.
    pub(crate) fn around(self, layer: Self) -> Result<Self> {
        if layer.around.is_some() || layer.call != Arguments::Each {
            return Err(Error::argument(format!(
                "{} over a model of several inputs, or over another layer like it, can't be described",
                self.class
            )));
        }
        Ok(Self {
            model: layer.model,
            around: Some(layer.name.unwrap_or_else(|| "model".to_owned())),
            ..self
        })
    }

    /// Where files have a variable once more: its number in the layer, and the place.
    pub(crate) fn copies(&self) -> &'static [(usize, &'static str)] {
        match &*self.class {
            // The kernel inside of it is one of its own, too.
            "SpectralNormalization" => &[(0, "vars/0")],
            _ => &[],
        }
    }

    /// Says the layer's policy, unless an inner one has said its own. Without one it is float32.
    pub(crate) fn with_policy(self, policy: Policy) -> Self {
        match self.config.iter().any(|(key, _)| key == "dtype") {
            true => self,
            false => self.set("dtype", policy_json(policy)),
        }
    }

    pub(crate) fn set(mut self, key: &str, value: impl Into<Json>) -> Self {
        self.config.push((key.to_owned(), value.into()));
        self
    }

    pub(crate) fn call(self, call: Arguments) -> Self {
        Self { call, ..self }
    }

    pub(crate) fn within(self, place: &str) -> Self {
        let places = Places::Within(place.to_owned());
        Self { places, ..self }
    }

    pub(crate) fn listed(self, places: Vec<String>) -> Self {
        let places = Places::Listed(places);
        Self { places, ..self }
    }

    /// The options of windows that move over so many dimensions.
    pub(crate) fn windows(self, size: &[i64], strides: Vec<i64>, padding: Padding) -> Self {
        self.set("kernel_size", size)
            .set("strides", strides)
            .set("padding", padding_name(padding))
    }

    /// The options that convolutions have.
    pub(crate) fn conv(self, size: &[i64], options: &ConvOptions) -> Self {
        let dims = size.len();
        self.windows(size, sized(options.strides, dims), options.padding)
            .set("dilation_rate", sized(options.dilations, dims))
    }

    /// A function and whether there is a bias.
    pub(crate) fn dense(self, activation: Activation, use_bias: bool) -> Result<Self> {
        Ok(self
            .set("activation", function(activation)?)
            .set("use_bias", use_bias))
    }

    /// An object of Keras inside of another.
    pub(crate) fn object(self, module: &str) -> Json {
        object(module, &self.class, self.config)
    }
}

/// A policy, as Keras writes it.
pub(crate) fn policy_json(policy: Policy) -> Json {
    match policy {
        // Keras reads the bare name, too.
        Policy::Float32 => policy.name().into(),
        _ => object(
            "keras",
            "DTypePolicy",
            vec![("name".to_owned(), policy.name().into())],
        ),
    }
}

/// An object of a class, as Keras writes it.
pub(crate) fn object(module: &str, class: &str, config: Vec<(String, Json)>) -> Json {
    Json::object([
        ("module", module.into()),
        ("class_name", class.into()),
        ("config", Json::Object(config)),
        ("registered_name", Json::Null),
    ])
}

/// The first numbers of a pair: as many as there are dimensions.
pub(crate) fn sized(pair: (i64, i64), dims: usize) -> Vec<i64> {
    let mut numbers = vec![pair.0, pair.1];
    numbers.truncate(dims);
    numbers
}

/// Over how many dimensions windows move: those of the input but the channels.
pub(crate) fn dims_of(inputs: &[&[i64]]) -> usize {
    inputs
        .first()
        .map_or(1, |input| input.len().saturating_sub(1))
}

/// Numbers, and a single one without a list.
pub(crate) fn numbers(numbers: &[f32]) -> Json {
    match numbers {
        &[one] => one.into(),
        several => Json::List(several.iter().map(|&one| one.into()).collect()),
    }
}

/// Two numbers for each dimension; one dimension has one pair.
pub(crate) fn pairs(sides: &[(i64, i64)]) -> Json {
    match sides {
        [(first, last)] => [*first, *last].as_slice().into(),
        _ => {
            let pair = |(first, last): &(i64, i64)| [*first, *last].as_slice().into();
            Json::List(sides.iter().map(pair).collect())
        }
    }
}

pub(crate) fn padding_name(padding: Padding) -> &'static str {
    match padding {
        Padding::Valid => "valid",
        Padding::Same => "same",
        Padding::Causal => "causal",
    }
}

/// A function, by the name that Keras has for it, or as one of its layers.
pub(crate) fn function(activation: Activation) -> Result<Json> {
    if let Some(name) = activation.keras_name() {
        return Ok(name.into());
    }
    let layer = match activation {
        Activation::LeakyRelu(slope) => KerasLayer::new("LeakyReLU").set("negative_slope", slope),
        Activation::Elu(alpha) => KerasLayer::new("ELU").set("alpha", alpha),
        other => {
            return Err(Error::argument(format!(
                "Keras has no function by name that is {other:?}"
            )));
        }
    };
    Ok(layer.object("keras.layers"))
}

/// The first values of a variable.
pub(crate) fn initializer(first: Initializer) -> Json {
    let layer = match first {
        Initializer::Zeros => KerasLayer::new("Zeros"),
        Initializer::Ones => KerasLayer::new("Ones"),
        Initializer::Constant(value) => KerasLayer::new("Constant").set("value", value),
        Initializer::Identity(gain) => KerasLayer::new("Identity").set("gain", gain),
        Initializer::RandomNormal(mean, deviation) => KerasLayer::new("RandomNormal")
            .set("mean", mean)
            .set("stddev", deviation),
        Initializer::TruncatedNormal(mean, deviation) => KerasLayer::new("TruncatedNormal")
            .set("mean", mean)
            .set("stddev", deviation),
        Initializer::RandomUniform(low, high) => KerasLayer::new("RandomUniform")
            .set("minval", low)
            .set("maxval", high),
        Initializer::ScaledNormal(scale, fans) => scaled(scale, fans, "truncated_normal"),
        Initializer::ScaledUniform(scale, fans) => scaled(scale, fans, "uniform"),
        Initializer::Orthogonal(gain) => KerasLayer::new("Orthogonal").set("gain", gain),
        // What an LSTM adds itself.
        Initializer::LstmBias => KerasLayer::new("Zeros"),
    };
    layer.object("keras.initializers")
}

fn scaled(scale: f32, fans: Fans, distribution: &str) -> KerasLayer {
    let mode = match fans {
        Fans::In => "fan_in",
        Fans::Out => "fan_out",
        Fans::Average => "fan_avg",
    };
    KerasLayer::new("VarianceScaling")
        .set("scale", scale)
        .set("mode", mode)
        .set("distribution", distribution)
}

/// A penalty.
pub(crate) fn penalty(regularizer: Regularizer) -> Json {
    KerasLayer::new("L1L2")
        .set("l1", regularizer.l1)
        .set("l2", regularizer.l2)
        .object("keras.regularizers")
}

/// A constraint.
pub(crate) fn constraint(constraint: &Constraint) -> Json {
    let layer = match constraint {
        Constraint::MaxNorm { max, axes } => KerasLayer::new("MaxNorm")
            .set("max_value", *max)
            .set("axis", axes.as_slice()),
        Constraint::MinMaxNorm {
            min,
            max,
            rate,
            axes,
        } => KerasLayer::new("MinMaxNorm")
            .set("min_value", *min)
            .set("max_value", *max)
            .set("rate", *rate)
            .set("axis", axes.as_slice()),
        Constraint::NonNegative => KerasLayer::new("NonNeg"),
        Constraint::UnitNorm { axes } => KerasLayer::new("UnitNorm").set("axis", axes.as_slice()),
    };
    layer.object("keras.constraints")
}
