//! The gradient of `x * sigmoid(x)`: three passes over memory, where those of its two ops take four.
#![allow(
    clippy::mutable_key_type,
    reason = "a value's hash and equality are those of its place, which does not change"
)]

use std::collections::{HashMap, HashSet};

use tfp_core::Result;

use super::rule::{Backward, InputGradients};
use crate::context::record::OpRecord;
use crate::context::value::AnyValue;
use crate::ops;

/// Returns the products of a value with its own sigmoid, by their output. Ops that are not plain have
/// another gradient, and a sigmoid that is kept is a constant or has a gradient that is asked for.
pub(super) fn swishes<'r>(
    records: &[&'r OpRecord],
    is_plain: impl Fn(&OpRecord) -> bool,
    is_kept: impl Fn(&AnyValue) -> bool,
) -> HashSet<&'r AnyValue> {
    let mut sigmoids: HashMap<&AnyValue, &AnyValue> = HashMap::new();
    let mut found = HashSet::new();
    for record in records {
        match (&*record.op_type, &*record.inputs, &*record.outputs) {
            ("Sigmoid", [x], [y]) if x.dtype().is_float() && is_plain(record) => {
                sigmoids.insert(y, x);
            }
            ("Mul", [x, y], [product])
                if sigmoids.get(y) == Some(&x) && !is_kept(y) && is_plain(record) =>
            {
                found.insert(product);
            }
            _ => {}
        }
    }
    found
}

/// The gradients of such a product: what reaches the value by its sigmoid is in the first one.
pub(super) fn swish(c: &Backward<'_>) -> Result<InputGradients> {
    let (cx, x, y) = (c.cx, c.input(0), c.input(1));
    let slope = ops::add_v2(cx, y, ops::sigmoid_grad(cx, y, x)?)?;
    let gradient = ops::mul(cx, c.grad(0)?, slope)?;
    Ok(vec![Some(gradient.into()), None])
}
