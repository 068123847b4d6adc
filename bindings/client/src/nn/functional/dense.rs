//! Dense, embedding, dropout, flatten.

use tfp_core::{Context, Result, Value};
use tfp_ops as ops;

use super::{known, part, rank, shape_of};

/// `x * kernel + bias`: (..., inputs) and (inputs, units) give (..., units).
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when a rank is not known, and what
/// TensorFlow says about shapes that don't fit.
pub fn dense<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    kernel: &C::Value,
    bias: Option<&C::Value>,
) -> Result<C::Value> {
    let is_matrix = rank("dense", x)? == 2;
    let rows = if is_matrix {
        x.clone()
    } else {
        ops::reshape(cx, x, [-1, known("dense", kernel, 0)?])?
    };
    let mut y = ops::mat_mul(cx, rows, kernel, ops::MatMulOptions::default())?;
    if let Some(bias) = bias {
        y = ops::bias_add(cx, y, bias, ops::BiasAddOptions::default())?;
    }
    if is_matrix {
        return Ok(y);
    }
    let outer = part(cx, &shape_of(cx, x)?, 0, Some(-1))?;
    let units = known("dense", kernel, 1)? as i32;
    ops::reshape(cx, y, ops::concat_v2(cx, (outer, [units]), 0)?)
}

/// Rows of a table: int32 or int64 indices of any shape and a table (rows, width) give
/// (..., width).
///
/// # Errors
/// What TensorFlow says, as about an index beyond the table.
pub fn embedding<C: Context + ?Sized>(
    cx: &C,
    indices: &C::Value,
    table: &C::Value,
) -> Result<C::Value> {
    ops::gather_v2(cx, table, indices, 0, ops::GatherV2Options::default())
}

/// Sets a share of the elements to zero and scales the others so that the mean stays. The same seed
/// drops the same elements.
///
/// # Errors
/// What TensorFlow says.
pub fn dropout<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    rate: f32,
    seed: &C::Value,
) -> Result<C::Value> {
    let state = ops::stateless_random_get_key_counter(cx, seed)?;
    let options = ops::StatelessRandomUniformV2Options {
        dtype: Some(x.dtype()),
    };
    let shape = shape_of(cx, x)?;
    let (key, counter) = (state.key, state.counter);
    // 1: Philox
    let draw = ops::stateless_random_uniform_v2(cx, shape, key, counter, 1, options)?;
    let kept = ops::greater_equal(cx, draw, rate)?;
    let scaled = ops::mul(cx, x, 1.0 / (1.0 - rate))?;
    ops::select_v2(cx, kept, scaled, ops::zeros_like(cx, x)?)
}

/// One dimension per sample: (batch, ...) gives (batch, n).
///
/// # Errors
/// What TensorFlow says.
pub fn flatten<C: Context + ?Sized>(cx: &C, x: &C::Value) -> Result<C::Value> {
    let shape = x.shape()?;
    let inner: Option<i64> = shape
        .dims()
        .and_then(|dims| dims.get(1..))
        .filter(|dims| dims.iter().all(|&size| size >= 0))
        .map(|dims| dims.iter().product());
    if let Some(inner) = inner {
        return ops::reshape(cx, x, [-1, inner]);
    }
    let batch = part(cx, &shape_of(cx, x)?, 0, Some(1))?;
    ops::reshape(cx, x, ops::concat_v2(cx, (batch, [-1_i32]), 0)?)
}
