//! The layers of Keras, by class.

mod applied;
mod image;
mod listed;
mod prepared;
mod signal;
mod window;
mod wrapped;

use tfp_core::{Error, Result};

pub(super) use self::applied::{arithmetic, function_policy, is_function};
use self::window::{Global, conv, conv3d, kind, pair, pooling};
use super::config::{Config, object};
use super::described::Described;
use super::keras_2::has_old_function;
use crate::formats::json::Json;
use crate::nn::layer::described::{Arguments, KerasLayer};
use crate::nn::layer::{
    ActivityPenalty, Add, AlphaDropout, Average, BatchNorm, Built, BuiltMany, Concatenate,
    Conv3dTranspose, ConvTranspose, Cropping, Dense, DepthwiseConv1d, DepthwiseConv2d, Dot,
    Dropout, EinsumDense, Flatten, GaussianDropout, GaussianNoise, GroupNorm, Identity,
    Interpolation, Layer, LayerNorm, Masking, Maximum, Minimum, Multiply, PRelu, Permute, Relu,
    RepeatVector, Reshape, RmsNorm, Scaling, SeparableConv, SharedDropout, Softmax, SpatialDropout,
    Subtract, UnitNorm, UpSampling, ZeroPadding,
};
use crate::nn::{Activation, Policy, Weights};

/// Describes a layer of a class. `is_causal` is what its first call says.
pub(super) fn describe(class: &str, config: Config<'_>, is_causal: bool) -> Result<Described> {
    let described = match super::recurrent::describe(class, config, is_causal) {
        Some(found) => found?,
        None => by_class(class, config)?,
    };
    finish(class, config, described)
}

/// Adds the penalties and constraints of a layer.
fn finish(class: &str, config: Config<'_>, described: Described) -> Result<Described> {
    let policy = config.0.get("dtype").map(|dtype| match object(dtype) {
        Some((_, policy)) => policy.text("name").unwrap_or("?").to_owned(),
        None => dtype.text().unwrap_or("?").to_owned(),
    });
    // The numbers of categories are integers.
    let gives_categories = matches!(class, "Discretization" | "HashedCrossing" | "Hashing");
    let policy = match policy.as_deref() {
        None => None,
        Some("int64") if gives_categories => None,
        Some(name) => Some(
            Policy::named(name).ok_or_else(|| Config::unsupported(&format!("dtype '{name}'")))?,
        ),
    };
    let Described {
        mut layer,
        mut reversed,
        ..
    } = described;
    for key in config.ending("_regularizer") {
        let Some(regularizer) = config.regularizer(key)? else {
            continue;
        };
        let variable = key.trim_end_matches("_regularizer");
        if variable == "activity" {
            layer = Box::new(ActivityPenalty { layer, regularizer });
            continue;
        }
        let variable = variable_of(class, variable, key)?;
        layer = Box::new(layer.regularized(variable, regularizer));
        reversed = reversed.map(|back| Box::new(back.regularized(variable, regularizer)) as _);
    }
    for key in config.ending("_constraint") {
        let Some(constraint) = config.constraint(key)? else {
            continue;
        };
        let variable = key.trim_end_matches("_constraint");
        let variable = variable_of(class, variable, key)?;
        reversed =
            reversed.map(|back| Box::new(back.constrained(variable, constraint.clone())) as _);
        layer = Box::new(layer.constrained(variable, constraint));
    }
    let described = Described {
        layer,
        reversed,
        ..described
    };
    Ok(match policy {
        Some(policy) => described.with_policy(policy),
        None => described,
    })
}

/// The name of the variable that a key's first part is about.
fn variable_of<'k>(class: &str, first: &'k str, key: &str) -> Result<&'k str> {
    match (class, first) {
        (_, "recurrent") => Ok("recurrent_kernel"),
        (_, "depthwise" | "pointwise") => Err(Config::unsupported(key)),
        _ => Ok(first),
    }
}

/// The number of dimensions that a class' name ends with, as `Conv2D` and `Conv2DTranspose`.
fn dims_of(class: &str) -> usize {
    let digit = class.chars().rev().find_map(|letter| letter.to_digit(10));
    digit.map_or(1, |digit| digit as usize)
}

fn by_class(class: &str, config: Config<'_>) -> Result<Described> {
    let dims = dims_of(class);
    let has_bias = usize::from(config.flag("use_bias"));
    match class {
        "Activation" => Described::plain(config.activation("activation")?),
        "ActivityRegularization" => {
            let regularizer = crate::nn::Regularizer {
                l1: config.float_or_zero("l1")?,
                l2: config.float_or_zero("l2")?,
            };
            let layer = Identity;
            Described::plain(ActivityPenalty { layer, regularizer })
        }
        "Add" => Described::plain(Add),
        "AlphaDropout" => {
            let rate = config.float("rate")?;
            Described::plain(AlphaDropout { rate })
        }
        "Average" => Described::plain(Average),
        "AveragePooling1D" | "AveragePooling2D" | "AveragePooling3D" | "MaxPooling1D"
        | "MaxPooling2D" | "MaxPooling3D" => pooling(class, config, dims),
        "BatchNormalization" => {
            if config.flag("renorm") {
                return Err(Config::unsupported("renorm"));
            }
            let layer = BatchNorm {
                axis: axis(config)?,
                momentum: config.float("momentum")?,
                epsilon: config.float("epsilon")?,
                center: config.flag("center"),
                scale: config.flag("scale"),
            };
            let count = 2 + usize::from(layer.center) + usize::from(layer.scale);
            // The moving mean and variance.
            let states = 2;
            Ok(Described {
                states,
                ..Described::own(layer, count)?
            })
        }
        "Concatenate" => Described::plain(Concatenate {
            axis: config.integer("axis")?,
        }),
        "Conv1D" | "Conv2D" => Described::own(conv(config, dims)?, 1 + has_bias),
        "Conv1DTranspose" | "Conv2DTranspose" => {
            if config.has("output_padding") {
                return Err(Config::unsupported("output_padding"));
            }
            let conv = conv(config, dims)?;
            Described::own(ConvTranspose { conv }, 1 + has_bias)
        }
        "Conv3D" => Described::own(conv3d(config)?, 1 + has_bias),
        "Conv3DTranspose" => {
            if config.has("output_padding") {
                return Err(Config::unsupported("output_padding"));
            }
            let conv = conv3d(config)?;
            Described::own(Conv3dTranspose { conv }, 1 + has_bias)
        }
        "Cropping1D" | "Cropping2D" | "Cropping3D" => {
            config.channels_last()?;
            let sides = config.sides("cropping", dims)?;
            Described::plain(Cropping { sides })
        }
        "Dense" => {
            if config.has("quantization_config") || config.has("lora_rank") {
                return Err(Config::unsupported("quantization or LoRA"));
            }
            let layer = Dense {
                activation: config.activation("activation")?,
                use_bias: config.flag("use_bias"),
                ..Dense::new(config.integer("units")?)
            };
            Described::own(layer, 1 + has_bias)
        }
        "DepthwiseConv1D" => {
            let layer = DepthwiseConv1d {
                multiplier: config.integer("depth_multiplier")?,
                options: config.conv_options(1)?,
                activation: config.activation("activation")?,
                use_bias: config.flag("use_bias"),
                ..DepthwiseConv1d::new(config.sizes("kernel_size", 1)?[0])
            };
            Described::own(layer, 1 + has_bias)
        }
        "DepthwiseConv2D" => {
            let layer = DepthwiseConv2d {
                size: pair(&config.sizes("kernel_size", 2)?),
                multiplier: config.integer("depth_multiplier")?,
                options: config.conv_options(2)?,
                activation: config.activation("activation")?,
                use_bias: config.flag("use_bias"),
            };
            Described::own(layer, 1 + has_bias)
        }
        "Dot" => {
            let axes = config.integers("axes")?;
            let axes = pair(&axes);
            let normalize = config.flag("normalize");
            Described::plain(Dot { axes, normalize })
        }
        "Dropout" => {
            let rate = config.float("rate")?;
            match config.has("noise_shape") {
                true => Described::plain(SharedDropout {
                    rate,
                    draws: prepared::draws(config)?,
                }),
                false => Described::plain(Dropout { rate }),
            }
        }
        "ELU" => Described::plain(Activation::Elu(config.float("alpha")?)),
        "EinsumDense" => {
            let bias_axes = config
                .0
                .get("bias_axes")
                .and_then(Json::text)
                .map(str::to_owned);
            let count = 1 + usize::from(bias_axes.is_some());
            let output = match config.integers("output_shape") {
                Ok(output) => output,
                Err(_) => config.shape("output_shape")?,
            };
            let layer = EinsumDense {
                equation: config.text("equation")?.to_owned(),
                output,
                bias_axes,
                activation: config.activation("activation")?,
            };
            Described::own(layer, count)
        }
        "Embedding" => Described::own(listed::embedding(config)?, 1),
        "Flatten" => {
            config.channels_last()?;
            Described::plain(Flatten)
        }
        "GaussianDropout" => {
            let rate = config.float("rate")?;
            Described::plain(GaussianDropout { rate })
        }
        "GaussianNoise" => {
            let deviation = config.float("stddev")?;
            Described::plain(GaussianNoise { deviation })
        }
        "GlobalAveragePooling1D"
        | "GlobalAveragePooling2D"
        | "GlobalAveragePooling3D"
        | "GlobalMaxPooling1D"
        | "GlobalMaxPooling2D"
        | "GlobalMaxPooling3D" => {
            config.channels_last()?;
            let kind = kind(class);
            let keep = config.flag("keepdims").then_some(dims);
            Described::plain(Global { kind, keep })
        }
        "GroupNormalization" => {
            let layer = GroupNorm {
                groups: config.integer("groups")?,
                axis: axis(config)?,
                epsilon: config.float("epsilon")?,
                center: config.flag("center"),
                scale: config.flag("scale"),
            };
            Described::own(layer, usize::from(layer.center) + usize::from(layer.scale))
        }
        "Identity" => Described::plain(Identity),
        "LayerNormalization" => {
            if config.flag("rms_scaling") {
                return Err(Config::unsupported("rms_scaling"));
            }
            let (center, scale) = (config.flag("center"), config.flag("scale"));
            let layer = LayerNorm {
                axes: config.integers("axis")?,
                epsilon: config.float("epsilon")?,
                center,
                scale,
            };
            Described::own(layer, usize::from(center) + usize::from(scale))
        }
        "LeakyReLU" => Described::plain(Activation::LeakyRelu(config.float("negative_slope")?)),
        "Masking" => Described::plain(Masking {
            value: config.float("mask_value")?,
        }),
        "Maximum" => Described::plain(Maximum),
        "Minimum" => Described::plain(Minimum),
        "Multiply" => Described::plain(Multiply),
        "PReLU" => {
            let shared_axes = match config.has("shared_axes") {
                true => config.integers("shared_axes")?,
                false => Vec::new(),
            };
            Described::own(PRelu { shared_axes }, 1)
        }
        "Permute" => Described::plain(Permute {
            order: config.integers("dims")?,
        }),
        "RMSNormalization" => {
            if axis(config)? != -1 {
                return Err(Config::unsupported("an axis that is not the last one"));
            }
            let epsilon = config.float("epsilon")?;
            Described::own(RmsNorm { epsilon }, 1)
        }
        "ReLU" => Described::plain(Relu {
            max: match config.has("max_value") {
                true => Some(config.float("max_value")?),
                false => None,
            },
            slope: config.float_or_zero("negative_slope")?,
            threshold: config.float_or_zero("threshold")?,
        }),
        "RepeatVector" => Described::plain(RepeatVector(config.integer("n")?)),
        "Rescaling" => {
            let numbers = |key: &str| -> Result<Vec<f32>> {
                let found = config.numbers(key)?;
                found.ok_or_else(|| Error::argument(format!("'{key}' is not there")))
            };
            Described::plain(Scaling {
                scale: numbers("scale")?,
                offset: numbers("offset")?,
            })
        }
        "Reshape" => Described::plain(Reshape {
            shape: config.integers("target_shape")?,
        }),
        "SeparableConv1D" | "SeparableConv2D" => {
            let size = config.sizes("kernel_size", dims)?;
            let layer = SeparableConv {
                multiplier: config.integer("depth_multiplier")?,
                options: config.conv_options(dims)?,
                activation: config.activation("activation")?,
                use_bias: config.flag("use_bias"),
                ..SeparableConv::new(config.integer("filters")?, &size)
            };
            Described::own(layer, 2 + has_bias)
        }
        "Softmax" => match config.integers("axis")?.as_slice() {
            &[axis] => Described::plain(Softmax { axis }),
            _ => Err(Config::unsupported("a softmax over several axes")),
        },
        "SpatialDropout1D" | "SpatialDropout2D" | "SpatialDropout3D" => {
            config.channels_last()?;
            let rate = config.float("rate")?;
            Described::plain(SpatialDropout { rate })
        }
        "Subtract" => Described::plain(Subtract),
        "UnitNormalization" => Described::plain(UnitNorm {
            axes: config.integers("axis")?,
        }),
        "UpSampling1D" => Described::plain(UpSampling::new(&config.sizes("size", 1)?)),
        "UpSampling2D" | "UpSampling3D" => {
            config.channels_last()?;
            // Volumes have none.
            let interpolation = match config.has("interpolation") {
                true => config.interpolation()?,
                false => Interpolation::Nearest,
            };
            let sizes = config.sizes("size", dims)?;
            Described::plain(UpSampling {
                sizes,
                interpolation,
            })
        }
        "ZeroPadding1D" | "ZeroPadding2D" | "ZeroPadding3D" => {
            config.channels_last()?;
            let sides = config.sides("padding", dims)?;
            Described::plain(ZeroPadding { sides })
        }
        _ => wrapped::describe(class, config)
            .or_else(|| prepared::describe(class, config))
            .or_else(|| applied::describe(class, config))
            .or_else(|| image::describe(class, config))
            .or_else(|| listed::describe(class, config))
            .or_else(|| signal::describe(class, config))
            .unwrap_or_else(|| Err(Error::argument("the class is not known"))),
    }
}

/// The dimensions of a layer that may have none.
fn axes(config: Config<'_>) -> Result<Vec<i64>> {
    match config.has("axis") {
        true => config.integers("axis"),
        false => Ok(Vec::new()),
    }
}

fn axis(config: Config<'_>) -> Result<i64> {
    match config.integers("axis")?.as_slice() {
        &[axis] => Ok(axis),
        _ => Err(Config::unsupported("several axes")),
    }
}

/// A layer whose inputs are those of one call.
pub(super) struct Fixed {
    pub layer: Box<dyn Layer>,
    pub keras: KerasLayer,
}

impl Layer for Fixed {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        self.layer.build(weights, input)
    }

    fn build_many(&self, weights: &Weights, inputs: &[&[i64]]) -> Result<BuiltMany> {
        self.layer.build_many(weights, inputs)
    }

    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        if has_old_function(&Json::Object(self.keras.config.clone())) {
            return Err(Error::argument(
                "its hard_sigmoid is that of Keras 2, which Keras 3 does not have",
            ));
        }
        let is_recurrent = matches!(&*self.keras.class, "SimpleRNN" | "LSTM" | "GRU");
        Ok(match inputs.len() > 1 && is_recurrent {
            true => self.keras.clone().call(Arguments::States),
            false => self.keras.clone(),
        })
    }

    fn kind(&self) -> String {
        self.keras.class.clone()
    }

    fn casts(&self) -> bool {
        self.layer.casts()
    }
}
