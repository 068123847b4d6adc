//! Layers around others.

use tfp_core::{Error, Result};

use super::super::config::{Config, object};
use super::super::described::Described;
use super::super::recurrent::bidirectional;
use crate::formats::json::Json;
use crate::nn::Weights;
use crate::nn::layer::{Built, Layer, SpectralNorm, TimeDistributed, VECTOR};

/// Describes a layer of one of these classes.
pub fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    Some(match class {
        "Bidirectional" => bidirectional(config),
        "Pipeline" => pipeline(config),
        "SpectralNormalization" => spectral(config),
        "TimeDistributed" => each_step(config),
        _ => return None,
    })
}

/// The layer inside, whose variables are at their places in the layer around it.
fn inside(config: Config<'_>) -> Result<Described> {
    let (class, inner) = config.inner("layer")?;
    if class == "SpectralNormalization" {
        return Err(Config::unsupported(
            "SpectralNormalization inside of a layer",
        ));
    }
    let inner = super::describe(class, inner, false)?;
    let places = inner.places.iter().map(|place| format!("layer/{place}"));
    Ok(Described {
        places: places.collect(),
        // Layers around others have one way.
        reversed: None,
        ..inner
    })
}

fn each_step(config: Config<'_>) -> Result<Described> {
    let inner = inside(config)?;
    Ok(Described {
        layer: Box::new(TimeDistributed { layer: inner.layer }),
        ..inner
    })
}

fn spectral(config: Config<'_>) -> Result<Described> {
    let mut inner = inside(config)?;
    inner.places.push(VECTOR.to_owned());
    let layer = SpectralNorm {
        layer: inner.layer,
        iterations: config.integer("power_iterations")?,
    };
    Ok(Described {
        layer: Box::new(layer),
        places: inner.places,
        // The vector.
        states: inner.states + 1,
        reversed: None,
    })
}

fn pipeline(config: Config<'_>) -> Result<Described> {
    let list = config.0.get("layers").and_then(Json::list);
    let list = list.ok_or_else(|| Error::argument("'layers' is not a list of layers"))?;
    let mut layers = Vec::new();
    for json in list {
        let (class, config) =
            object(json).ok_or_else(|| Error::argument("'layers' is not a list of layers"))?;
        let Described { layer, places, .. } = super::describe(class, config, false)?;
        if !places.is_empty() {
            return Err(Config::unsupported(&format!(
                "{class}, which has variables, in a Pipeline"
            )));
        }
        layers.push(layer);
    }
    Described::plain(Pipeline { layers })
}

/// Layers without variables, one after the other.
struct Pipeline {
    layers: Vec<Box<dyn Layer>>,
}

impl Layer for Pipeline {
    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let mut shape = input.to_vec();
        let mut steps = Vec::new();
        for layer in &self.layers {
            let Built { forward, output } = layer.build(weights, &shape)?;
            shape = output;
            steps.push(forward);
        }
        Built::new(shape, move |pass, x| {
            let first = Ok(x.clone());
            steps.iter().fold(first, |x, step| step(pass, &x?))
        })
    }
}
