//! Ragged tensors: what ops move is followed by moving the numbers of the elements in its place.

use tfp_core::{DataType, OpBuilder, Result};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules};
use crate::gradient::shapes::{reshape_like, unbroadcast};

/// The number of each element, in the shape of a tensor.
fn numbers(c: &Backward<'_>, of: &AnyValue) -> Result<AnyValue> {
    let options = SizeOptions {
        out_type: Some(DataType::INT64),
    };
    let count = size(c.cx, of, options)?;
    reshape(c.cx, range(c.cx, 0_i64, count, 1_i64)?, c.cx.shape_of(of)?)
}

/// Sums of a gradient by the numbers of the elements it belongs to; negative numbers do not count.
fn gathered(
    c: &Backward<'_>,
    gradient: &AnyValue,
    numbers: &AnyValue,
    like: &AnyValue,
) -> Result<AnyValue> {
    let flat = |value: &AnyValue| reshape(c.cx, value, [-1]);
    let count = size(c.cx, like, SizeOptions::default())?;
    let sums = unsorted_segment_sum(c.cx, flat(gradient)?, flat(numbers)?, count)?;
    reshape(c.cx, sums, c.cx.shape_of(like)?)
}

fn to_tensor_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (values, default, g) = (c.input(1), c.input(2), c.grad(0)?);
    let nothing = c.cx.constant_of(&tfp_core::Tensor::scalar(-1_i64)?)?;
    let ids = numbers(c, values)?;
    let kinds = c.op.attr("row_partition_types")?;
    let places = crate::context::record::with_borrowed(&kinds, |kinds| {
        let call = OpBuilder::new("RaggedTensorToTensor")?
            .input(c.input(0))
            .input(&ids)
            .input(&nothing)
            .list(c.op.inputs[3..].iter().collect::<Vec<_>>())
            .attr("row_partition_types", kinds)?;
        Ok::<_, tfp_core::Error>(call.execute(c.cx)?.all())
    })?;
    let places = crate::context::run::first(places)?;
    let mut found = vec![None; c.op.inputs.len()];
    found[1] = Some(gathered(c, &g, &places, values)?.into());
    let rest = select_v2(c.cx, less(c.cx, &places, 0_i64)?, &g, zeros_like(c.cx, &g)?)?;
    found[2] = Some(unbroadcast(c.cx, rest, default)?.into());
    Ok(found)
}

fn gather_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let [splits @ .., values, indices] = &c.op.inputs[..] else {
        return Ok(vec![None; c.op.inputs.len()]);
    };
    let inner = c.op.outputs.len() - 1;
    let rank = c.op.int("OUTPUT_RAGGED_RANK")?;
    let splits: Vec<_> = splits.iter().collect();
    let places = ragged_gather(c.cx, splits, &numbers(c, values)?, indices, rank)?;
    let places = places.output_dense_values;
    let mut found = vec![None; c.op.inputs.len()];
    let of_values = gathered(c, &c.grad(inner)?, &places, values)?;
    found[c.op.inputs.len() - 2] = Some(of_values.into());
    Ok(found)
}

fn to_sparse_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let mut found = vec![None; c.op.inputs.len()];
    if let (Some(last), Some(values)) = (found.last_mut(), c.op.inputs.last()) {
        *last = Some(reshape_like(c.cx, &c.grad(1)?, values)?.into());
    }
    Ok(found)
}

fn fill_empty_rows_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let found = ragged_fill_empty_rows_grad(c.cx, c.output(3), &c.grad(1)?)?;
    let (values, default) = (found.d_values, found.d_default_value);
    Ok(vec![None, Some(values.into()), None, Some(default.into())])
}

pub(super) static RULES: Rules = &[
    ("RaggedTensorToTensor", to_tensor_grad),
    ("RaggedGather", gather_grad),
    ("RaggedFillEmptyRows", fill_empty_rows_grad),
    ("RaggedTensorToSparse", to_sparse_grad),
];
