//! What is done with gradients that are slices: sums, and tensors of them.

use tfp_core::{DataType, Result, Tensor};
use tfp_ops as ops;

use crate::context::any::{AnyContext, Mode};
use crate::context::run::Run;
use crate::context::slices::{Gradient, IndexedSlices};
use crate::context::value::AnyValue;

impl<V> Gradient<V> {
    /// Returns the gradient as a tensor, to which slices are scattered.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn dense<C: Mode<Value = V>>(self, cx: &C) -> Result<V> {
        match self {
            Self::Dense(value) => Ok(value),
            Self::Slices(slices) => {
                let slices = IndexedSlices {
                    values: cx.to_any(&slices.values),
                    indices: cx.to_any(&slices.indices),
                    dense_shape: cx.to_any(&slices.dense_shape),
                };
                cx.from_any(to_dense(&cx.any(), &slices)?)
            }
        }
    }
}

fn to_dense(cx: &AnyContext, slices: &IndexedSlices<AnyValue>) -> Result<AnyValue> {
    let rows = ops::strided_slice(cx, &slices.dense_shape, [0], [1], [1], {
        ops::StridedSliceOptions {
            shrink_axis_mask: Some(1),
            ..Default::default()
        }
    })?;
    let summed = ops::unsorted_segment_sum(cx, &slices.values, &slices.indices, &rows)?;
    // The sum has the shape already, unless there are no slices of a known shape.
    match summed.shape()?.rank() {
        Some(_) => Ok(summed),
        None => ops::reshape(cx, &summed, &slices.dense_shape),
    }
}

/// Returns the sum of gradients of one tensor.
pub(crate) fn sum(
    cx: &AnyContext,
    mut list: Vec<Gradient<AnyValue>>,
) -> Result<Gradient<AnyValue>> {
    if list.len() == 1
        && let Some(only) = list.pop()
    {
        return Ok(only);
    }
    let all_slices = list
        .iter()
        .all(|gradient| matches!(gradient, Gradient::Slices(_)));
    if !all_slices {
        let dense: Vec<AnyValue> = list
            .into_iter()
            .map(|gradient| gradient.dense(cx))
            .collect::<Result<_>>()?;
        return match dense.as_slice() {
            [a, b] if a.dtype() != DataType::VARIANT => Ok(ops::add_v2(cx, a, b)?.into()),
            _ => Ok(ops::add_n(cx, &dense)?.into()),
        };
    }
    let (mut values, mut indices, mut shape) = (Vec::new(), Vec::new(), None);
    for gradient in list {
        if let Gradient::Slices(slices) = gradient {
            values.push(slices.values);
            indices.push(cx.cast(&slices.indices, DataType::INT64)?);
            shape = Some(slices.dense_shape);
        }
    }
    let Some(dense_shape) = shape else {
        return Ok(Gradient::Dense(cx.constant_of(&Tensor::scalar(0.0_f32)?)?));
    };
    Ok(Gradient::Slices(IndexedSlices {
        values: ops::concat_v2(cx, &values, 0)?,
        indices: ops::concat_v2(cx, &indices, 0)?,
        dense_shape,
    }))
}
