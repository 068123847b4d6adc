//! Values that are kept in variants: optional ones, and ragged tensors.

use tfp_core::{DataType, Error, OpBuilder, Result, Shape, Tensor};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};

fn optional_from_value_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let inputs = &c.op.inputs;
    let types: Vec<DataType> = inputs.iter().map(AnyValue::dtype).collect();
    let shapes = inputs.iter().map(AnyValue::shape);
    let shapes = shapes.collect::<Result<Vec<Shape>>>()?;
    let found = optional_get_value(c.cx, c.grad(0)?, &types, &shapes)?;
    Ok(found.into_iter().map(|value| Some(value.into())).collect())
}

fn optional_get_value_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let grads = (0..c.op.outputs.len()).map(|index| c.grad(index));
    let grads = grads.collect::<Result<Vec<_>>>()?;
    one(optional_from_value(c.cx, &grads))
}

fn ragged_to_variant_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let [splits @ .., values] = &c.op.inputs[..] else {
        return Err(Error::argument("RaggedTensorToVariant without values"));
    };
    let none = c.cx.constant_of(&Tensor::scalar(0_i64)?)?;
    let splits = splits.first().unwrap_or(&none);
    let shape = c.cx.shape_of(values)?;
    let (grad, dtype) = (c.grad(0)?, values.dtype());
    let found = ragged_tensor_to_variant_gradient(c.cx, grad, splits, shape, dtype)?;
    let mut all = vec![None; c.op.inputs.len() - 1];
    all.push(Some(found.into()));
    Ok(all)
}

fn ragged_from_variant_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let is_batch = match c.input(0).shape()?.rank() {
        Some(rank) if rank > 1 => {
            return Err(Error::argument(format!(
                "RaggedTensorFromVariant has a gradient for a scalar or a vector of variants, \
                 and there are {rank} axes"
            )));
        }
        Some(rank) => rank == 1,
        None => c.op.int("output_ragged_rank")? > 0,
    };
    let last = c.op.outputs.len() - 1;
    let grad = c.grad(last)?;
    let call = OpBuilder::new("RaggedTensorToVariant")?
        .list(c.op.outputs[..last].iter().collect::<Vec<_>>())
        .input(&grad)
        .attr("batched_input", is_batch)?;
    one(crate::context::run::first(call.execute(c.cx)?.all()))
}

pub(super) static RULES: Rules = &[
    ("OptionalFromValue", optional_from_value_grad),
    ("OptionalGetValue", optional_get_value_grad),
    ("RaggedTensorToVariant", ragged_to_variant_grad),
    ("RaggedTensorFromVariant", ragged_from_variant_grad),
];
