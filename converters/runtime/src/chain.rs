//! Convolutions in a row, computed band by band: what lies between them is never there as a whole.

use crate::conv::{Conv, DepthwiseConv};
use crate::error::{Error, Result, at};
use crate::kernels::conv::chain::MAX_LINKS;
use crate::kernels::conv::{Chain, Link as Part};
use crate::memory::{Memory, Reader, Slot, Source};

/// A layer that can be part of a chain.
pub trait Link {
    /// Name of the layer.
    fn name(&self) -> &'static str;

    /// As how many images so many elements are convolved.
    fn batch(&self, found: usize) -> usize;

    /// What the kernels compute of so many images.
    ///
    /// # Errors
    /// [`Error::Plan`] if weights lie elsewhere than the plan says.
    fn part<'a>(&'a self, reader: &Reader<'a>, batch: usize) -> Result<Part<'a>>;
}

impl Link for Conv {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn batch(&self, found: usize) -> usize {
        Self::batch(self, found)
    }

    fn part<'a>(&'a self, reader: &Reader<'a>, batch: usize) -> Result<Part<'a>> {
        Ok(Part::Forward(self.forward(reader, batch)?))
    }
}

impl Link for DepthwiseConv {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn batch(&self, found: usize) -> usize {
        Self::batch(self, found)
    }

    fn part<'a>(&'a self, reader: &Reader<'a>, batch: usize) -> Result<Part<'a>> {
        let (depthwise, filter) = self.depthwise(reader, batch)?;
        Ok(Part::Depthwise(depthwise, filter))
    }
}

/// Computes layers each of which reads what the one before it gives, with scratch memory right
/// after the output.
///
/// # Errors
/// [`Error::Layer`], with the last one's name, or [`Error::Plan`] if a slot does not fit.
pub fn run<'a>(
    m: &'a mut Memory<'_>,
    layers: &[&'a dyn Link],
    x: impl Into<Source<'a, f32>>,
    out: Slot<f32>,
    scratch: Slot<f32>,
) -> Result<()> {
    let (reader, out, scratch) = m.write_with(out, scratch)?;
    let x = reader.read(x.into())?;
    let ([first, ..], [.., last]) = (layers, layers) else {
        return Ok(());
    };
    let batch = first.batch(x.len());
    let mut parts = [first.part(&reader, batch)?; MAX_LINKS];
    let count = layers.len();
    let parts = parts.get_mut(..count).ok_or(Error::Plan {
        expected: "chains of four layers at most",
    })?;
    for (part, layer) in parts.iter_mut().zip(layers) {
        *part = layer.part(&reader, batch)?;
    }
    Chain { links: parts }
        .run(x, out, scratch, reader.parallel)
        .map_err(at(last.name()))
}
