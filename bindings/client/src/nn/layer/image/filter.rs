//! Images whose pixels depend on their neighbours, or are erased.

use tfp_core::{Context, Error, Result, Tensor};

use super::range::{VALUES, applies, check_valued, rectangle, valued};
use super::transform::Sizes;
use super::{augment, between, check_bounds, check_image, clip, pair, per_sample};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::{KerasLayer, numbers};
use crate::nn::layer::noise::normal;
use crate::nn::layer::{Built, Layer, channels};
use crate::ops;

/// The weighted mean of each pixel's neighbours: `kernel` is (rows, columns, 1, 1).
pub(super) fn filtered(
    cx: &AnyContext,
    x: &AnyValue,
    kernel: AnyValue,
    channels: i64,
) -> Result<AnyValue> {
    let kernel = ops::tile(cx, kernel, [1, 1, channels as i32, 1])?;
    let options = ops::DepthwiseConv2dNativeOptions::default();
    ops::depthwise_conv2d_native(cx, x, kernel, &[1, 1, 1, 1], ops::Padding::Same, options)
}

/// Makes each sample sharper or smoother while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomSharpness {
    /// From 0, which smooths, by 0.5, which leaves images as they are, to 1.
    pub factor: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomSharpness {
    /// From 0 to this factor. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (0.0, factor),
            values: VALUES,
        }
    }
}

impl Layer for RandomSharpness {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("RandomSharpness", self.factor, self.values))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { factor, values } = *self;
        check_valued("RandomSharpness", factor, values)?;
        let channels = channels("RandomSharpness", input)?;
        let seed = weights.next_seed();
        augment("RandomSharpness", weights, input, move |pass, x| {
            const AROUND: f32 = 1.0 / 13.0;
            let cx = pass.context();
            let mut kernel = [AROUND; 9];
            kernel[4] = 5.0 / 13.0;
            let kernel = cx.constant(&Tensor::from_slice(&kernel, &[3, 3, 1, 1])?)?;
            let smooth = filtered(cx, x, kernel, channels)?;
            let factor = per_sample(pass, x, &[1, 1, 1], seed, factor)?;
            let part = ops::sub(cx, 1.0, ops::mul(cx, factor, 2.0)?)?;
            let change = ops::mul(cx, part, ops::sub(cx, smooth, x)?)?;
            clip(cx, ops::add_v2(cx, x, change)?, values)
        })
    }
}

/// Blurs some samples while training, all of a batch by as much.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomGaussianBlur {
    /// The smallest and the largest probability.
    pub factor: (f32, f32),
    /// The sizes of the window, which are odd.
    pub size: (i64, i64),
    /// The smallest and the largest standard deviation, in pixels.
    pub sigma: (f32, f32),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomGaussianBlur {
    /// With probabilities up to this one, a window of 3, and deviations up to 1. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (0.0, factor),
            size: (3, 3),
            sigma: (0.0, 1.0),
            values: VALUES,
        }
    }
}

/// The weights of places around the middle of a window, in one dimension.
pub(super) fn gaussian(cx: &AnyContext, places: AnyValue, sigma: &AnyValue) -> Result<AnyValue> {
    let square = ops::square(cx, ops::div(cx, places, sigma)?)?;
    let weights = ops::exp(cx, ops::mul(cx, square, -0.5)?)?;
    let sum = ops::sum(cx, &weights, [0], ops::SumOptions::default())?;
    ops::div(cx, weights, sum)
}

impl Layer for RandomGaussianBlur {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(valued("RandomGaussianBlur", self.factor, self.values)
            .set("kernel_size", vec![self.size.0, self.size.1])
            .set("sigma", pair(self.sigma)))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        /// A window that no image needs larger.
        const MOST: i64 = 1 << 12;
        let layer = *self;
        let (first, second) = layer.size;
        check_valued("RandomGaussianBlur", layer.factor, layer.values)?;
        check_bounds("RandomGaussianBlur", "sigma", layer.sigma)?;
        if [first, second]
            .iter()
            .any(|one| !(1..MOST).contains(one) || one % 2 == 0)
        {
            return Err(Error::argument(format!(
                "RandomGaussianBlur: a window of {first} by {second}, expected odd sizes below {MOST}"
            )));
        }
        let channels = channels("RandomGaussianBlur", input)?;
        let seeds = [weights.next_seed(), weights.next_seed()];
        let seed = weights.next_seed();
        augment("RandomGaussianBlur", weights, input, move |pass, x| {
            let cx = pass.context();
            let two = cx.constant(&Tensor::from_slice(&[2_i32], &[1])?)?;
            let sigma = between(pass, x, two, seed, layer.sigma)?;
            // A deviation of zero divides nothing.
            let sigma = ops::add_v2(cx, sigma, 1e-6)?;
            let line = |size: i64, at: i32| -> Result<AnyValue> {
                let middle = (size - 1) as f32 / 2.0;
                let places: Vec<f32> = (0..size).map(|at| at as f32 - middle).collect();
                let places = cx.constant(&Tensor::from_vec(places, &[size])?)?;
                gaussian(cx, places, &ops::slice(cx, &sigma, [at], [1])?)
            };
            let (one, other) = (line(first, 0)?, line(second, 1)?);
            let kernel = ops::mul(cx, ops::expand_dims(cx, other, 1)?, one)?;
            // As in Keras, which doesn't turn a window whose sides differ.
            let kernel = ops::reshape(cx, kernel, [first as i32, second as i32, 1, 1])?;
            let blurred = filtered(cx, x, kernel, channels)?;
            let is_blurred = applies(pass, x, seeds, layer.factor)?;
            clip(
                cx,
                ops::select_v2(cx, is_blurred, blurred, x)?,
                layer.values,
            )
        })
    }
}

/// Erases a rectangle of some samples while training.
#[derive(Clone, Debug, PartialEq)]
pub struct RandomErasing {
    /// The smallest and the largest probability.
    pub factor: (f32, f32),
    /// The smallest and the largest part of the image.
    pub scale: (f32, f32),
    /// The value there, one or one for each channel; without one it is noise.
    pub fill: Option<Vec<f32>>,
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomErasing {
    /// With probabilities up to this one, from 2 % to 33 % of the image, by noise. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (0.0, factor),
            scale: (0.02, 0.33),
            fill: None,
            values: VALUES,
        }
    }
}

impl Layer for RandomErasing {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let layer = valued("RandomErasing", self.factor, self.values);
        let layer = layer.set("scale", pair(self.scale));
        Ok(match &self.fill {
            None => layer,
            Some(fill) => layer.set("fill_value", numbers(fill)),
        })
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = self.clone();
        check_valued("RandomErasing", layer.factor, layer.values)?;
        check_bounds("RandomErasing", "the scale", layer.scale)?;
        check_image("RandomErasing", input)?;
        let count = layer.fill.as_ref().map_or(1, Vec::len);
        if count != 1 && count as i64 != input[2] {
            return Err(Error::argument(format!(
                "RandomErasing: {count} values for {} channels",
                input[2]
            )));
        }
        let across = [weights.next_seed(), weights.next_seed()];
        let down = [weights.next_seed(), weights.next_seed()];
        let chance = [weights.next_seed(), weights.next_seed()];
        let noise = weights.next_seed();
        let shape = input.to_vec();
        augment("RandomErasing", weights, input, move |pass, x| {
            let cx = pass.context();
            let sizes = Sizes::of(cx, x, &shape)?;
            let part = |seed: u32| -> Result<AnyValue> {
                ops::sqrt(cx, per_sample(pass, x, &[1], seed, layer.scale)?)
            };
            let parts = [part(down[0])?, part(across[0])?];
            let is_inside = rectangle(pass, x, &sizes, parts, [down[1], across[1]])?;
            let fill = match &layer.fill {
                Some(fill) => cx.constant(&Tensor::from_slice(fill, &[fill.len() as i64])?)?,
                None => ops::mul(cx, normal(pass, x, noise)?, layer.values.1)?,
            };
            let fill = clip(cx, fill, layer.values)?;
            let is_erased = applies(pass, x, chance, layer.factor)?;
            let is_erased = ops::logical_and(cx, is_erased, is_inside)?;
            ops::select_v2(cx, is_erased, fill, x)
        })
    }
}
