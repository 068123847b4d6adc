//! Element type and shape of tensors, checked once for all steps that have the same ones.

use crate::data_type::DataType;
use crate::error::{Error, Result};

/// Largest rank that TensorFlow allows.
const MAX_RANK: usize = 254;

/// Bytes of an element of the largest type.
pub(crate) const LARGEST_ELEMENT: usize = 16;

/// Dimensions that need no allocation.
const INLINE: usize = 8;

/// Element type and dimensions of a tensor that can exist and whose elements are plain bytes.
///
/// A kernel plans the inputs and outputs of a node's first step with layouts
/// ([`Context::plan_input`](crate::Context::plan_input),
/// [`Context::plan_output`](crate::Context::plan_output)) and compares later inputs with them. Up to
/// rank 8 it needs no allocation.
#[derive(Clone, Debug)]
pub struct Layout {
    data_type: DataType,
    bytes: usize,
    rank: i32,
    inline: [i64; INLINE],
    // Holds the dimensions instead above rank `INLINE`.
    spill: Option<Box<[i64]>>,
}

impl Layout {
    /// A layout of `dims`, in elements.
    ///
    /// # Errors
    /// [`Code::InvalidArgument`](crate::Code::InvalidArgument) for a shape that no tensor can have,
    /// [`Code::Internal`](crate::Code::Internal) for a type whose elements are not plain bytes.
    pub fn new(data_type: DataType, dims: &[usize]) -> Result<Self> {
        let bytes = byte_size(data_type, dims)?;
        let (pointer, rank) = c_dims(dims);
        let mut inline = [0; INLINE];
        let spill = if dims.len() > INLINE {
            // SAFETY: `c_dims` gives the same memory, and a `usize` is as large as an `i64`.
            Some(unsafe { std::slice::from_raw_parts(pointer, dims.len()) }.into())
        } else {
            for (slot, &dim) in inline.iter_mut().zip(dims) {
                *slot = dim.cast_signed() as i64;
            }
            None
        };
        Ok(Self {
            data_type,
            bytes,
            rank,
            inline,
            spill,
        })
    }

    /// Element type.
    #[must_use]
    #[inline]
    pub fn data_type(&self) -> DataType {
        self.data_type
    }

    /// Bytes of all elements.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The dimensions as C has them.
    #[inline]
    pub(crate) fn dims(&self) -> &[i64] {
        match &self.spill {
            Some(dims) => dims,
            None => self
                .inline
                .get(..self.rank as usize)
                .unwrap_or(&self.inline),
        }
    }

    /// Number of dimensions.
    #[inline]
    pub(crate) fn rank(&self) -> i32 {
        self.rank
    }
}

#[cold]
pub(crate) fn impossible(what: &str, dims: &[usize]) -> Error {
    if dims.len() > MAX_RANK {
        return Error::invalid(format!(
            "a tensor of rank {} is impossible, at most {MAX_RANK}",
            dims.len()
        ));
    }
    Error::invalid(format!("a {what} tensor of shape {dims:?} is too large"))
}

/// Bytes of a tensor, its empty dimensions left out; `None` for one that can't exist, so that
/// TensorFlow's own assertions never see it.
#[inline]
pub(crate) fn extent(element: usize, dims: &[usize]) -> Option<usize> {
    if dims.len() > MAX_RANK {
        return None;
    }
    let mut extent = element;
    for &dim in dims.iter().filter(|&&dim| dim != 0) {
        extent = extent
            .checked_mul(dim)
            .filter(|&bytes| isize::try_from(bytes).is_ok())?;
    }
    Some(extent)
}

/// Bytes of a tensor that can exist.
pub(crate) fn byte_size(data_type: DataType, dims: &[usize]) -> Result<usize> {
    let element = data_type
        .size()
        .ok_or_else(|| Error::internal(format!("a {data_type} tensor has no plain bytes")))?;
    let bytes = extent(element, dims).ok_or_else(|| impossible(&data_type.to_string(), dims))?;
    Ok(if dims.contains(&0) { 0 } else { bytes })
}

// A dimension is handed over as it lies in memory.
const _: () = assert!(size_of::<usize>() == size_of::<i64>());

/// The dimensions and the rank as C wants them. The dimensions have passed [`extent`], so that each
/// fits an `i64`.
#[allow(clippy::cast_possible_wrap, clippy::cast_possible_truncation)]
#[inline]
pub(crate) fn c_dims(dims: &[usize]) -> (*const i64, i32) {
    (dims.as_ptr().cast(), dims.len() as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_shapes_are_errors() {
        assert_eq!(byte_size(DataType::FLOAT, &[2, 3]).unwrap(), 24);
        assert_eq!(byte_size(DataType::FLOAT, &[]).unwrap(), 4);
        assert_eq!(byte_size(DataType::FLOAT, &[0, usize::MAX / 8]).unwrap(), 0);
        assert!(byte_size(DataType::FLOAT, &[usize::MAX / 2]).is_err());
        assert!(byte_size(DataType::FLOAT, &[1 << 40, 1 << 40]).is_err());
        assert!(byte_size(DataType::STRING, &[1]).is_err());
        assert!(byte_size(DataType::FLOAT, &[1; 255]).is_err());
    }

    #[test]
    fn a_layout_keeps_dimensions_of_any_rank() {
        for rank in [0, 1, 8, 9, 254] {
            let first = [3, 1, 4, 1, 5, 9, 2, 6, 5];
            let dims: Vec<usize> = first.into_iter().chain([1; 254]).take(rank).collect();
            let layout = Layout::new(DataType::HALF, &dims).unwrap();
            let found: Vec<usize> = layout.dims().iter().map(|&dim| dim as usize).collect();
            assert_eq!(found, dims);
            assert_eq!(layout.bytes(), 2 * dims.iter().product::<usize>());
            assert_eq!(layout.rank() as usize, rank);
        }
        assert!(Layout::new(DataType::STRING, &[1]).is_err());
        assert!(Layout::new(DataType::FLOAT, &[1; 255]).is_err());
    }
}
