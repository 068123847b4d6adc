//! Sums of slices that carry the same segment number.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, KernelDef, Variants};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::zip::Zip;
use crate::ops::elementwise::binary::Add;

/// Adds each slice of `data` to the segment of `out` that its id names; a negative id is skipped.
/// A slice has `data.len() / ids.len()` elements.
///
/// # Errors
/// [`Error::Index`] for an id of a segment that `out` does not have, [`Error::Length`] if a slice
/// does not fit.
pub fn unsorted_segment_sum<T: Element, I: Element + Into<i64>>(
    data: &[T],
    ids: &[I],
    segments: usize,
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()>
where
    Add: Zip<T, Out = T>,
{
    let slice = out.len().checked_div(segments).unwrap_or(0);
    crate::base::adapt::check_count("output", out.len(), slice * segments)?;
    if segments > 0 {
        crate::base::adapt::check_count("data", data.len(), ids.len().saturating_mul(slice))?;
    }
    for &id in ids {
        let id: i64 = id.into();
        if id >= 0 && id as u64 >= segments as u64 {
            return Err(Error::Index {
                argument: "segment_ids",
                index: id,
                limit: segments,
            });
        }
    }
    let chunk = chunk_len(parallel, out.len(), 16, 1);
    for_each_chunk(parallel, out, chunk, &|_, out| out.fill(T::default()));
    if slice == 0 {
        return Ok(());
    }
    for (&id, data) in ids.iter().zip(data.chunks(slice)) {
        let Ok(id) = usize::try_from(id.into()) else {
            continue;
        };
        for (out, &x) in out[id * slice..][..slice].iter_mut().zip(data) {
            *out = Add.apply(*out, x);
        }
    }
    Ok(())
}

/// The types of the kernels of 16-bit floats.
pub(crate) const NARROW: &[Variants] = variants!(
    ["T": F16 BF16, "Tindices": I32 I64, "Tnumsegments": I32 I64] host &["num_segments"];
);

/// `UnsortedSegmentSum` of TensorFlow.
pub static UNSORTED_SEGMENT_SUM: KernelDef = KernelDef {
    variants: variants!(
        ["T": F32 F64 I64, "Tindices": I32 I64, "Tnumsegments": I32 I64] host &["num_segments"];
    ),
    outputs: |inputs, sink| {
        let (data, ids) = (inputs.get(0, "data")?, inputs.shape(1, "segment_ids")?);
        let rest = data.shape().get(ids.rank()..);
        let rest = rest.filter(|_| data.shape()[..ids.rank()] == *ids);
        let rest = rest.ok_or(Error::Incompatible {
            arguments: ("data", "segment_ids"),
            shapes: (*data.shape(), ids),
            rule: "the data must start with the shape of their segment ids",
        })?;
        let count = inputs.int(2, "num_segments")?;
        let count = usize::try_from(count).map_err(|_| Error::Value {
            argument: "num_segments",
            expected: "a number that is not negative",
        })?;
        let mut shape = Shape::new(&[count])?;
        for &dim in rest {
            shape.push(dim)?;
        }
        sink(data.dtype(), shape)
    },
    run: |call| by_type!(call.output(0)?.dtype(), "data", T of [f32 f64 i64] => run::<T>(call)),
    ..KernelDef::of("UnsortedSegmentSum")
};

fn run<T: Element>(call: &mut Call<'_>) -> Result<()>
where
    Add: Zip<T, Out = T>,
{
    let (data, ids) = (
        call.inputs.get(0, "data")?,
        call.inputs.get(1, "segment_ids")?,
    );
    let data = T::view(&data, "data")?;
    let parallel = call.parallel;
    let output = call.output(0)?;
    let segments = output.shape()[0];
    let out = T::view_mut(output, "output")?;
    match ids.dtype() {
        DType::I32 => unsorted_segment_sum(data, ids.i32("segment_ids")?, segments, out, parallel),
        _ => unsorted_segment_sum(data, ids.i64("segment_ids")?, segments, out, parallel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;

    #[test]
    fn segments_are_added_and_negative_ones_skipped() {
        let data = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0_f32];
        let mut out = [9.0; 4];
        unsorted_segment_sum(&data, &[1, -1, 1_i32], 2, &mut out, &Serial).unwrap();
        assert_eq!(out, [0.0, 0.0, 6.0, 8.0]);
        let result = unsorted_segment_sum(&data, &[0, 2, 1_i64], 2, &mut out, &Serial);
        assert_eq!(
            result,
            Err(Error::Index {
                argument: "segment_ids",
                index: 2,
                limit: 2
            })
        );
        assert!(unsorted_segment_sum(&data[..5], &[0, 0, 1_i64], 2, &mut out, &Serial).is_err());
    }
}
