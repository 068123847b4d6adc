//! The sum of several tensors of one shape.

use crate::base::adapt::{Element, check_count, check_shape, unserved, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, KernelDef, no_scratch};
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
    op: "AddN",
    variants: variants!("T": [F32 F64 I64] host &[];),
    attrs: &[],
    forward: &[],
    outputs: |inputs, sink| {
        let first = inputs.get(0, "inputs")?;
        for tensor in inputs.tensors {
            check_shape("inputs", tensor.shape(), first.shape())?;
        }
        sink(first.dtype(), *first.shape())
    },
    scratch: no_scratch,
    run: |call| match call.output(0)?.dtype() {
        DType::F32 => run::<f32>(call),
        DType::F64 => run::<f64>(call),
        DType::I64 => run::<i64>(call),
        found => Err(unserved("inputs", found)),
    },
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
        return Err(Error::Value {
            argument: "inputs",
            expected: "at least one tensor",
        });
    }
    let summands = tensors
        .iter()
        .map(|tensor| T::view(tensor, "inputs").unwrap_or_default());
    add_n(summands, out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};

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
        let short = [1.0_f32];
        assert!(add_n([&short[..]], &mut [0.0; 2], &Interleaved).is_err());
    }
}
