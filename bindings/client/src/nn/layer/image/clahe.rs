//! Histograms of parts of images that are made even.

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::range::{VALUES, rescaled};
use super::{cast, check_bounds, check_image, check_sizes, clip, floats, pair};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::policy::narrowed;
use crate::nn::layer::{Built, Layer, elements, wrong_input};
use crate::ops;

/// How many values a histogram tells apart.
const BINS: i64 = 256;

/// The largest side of an image.
const LONGEST: i64 = 1 << 16;

/// Makes the values of each part of an image about equally frequent, always: contrast limited adaptive
/// histogram equalization.
///
/// Each pixel takes the means of four parts around it. The sizes of images are known, and no gradient
/// passes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Clahe {
    /// How many times the mean frequency a value is counted at most; without a limit 0.
    pub limit: f32,
    /// How many parts there are along rows and columns.
    pub parts: (i64, i64),
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

/// 8 by 8 parts and four times the mean frequency. Values are from 0 to 255.
impl Default for Clahe {
    fn default() -> Self {
        Self {
            limit: 4.0,
            parts: (8, 8),
            values: VALUES,
        }
    }
}

/// The parts along one side of an image.
struct Side {
    size: i64,
    parts: i64,
    /// The pixels of a part.
    length: i64,
}

impl Side {
    fn new(size: i64, parts: i64) -> Self {
        // Rounded up.
        let length = (size + parts - 1) / parts;
        Self {
            size,
            parts,
            length,
        }
    }

    /// The pixels of all parts.
    fn whole(&self) -> i64 {
        self.length * self.parts
    }

    /// Of each pixel: the part before it, the one behind it, and how near that is, from 0 to 1.
    fn neighbours(&self) -> ([Vec<i32>; 2], Vec<f32>) {
        let (mut before, mut behind, mut nearness) = (Vec::new(), Vec::new(), Vec::new());
        let length = self.length as f32;
        let last = self.parts - 1;
        for at in 0..self.whole() {
            // As in Keras, for the same rounding.
            let place = (at as f32 - length / 2.0) / length + 1.0;
            let first = place.floor();
            nearness.push(place - first);
            // Beyond the outermost parts are those parts again.
            before.push((first as i64 - 1).clamp(0, last) as i32);
            behind.push((first as i64).clamp(0, last) as i32);
        }
        ([before, behind], nearness)
    }
}

impl Layer for Clahe {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let class = "ContrastLimitedAdaptiveHistogramEqualization";
        Ok(KerasLayer::new(class)
            .set("value_range", pair(self.values))
            .set("clip_limit", self.limit)
            .set("tile_grid_size", vec![self.parts.0, self.parts.1]))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        check_image("Clahe", input)?;
        check_bounds("Clahe", "values", layer.values)?;
        check_bounds("Clahe", "the limit", (0.0, layer.limit))?;
        check_sizes("Clahe", "parts", &[layer.parts.0, layer.parts.1])?;
        let channels = input[2];
        let counts = elements(&[layer.parts.0, layer.parts.1, channels.max(1), BINS]);
        if counts.is_none_or(|count| count > i64::from(i32::MAX)) {
            return Err(Error::argument(format!(
                "Clahe: {:?} parts of {channels} channels have too many frequencies",
                layer.parts
            )));
        }
        let sides = [(input[0], layer.parts.0), (input[1], layer.parts.1)];
        let fits = |&(size, parts): &(i64, i64)| {
            let side = Side::new(size, parts);
            (1..=LONGEST).contains(&size) && side.whole() <= 2 * size
        };
        if channels < 1 || !sides.iter().all(fits) {
            let expected = format!("known sizes up to {LONGEST} that the parts fit into");
            return Err(wrong_input("Clahe", &expected, input));
        }
        let sides = sides.map(|(size, parts)| Side::new(size, parts));
        let built = Built::new(input.to_vec(), move |pass, x| {
            let cx = pass.context();
            let x = rescaled(cx, floats(cx, x)?, layer.values, VALUES)?;
            let y = evened(cx, &x, &sides, channels, layer.limit)?;
            rescaled(cx, y, VALUES, layer.values)
        })?;
        narrowed(built, weights)
    }
}

/// Equalizes images of values from 0 to 255.
fn evened(
    cx: &AnyContext,
    x: &AnyValue,
    sides: &[Side; 2],
    channels: i64,
    limit: f32,
) -> Result<AnyValue> {
    let [rows, columns] = sides;
    let more = sides
        .each_ref()
        .map(|side| (side.whole() - side.size) as i32);
    let padding = [[0, 0], [0, more[0]], [0, more[1]], [0, 0]];
    let x = ops::mirror_pad(cx, x, padding, ops::MirrorPadMode::Symmetric)?;
    let pixels = cast(cx, &clip(cx, x, VALUES)?, DataType::INT32)?;
    // (batch, parts, parts, channels, pixels of a part)
    let shape = [
        -1,
        rows.parts,
        rows.length,
        columns.parts,
        columns.length,
        channels,
    ];
    let parts = ops::reshape(cx, &pixels, shape.as_slice())?;
    let parts = ops::transpose(cx, parts, [0, 1, 3, 5, 2, 4])?;
    let area = rows.length * columns.length;
    let parts = ops::reshape(cx, parts, [-1, area].as_slice())?;
    let table = functions(cx, parts, area, limit)?;
    let all = rows.parts * columns.parts * channels * BINS;
    let table = ops::reshape(cx, table, [-1, all].as_slice())?;

    let numbers = |count: i64| ops::range(cx, 0, count as i32, 1);
    let offset = ops::mul(cx, numbers(channels)?, BINS as i32)?;
    let offset = ops::add_v2(cx, pixels, offset)?;
    let ((tops, down), (lefts, across)) = (rows.neighbours(), columns.neighbours());
    // What lies along rows is (rows, 1, 1), along columns (columns, 1).
    let step = columns.parts * channels * BINS;
    let along = |places: &[i32], step: i64, shape: &[i64]| -> Result<AnyValue> {
        let places: Vec<i32> = places.iter().map(|&at| at * step as i32).collect();
        cx.constant(&Tensor::from_vec(places, shape)?)
    };
    let (height, width) = (rows.whole(), columns.whole());
    let value = |row: &[i32], column: &[i32]| -> Result<AnyValue> {
        let row = along(row, step, &[height, 1, 1])?;
        let column = along(column, channels * BINS, &[width, 1])?;
        let place = ops::add_v2(cx, &offset, ops::add_v2(cx, row, column)?)?;
        let options = ops::GatherV2Options {
            batch_dims: Some(1),
        };
        ops::gather_v2(cx, &table, place, 1, options)
    };
    let nearness = |near: Vec<f32>, shape: &[i64]| -> Result<[AnyValue; 2]> {
        let near = cx.constant(&Tensor::from_vec(near, shape)?)?;
        Ok([ops::sub(cx, 1.0, &near)?, near])
    };
    let mean = |first: AnyValue, second: AnyValue, near: &[AnyValue; 2]| {
        let first = ops::mul(cx, first, &near[0])?;
        ops::add_v2(cx, first, ops::mul(cx, second, &near[1])?)
    };
    let (down, across) = (
        nearness(down, &[height, 1, 1])?,
        nearness(across, &[width, 1])?,
    );
    let row = |top: &[i32]| mean(value(top, &lefts[0])?, value(top, &lefts[1])?, &across);
    let y = mean(row(&tops[0])?, row(&tops[1])?, &down)?;
    let size = [-1, rows.size as i32, columns.size as i32, -1];
    ops::slice(cx, y, [0, 0, 0, 0], size)
}

/// What each value from 0 to 255 becomes in parts of some pixels, (parts, 256).
fn functions(cx: &AnyContext, parts: AnyValue, area: i64, limit: f32) -> Result<AnyValue> {
    let weights = cx.constant(&Tensor::zeros(DataType::FLOAT, &[0])?)?;
    let options = ops::DenseBincountOptions::default();
    let mut counts = ops::dense_bincount(cx, parts, BINS as i32, weights, options)?;
    if limit > 0.0 {
        let limit = (f64::from(limit) * area as f64 / BINS as f64) as f32;
        let clipped = ops::minimum(cx, &counts, limit)?;
        let options = ops::SumOptions {
            keep_dims: Some(true),
        };
        let excess = ops::sum(cx, ops::sub(cx, counts, &clipped)?, [1], options)?;
        counts = ops::add_v2(cx, clipped, ops::div(cx, excess, BINS as f32)?)?;
    }
    let sums = ops::cumsum(cx, counts, 1, ops::CumsumOptions::default())?;
    let options = ops::MinOptions {
        keep_dims: Some(true),
    };
    let least = ops::min(cx, &sums, [1], options)?;
    let most = ops::sub(cx, area as f32, &least)?;
    let is_flat = ops::equal(cx, &most, 0.0_f32, ops::EqualOptions::default())?;
    let one = ops::ones_like(cx, &most)?;
    let most = ops::select_v2(cx, is_flat, one, most)?;
    let part = ops::mul(cx, ops::sub(cx, sums, least)?, 255.0)?;
    clip(cx, ops::div(cx, part, most)?, VALUES)
}
