//! Shapes in gradient functions: sums over what was broadcast, axes, sizes.

use tfp_core::{DataType, Result, Tensor};
use tfp_ops::{self as ops, StridedSliceOptions, SumOptions};

use crate::context::any::AnyContext;
use crate::context::run::Run;
use crate::context::value::AnyValue;

/// Sums a gradient over the axes along which `x` was broadcast to the gradient's shape.
pub(crate) fn unbroadcast(cx: &AnyContext, grad: AnyValue, x: &AnyValue) -> Result<AnyValue> {
    let (from, to) = (grad.shape()?, x.shape()?);
    if let (Some(from_dims), Some(to_dims)) = (from.dims(), to.dims())
        && from.is_fully_known()
        && to.is_fully_known()
    {
        if from_dims == to_dims {
            return Ok(grad);
        }
        if let Some(added) = from_dims.len().checked_sub(to_dims.len()) {
            let axes: Vec<i64> = (0..from_dims.len())
                .filter(|&axis| {
                    axis < added || (to_dims[axis - added] == 1 && from_dims[axis] != 1)
                })
                .map(|axis| axis as i64)
                .collect();
            let summed = match axes.is_empty() {
                true => grad,
                false => ops::sum(cx, &grad, &cx.ints(&axes)?, SumOptions::default())?,
            };
            if axes.len() == added && from_dims.len() == added + to_dims.len() {
                return Ok(summed);
            }
            return ops::reshape(cx, &summed, &cx.ints(to_dims)?);
        }
    }
    let shape = cx.shape_of(x)?;
    let axes = ops::broadcast_gradient_args(cx, &shape, &cx.shape_of(&grad)?)?.r0;
    let summed = ops::sum(cx, &grad, &axes, SumOptions::default())?;
    ops::reshape(cx, &summed, &shape)
}

/// Returns the complex conjugate; the value itself when it is real.
pub(crate) fn conj(cx: &AnyContext, value: &AnyValue) -> Result<AnyValue> {
    match value.dtype().is_complex() {
        true => ops::conj(cx, value),
        false => Ok(value.clone()),
    }
}

/// Returns a value with the shape of another.
pub(crate) fn reshape_like(cx: &AnyContext, value: &AnyValue, like: &AnyValue) -> Result<AnyValue> {
    let (from, to) = (value.shape()?, like.shape()?);
    if from.is_fully_known() && from == to {
        return Ok(value.clone());
    }
    ops::reshape(cx, value, &cx.shape_of(like)?)
}

/// Returns what a value has on its first axis from `begin` on, which counts from the end when it is
/// negative: of a shape its last sizes.
pub(crate) fn elements_from(cx: &AnyContext, value: &AnyValue, begin: i32) -> Result<AnyValue> {
    let options = StridedSliceOptions {
        end_mask: Some(1),
        ..Default::default()
    };
    ops::strided_slice(cx, value, [begin], [0], [1], options)
}

/// Returns the number of elements as a scalar of a type.
pub(crate) fn count_as(cx: &AnyContext, value: &AnyValue, dtype: DataType) -> Result<AnyValue> {
    if let Some(count) = value.shape()?.element_count() {
        let count = cx.constant_of(&Tensor::scalar(count as f64)?)?;
        return cx.cast(&count, dtype);
    }
    cx.cast(&ops::size(cx, value, ops::SizeOptions::default())?, dtype)
}

/// Returns a list of axes as it is known now, each from zero on.
pub(crate) fn known_axes(axes: &AnyValue, rank: usize) -> Result<Option<Vec<usize>>> {
    let Some(tensor) = axes.known()? else {
        return Ok(None);
    };
    Ok(Some(
        known_ints(&tensor)?
            .into_iter()
            .map(|axis| if axis < 0 { axis + rank as i64 } else { axis })
            .filter_map(|axis| usize::try_from(axis).ok())
            .collect(),
    ))
}

/// Returns the integers of a tensor.
pub(crate) fn known_ints(tensor: &Tensor) -> Result<Vec<i64>> {
    Ok(match tensor.dtype() {
        DataType::INT64 => tensor.to_vec::<i64>()?,
        _ => tensor
            .as_slice::<i32>()?
            .iter()
            .map(|&value| value.into())
            .collect(),
    })
}

/// Returns the shape that a reduction of `x` over `axes` has when it keeps its axes.
pub(crate) fn kept_shape(cx: &AnyContext, x: &AnyValue, axes: &AnyValue) -> Result<AnyValue> {
    let shape = x.shape()?;
    if let Some(dims) = shape.dims().filter(|_| shape.is_fully_known())
        && let Some(axes) = known_axes(axes, dims.len())?
    {
        let mut dims = dims.to_vec();
        for axis in axes {
            if let Some(dim) = dims.get_mut(axis) {
                *dim = 1;
            }
        }
        return cx.ints(&dims);
    }
    let shape = cx.shape_of(x)?;
    let rank = cx.rank_of(x)?;
    let axes = cx.cast(axes, DataType::INT32)?;
    let axes = ops::reshape(cx, &axes, [-1])?;
    let axes = ops::floor_mod(cx, ops::add_v2(cx, &axes, &rank)?, &rank)?;
    let count = ops::shape(cx, &axes, ops::ShapeOptions::default())?;
    let all = ops::range(cx, 0, &rank, 1)?;
    let ones = ops::fill(cx, &count, 1)?;
    ops::dynamic_stitch(cx, [&all, &axes], [&shape, &ones])
}
