//! Programs over variants: optional values, ragged tensors, sparse matrices in rows. `variants.py` has
//! the same programs under the same names.

use tfp::{AnyContext, AnyValue, Context, DataType, Result, Shape, ops};

use crate::lists::{Program, total};

const DOUBLE: DataType = DataType::DOUBLE;
/// Where the sparse matrices have elements.
const PLACES: [[i64; 2]; 3] = [[0, 0], [0, 2], [1, 1]];

fn csr(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    ops::dense_to_csr_sparse_matrix(cx, x, PLACES)
}

fn dense(cx: &AnyContext, matrix: &AnyValue) -> Result<AnyValue> {
    ops::csr_sparse_matrix_to_dense(cx, matrix, DOUBLE)
}

/// The elements of x as three rows of two.
fn turned(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    ops::reshape(cx, x, [3, 2])
}

fn complex_product(cx: &AnyContext, x: &AnyValue, adjoint: bool) -> Result<AnyValue> {
    let options = ops::ComplexOptions {
        tout: Some(DataType::COMPLEX128),
    };
    let whole = ops::complex(cx, x, ops::mul(cx, x, 0.5_f64)?, options)?;
    let options = ops::SparseMatrixMatMulOptions {
        adjoint_a: Some(adjoint),
        adjoint_b: Some(adjoint),
        conjugate_output: Some(!adjoint),
        ..Default::default()
    };
    let found = ops::sparse_matrix_mat_mul(cx, csr(cx, &whole)?, turned(cx, &whole)?, options)?;
    let re = ops::RealOptions { tout: Some(DOUBLE) };
    let im = ops::ImagOptions { tout: Some(DOUBLE) };
    let re = total(cx, &ops::real(cx, &found, re)?)?;
    ops::add_v2(cx, re, total(cx, &ops::imag(cx, &found, im)?)?)
}

pub static PROGRAMS: &[(&str, Program)] = &[
    ("optional", |cx, x| {
        let kept = ops::optional_from_value(cx, [x, &ops::square(cx, x)?])?;
        let shapes = [Shape::new(&[2, 3]), Shape::new(&[2, 3])];
        let found = ops::optional_get_value(cx, kept, &[DOUBLE; 2], &shapes)?;
        ops::mul(cx, total(cx, &found[0])?, total(cx, &found[1])?)
    }),
    ("ragged", |cx, x| {
        let splits = cx.constant(&tfp::Tensor::from_slice(&[0_i64, 1, 2], &[3])?)?;
        let kept = ops::ragged_tensor_to_variant(cx, [&splits], x, true)?;
        let options = Default::default();
        let found = ops::ragged_tensor_from_variant(cx, kept, 0, 1, DOUBLE, options)?;
        total(cx, &found.output_dense_values)
    }),
    ("csr", |cx, x| total(cx, &dense(cx, &csr(cx, x)?)?)),
    ("csr of a tensor", |cx, x| {
        let values = ops::slice(cx, ops::reshape(cx, x, [-1])?, [0], [3])?;
        let matrix = ops::sparse_tensor_to_csr_sparse_matrix(cx, PLACES, values, [2_i64, 3])?;
        total(
            cx,
            &ops::csr_sparse_matrix_to_sparse_tensor(cx, matrix, DOUBLE)?.values,
        )
    }),
    ("csr transposed", |cx, x| {
        let options = ops::SparseMatrixTransposeOptions {
            conjugate: Some(false),
        };
        let matrix = ops::sparse_matrix_transpose(cx, csr(cx, x)?, DOUBLE, options)?;
        let product = ops::mul(cx, dense(cx, &matrix)?, turned(cx, x)?)?;
        total(cx, &product)
    }),
    ("csr product", |cx, x| {
        let (a, b) = (csr(cx, x)?, turned(cx, x)?);
        let options = ops::SparseMatrixMatMulOptions::default();
        total(cx, &ops::sparse_matrix_mat_mul(cx, a, b, options)?)
    }),
    ("csr batch product", |cx, x| {
        let places = [[0_i64, 0, 0], [0, 0, 2], [1, 0, 1]];
        let matrices = ops::reshape(cx, x, [2, 1, 3])?;
        let matrices = ops::dense_to_csr_sparse_matrix(cx, matrices, places)?;
        let b = ops::reshape(cx, x, [2, 3, 1])?;
        let options = ops::SparseMatrixMatMulOptions::default();
        total(cx, &ops::sparse_matrix_mat_mul(cx, matrices, b, options)?)
    }),
    ("csr turned product", |cx, x| {
        let (a, b) = (csr(cx, x)?, turned(cx, x)?);
        let options = ops::SparseMatrixMatMulOptions {
            transpose_a: Some(true),
            transpose_b: Some(true),
            transpose_output: Some(true),
            ..Default::default()
        };
        total(cx, &ops::sparse_matrix_mat_mul(cx, a, b, options)?)
    }),
    ("csr complex product", |cx, x| complex_product(cx, x, false)),
    ("csr adjoint product", |cx, x| complex_product(cx, x, true)),
    ("csr sparse product", |cx, x| {
        let places = [[0_i64, 1], [1, 0], [2, 1]];
        let other = ops::dense_to_csr_sparse_matrix(cx, turned(cx, x)?, places)?;
        let options = ops::SparseMatrixSparseMatMulOptions::default();
        let found = ops::sparse_matrix_sparse_mat_mul(cx, csr(cx, x)?, other, DOUBLE, options)?;
        total(cx, &dense(cx, &found)?)
    }),
];

#[test]
fn the_hue_of_grey_has_no_gradient() -> Result<()> {
    let eager = tfp::EagerContext::new()?;
    let tape = tfp::Tape::new(&eager);
    let colors = [[0.5_f64, 0.5, 0.5], [0.0, 0.0, 0.0]];
    let x = eager.handle(&tfp::Tensor::from_array(colors)?)?;
    tape.watch(&x)?;
    let y = ops::rgb_to_hsv(&tape, &x)?;
    let found = tape.gradient(&y, &x)?.to_tensor()?;
    // The value is that of the first channel; the saturation falls where another one is less.
    let expected = [1.0, 0.0, 0.0, 1.0, 0.0, 0.0];
    assert_eq!(found.as_slice::<f64>()?, expected);
    Ok(())
}
