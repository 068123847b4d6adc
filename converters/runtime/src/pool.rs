//! Pooling.

use crate::conv::Axis;
use crate::error::{Result, at};
pub use crate::kernels::ops::image::pooling::Kind;
use crate::kernels::ops::image::pooling::Pooling;
use crate::memory::{Memory, Slot, Source, count};

/// The largest or the mean element of every window of `channels` channels.
///
/// # Errors
/// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
pub fn pool<'a>(
    m: &'a mut Memory<'_>,
    kind: Kind,
    [y, x]: [Axis; 2],
    channels: usize,
    input: impl Into<Source<'a, f32>>,
    out: Slot<f32>,
) -> Result<()> {
    const NAME: &str = "pool";
    let (reader, out) = m.write(out)?;
    let input = reader.read(input.into())?;
    let (y, x) = (y.window().map_err(at(NAME))?, x.window().map_err(at(NAME))?);
    let images = count(input.len(), y.input * x.input * channels);
    Pooling::new(kind, images, channels, y, x)
        .and_then(|pooling| pooling.run(input, out, reader.parallel))
        .map_err(at(NAME))
}
