//! `BatchMatMulV2`: matmuls whose leading dimensions broadcast.

use crate::base::adapt::variants;
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::{Parallel, Serial};
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::base::worth::Work;
use crate::gemm::{Gemm, Matrix, Packed, Right};
use crate::ops::matrix::mat_mul::dense;
use crate::simd::blocks::for_each_chunk;

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: &[("adj_x", AttrKind::Bool), ("adj_y", AttrKind::Bool)],
    outputs,
    scratch: scratch_bytes,
    run,
    ..KernelDef::of("BatchMatMulV2")
};

/// Multiplications and additions from which on a single product is shared out.
const LARGE_FLOPS: usize = 16_000_000;
/// Elements of packed matrices that are kept at a time.
const PACKED_LEN: usize = 2 * 1024 * 1024;

/// Many products of an `m` x `k` and a `k` x `n` matrix, over dense tensors.
#[derive(Clone, Copy, Debug)]
pub struct BatchMatMul {
    /// Leading dimensions of A.
    pub a: Shape,
    /// Leading dimensions of B.
    pub b: Shape,
    /// Leading dimensions of C: those of A and B broadcast.
    pub c: Shape,
    /// Rows, columns and inner size of a product.
    pub size: (usize, usize, usize),
    /// Whether the matrices of A and B are transposed.
    pub transposed: (bool, bool),
}

impl BatchMatMul {
    /// The products of tensors of these shapes, at least of rank 2.
    ///
    /// # Errors
    /// [`Error::Rank`], [`Error::Incompatible`], [`Error::Overflow`].
    pub fn new(x: &Shape, y: &Shape, transposed: (bool, bool)) -> Result<Self> {
        let (a, (m, k)) = split("x", x, transposed.0)?;
        let (b, (other, n)) = split("y", y, transposed.1)?;
        if k != other {
            return Err(Error::Incompatible {
                arguments: ("x", "y"),
                shapes: (*x, *y),
                rule: "the inner dimensions must be equal",
            });
        }
        let c = a.broadcast(&b, ("x", "y"))?;
        let all = Self {
            a,
            b,
            c,
            size: (m, n, k),
            transposed,
        };
        all.output()?;
        Ok(all)
    }

    /// The shape of C.
    ///
    /// # Errors
    /// [`Error::Overflow`], [`Error::Rank`].
    pub fn output(&self) -> Result<Shape> {
        let mut shape = self.c;
        shape.push(self.size.0)?;
        shape.push(self.size.1)?;
        Ok(shape)
    }

    fn gemm<'a>(&self, a: &'a [f32], b: &'a [f32]) -> Gemm<'a> {
        let (m, n, k) = self.size;
        let a = dense(a, m, k, self.transposed.0);
        Gemm::new(self.size, a, dense(b, k, n, self.transposed.1))
    }

    /// The same products, of one large A if all have the same B.
    pub(crate) fn joined(self) -> Self {
        let ((m, n, k), count) = (self.size, self.c.elements());
        let fits = self.b.elements() == 1 && !self.transposed.0 && self.a.elements() == count;
        match m.checked_mul(count) {
            Some(rows) if fits => Self {
                a: Shape::SCALAR,
                b: Shape::SCALAR,
                c: Shape::SCALAR,
                size: (rows, n, k),
                ..self
            },
            _ => self,
        }
    }

    /// The numbers of the matrices of A and B that give a product.
    pub(crate) fn sources(&self, index: usize) -> (usize, usize) {
        (
            source(&self.c, &self.a, index),
            source(&self.c, &self.b, index),
        )
    }

    /// Whether each product is shared out, one after the other; else whole products are.
    pub(crate) fn is_large(&self) -> bool {
        let (m, n, k) = self.size;
        self.c.elements() <= 1 || 2 * m.saturating_mul(n).saturating_mul(k) >= LARGE_FLOPS
    }

    /// Elements of scratch memory that [`BatchMatMul::run`] needs: one product's, or some packed
    /// matrices of B.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        let one = self.gemm(&[], &[]).scratch_len()?;
        if one == 0 || self.is_large() {
            return Ok(one);
        }
        Ok(self.packed_len()? * self.together()?)
    }

    fn packed_len(&self) -> Result<usize> {
        let (_, n, k) = self.size;
        Packed::len(k, n)
    }

    /// Products that are packed together.
    fn together(&self) -> Result<usize> {
        let most = PACKED_LEN / self.packed_len()?.max(1);
        Ok(most.clamp(1, self.c.elements().max(1)))
    }

    /// Computes all products.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the shapes say or the scratch is too
    /// short.
    pub fn run(
        &self,
        a: &[f32],
        b: &[f32],
        c: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (m, n, k) = self.size;
        let (len_a, len_b, len_c) = (m * k, k * n, m * n);
        check("x", a.len(), self.a.elements() * len_a)?;
        check("y", b.len(), self.b.elements() * len_b)?;
        check("output", c.len(), self.c.elements() * len_c)?;
        let needed = self.scratch_len()?;
        let found = scratch.len();
        let scratch = scratch.get_mut(..needed).ok_or(Error::Length {
            argument: "scratch",
            found,
            expected: needed,
        })?;
        if c.is_empty() {
            return Ok(());
        }
        let of = |index: usize| {
            let at = |shape: &Shape| source(&self.c, shape, index);
            let a = &a[at(&self.a) * len_a..][..len_a];
            (a, &b[at(&self.b) * len_b..][..len_b])
        };
        if self.is_large() {
            for (index, c) in c.chunks_exact_mut(len_c).enumerate() {
                let (a, b) = of(index);
                self.gemm(a, b).run(c, n, scratch, parallel)?;
            }
            return Ok(());
        }
        let sums = (m * n).saturating_mul(self.c.elements());
        let work = Work::Product(sums.saturating_mul(2 * k.max(1)), 0);
        let parallel = work.threads(parallel);
        if needed == 0 {
            for_each_chunk(parallel, c, len_c, |start, c| {
                let (a, b) = of(start / len_c);
                // The lengths have been checked.
                let _ = self.gemm(a, b).run(c, n, &mut [], &Serial);
            });
            return Ok(());
        }
        let (each, together) = (self.packed_len()?, self.together()?);
        for (group, c) in c.chunks_mut(together * len_c).enumerate() {
            let first = group * together;
            let count = c.len() / len_c;
            let scratch = &mut scratch[..count * each];
            for_each_chunk(parallel, scratch, each, |start, packed| {
                let (_, b) = of(first + start / each);
                let b: Matrix<'_> = dense(b, k, n, self.transposed.1);
                // The lengths have been checked.
                let _ = Packed::pack(&b, (k, n), packed, &Serial);
            });
            let scratch = &*scratch;
            for_each_chunk(parallel, c, len_c, |start, c| {
                let index = start / len_c;
                let (a, b) = of(first + index);
                if let Ok(packed) = Packed::from_packed((k, n), &scratch[index * each..][..each]) {
                    let gemm = Gemm {
                        b: Right::Packed(packed),
                        ..self.gemm(a, b)
                    };
                    let _ = gemm.run(c, n, &mut [], &Serial);
                }
            });
        }
        Ok(())
    }
}

/// Leading dimensions, and rows and columns of the matrices.
fn split(
    argument: &'static str,
    shape: &Shape,
    transposed: bool,
) -> Result<(Shape, (usize, usize))> {
    let Some((&[rows, columns], batch)) = shape.split_last_chunk::<2>().map(|(a, b)| (b, a)) else {
        return Err(Error::Rank {
            argument,
            found: shape.rank(),
            expected: "at least 2",
        });
    };
    let size = if transposed {
        (columns, rows)
    } else {
        (rows, columns)
    };
    Ok((Shape::new(batch)?, size))
}

fn check(argument: &'static str, found: usize, expected: usize) -> Result<()> {
    crate::conv::geometry::check_len(argument, found, expected)
}

/// The index in a tensor of shape `from` of what broadcasting to `to` shows at `index`.
fn source(to: &Shape, from: &Shape, mut index: usize) -> usize {
    let (mut at, mut distance) = (0, 1);
    for back in 0..to.rank() {
        let dim = to[to.rank() - 1 - back];
        if let Some(axis) = from.rank().checked_sub(back + 1) {
            if from[axis] != 1 {
                at += index % dim * distance;
            }
            distance *= from[axis];
        }
        index /= dim;
    }
    at
}

pub(crate) fn of(inputs: &Inputs<'_>) -> Result<BatchMatMul> {
    let transposed = (
        inputs.attrs.boolean("adj_x")?,
        inputs.attrs.boolean("adj_y")?,
    );
    BatchMatMul::new(&inputs.shape(0, "x")?, &inputs.shape(1, "y")?, transposed)
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    sink(DType::F32, of(inputs)?.output()?)
}

fn scratch_bytes(inputs: &Inputs<'_>) -> Result<usize> {
    scratch::f32_bytes(of(inputs)?.joined().scratch_len()?)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let all = of(&call.inputs)?.joined();
    let x = call.inputs.get(0, "x")?.f32("x")?;
    let y = call.inputs.get(1, "y")?.f32("y")?;
    let parallel = call.parallel;
    let scratch = scratch::f32s(call.scratch);
    all.run(
        x,
        y,
        scratch::first_output(call.outputs)?.f32_mut("output")?,
        scratch,
        parallel,
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::testing::{Value, call, numbers};

    fn batch() -> impl Strategy<Value = (Vec<usize>, Vec<usize>)> {
        prop::collection::vec((1..4_usize, 0..3_u8), 0..4).prop_flat_map(|dims| {
            let x: Vec<_> = dims
                .iter()
                .map(|&(d, one)| if one == 1 { 1 } else { d })
                .collect();
            let y: Vec<_> = dims
                .iter()
                .map(|&(d, one)| if one == 2 { 1 } else { d })
                .collect();
            (0..=y.len()).prop_map(move |cut| (x.clone(), y[cut..].to_vec()))
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(100))]
        #[test]
        fn products_match_f64(
            (x, y) in batch(),
            (m, n, k) in (0..30_usize, 0..40_usize, 0..20_usize),
            (tx, ty) in any::<(bool, bool)>(),
        ) {
            let tensor = |batch: &[usize], rows, columns, transposed, seed| {
                let mut dims = batch.to_vec();
                dims.extend(if transposed { [columns, rows] } else { [rows, columns] });
                let data = numbers(dims.iter().product(), seed);
                (dims, data)
            };
            let attrs = [("adj_x", Value::Bool(tx)), ("adj_y", Value::Bool(ty))];
            let (a, b) = (tensor(&x, m, k, tx, 1), tensor(&y, k, n, ty, 2));
            let found = call(&DEF, &attrs, &[a.clone(), b.clone()]).unwrap().remove(0);
            let (sx, sy) = (Shape::new(&x).unwrap(), Shape::new(&y).unwrap());
            let batch = sx.broadcast(&sy, ("x", "y")).unwrap();
            prop_assert_eq!(found.1.len(), batch.elements() * m * n);
            for (index, &value) in found.1.iter().enumerate() {
                let (item, i, j) = (index / (m * n), index / n % m, index % n);
                let (pa, pb) = (source(&batch, &sx, item) * m * k, source(&batch, &sy, item) * k * n);
                let exact: f64 = (0..k)
                    .map(|p| {
                        let a = a.1[pa + if tx { p * m + i } else { i * k + p }];
                        let b = b.1[pb + if ty { j * k + p } else { p * n + j }];
                        f64::from(a) * f64::from(b)
                    })
                    .sum();
                prop_assert!((f64::from(value) - exact).abs() < 1e-5);
            }
        }
    }

    #[test]
    fn a_broadcast_index_skips_axes_of_one() {
        let shape = |dims: &[usize]| Shape::new(dims).unwrap();
        let to = shape(&[2, 3, 4]);
        let from = shape(&[3, 1]);
        let seen: Vec<_> = (0..24).map(|i| source(&to, &from, i)).collect();
        let row = [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2];
        assert_eq!(seen, [row, row].concat());
    }

    #[test]
    fn large_products_are_shared_out() {
        let (m, k, n) = (200, 250, 210);
        let a = (vec![2, m, k], numbers(2 * m * k, 1));
        let b = (vec![k, n], numbers(k * n, 2));
        let attrs = [("adj_x", Value::Bool(false)), ("adj_y", Value::Bool(false))];
        let c = call(&DEF, &attrs, &[a.clone(), b.clone()])
            .unwrap()
            .remove(0)
            .1;
        for index in (0..c.len()).step_by(977) {
            let (item, i, j) = (index / (m * n), index / n % m, index % n);
            let terms =
                (0..k).map(|p| f64::from(a.1[(item * m + i) * k + p]) * f64::from(b.1[p * n + j]));
            assert!((f64::from(c[index]) - terms.sum::<f64>()).abs() < 1e-4);
        }
    }
}
