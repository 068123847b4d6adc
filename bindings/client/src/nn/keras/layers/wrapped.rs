//! Layers around others.

use tfp_core::Result;

use super::super::config::Config;
use super::super::described::Described;
use super::super::recurrent::bidirectional;
use crate::nn::layer::{SpectralNorm, TimeDistributed, VECTOR};

/// Describes a layer of one of these classes.
pub fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    Some(match class {
        "Bidirectional" => bidirectional(config),
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
    })
}
