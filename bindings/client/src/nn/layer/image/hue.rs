//! Hue and saturation.

use tfp_core::Result;

use super::range::{VALUES, check_valued, rescaled, valued};
use super::{augment, clip, per_sample};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::{Built, Layer, Pass, wrong_input};
use crate::ops;

/// Refuses images that are not of red, green and blue.
pub(super) fn check_rgb(layer: &str, input: &[i64]) -> Result<()> {
    match input {
        [_, _, 3] => Ok(()),
        _ => Err(wrong_input(layer, "rows, columns and 3 colors", input)),
    }
}

/// Hue, saturation and value, each (batch, rows, columns, 1).
fn hsv(cx: &AnyContext, x: AnyValue) -> Result<[AnyValue; 3]> {
    let parts = ops::split(cx, 3, ops::rgb_to_hsv(cx, x)?, 3)?;
    <[AnyValue; 3]>::try_from(parts).map_err(|_| wrong_input("HSV", "3 colors", &[]))
}

fn rgb(cx: &AnyContext, parts: [&AnyValue; 3]) -> Result<AnyValue> {
    ops::hsv_to_rgb(cx, ops::concat_v2(cx, parts, 3)?)
}

pub(super) fn changed_hue(
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

pub(super) fn changed_saturation(
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
        Ok(valued("RandomHue", self.factor, self.values))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_rgb("RandomHue", input)?;
        check_valued("RandomHue", factor, values)?;
        let seeds = [weights.next_seed(), weights.next_seed()];
        augment("RandomHue", weights, input, move |pass, x| {
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
        Ok(valued("RandomSaturation", self.factor, self.values))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_rgb("RandomSaturation", input)?;
        check_valued("RandomSaturation", factor, values)?;
        let seed = weights.next_seed();
        augment("RandomSaturation", weights, input, move |pass, x| {
            changed_saturation(pass, x, seed, factor, values)
        })
    }
}
