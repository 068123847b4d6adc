//! The sum of several tensors of one shape.

use crate::base::adapt::{Element, by_type, check_count, check_shape, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, KernelDef, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::frame::zip::Zip;
use crate::ops::elementwise::binary::Add;
use crate::simd::body::{Body, dispatch};

/// Elements that stay in the cache while all summands are added.
const STRIP: usize = 4096;

/// Adds all `summands`, in order.
///
/// # Errors
/// [`Error::Length`] unless all are as long as `out`.
pub fn add_n<'a, T: Element>(
    summands: impl IntoIterator<Item = &'a [T]> + Clone + Sync,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()>
where
    Add: Zip<T, Out = T>,
{
    for summand in summands.clone() {
        check_count("inputs", summand.len(), out.len())?;
    }
    let chunk = chunk_len(parallel, out.len(), STRIP, 2);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        for (strip, out) in out.chunks_mut(STRIP).enumerate() {
            let start = start + strip * STRIP;
            let mut summands = summands.clone().into_iter();
            let strip = |summand: &'a [T]| &summand[start..start + out.len()];
            match summands.next().map(strip) {
                Some(first) => out.copy_from_slice(first),
                None => out.fill(T::default()),
            }
            for summand in summands {
                let summand = &summand[start..start + out.len()];
                dispatch(Accumulate { summand, out });
            }
        }
    });
    Ok(())
}

struct Accumulate<'a, T> {
    summand: &'a [T],
    out: &'a mut [T],
}

impl<T: Element> Body for Accumulate<'_, T>
where
    Add: Zip<T, Out = T>,
{
    type Output = ();

    const LEVELS: bool = T::LEVELS;

    #[inline(always)]
    fn run(self) {
        for (out, &x) in self.out.iter_mut().zip(self.summand) {
            *out = Add.apply(*out, x);
        }
    }
}

/// `AddN` of TensorFlow.
pub static ADD_N: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 I64 F16 BF16];),
    outputs: |inputs, sink| {
        let first = inputs.get(0, "inputs")?;
        for tensor in inputs.tensors {
            check_shape("inputs", tensor.shape(), first.shape())?;
        }
        sink(first.dtype(), *first.shape())
    },
    run: |call| {
        by_type!(
            call.output(0)?.dtype(),
            "inputs",
            T of [f32 f64 i64] => run::<T>(call),
            DType::F16 | DType::BF16 => run_halves(call),
        )
    },
    ..KernelDef::of("AddN")
};

const NOTHING: Error = Error::Value {
    argument: "inputs",
    expected: "at least one tensor",
};

fn run<T: Element>(call: &mut Call<'_>) -> Result<()>
where
    Add: Zip<T, Out = T>,
{
    let tensors = call.inputs.tensors;
    for tensor in tensors {
        T::view(tensor, "inputs")?;
    }
    let parallel = call.parallel;
    let out = T::view_mut(call.output(0)?, "sum")?;
    if tensors.is_empty() {
        return Err(NOTHING);
    }
    let summands = tensors
        .iter()
        .map(|tensor| T::view(tensor, "inputs").unwrap_or_default());
    add_n(summands, out, parallel)
}

/// Of 16-bit floats: added as `f32`, and rounded once.
fn run_halves(call: &mut Call<'_>) -> Result<()> {
    /// Elements that are added at a time.
    const BLOCK: usize = 512;
    let (tensors, parallel) = (call.inputs.tensors, call.parallel);
    for tensor in tensors {
        tensor.halves("inputs")?;
    }
    let (first, others) = tensors.split_first().ok_or(NOTHING)?;
    let (half, out) = call.output(0)?.halves_mut("sum")?;
    let chunk = chunk_len(parallel, out.len(), BLOCK, 2);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let (mut sums, mut block) = ([0.0; BLOCK], [0.0; BLOCK]);
        for (piece, out) in out.chunks_mut(BLOCK).enumerate() {
            let start = start + piece * BLOCK;
            let read = |tensor: &TensorRef<'_>, to: &mut [f32]| {
                let bits = tensor.halves("inputs").map_or(&[][..], |(_, bits)| bits);
                half.widen(&bits[start..start + out.len()], to);
            };
            read(first, &mut sums);
            for summand in others {
                read(summand, &mut block);
                dispatch(Accumulate {
                    summand: &block[..out.len()],
                    out: &mut sums,
                });
            }
            half.round(&sums, out);
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::half::Half;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{self, Tensor};

    #[test]
    fn sums_in_order() {
        for len in [0, 5, 5000, 70_000] {
            let parts: Vec<Vec<f32>> = (0..4).map(|seed| numbers(len, seed)).collect();
            let mut out = vec![f32::NAN; len];
            add_n(parts.iter().map(Vec::as_slice), &mut out, &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                assert_eq!(found, parts[0][i] + parts[1][i] + parts[2][i] + parts[3][i]);
            }
        }
        let halves = |x: [f32; 3]| {
            let mut bits = [0; 3];
            Half::BF16.round(&x, &mut bits);
            let bytes: Vec<u8> = bits.iter().flat_map(|bits| bits.to_ne_bytes()).collect();
            Tensor::new(DType::BF16, &[3], &bytes)
        };
        // Half a step of 256, twice: a sum that is rounded on the way stays there.
        let parts = [[256.0, 1.0, -2.0], [1.0, 2.0, 4.0], [1.0, 3.0, f32::NAN]].map(halves);
        let sum = trial::run(&ADD_N, &[], &parts, false).unwrap();
        let expected = halves([258.0, 6.0, f32::NAN]);
        assert_eq!(sum[0].bytes(), expected.bytes());
        let short = [1.0_f32];
        assert!(add_n([&short[..]], &mut [0.0; 2], &Interleaved).is_err());
    }
}
