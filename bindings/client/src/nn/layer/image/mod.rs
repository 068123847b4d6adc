//! Images, (batch, rows, columns, channels): their sizes, and what changes them at random while
//! training.
//!
//! The numbers are those of Keras 3: what is drawn from one number alone gives Keras' result. Each
//! sample has draws of its own, and each step has others.

mod clahe;
mod color;
mod drawn;
mod elastic;
mod filter;
mod geometry;
mod hue;
mod mix;
mod perspective;
mod range;
mod resize;
mod tone;
mod transform;

use tfp_core::{Context, DataType, Element, Error, Result, Tensor};

use super::noise::{shape_of, uniform};
use super::{Built, Interpolation, Pass, check_sizes, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::formats::json::Json;
use crate::nn::Weights;
use crate::ops;

pub use self::clahe::Clahe;
pub use self::color::{
    RandomBrightness, RandomColorDegeneration, RandomColorJitter, RandomContrast, RandomGrayscale,
};
pub use self::drawn::{AugMix, RandAugment};
pub use self::elastic::RandomElasticTransform;
pub use self::filter::{RandomErasing, RandomGaussianBlur, RandomSharpness};
pub use self::geometry::{
    Flip, RandomFlip, RandomRotation, RandomShear, RandomTranslation, RandomZoom,
};
pub use self::hue::{RandomHue, RandomSaturation};
pub use self::mix::{CutMix, MixUp};
pub use self::perspective::RandomPerspective;
pub use self::resize::{AspectRatio, CenterCrop, RandomCrop, ResizeMethod, Resizing};
pub use self::tone::{AutoContrast, Equalization, RandomInvert, RandomPosterization, Solarization};
pub use self::transform::Fill;

/// Refuses what is not one image per sample.
fn check_image(layer: &str, input: &[i64]) -> Result<()> {
    match input.len() {
        3 => Ok(()),
        _ => Err(wrong_input(layer, "rows, columns and channels", input)),
    }
}

/// Refuses bounds that are not numbers in their order.
fn check_bounds(layer: &str, what: &str, bounds: (f32, f32)) -> Result<()> {
    let (low, high) = bounds;
    if low <= high && low.is_finite() && high.is_finite() {
        return Ok(());
    }
    Err(Error::argument(format!(
        "{layer}: {what} from {low} to {high}, expected two numbers in their order"
    )))
}

/// Two numbers, as files have them.
fn pair((low, high): (f32, f32)) -> Json {
    Json::List(vec![low.into(), high.into()])
}

/// The name that files have for it.
fn interpolation_name(interpolation: Interpolation) -> &'static str {
    match interpolation {
        Interpolation::Nearest => "nearest",
        Interpolation::Bilinear => "bilinear",
    }
}

/// A layer that changes its float32 images while training, and gives them as they are otherwise. The
/// results have the type in which layers of these weights compute.
fn augment(
    layer: &str,
    weights: &Weights,
    input: &[i64],
    change: impl Fn(&Pass<'_>, &AnyValue) -> Result<AnyValue> + Send + Sync + 'static,
) -> Result<Built> {
    check_image(layer, input)?;
    let to = weights.layer_policy().compute();
    Built::new(input.to_vec(), move |pass, x| {
        let cx = pass.context();
        match pass.is_training() {
            true => cast(cx, &change(pass, &floats(cx, x)?)?, to),
            false => cast(cx, x, to),
        }
    })
}

/// A value as float32.
fn floats(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    cast(cx, x, DataType::FLOAT)
}

fn cast(cx: &AnyContext, x: &AnyValue, to: DataType) -> Result<AnyValue> {
    if x.dtype() == to {
        return Ok(x.clone());
    }
    ops::cast(cx, x, to, ops::CastOptions::default())
}

/// Numbers between two bounds of a shape: the first bound where both are equal.
fn between(
    pass: &Pass<'_>,
    x: &AnyValue,
    shape: AnyValue,
    seed: u32,
    (low, high): (f32, f32),
) -> Result<AnyValue> {
    let cx = pass.context();
    let draw = uniform(pass, x, shape, seed)?;
    if (low, high) == (0.0, 1.0) {
        return Ok(draw);
    }
    ops::add_v2(cx, ops::mul(cx, draw, high - low)?, low)
}

/// As [`between`], for each sample of float32 images: (batch, `rest`..).
fn per_sample(
    pass: &Pass<'_>,
    x: &AnyValue,
    rest: &[i32],
    seed: u32,
    bounds: (f32, f32),
) -> Result<AnyValue> {
    let cx = pass.context();
    let batch = ops::slice(cx, shape_of(cx, x)?, [0], [1])?;
    let shape = match rest {
        [] => batch,
        _ => ops::concat_v2(cx, (batch, rest), 0)?,
    };
    between(pass, x, shape, seed, bounds)
}

fn scalar<T: Element>(cx: &AnyContext, value: T) -> Result<AnyValue> {
    cx.constant(&Tensor::scalar(value)?)
}

/// The size of an axis of the images, an int32 scalar: a constant where it is known.
fn size_of(cx: &AnyContext, x: &AnyValue, input: &[i64], axis: usize) -> Result<AnyValue> {
    let known = input
        .get(axis - 1)
        .and_then(|&size| i32::try_from(size).ok());
    if let Some(size) = known.filter(|&size| size >= 0) {
        return scalar(cx, size);
    }
    let size = ops::slice(cx, shape_of(cx, x)?, [axis as i32], [1])?;
    ops::reshape(cx, size, [0_i32; 0])
}

/// Values from the smallest to the largest one.
fn clip(cx: &AnyContext, x: AnyValue, (least, most): (f32, f32)) -> Result<AnyValue> {
    ops::clip_by_value(cx, x, least, most)
}
