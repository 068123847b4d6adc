//! Layers of images.

use tfp_core::{Error, Result};

use crate::formats::json::Json;
use crate::nn::keras::config::Config;
use crate::nn::keras::described::Described;
use crate::nn::layer::{
    AspectRatio, CenterCrop, Fill, Flip, Interpolation, RandomBrightness, RandomContrast,
    RandomCrop, RandomFlip, RandomRotation, RandomTranslation, RandomZoom, ResizeMethod, Resizing,
};

/// Describes a layer of images, if the class is one.
pub(super) fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    let found = match class {
        "CenterCrop" | "RandomCrop" | "Resizing" => sized(class, config),
        "RandomFlip" => flip(config),
        "RandomRotation" | "RandomTranslation" | "RandomZoom" => moved(class, config),
        "RandomBrightness" | "RandomContrast" => colored(class, config),
        _ => return None,
    };
    Some(config.channels_last().and(found))
}

/// Two numbers, or what one number stands for.
fn bounds(config: Config<'_>, key: &str, of: impl Fn(f32) -> (f32, f32)) -> Result<(f32, f32)> {
    let found = match config.0.get(key) {
        Some(Json::List(list)) => match list.as_slice() {
            [low, high] => low.number().zip(high.number()),
            _ => None,
        },
        _ => return config.float(key).map(of),
    };
    // Keras takes them in any order.
    let found = found.map(|(a, b)| (a.min(b) as f32, a.max(b) as f32));
    found.ok_or_else(|| Error::argument(format!("'{key}' is not one or two numbers")))
}

/// What a number stands for: as much less as more.
fn around_zero(factor: f32) -> (f32, f32) {
    (-factor.abs(), factor.abs())
}

/// What a number stands for: nothing to so much.
fn from_zero(factor: f32) -> (f32, f32) {
    (0.0, factor)
}

/// The range of the images' values.
fn values(config: Config<'_>) -> Result<(f32, f32)> {
    bounds(config, "value_range", from_zero)
}

fn interpolation(config: Config<'_>) -> Result<Interpolation> {
    match config.text("interpolation")? {
        "nearest" => Ok(Interpolation::Nearest),
        "bilinear" => Ok(Interpolation::Bilinear),
        other => Err(Config::unsupported(&format!("interpolation '{other}'"))),
    }
}

fn fill(config: Config<'_>) -> Result<Fill> {
    match config.text("fill_mode")? {
        "constant" => Ok(Fill::Constant(config.float_or_zero("fill_value")?)),
        "nearest" => Ok(Fill::Nearest),
        "reflect" => Ok(Fill::Reflect),
        "wrap" => Ok(Fill::Wrap),
        other => Err(Config::unsupported(&format!("fill mode '{other}'"))),
    }
}

fn sized(class: &str, config: Config<'_>) -> Result<Described> {
    let (height, width) = (config.integer("height")?, config.integer("width")?);
    match class {
        "CenterCrop" => return Described::plain(CenterCrop { height, width }),
        "RandomCrop" => return Described::plain(RandomCrop { height, width }),
        _ => {}
    }
    let name = config.text("interpolation")?;
    let found = ResizeMethod::ALL.iter().find(|(_, other)| *other == name);
    let Some(&(method, _)) = found else {
        return Err(Config::unsupported(&format!("interpolation '{name}'")));
    };
    let aspect_ratio = match (
        config.flag("crop_to_aspect_ratio"),
        config.flag("pad_to_aspect_ratio"),
    ) {
        (false, false) => AspectRatio::Stretched,
        (true, false) => AspectRatio::Cropped,
        (false, true) => AspectRatio::Padded(config.float_or_zero("fill_value")?),
        (true, true) => return Err(Config::unsupported("an aspect ratio by crop and pad")),
    };
    Described::plain(Resizing {
        height,
        width,
        method,
        aspect_ratio,
        antialias: config.flag("antialias"),
    })
}

fn flip(config: Config<'_>) -> Result<Described> {
    let mode = match config.text("mode")? {
        "horizontal" => Flip::Horizontal,
        "vertical" => Flip::Vertical,
        "horizontal_and_vertical" => Flip::Both,
        other => return Err(Config::unsupported(&format!("mode '{other}'"))),
    };
    Described::plain(RandomFlip { mode })
}

fn moved(class: &str, config: Config<'_>) -> Result<Described> {
    let (fill, interpolation) = (fill(config)?, interpolation(config)?);
    if class == "RandomRotation" {
        let factor = bounds(config, "factor", around_zero)?;
        return Described::plain(RandomRotation {
            factor,
            fill,
            interpolation,
        });
    }
    let height = bounds(config, "height_factor", around_zero)?;
    if class == "RandomZoom" && !config.has("width_factor") {
        return Described::plain(RandomZoom {
            height,
            width: None,
            fill,
            interpolation,
        });
    }
    let width = bounds(config, "width_factor", around_zero)?;
    match class {
        "RandomZoom" => Described::plain(RandomZoom {
            height,
            width: Some(width),
            fill,
            interpolation,
        }),
        _ => Described::plain(RandomTranslation {
            height,
            width,
            fill,
            interpolation,
        }),
    }
}

fn colored(class: &str, config: Config<'_>) -> Result<Described> {
    let values = values(config)?;
    match class {
        "RandomBrightness" => Described::plain(RandomBrightness {
            factor: bounds(config, "factor", around_zero)?,
            values,
        }),
        _ => Described::plain(RandomContrast {
            factor: bounds(config, "factor", from_zero)?,
            values,
        }),
    }
}
