//! The places of what a mask chooses.

use crate::error::{Result, at};
use crate::kernels::ops::moving::where_true::places as choose;
use crate::memory::{Memory, Slot, Source};

/// Writes the places of what is true to the front of `out`; returns how many there are.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn places<'a>(
    m: &'a mut Memory<'_>,
    mask: impl Into<Source<'a, u8>>,
    out: Slot<i32>,
) -> Result<usize> {
    let (reader, out) = m.write(out)?;
    let mask = reader.read(mask.into())?;
    choose(mask, out).map_err(at("places"))
}
