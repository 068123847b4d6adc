//! Convolutions of volumes.

use tfp_core::Result;

use super::conv::windows;
use super::described::KerasLayer;
use super::{Built, Layer, channels, check_sizes, wrong_input};
use crate::nn::functional::{self as f, Padding, not_causal};
use crate::nn::{Activation, Initializer, Weights};

/// A convolution in three dimensions (planes, rows, columns, channels).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conv3d {
    /// How many channels the output has.
    pub filters: i64,
    /// The size of the window.
    pub size: [i64; 3],
    /// The step between windows.
    pub strides: [i64; 3],
    /// How borders are treated.
    pub padding: Padding,
    /// The function of the output.
    pub activation: Activation,
    /// Whether something is added.
    pub use_bias: bool,
}

impl Conv3d {
    /// A layer with cubic windows and Keras' defaults.
    #[must_use]
    pub fn new(filters: i64, size: i64) -> Self {
        Self {
            filters,
            size: [size; 3],
            strides: [1; 3],
            padding: Padding::Valid,
            activation: Activation::Linear,
            use_bias: true,
        }
    }
}

impl Layer for Conv3d {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        KerasLayer::new("Conv3D")
            .set("filters", self.filters)
            .windows(&self.size, self.strides.to_vec(), self.padding)
            .set("dilation_rate", vec![1; self.size.len()])
            .dense(self.activation, self.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Self {
            filters,
            size,
            strides,
            padding,
            activation,
            use_bias,
        } = *self;
        let inputs = channels("Conv3d", input)?;
        if input.len() != 4 {
            let expected = "(planes, rows, columns, channels)";
            return Err(wrong_input("Conv3d", expected, input));
        }
        check_sizes("Conv3d", "size", &size)?;
        check_sizes("Conv3d", "strides", &strides)?;
        check_sizes("Conv3d", "filters", &[filters])?;
        let mut output: Vec<i64> = (0..3)
            .map(|axis| windows(input[axis], size[axis], strides[axis], 1, padding))
            .collect();
        if output.iter().any(|&size| size == 0 || size < -1) {
            return Err(wrong_input("Conv3d", "at least one window", input));
        }
        output.push(filters);
        let weights = weights.layer("conv3d");
        let shape = [size[0], size[1], size[2], inputs, filters];
        let kernel = weights.trainable("kernel", &shape, Initializer::GLOROT_UNIFORM)?;
        let bias = use_bias
            .then(|| weights.trainable("bias", &[filters], Initializer::Zeros))
            .transpose()?;
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let y = f::conv3d(cx, x, &kernel.read(cx)?, bias.as_ref(), strides, padding)?;
            activation.apply(cx, &y)
        })
    }
}

/// A convolution of volumes that makes its input larger by the strides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conv3dTranspose {
    /// As for [`Conv3d`].
    pub conv: Conv3d,
}

impl Layer for Conv3dTranspose {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        let conv = &self.conv;
        KerasLayer::new("Conv3DTranspose")
            .set("filters", conv.filters)
            .windows(&conv.size, conv.strides.to_vec(), conv.padding)
            .set("dilation_rate", vec![1; conv.size.len()])
            .dense(conv.activation, conv.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let Conv3d {
            filters,
            size,
            strides,
            padding,
            activation,
            use_bias,
        } = self.conv;
        let layer = "Conv3dTranspose";
        let inputs = channels(layer, input)?;
        if input.len() != 4 {
            let expected = "(planes, rows, columns, channels)";
            return Err(wrong_input(layer, expected, input));
        }
        not_causal(layer, padding)?;
        check_sizes(layer, "size", &size)?;
        check_sizes(layer, "strides", &strides)?;
        check_sizes(layer, "filters", &[filters])?;
        let mut output: Vec<i64> = (0..3)
            .map(|axis| {
                let more = match padding {
                    Padding::Same => 0,
                    Padding::Valid | Padding::Causal => (size[axis] - strides[axis]).max(0),
                };
                match input[axis] {
                    ..0 => -1,
                    input => input.saturating_mul(strides[axis]).saturating_add(more),
                }
            })
            .collect();
        output.push(filters);
        let weights = weights.layer("conv3d_transpose");
        let shape = [size[0], size[1], size[2], filters, inputs];
        let kernel = weights.trainable("kernel", &shape, Initializer::GLOROT_UNIFORM)?;
        let bias = use_bias
            .then(|| weights.trainable("bias", &[filters], Initializer::Zeros))
            .transpose()?;
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let kernel = kernel.read(cx)?;
            let y = f::conv3d_transpose(cx, x, &kernel, bias.as_ref(), strides, padding)?;
            activation.apply(cx, &y)
        })
    }
}
