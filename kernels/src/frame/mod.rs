//! Loops that many ops share: over elements, pairs, rows, windows of strides, and reductions.

pub mod clamp;
pub mod map;
pub mod reduce;
pub(crate) mod rows;
pub mod strided;
pub mod zip;
