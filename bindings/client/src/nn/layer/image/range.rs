//! Ranges of values, and chances.

use tfp_core::Result;

use super::{check_bounds, pair, per_sample};
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
