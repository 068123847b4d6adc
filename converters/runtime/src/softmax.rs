//! Softmax along the last axis.

use crate::error::{Result, at};
use crate::kernels::ops::norm::softmax as rows;
use crate::memory::{Memory, Slot, Source};

/// Softmax of rows of `width` elements.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
#[inline]
pub fn softmax<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, f32>>,
    width: usize,
    out: Slot<f32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    rows::softmax(x, width, out, reader.parallel).map_err(at("softmax"))
}

/// The logarithm of the softmax of rows of `width` elements.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax<'a>(
    m: &'a mut Memory<'_>,
    x: impl Into<Source<'a, f32>>,
    width: usize,
    out: Slot<f32>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let x = reader.read(x.into())?;
    rows::log_softmax(x, width, out, reader.parallel).map_err(at("log_softmax"))
}
