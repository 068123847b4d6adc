//! `MatMul`: the product of two matrices, each transposed if the attributes say so.

use crate::base::adapt::variants;
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::gemm::{Gemm, Matrix};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: &[
        ("transpose_a", AttrKind::Bool),
        ("transpose_b", AttrKind::Bool),
    ],
    outputs,
    scratch: scratch_bytes,
    run,
    ..KernelDef::of("MatMul")
};

/// Rows, columns and inner size of a product.
type Sizes = (usize, usize, usize);

/// The sizes of the product, and which sides are transposed.
pub(crate) fn sizes(inputs: &Inputs<'_>) -> Result<(Sizes, (bool, bool))> {
    let (a, b) = (inputs.shape(0, "a")?, inputs.shape(1, "b")?);
    let transposed = (
        inputs.attrs.boolean("transpose_a")?,
        inputs.attrs.boolean("transpose_b")?,
    );
    let (m, k) = matrix("a", &a, transposed.0)?;
    let (other, n) = matrix("b", &b, transposed.1)?;
    if k != other {
        return Err(Error::Incompatible {
            arguments: ("a", "b"),
            shapes: (a, b),
            rule: "the inner dimensions must be equal",
        });
    }
    Ok(((m, n, k), transposed))
}

fn matrix(argument: &'static str, shape: &Shape, transposed: bool) -> Result<(usize, usize)> {
    match (&shape[..], transposed) {
        (&[rows, columns], false) | (&[columns, rows], true) => Ok((rows, columns)),
        _ => Err(Error::Rank {
            argument,
            found: shape.rank(),
            expected: "2",
        }),
    }
}

/// A dense matrix of `rows` x `columns`, perhaps transposed in memory.
pub(crate) fn dense(data: &[f32], rows: usize, columns: usize, transposed: bool) -> Matrix<'_> {
    if transposed {
        Matrix::columns(data, rows)
    } else {
        Matrix::rows(data, columns)
    }
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let ((m, n, _), _) = sizes(inputs)?;
    sink(DType::F32, Shape::new(&[m, n])?)
}

fn scratch_bytes(inputs: &Inputs<'_>) -> Result<usize> {
    let ((m, n, k), (ta, tb)) = sizes(inputs)?;
    let gemm = Gemm::new((m, n, k), dense(&[], m, k, ta), dense(&[], k, n, tb));
    scratch::f32_bytes(gemm.scratch_len()?)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let ((m, n, k), (ta, tb)) = sizes(&call.inputs)?;
    let a = dense(call.inputs.get(0, "a")?.f32("a")?, m, k, ta);
    let b = dense(call.inputs.get(1, "b")?.f32("b")?, k, n, tb);
    let c = scratch::first_output(call.outputs)?.f32_mut("product")?;
    let scratch = scratch::f32s(call.scratch);
    Gemm::new((m, n, k), a, b).run(c, n, scratch, call.parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Value, call, numbers};

    fn product(ta: bool, tb: bool, a: [usize; 2], b: [usize; 2]) -> Result<Vec<f32>> {
        let attrs = [
            ("transpose_a", Value::Bool(ta)),
            ("transpose_b", Value::Bool(tb)),
        ];
        let a = (a.to_vec(), numbers(a[0] * a[1], 1));
        let b = (b.to_vec(), numbers(b[0] * b[1], 2));
        let mut outputs = call(&DEF, &attrs, &[a, b])?;
        Ok(outputs.remove(0).1)
    }

    #[test]
    fn all_transposes_agree_with_f64() {
        for (ta, tb) in [(false, false), (false, true), (true, false), (true, true)] {
            for (m, n, k) in [(3, 5, 7), (40, 33, 20), (0, 2, 3), (2, 3, 0), (1, 40, 9)] {
                let shape = |t, x, y| if t { [y, x] } else { [x, y] };
                let found = product(ta, tb, shape(ta, m, k), shape(tb, k, n)).unwrap();
                let (a, b) = (numbers(m * k, 1), numbers(k * n, 2));
                for (index, &found) in found.iter().enumerate() {
                    let (i, j) = (index / n, index % n);
                    let exact: f64 = (0..k)
                        .map(|p| {
                            let a = a[if ta { p * m + i } else { i * k + p }];
                            let b = b[if tb { j * k + p } else { p * n + j }];
                            f64::from(a) * f64::from(b)
                        })
                        .sum();
                    assert!((f64::from(found) - exact).abs() < 1e-5);
                }
            }
        }
    }

    #[test]
    fn sizes_must_fit() {
        let error = product(false, true, [2, 3], [3, 4]).unwrap_err();
        assert!(matches!(
            error,
            Error::Incompatible {
                arguments: ("a", "b"),
                ..
            }
        ));
    }
}
