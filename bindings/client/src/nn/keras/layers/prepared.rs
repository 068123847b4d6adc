//! Layers that prepare numbers: normalization by measured numbers, categories, pooling to a size.

use tfp_core::{Error, Result};

use super::super::config::Config;
use super::super::described::Described;
use super::window::kind;
use super::{axes, dims_of};
use crate::formats::json::Json;
use crate::nn::layer::{
    AdaptivePooling, CategoryEncoding, Discretization, Encoding, Measured, Normalization,
};

/// Describes a layer of one of these classes.
pub fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    Some(match class {
        "AdaptiveAveragePooling1D"
        | "AdaptiveAveragePooling2D"
        | "AdaptiveAveragePooling3D"
        | "AdaptiveMaxPooling1D"
        | "AdaptiveMaxPooling2D"
        | "AdaptiveMaxPooling3D" => adaptive(class, config),
        "CategoryEncoding" => category_encoding(config),
        "Discretization" => discretization(config),
        "Normalization" => normalization(config),
        _ => return None,
    })
}

fn adaptive(class: &str, config: Config<'_>) -> Result<Described> {
    config.channels_last()?;
    Described::plain(AdaptivePooling {
        kind: kind(class),
        sizes: config.sizes("output_size", dims_of(class))?,
    })
}

pub fn encoding(config: Config<'_>) -> Result<Encoding> {
    if config.flag("sparse") {
        return Err(Config::unsupported("sparse"));
    }
    let name = config.text("output_mode")?;
    Encoding::from_name(name).ok_or_else(|| Config::unsupported(&format!("output_mode '{name}'")))
}

fn category_encoding(config: Config<'_>) -> Result<Described> {
    let count = config.integer("num_tokens")?;
    Described::plain(CategoryEncoding {
        count: i32::try_from(count)
            .map_err(|_| Error::argument(format!("num_tokens is {count}")))?,
        encoding: encoding(config)?,
    })
}

fn discretization(config: Config<'_>) -> Result<Described> {
    Described::plain(Discretization {
        boundaries: config
            .numbers("bin_boundaries")?
            .ok_or_else(|| Error::argument("it has no boundaries: it was not adapted"))?,
        encoding: encoding(config)?,
    })
}

fn normalization(config: Config<'_>) -> Result<Described> {
    let mean = config.numbers("mean")?;
    let variance = config.numbers("variance")?;
    let measured = mean
        .zip(variance)
        .map(|(mean, variance)| Measured { mean, variance });
    // Mean, variance and count.
    let states = if measured.is_some() { 0 } else { 3 };
    let layer = Normalization {
        axes: axes(config)?,
        measured,
        invert: config.flag("invert"),
    };
    Ok(Described {
        states,
        ..Described::own(layer, states)?
    })
}

/// The draws of a dropout along each dimension.
pub fn draws(config: Config<'_>) -> Result<Vec<Option<i32>>> {
    let shape = config.0.get("noise_shape").and_then(Json::list);
    let one = |size: &Json| match size {
        Json::Null => Some(None),
        size => size
            .integer()
            .and_then(|size| i32::try_from(size).ok())
            .map(Some),
    };
    shape
        .and_then(|shape| shape.iter().map(one).collect())
        .ok_or_else(|| Error::argument("'noise_shape' is not a list of sizes"))
}
