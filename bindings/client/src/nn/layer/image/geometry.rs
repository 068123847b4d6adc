//! Images whose pixels are at other places.

use tfp_core::Result;

use super::transform::{Fill, Sizes, affine, described, transformed};
use super::{augment, check_bounds, floats, pair, per_sample};
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::{Built, Interpolation, Layer};
use crate::ops;

/// Which sides change places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flip {
    /// Left and right.
    Horizontal,
    /// Top and bottom.
    Vertical,
    /// Both.
    #[default]
    Both,
}

/// Flips half of the samples while training.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RandomFlip {
    /// Which sides change places.
    pub mode: Flip,
}

impl Layer for RandomFlip {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let mode = match self.mode {
            Flip::Horizontal => "horizontal",
            Flip::Vertical => "vertical",
            Flip::Both => "horizontal_and_vertical",
        };
        Ok(KerasLayer::new("RandomFlip").set("mode", mode))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let axes: &[i32] = match self.mode {
            Flip::Horizontal => &[2],
            Flip::Vertical => &[1],
            Flip::Both => &[1, 2],
        };
        let seed = weights.next_seed();
        augment("RandomFlip", weights, input, move |pass, x| {
            let cx = pass.context();
            let draw = per_sample(pass, x, &[1, 1, 1], seed, (0.0, 1.0))?;
            let is_flipped = ops::less_equal(cx, draw, 0.5)?;
            ops::select_v2(cx, is_flipped, ops::reverse_v2(cx, x, axes)?, x)
        })
    }
}

/// Rotates each sample around its middle while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomRotation {
    /// The smallest and the largest angle, in turns: 0.5 is half of one.
    pub factor: (f32, f32),
    /// What is beyond the edges.
    pub fill: Fill,
    /// How pixels are made.
    pub interpolation: Interpolation,
}

impl RandomRotation {
    /// By so many turns at most, in either direction.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            factor: (-factor, factor),
            fill: Fill::Reflect,
            interpolation: Interpolation::Bilinear,
        }
    }
}

impl Layer for RandomRotation {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let layer = KerasLayer::new("RandomRotation").set("factor", pair(self.factor));
        Ok(described(layer, self.fill, self.interpolation))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        check_bounds("RandomRotation", "the factor", layer.factor)?;
        let seed = weights.next_seed();
        let shape = input.to_vec();
        augment("RandomRotation", weights, input, move |pass, x| {
            let cx = pass.context();
            let degrees = (layer.factor.0 * 360.0, layer.factor.1 * 360.0);
            let angle = per_sample(pass, x, &[], seed, degrees)?;
            let angle = ops::mul(cx, angle, (std::f64::consts::PI / 180.0) as f32)?;
            let (cos, sin) = (ops::cos(cx, &angle)?, ops::sin(cx, &angle)?);
            let minus = ops::neg(cx, &sin)?;
            let sizes = Sizes::of(cx, x, &shape)?;
            let (last_row, last_column) = sizes.last(cx)?;
            let (row, column) = (
                ops::mul(cx, last_row, 0.5)?,
                ops::mul(cx, last_column, 0.5)?,
            );
            // The middle stays where it is.
            let rest = |middle: &AnyValue, a: &AnyValue, b: &AnyValue| -> Result<AnyValue> {
                let part = ops::sub(cx, middle, ops::mul(cx, &column, a)?)?;
                ops::sub(cx, part, ops::mul(cx, &row, b)?)
            };
            let (dx, dy) = (rest(&column, &cos, &minus)?, rest(&row, &sin, &cos)?);
            let matrix = affine(cx, [&cos, &minus, &dx], [&sin, &cos, &dy])?;
            transformed(cx, x, &matrix, &sizes, layer.fill, layer.interpolation)
        })
    }
}

/// Makes each sample larger or smaller around its middle while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomZoom {
    /// How much more or less of the rows is there: -0.3 shows 70 % of them, 0.3 shows 130 %.
    pub height: (f32, f32),
    /// The same for columns; as the rows if it is left out.
    pub width: Option<(f32, f32)>,
    /// What is beyond the edges.
    pub fill: Fill,
    /// How pixels are made.
    pub interpolation: Interpolation,
}

impl RandomZoom {
    /// By a factor of up to so much more or less, in the same proportion.
    #[must_use]
    pub fn new(factor: f32) -> Self {
        Self {
            height: (-factor, factor),
            width: None,
            fill: Fill::Reflect,
            interpolation: Interpolation::Bilinear,
        }
    }
}

impl Layer for RandomZoom {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let layer = KerasLayer::new("RandomZoom")
            .set("height_factor", pair(self.height))
            .set("width_factor", self.width.map(pair));
        Ok(described(layer, self.fill, self.interpolation))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        check_bounds("RandomZoom", "height", layer.height)?;
        check_bounds("RandomZoom", "width", layer.width.unwrap_or(layer.height))?;
        let seeds = [weights.next_seed(), weights.next_seed()];
        let shape = input.to_vec();
        augment("RandomZoom", weights, input, move |pass, x| {
            let cx = pass.context();
            let zoom = |seed: u32, (low, high): (f32, f32)| {
                per_sample(pass, x, &[], seed, (1.0 + low, 1.0 + high))
            };
            let down = zoom(seeds[0], layer.height)?;
            let across = match layer.width {
                Some(width) => zoom(seeds[1], width)?,
                None => down.clone(),
            };
            let sizes = Sizes::of(cx, x, &shape)?;
            let (last_row, last_column) = sizes.last(cx)?;
            let rest = |last: AnyValue, zoom: &AnyValue| -> Result<AnyValue> {
                let middle = ops::div(cx, last, 2.0)?;
                ops::mul(cx, middle, ops::sub(cx, 1.0, zoom)?)
            };
            let (dx, dy) = (rest(last_column, &across)?, rest(last_row, &down)?);
            let zero = ops::zeros_like(cx, &down)?;
            let matrix = affine(cx, [&across, &zero, &dx], [&zero, &down, &dy])?;
            transformed(cx, x, &matrix, &sizes, layer.fill, layer.interpolation)
        })
    }
}

/// Moves each sample up or down, left or right, while training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomTranslation {
    /// How far down, in heights of the image: negative numbers are up.
    pub height: (f32, f32),
    /// How far to the right, in widths of the image: negative numbers are left.
    pub width: (f32, f32),
    /// What is beyond the edges.
    pub fill: Fill,
    /// How pixels are made.
    pub interpolation: Interpolation,
}

impl RandomTranslation {
    /// By up to so much in both directions.
    #[must_use]
    pub fn new(height: f32, width: f32) -> Self {
        Self {
            height: (-height, height),
            width: (-width, width),
            fill: Fill::Reflect,
            interpolation: Interpolation::Bilinear,
        }
    }
}

impl Layer for RandomTranslation {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let layer = KerasLayer::new("RandomTranslation")
            .set("height_factor", pair(self.height))
            .set("width_factor", pair(self.width));
        Ok(described(layer, self.fill, self.interpolation))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        check_bounds("RandomTranslation", "height", layer.height)?;
        check_bounds("RandomTranslation", "width", layer.width)?;
        let seeds = [weights.next_seed(), weights.next_seed()];
        let shape = input.to_vec();
        augment("RandomTranslation", weights, input, move |pass, x| {
            let cx = pass.context();
            let sizes = Sizes::of(cx, x, &shape)?;
            let shift = |seed: u32, bounds: (f32, f32), size: &AnyValue| -> Result<AnyValue> {
                let part = per_sample(pass, x, &[], seed, bounds)?;
                ops::neg(cx, ops::mul(cx, part, floats(cx, size)?)?)
            };
            let dy = shift(seeds[0], layer.height, &sizes.rows)?;
            let dx = shift(seeds[1], layer.width, &sizes.columns)?;
            let (zero, one) = (ops::zeros_like(cx, &dx)?, ops::ones_like(cx, &dx)?);
            let matrix = affine(cx, [&one, &zero, &dx], [&zero, &one, &dy])?;
            transformed(cx, x, &matrix, &sizes, layer.fill, layer.interpolation)
        })
    }
}

/// Slants each sample while training, from its top left corner.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomShear {
    /// How many columns a row is moved by, for each row that it is below the first one. The sign is
    /// drawn, one for both directions.
    pub x: (f32, f32),
    /// How many rows a column is moved by, for each column.
    pub y: (f32, f32),
    /// What is beyond the edges.
    pub fill: Fill,
    /// How pixels are made.
    pub interpolation: Interpolation,
}

impl RandomShear {
    /// By up to so much in both directions.
    #[must_use]
    pub fn new(x: f32, y: f32) -> Self {
        Self {
            x: (-x, x),
            y: (-y, y),
            fill: Fill::Reflect,
            interpolation: Interpolation::Bilinear,
        }
    }
}

impl Layer for RandomShear {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        // Keras takes no negative factor but in place of one that is as large.
        let factor = |(low, high): (f32, f32)| match low == -high {
            true => high.into(),
            false => pair((low, high)),
        };
        let layer = KerasLayer::new("RandomShear")
            .set("x_factor", factor(self.x))
            .set("y_factor", factor(self.y));
        Ok(described(layer, self.fill, self.interpolation))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        check_bounds("RandomShear", "x", layer.x)?;
        check_bounds("RandomShear", "y", layer.y)?;
        let seeds = [0; 3].map(|_| weights.next_seed());
        let shape = input.to_vec();
        augment("RandomShear", weights, input, move |pass, x| {
            let cx = pass.context();
            let side = per_sample(pass, x, &[], seeds[0], (0.0, 1.0))?;
            let is_other = ops::greater(cx, &side, 0.5)?;
            let shear = |seed: u32, bounds: (f32, f32)| -> Result<AnyValue> {
                let factor = per_sample(pass, x, &[], seed, bounds)?;
                ops::select_v2(cx, &is_other, ops::neg(cx, &factor)?, &factor)
            };
            let (down, across) = (shear(seeds[1], layer.y)?, shear(seeds[2], layer.x)?);
            let (zero, one) = (ops::zeros_like(cx, &down)?, ops::ones_like(cx, &down)?);
            let matrix = affine(cx, [&one, &across, &zero], [&down, &one, &zero])?;
            let sizes = Sizes::of(cx, x, &shape)?;
            transformed(cx, x, &matrix, &sizes, layer.fill, layer.interpolation)
        })
    }
}
