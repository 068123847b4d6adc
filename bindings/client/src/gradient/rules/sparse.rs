//! Sparse tensors: the gradient of one is that of its values, at the same positions.

use tfp_core::{DataType, Result};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules};
use crate::gradient::shapes::{conj, reshape_like};

fn at(c: &Backward<'_>, dense: &AnyValue, indices: &AnyValue) -> Result<AnyValue> {
    gather_nd(c.cx, dense, indices, GatherNdOptions::default())
}

fn long(c: &Backward<'_>, value: &AnyValue) -> Result<AnyValue> {
    c.cx.cast(value, DataType::INT64)
}

/// The numbers `0 .. count` of the rows of a tensor.
fn numbers(c: &Backward<'_>, rows: &AnyValue) -> Result<AnyValue> {
    let options = ShapeOptions {
        out_type: Some(DataType::INT64),
    };
    let count = gather_v2(c.cx, shape(c.cx, rows, options)?, 0, 0, Default::default())?;
    range(c.cx, 0_i64, count, 1_i64)
}

/// How many columns the positions have: the rank.
fn columns(c: &Backward<'_>, indices: &AnyValue) -> Result<AnyValue> {
    gather_v2(c.cx, c.cx.shape_of(indices)?, 1, 0, Default::default())
}

/// A column of the positions.
fn column(c: &Backward<'_>, indices: &AnyValue, axis: i32) -> Result<AnyValue> {
    gather_v2(c.cx, indices, axis, 1, GatherV2Options::default())
}

/// `op(A) op(B)` of a sparse A: the product of the output's gradient and B at the positions of A.
fn mat_mul_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let [indices, values, size, b] = [0, 1, 2, 3].map(|index| c.input(index));
    let (adjoint_a, adjoint_b) = (c.op.bool("adjoint_a")?, c.op.bool("adjoint_b")?);
    let g = c.grad(0)?;
    let swap = |x: &AnyValue| conj(c.cx, &transpose(c.cx, x, [1, 0])?);
    let mut found = vec![None; 4];
    if c.needs(1) {
        let b = match adjoint_b {
            true => swap(b)?,
            false => b.clone(),
        };
        let (row, inner) = match adjoint_a {
            true => (1, 0),
            false => (0, 1),
        };
        let rows = |of: &AnyValue, axis: i32| {
            let rows = column(c, indices, axis)?;
            gather_v2(c.cx, of, rows, 0, GatherV2Options::default())
        };
        let products = mul(c.cx, rows(&g, row)?, conj(c.cx, &rows(&b, inner)?)?)?;
        let sums = sum(c.cx, products, [1], SumOptions::default())?;
        let sums = match adjoint_a {
            true => conj(c.cx, &sums)?,
            false => sums,
        };
        found[1] = Some(sums.into());
    }
    if c.needs(3) {
        let options = SparseTensorDenseMatMulOptions {
            adjoint_a: Some(!adjoint_a),
            ..Default::default()
        };
        let of_b = sparse_tensor_dense_mat_mul(c.cx, indices, values, size, &g, options)?;
        found[3] = Some(match adjoint_b {
            true => swap(&of_b)?.into(),
            false => of_b.into(),
        });
    }
    Ok(found)
}

fn add_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (a, b) = (c.input(0), c.input(3));
    let parts = sparse_add_grad(c.cx, &c.grad(1)?, a, b, c.output(0))?;
    let mut found = vec![None; 7];
    found[1] = Some(reshape_like(c.cx, &parts.a_val_grad, c.input(1))?.into());
    found[4] = Some(reshape_like(c.cx, &parts.b_val_grad, c.input(4))?.into());
    Ok(found)
}

fn dense_add_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let g = c.grad(0)?;
    let values = at(c, &g, c.input(0))?;
    Ok(vec![None, Some(values.into()), None, Some(g.into())])
}

/// What an element-wise op with a dense tensor, which is broadcast, has at hand.
struct Elements {
    /// The positions in the dense tensor.
    places: AnyValue,
    /// Its elements there.
    dense: AnyValue,
    gradient: AnyValue,
}

impl Elements {
    fn of(c: &Backward<'_>) -> Result<Self> {
        let (indices, dense) = (c.input(0), c.input(3));
        let size = long(c, &c.cx.shape_of(dense)?)?;
        // Axes are the last ones of the sparse tensor.
        let added = sub(c.cx, columns(c, indices)?, c.cx.rank_of(dense)?)?;
        let own = |list: &AnyValue, axis: i32| {
            let count = c.cx.rank_of(dense)?;
            let axes = add_v2(c.cx, range(c.cx, 0, count, 1)?, &added)?;
            gather_v2(c.cx, list, axes, axis, GatherV2Options::default())
        };
        let scale = floor_div(c.cx, own(c.input(2), 0)?, maximum(c.cx, size, 1_i64)?)?;
        let places = floor_div(c.cx, own(indices, 1)?, maximum(c.cx, scale, 1_i64)?)?;
        Ok(Self {
            dense: at(c, dense, &places)?,
            gradient: c.grad(0)?,
            places,
        })
    }

    /// The gradients of the values, and of the dense tensor from what it gets at each position.
    fn found(self, c: &Backward<'_>, values: AnyValue, dense: AnyValue) -> Result<InputGradients> {
        let size = long(c, &c.cx.shape_of(c.input(3))?)?;
        let dense = scatter_nd(c.cx, self.places, dense, size, ScatterNdOptions::default())?;
        Ok(vec![None, Some(values.into()), None, Some(dense.into())])
    }
}

fn times_dense_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let e = Elements::of(c)?;
    let values = mul(c.cx, &e.gradient, conj(c.cx, &e.dense)?)?;
    let dense = mul(c.cx, &e.gradient, conj(c.cx, c.input(1))?)?;
    e.found(c, values, dense)
}

fn over_dense_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let e = Elements::of(c)?;
    let values = div(c.cx, &e.gradient, conj(c.cx, &e.dense)?)?;
    let quotient = conj(c.cx, c.output(0))?;
    let dense = neg(c.cx, mul(c.cx, &values, quotient)?)?;
    e.found(c, values, dense)
}

fn plus_dense_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let e = Elements::of(c)?;
    let (values, dense) = (e.gradient.clone(), e.gradient.clone());
    e.found(c, values, dense)
}

fn reduce_sum_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (indices, size, axes) = (c.input(0), c.input(2), c.input(3));
    let rank = columns(c, indices)?;
    let axes = floor_mod(c.cx, reshape(c.cx, axes, [-1, 1])?, rank)?;
    let ones = ones_like(c.cx, long(c, &reshape(c.cx, &axes, [-1])?)?)?;
    let options = TensorScatterUpdateOptions::default();
    let kept = tensor_scatter_update(c.cx, size, axes, ones, options)?;
    let places = minimum(c.cx, indices, sub(c.cx, &kept, 1_i64)?)?;
    let values = at(c, &reshape(c.cx, &c.grad(0)?, kept)?, &places)?;
    Ok(vec![None, Some(values.into()), None, None])
}

fn reorder_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let rows = numbers(c, c.input(0))?;
    let from = sparse_reorder(c.cx, c.input(0), rows, c.input(2))?.output_values;
    let back = invert_permutation(c.cx, from)?;
    let values = gather_v2(c.cx, &c.grad(1)?, back, 0, GatherV2Options::default())?;
    Ok(vec![None, Some(values.into()), None])
}

/// The parts in a row, each value by its number, joined as the values were.
fn concat_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let count = c.op.inputs.len() / 3;
    let part = |list: usize| (0..count).map(move |index| c.input(list * count + index));
    let mut ids = Vec::with_capacity(count);
    let mut starts = vec![c.cx.constant_of(&tfp_core::Tensor::scalar(0_i64)?)?];
    for values in part(1) {
        let numbers = numbers(c, values)?;
        let start = &starts[ids.len()];
        let options = SizeOptions {
            out_type: Some(DataType::INT64),
        };
        let next = add_v2(c.cx, start, size(c.cx, values, options)?)?;
        ids.push(add_v2(c.cx, numbers, start)?);
        starts.push(next);
    }
    let (indices, shapes): (Vec<_>, Vec<_>) = (part(0).collect(), part(2).collect());
    let joined = sparse_concat(c.cx, indices, &ids, shapes, c.op.int("concat_dim")?)?;
    let back = invert_permutation(c.cx, joined.output_values)?;
    let all = gather_v2(c.cx, &c.grad(1)?, back, 0, GatherV2Options::default())?;
    let mut found = vec![None; 3 * count];
    for (index, ids) in ids.iter().enumerate() {
        let own = gather_v2(c.cx, &all, ids, 0, GatherV2Options::default())?;
        found[count + index] = Some(own.into());
    }
    Ok(found)
}

fn slice_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (indices, start) = (c.input(0), c.input(3));
    let values = sparse_slice_grad(c.cx, &c.grad(1)?, indices, start, c.output(0))?;
    let values = reshape_like(c.cx, &values, c.input(1))?;
    Ok(vec![None, Some(values.into()), None, None, None])
}

fn softmax_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (indices, size, y, g) = (c.input(0), c.input(2), c.output(0), c.grad(0)?);
    let options = SparseReduceSumOptions {
        keep_dims: Some(true),
    };
    let sums = sparse_reduce_sum(c.cx, indices, mul(c.cx, y, &g)?, size, [-1], options)?;
    let rest = sparse_dense_cwise_add(c.cx, indices, &g, size, neg(c.cx, sums)?)?;
    Ok(vec![None, Some(mul(c.cx, y, rest)?.into()), None])
}

fn fill_empty_rows_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let parts = sparse_fill_empty_rows_grad(c.cx, c.output(3), &c.grad(1)?)?;
    let (values, default) = (parts.d_values, parts.d_default_value);
    Ok(vec![None, Some(values.into()), None, Some(default.into())])
}

pub(super) static RULES: Rules = &[
    ("SparseTensorDenseMatMul", mat_mul_grad),
    ("SparseAdd", add_grad),
    ("SparseTensorDenseAdd", dense_add_grad),
    ("SparseDenseCwiseAdd", plus_dense_grad),
    ("SparseDenseCwiseMul", times_dense_grad),
    ("SparseDenseCwiseDiv", over_dense_grad),
    ("SparseReduceSum", reduce_sum_grad),
    ("SparseReorder", reorder_grad),
    ("SparseConcat", concat_grad),
    ("SparseSlice", slice_grad),
    ("SparseSoftmax", softmax_grad),
    ("SparseFillEmptyRows", fill_empty_rows_grad),
];
