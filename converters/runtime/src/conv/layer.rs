//! What all kinds of convolutions have in common.

use super::geometry::{Axis, Geometry};
use crate::activation::Activation;
use crate::error::{Result, at};
use crate::kernels::conv::Conv as Sizes;
use crate::memory::{Reader, Source, count};
use crate::weights::Tensor;

/// What all three kinds have in common.
#[derive(Clone, Debug)]
pub(super) struct Layer {
    pub(super) name: &'static str,
    pub(super) sizes: Sizes,
    pub(super) bias: Option<Tensor<f32>>,
    pub(super) activation: Activation,
}

impl Layer {
    pub(super) fn new(
        name: &'static str,
        geometry: &Geometry,
        bias: Option<Tensor<f32>>,
        activation: Activation,
    ) -> Result<Self> {
        Ok(Self {
            name,
            sizes: geometry.sizes(1).map_err(at(name))?,
            bias,
            activation,
        })
    }

    /// The sizes for so many images.
    pub(super) fn sizes(&self, batch: usize) -> Sizes {
        Sizes {
            batch,
            ..self.sizes
        }
    }

    /// The sizes of as many images with other axes as so many elements are.
    pub(super) fn over(&self, [y, x]: [Axis; 2], found: usize) -> Result<Sizes> {
        let one = Sizes {
            y: y.window().map_err(at(self.name))?,
            x: x.window().map_err(at(self.name))?,
            ..self.sizes
        };
        let batch = count(found, one.input_len());
        Ok(Sizes { batch, ..one })
    }

    /// As how many images so many elements are convolved.
    pub(super) fn batch(&self, found: usize) -> usize {
        count(found, self.sizes.input_len())
    }

    pub(super) fn bias<'a>(&self, reader: &Reader<'a>) -> Result<Option<&'a [f32]>> {
        match self.bias {
            Some(bias) => Ok(Some(reader.read(Source::Weights(bias))?)),
            None => Ok(None),
        }
    }
}
