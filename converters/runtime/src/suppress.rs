//! Boxes that suppress those that overlap them.

use crate::error::{Result, at};
use crate::kernels::ops::image::suppress::{Limits, suppress as choose};
use crate::memory::{Memory, Slot, Source};

/// The places of the chosen boxes of each row of `count` scores, -1 where there are no more.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn suppress<'a>(
    m: &'a mut Memory<'_>,
    boxes: impl Into<Source<'a, f32>>,
    (scores, count): (impl Into<Source<'a, f32>>, usize),
    limits: Limits,
    (out, scratch): (Slot<i32>, Slot<f32>),
) -> Result<()> {
    let (reader, out, scratch) = m.write_with(out, scratch)?;
    let (boxes, scores) = (reader.read(boxes.into())?, reader.read(scores.into())?);
    choose((boxes, scores, count), limits, out, scratch).map_err(at("suppress"))
}
