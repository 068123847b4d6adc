//! Layers of images.

use tfp_core::{Error, Result};

use crate::formats::json::Json;
use crate::nn::keras::config::Config;
use crate::nn::keras::described::Described;
use crate::nn::layer::{
    AspectRatio, AugMix, AutoContrast, CenterCrop, Clahe, CutMix, Equalization, Fill, Flip, MixUp,
    RandAugment, RandomBrightness, RandomColorDegeneration, RandomColorJitter, RandomContrast,
    RandomCrop, RandomElasticTransform, RandomErasing, RandomFlip, RandomGaussianBlur,
    RandomGrayscale, RandomHue, RandomInvert, RandomPerspective, RandomPosterization,
    RandomRotation, RandomSaturation, RandomSharpness, RandomShear, RandomTranslation, RandomZoom,
    ResizeMethod, Resizing, Solarization,
};

/// Describes a layer of images, if the class is one.
pub(super) fn describe(class: &str, config: Config<'_>) -> Option<Result<Described>> {
    let found = match class {
        "CenterCrop" | "RandomCrop" | "Resizing" => sized(class, config),
        "RandomFlip" => flip(config),
        "RandomRotation" | "RandomTranslation" | "RandomZoom" => moved(class, config),
        "RandomShear" => shear(config),
        "RandomPerspective" => perspective(config),
        "RandomColorJitter" => jitter(config),
        "RandomGrayscale" => config
            .float("factor")
            .and_then(|factor| Described::plain(RandomGrayscale { factor })),
        "AugMix" => aug_mix(config),
        "ContrastLimitedAdaptiveHistogramEqualization" => clahe(config),
        "CutMix" => bounds(config, "factor", from_zero)
            .and_then(|factor| Described::plain(CutMix { factor })),
        "MixUp" => config
            .float("alpha")
            .and_then(|alpha| Described::plain(MixUp { alpha })),
        "RandAugment" => rand_augment(config),
        "RandomElasticTransform" => elastic(config),
        "RandomErasing" => erasing(config),
        "RandomGaussianBlur" => blur(config),
        "AutoContrast"
        | "Equalization"
        | "RandomBrightness"
        | "RandomColorDegeneration"
        | "RandomContrast"
        | "RandomHue"
        | "RandomInvert"
        | "RandomPosterization"
        | "RandomSaturation"
        | "RandomSharpness"
        | "Solarization" => colored(class, config),
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
    let (fill, interpolation) = (fill(config)?, config.interpolation()?);
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

fn shear(config: Config<'_>) -> Result<Described> {
    Described::plain(RandomShear {
        x: bounds(config, "x_factor", around_zero)?,
        y: bounds(config, "y_factor", around_zero)?,
        fill: fill(config)?,
        interpolation: config.interpolation()?,
    })
}

fn perspective(config: Config<'_>) -> Result<Described> {
    Described::plain(RandomPerspective {
        factor: bounds(config, "factor", from_zero)?,
        scale: config.float("scale")?,
        fill: config.float_or_zero("fill_value")?,
        interpolation: config.interpolation()?,
    })
}

fn jitter(config: Config<'_>) -> Result<Described> {
    let factor = |key: &str, of: fn(f32) -> (f32, f32)| match config.has(key) {
        true => bounds(config, key, of).map(Some),
        false => Ok(None),
    };
    Described::plain(RandomColorJitter {
        brightness: factor("brightness_factor", around_zero)?,
        contrast: factor("contrast_factor", from_zero)?,
        saturation: factor("saturation_factor", around_zero)?,
        hue: factor("hue_factor", from_zero)?,
        values: values(config)?,
    })
}

fn erasing(config: Config<'_>) -> Result<Described> {
    Described::plain(RandomErasing {
        factor: bounds(config, "factor", from_zero)?,
        scale: bounds(config, "scale", from_zero)?,
        fill: config.numbers("fill_value")?,
        values: values(config)?,
    })
}

fn elastic(config: Config<'_>) -> Result<Described> {
    Described::plain(RandomElasticTransform {
        factor: bounds(config, "factor", from_zero)?,
        scale: bounds(config, "scale", from_zero)?,
        fill: fill(config)?,
        interpolation: config.interpolation()?,
        values: values(config)?,
    })
}

fn clahe(config: Config<'_>) -> Result<Described> {
    let parts = config.sizes("tile_grid_size", 2)?;
    Described::plain(Clahe {
        limit: config.float("clip_limit")?,
        parts: (parts[0], parts[1]),
        values: values(config)?,
    })
}

fn rand_augment(config: Config<'_>) -> Result<Described> {
    Described::plain(RandAugment {
        count: config.integer("num_ops")?,
        factor: bounds(config, "factor", from_zero)?,
        values: values(config)?,
        interpolation: config.interpolation()?,
    })
}

fn aug_mix(config: Config<'_>) -> Result<Described> {
    Described::plain(AugMix {
        chains: config.integer("num_chains")?,
        depth: config.integer("chain_depth")?,
        factor: bounds(config, "factor", from_zero)?,
        alpha: config.float("alpha")?,
        all: config.flag("all_ops"),
        values: values(config)?,
        interpolation: config.interpolation()?,
    })
}

fn blur(config: Config<'_>) -> Result<Described> {
    let size = config.sizes("kernel_size", 2)?;
    Described::plain(RandomGaussianBlur {
        factor: bounds(config, "factor", from_zero)?,
        size: (size[0], size[1]),
        sigma: bounds(config, "sigma", from_zero)?,
        values: values(config)?,
    })
}

fn colored(class: &str, config: Config<'_>) -> Result<Described> {
    let values = values(config)?;
    let factor = |of: fn(f32) -> (f32, f32)| bounds(config, "factor", of);
    match class {
        "AutoContrast" => Described::plain(AutoContrast { values }),
        "Equalization" => Described::plain(Equalization {
            bins: config.integer("bins")?,
            values,
        }),
        "RandomBrightness" => Described::plain(RandomBrightness {
            factor: factor(around_zero)?,
            values,
        }),
        "RandomColorDegeneration" => Described::plain(RandomColorDegeneration {
            factor: factor(around_zero)?,
            values,
        }),
        "RandomContrast" => Described::plain(RandomContrast {
            factor: factor(from_zero)?,
            values,
        }),
        "RandomHue" => Described::plain(RandomHue {
            factor: factor(from_zero)?,
            values,
        }),
        "RandomInvert" => Described::plain(RandomInvert {
            factor: factor(from_zero)?,
            values,
        }),
        "RandomPosterization" => {
            let (least, most) = factor(|most| (1.0, most))?;
            // What is not a number of bits, the layer refuses.
            let bits = (least as u8, most as u8);
            Described::plain(RandomPosterization { bits, values })
        }
        "RandomSaturation" => Described::plain(RandomSaturation {
            factor: factor(around_zero)?,
            values,
        }),
        "RandomSharpness" => Described::plain(RandomSharpness {
            factor: factor(from_zero)?,
            values,
        }),
        _ => Described::plain(Solarization {
            addition: bounds(config, "addition_factor", from_zero)?,
            threshold: bounds(config, "threshold_factor", from_zero)?,
            values,
        }),
    }
}
