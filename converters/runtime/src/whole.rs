//! Integers of other sizes, and their matmuls.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::ops::elementwise::whole::{Whole, convert};
use crate::kernels::ops::matrix::whole_product::{Factor, whole_product};
use crate::memory::{Memory, Slot, Source};

/// `out = x` in another type; a number that does not fit loses its upper bits.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn cast<'a, T: Whole + Pod, U: Whole + Pod>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, T>>,
    out: Slot<U>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    convert(x, out, reader.parallel).map_err(at("cast"))
}

/// `out = a * b` of `groups` matrices each, with `depth` columns of `a` and `columns` of `b`.
///
/// # Errors
/// As [`cast`].
pub fn product<'a, T: Factor + Pod>(
    m: &'a mut Memory<'_>,
    sizes: (usize, usize, usize),
    (a, b): (impl Into<Source<'a, T>>, impl Into<Source<'a, T>>),
    out: Slot<T>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let (a, b) = (reader.read(a.into())?, reader.read(b.into())?);
    whole_product(sizes, a, b, out, reader.parallel).map_err(at("product"))
}
