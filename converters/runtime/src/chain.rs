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

    /// What the kernels compute.
    ///
    /// # Errors
    /// [`Error::Plan`] if weights lie elsewhere than the plan says.
    fn part<'a>(&'a self, reader: &Reader<'a>) -> Result<Part<'a>>;
}

impl Link for Conv {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn part<'a>(&'a self, reader: &Reader<'a>) -> Result<Part<'a>> {
        Ok(Part::Forward(self.forward(reader)?))
    }
}

impl Link for DepthwiseConv {
    fn name(&self) -> &'static str {
        Self::name(self)
    }

    fn part<'a>(&'a self, reader: &Reader<'a>) -> Result<Part<'a>> {
        let (depthwise, filter) = self.depthwise(reader)?;
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
    let mut parts = [first.part(&reader)?; MAX_LINKS];
    let count = layers.len();
    let parts = parts.get_mut(..count).ok_or(Error::Plan {
        expected: "chains of four layers at most",
    })?;
    for (part, layer) in parts.iter_mut().zip(layers) {
        *part = layer.part(&reader)?;
    }
    Chain { links: parts }
        .run(x, out, scratch, reader.parallel)
        .map_err(at(last.name()))
}
