//! Sparse matrices in rows (CSR), which are variants. The gradient of a sparse matrix is a sparse matrix
//! with elements in the same places.

use tfp_core::{AttrValue, DataType, Error, Result};
use tfp_ops::*;

use crate::context::run::{Run, first};
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::conj;

/// The places, the elements and the shape of a sparse matrix.
fn taken(
    c: &Backward<'_>,
    matrix: &AnyValue,
    dtype: DataType,
) -> Result<CSRSparseMatrixToSparseTensorOutput<AnyValue>> {
    csr_sparse_matrix_to_sparse_tensor(c.cx, matrix, dtype)
}

/// A dense matrix at the places of a sparse one.
fn at_places(c: &Backward<'_>, dense: &AnyValue, matrix: &AnyValue) -> Result<AnyValue> {
    let places = taken(c, matrix, dense.dtype())?;
    let values = gather_nd(c.cx, dense, &places.indices, GatherNdOptions::default())?;
    sparse_tensor_to_csr_sparse_matrix(c.cx, &places.indices, values, &places.dense_shape)
}

fn to_dense_grad(c: &Backward<'_>) -> Result<InputGradients> {
    one(at_places(c, &c.grad(0)?, c.input(0)))
}

fn from_dense_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let dtype = c.input(0).dtype();
    let dense = csr_sparse_matrix_to_dense(c.cx, c.grad(0)?, dtype)?;
    Ok(vec![Some(dense.into()), None])
}

fn to_tensor_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (places, shape) = (c.output(0), c.output(2));
    let grad = c.grad(1)?;
    one(sparse_tensor_to_csr_sparse_matrix(
        c.cx, places, grad, shape,
    ))
}

fn from_tensor_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let values = taken(c, &c.grad(0)?, c.input(1).dtype())?.values;
    Ok(vec![None, Some(values.into()), None])
}

fn transpose_grad(c: &Backward<'_>) -> Result<InputGradients> {
    one(c.run1(
        "SparseMatrixTranspose",
        &[&c.grad(0)?],
        &["conjugate", "type"],
    ))
}

/// A matrix as a factor of a product: as it is, transposed, or transposed and conjugated.
#[derive(Clone, Copy)]
struct Factor {
    transposed: bool,
    adjoint: bool,
}

impl Factor {
    fn of(c: &Backward<'_>, name: &str) -> Result<Self> {
        Ok(Self {
            transposed: c.op.bool(&format!("transpose_{name}"))?,
            adjoint: c.op.bool(&format!("adjoint_{name}"))?,
        })
    }

    /// The factor in the product.
    fn apply(self, c: &Backward<'_>, x: &AnyValue) -> Result<AnyValue> {
        match (self.adjoint, self.transposed) {
            (true, _) => conj(c.cx, &flipped(c, x)?),
            (false, true) => flipped(c, x),
            (false, false) => Ok(x.clone()),
        }
    }
}

/// How many axes come before the rows and the columns: one at most.
fn batches(c: &Backward<'_>, x: &AnyValue) -> Result<i64> {
    match x.shape()?.rank() {
        Some(2) => Ok(0),
        Some(3) => Ok(1),
        _ => Err(Error::argument(format!(
            "the gradient of {} needs matrices of known rank: a shape is {}",
            c.op.op_type(),
            x.shape()?
        ))),
    }
}

/// The last two axes swapped.
fn flipped(c: &Backward<'_>, x: &AnyValue) -> Result<AnyValue> {
    let order: &[i64] = match batches(c, x)? {
        0 => &[1, 0],
        _ => &[0, 2, 1],
    };
    transpose(c.cx, x, c.cx.ints(order)?)
}

/// `left right^H`, turned as a factor of a product, at the places of the matrix that is this factor. The
/// other elements are not computed.
fn product_at(
    c: &Backward<'_>,
    [left, right]: [&AnyValue; 2],
    factor: Factor,
    matrix: &AnyValue,
) -> Result<AnyValue> {
    let places = taken(c, matrix, left.dtype())?;
    let batches = batches(c, right)?;
    let is_turned = usize::from(factor.transposed || factor.adjoint);
    let vectors = |x: &AnyValue, axis: usize| -> Result<AnyValue> {
        let kept: Vec<i64> = (0..batches).chain([batches + axis as i64]).collect();
        let kept = c.cx.ints(&kept)?;
        let options = GatherV2Options::default();
        let at = gather_v2(c.cx, &places.indices, kept, 1, options)?;
        gather_nd(c.cx, x, at, GatherNdOptions::default())
    };
    let rows = vectors(left, is_turned)?;
    let columns = conj(c.cx, &vectors(right, 1 - is_turned)?)?;
    let values = sum(c.cx, mul(c.cx, rows, columns)?, [-1], SumOptions::default())?;
    let values = match factor.adjoint {
        true => conj(c.cx, &values)?,
        false => values,
    };
    sparse_tensor_to_csr_sparse_matrix(c.cx, &places.indices, values, &places.dense_shape)
}

fn product(c: &Backward<'_>, a: &AnyValue, b: &AnyValue) -> Result<AnyValue> {
    batch_mat_mul_v2(c.cx, a, b, BatchMatMulV2Options::default())
}

/// The gradients of a sparse matrix times a dense one.
fn product_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (a, b, mut g) = (c.input(0), c.input(1), c.grad(0)?);
    let (of_a, of_b) = (Factor::of(c, "a")?, Factor::of(c, "b")?);
    if c.op.bool("conjugate_output")? {
        g = conj(c.cx, &g)?;
    }
    if c.op.bool("transpose_output")? {
        g = flipped(c, &g)?;
    }
    let mut found = vec![None, None];
    if c.needs(0) {
        let right = of_b.apply(c, b)?;
        found[0] = Some(product_at(c, [&g, &right], of_a, a)?.into());
    }
    if c.needs(1) {
        // The adjoint of the sparse factor, times the gradient.
        let plain = !of_a.transposed && !of_a.adjoint;
        let conjugated = of_a.transposed && g.dtype().is_complex();
        let given = [
            ("adjoint_a", AttrValue::from(plain)),
            ("conjugate_output", AttrValue::from(conjugated)),
        ];
        let right = match conjugated {
            true => conj(c.cx, &g)?,
            false => g,
        };
        let inner = first(c.run_with("SparseMatrixMatMul", &[a, &right], &[], &given)?)?;
        found[1] = Some(of_b.apply(c, &inner)?.into());
    }
    Ok(found)
}

/// The gradients of a product of two sparse matrices, by dense ones.
fn sparse_product_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let dtype = c.op.dtype("type")?;
    let dense = |matrix: &AnyValue| csr_sparse_matrix_to_dense(c.cx, matrix, dtype);
    let (of_a, of_b) = (Factor::of(c, "a")?, Factor::of(c, "b")?);
    let g = dense(&c.grad(0)?)?;
    let factor = |input: usize, of: Factor| of.apply(c, &dense(c.input(input))?);
    let adjoint = |x: AnyValue| conj(c.cx, &flipped(c, &x)?);
    let mut found = vec![None, None];
    if c.needs(0) {
        let whole = product(c, &g, &adjoint(factor(1, of_b)?)?)?;
        found[0] = Some(at_places(c, &of_a.apply(c, &whole)?, c.input(0))?.into());
    }
    if c.needs(1) {
        let whole = product(c, &adjoint(factor(0, of_a)?)?, &g)?;
        found[1] = Some(at_places(c, &of_b.apply(c, &whole)?, c.input(1))?.into());
    }
    Ok(found)
}

pub(super) static RULES: Rules = &[
    ("CSRSparseMatrixToDense", to_dense_grad),
    ("DenseToCSRSparseMatrix", from_dense_grad),
    ("CSRSparseMatrixToSparseTensor", to_tensor_grad),
    ("SparseTensorToCSRSparseMatrix", from_tensor_grad),
    ("SparseMatrixTranspose", transpose_grad),
    ("SparseMatrixMatMul", product_grad),
    ("SparseMatrixSparseMatMul", sparse_product_grad),
];
