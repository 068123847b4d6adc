//! Ranges of values, and chances.

use tfp_core::Result;

use super::transform::Sizes;
use super::{check_bounds, floats, pair, per_sample};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::layer::Pass;
use crate::nn::layer::described::KerasLayer;
use crate::ops;

/// The smallest and the largest value of images, where a layer doesn't say otherwise.
pub(super) const VALUES: (f32, f32) = (0.0, 255.0);

/// Values of one range in another.
pub(super) fn rescaled(
    cx: &AnyContext,
    x: AnyValue,
    from: (f32, f32),
    to: (f32, f32),
) -> Result<AnyValue> {
    if from == to {
        return Ok(x);
    }
    let part = ops::div(cx, ops::sub(cx, x, from.0)?, from.1 - from.0)?;
    ops::add_v2(cx, ops::mul(cx, part, to.1 - to.0)?, to.0)
}

/// Whether each sample is changed, (batch, 1, 1, 1): with a probability that is drawn first.
pub(super) fn applies(
    pass: &Pass<'_>,
    x: &AnyValue,
    seeds: [u32; 2],
    factor: (f32, f32),
) -> Result<AnyValue> {
    let probability = per_sample(pass, x, &[1, 1, 1], seeds[0], factor)?;
    let draw = per_sample(pass, x, &[1, 1, 1], seeds[1], (0.0, 1.0))?;
    ops::less(pass.context(), draw, probability)
}

/// Which pixels are in a rectangle at a random place, (batch, rows, columns, 1): `parts` are those of
/// the rows and of the columns, (batch, 1).
pub(super) fn rectangle(
    pass: &Pass<'_>,
    x: &AnyValue,
    sizes: &Sizes,
    parts: [AnyValue; 2],
    seeds: [u32; 2],
) -> Result<AnyValue> {
    let cx = pass.context();
    let [rows, columns] = parts;
    let down = between_places(pass, x, &sizes.rows, rows, seeds[0])?;
    let across = between_places(pass, x, &sizes.columns, columns, seeds[1])?;
    let down = ops::expand_dims(cx, ops::expand_dims(cx, down, 2)?, 3)?;
    let across = ops::expand_dims(cx, ops::expand_dims(cx, across, 1)?, 3)?;
    ops::logical_and(cx, down, across)
}

/// Which places along an axis are in a part of it at a random place, (batch, size).
fn between_places(
    pass: &Pass<'_>,
    x: &AnyValue,
    size: &AnyValue,
    part: AnyValue,
    seed: u32,
) -> Result<AnyValue> {
    let cx = pass.context();
    let places = floats(cx, &ops::range(cx, 0, size, 1)?)?;
    let size = floats(cx, size)?;
    let length = ops::mul(cx, part, &size)?;
    let free = ops::sub(cx, size, &length)?;
    let draw = per_sample(pass, x, &[1], seed, (0.0, 1.0))?;
    let begin = ops::mul(cx, draw, free)?;
    let end = ops::add_v2(cx, &begin, length)?;
    let is_after = ops::greater_equal(cx, &places, begin)?;
    ops::logical_and(cx, is_after, ops::less(cx, places, end)?)
}

/// Describes a layer that has a factor, or its bounds, and a range of values.
pub(super) fn valued(class: &str, factor: (f32, f32), values: (f32, f32)) -> KerasLayer {
    KerasLayer::new(class)
        .set("factor", pair(factor))
        .set("value_range", pair(values))
}

/// Refuses bounds of a factor, or of values, that are not numbers in their order.
pub(super) fn check_valued(class: &str, factor: (f32, f32), values: (f32, f32)) -> Result<()> {
    check_bounds(class, "the factor", factor)?;
    check_bounds(class, "values", values)
}
