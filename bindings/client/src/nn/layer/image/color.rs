//! Images of other colors.

use tfp_core::Result;

use super::{augment, check_bounds, clip, pair, per_sample};
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::{Built, Layer};
use crate::ops;

/// The smallest and the largest value of images, where a layer doesn't say otherwise.
pub(super) const VALUES: (f32, f32) = (0.0, 255.0);

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
        let bounds = (1.0 - factor.0, 1.0 + factor.1);
        check_bounds("RandomContrast", "the contrast", bounds)?;
        check_bounds("RandomContrast", "values", values)?;
        let seed = weights.next_seed();
        augment("RandomContrast", input, move |pass, x| {
            let cx = pass.context();
            let factor = per_sample(pass, x, &[1, 1, 1], seed, bounds)?;
            let options = ops::MeanOptions {
                keep_dims: Some(true),
            };
            let mean = ops::mean(cx, x, [1, 2], options)?;
            let away = ops::mul(cx, ops::sub(cx, x, &mean)?, factor)?;
            clip(cx, ops::add_v2(cx, away, mean)?, values)
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
            let cx = pass.context();
            let part = per_sample(pass, x, &[1, 1, 1], seed, factor)?;
            let more = ops::mul(cx, part, values.1 - values.0)?;
            clip(cx, ops::add_v2(cx, x, more)?, values)
        })
    }
}
