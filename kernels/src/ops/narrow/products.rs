//! Matmuls of 16-bit floats: in tiles of bfloat16, where the processor has them.

use super::{ALL, PLAIN};
use crate::base::adapt::{check_count, check_rank};
use crate::base::def::{Call, Inputs, KernelDef, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::narrow::Narrow;
use crate::base::parallel::Serial;
use crate::base::scratch;
use crate::gemm::tiled::{Bits, Tiled};
use crate::ops::matrix::fused_mat_mul::{self, After};
use crate::ops::matrix::{batch_mat_mul_v2, mat_mul};
use crate::simd::amx::SIDE;
use crate::simd::blocks::for_each_pair;
use crate::simd::numbers;

/// The kernel of `MatMul`.
pub static MAT_MUL: KernelDef = KernelDef {
    variants: PLAIN,
    outputs: |inputs, sink| WIDE_MAT_MUL.outputs(inputs, sink),
    scratch: |inputs| match one(inputs)? {
        Some((tiled, _)) => bytes(tiled.scratch_len()?),
        None => WIDE_MAT_MUL.scratch(inputs),
    },
    run: |call| match one(&call.inputs)? {
        Some((tiled, transposed)) => run_one(call, tiled, transposed, &|_, _| {}),
        None => WIDE_MAT_MUL.run(call),
    },
    ..mat_mul::DEF
};

/// The kernel of `TfpFusedMatMul`.
pub static FUSED_MAT_MUL: KernelDef = KernelDef {
    variants: PLAIN,
    outputs: |inputs, sink| WIDE_FUSED.outputs(inputs, sink),
    scratch: |inputs| match one(inputs)? {
        Some((tiled, _)) => bytes(tiled.scratch_len()?),
        None => WIDE_FUSED.scratch(inputs),
    },
    run: |call| match one(&call.inputs)? {
        Some((tiled, transposed)) => run_fused(call, tiled, transposed),
        None => WIDE_FUSED.run(call),
    },
    ..fused_mat_mul::DEF
};

/// The kernel of `BatchMatMulV2`.
pub static BATCH_MAT_MUL_V2: KernelDef = KernelDef {
    variants: PLAIN,
    outputs: |inputs, sink| WIDE_BATCH_MAT_MUL.outputs(inputs, sink),
    scratch: |inputs| match Several::new(inputs)? {
        Some(several) => bytes(several.scratch_len()?),
        None => WIDE_BATCH_MAT_MUL.scratch(inputs),
    },
    run: |call| match Several::new(&call.inputs)? {
        Some(several) => several.run(call),
        None => WIDE_BATCH_MAT_MUL.run(call),
    },
    ..batch_mat_mul_v2::DEF
};

const WIDE_MAT_MUL: Narrow = wide(&mat_mul::DEF);
const WIDE_FUSED: Narrow = wide(&fused_mat_mul::DEF);
const WIDE_BATCH_MAT_MUL: Narrow = wide(&batch_mat_mul_v2::DEF);

const fn wide(def: &'static KernelDef) -> Narrow {
    Narrow {
        def,
        outputs: ALL,
        elementwise: false,
    }
}

fn bytes(numbers: usize) -> Result<usize> {
    numbers
        .checked_mul(size_of::<u16>())
        .ok_or(Error::Overflow {
            argument: "scratch",
        })
}

fn is_bfloat16(inputs: &Inputs<'_>) -> bool {
    let is = |tensor: &TensorRef<'_>| tensor.dtype() == DType::BF16;
    inputs.tensors.iter().all(is)
}

/// The product, and which sides are transposed.
fn one(inputs: &Inputs<'_>) -> Result<Option<(Tiled, (bool, bool))>> {
    if !is_bfloat16(inputs) {
        return Ok(None);
    }
    let (size, transposed) = mat_mul::sizes(inputs)?;
    Ok(Tiled::new(size).map(|tiled| (tiled, transposed)))
}

fn run_one(
    call: &mut Call<'_>,
    tiled: Tiled,
    transposed: (bool, bool),
    finish: &(dyn Fn(usize, &mut [f32]) + Sync),
) -> Result<()> {
    let (_, a) = call.inputs.get(0, "a")?.halves("a")?;
    let (_, b) = call.inputs.get(1, "b")?.halves("b")?;
    let (_, c) = scratch::first_output(call.outputs)?.halves_mut("product")?;
    let sides = (
        Bits {
            data: a,
            transposed: transposed.0,
        },
        Bits {
            data: b,
            transposed: transposed.1,
        },
    );
    let scratch = numbers::within(call.scratch);
    tiled.run(sides, c, scratch, finish, call.parallel)
}

fn run_fused(call: &mut Call<'_>, tiled: Tiled, transposed: (bool, bool)) -> Result<()> {
    let after = After::read(call.inputs.attrs)?;
    let bias = call.inputs.get(2, "bias")?;
    check_rank(bias.shape(), "bias", 1, "1")?;
    let (half, bias) = bias.halves("bias")?;
    let columns = call.output(0)?.shape()[1];
    check_count("bias", bias.len(), columns)?;
    run_one(call, tiled, transposed, &|column, sums| {
        let mut wide = [0.0; SIDE];
        half.widen(&bias[column..][..sums.len()], &mut wide);
        for (sum, bias) in sums.iter_mut().zip(wide) {
            *sum += bias;
        }
        after.activation.apply(sums, &Serial);
        after.finish(sums, &Serial);
    })
}

/// Numbers of packed matrices that are kept at a time.
const TOGETHER: usize = 4 * 1024 * 1024;

/// Many products of one size.
struct Several {
    all: batch_mat_mul_v2::BatchMatMul,
    tiled: Tiled,
}

impl Several {
    fn new(inputs: &Inputs<'_>) -> Result<Option<Self>> {
        if !is_bfloat16(inputs) {
            return Ok(None);
        }
        let all = batch_mat_mul_v2::of(inputs)?.joined();
        Ok(Tiled::new(all.size).map(|tiled| Self { all, tiled }))
    }

    /// Products that are packed together, each by one task; a large one is shared out.
    fn together(&self) -> Result<usize> {
        if self.all.is_large() {
            return Ok(1);
        }
        let most = TOGETHER / self.tiled.scratch_len()?.max(1);
        Ok(most.clamp(1, self.all.c.elements().max(1)))
    }

    fn scratch_len(&self) -> Result<usize> {
        let each = self.tiled.scratch_len()?;
        each.checked_mul(self.together()?).ok_or(Error::Overflow {
            argument: "scratch",
        })
    }

    fn run(&self, call: &mut Call<'_>) -> Result<()> {
        let (_, x) = call.inputs.get(0, "x")?.halves("x")?;
        let (_, y) = call.inputs.get(1, "y")?.halves("y")?;
        let (_, c) = scratch::first_output(call.outputs)?.halves_mut("output")?;
        let (m, n, k) = self.all.size;
        let (len_a, len_b, len_c) = (m * k, k * n, m * n);
        let sides = |index: usize| {
            let (a, b) = self.all.sources(index);
            let bits = |data, transposed| Bits { data, transposed };
            let (a_turned, b_turned) = self.all.transposed;
            (
                bits(x.get(a * len_a..).unwrap_or_default(), a_turned),
                bits(y.get(b * len_b..).unwrap_or_default(), b_turned),
            )
        };
        let scratch = numbers::within::<u16>(call.scratch);
        let (each, together) = (self.tiled.scratch_len()?, self.together()?);
        if together == 1 {
            for (index, c) in c.chunks_exact_mut(len_c.max(1)).enumerate() {
                self.tiled
                    .run(sides(index), c, scratch, &|_, _| {}, call.parallel)?;
            }
            return Ok(());
        }
        let found = scratch.len();
        let scratch = scratch.get_mut(..each * together).ok_or(Error::Length {
            argument: "scratch",
            found,
            expected: each * together,
        })?;
        for (group, c) in c.chunks_mut(together * len_c).enumerate() {
            let pairs = ((c, len_c), (&mut *scratch, each));
            for_each_pair(call.parallel, pairs.0, pairs.1, |index, c, scratch| {
                let sides = sides(group * together + index);
                // The lengths have been checked.
                let _ = self.tiled.run(sides, c, scratch, &|_, _| {}, &Serial);
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::half::Half;
    use crate::gemm::tiled::forced::emulated;
    use crate::testing::numbers as draw;
    use crate::trial::{Attr, Tensor, run};

    /// Numbers of bfloat16: as they are, and widened.
    fn both(dims: &[usize], seed: u64) -> (Tensor, Tensor) {
        let mut wide = draw(dims.iter().product(), seed);
        let mut bits = vec![0; wide.len()];
        Half::BF16.round(&wide, &mut bits);
        Half::BF16.widen(&bits, &mut wide);
        let narrow = Tensor::new(DType::BF16, dims, numbers::bytes(&bits));
        (narrow, Tensor::f32(dims, &wide))
    }

    /// Compares tiles, those of this processor and emulated ones, with the kernel of `f32`.
    fn check(def: &KernelDef, wide: &KernelDef, names: [&'static str; 2], dims: [&[usize]; 2]) {
        for turned in [(false, false), (false, true), (true, false), (true, true)] {
            let attrs = [(names[0], turned.0), (names[1], turned.1)];
            let attrs = attrs.map(|(name, is)| (name, Attr::Bool(is)));
            let sides =
                [(dims[0], turned.0, 1), (dims[1], turned.1, 2)].map(|(dims, turned, seed)| {
                    let mut dims = dims.to_vec();
                    let last = dims.len() - 1;
                    if turned {
                        dims.swap(last, last - 1);
                    }
                    both(&dims, seed)
                });
            compare(def, wide, &attrs, &sides);
        }
    }

    fn compare(
        def: &KernelDef,
        wide: &KernelDef,
        attrs: &[(&'static str, Attr)],
        sides: &[(Tensor, Tensor)],
    ) {
        let inputs: Vec<_> = sides.iter().map(|side| side.0.clone()).collect();
        let widened: Vec<_> = sides.iter().map(|side| side.1.clone()).collect();
        let expected = run(wide, attrs, &widened, false).unwrap();
        let here = run(def, attrs, &inputs, false).unwrap();
        let elsewhere = emulated(|| run(def, attrs, &inputs, false)).unwrap();
        for found in [here, elsewhere] {
            assert_eq!(found[0].dims, expected[0].dims);
            let bits = numbers::all::<u16>(found[0].bytes()).unwrap();
            let mut numbers = vec![0.0; bits.len()];
            Half::BF16.widen(bits, &mut numbers);
            for (found, expected) in numbers.into_iter().zip(expected[0].to_f32()) {
                // Half a unit of bfloat16, and sums in another order.
                let apart = (found - expected).abs();
                assert!(apart <= expected.abs() / 256.0 + 1e-4, "{found} {expected}");
            }
        }
    }

    #[test]
    fn bias_and_activation_before_the_rounding() {
        for name in ["", "Relu6", "LeakyRelu", "Tanh"] {
            let attrs = [
                ("transpose_a", Attr::Bool(true)),
                ("transpose_b", Attr::Bool(false)),
                ("activation", Attr::Text(name)),
                ("alpha", Attr::Float(0.25)),
            ];
            let sides = [both(&[50, 70], 1), both(&[50, 90], 2), both(&[90], 3)];
            compare(&FUSED_MAT_MUL, &fused_mat_mul::DEF, &attrs, &sides);
            let short = [both(&[50, 70], 1), both(&[50, 90], 2), both(&[89], 3)];
            let short = short.map(|side| side.0);
            let refused = || run(&FUSED_MAT_MUL, &attrs, &short, false).is_err();
            assert!(refused() && emulated(refused));
        }
    }

    #[test]
    fn a_matmul() {
        let names = ["transpose_a", "transpose_b"];
        for (m, n, k) in [(70, 90, 50), (200, 33, 64)] {
            check(&MAT_MUL, &mat_mul::DEF, names, [&[m, k], &[k, n]]);
        }
    }

    #[test]
    fn matmuls_whose_leading_axes_broadcast() {
        let (def, wide) = (&BATCH_MAT_MUL_V2, &batch_mat_mul_v2::DEF);
        let dims: [[&[usize]; 2]; 5] = [
            [&[3, 40, 50], &[50, 60]],
            [&[2, 3, 40, 32], &[3, 32, 33]],
            [&[40, 50], &[5, 50, 60]],
            [&[2, 1, 64, 48], &[1, 3, 48, 32]],
            [&[2, 300, 200], &[2, 200, 180]],
        ];
        for dims in dims {
            check(def, wide, ["adj_x", "adj_y"], dims);
        }
    }
}
