//! How pixels come from other places: what is beyond the edges, and functions of places.

use tfp_core::Result;

use super::{floats, interpolation_name, size_of};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::layer::Interpolation;
use crate::nn::layer::described::KerasLayer;
use crate::ops;

/// What is beyond the edges of an image.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Fill {
    /// One value.
    Constant(f32),
    /// The nearest pixel.
    Nearest,
    /// The image in a mirror, with its outermost pixels: `d c b a | a b c d | d c b a`.
    #[default]
    Reflect,
    /// The image again.
    Wrap,
}

impl Fill {
    fn name(self) -> &'static str {
        match self {
            Self::Constant(_) => "constant",
            Self::Nearest => "nearest",
            Self::Reflect => "reflect",
            Self::Wrap => "wrap",
        }
    }

    fn value(self) -> f32 {
        match self {
            Self::Constant(value) => value,
            _ => 0.0,
        }
    }
}

/// Describes how pixels are made.
pub(super) fn described(layer: KerasLayer, fill: Fill, interpolation: Interpolation) -> KerasLayer {
    layer
        .set("fill_mode", fill.name())
        .set("fill_value", fill.value())
        .set("interpolation", interpolation_name(interpolation))
}

/// Moves pixels: a place (x, y) of the result is one of `x`, by a matrix (batch, 8) whose rows are
/// the first eight numbers of 3 by 3, the last of which is 1.
pub(super) fn transformed(
    cx: &AnyContext,
    x: &AnyValue,
    matrix: &AnyValue,
    sizes: &Sizes,
    fill: Fill,
    interpolation: Interpolation,
) -> Result<AnyValue> {
    let size = ops::pack(
        cx,
        [&sizes.rows, &sizes.columns],
        ops::PackOptions::default(),
    )?;
    let interpolation = match interpolation {
        Interpolation::Nearest => "NEAREST",
        Interpolation::Bilinear => "BILINEAR",
    };
    let mode = match fill {
        Fill::Constant(_) => "CONSTANT",
        Fill::Nearest => "NEAREST",
        Fill::Reflect => "REFLECT",
        Fill::Wrap => "WRAP",
    };
    let options = ops::ImageProjectiveTransformV3Options {
        fill_mode: Some(mode.into()),
    };
    ops::image_projective_transform_v3(cx, x, matrix, size, fill.value(), interpolation, options)
}

/// The sizes of images, int32 scalars.
pub(super) struct Sizes {
    pub(super) rows: AnyValue,
    pub(super) columns: AnyValue,
}

impl Sizes {
    pub(super) fn of(cx: &AnyContext, x: &AnyValue, input: &[i64]) -> Result<Self> {
        Ok(Self {
            rows: size_of(cx, x, input, 1)?,
            columns: size_of(cx, x, input, 2)?,
        })
    }

    /// The last row and column, as float32.
    pub(super) fn last(&self, cx: &AnyContext) -> Result<(AnyValue, AnyValue)> {
        Ok((
            ops::sub(cx, floats(cx, &self.rows)?, 1.0)?,
            ops::sub(cx, floats(cx, &self.columns)?, 1.0)?,
        ))
    }
}

/// Matrices (batch, 8) of an affine function, each number (batch).
pub(super) fn affine(cx: &AnyContext, x: [&AnyValue; 3], y: [&AnyValue; 3]) -> Result<AnyValue> {
    let zero = ops::zeros_like(cx, x[0])?;
    let options = ops::PackOptions { axis: Some(1) };
    ops::pack(
        cx,
        [x[0], x[1], x[2], y[0], y[1], y[2], &zero, &zero],
        options,
    )
}
