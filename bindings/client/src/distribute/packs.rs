//! Several tensors as one vector: few messages carry many small tensors.

use std::collections::BTreeMap;

use tfp_core::{Context, DataType, Error, ErrorKind, Result};

use crate::ops;

/// The most bytes of small tensors that are reduced as one.
const PACK: usize = 32 << 20;

/// Which tensors are reduced as one, and their shapes.
pub(crate) struct Packs {
    packs: Vec<Vec<usize>>,
    dims: Vec<Vec<i64>>,
}

impl Packs {
    /// Puts tensors of one type together, by their types and whole shapes.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for a type that `CollectiveReduceV2` doesn't take.
    pub fn of(tensors: impl IntoIterator<Item = (DataType, Vec<i64>)>) -> Result<Self> {
        let (mut packs, mut all) = (Vec::new(), Vec::new());
        let mut open: BTreeMap<u32, (usize, Vec<usize>)> = BTreeMap::new();
        for (index, (dtype, dims)) in tensors.into_iter().enumerate() {
            let size = match dtype {
                DataType::FLOAT | DataType::INT32 => 4,
                DataType::DOUBLE | DataType::INT64 => 8,
                DataType::HALF | DataType::BFLOAT16 => 2,
                _ => {
                    return Err(Error::new(ErrorKind::DType {
                        what: format!("value {index} of an all-reduce (floats and int32 or int64)"),
                        expected: DataType::FLOAT,
                        found: dtype,
                    }));
                }
            };
            let bytes = usize::try_from(dims.iter().product::<i64>()).unwrap_or(0) * size;
            let (sum, pack) = open.entry(dtype.number()).or_default();
            if !pack.is_empty() && *sum + bytes > PACK {
                packs.push(std::mem::take(pack));
                *sum = 0;
            }
            *sum += bytes;
            pack.push(index);
            all.push(dims);
        }
        packs.extend(open.into_values().map(|(_, pack)| pack));
        Ok(Self { packs, dims: all })
    }

    /// Returns the number of vectors.
    pub fn len(&self) -> usize {
        self.packs.len()
    }

    /// Reduces values as vectors, each with its number, and returns what became of each value.
    pub fn reduce<C: Context>(
        &self,
        cx: &C,
        values: &[C::Value],
        mut reduce: impl FnMut(usize, &C::Value) -> Result<C::Value>,
    ) -> Result<Vec<C::Value>> {
        let mut results: Vec<Option<C::Value>> = vec![None; values.len()];
        let missing = || Error::argument("a collective op returned too few values");
        for (number, pack) in self.packs.iter().enumerate() {
            // One value keeps its shape, which Python's workers compare.
            if let [index] = **pack {
                results[index] = Some(reduce(number, &values[index])?);
                continue;
            }
            let flat = pack
                .iter()
                .map(|&at| ops::reshape(cx, &values[at], [-1_i32]));
            let whole = ops::concat_v2(cx, &flat.collect::<Result<Vec<_>>>()?, 0_i32)?;
            let reduced = reduce(number, &whole)?;
            let sizes = pack.iter().map(|&at| self.dims[at].iter().product());
            let sizes: Vec<i64> = sizes.collect();
            let pieces = ops::split_v(cx, &reduced, &*sizes, 0_i32, sizes.len() as i64)?;
            for (&at, piece) in pack.iter().zip(&pieces) {
                results[at] = Some(ops::reshape(cx, piece, &*self.dims[at])?);
            }
        }
        results
            .into_iter()
            .map(|value| value.ok_or_else(missing))
            .collect()
    }
}
