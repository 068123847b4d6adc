//! Convolutions whose filters see one channel each.

use super::geometry::{Axis, Geometry};
use super::layer::Layer;
use crate::activation::Activation;
use crate::error::{Result, at};
use crate::kernels::conv::depthwise::Depthwise;
use crate::memory::{Memory, Reader, Slot, Source};
use crate::weights::Tensor;

/// A convolution in which every channel has filters of its own.
#[derive(Clone, Debug)]
pub struct DepthwiseConv {
    layer: Layer,
    filter: Tensor<f32>,
}

impl DepthwiseConv {
    /// Reads the layer's weights: a filter `[height, width, inputs, outputs / inputs]` and a bias.
    ///
    /// # Errors
    /// As [`super::Filtered::new`].
    pub fn new(
        name: &'static str,
        geometry: &Geometry,
        filter: Tensor<f32>,
        bias: Option<Tensor<f32>>,
        activation: Activation,
    ) -> Result<Self> {
        let layer = Layer::new(name, geometry, bias, activation)?;
        Ok(Self { layer, filter })
    }

    /// Computes the layer.
    ///
    /// # Errors
    /// As [`super::Filtered::run`].
    pub fn run<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        let (depthwise, filter) = self.depthwise(&reader, self.batch(x.len()))?;
        depthwise
            .run(x, filter, out, reader.parallel)
            .map_err(at(self.layer.name))
    }

    /// As [`DepthwiseConv::run`], over axes that the call decides.
    ///
    /// # Errors
    /// As [`super::Filtered::run`].
    pub fn run_over<'a>(
        &'a self,
        m: &'a mut Memory<'_>,
        axes: [Axis; 2],
        x: impl Into<Source<'a, f32>>,
        out: Slot<f32>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let x = reader.read(x.into())?;
        let layer = &self.layer;
        let depthwise = Depthwise {
            bias: layer.bias(&reader)?,
            activation: layer.activation,
            ..Depthwise::new(layer.over(axes, x.len())?)
        };
        let filter = reader.read(Source::Weights(self.filter))?;
        depthwise
            .run(x, filter, out, reader.parallel)
            .map_err(at(layer.name))
    }

    pub(crate) const fn name(&self) -> &'static str {
        self.layer.name
    }

    /// As how many images so many elements are convolved.
    pub(crate) fn batch(&self, found: usize) -> usize {
        self.layer.batch(found)
    }

    /// The convolution of so many images, and its filter.
    pub(crate) fn depthwise<'a>(
        &self,
        reader: &Reader<'a>,
        batch: usize,
    ) -> Result<(Depthwise<'a>, &'a [f32])> {
        let layer = &self.layer;
        let depthwise = Depthwise {
            bias: layer.bias(reader)?,
            activation: layer.activation,
            ..Depthwise::new(layer.sizes(batch))
        };
        Ok((depthwise, reader.read(Source::Weights(self.filter))?))
    }
}
