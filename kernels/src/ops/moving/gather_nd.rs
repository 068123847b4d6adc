//! `GatherNd`: takes slices of a tensor by indices of several axes.

use crate::base::adapt::{Element, by_width, check_count, units, units_mut, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, Inputs, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::ops::moving::scatter::number;

/// Writes the slice of `params` that each index names. An index has one number for each of
/// `limits`, the lengths of the first axes of `params`, which may be none.
///
/// # Errors
/// [`Error::Index`] for a number outside of its axis, [`Error::Length`] if a slice does not fit.
pub fn gather_nd<T: Copy + Send + Sync, I: Element + Into<i64>>(
    params: &[T],
    limits: &[usize],
    indices: &[I],
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()> {
    let slices: usize = limits.iter().product();
    let slice = params.len().checked_div(slices).unwrap_or(0);
    check_count("params", params.len(), slice * slices)?;
    let depth = limits.len();
    if depth == 0 {
        // Every index is empty and names the whole.
        for out in out.chunks_mut(slice.max(1)) {
            check_count("output", out.len(), slice)?;
            out.copy_from_slice(params);
        }
        return Ok(());
    }
    for index in indices.chunks(depth) {
        number("indices", index, limits)?;
    }
    check_count("output", out.len(), indices.len() / depth * slice)?;
    if out.is_empty() {
        return Ok(());
    }
    let chunk = chunk_len(parallel, out.len(), slice, 2);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let indices = indices[start / slice * depth..].chunks(depth);
        for (out, index) in out.chunks_mut(slice).zip(indices) {
            // All indices have been checked.
            if let Ok(from) = number("indices", index, limits) {
                out.copy_from_slice(&params[from * slice..][..slice]);
            }
        }
    });
    Ok(())
}

/// `GatherNd` of TensorFlow.
pub static GATHER_ND: KernelDef = KernelDef {
    variants: variants!(
        ["Tparams": F32 F64 F16 BF16 I8 I16 I32 I64 U8 U16 U32 U64 Bool, "Tindices": I32 I64];
    ),
    outputs: |inputs, sink| {
        let (indices, depth) = indices(inputs)?;
        let params = inputs.get(0, "params")?;
        // As TensorFlow has it, also where the result is empty.
        if indices.elements() > 0 && params.shape().elements() == 0 {
            return Err(Error::Incompatible {
                arguments: ("params", "indices"),
                shapes: (*params.shape(), indices),
                rule: "there must be no indices where the params are empty",
            });
        }
        let mut shape = indices;
        for &dim in &params.shape()[depth..] {
            shape.push(dim)?;
        }
        sink(params.dtype(), shape)
    },
    run: |call| by_width!(call.inputs.get(0, "params")?.dtype(), run(call)),
    ..KernelDef::of("GatherNd")
};

/// The shape of the indices as a whole, and how many numbers each has.
fn indices(inputs: &Inputs<'_>) -> Result<(Shape, usize)> {
    let (params, indices) = (inputs.shape(0, "params")?, inputs.shape(1, "indices")?);
    match indices.split_last() {
        Some((&depth, whole)) if depth <= params.rank() => Ok((Shape::new(whole)?, depth)),
        _ => Err(Error::Incompatible {
            arguments: ("params", "indices"),
            shapes: (params, indices),
            rule: "the last axis of the indices must have at most a number per axis of the params",
        }),
    }
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let (_, depth) = indices(&call.inputs)?;
    let params = call.inputs.get(0, "params")?;
    let limits = *params.shape();
    let indices = call.inputs.get(1, "indices")?;
    let (params, limits, parallel) = (units::<N>(params.bytes()), &limits[..depth], call.parallel);
    let out = units_mut(call.output(0)?.bytes_mut());
    match indices.dtype() {
        DType::I32 => gather_nd(params, limits, indices.i32("indices")?, out, parallel),
        _ => gather_nd(params, limits, indices.i64("indices")?, out, parallel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Data, Interleaved, call_with};

    #[test]
    fn slices_are_taken_by_as_many_numbers_as_there_are() {
        let params: Vec<f32> = (0..24_u8).map(f32::from).collect();
        for (depth, indices, expected) in [
            (3, vec![1, 2, 3, 0, 1, 0], vec![23.0, 4.0]),
            (2, vec![1, 0], vec![12.0, 13.0, 14.0, 15.0]),
            (1, vec![1], (12..24_u8).map(f32::from).collect()),
        ] {
            let count = indices.len() / depth;
            let inputs = [
                (vec![2, 3, 4], Data::F32(params.clone())),
                (vec![count, depth], Data::I32(indices)),
            ];
            let found = call_with(&GATHER_ND, &[], &inputs).unwrap();
            assert_eq!(found[0].1, expected);
            assert_eq!(found[0].0[0], count);
            assert_eq!(found[0].0[1..], [2, 3, 4][depth..]);
        }
        let inputs = [
            (vec![2], Data::F32(vec![1.0, 2.0])),
            (vec![2, 0], Data::I32(vec![])),
        ];
        let found = call_with(&GATHER_ND, &[], &inputs).unwrap();
        assert_eq!(found[0], (vec![2, 2], vec![1.0, 2.0, 1.0, 2.0]));
    }

    #[test]
    fn nothing_is_taken_from_what_is_empty() {
        let call = |count: usize| {
            let inputs = [
                (vec![3, 0], Data::F32(vec![])),
                (vec![count, 1], Data::I32(vec![0; count])),
            ];
            call_with(&GATHER_ND, &[], &inputs)
        };
        assert_eq!(call(0).unwrap()[0].0, [0, 0]);
        assert!(call(1).is_err());
    }

    #[test]
    fn numbers_outside_are_refused() {
        for bad in [-1_i64, 2] {
            let mut out = [9.0; 1];
            let result = gather_nd(&[1.0, 2.0], &[2], &[bad], &mut out, &Interleaved);
            assert!(matches!(result, Err(Error::Index { index, limit: 2, .. }) if index == bad));
            assert_eq!(out, [9.0]);
        }
    }
}
