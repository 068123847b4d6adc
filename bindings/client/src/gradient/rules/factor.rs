//! Factorizations and least squares: adjoints of their differentials (Giles, "Collected matrix
//! derivative results for forward and reverse mode algorithmic differentiation", 2008; for a wide
//! QR: Roberts and Roberts, arXiv:2009.10071).

use tfp_core::{Error, Result, Tensor};
use tfp_ops::*;

use super::linalg::{adjoint, batched, expand_last, mm, triangle};
use super::unary::real_part;
use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::{conj, unbroadcast};

/// Rows and columns, which have to be known.
fn known(c: &Backward<'_>, x: &AnyValue) -> Result<(i64, i64)> {
    let shape = x.shape()?;
    match shape.dims() {
        Some(&[.., rows, columns]) if rows >= 0 && columns >= 0 => Ok((rows, columns)),
        _ => Err(Error::argument(format!(
            "the gradient of {} needs a known number of rows and columns: the shape is {shape}",
            c.op.op_type()
        ))),
    }
}

fn first_columns(c: &Backward<'_>, x: &AnyValue, to: i64) -> Result<AnyValue> {
    columns(c, x, 0, to)
}

/// Columns `from .. to`.
fn columns(c: &Backward<'_>, x: &AnyValue, from: i64, to: i64) -> Result<AnyValue> {
    let options = StridedSliceOptions {
        ellipsis_mask: Some(1),
        ..Default::default()
    };
    strided_slice(c.cx, x, [0, from], [0, to], [1, 1], options)
}

/// `(dQ + Q tril(M)) R^-H` with M made Hermitian from its lower triangle, where
/// `M = R dR^H - dQ^H Q`; for at least as many rows as columns.
fn tall_qr(
    c: &Backward<'_>,
    (q, r): (&AnyValue, &AnyValue),
    (dq, dr): (&AnyValue, &AnyValue),
) -> Result<AnyValue> {
    let m = sub(
        c.cx,
        batched(c, r, dr, false, true)?,
        batched(c, dq, q, true, false)?,
    )?;
    let lower = triangle(c, &m, true)?;
    let strict = matrix_set_diag(c.cx, &lower, zeros_like(c.cx, matrix_diag_part(c.cx, &m)?)?)?;
    let whole = add_v2(c.cx, &lower, &adjoint(c, &strict)?)?;
    let sum = add_v2(c.cx, dq, &mm(c, q, &whole)?)?;
    // X R^H = S, as R X^H = S^H.
    let options = MatrixTriangularSolveOptions {
        lower: Some(false),
        ..Default::default()
    };
    let solved = matrix_triangular_solve(c.cx, r, &adjoint(c, &sum)?, options)?;
    adjoint(c, &solved)
}

fn qr_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, q, r) = (c.input(0), c.output(0), c.output(1));
    let (dq, dr) = (c.grad(0)?, c.grad(1)?);
    let (rows, count) = known(c, x)?;
    if rows > count && c.op.bool("full_matrices")? {
        return Err(Error::argument(format!(
            "Qr has no gradient with full matrices of {rows} rows and {count} columns: \
             full_matrices = false has one"
        )));
    }
    if rows >= count {
        return one(tall_qr(c, (q, r), (&dq, &dr)));
    }
    // The first columns are factored; the others are the orthogonal matrix times the rest of R.
    let (u, du) = (first_columns(c, r, rows)?, first_columns(c, &dr, rows)?);
    let (rest, drest) = (columns(c, x, rows, count)?, columns(c, &dr, rows, count)?);
    let dq = add_v2(c.cx, dq, batched(c, &rest, &drest, false, true)?)?;
    let square = tall_qr(c, (q, &u), (&dq, &du))?;
    one(concat_v2(c.cx, [&square, &mm(c, q, &drest)?], -1))
}

/// `1 / (x_j - x_i)` outside the diagonal, where it is zero.
fn inverse_gaps(c: &Backward<'_>, x: &AnyValue) -> Result<AnyValue> {
    let difference = sub(c.cx, expand_last(c, x, -2)?, expand_last(c, x, -1)?)?;
    let safe = reciprocal(
        c.cx,
        matrix_set_diag(c.cx, &difference, ones_like(c.cx, x)?)?,
    )?;
    matrix_set_diag(c.cx, safe, zeros_like(c.cx, x)?)
}

fn svd_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, ds) = (c.input(0), c.grad(0)?);
    let with_vectors = c.op.bool("compute_uv")?;
    let vectors = match with_vectors {
        true => (c.grad_or_none(1)?, c.grad_or_none(2)?),
        false => (None, None),
    };
    if vectors.0.is_some() || vectors.1.is_some() {
        if x.dtype().is_complex() {
            return Err(Error::argument(
                "the singular vectors of complex matrices have no gradient: their phases are free",
            ));
        }
        let (rows, count) = known(c, x)?;
        if rows != count && c.op.bool("full_matrices")? {
            return Err(Error::argument(format!(
                "Svd has no gradient with full matrices of {rows} rows and {count} columns: \
                 full_matrices = false has one"
            )));
        }
    }
    let reduced = SvdOptions {
        compute_uv: Some(true),
        full_matrices: Some(false),
    };
    let (s, u, v) = match with_vectors && !c.op.bool("full_matrices")? {
        true => (
            c.output(0).clone(),
            c.output(1).clone(),
            c.output(2).clone(),
        ),
        false => {
            let found = svd(c.cx, x, reduced)?;
            (found.s, found.u, found.v)
        }
    };
    let ds = c.cx.cast(&ds, x.dtype())?;
    let mut middle = matrix_diag(c.cx, &ds)?;
    let mut outside = Vec::new();
    let diagonal = matrix_diag(c.cx, &s)?;
    let inverse = |x: &AnyValue| div(c.cx, x, &expand_last(c, &s, -2)?);
    // What leaves the space of the vectors: (1 - U U^H) dU.
    let across = |basis: &AnyValue, d: &AnyValue| -> Result<AnyValue> {
        let inside = mm(c, basis, &batched(c, basis, d, true, false)?)?;
        sub(c.cx, d, inside)
    };
    let turned = |basis: &AnyValue, d: &AnyValue| -> Result<AnyValue> {
        let j = mul(
            c.cx,
            inverse_gaps(c, &square(c.cx, &s)?)?,
            batched(c, basis, d, true, false)?,
        )?;
        add_v2(c.cx, &j, &adjoint(c, &j)?)
    };
    if let Some(du) = &vectors.0 {
        middle = add_v2(c.cx, middle, mm(c, &turned(&u, du)?, &diagonal)?)?;
        outside.push(batched(c, &inverse(&across(&u, du)?)?, &v, false, true)?);
    }
    if let Some(dv) = &vectors.1 {
        middle = add_v2(c.cx, middle, mm(c, &diagonal, &turned(&v, dv)?)?)?;
        outside.push(batched(c, &u, &inverse(&across(&v, dv)?)?, false, true)?);
    }
    let mut found = mm(c, &u, &batched(c, &middle, &v, false, true)?)?;
    for part in outside {
        found = add_v2(c.cx, found, part)?;
    }
    one(Ok(found))
}

/// `V^-H (diag(de) + F (V^H dV - V^H V D)) V^H`, where `F` has `1 / conj(e_j - e_i)` outside of its zero
/// diagonal, and `D` is the real part of the diagonal of `V^H dV`: vectors keep their length (Boeddeker
/// et al., arXiv:1701.00392, equation 4.77).
fn eig_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, values, g) = (c.input(0), c.output(0), c.grad(0)?);
    let mut middle = matrix_diag(c.cx, &g)?;
    let (vectors, moved) = match c.op.bool("compute_v")? {
        true => (c.output(1).clone(), c.grad_or_none(1)?),
        false => {
            let found = eig(c.cx, x, values.dtype(), EigOptions::default())?;
            (found.v, None)
        }
    };
    if let Some(moved) = moved {
        let inner = batched(c, &vectors, &moved, true, false)?;
        let lengths =
            c.cx.cast(&matrix_diag_part(c.cx, &inner)?, real_part(values.dtype()))?;
        let lengths = matrix_diag(c.cx, &c.cx.cast(&lengths, values.dtype())?)?;
        let gram = batched(c, &vectors, &vectors, true, false)?;
        let turned = sub(c.cx, inner, mm(c, &gram, &lengths)?)?;
        let rates = conj(c.cx, &inverse_gaps(c, values)?)?;
        middle = add_v2(c.cx, middle, mul(c.cx, rates, turned)?)?;
    }
    let right = batched(c, &middle, &vectors, false, true)?;
    let options = MatrixSolveOptions {
        adjoint: Some(true),
    };
    let found = matrix_solve(c.cx, &vectors, right, options)?;
    one(c.cx.cast(&found, x.dtype()))
}

/// The solution of `R^H X + X R^H = dR` for the square root `R`, as one system of the elements of `X`.
fn square_root_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (root, g) = (c.output(0), c.grad(0)?);
    let (n, _) = known(c, c.input(0))?;
    let (left, right) = (adjoint(c, root)?, conj(c.cx, root)?);
    let unit = matrix_diag(c.cx, ones_like(c.cx, matrix_diag_part(c.cx, root)?)?)?;
    // The Kronecker product of the matrices of a batch.
    let product = |a: &AnyValue, b: &AnyValue| -> Result<AnyValue> {
        let a = reshape(c.cx, a, c.cx.ints(&[-1, n, 1, n, 1])?)?;
        let b = reshape(c.cx, b, c.cx.ints(&[-1, 1, n, 1, n])?)?;
        reshape(c.cx, mul(c.cx, a, b)?, c.cx.ints(&[-1, n * n, n * n])?)
    };
    let system = add_v2(c.cx, product(&left, &unit)?, product(&unit, &right)?)?;
    let column = reshape(c.cx, g, c.cx.ints(&[-1, n * n, 1])?)?;
    let found = matrix_solve(c.cx, system, column, MatrixSolveOptions::default())?;
    one(reshape(c.cx, found, c.cx.shape_of(root)?))
}

fn banded_solve_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (bands, rhs, x, g) = (c.input(0), c.input(1), c.output(0), c.grad(0)?);
    let (count, _) = known(c, bands)?;
    let (is_adjoint, is_lower) = (c.op.bool("adjoint")?, c.op.bool("lower")?);
    let options = BandedTriangularSolveOptions {
        lower: Some(is_lower),
        adjoint: Some(!is_adjoint),
    };
    let of_rhs = banded_triangular_solve(c.cx, bands, g, options)?;
    let of_matrix = match is_adjoint {
        true => batched(c, x, &of_rhs, false, true)?,
        false => batched(c, &of_rhs, x, false, true)?,
    };
    let kept = match is_lower {
        true => [1 - count, 0],
        false => [0, count - 1],
    };
    let options = MatrixDiagPartV3Options {
        align: Some(DiagonalAlignment::LeftRight),
    };
    let nothing = c.cx.scalar_like(bands, 0.0)?;
    let kept = c.cx.ints(&kept)?;
    let of_bands = matrix_diag_part_v3(c.cx, neg(c.cx, of_matrix)?, kept, nothing, options)?;
    let of_bands = unbroadcast(c.cx, of_bands, bands)?;
    let of_rhs = unbroadcast(c.cx, of_rhs, rhs)?;
    Ok(vec![Some(of_bands.into()), Some(of_rhs.into())])
}

/// `A^H A + l` or `A A^H + l`, and the solution of a system with it.
fn normal(c: &Backward<'_>, a: &AnyValue, is_tall: bool, rhs: &AnyValue) -> Result<AnyValue> {
    let gram = batched(c, a, a, is_tall, !is_tall)?;
    let diagonal = matrix_diag_part(c.cx, &gram)?;
    let shift = c.cx.cast(c.input(2), a.dtype())?;
    let shifted = add_v2(c.cx, diagonal, shift)?;
    let gram = matrix_set_diag(c.cx, gram, shifted)?;
    matrix_solve(c.cx, gram, rhs, MatrixSolveOptions::default())
}

fn least_squares_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (a, b, x, g) = (c.input(0), c.input(1), c.output(0), c.grad(0)?);
    let (rows, count) = known(c, a)?;
    let outer = |left: &AnyValue, right: &AnyValue| batched(c, left, right, false, true);
    let (of_a, of_b) = if rows >= count {
        // x = (A^H A + l)^-1 A^H b.
        let z = normal(c, a, true, &g)?;
        let of_b = mm(c, a, &z)?;
        let residual = sub(c.cx, b, mm(c, a, x)?)?;
        (sub(c.cx, outer(&residual, &z)?, outer(&of_b, x)?)?, of_b)
    } else {
        // x = A^H (A A^H + l)^-1 b.
        let w = normal(c, a, false, b)?;
        let of_b = normal(c, a, false, &mm(c, a, &g)?)?;
        let rest = sub(c.cx, &g, batched(c, a, &of_b, true, false)?)?;
        (sub(c.cx, outer(&w, &rest)?, outer(&of_b, x)?)?, of_b)
    };
    Ok(vec![Some(of_a.into()), Some(of_b.into()), None])
}

/// The elements along an axis, counted from the end, moved by one; a zero is where none comes.
fn moved(c: &Backward<'_>, x: &AnyValue, axis: usize, forth: bool) -> Result<AnyValue> {
    let Some(rank) = x.shape()?.rank().filter(|&rank| rank >= axis) else {
        return Err(Error::argument(format!(
            "the gradient of {} needs known ranks: a shape is {}",
            c.op.op_type(),
            x.shape()?
        )));
    };
    let mut paddings = vec![0_i32; 2 * rank];
    let mut begin = vec![0_i64; rank];
    paddings[2 * (rank - axis) + usize::from(!forth)] = 1;
    begin[rank - axis] = i64::from(!forth);
    let paddings = Tensor::from_vec(paddings, &[rank as i64, 2])?;
    let padded = pad(c.cx, x, &c.cx.constant_of(&paddings)?)?;
    slice(c.cx, padded, c.cx.ints(&begin)?, c.cx.shape_of(x)?)
}

/// The diagonals of `left right^H` of tridiagonal matrices: above, on and below the main one.
fn three_diagonals(c: &Backward<'_>, left: &AnyValue, right: &AnyValue) -> Result<[AnyValue; 3]> {
    let row = |right: &AnyValue| -> Result<AnyValue> {
        let products = mul(c.cx, left, conj(c.cx, right)?)?;
        let sums = sum(c.cx, products, [-1], SumOptions::default())?;
        expand_dims(c.cx, sums, -2)
    };
    Ok([
        row(&moved(c, right, 2, false)?)?,
        row(right)?,
        row(&moved(c, right, 2, true)?)?,
    ])
}

fn tridiagonal_product_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let [above, main, below, x] = [0, 1, 2, 3].map(|index| c.input(index));
    let g = c.grad(0)?;
    let [of_above, of_main, of_below] = three_diagonals(c, &g, x)?;
    let over = conj(c.cx, &moved(c, below, 1, false)?)?;
    let under = conj(c.cx, &moved(c, above, 1, true)?)?;
    let of_x = tridiagonal_mat_mul(c.cx, over, conj(c.cx, main)?, under, &g)?;
    Ok([of_above, of_main, of_below, of_x]
        .map(|found| Some(found.into()))
        .to_vec())
}

fn tridiagonal_solve_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (diagonals, x, g) = (c.input(0), c.output(0), c.grad(0)?);
    let row = |index: i64| {
        let options = StridedSliceOptions {
            ellipsis_mask: Some(1),
            ..Default::default()
        };
        let (from, to) = ([0, index, 0], [0, index + 1, i64::from(i32::MAX)]);
        strided_slice(c.cx, diagonals, from, to, [1, 1, 1], options)
    };
    let over = moved(c, &row(2)?, 1, false)?;
    let under = moved(c, &row(0)?, 1, true)?;
    let flipped = conj(c.cx, &concat_v2(c.cx, [&over, &row(1)?, &under], -2)?)?;
    let options = TridiagonalSolveOptions {
        partial_pivoting: Some(c.op.bool("partial_pivoting")?),
        ..Default::default()
    };
    let of_rhs = tridiagonal_solve(c.cx, flipped, &g, options)?;
    let parts = three_diagonals(c, &of_rhs, x)?;
    let of_diagonals = neg(c.cx, concat_v2(c.cx, &parts, -2)?)?;
    Ok(vec![Some(of_diagonals.into()), Some(of_rhs.into())])
}

pub(super) static RULES: Rules = &[
    ("Qr", qr_grad),
    ("Svd", svd_grad),
    ("Eig", eig_grad),
    ("MatrixSquareRoot", square_root_grad),
    ("BandedTriangularSolve", banded_solve_grad),
    ("MatrixSolveLs", least_squares_grad),
    ("TridiagonalMatMul", tridiagonal_product_grad),
    ("TridiagonalSolve", tridiagonal_solve_grad),
];
