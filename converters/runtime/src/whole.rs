//! Whole numbers in other sizes.

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::whole::{Whole, convert};
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
