//! Images of other colors.

use tfp_core::Result;

use super::hue::{changed_hue, changed_saturation, check_rgb};
use super::range::{VALUES, check_valued, valued};
use super::{augment, check_bounds, clip, pair, per_sample};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::{Built, Layer, Pass};
use crate::ops;

/// The factors that so much less and so much more are.
fn away_from_one((less, more): (f32, f32)) -> (f32, f32) {
    (1.0 - less, 1.0 + more)
}

fn changed_contrast(
    pass: &Pass<'_>,
    x: &AnyValue,
    seed: u32,
    factor: (f32, f32),
    values: (f32, f32),
) -> Result<AnyValue> {
    let cx = pass.context();
    let factor = per_sample(pass, x, &[1, 1, 1], seed, away_from_one(factor))?;
    let options = ops::MeanOptions {
        keep_dims: Some(true),
    };
    let mean = ops::mean(cx, x, [1, 2], options)?;
    let away = ops::mul(cx, ops::sub(cx, x, &mean)?, factor)?;
    clip(cx, ops::add_v2(cx, away, mean)?, values)
}

fn changed_brightness(
    pass: &Pass<'_>,
    x: &AnyValue,
    seed: u32,
    factor: (f32, f32),
    values: (f32, f32),
) -> Result<AnyValue> {
    let cx = pass.context();
    let part = per_sample(pass, x, &[1, 1, 1], seed, factor)?;
    let more = ops::mul(cx, part, values.1 - values.0)?;
    clip(cx, ops::add_v2(cx, x, more)?, values)
}

/// Moves the values of each sample away from their mean, or to it, while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomContrast {
    /// How much less contrast there may be, and how much more: 0.1 is 10 %.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomContrast {
    /// At most so much more, and never less. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (0.0, factor),
            values: VALUES,
        }
    }
}

impl Layer for RandomContrast {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("RandomContrast", self.factor, self.values))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_valued("RandomContrast", away_from_one(factor), values)?;
        let seed = weights.next_seed();
        augment("RandomContrast", weights, input, move |pass, x| {
            changed_contrast(pass, x, seed, factor, values)
        })
    }
}

/// Adds one number to all values of a sample while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomBrightness {
    /// The smallest and the largest number, as parts of the range of values: -1 makes images black, 1
    /// makes them white.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomBrightness {
    /// At most so much darker or brighter. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (-factor, factor),
            values: VALUES,
        }
    }
}

impl Layer for RandomBrightness {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("RandomBrightness", self.factor, self.values))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_valued("RandomBrightness", factor, values)?;
        let seed = weights.next_seed();
        augment("RandomBrightness", weights, input, move |pass, x| {
            changed_brightness(pass, x, seed, factor, values)
        })
    }
}

/// Shades of gray for red, green and blue: (.., 1).
fn gray(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    let options = ops::SumOptions {
        keep_dims: Some(true),
    };
    ops::sum(
        cx,
        ops::mul(cx, x, [0.2989_f32, 0.587, 0.114])?,
        [3],
        options,
    )
}

/// Makes some samples gray while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomGrayscale {
    /// The probability.
    pub factor: f32,
}

impl Layer for RandomGrayscale {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RandomGrayscale").set("factor", self.factor))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let factor = self.factor;
        check_bounds("RandomGrayscale", "the factor", (factor, factor))?;
        let is_gray = input.last() == Some(&1);
        if !is_gray {
            check_rgb("RandomGrayscale", input)?;
        }
        let seed = weights.next_seed();
        augment("RandomGrayscale", weights, input, move |pass, x| {
            if is_gray {
                return Ok(x.clone());
            }
            let cx = pass.context();
            let draw = per_sample(pass, x, &[1, 1, 1], seed, (0.0, 1.0))?;
            let is_changed = ops::less(cx, draw, factor)?;
            ops::select_v2(cx, is_changed, gray(cx, x)?, x)
        })
    }
}

/// Mixes each sample with its shades of gray while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomColorDegeneration {
    /// From 0, which changes nothing, to 1, which is gray.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomColorDegeneration {
    /// From minus this factor to this factor, as Keras has it. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (-factor, factor),
            values: VALUES,
        }
    }
}

impl Layer for RandomColorDegeneration {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("RandomColorDegeneration", self.factor, self.values))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_rgb("RandomColorDegeneration", input)?;
        check_valued("RandomColorDegeneration", factor, values)?;
        let seed = weights.next_seed();
        augment("RandomColorDegeneration", weights, input, move |pass, x| {
            let cx = pass.context();
            let factor = per_sample(pass, x, &[1, 1, 1], seed, factor)?;
            let change = ops::mul(cx, factor, ops::sub(cx, gray(cx, x)?, x)?)?;
            clip(cx, ops::add_v2(cx, x, change)?, values)
        })
    }
}

/// Changes brightness, contrast, saturation and hue, one after the other, while training.
///
/// Each is the factor of the layer of that name, and left out without one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomColorJitter {
    /// Of [`RandomBrightness`].
    pub brightness: Option<(f32, f32)>,
    /// Of [`RandomContrast`].
    pub contrast: Option<(f32, f32)>,
    /// Of [`RandomSaturation`](super::RandomSaturation).
    pub saturation: Option<(f32, f32)>,
    /// Of [`RandomHue`](super::RandomHue).
    pub hue: Option<(f32, f32)>,
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

/// Changes nothing. Values are from 0 to 255.
impl Default for RandomColorJitter {
    fn default() -> Self {
        Self {
            brightness: None,
            contrast: None,
            saturation: None,
            hue: None,
            values: VALUES,
        }
    }
}

impl Layer for RandomColorJitter {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RandomColorJitter")
            .set("value_range", pair(self.values))
            .set("brightness_factor", self.brightness.map(pair))
            .set("contrast_factor", self.contrast.map(pair))
            .set("saturation_factor", self.saturation.map(pair))
            .set("hue_factor", self.hue.map(pair)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        let values = layer.values;
        check_bounds("RandomColorJitter", "values", values)?;
        let every = [
            layer.brightness,
            layer.contrast.map(away_from_one),
            layer.saturation,
            layer.hue,
        ];
        for factor in every.into_iter().flatten() {
            check_bounds("RandomColorJitter", "a factor", factor)?;
        }
        if layer.saturation.or(layer.hue).is_some() {
            check_rgb("RandomColorJitter", input)?;
        }
        let seeds = [0; 5].map(|_| weights.next_seed());
        augment("RandomColorJitter", weights, input, move |pass, x| {
            let mut x = x.clone();
            if let Some(factor) = layer.brightness {
                x = changed_brightness(pass, &x, seeds[0], factor, values)?;
            }
            if let Some(factor) = layer.contrast {
                x = changed_contrast(pass, &x, seeds[1], factor, values)?;
            }
            if let Some(factor) = layer.saturation {
                x = changed_saturation(pass, &x, seeds[2], factor, values)?;
            }
            if let Some(factor) = layer.hue {
                x = changed_hue(pass, &x, [seeds[3], seeds[4]], factor, values)?;
            }
            Ok(x)
        })
    }
}
