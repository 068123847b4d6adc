//! Concatenation and packing: several tensors become one.

use crate::base::adapt::{by_width, check_rank, units, units_mut, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;

/// The shape of tensors joined along an axis that they have.
///
/// # Errors
/// [`Error::Incompatible`] if shapes differ along another axis, [`Error::Axis`] for an axis out of
/// range, [`Error::Value`] if there are no tensors.
pub fn concatenated<'a>(shapes: impl IntoIterator<Item = &'a Shape>, axis: i64) -> Result<Shape> {
    let mut shapes = shapes.into_iter();
    let first = shapes.next().ok_or(NONE)?;
    let axis = first.axis("axis", axis)?;
    let mut total = first[axis];
    for shape in shapes {
        let alike = shape.rank() == first.rank()
            && (0..first.rank()).all(|i| i == axis || shape[i] == first[i]);
        if !alike {
            return Err(Error::Incompatible {
                arguments: ("values", "values"),
                shapes: (*first, *shape),
                rule: "only the size along the joined axis may differ",
            });
        }
        total = total
            .checked_add(shape[axis])
            .ok_or(Error::Overflow { argument: "values" })?;
    }
    let mut out = Shape::SCALAR;
    for (i, &dim) in first.iter().enumerate() {
        out.push(if i == axis { total } else { dim })?;
    }
    Ok(out)
}

const NONE: Error = Error::Value {
    argument: "values",
    expected: "at least one tensor",
};

/// The shape of `count` tensors of one shape stacked along a new axis.
///
/// # Errors
/// [`Error::Axis`] for an axis out of range, [`Error::Rank`] above rank 8.
pub fn packed(shape: &Shape, count: usize, axis: i64) -> Result<Shape> {
    let rank = shape.rank() + 1;
    let place = if axis < 0 { axis + rank as i64 } else { axis };
    let place = usize::try_from(place)
        .ok()
        .filter(|&place| place < rank)
        .ok_or(Error::Axis {
            argument: "axis",
            axis,
            rank,
        })?;
    let mut out = Shape::SCALAR;
    for &dim in &shape[..place] {
        out.push(dim)?;
    }
    out.push(count)?;
    for &dim in &shape[place..] {
        out.push(dim)?;
    }
    Ok(out)
}

/// Writes `parts` side by side, `outer` times: each part gives the next `len / outer` elements.
///
/// # Errors
/// [`Error::Length`] unless the parts have as many elements as `out`, in equal shares of `outer`.
pub fn join<'a, T: Copy + Send + Sync + 'a>(
    parts: impl IntoIterator<Item = &'a [T]> + Clone + Sync,
    outer: usize,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    let total = parts.clone().into_iter().map(<[T]>::len).sum::<usize>();
    crate::base::adapt::check_count("output", out.len(), total)?;
    if total == 0 {
        return Ok(());
    }
    if outer == 0
        || parts
            .clone()
            .into_iter()
            .any(|part| part.len() % outer != 0)
    {
        return Err(Error::Length {
            argument: "values",
            found: total,
            expected: outer,
        });
    }
    if outer == 1 {
        let mut rest = out;
        for part in parts {
            let (out, later) = rest.split_at_mut(part.len());
            rest = later;
            let chunk = chunk_len(parallel, part.len(), 1, 1);
            for_each_chunk(parallel, out, chunk, &|start, out| {
                out.copy_from_slice(&part[start..][..out.len()]);
            });
        }
        return Ok(());
    }
    let row = total / outer;
    let chunk = chunk_len(parallel, total, row, 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        rows(parts.clone(), outer, start / row, row, out);
    });
    Ok(())
}

/// Writes whole rows of `row` elements, from row `first` of `outer` on.
fn rows<'a, T: Copy + 'a>(
    parts: impl IntoIterator<Item = &'a [T]>,
    outer: usize,
    first: usize,
    row: usize,
    out: &mut [T],
) {
    let mut column = 0;
    for part in parts {
        let share = part.len() / outer;
        if share == 0 {
            continue;
        }
        let part = part[first * share..].chunks(share);
        for (out, part) in out.chunks_mut(row).zip(part) {
            let out = &mut out[column..column + share];
            if share >= 16 {
                out.copy_from_slice(part);
            } else {
                for (out, part) in out.iter_mut().zip(part) {
                    *out = *part;
                }
            }
        }
        column += share;
    }
}

/// `ConcatV2` of TensorFlow.
pub static CONCAT_V2: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool, "Tidx": I32 I64] host &["axis"];
    ),
    outputs: |inputs, sink| {
        let (parts, axis) = parts(inputs)?;
        let shape = concatenated(parts.iter().map(TensorRef::shape), axis)?;
        sink(parts.first().ok_or(NONE)?.dtype(), shape)
    },
    run: |call| {
        let (parts, axis) = parts(&call.inputs)?;
        let first = parts.first().ok_or(NONE)?;
        let axis = first.shape().axis("axis", axis)?;
        let outer = first.shape()[..axis].iter().product();
        by_width!(first.dtype(), run(call, parts, outer))
    },
    ..KernelDef::of("ConcatV2")
};

/// The tensors to join and the axis that follows them.
fn parts<'a>(inputs: &Inputs<'a>) -> Result<(&'a [TensorRef<'a>], i64)> {
    let last = inputs.tensors.len().checked_sub(1).ok_or(NONE)?;
    // A vector of one element is a number, too.
    let axis = inputs.get(last, "axis")?;
    if axis.shape().rank() > 1 {
        check_rank(axis.shape(), "axis", 0, "0")?;
    }
    Ok((
        &inputs.tensors[..last],
        inputs.int_of_any_rank(last, "axis")?,
    ))
}

/// `Pack` of TensorFlow.
pub static PACK: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool];
        ["T": I32] host &["values", "output"];
    ),
    attrs: &[("axis", AttrKind::Int)],
    outputs: |inputs, sink| {
        let first = inputs.get(0, "values")?;
        for tensor in inputs.tensors {
            crate::base::adapt::check_shape("values", tensor.shape(), first.shape())?;
        }
        let (count, axis) = (inputs.tensors.len(), inputs.attrs.int("axis")?);
        sink(first.dtype(), packed(first.shape(), count, axis)?)
    },
    run: |call| {
        let parts = call.inputs.tensors;
        let axis = call.inputs.attrs.int("axis")?;
        let shape = *call.output(0)?.shape();
        let outer = shape[..shape.axis("axis", axis)?].iter().product();
        let dtype: DType = call.output(0)?.dtype();
        by_width!(dtype, run(call, parts, outer))
    },
    ..KernelDef::of("Pack")
};

fn run<const N: usize>(call: &mut Call<'_>, parts: &[TensorRef<'_>], outer: usize) -> Result<()> {
    let parallel = call.parallel;
    let out = units_mut::<N>(call.output(0)?.bytes_mut());
    let parts = parts.iter().map(|part| units(part.bytes()));
    join(parts, outer, out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::ops::moving::split::{SPLIT_V, UNPACK};
    use crate::testing::Interleaved;
    use crate::trial::{Attr, Tensor, run};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(crate::trial::cases())]

        /// Splitting undoes joining.
        #[test]
        fn round_trip(outer in 1_usize..4, sizes in proptest::collection::vec(0_usize..40, 1..5), inner in 1_usize..4) {
            let parts: Vec<Tensor> = sizes
                .iter()
                .enumerate()
                .map(|(n, &size)| {
                    let len = outer * size * inner;
                    Tensor::f32(&[outer, size, inner], &crate::testing::numbers(len, n as u64))
                })
                .collect();
            let mut inputs = parts.clone();
            inputs.push(Tensor::i32(&[], &[-2]));
            let whole = run(&CONCAT_V2, &[], &inputs, false).unwrap().remove(0);
            prop_assert_eq!(&whole.dims, &[outer, sizes.iter().sum(), inner]);
            let sizes: Vec<i64> = sizes.iter().map(|&size| size as i64).collect();
            let split = [whole, Tensor::i64(&[sizes.len()], &sizes), Tensor::i32(&[], &[1])];
            prop_assert_eq!(run(&SPLIT_V, &[], &split, false).unwrap(), parts);
        }
    }

    #[test]
    fn many_rows_are_joined_in_parts() {
        for (outer, shares) in [
            (1, [70_000, 0, 90_001]),
            (3, [40_000, 1, 2]),
            (5000, [3, 0, 17]),
        ] {
            let parts = shares.map(|share| {
                let numbers = 0..(outer * share) as u32;
                numbers
                    .map(|i| i * 8 + share as u32 % 8)
                    .collect::<Vec<_>>()
            });
            let parts = parts.each_ref().map(Vec::as_slice);
            let row: usize = shares.iter().sum();
            let mut found = vec![u32::MAX; outer * row];
            join(parts, outer, &mut found, &Interleaved).unwrap();
            let mut expected = Vec::new();
            for i in 0..outer {
                for (part, share) in parts.iter().zip(shares) {
                    expected.extend(&part[i * share..(i + 1) * share]);
                }
            }
            assert!(found == expected, "{outer}");
        }
    }

    #[test]
    fn packing_round_trip() {
        let parts = [Tensor::i64(&[2], &[1, 2]), Tensor::i64(&[2], &[3, 4])];
        for (axis, expected) in [(0, [1, 2, 3, 4]), (-1, [1, 3, 2, 4])] {
            let attrs = [("axis", Attr::Int(axis)), ("num", Attr::Int(2))];
            let whole = run(&PACK, &attrs, &parts, false).unwrap();
            assert_eq!(whole[0].to_i64(), expected);
            let whole = Tensor::f32(&[2, 2], &[0.0, 1.0, 2.0, 3.0]);
            let back = run(&UNPACK, &attrs, &[whole], false).unwrap();
            let first = if axis == 0 { [0.0, 1.0] } else { [0.0, 2.0] };
            assert_eq!(back[0].to_f32(), first);
        }
    }

    #[test]
    fn shapes_that_do_not_fit_are_refused() {
        let (a, b) = (Shape::new(&[2, 3]).unwrap(), Shape::new(&[2, 4]).unwrap());
        assert!(concatenated([&a, &b], 1).is_ok());
        assert!(matches!(
            concatenated([&a, &b], 0),
            Err(Error::Incompatible { .. })
        ));
        assert!(matches!(concatenated([&a], 2), Err(Error::Axis { .. })));
        assert!(matches!(packed(&a, 2, 3), Err(Error::Axis { .. })));
        assert!(join([&[1, 2, 3][..]], 2, &mut [0; 3], &Serial).is_err());
    }
}
