//! Images of other colors.

use tfp_core::Result;

use super::range::{VALUES, rescaled};
use super::{augment, check_bounds, clip, pair, per_sample};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::{Built, Layer, Pass, wrong_input};
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
        Ok(KerasLayer::new("RandomContrast")
            .set("factor", pair(self.factor))
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_bounds("RandomContrast", "the contrast", away_from_one(factor))?;
        check_bounds("RandomContrast", "values", values)?;
        let seed = weights.next_seed();
        augment("RandomContrast", input, move |pass, x| {
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
        Ok(KerasLayer::new("RandomBrightness")
            .set("factor", pair(self.factor))
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_bounds("RandomBrightness", "the factor", factor)?;
        check_bounds("RandomBrightness", "values", values)?;
        let seed = weights.next_seed();
        augment("RandomBrightness", input, move |pass, x| {
            changed_brightness(pass, x, seed, factor, values)
        })
    }
}

/// Refuses images that are not of red, green and blue.
fn check_rgb(layer: &str, input: &[i64]) -> Result<()> {
    match input {
        [_, _, 3] => Ok(()),
        _ => Err(wrong_input(layer, "rows, columns and 3 colors", input)),
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

/// Hue, saturation and value, each (batch, rows, columns, 1).
fn hsv(cx: &AnyContext, x: AnyValue) -> Result<[AnyValue; 3]> {
    let parts = ops::split(cx, 3, ops::rgb_to_hsv(cx, x)?, 3)?;
    <[AnyValue; 3]>::try_from(parts).map_err(|_| wrong_input("HSV", "3 colors", &[]))
}

fn rgb(cx: &AnyContext, parts: [&AnyValue; 3]) -> Result<AnyValue> {
    ops::hsv_to_rgb(cx, ops::concat_v2(cx, parts, 3)?)
}

fn changed_hue(
    pass: &Pass<'_>,
    x: &AnyValue,
    seeds: [u32; 2],
    factor: (f32, f32),
    values: (f32, f32),
) -> Result<AnyValue> {
    let cx = pass.context();
    let side = per_sample(pass, x, &[1, 1, 1], seeds[0], (0.0, 1.0))?;
    let is_less = ops::greater(cx, side, 0.5)?;
    let draw = per_sample(pass, x, &[1, 1, 1], seeds[1], factor)?;
    let more = ops::mul(cx, draw, 0.5)?;
    let more = ops::select_v2(cx, is_less, ops::neg(cx, &more)?, &more)?;
    let unit = (0.0, 1.0);
    let [hue, saturation, value] = hsv(cx, rescaled(cx, x.clone(), values, unit)?)?;
    let hue = ops::add_v2(cx, hue, more)?;
    let is_above = ops::greater(cx, &hue, 1.0)?;
    let hue = ops::select_v2(cx, is_above, ops::sub(cx, &hue, 1.0)?, &hue)?;
    let is_below = ops::less(cx, &hue, 0.0)?;
    let hue = ops::select_v2(cx, is_below, ops::add_v2(cx, &hue, 1.0)?, &hue)?;
    let y = rgb(cx, [&hue, &saturation, &value])?;
    rescaled(cx, clip(cx, y, unit)?, unit, values)
}

fn changed_saturation(
    pass: &Pass<'_>,
    x: &AnyValue,
    seed: u32,
    factor: (f32, f32),
    values: (f32, f32),
) -> Result<AnyValue> {
    let cx = pass.context();
    let factor = per_sample(pass, x, &[1, 1, 1], seed, factor)?;
    // Keras' smallest number keeps it finite.
    let rest = ops::add_v2(cx, ops::sub(cx, 1.0, &factor)?, 1e-7)?;
    let factor = ops::div(cx, factor, rest)?;
    let [hue, saturation, value] = hsv(cx, x.clone())?;
    let saturation = clip(cx, ops::mul(cx, saturation, factor)?, values)?;
    rgb(cx, [&hue, &saturation, &value])
}

/// Turns the hue of each sample while training, in either direction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomHue {
    /// From 0, which changes nothing, to 1, which is half of the circle.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomHue {
    /// From 0 to this factor. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (0.0, factor),
            values: VALUES,
        }
    }
}

impl Layer for RandomHue {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RandomHue")
            .set("factor", pair(self.factor))
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_rgb("RandomHue", input)?;
        check_bounds("RandomHue", "the factor", factor)?;
        check_bounds("RandomHue", "values", values)?;
        let seeds = [weights.next_seed(), weights.next_seed()];
        augment("RandomHue", input, move |pass, x| {
            changed_hue(pass, x, seeds, factor, values)
        })
    }
}

/// Makes the colors of each sample weaker or stronger while training.
///
/// As in Keras 3.15, saturation is computed of the values as they are, and kept in their range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomSaturation {
    /// From 0, which is gray, by 0.5, which changes nothing, to 1, which is as strong as can be.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomSaturation {
    /// From minus this factor to this factor, as Keras has it. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (-factor, factor),
            values: VALUES,
        }
    }
}

impl Layer for RandomSaturation {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RandomSaturation")
            .set("factor", pair(self.factor))
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_rgb("RandomSaturation", input)?;
        check_bounds("RandomSaturation", "the factor", factor)?;
        check_bounds("RandomSaturation", "values", values)?;
        let seed = weights.next_seed();
        augment("RandomSaturation", input, move |pass, x| {
            changed_saturation(pass, x, seed, factor, values)
        })
    }
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
        augment("RandomGrayscale", input, move |pass, x| {
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
        Ok(KerasLayer::new("RandomColorDegeneration")
            .set("factor", pair(self.factor))
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_rgb("RandomColorDegeneration", input)?;
        check_bounds("RandomColorDegeneration", "the factor", factor)?;
        check_bounds("RandomColorDegeneration", "values", values)?;
        let seed = weights.next_seed();
        augment("RandomColorDegeneration", input, move |pass, x| {
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
    /// Of [`RandomSaturation`].
    pub saturation: Option<(f32, f32)>,
    /// Of [`RandomHue`].
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
        augment("RandomColorJitter", input, move |pass, x| {
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
