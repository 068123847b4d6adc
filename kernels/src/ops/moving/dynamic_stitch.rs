//! Interleaves slices of several tensors by index.

use crate::base::adapt::{by_width, units, units_mut, variants};
use crate::base::def::{Call, Inputs, KernelDef, TensorRef};
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;

/// Writes the slices of each `(indices, data)` pair to where its indices say; the last of equal
/// indices wins. A place that no index names is `empty`.
///
/// # Errors
/// [`Error::Index`] for an index outside `out`, [`Error::Length`] if a pair does not fit.
pub fn dynamic_stitch<'a, T: Copy + 'a>(
    pairs: impl Iterator<Item = (&'a [i32], &'a [T])> + Clone,
    slice: usize,
    empty: T,
    out: &mut [T],
) -> Result<()> {
    let limit = out.len().checked_div(slice).unwrap_or(usize::MAX);
    for (indices, data) in pairs.clone() {
        crate::base::adapt::check_count("data", data.len(), indices.len().saturating_mul(slice))?;
        for &index in indices {
            if !usize::try_from(index).is_ok_and(|index| index < limit) {
                return Err(Error::Index {
                    argument: "indices",
                    index: index.into(),
                    limit,
                });
            }
        }
    }
    out.fill(empty);
    if slice == 0 {
        return Ok(());
    }
    for (indices, data) in pairs {
        for (&index, data) in indices.iter().zip(data.chunks(slice)) {
            out[index as usize * slice..][..slice].copy_from_slice(data);
        }
    }
    Ok(())
}

const HOST: &[&str] = &["indices"];
const ALL: &[&str] = &["indices", "data", "merged"];

/// `DynamicStitch` of TensorFlow.
pub static DYNAMIC_STITCH: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool] host HOST;
        ["T": I32] host ALL;
    ),
    outputs: |inputs, sink| {
        let (indices, data) = halves(inputs)?;
        let mut largest = -1;
        let mut slice: Option<Shape> = None;
        for (indices, data) in indices.iter().zip(data) {
            let (outer, shape) = (indices.shape(), data.shape());
            if shape.rank() < outer.rank() || shape[..outer.rank()] != **outer {
                return Err(Error::Incompatible {
                    arguments: ("indices", "data"),
                    shapes: (*outer, *shape),
                    rule: "the data must start with the shape of their indices",
                });
            }
            let rest = Shape::new(&shape[outer.rank()..])?;
            let first = slice.get_or_insert(rest);
            crate::base::adapt::check_shape("data", &rest, first)?;
            let most = indices.i32("indices")?.iter().copied().max();
            largest = largest.max(most.unwrap_or(-1));
        }
        let mut shape = Shape::new(&[usize::try_from(largest.saturating_add(1)).unwrap_or(0)])?;
        for &dim in slice.ok_or(NONE)?.iter() {
            shape.push(dim)?;
        }
        sink(data.first().ok_or(NONE)?.dtype(), shape)
    },
    run: |call| by_width!(call.output(0)?.dtype(), run(call)),
    ..KernelDef::of("DynamicStitch")
};

const NONE: Error = Error::Value {
    argument: "data",
    expected: "as many tensors as indices, and at least one",
};

type Tensors<'a> = &'a [TensorRef<'a>];

fn halves<'a>(inputs: &Inputs<'a>) -> Result<(Tensors<'a>, Tensors<'a>)> {
    let count = inputs.tensors.len();
    if count == 0 || !count.is_multiple_of(2) {
        return Err(NONE);
    }
    Ok(inputs.tensors.split_at(count / 2))
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (indices, data) = halves(&call.inputs)?;
    for indices in indices {
        indices.i32("indices")?;
    }
    let output = call.output(0)?;
    let slice = output.shape()[1..].iter().product();
    let pairs = indices.iter().zip(data).map(|(indices, data)| {
        let indices = indices.i32("indices").unwrap_or_default();
        (indices, units::<N>(data.bytes()))
    });
    dynamic_stitch(pairs, slice, [0; N], units_mut(output.bytes_mut()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Tensor, run};

    #[test]
    fn the_last_of_equal_indices_wins() {
        let inputs = [
            Tensor::i32(&[2], &[2, 0]),
            Tensor::i32(&[], &[2]),
            Tensor::f32(&[2, 1], &[1.0, 2.0]),
            Tensor::f32(&[1], &[3.0]),
        ];
        let out = run(&DYNAMIC_STITCH, &[], &inputs, false).unwrap();
        assert_eq!(
            (out[0].to_f32(), &*out[0].dims),
            (vec![2.0, 0.0, 3.0], &[3, 1][..])
        );
        let negative = [Tensor::i32(&[1], &[-1]), Tensor::f32(&[1], &[1.0])];
        assert!(run(&DYNAMIC_STITCH, &[], &negative, false).is_err());
        let mismatch = [Tensor::i32(&[2], &[0, 1]), Tensor::f32(&[1], &[1.0])];
        assert!(run(&DYNAMIC_STITCH, &[], &mismatch, false).is_err());
    }
}
