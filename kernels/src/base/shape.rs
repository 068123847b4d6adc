//! Shapes: small, `Copy`, without allocation.

use core::fmt;
use core::ops::Deref;

use crate::base::error::{Error, Result};

/// Largest rank of a tensor.
pub const MAX_RANK: usize = 8;

const RANK: Error = Error::Rank {
    argument: "shape",
    found: MAX_RANK + 1,
    expected: "at most 8",
};

/// Dimensions of a dense row-major tensor of rank 0 to [`MAX_RANK`]; derefs to a slice of them.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Shape {
    dims: [usize; MAX_RANK],
    rank: u8,
}

impl Shape {
    /// The shape of a scalar.
    pub const SCALAR: Self = Self {
        dims: [0; MAX_RANK],
        rank: 0,
    };

    /// A shape with these dimensions.
    ///
    /// # Errors
    /// [`Error::Rank`] above [`MAX_RANK`] dimensions, [`Error::Overflow`] if the product of the
    /// non-zero ones exceeds `isize::MAX`.
    #[inline(never)]
    pub fn new(dims: &[usize]) -> Result<Self> {
        let mut shape = Self::SCALAR;
        let Some(slots) = shape.dims.get_mut(..dims.len()) else {
            return Err(RANK);
        };
        slots.copy_from_slice(dims);
        shape.rank = dims.len() as u8;
        shape.check()
    }

    /// Appends a dimension.
    ///
    /// # Errors
    /// As [`Shape::new`].
    #[inline(never)]
    pub fn push(&mut self, dim: usize) -> Result<()> {
        let slot = self.dims.get_mut(usize::from(self.rank)).ok_or(RANK)?;
        *slot = dim;
        self.rank += 1;
        self.check().map(|_| ())
    }

    #[inline]
    fn check(self) -> Result<Self> {
        let mut product: usize = 1;
        for &d in self.iter().filter(|&&d| d != 0) {
            product = product
                .checked_mul(d)
                .filter(|&p| p <= isize::MAX as usize)
                .ok_or(Error::Overflow { argument: "shape" })?;
        }
        Ok(self)
    }

    /// Number of dimensions.
    #[must_use]
    pub const fn rank(&self) -> usize {
        self.rank as usize
    }

    /// Number of elements; 1 for a scalar.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.iter().product()
    }

    /// The shape that broadcasting `self` with `other` gives: aligned at the last dimension, 1
    /// stretches. `arguments` names both for the error.
    ///
    /// # Errors
    /// [`Error::Incompatible`] where two dimensions differ and neither is 1.
    #[inline(never)]
    pub fn broadcast(&self, other: &Self, arguments: (&'static str, &'static str)) -> Result<Self> {
        let rank = self.rank().max(other.rank());
        let mut out = Self::SCALAR;
        for axis in 0..rank {
            let dim = |shape: &Self| match (axis + shape.rank()).checked_sub(rank) {
                Some(i) => shape[i],
                None => 1,
            };
            let merged = match (dim(self), dim(other)) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => {
                    return Err(Error::Incompatible {
                        arguments,
                        shapes: (*self, *other),
                        rule: "dimensions must be equal or 1 to broadcast",
                    });
                }
            };
            out.push(merged)?;
        }
        Ok(out)
    }

    /// Resolves an axis that counts from the end when negative.
    ///
    /// # Errors
    /// [`Error::Axis`] outside `-rank..rank`.
    pub fn axis(&self, argument: &'static str, axis: i64) -> Result<usize> {
        let rank = self.rank();
        let resolved = if axis < 0 { axis + rank as i64 } else { axis };
        usize::try_from(resolved)
            .ok()
            .filter(|&a| a < rank)
            .ok_or(Error::Axis {
                argument,
                axis,
                rank,
            })
    }
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        &self.dims[..usize::from(self.rank)]
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, dim) in self.iter().enumerate() {
            if i > 0 {
                f.write_str(",")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str("]")
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn broadcast_stretches_ones_and_missing_axes() {
        let merged = shape(&[4, 1, 3]).broadcast(&shape(&[5, 1]), ("a", "b"));
        assert_eq!(merged, Ok(shape(&[4, 5, 3])));
        assert_eq!(
            Shape::SCALAR.broadcast(&shape(&[0]), ("a", "b")),
            Ok(shape(&[0]))
        );
        assert!(shape(&[2]).broadcast(&shape(&[3]), ("a", "b")).is_err());
    }

    #[test]
    fn overflow_and_rank_are_errors() {
        assert_eq!(
            Shape::new(&[usize::MAX, 2]),
            Err(Error::Overflow { argument: "shape" })
        );
        assert!(Shape::new(&[1; 9]).is_err());
        assert_eq!(shape(&[1 << (usize::BITS - 24), 0, 1 << 20]).elements(), 0);
    }

    #[test]
    fn axes_count_from_the_end() {
        assert_eq!(shape(&[2, 3]).axis("axis", -1), Ok(1));
        assert!(shape(&[2, 3]).axis("axis", 2).is_err());
        assert!(Shape::SCALAR.axis("axis", 0).is_err());
    }
}
