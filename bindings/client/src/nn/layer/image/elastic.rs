//! Images whose pixels are moved by smooth noise.

use tfp_core::{Context, DataType, Error, Result, Tensor};

use super::filter::{filtered, gaussian};
use super::range::{VALUES, applies, check_valued, valued};
use super::transform::{Fill, Sizes, described};
use super::{augment, between, cast, check_bounds, clip, floats, pair, shape_of};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Weights;
use crate::nn::layer::described::KerasLayer;
use crate::nn::layer::noise::normal;
use crate::nn::layer::{Built, Interpolation, Layer, Pass, channels};
use crate::ops;

/// Moves the pixels of some samples by smooth noise while training, all of a batch as far.
///
/// As in Keras 3.15, a pixel moves as many rows as columns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomElasticTransform {
    /// The smallest and the largest probability.
    pub factor: (f32, f32),
    /// How far pixels move at least and at most, from 0 to 1. At 1 the noise is as smooth as 5 % of the
    /// shorter side.
    pub scale: (f32, f32),
    /// What is beyond the edges.
    pub fill: Fill,
    /// How pixels are made.
    pub interpolation: Interpolation,
    /// The smallest and the largest value.
    pub values: (f32, f32),
}

impl RandomElasticTransform {
    /// With probabilities and scales up to these. Values are from 0 to 255.
    #[must_use]
    pub fn new(factor: f32, scale: f32) -> Self {
        Self {
            factor: (0.0, factor),
            scale: (0.0, scale),
            fill: Fill::Reflect,
            interpolation: Interpolation::Bilinear,
            values: VALUES,
        }
    }
}

impl Layer for RandomElasticTransform {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let layer = valued("RandomElasticTransform", self.factor, self.values);
        let layer = layer.set("scale", pair(self.scale));
        Ok(described(layer, self.fill, self.interpolation))
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = *self;
        check_valued("RandomElasticTransform", layer.factor, layer.values)?;
        check_bounds("RandomElasticTransform", "the scale", layer.scale)?;
        if layer.scale.0 < 0.0 || layer.scale.1 > 1.0 {
            return Err(Error::argument(format!(
                "RandomElasticTransform: the scale from {} to {}, expected 0 to 1",
                layer.scale.0, layer.scale.1
            )));
        }
        let channels = channels("RandomElasticTransform", input)?;
        let chance = [weights.next_seed(), weights.next_seed()];
        let seeds = [weights.next_seed(), weights.next_seed()];
        let shape = input.to_vec();
        augment("RandomElasticTransform", weights, input, move |pass, x| {
            if layer.scale.1 == 0.0 || layer.factor.1 == 0.0 {
                return Ok(x.clone());
            }
            let cx = pass.context();
            let sizes = Sizes::of(cx, x, &shape)?;
            let moves = moves(pass, x, &sizes, layer.scale, seeds)?;
            let y = moved(cx, x, &sizes, &moves, &layer, channels)?;
            let is_moved = applies(pass, x, chance, layer.factor)?;
            clip(cx, ops::select_v2(cx, is_moved, y, x)?, layer.values)
        })
    }
}

/// How far each pixel moves along both axes, (batch, rows, columns).
fn moves(
    pass: &Pass<'_>,
    x: &AnyValue,
    sizes: &Sizes,
    scale: (f32, f32),
    [draw, noise]: [u32; 2],
) -> Result<AnyValue> {
    let cx = pass.context();
    let (rows, columns) = (floats(cx, &sizes.rows)?, floats(cx, &sizes.columns)?);
    let scalar = cx.constant(&Tensor::zeros(DataType::INT32, &[0])?)?;
    let scale = between(pass, x, scalar, draw, scale)?;
    let part = |side: AnyValue, part: f32| ops::mul(cx, side, ops::mul(cx, &scale, part)?);
    let far = part(ops::maximum(cx, &rows, &columns)?, 0.1)?;
    let sigma = part(ops::minimum(cx, &rows, &columns)?, 0.05)?;
    let channel = ops::slice(cx, x, [0, 0, 0, 0], [-1, -1, -1, 1])?;
    let noise = ops::mul(cx, normal(pass, &channel, noise)?, &sigma)?;
    // Six deviations, an odd number.
    let size = ops::mul(cx, cast(cx, &sigma, DataType::INT32)?, 6)?;
    let half = ops::floor_div(cx, &size, 2)?;
    let places = ops::range(cx, ops::neg(cx, &half)?, ops::add_v2(cx, half, 1)?, 1)?;
    // A deviation of zero divides nothing.
    let sigma = ops::maximum(cx, sigma, 1e-6_f32)?;
    let line = gaussian(cx, floats(cx, &places)?, &sigma)?;
    let kernel = ops::mul(cx, ops::expand_dims(cx, &line, 1)?, line)?;
    let kernel = ops::expand_dims(cx, ops::expand_dims(cx, kernel, 2)?, 3)?;
    let smooth = filtered(cx, &noise, kernel, 1)?;
    let options = ops::SqueezeOptions {
        squeeze_dims: Some(&[3]),
    };
    ops::mul(cx, ops::squeeze(cx, smooth, options)?, far)
}

/// Images whose pixels come from places so far away.
fn moved(
    cx: &AnyContext,
    x: &AnyValue,
    sizes: &Sizes,
    moves: &AnyValue,
    layer: &RandomElasticTransform,
    channels: i64,
) -> Result<AnyValue> {
    let numbers = |size: &AnyValue| floats(cx, &ops::range(cx, 0, size, 1)?);
    let row = ops::expand_dims(cx, numbers(&sizes.rows)?, 1)?;
    let down = parts(cx, &ops::add_v2(cx, row, moves)?, layer.interpolation)?;
    let across = ops::add_v2(cx, numbers(&sizes.columns)?, moves)?;
    let across = parts(cx, &across, layer.interpolation)?;
    let batch = ops::slice(cx, shape_of(cx, x)?, [0], [1])?;
    let flat = ops::concat_v2(cx, (batch, [-1, channels as i32]), 0)?;
    let flat = ops::reshape(cx, x, flat)?;
    let mut sum = None;
    for (row, of_row) in &down {
        let (row, is_row) = placed(cx, row, &sizes.rows, layer.fill)?;
        for (column, of_column) in &across {
            let (column, is_column) = placed(cx, column, &sizes.columns, layer.fill)?;
            let place = ops::add_v2(cx, ops::mul(cx, &row, &sizes.columns)?, column)?;
            let options = ops::GatherV2Options {
                batch_dims: Some(1),
            };
            let mut value = ops::gather_v2(cx, &flat, place, 1, options)?;
            if let Fill::Constant(fill) = layer.fill {
                let is_inside = ops::logical_and(cx, &is_row, is_column)?;
                let is_inside = ops::expand_dims(cx, is_inside, 3)?;
                value = ops::select_v2(cx, is_inside, value, fill)?;
            }
            let share = ops::expand_dims(cx, ops::mul(cx, of_row, of_column)?, 3)?;
            let value = ops::mul(cx, value, share)?;
            sum = Some(match sum {
                Some(sum) => ops::add_v2(cx, sum, value)?,
                None => value,
            });
        }
    }
    sum.ok_or_else(|| Error::argument("a pixel comes from somewhere"))
}

/// The pixels that places are between, int32, and how much of each there is.
fn parts(
    cx: &AnyContext,
    places: &AnyValue,
    interpolation: Interpolation,
) -> Result<Vec<(AnyValue, AnyValue)>> {
    if interpolation == Interpolation::Nearest {
        let near = cast(cx, &ops::round(cx, places)?, DataType::INT32)?;
        return Ok(vec![(near, ops::ones_like(cx, places)?)]);
    }
    let lower = ops::floor(cx, places)?;
    let upper = ops::sub(cx, places, &lower)?;
    let lower = cast(cx, &lower, DataType::INT32)?;
    let rest = ops::sub(cx, 1.0, &upper)?;
    Ok(vec![
        (lower.clone(), rest),
        (ops::add_v2(cx, lower, 1)?, upper),
    ])
}

/// The places inside of a side that others stand for, and whether they are there.
fn placed(
    cx: &AnyContext,
    place: &AnyValue,
    size: &AnyValue,
    fill: Fill,
) -> Result<(AnyValue, AnyValue)> {
    let is_after = ops::greater_equal(cx, place, 0)?;
    let is_inside = ops::logical_and(cx, is_after, ops::less(cx, place, size)?)?;
    let place = match fill {
        Fill::Constant(_) | Fill::Nearest => {
            ops::clip_by_value(cx, place, 0, ops::sub(cx, size, 1)?)?
        }
        Fill::Wrap => ops::floor_mod(cx, place, size)?,
        Fill::Reflect => {
            // As in Keras, whose outermost pixels are not repeated before the first one.
            let twice = ops::mul(cx, size, 2)?;
            let place = ops::floor_mod(cx, ops::abs(cx, place)?, &twice)?;
            let is_under = ops::less(cx, &place, size)?;
            let back = ops::sub(cx, ops::sub(cx, twice, &place)?, 1)?;
            ops::select_v2(cx, is_under, place, back)?
        }
    };
    Ok((place, is_inside))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EagerContext;
    use crate::context::any::Mode;

    #[test]
    fn places_beyond_the_edges_stand_for_others() -> Result<()> {
        let cx = EagerContext::new()?.any();
        let places = cx.constant(&Tensor::from_array([-5, -1, 0, 3, 4, 6])?)?;
        let size = cx.constant(&Tensor::scalar(4)?)?;
        for (fill, expected) in [
            (Fill::Constant(0.0), [0, 0, 0, 3, 3, 3]),
            (Fill::Nearest, [0, 0, 0, 3, 3, 3]),
            (Fill::Wrap, [3, 3, 0, 3, 0, 2]),
            // The numbers of Keras 3.15.
            (Fill::Reflect, [2, 1, 0, 3, 3, 1]),
        ] {
            let (found, is_inside) = placed(&cx, &places, &size, fill)?;
            let found = found.handle()?.to_tensor()?.to_vec::<i32>()?;
            assert_eq!(found, expected, "{fill:?}");
            let is_inside = is_inside.handle()?.to_tensor()?.to_vec::<bool>()?;
            assert_eq!(is_inside, [false, false, true, true, false, false]);
        }
        Ok(())
    }
}
