//! Gathering, and splitting and stitching by index.

use tfp_core::{DataType, Result};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::slices::{Gradient, IndexedSlices};
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules};
use crate::gradient::shapes::{elements_from, known_ints};

/// The slices of a table of `shape` whose rows were taken.
fn row_slices(c: &Backward<'_>, shape: AnyValue, indices: &AnyValue) -> Result<Gradient<AnyValue>> {
    let rows = c.cx.ints(&[-1])?;
    let inner = elements_from(c.cx, &shape, 1)?;
    let inner = c.cx.cast(&inner, DataType::INT32)?;
    // The number of rows is that of the indices: with an inner size of zero -1 would not say it.
    let count = match indices.shape()?.element_count() {
        Some(count) => c.cx.ints(&[count])?,
        None => rows,
    };
    let values = reshape(c.cx, &c.grad(0)?, concat_v2(c.cx, [&count, &inner], 0)?)?;
    Ok(Gradient::Slices(IndexedSlices {
        values,
        indices: reshape(c.cx, indices, [-1])?,
        dense_shape: shape,
    }))
}

fn gather_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let shape = c.cx.shape_of(c.input(0))?;
    Ok(vec![Some(row_slices(c, shape, c.input(1))?), None])
}

/// The shape of a variable.
fn of_variable(c: &Backward<'_>) -> Result<AnyValue> {
    variable_shape(c.cx, c.input(0), VariableShapeOptions::default())
}

fn resource_gather_grad(c: &Backward<'_>) -> Result<InputGradients> {
    Ok(vec![
        Some(row_slices(c, of_variable(c)?, c.input(1))?),
        None,
    ])
}

fn gather_v2_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, indices, axis) = (c.input(0), c.input(1), c.input(2));
    let batch_dims = c.op.int("batch_dims")?;
    let known_axis = match axis.known()? {
        Some(tensor) => known_ints(&tensor)?.first().copied(),
        None => None,
    };
    let mut found = vec![None; 3];
    if known_axis == Some(0) && batch_dims == 0 {
        found[0] = Some(row_slices(c, c.cx.shape_of(x)?, indices)?);
        return Ok(found);
    }
    let (cx, grad) = (c.cx, c.grad(0)?);
    let rank = cx.rank_of(x)?;
    let axis = floor_mod(
        cx,
        add_v2(cx, cx.cast(axis, DataType::INT32)?, &rank)?,
        &rank,
    )?;
    let indices_rank = cx.rank_of(indices)?;
    let batch = match batch_dims < 0 {
        true => add_v2(cx, &indices_rank, i32::try_from(batch_dims).unwrap_or(0))?,
        false => cx.constant_of(&tfp_core::Tensor::scalar(batch_dims as i32)?)?,
    };
    // The gathered axes of the gradient move behind the batch ones, the axis of the table to the
    // same place; then a segmented sum over the flattened batch.
    let size = cx.shape_of(x)?;
    let one_of =
        |list: &AnyValue, at: &AnyValue| gather_v2(cx, list, at, 0, GatherV2Options::default());
    let all = range(cx, 0, &rank, 1)?;
    let between = |list: &AnyValue, from: &AnyValue, to: &AnyValue| -> Result<AnyValue> {
        let begin = reshape(cx, from, [1])?;
        slice(cx, list, begin, reshape(cx, sub(cx, to, from)?, [1])?)
    };
    let zero = cx.constant_of(&tfp_core::Tensor::scalar(0_i32)?)?;
    let after_axis = add_v2(cx, &axis, 1)?;
    let taken = sub(cx, &indices_rank, &batch)?;
    let grad_rank = cx.rank_of(&grad)?;
    let grad_axes = range(cx, 0, &grad_rank, 1)?;
    let end_taken = add_v2(cx, &axis, &taken)?;
    let perm = concat_v2(
        cx,
        [
            &between(&grad_axes, &zero, &batch)?,
            &between(&grad_axes, &axis, &end_taken)?,
            &between(&grad_axes, &batch, &axis)?,
            &between(&grad_axes, &end_taken, &grad_rank)?,
        ],
        0,
    )?;
    let batch_shape = between(&size, &zero, &batch)?;
    let outer = between(&size, &batch, &axis)?;
    let inner = between(&size, &after_axis, &rank)?;
    let batch_count = prod(cx, &batch_shape, [0], ProdOptions::default())?;
    let axis_size = one_of(&size, &axis)?;
    let total = mul(cx, &batch_count, &axis_size)?;
    let flat_indices = reshape(
        cx,
        cx.cast(indices, DataType::INT32)?,
        concat_v2(cx, [&reshape(cx, &batch_count, [1])?, &cx.ints(&[-1])?], 0)?,
    )?;
    let starts = expand_dims(cx, mul(cx, range(cx, 0, &batch_count, 1)?, &axis_size)?, 1)?;
    let places = reshape(cx, add_v2(cx, flat_indices, starts)?, [-1])?;
    let places_count = reshape(cx, tfp_ops::size(cx, &places, SizeOptions::default())?, [1])?;
    let rows = concat_v2(cx, [&places_count, &outer, &inner], 0)?;
    let rows = reshape(cx, transpose(cx, &grad, perm)?, rows)?;
    let summed = unsorted_segment_sum(cx, rows, places, total)?;
    let axis_vector = reshape(cx, &axis_size, [1])?;
    let summed = reshape(
        cx,
        summed,
        concat_v2(cx, [&batch_shape, &axis_vector, &outer, &inner], 0)?,
    )?;
    // The axis is behind the batch; it goes back to its place.
    let after_batch = add_v2(cx, &batch, 1)?;
    let back = concat_v2(
        cx,
        [
            &between(&all, &zero, &batch)?,
            &between(&all, &after_batch, &after_axis)?,
            &reshape(cx, &batch, [1])?,
            &between(&all, &after_axis, &rank)?,
        ],
        0,
    )?;
    found[0] = Some(transpose(cx, summed, back)?.into());
    Ok(found)
}

fn gather_nd_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let indices = c.input(1);
    let shape = c.cx.cast(&c.cx.shape_of(c.input(0))?, indices.dtype())?;
    Ok(vec![
        Some(
            scatter_nd(
                c.cx,
                indices,
                &c.grad(0)?,
                shape,
                ScatterNdOptions::default(),
            )?
            .into(),
        ),
        None,
    ])
}

fn resource_gather_nd_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let indices = c.input(1);
    let shape = c.cx.cast(&of_variable(c)?, indices.dtype())?;
    Ok(vec![
        Some(
            scatter_nd(
                c.cx,
                indices,
                &c.grad(0)?,
                shape,
                ScatterNdOptions::default(),
            )?
            .into(),
        ),
        None,
    ])
}

fn dynamic_partition_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (data, partitions) = (c.input(0), c.input(1));
    let count = c.op.int("num_partitions")?;
    let size = shape(c.cx, partitions, ShapeOptions::default())?;
    let total = prod(c.cx, &size, [0], ProdOptions::default())?;
    let order = reshape(c.cx, range(c.cx, 0, total, 1)?, &size)?;
    let places = dynamic_partition(c.cx, order, partitions, count)?;
    let grads: Vec<AnyValue> = (0..c.op.outputs().len())
        .map(|i| c.grad(i))
        .collect::<Result<_>>()?;
    let stitched = parallel_dynamic_stitch(c.cx, &places, &grads)?;
    Ok(vec![
        Some(reshape(c.cx, stitched, c.cx.shape_of(data)?)?.into()),
        None,
    ])
}

fn dynamic_stitch_grad(c: &Backward<'_>) -> Result<InputGradients> {
    // A place that several values are written to belongs to the last one.
    let count = c.op.inputs().len() / 2;
    let grad = c.grad(0)?;
    let size = strided_slice(
        c.cx,
        c.cx.shape_of(&grad)?,
        [0],
        [1],
        [1],
        StridedSliceOptions {
            shrink_axis_mask: Some(1),
            ..Default::default()
        },
    )?;
    let (mut flat, mut starts, mut shapes) = (Vec::new(), Vec::new(), Vec::new());
    let mut start = c.cx.constant_of(&tfp_core::Tensor::scalar(0_i32)?)?;
    for index in &c.op.inputs()[..count] {
        shapes.push(shape(c.cx, index, ShapeOptions::default())?);
        flat.push(reshape(c.cx, index, [-1])?);
        starts.push(start.clone());
        start = add_v2(
            c.cx,
            start,
            tfp_ops::size(c.cx, index, SizeOptions::default())?,
        )?;
    }
    let all = concat_v2(c.cx, &flat, 0)?;
    let own = range(c.cx, 0, &start, 1)?;
    let last = unsorted_segment_max(c.cx, &own, &all, size)?;
    let winner = equal(
        c.cx,
        gather_v2(c.cx, last, &all, 0, GatherV2Options::default())?,
        &own,
        EqualOptions::default(),
    )?;
    let mut found = vec![None; count];
    for (index, data) in c.op.inputs()[..count].iter().enumerate() {
        let rows = gather_v2(c.cx, &grad, data, 0, GatherV2Options::default())?;
        let mask = slice(
            c.cx,
            &winner,
            reshape(c.cx, &starts[index], [1])?,
            reshape(
                c.cx,
                tfp_ops::size(c.cx, data, SizeOptions::default())?,
                [1],
            )?,
        )?;
        let trailing = sub(c.cx, c.cx.rank_of(&rows)?, c.cx.rank_of(data)?)?;
        let ones = fill(c.cx, reshape(c.cx, trailing, [1])?, 1)?;
        let mask = reshape(c.cx, mask, concat_v2(c.cx, [&shapes[index], &ones], 0)?)?;
        found.push(Some(
            select_v2(c.cx, mask, &rows, zeros_like(c.cx, &rows)?)?.into(),
        ));
    }
    Ok(found)
}

pub(super) static RULES: Rules = &[
    ("Gather", gather_grad),
    ("GatherV2", gather_v2_grad),
    ("GatherNd", gather_nd_grad),
    ("ResourceGather", resource_gather_grad),
    ("ResourceGatherNd", resource_gather_nd_grad),
    ("DynamicPartition", dynamic_partition_grad),
    ("DynamicStitch", dynamic_stitch_grad),
    ("ParallelDynamicStitch", dynamic_stitch_grad),
];
