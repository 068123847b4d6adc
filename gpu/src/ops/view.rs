//! Ops that move elements: the output is a view of the input, an offset and a step per axis.

use super::elementwise::{AXES, strided};
use crate::request::Request;
use crate::vulkan::device::Limits;
use crate::work::Plan;

/// Elements from one index to the next along each axis of a dense tensor.
fn dense(shape: &[usize]) -> Vec<usize> {
    let mut steps = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        steps[axis - 1] = steps[axis] * shape[axis];
    }
    steps
}

/// A plan that copies a view; `steps` are those of the output's axes.
fn copy(request: &Request<'_>, offset: usize, steps: &[usize]) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    if !request.is_f32_but_sizes() || steps.len() != output.shape.len() {
        return None;
    }
    // From the last axis on; axes that are stepped through evenly are one.
    let mut axes: Vec<(usize, usize)> = Vec::new();
    for (&size, &step) in output.shape.iter().zip(steps).rev() {
        match axes.last_mut() {
            _ if size == 1 => {}
            Some((last, before)) if *before * *last == step => *last *= size,
            _ => axes.push((size, step)),
        }
    }
    if axes.len() > AXES {
        return None;
    }
    strided((input, output), offset, &axes)
}

/// `Transpose`.
pub fn transpose(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let steps = dense(&request.inputs.first()?.shape);
    let order = request.integers(1)?;
    let order = order.iter().map(|&axis| {
        let axis = if axis < 0 {
            axis + i64::try_from(steps.len()).ok()?
        } else {
            axis
        };
        steps.get(usize::try_from(axis).ok()?).copied()
    });
    let steps = order.collect::<Option<Vec<_>>>()?;
    copy(request, 0, &steps)
}

/// `Slice`.
pub fn slice(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let steps = dense(&input.shape);
    let begin = request.integers(1)?;
    if begin.len() != steps.len() || output.shape.len() != steps.len() {
        return None;
    }
    let mut offset = 0;
    for (axis, &begin) in begin.iter().enumerate() {
        let begin = usize::try_from(begin).ok()?;
        if begin + output.shape[axis] > input.shape[axis] {
            return None;
        }
        offset += begin * steps[axis];
    }
    copy(request, offset, &steps)
}

/// `BroadcastTo`.
pub fn broadcast_to(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let (input, output) = (request.inputs.first()?, request.outputs.first()?);
    let added = output.shape.len().checked_sub(input.shape.len())?;
    let mut steps = vec![0; added];
    for (axis, step) in dense(&input.shape).into_iter().enumerate() {
        let (from, to) = (input.shape[axis], output.shape[added + axis]);
        if from != to && from != 1 {
            return None;
        }
        steps.push(if from == 1 { 0 } else { step });
    }
    copy(request, 0, &steps)
}
