//! Ranges of values, and chances.

use tfp_core::Result;

use super::per_sample;
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::formats::json::Json;
use crate::nn::layer::Pass;
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

/// Numbers as files have them.
pub(super) fn list(numbers: &[f32]) -> Json {
    Json::List(numbers.iter().map(|&one| one.into()).collect())
}
