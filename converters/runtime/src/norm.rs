//! Normalizations.

use crate::error::{Result, at};
pub use crate::kernels::ops::norm::layer_norm::Kind;
use crate::kernels::ops::norm::layer_norm::{group_norm, normalize_rows};
use crate::memory::{Memory, Slot, Source};
use crate::weights::Tensor;

/// A normalization along the last axis of `width` elements, with learned factors.
#[derive(Clone, Copy, Debug)]
pub struct Norm {
    /// Name of the layer.
    pub name: &'static str,
    /// What is computed.
    pub kind: Kind,
    /// Elements of a row.
    pub width: usize,
    /// Learned factor; 1 if missing.
    pub scale: Option<Tensor<f32>>,
    /// Learned shift; 0 if missing.
    pub shift: Option<Tensor<f32>>,
    /// Added to the variance.
    pub epsilon: f32,
}

impl Norm {
    /// Computes the layer.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    pub fn run<'a>(
        &self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        let factor = |tensor: Option<Tensor<f32>>| {
            tensor.map(|tensor| reader.read(tensor.into())).transpose()
        };
        let factors = (factor(self.scale)?, factor(self.shift)?);
        normalize_rows(
            self.kind,
            x,
            self.width,
            factors,
            self.epsilon,
            out,
            reader.parallel,
        )
        .map_err(at(self.name))
    }
}

/// A normalization of groups of channels over all positions of an example.
#[derive(Clone, Copy, Debug)]
pub struct GroupNorm {
    /// Name of the layer.
    pub name: &'static str,
    /// Positions, channels and groups.
    pub sizes: (usize, usize, usize),
    /// Learned factor per channel; 1 if missing.
    pub scale: Option<Tensor<f32>>,
    /// Learned shift per channel; 0 if missing.
    pub shift: Option<Tensor<f32>>,
    /// Added to the variance.
    pub epsilon: f32,
}

impl GroupNorm {
    /// Computes the layer.
    ///
    /// # Errors
    /// As [`Norm::run`].
    pub fn run<'a>(
        &self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        let factor = |tensor: Option<Tensor<f32>>| {
            tensor.map(|tensor| reader.read(tensor.into())).transpose()
        };
        let factors = (factor(self.scale)?, factor(self.shift)?);
        group_norm(x, self.sizes, factors, self.epsilon, out, reader.parallel)
            .map_err(at(self.name))
    }
}
