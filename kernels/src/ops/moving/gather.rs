//! Takes slices of a tensor by index.

use crate::base::adapt::{Element, by_width, units, units_mut, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;

/// A gather of slices along an axis, resolved for shapes.
#[derive(Clone, Copy, Debug)]
pub struct Gather {
    /// Shape of the result.
    pub shape: Shape,
    /// Number of index sets, one per batch of the parameters.
    batches: usize,
    /// Slices of parameters before the axis, within a batch.
    outer: usize,
    /// Length of the axis.
    limit: usize,
    /// Indices per batch.
    indices: usize,
    /// Elements of a slice.
    inner: usize,
}

impl Gather {
    /// For parameters and indices of these shapes, whose first `batch_dims` axes are shared.
    ///
    /// # Errors
    /// [`Error::Axis`] for an axis or number of batch axes out of range, [`Error::Incompatible`] if
    /// batch axes differ, [`Error::Rank`] if the result has more than 8 axes.
    pub fn new(params: &Shape, indices: &Shape, axis: i64, batch_dims: i64) -> Result<Self> {
        let axis = params.axis("axis", axis)?;
        let rank = indices.rank();
        let batch = if batch_dims < 0 {
            batch_dims + rank as i64
        } else {
            batch_dims
        };
        let batch = usize::try_from(batch)
            .ok()
            .filter(|&batch| batch <= rank && batch <= axis)
            .ok_or(Error::Axis {
                argument: "batch_dims",
                axis: batch_dims,
                rank,
            })?;
        if params[..batch] != indices[..batch] {
            return Err(Error::Incompatible {
                arguments: ("params", "indices"),
                shapes: (*params, *indices),
                rule: "batch axes must be equal",
            });
        }
        let mut shape = Shape::SCALAR;
        let dims = params[..axis]
            .iter()
            .chain(&indices[batch..])
            .chain(&params[axis + 1..]);
        for &dim in dims {
            shape.push(dim)?;
        }
        Ok(Self {
            shape,
            batches: params[..batch].iter().product(),
            outer: params[batch..axis].iter().product(),
            limit: params[axis],
            indices: indices[batch..].iter().product(),
            inner: params[axis + 1..].iter().product(),
        })
    }

    /// Writes the slices of `params` that `indices` names.
    ///
    /// # Errors
    /// [`Error::Index`] for an index out of range, [`Error::Length`] if a slice does not fit.
    pub fn run<T: Copy + Send + Sync, I: Element + TryInto<usize> + Into<i64>>(
        &self,
        params: &[T],
        indices: &[I],
        out: &mut [T],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let params_len = self.batches * self.outer * self.limit * self.inner;
        crate::base::adapt::check_count("params", params.len(), params_len)?;
        crate::base::adapt::check_count("indices", indices.len(), self.batches * self.indices)?;
        crate::base::adapt::check_len("output", out.len(), &self.shape)?;
        if out.is_empty() {
            return Ok(());
        }
        for &index in indices {
            check_index(index, self.limit)?;
        }
        let inner = self.inner;
        let chunk = chunk_len(parallel, out.len(), inner, 2);
        for_each_chunk(parallel, out, chunk, &|start, out| {
            let (mut slice, mut out) = (start / inner, out);
            while !out.is_empty() {
                // The rest of a row: what divides is done once for all of its indices.
                let (row, column) = (slice / self.indices, slice % self.indices);
                let batch = row / self.outer;
                let indices = &indices[batch * self.indices..][column..self.indices];
                let from = &params[row * self.limit * inner..][..self.limit * inner];
                let (now, rest) = out.split_at_mut((indices.len() * inner).min(out.len()));
                let at = |index: I| index.try_into().unwrap_or(0) * inner;
                if inner == 1 {
                    for (to, &index) in now.iter_mut().zip(indices) {
                        *to = from[at(index)];
                    }
                } else {
                    for (to, &index) in now.chunks_mut(inner).zip(indices) {
                        to.copy_from_slice(&from[at(index)..][..inner]);
                    }
                }
                (slice, out) = (slice + indices.len(), rest);
            }
        });
        Ok(())
    }
}

/// Fails unless the index lies in `0..limit`.
pub(crate) fn check_index<I: Copy + TryInto<usize> + Into<i64>>(
    index: I,
    limit: usize,
) -> Result<()> {
    if index.try_into().is_ok_and(|index| index < limit) {
        Ok(())
    } else {
        Err(Error::Index {
            argument: "indices",
            index: index.into(),
            limit,
        })
    }
}

/// `GatherV2` of TensorFlow.
pub static GATHER_V2: KernelDef = KernelDef {
    variants: variants!(
        [
            "Tparams": F32 F64 F16 BF16 I8 I16 I64 U8 U16 U32 U64 Bool,
            "Tindices": I32 I64,
            "Taxis": I32 I64
        ] host &["axis"];
        ["Tparams": I32, "Tindices": I32 I64, "Taxis": I32 I64]
            host &["params", "indices", "axis", "output"];
    ),
    attrs: &[("batch_dims", AttrKind::Int)],
    outputs: |inputs, sink| sink(inputs.get(0, "params")?.dtype(), gather(inputs)?.shape),
    run: |call| by_width!(call.inputs.get(0, "params")?.dtype(), run(call)),
    ..KernelDef::of("GatherV2")
};

fn gather(inputs: &Inputs<'_>) -> Result<Gather> {
    let (params, indices) = (inputs.shape(0, "params")?, inputs.shape(1, "indices")?);
    let (axis, batch_dims) = (inputs.int(2, "axis")?, inputs.attrs.int("batch_dims")?);
    Gather::new(&params, &indices, axis, batch_dims)
}

fn run<const N: usize>(call: &mut Call<'_>) -> Result<()> {
    let gather = gather(&call.inputs)?;
    let params = units::<N>(call.inputs.get(0, "params")?.bytes());
    let indices = call.inputs.get(1, "indices")?;
    let parallel = call.parallel;
    let out = units_mut(call.output(0)?.bytes_mut());
    match indices.dtype() {
        DType::I32 => gather.run(params, indices.i32("indices")?, out, parallel),
        _ => gather.run(params, indices.i64("indices")?, out, parallel),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Interleaved, numbers};
    use crate::trial::{cases, indices, number, shapes};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(cases())]

        #[test]
        fn slices_are_copied(shape in shapes(), place: u8, batch: u8, extra in 0_usize..4, seed: u64) {
            prop_assume!(shape.rank() > 0 && shape.elements() > 0);
            let axis = usize::from(place) % shape.rank();
            let batch = usize::from(batch) % (axis + 1);
            let mut index_shape = Shape::new(&shape[..batch]).unwrap();
            index_shape.push(extra).unwrap();
            let index: Vec<i32> = numbers(index_shape.elements(), seed)
                .iter()
                .map(|x| ((x + 1.0) / 2.0 * shape[axis] as f32) as i32)
                .collect();
            let gather = Gather::new(&shape, &index_shape, axis as i64, batch as i64).unwrap();
            let x = numbers(shape.elements(), 1);
            let mut out = vec![f32::NAN; gather.shape.elements()];
            gather.run(&x, &index, &mut out, &Interleaved).unwrap();
            for (i, &found) in out.iter().enumerate() {
                let mut at = indices(&gather.shape, i);
                let column = at[axis];
                let mut entry = at[..batch].to_vec();
                entry.push(column);
                // A batch axis of size 1 and an index axis of size 1 are both at 0.
                at[axis] = index[number(&index_shape, &entry)] as usize;
                prop_assert_eq!(found, x[number(&shape, &at)]);
            }
        }
    }

    #[test]
    fn indices_outside_are_refused_before_anything_is_written() {
        let shape = Shape::new(&[3, 2]).unwrap();
        let one = Shape::new(&[2]).unwrap();
        let gather = Gather::new(&shape, &one, 0, 0).unwrap();
        for bad in [-1_i64, 3] {
            let mut out = [9.0; 4];
            let result = gather.run(&[0.0; 6], &[0, bad], &mut out, &Interleaved);
            assert_eq!(
                result,
                Err(Error::Index {
                    argument: "indices",
                    index: bad,
                    limit: 3
                })
            );
            assert_eq!(out, [9.0; 4]);
        }
        assert!(matches!(
            Gather::new(&shape, &one, 2, 0),
            Err(Error::Axis { .. })
        ));
        assert!(matches!(
            Gather::new(&shape, &one, 1, 1),
            Err(Error::Incompatible { .. })
        ));
    }
}
