//! Products, factorizations and solutions of matrices.

use tfp_core::Result;
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::slices::Gradient;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::{conj, unbroadcast};

type Product = fn(&Backward<'_>, &AnyValue, &AnyValue, bool, bool) -> Result<AnyValue>;

fn plain(c: &Backward<'_>, a: &AnyValue, b: &AnyValue, ta: bool, tb: bool) -> Result<AnyValue> {
    let options = MatMulOptions {
        transpose_a: Some(ta),
        transpose_b: Some(tb),
        ..Default::default()
    };
    mat_mul(c.cx, a, b, options)
}

pub(super) fn batched(
    c: &Backward<'_>,
    a: &AnyValue,
    b: &AnyValue,
    ta: bool,
    tb: bool,
) -> Result<AnyValue> {
    let options = BatchMatMulV2Options {
        adj_x: Some(ta),
        adj_y: Some(tb),
        ..Default::default()
    };
    batch_mat_mul_v2(c.cx, a, b, options)
}

/// The gradients of `op(a) op(b)`, where `op` transposes or not.
fn product(c: &Backward<'_>, of: Product, ta: bool, tb: bool) -> Result<InputGradients> {
    let (a, b, g) = (c.input(0), c.input(1), c.grad(0)?);
    // The batched product takes adjoints; the plain one transposes, so its factors are conjugated.
    let adjoint = c.op.op_type().starts_with("Batch");
    let (ca, cb) = match adjoint {
        true => (a.clone(), b.clone()),
        false => (conj(c.cx, a)?, conj(c.cx, b)?),
    };
    let of_a = || match (ta, tb) {
        (false, false) => of(c, &g, &cb, false, true),
        (false, true) => of(c, &g, &cb, false, false),
        (true, false) => of(c, &cb, &g, false, true),
        (true, true) => of(c, &cb, &g, true, true),
    };
    let of_b = || match (ta, tb) {
        (false, false) => of(c, &ca, &g, true, false),
        (false, true) => of(c, &g, &ca, true, false),
        (true, false) => of(c, &ca, &g, false, false),
        (true, true) => of(c, &g, &ca, true, true),
    };
    let mut found: Vec<Option<Gradient<AnyValue>>> = vec![None, None];
    if c.needs(0) {
        found[0] = Some(batch_sum(c, of_a()?, a)?.into());
    }
    if c.needs(1) {
        found[1] = Some(batch_sum(c, of_b()?, b)?.into());
    }
    Ok(found)
}

/// Sums over the batch axes that were broadcast.
fn batch_sum(c: &Backward<'_>, grad: AnyValue, x: &AnyValue) -> Result<AnyValue> {
    match c.op.op_type() {
        "BatchMatMulV2" | "BatchMatMulV3" => unbroadcast(c.cx, grad, x),
        _ => Ok(grad),
    }
}

/// The matrix with its last two axes swapped, and conjugated.
pub(super) fn adjoint(c: &Backward<'_>, x: &AnyValue) -> Result<AnyValue> {
    let swapped = transposed(c, x)?;
    conj(c.cx, &swapped)
}

fn transposed(c: &Backward<'_>, x: &AnyValue) -> Result<AnyValue> {
    if let Some(rank) = x.shape()?.rank().filter(|&rank| rank >= 2) {
        let mut perm: Vec<i64> = (0..rank as i64).collect();
        perm.swap(rank - 1, rank - 2);
        return transpose(c.cx, x, c.cx.ints(&perm)?);
    }
    let rank = c.cx.rank_of(x)?;
    let batch = range(c.cx, 0, sub(c.cx, &rank, 2)?, 1)?;
    let last = reshape(c.cx, sub(c.cx, &rank, 1)?, [1])?;
    let before = reshape(c.cx, sub(c.cx, &rank, 2)?, [1])?;
    transpose(c.cx, x, concat_v2(c.cx, [&batch, &last, &before], 0)?)
}

pub(super) fn mm(c: &Backward<'_>, a: &AnyValue, b: &AnyValue) -> Result<AnyValue> {
    batched(c, a, b, false, false)
}

fn inverse_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (y, g) = (c.output(0), c.grad(0)?);
    // For Y = X^-1 it is -Y^H dY Y^H, for Y = X^-H it is -Y dY^H Y.
    let found = match c.op.bool("adjoint")? {
        true => mm(c, &mm(c, y, &adjoint(c, &g)?)?, y)?,
        false => batched(c, y, &batched(c, &g, y, false, true)?, true, false)?,
    };
    one(neg(c.cx, found))
}

fn determinant_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let inverse = matrix_inverse(
        c.cx,
        c.input(0),
        MatrixInverseOptions {
            adjoint: Some(true),
        },
    )?;
    let scale = mul(c.cx, &c.grad(0)?, &conj(c.cx, c.output(0))?)?;
    let scale = expand_dims(c.cx, expand_dims(c.cx, scale, -1)?, -1)?;
    one(mul(c.cx, scale, inverse))
}

fn log_determinant_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let inverse = matrix_inverse(
        c.cx,
        c.input(0),
        MatrixInverseOptions {
            adjoint: Some(true),
        },
    )?;
    let scale = c.grad(1)?;
    let scale = expand_dims(c.cx, expand_dims(c.cx, scale, -1)?, -1)?;
    one(mul(c.cx, scale, inverse))
}

fn solve_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (a, y, g) = (c.input(0), c.output(0), c.grad(0)?);
    let adjointed = c.op.bool("adjoint")?;
    let of_b = matrix_solve(
        c.cx,
        a,
        &g,
        MatrixSolveOptions {
            adjoint: Some(!adjointed),
        },
    )?;
    let outer = match adjointed {
        true => batched(c, y, &of_b, false, true)?,
        false => batched(c, &of_b, y, false, true)?,
    };
    Ok(vec![Some(neg(c.cx, outer)?.into()), Some(of_b.into())])
}

fn triangular_solve_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (a, b, y, g) = (c.input(0), c.input(1), c.output(0), c.grad(0)?);
    let (adjointed, lower) = (c.op.bool("adjoint")?, c.op.bool("lower")?);
    let options = MatrixTriangularSolveOptions {
        adjoint: Some(!adjointed),
        lower: Some(lower),
    };
    let of_b = matrix_triangular_solve(c.cx, a, &g, options)?;
    let outer = match adjointed {
        true => batched(c, y, &of_b, false, true)?,
        false => batched(c, &of_b, y, false, true)?,
    };
    let of_a = triangle(c, &neg(c.cx, outer)?, lower)?;
    Ok(vec![
        Some(unbroadcast(c.cx, of_a, a)?.into()),
        Some(unbroadcast(c.cx, of_b, b)?.into()),
    ])
}

pub(super) fn triangle(c: &Backward<'_>, x: &AnyValue, lower: bool) -> Result<AnyValue> {
    match lower {
        true => matrix_band_part(c.cx, x, -1, 0),
        false => matrix_band_part(c.cx, x, 0, -1),
    }
}

fn cholesky_grad_of(c: &Backward<'_>) -> Result<InputGradients> {
    // L^-H tril(L^H dL, half of the diagonal) L^-1, made symmetric.
    let (l, g) = (c.output(0), c.grad(0)?);
    let options = MatrixTriangularSolveOptions {
        lower: Some(true),
        adjoint: Some(true),
    };
    let middle = batched(c, l, &g, true, false)?;
    let diagonal = mul(
        c.cx,
        matrix_diag_part(c.cx, &middle)?,
        c.cx.scalar_like(&g, 0.5)?,
    )?;
    let middle = triangle(c, &matrix_set_diag(c.cx, &middle, diagonal)?, true)?;
    let left = matrix_triangular_solve(c.cx, l, &middle, options)?;
    let whole = matrix_triangular_solve(c.cx, l, &adjoint(c, &left)?, options)?;
    let both = add_v2(c.cx, &whole, &adjoint(c, &whole)?)?;
    one(mul(c.cx, both, c.cx.scalar_like(&g, 0.5)?))
}

pub(super) fn expand_last(c: &Backward<'_>, x: &AnyValue, axis: i32) -> Result<AnyValue> {
    expand_dims(c.cx, x, axis)
}

/// `1 / (w_j - w_i)` outside the diagonal, where it is zero.
fn gaps(c: &Backward<'_>, w: &AnyValue) -> Result<AnyValue> {
    let difference = sub(c.cx, expand_last(c, w, -2)?, expand_last(c, w, -1)?)?;
    let zero = zeros_like(c.cx, w)?;
    let safe = reciprocal(
        c.cx,
        matrix_set_diag(c.cx, &difference, ones_like(c.cx, w)?)?,
    )?;
    matrix_set_diag(c.cx, safe, zero)
}

fn self_adjoint_eig_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (w, v) = (c.output(0), c.output(1));
    let with_vectors = c.op.bool("compute_v")?;
    let (w, v) = match with_vectors {
        true => (w.clone(), v.clone()),
        false => {
            let found = self_adjoint_eig_v2(
                c.cx,
                c.input(0),
                SelfAdjointEigV2Options {
                    compute_v: Some(true),
                },
            )?;
            (found.e, found.v)
        }
    };
    let mut middle = matrix_diag(c.cx, &c.grad(0)?)?;
    if with_vectors && let Some(dv) = c.grad_or_none(1)? {
        let turned = mul(c.cx, gaps(c, &w)?, batched(c, &v, &dv, true, false)?)?;
        middle = add_v2(c.cx, middle, turned)?;
    }
    let whole = mm(c, &v, &batched(c, &middle, &v, false, true)?)?;
    // Only the lower triangle of the input is read.
    let both = triangle(c, &add_v2(c.cx, &whole, &adjoint(c, &whole)?)?, true)?;
    let half = mul(
        c.cx,
        matrix_diag_part(c.cx, &both)?,
        c.cx.scalar_like(&both, 0.5)?,
    )?;
    one(matrix_set_diag(c.cx, both, half))
}

pub(super) static RULES: Rules = &[
    ("MatMul", |c| {
        product(
            c,
            plain,
            c.op.bool("transpose_a")?,
            c.op.bool("transpose_b")?,
        )
    }),
    ("SparseMatMul", |c| {
        product(
            c,
            plain,
            c.op.bool("transpose_a")?,
            c.op.bool("transpose_b")?,
        )
    }),
    ("BatchMatMul", |c| {
        product(c, batched, c.op.bool("adj_x")?, c.op.bool("adj_y")?)
    }),
    ("BatchMatMulV2", |c| {
        product(c, batched, c.op.bool("adj_x")?, c.op.bool("adj_y")?)
    }),
    ("BatchMatMulV3", |c| {
        product(c, batched, c.op.bool("adj_x")?, c.op.bool("adj_y")?)
    }),
    ("Einsum", crate::gradient::einsum::gradient),
    ("MatrixInverse", inverse_grad),
    ("MatrixDeterminant", determinant_grad),
    ("LogMatrixDeterminant", log_determinant_grad),
    ("MatrixSolve", solve_grad),
    ("MatrixTriangularSolve", triangular_solve_grad),
    ("Cholesky", cholesky_grad_of),
    ("SelfAdjointEigV2", self_adjoint_eig_grad),
];
