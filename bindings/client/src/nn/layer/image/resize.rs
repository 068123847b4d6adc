//! Images of another size.

use tfp_core::{Context, DataType, Result, Tensor};

use super::{between, cast, check_image, check_sizes, floats, scalar, size_of};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::policy::narrowed;
use crate::nn::layer::{Built, Layer};
use crate::ops;

/// How the pixels of another size are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ResizeMethod {
    /// The nearest pixel.
    Nearest,
    /// Weighted means of four neighbours.
    #[default]
    Bilinear,
    /// A cubic function of sixteen neighbours.
    Bicubic,
    /// A windowed sinc function with a radius of 3.
    Lanczos3,
    /// A windowed sinc function with a radius of 5.
    Lanczos5,
    /// Means of the area that a pixel covers.
    Area,
}

impl ResizeMethod {
    pub(crate) const ALL: [(Self, &'static str); 6] = [
        (Self::Nearest, "nearest"),
        (Self::Bilinear, "bilinear"),
        (Self::Bicubic, "bicubic"),
        (Self::Lanczos3, "lanczos3"),
        (Self::Lanczos5, "lanczos5"),
        (Self::Area, "area"),
    ];

    fn name(self) -> &'static str {
        let found = Self::ALL.iter().find(|(method, _)| *method == self);
        found.map_or("bilinear", |(_, name)| name)
    }
}

/// What happens to images whose sides are in another proportion than the result's.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum AspectRatio {
    /// They are stretched.
    #[default]
    Stretched,
    /// Both ends of the longer side are cut off first.
    Cropped,
    /// The shorter side gets pixels of this value at both ends first.
    Padded(f32),
}

/// Images of one size: (batch, rows, columns, channels) to (batch, height, width, channels).
///
/// Float32 comes out, and integers stay integers: they are rounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Resizing {
    /// The rows of the result.
    pub height: i64,
    /// The columns of the result.
    pub width: i64,
    /// How pixels are made.
    pub method: ResizeMethod,
    /// What happens to other proportions.
    pub aspect_ratio: AspectRatio,
    /// Whether smaller images are smoothed; not for [`ResizeMethod::Nearest`] and
    /// [`ResizeMethod::Area`].
    pub antialias: bool,
}

impl Resizing {
    /// Stretches images, with weighted means of four neighbours.
    #[must_use]
    pub fn new(height: i64, width: i64) -> Self {
        Self {
            height,
            width,
            method: ResizeMethod::Bilinear,
            aspect_ratio: AspectRatio::Stretched,
            antialias: false,
        }
    }
}

impl Layer for Resizing {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let layer = KerasLayer::new("Resizing")
            .set("height", self.height)
            .set("width", self.width)
            .set("interpolation", self.method.name())
            .set("antialias", self.antialias);
        Ok(match self.aspect_ratio {
            AspectRatio::Stretched => layer,
            AspectRatio::Cropped => layer.set("crop_to_aspect_ratio", true),
            AspectRatio::Padded(value) => layer
                .set("pad_to_aspect_ratio", true)
                .set("fill_value", value),
        })
    }

    fn build(&self, _: &Weights, input: &[i64]) -> Result<Built> {
        check_image("Resizing", input)?;
        check_sizes("Resizing", "sizes", &[self.height, self.width])?;
        let layer = *self;
        let input = input.to_vec();
        let output = vec![layer.height, layer.width, input[2]];
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let to = (layer.height as i32, layer.width as i32);
            let fitting = match layer.aspect_ratio {
                AspectRatio::Stretched => x.clone(),
                AspectRatio::Cropped => cropped(cx, x, &input, to)?,
                AspectRatio::Padded(value) => padded(cx, x, &input, to, value)?,
            };
            let y = resize(cx, &fitting, to, layer.method, layer.antialias)?;
            as_before(cx, y, x.dtype())
        })
    }
}

/// Resized images of an element type: integers are rounded, and kept in their range.
fn as_before(cx: &AnyContext, y: AnyValue, dtype: DataType) -> Result<AnyValue> {
    let (least, most) = match dtype {
        _ if y.dtype() == dtype => return Ok(y),
        DataType::UINT8 => (0.0, 255.0),
        DataType::INT8 => (-128.0, 127.0),
        DataType::UINT16 => (0.0, 65535.0),
        DataType::INT16 => (-32768.0, 32767.0),
        // The largest float32 below the largest integer.
        DataType::INT32 => (-2_147_483_648.0, 2_147_483_520.0),
        DataType::INT64 => (i64::MIN as f32, 9_223_371_487_098_961_920.0),
        _ => return cast(cx, &y, dtype),
    };
    let y = super::clip(cx, ops::round(cx, y)?, (least, most))?;
    cast(cx, &y, dtype)
}

/// The size that a side has in the proportion of the result, an int32 scalar: other * this / that.
fn in_proportion(cx: &AnyContext, other: &AnyValue, this: i32, that: i32) -> Result<AnyValue> {
    let product = floats(cx, &ops::mul(cx, other, this)?)?;
    cast(cx, &ops::div(cx, product, that as f32)?, DataType::INT32)
}

/// Half of a difference, without the rest.
fn half(cx: &AnyContext, more: &AnyValue, less: &AnyValue) -> Result<AnyValue> {
    ops::floor_div(cx, ops::sub(cx, more, less)?, 2)
}

fn cropped(
    cx: &AnyContext,
    x: &AnyValue,
    input: &[i64],
    (height, width): (i32, i32),
) -> Result<AnyValue> {
    let (rows, columns) = (size_of(cx, x, input, 1)?, size_of(cx, x, input, 2)?);
    let within = |size: &AnyValue, wanted: AnyValue| -> Result<AnyValue> {
        ops::maximum(cx, ops::minimum(cx, size, wanted)?, 1)
    };
    let tall = within(&rows, in_proportion(cx, &columns, height, width)?)?;
    let wide = within(&columns, in_proportion(cx, &rows, width, height)?)?;
    let (top, left) = (half(cx, &rows, &tall)?, half(cx, &columns, &wide)?);
    let begin = ops::pack(cx, (0, &top, &left, 0), ops::PackOptions::default())?;
    let size = ops::pack(cx, (-1, &tall, &wide, -1), ops::PackOptions::default())?;
    ops::slice(cx, x, begin, size)
}

fn padded(
    cx: &AnyContext,
    x: &AnyValue,
    input: &[i64],
    (height, width): (i32, i32),
    value: f32,
) -> Result<AnyValue> {
    let (rows, columns) = (size_of(cx, x, input, 1)?, size_of(cx, x, input, 2)?);
    let tall = ops::maximum(cx, &rows, in_proportion(cx, &columns, height, width)?)?;
    let wide = ops::maximum(cx, &columns, in_proportion(cx, &rows, width, height)?)?;
    // Both ends get as many, so the result may be smaller than wanted by one.
    let (above, beside) = (half(cx, &tall, &rows)?, half(cx, &wide, &columns)?);
    let sides = (0, 0, &above, &above, &beside, &beside, 0, 0);
    let sides = ops::pack(cx, sides, ops::PackOptions::default())?;
    let sides = ops::reshape(cx, sides, [4, 2])?;
    let value = cast(cx, &scalar(cx, value)?, x.dtype())?;
    ops::pad_v2(cx, x, sides, value)
}

/// Images of a size: float32, but for the nearest pixels.
fn resize(
    cx: &AnyContext,
    x: &AnyValue,
    (height, width): (i32, i32),
    method: ResizeMethod,
    antialias: bool,
) -> Result<AnyValue> {
    let size = [height, width];
    let kernel = match (method, antialias) {
        (ResizeMethod::Nearest, _) => {
            let options = ops::ResizeNearestNeighborOptions {
                align_corners: Some(false),
                half_pixel_centers: Some(true),
            };
            return ops::resize_nearest_neighbor(cx, x, size, options);
        }
        (ResizeMethod::Bilinear, false) => {
            let options = ops::ResizeBilinearOptions {
                align_corners: Some(false),
                half_pixel_centers: Some(true),
            };
            return ops::resize_bilinear(cx, x, size, options);
        }
        (ResizeMethod::Bicubic, false) => {
            let options = ops::ResizeBicubicOptions {
                align_corners: Some(false),
                half_pixel_centers: Some(true),
            };
            return ops::resize_bicubic(cx, x, size, options);
        }
        (ResizeMethod::Area, _) => {
            return ops::resize_area(cx, x, size, ops::ResizeAreaOptions::default());
        }
        (ResizeMethod::Bilinear, true) => "triangle",
        (ResizeMethod::Bicubic, true) => "keyscubic",
        (ResizeMethod::Lanczos3, _) => "lanczos3",
        (ResizeMethod::Lanczos5, _) => "lanczos5",
    };
    let before = ops::slice(cx, super::shape_of(cx, x)?, [1], [2])?;
    let scale = ops::div(cx, [height as f32, width as f32], floats(cx, &before)?)?;
    let options = ops::ScaleAndTranslateOptions {
        kernel_type: Some(kernel.into()),
        antialias: Some(antialias),
    };
    ops::scale_and_translate(cx, x, size, scale, [0.0_f32, 0.0], options)
}

/// The part of images from a place: `size` rows and columns from `begin`.
fn part(cx: &AnyContext, x: &AnyValue, begin: (i64, i64), size: (i64, i64)) -> Result<AnyValue> {
    let begin = [0, begin.0 as i32, begin.1 as i32, 0];
    ops::slice(cx, x, begin, [-1, size.0 as i32, size.1 as i32, -1])
}

/// The sizes of images that have to be known.
fn known(layer: &str, input: &[i64], size: (i64, i64)) -> Result<(i64, i64)> {
    check_image(layer, input)?;
    check_sizes(layer, "sizes", &[size.0, size.1])?;
    check_sizes(layer, "known sizes of images", &input[..2])?;
    Ok((input[0], input[1]))
}

/// The middle of images; images that are too small become larger.
///
/// Of an image that is smaller than the result in one direction, the largest part in the result's
/// proportion is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CenterCrop {
    /// The rows of the result.
    pub height: i64,
    /// The columns of the result.
    pub width: i64,
}

impl Layer for CenterCrop {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("CenterCrop")
            .set("height", self.height)
            .set("width", self.width))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { height, width } = *self;
        let (rows, columns) = known("CenterCrop", input, (height, width))?;
        let output = vec![height, width, input[2]];
        let input = input.to_vec();
        let built = Built::new(output, move |pass, x| {
            let cx = pass.context();
            let x = floats(cx, x)?;
            if rows >= height && columns >= width {
                let begin = ((rows - height) / 2, (columns - width) / 2);
                return part(cx, &x, begin, (height, width));
            }
            let to = (height as i32, width as i32);
            let x = cropped(cx, &x, &input, to)?;
            resize(cx, &x, to, ResizeMethod::Bilinear, false)
        })?;
        narrowed(built, weights)
    }
}

/// A part of images while training, at one random place for all of a batch.
///
/// Otherwise images stay as they are, as in Keras 3.15, so what follows has to take images of any
/// size unless the sizes are equal. Images that are not larger than the result in both directions have
/// a fixed part, which is resized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RandomCrop {
    /// The rows of the result.
    pub height: i64,
    /// The columns of the result.
    pub width: i64,
}

impl Layer for RandomCrop {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        Ok(KerasLayer::new("RandomCrop")
            .set("height", self.height)
            .set("width", self.width))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self { height, width } = *self;
        let (rows, columns) = known("RandomCrop", input, (height, width))?;
        let seeds = [weights.next_seed(), weights.next_seed()];
        let is_equal = (rows, columns) == (height, width);
        let output = match is_equal {
            true => vec![height, width, input[2]],
            false => vec![-1, -1, input[2]],
        };
        let built = Built::new(output, move |pass, x| {
            let cx = pass.context();
            let x = floats(cx, x)?;
            if !pass.is_training() || is_equal {
                return Ok(x);
            }
            if rows > height && columns > width {
                let place = |seed: u32, free: i64| -> Result<AnyValue> {
                    let one = cx.constant(&Tensor::zeros(DataType::INT32, &[0])?)?;
                    let draw = between(pass, &x, one, seed, (0.0, (free + 1) as f32))?;
                    cast(cx, &draw, DataType::INT32)
                };
                let top = place(seeds[0], rows - height)?;
                let left = place(seeds[1], columns - width)?;
                let begin = ops::pack(cx, (0, top, left, 0), ops::PackOptions::default())?;
                return ops::slice(cx, &x, begin, [-1, height as i32, width as i32, -1]);
            }
            let proportion = |other: i64, this: i64, that: i64, most: i64| {
                let wanted = (other as f64 * this as f64 / that as f64) as i64;
                wanted.min(most).max(1)
            };
            let top = (rows - proportion(columns, height, width, rows)) / 2;
            let left = (columns - proportion(rows, width, height, columns)) / 2;
            let size = (height.min(rows - top), width.min(columns - left));
            let y = part(cx, &x, (top, left), size)?;
            if size == (height, width) {
                return Ok(y);
            }
            let to = (height as i32, width as i32);
            resize(cx, &y, to, ResizeMethod::Bilinear, false)
        })?;
        narrowed(built, weights)
    }
}
