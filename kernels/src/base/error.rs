//! The one error type of the crate: what was wrong with which argument, without allocation.

use core::fmt;

use crate::base::dtype::DType;
use crate::base::shape::Shape;

/// The result of every fallible function of this crate.
pub type Result<T> = core::result::Result<T, Error>;

/// Why a kernel refused its arguments. Nothing has been written to any output when one is returned,
/// unless the kernel says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Error {
    /// The argument's shape is not the one that the other arguments imply.
    #[cfg(not(without = "Error::Shape"))]
    Shape {
        /// Name of the argument.
        argument: &'static str,
        /// Shape that was passed.
        found: Shape,
        /// Shape that was expected.
        expected: Shape,
    },
    /// Two arguments have shapes that cannot be combined.
    #[cfg(not(without = "Error::Incompatible"))]
    Incompatible {
        /// Names of both arguments.
        arguments: (&'static str, &'static str),
        /// Their shapes, in the same order.
        shapes: (Shape, Shape),
        /// The rule that they break.
        rule: &'static str,
    },
    /// The argument's rank is not allowed.
    #[cfg(not(without = "Error::Rank"))]
    Rank {
        /// Name of the argument.
        argument: &'static str,
        /// Rank that was passed.
        found: usize,
        /// Allowed ranks, in words.
        expected: &'static str,
    },
    /// A slice is too short or too long, counted in its elements.
    Length {
        /// Name of the argument.
        argument: &'static str,
        /// Length that was passed.
        found: usize,
        /// Length that was expected.
        expected: usize,
    },
    /// An axis lies outside `-rank..rank`.
    #[cfg(not(without = "Error::Axis"))]
    Axis {
        /// Name of the argument.
        argument: &'static str,
        /// Axis that was passed.
        axis: i64,
        /// Rank of the tensor that it indexes.
        rank: usize,
    },
    /// An index lies outside `0..limit`.
    #[cfg(not(without = "Error::Index"))]
    Index {
        /// Name of the argument.
        argument: &'static str,
        /// Index that was passed.
        index: i64,
        /// First index that is too large.
        limit: usize,
    },
    /// An attribute or scalar argument has a value that the kernel does not accept.
    Value {
        /// Name of the attribute or argument.
        argument: &'static str,
        /// Accepted values, in words.
        expected: &'static str,
    },
    /// The element type is not one that the kernel computes with.
    #[cfg(not(without = "Error::DType"))]
    DType {
        /// Name of the argument.
        argument: &'static str,
        /// Type that was passed.
        found: DType,
        /// Accepted types, in words.
        expected: &'static str,
    },
    /// The number of elements or bytes does not fit in the address space.
    Overflow {
        /// Name of the argument.
        argument: &'static str,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            #[cfg(not(without = "Error::Shape"))]
            Self::Shape {
                argument,
                found,
                expected,
            } => write!(f, "{argument} has shape {found}, expected {expected}"),
            #[cfg(not(without = "Error::Incompatible"))]
            Self::Incompatible {
                arguments: (a, b),
                shapes: (sa, sb),
                rule,
            } => write!(f, "{a} of shape {sa} and {b} of shape {sb}: {rule}"),
            #[cfg(not(without = "Error::Rank"))]
            Self::Rank {
                argument,
                found,
                expected,
            } => write!(f, "{argument} has rank {found}, expected {expected}"),
            Self::Length {
                argument,
                found,
                expected,
            } => write!(f, "{argument} has {found} elements, expected {expected}"),
            #[cfg(not(without = "Error::Axis"))]
            Self::Axis {
                argument,
                axis,
                rank,
            } => write!(
                f,
                "{argument}: axis {axis} is outside [-{rank}, {rank}) for rank {rank}"
            ),
            #[cfg(not(without = "Error::Index"))]
            Self::Index {
                argument,
                index,
                limit,
            } => write!(f, "{argument}: index {index} is outside [0, {limit})"),
            Self::Value { argument, expected } => write!(f, "{argument}: expected {expected}"),
            #[cfg(not(without = "Error::DType"))]
            Self::DType {
                argument,
                found,
                expected,
            } => write!(f, "{argument} is {found}, expected {expected}"),
            Self::Overflow { argument } => {
                write!(f, "{argument}: the size does not fit in the address space")
            }
        }
    }
}

impl core::error::Error for Error {}
