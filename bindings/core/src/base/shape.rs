//! Shapes whose rank or dimensions may be unknown.

use std::fmt;

use crate::base::small_vec::SmallVec;

/// The number of dimensions that TensorFlow allows.
pub(crate) const MAX_RANK: usize = 254;

/// The shape of a tensor, known or partly known.
///
/// A dimension that is unknown is `None`; so are all of them when the rank is unknown.
#[derive(Clone, Default)]
pub struct Shape {
    // -1 is an unknown dimension; `None` an unknown rank.
    dims: Option<SmallVec<i64, 6>>,
}

impl Shape {
    /// Returns the shape of unknown rank.
    #[must_use]
    pub const fn unknown() -> Self {
        Self { dims: None }
    }

    /// Returns the shape of a scalar.
    #[must_use]
    pub const fn scalar() -> Self {
        Self {
            dims: Some(SmallVec::new()),
        }
    }

    /// Returns the shape with the given dimensions; any negative one is unknown.
    #[must_use]
    pub fn new(dims: &[i64]) -> Self {
        Self {
            dims: Some(dims.iter().map(|&dim| dim.max(-1)).collect()),
        }
    }

    /// Returns the shape with dimensions as the C API writes them; `None` is an unknown rank.
    pub(crate) const fn from_dims(dims: Option<SmallVec<i64, 6>>) -> Self {
        Self { dims }
    }

    /// Whether a tensor may have these dimensions.
    #[inline]
    pub(crate) fn admits(&self, found: &[i64]) -> bool {
        self.dims().is_none_or(|dims| {
            let mut pairs = dims.iter().zip(found);
            dims.len() == found.len() && pairs.all(|(&dim, &found)| dim < 0 || dim == found)
        })
    }

    /// Whether TensorFlow can hold the shape; where its C API does not say so by a status, it ends the
    /// process for one that it can't.
    pub(crate) fn can_be_held(&self) -> bool {
        let dims = self.dims().unwrap_or_default();
        let mut known = dims.iter().take_while(|&&dim| dim >= 0);
        dims.len() <= MAX_RANK
            && known
                .try_fold(1_i64, |count, &dim| count.checked_mul(dim))
                .is_some()
    }

    /// Returns the number of dimensions, when known.
    #[must_use]
    pub fn rank(&self) -> Option<usize> {
        self.dims.as_ref().map(|dims| dims.len())
    }

    /// Returns the dimensions with -1 for an unknown one, as the C API writes them; `None` when the
    /// rank is unknown.
    #[must_use]
    pub fn dims(&self) -> Option<&[i64]> {
        self.dims.as_deref()
    }

    /// Returns a dimension, when known.
    #[must_use]
    pub fn dim(&self, axis: usize) -> Option<i64> {
        self.dims()?.get(axis).copied().filter(|&dim| dim >= 0)
    }

    /// Whether the rank and every dimension are known.
    #[must_use]
    pub fn is_fully_known(&self) -> bool {
        self.dims()
            .is_some_and(|dims| dims.iter().all(|&dim| dim >= 0))
    }

    /// Returns the number of elements, when the shape is fully known and the number fits.
    #[must_use]
    pub fn element_count(&self) -> Option<i64> {
        let dims = self.dims()?;
        if dims.contains(&0) && self.is_fully_known() {
            return Some(0);
        }
        dims.iter().try_fold(1_i64, |count, &dim| {
            if dim < 0 {
                None
            } else {
                count.checked_mul(dim)
            }
        })
    }

    /// Whether a tensor could have both shapes.
    #[must_use]
    pub fn is_compatible_with(&self, other: &Self) -> bool {
        match (self.dims(), other.dims()) {
            (Some(mine), Some(theirs)) => {
                mine.len() == theirs.len()
                    && mine
                        .iter()
                        .zip(theirs)
                        .all(|(&a, &b)| a < 0 || b < 0 || a == b)
            }
            _ => true,
        }
    }
}

impl PartialEq for Shape {
    /// Compares what is known: two unknown dimensions are the same.
    fn eq(&self, other: &Self) -> bool {
        self.dims() == other.dims()
    }
}

impl Eq for Shape {}

impl<const N: usize> From<[i64; N]> for Shape {
    fn from(dims: [i64; N]) -> Self {
        Self::new(&dims)
    }
}

impl From<&[i64]> for Shape {
    fn from(dims: &[i64]) -> Self {
        Self::new(dims)
    }
}

impl From<&Vec<i64>> for Shape {
    fn from(dims: &Vec<i64>) -> Self {
        Self::new(dims)
    }
}

impl From<&Shape> for Shape {
    fn from(shape: &Shape) -> Self {
        shape.clone()
    }
}

impl<const N: usize> From<[Option<i64>; N]> for Shape {
    fn from(dims: [Option<i64>; N]) -> Self {
        Self {
            dims: Some(
                dims.iter()
                    .map(|dim| dim.map_or(-1, |dim| dim.max(-1)))
                    .collect(),
            ),
        }
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some(dims) = self.dims() else {
            return f.write_str("<unknown>");
        };
        f.write_str("[")?;
        for (index, dim) in dims.iter().enumerate() {
            f.write_str(if index > 0 { "," } else { "" })?;
            if *dim < 0 {
                f.write_str("?")?
            } else {
                write!(f, "{dim}")?
            }
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
