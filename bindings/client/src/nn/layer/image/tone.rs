//! Images whose values are mapped to others, one by one.

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::range::{VALUES, applies, check_valued, rescaled, valued};
use super::{augment, cast, check_bounds, check_image, clip, floats, pair, per_sample};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::policy::narrowed;
use crate::nn::layer::{Built, Layer};
use crate::ops;

/// Makes the negative of some samples while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomInvert {
    /// The smallest and the largest probability.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomInvert {
    /// With probabilities up to this one. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (0.0, factor),
            values: VALUES,
        }
    }
}

impl Layer for RandomInvert {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("RandomInvert", self.factor, self.values))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_valued("RandomInvert", factor, values)?;
        let seeds = [weights.next_seed(), weights.next_seed()];
        augment("RandomInvert", weights, input, move |pass, x| {
            let cx = pass.context();
            let is_inverted = applies(pass, x, seeds, factor)?;
            ops::select_v2(cx, is_inverted, ops::sub(cx, values.1, x)?, x)
        })
    }
}

/// Keeps the highest bits of values while training, as if they had 8.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomPosterization {
    /// The smallest number of bits, and the one that all numbers are below; two equal ones are the
    /// number itself. From 1 to 8.
    pub bits: (u8, u8),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomPosterization {
    /// From one bit to below this number. Values are from 0 to 255.
    #[must_use]
    pub fn new(bits: u8) -> Self {
        Self {
            bits: (1, bits),
            values: VALUES,
        }
    }
}

impl Layer for RandomPosterization {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let (least, most) = self.bits;
        Ok(KerasLayer::new("RandomPosterization")
            .set("factor", vec![i64::from(least), i64::from(most)])
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { bits, values } = *self;
        if bits.0 < 1 || bits.0 > bits.1 || bits.1 > 8 {
            return Err(Error::argument(format!(
                "RandomPosterization: {bits:?} bits, expected two numbers from 1 to 8 in their order"
            )));
        }
        check_bounds("RandomPosterization", "values", values)?;
        let seed = weights.next_seed();
        augment("RandomPosterization", weights, input, move |pass, x| {
            let cx = pass.context();
            let bounds = (f32::from(bits.0), f32::from(bits.1));
            let kept = ops::floor(cx, per_sample(pass, x, &[1, 1, 1], seed, bounds)?)?;
            let lost = cast(cx, &ops::sub(cx, 8.0, kept)?, DataType::UINT8)?;
            let x = rescaled(cx, x.clone(), values, VALUES)?;
            let x = cast(cx, &x, DataType::UINT8)?;
            let x = ops::left_shift(cx, ops::right_shift(cx, x, &lost)?, &lost)?;
            rescaled(cx, floats(cx, &x)?, VALUES, values)
        })
    }
}

/// Inverts the values that are not below a threshold while training, after an addition.
///
/// Both numbers are drawn for values from 0 to 255.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Solarization {
    /// What is added: from the first number to 255 times the second one.
    pub addition: (f32, f32),
    /// What inverted values are not below: from the first number to 255 times the second one.
    pub threshold: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl Solarization {
    /// Adds up to a part of 255, with a threshold up to a part of 255. Values are from 0 to 255.
    #[must_use]
    pub fn new(addition: f32, threshold: f32) -> Self {
        Self {
            addition: (0.0, addition),
            threshold: (0.0, threshold),
            values: VALUES,
        }
    }
}

impl Layer for Solarization {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Solarization")
            .set("addition_factor", pair(self.addition))
            .set("threshold_factor", pair(self.threshold))
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        for (what, bounds) in [
            ("additions", layer.addition),
            ("thresholds", layer.threshold),
            ("values", layer.values),
        ] {
            check_bounds("Solarization", what, bounds)?;
        }
        let seeds = [weights.next_seed(), weights.next_seed()];
        augment("Solarization", weights, input, move |pass, x| {
            let cx = pass.context();
            let draw = |seed: u32, (low, high): (f32, f32)| {
                per_sample(pass, x, &[1, 1, 1], seed, (low, high * 255.0))
            };
            let added = draw(seeds[0], layer.addition)?;
            let threshold = draw(seeds[1], layer.threshold)?;
            let y = rescaled(cx, x.clone(), layer.values, VALUES)?;
            let y = clip(cx, ops::add_v2(cx, y, added)?, VALUES)?;
            let is_below = ops::less(cx, &y, threshold)?;
            let y = ops::select_v2(cx, is_below, &y, ops::sub(cx, 255.0, &y)?)?;
            rescaled(cx, y, VALUES, layer.values)
        })
    }
}

/// Stretches the values of each channel of each sample over the whole range, always.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AutoContrast {
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

/// Values are from 0 to 255.
impl Default for AutoContrast {
    fn default() -> Self {
        Self { values: VALUES }
    }
}

impl Layer for AutoContrast {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("AutoContrast").set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let values = self.values;
        check_image("AutoContrast", input)?;
        check_bounds("AutoContrast", "values", values)?;
        let built = Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let before = floats(cx, x)?;
            let x = rescaled(cx, before.clone(), values, VALUES)?;
            let options = ops::MinOptions {
                keep_dims: Some(true),
            };
            let low = ops::min(cx, &x, [1, 2], options)?;
            let options = ops::MaxOptions {
                keep_dims: Some(true),
            };
            let high = ops::max(cx, &x, [1, 2], options)?;
            let is_flat = ops::equal(cx, &low, &high, ops::EqualOptions::default())?;
            let scale = ops::div(cx, 255.0, ops::sub(cx, high, &low)?)?;
            let offset = ops::mul(cx, ops::neg(cx, low)?, &scale)?;
            let y = ops::add_v2(cx, ops::mul(cx, x, scale)?, offset)?;
            let y = rescaled(cx, clip(cx, y, VALUES)?, VALUES, values)?;
            // A channel of one value stays.
            ops::select_v2(cx, is_flat, before, y)
        })?;
        narrowed(built, weights)
    }
}

/// Makes all values of a channel equally frequent while training, over the whole batch.
///
/// Keras 3.15 computes the same, and loads no model with it: its result there is the input itself.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Equalization {
    /// How many frequencies are counted.
    pub bins: i64,
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

/// 256 frequencies, and values from 0 to 255.
impl Default for Equalization {
    fn default() -> Self {
        Self {
            bins: 256,
            values: VALUES,
        }
    }
}

impl Layer for Equalization {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("Equalization")
            .set("bins", self.bins)
            .set("value_range", pair(self.values)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { bins, values } = *self;
        super::check_sizes("Equalization", "bins", &[bins])?;
        check_bounds("Equalization", "values", values)?;
        augment("Equalization", weights, input, move |pass, x| {
            let cx = pass.context();
            let x = rescaled(cx, x.clone(), values, VALUES)?;
            let y = equalized(cx, &ops::transpose(cx, x, [3, 0, 1, 2])?, bins)?;
            rescaled(cx, ops::transpose(cx, y, [1, 2, 3, 0])?, VALUES, values)
        })
    }
}

/// Equalizes each row of (channels, ..), whose values are from 0 to 255.
fn equalized(cx: &AnyContext, x: &AnyValue, bins: i64) -> Result<AnyValue> {
    let last = (bins - 1) as f32;
    let shape = super::shape_of(cx, x)?;
    let channels = ops::slice(cx, &shape, [0], [1])?;
    let rows = ops::reshape(cx, x, ops::concat_v2(cx, (channels, [-1]), 0)?)?;
    let scaled = ops::div(cx, ops::mul(cx, &rows, last)?, 255.0)?;
    let bin = ops::clip_by_value(cx, cast(cx, &scaled, DataType::INT32)?, 0, last as i32)?;
    // Counts as float64, which is exact.
    let weights = cx.constant(&Tensor::zeros(DataType::DOUBLE, &[0])?)?;
    let options = ops::DenseBincountOptions::default();
    let counts = ops::dense_bincount(cx, bin, bins as i32, weights, options)?;
    let sums = ops::cumsum(cx, &counts, 1, ops::CumsumOptions::default())?;
    let total = ops::slice(cx, &sums, [0, last as i32], [-1, 1])?;
    let zero = ops::zeros_like(cx, &sums)?;
    let is_there = ops::greater(cx, &sums, &zero)?;
    let options = ops::MinOptions {
        keep_dims: Some(true),
    };
    let first = ops::select_v2(cx, is_there, &sums, &total)?;
    let first = ops::min(cx, first, [1], options)?;
    let ones = ops::ones_like(cx, &total)?;
    let most = ops::maximum(cx, ops::sub(cx, total, &first)?, ones)?;
    let table = ops::mul(cx, ops::sub(cx, sums, first)?, 255.0_f64)?;
    let table = ops::round(cx, ops::div(cx, table, most)?)?;
    let table = clip(cx, floats(cx, &table)?, VALUES)?;
    let place = ops::mul(cx, ops::div(cx, &rows, 255.0)?, last)?;
    let place = cast(cx, &clip(cx, place, (0.0, last))?, DataType::INT32)?;
    let options = ops::GatherV2Options {
        batch_dims: Some(1),
    };
    let y = ops::gather_v2(cx, table, place, 1, options)?;
    let options = ops::SumOptions {
        keep_dims: Some(true),
    };
    let used = floats(cx, &ops::greater(cx, counts, zero)?)?;
    let used = ops::sum(cx, used, [1], options)?;
    let is_flat = ops::less_equal(cx, used, 1.0)?;
    ops::reshape(cx, ops::select_v2(cx, is_flat, rows, y)?, shape)
}
