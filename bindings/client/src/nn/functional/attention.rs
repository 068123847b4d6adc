//! Attention.

use tfp_core::{Context, DataType, Result, Value};
use tfp_ops as ops;

use super::{known, shape_of};

/// Scaled dot-product attention (Vaswani et al., arXiv:1706.03762): queries (batch, heads, n,
/// width), keys (batch, heads, m, width), values (batch, heads, m, any) give (batch, heads, n, any).
///
/// A mask of truth values that broadcasts to (batch, heads, n, m) hides what is false.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when the width is not known, and what
/// TensorFlow says.
pub fn attention<C: Context + ?Sized>(
    cx: &C,
    queries: &C::Value,
    keys: &C::Value,
    values: &C::Value,
    mask: Option<&C::Value>,
) -> Result<C::Value> {
    attention_with(cx, [queries, keys, values], mask, Ok)
}

/// [`attention`], whose shares pass through a function, such as dropout.
fn attention_with<C: Context + ?Sized>(
    cx: &C,
    [queries, keys, values]: [&C::Value; 3],
    mask: Option<&C::Value>,
    shares: impl FnOnce(C::Value) -> Result<C::Value>,
) -> Result<C::Value> {
    let width = known("attention", queries, -1)? as f32;
    let scaled = ops::mul(cx, queries, 1.0 / width.sqrt())?;
    let options = ops::BatchMatMulV2Options {
        adj_y: Some(true),
        ..Default::default()
    };
    let mut scores = ops::batch_mat_mul_v2(cx, scaled, keys, options)?;
    if let Some(mask) = mask {
        // Keras adds this number to what is hidden; the half type has none so small.
        let least = match scores.dtype() {
            DataType::HALF => -3e4_f32,
            _ => -3e38_f32 / 4.0,
        };
        let shown = ops::cast(cx, mask, scores.dtype(), ops::CastOptions::default())?;
        let hidden = ops::mul(cx, ops::sub(cx, 1.0, shown)?, least)?;
        scores = ops::add_v2(cx, scores, hidden)?;
    }
    let shares = shares(ops::softmax(cx, scores)?)?;
    ops::batch_mat_mul_v2(cx, shares, values, ops::BatchMatMulV2Options::default())
}

/// The weights of multi-head attention in Keras' shapes: kernels (inputs, heads, width), biases
/// (heads, width), output kernel (heads, width, outputs), output bias (outputs).
#[derive(Clone, Debug)]
pub struct MultiHead<V> {
    /// Kernel and bias of the queries.
    pub query: (V, Option<V>),
    /// Kernel and bias of the keys.
    pub key: (V, Option<V>),
    /// Kernel and bias of the values.
    pub value: (V, Option<V>),
    /// Kernel and bias of the output.
    pub output: (V, Option<V>),
}

impl<V: Value> MultiHead<V> {
    /// Attends from (batch, n, inputs) to (batch, m, inputs): (batch, n, outputs). The mask
    /// broadcasts to (batch, heads, n, m).
    ///
    /// # Errors
    /// As for [`attention`].
    pub fn attend<C: Context<Value = V> + ?Sized>(
        &self,
        cx: &C,
        queries: &V,
        values: &V,
        mask: Option<&V>,
    ) -> Result<V> {
        self.attend_to(cx, queries, [values, values], mask, Ok)
    }

    /// [`Self::attend`] to values that have other keys; the shares pass through a function, such as
    /// dropout.
    ///
    /// # Errors
    /// As for [`attention`].
    pub fn attend_to<C: Context<Value = V> + ?Sized>(
        &self,
        cx: &C,
        queries: &V,
        [values, keys]: [&V; 2],
        mask: Option<&V>,
        shares: impl FnOnce(V) -> Result<V>,
    ) -> Result<V> {
        let q = heads(cx, queries, &self.query)?;
        let k = heads(cx, keys, &self.key)?;
        let v = heads(cx, values, &self.value)?;
        let y = attention_with(cx, [&q, &k, &v], mask, shares)?;
        let y = ops::transpose(cx, y, [0, 2, 1, 3])?;

        let (kernel, bias) = &self.output;
        let inner = known("attention", kernel, 0)? * known("attention", kernel, 1)?;
        let outputs = known("attention", kernel, 2)?;
        let rows = ops::reshape(cx, y, [-1, inner])?;
        let kernel = ops::reshape(cx, kernel, [inner, outputs])?;
        let y = ops::mat_mul(cx, rows, kernel, ops::MatMulOptions::default())?;
        let y = match bias {
            Some(bias) => ops::bias_add(cx, y, bias, ops::BiasAddOptions::default())?,
            None => y,
        };
        let outer = super::part(cx, &shape_of(cx, queries)?, 0, Some(2))?;
        ops::reshape(cx, y, ops::concat_v2(cx, (outer, [outputs as i32]), 0)?)
    }
}

/// (batch, n, inputs) to (batch, heads, n, width).
fn heads<C: Context + ?Sized>(
    cx: &C,
    x: &C::Value,
    (kernel, bias): &(C::Value, Option<C::Value>),
) -> Result<C::Value> {
    let inputs = known("attention", kernel, 0)?;
    let (heads, width) = (
        known("attention", kernel, 1)?,
        known("attention", kernel, 2)?,
    );
    let rows = ops::reshape(cx, x, [-1, inputs])?;
    let flat = ops::reshape(cx, kernel, [inputs, heads * width])?;
    let mut y = ops::mat_mul(cx, rows, flat, ops::MatMulOptions::default())?;
    if let Some(bias) = bias {
        let bias = ops::reshape(cx, bias, [-1])?;
        y = ops::bias_add(cx, y, bias, ops::BiasAddOptions::default())?;
    }
    let outer = super::part(cx, &shape_of(cx, x)?, 0, Some(2))?;
    let shape = ops::concat_v2(cx, (outer, [heads as i32, width as i32]), 0)?;
    ops::transpose(cx, ops::reshape(cx, y, shape)?, [0, 2, 1, 3])
}
