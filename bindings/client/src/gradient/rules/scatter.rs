//! Scattering.

use tfp_core::Result;
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules};

fn update(tensor: AnyValue, updates: AnyValue) -> Result<InputGradients> {
    Ok(vec![Some(tensor.into()), None, Some(updates.into())])
}

fn taken(c: &Backward<'_>) -> Result<AnyValue> {
    gather_nd(c.cx, &c.grad(0)?, c.input(1), GatherNdOptions::default())
}

fn extreme(c: &Backward<'_>) -> Result<InputGradients> {
    // Shared by all that have the value that is left.
    let (x, indices, updates, grad) = (c.input(0), c.input(1), c.input(2), c.grad(0)?);
    let left = gather_nd(c.cx, c.output(0), indices, GatherNdOptions::default())?;
    let chosen = c.cx.cast(
        &equal(c.cx, updates, left, EqualOptions::default())?,
        grad.dtype(),
    )?;
    let own = c.cx.cast(
        &equal(c.cx, x, c.output(0), EqualOptions::default())?,
        grad.dtype(),
    )?;
    let count = tensor_scatter_add(
        c.cx,
        &own,
        indices,
        &chosen,
        TensorScatterAddOptions::default(),
    )?;
    let share = div_no_nan(c.cx, &grad, count)?;
    let shared = gather_nd(c.cx, &share, indices, GatherNdOptions::default())?;
    let (of_x, of_updates) = (mul(c.cx, own, share)?, mul(c.cx, chosen, shared)?);
    update(of_x, of_updates)
}

pub(super) static RULES: Rules = &[
    ("ScatterNd", |c| {
        let grad = gather_nd(c.cx, &c.grad(0)?, c.input(0), GatherNdOptions::default())?;
        Ok(vec![None, Some(grad.into()), None])
    }),
    ("ScatterNdNonAliasingAdd", |c| update(c.grad(0)?, taken(c)?)),
    ("TensorScatterAdd", |c| update(c.grad(0)?, taken(c)?)),
    ("TensorScatterSub", |c| {
        update(c.grad(0)?, neg(c.cx, taken(c)?)?)
    }),
    ("TensorScatterUpdate", |c| {
        let taken = taken(c)?;
        let zeros = zeros_like(c.cx, &taken)?;
        let rest = tensor_scatter_update(
            c.cx,
            &c.grad(0)?,
            c.input(1),
            zeros,
            TensorScatterUpdateOptions::default(),
        )?;
        update(rest, taken)
    }),
    ("TensorScatterMax", extreme),
    ("TensorScatterMin", extreme),
    ("TensorStridedSliceUpdate", |c| {
        let masks = [
            "begin_mask",
            "end_mask",
            "ellipsis_mask",
            "new_axis_mask",
            "shrink_axis_mask",
        ];
        let grad = c.grad(0)?;
        let taken = c.run1(
            "StridedSlice",
            &[&grad, c.input(1), c.input(2), c.input(3)],
            &masks,
        )?;
        let zeros = zeros_like(c.cx, &taken)?;
        let inputs = [&grad, c.input(1), c.input(2), c.input(3), &zeros];
        let rest = c.run1("TensorStridedSliceUpdate", &inputs, &masks)?;
        let taken = reshape(c.cx, taken, c.cx.shape_of(c.input(4))?)?;
        Ok(vec![
            Some(rest.into()),
            None,
            None,
            None,
            Some(taken.into()),
        ])
    }),
    ("SparseToDense", |c| {
        let (grad, indices) = (c.grad(0)?, c.input(0));
        // The default value has what no index has taken.
        let indices = match indices.shape()?.rank() {
            Some(2) => indices.clone(),
            _ => reshape(c.cx, indices, [-1, 1])?,
        };
        let taken = gather_nd(c.cx, &grad, indices, GatherNdOptions::default())?;
        let total = |value: &AnyValue| -> Result<AnyValue> {
            sum(
                c.cx,
                value,
                range(c.cx, 0, c.cx.rank_of(value)?, 1)?,
                SumOptions::default(),
            )
        };
        let rest = sub(c.cx, total(&grad)?, total(&taken)?)?;
        let taken = reshape(c.cx, taken, c.cx.shape_of(c.input(2))?)?;
        Ok(vec![None, None, Some(taken.into()), Some(rest.into())])
    }),
];
