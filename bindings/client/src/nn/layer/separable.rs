//! Convolutions that see each channel alone, and those that mix the channels afterwards.

use tfp_core::Result;

use super::conv::windows;
use super::described::KerasLayer;
use super::{Built, Layer, channels, check_sizes, wrong_input};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::functional::{self as f, ConvOptions, not_causal};
use crate::nn::{Activation, Initializer, Weights};
use crate::ops;

/// A convolution of (steps, channels) that sees each channel alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthwiseConv1d {
    /// The size of the window.
    pub size: i64,
    /// How many outputs each channel has.
    pub multiplier: i64,
    /// Strides, dilations, padding; the first number of each pair counts.
    pub options: ConvOptions,
    /// The function of the output.
    pub activation: Activation,
    /// Whether something is added.
    pub use_bias: bool,
}

impl DepthwiseConv1d {
    /// A layer with Keras' defaults.
    #[must_use]
    pub fn new(size: i64) -> Self {
        Self {
            size,
            multiplier: 1,
            options: ConvOptions::default(),
            activation: Activation::Linear,
            use_bias: true,
        }
    }
}

impl Layer for DepthwiseConv1d {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        KerasLayer::new("DepthwiseConv1D")
            .set("depth_multiplier", self.multiplier)
            .conv(&[self.size], &self.options)
            .dense(self.activation, self.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = "DepthwiseConv1d";
        let inputs = channels(layer, input)?;
        check_sizes(layer, "multiplier", &[self.multiplier])?;
        let filters = inputs.saturating_mul(self.multiplier);
        let mut output = windows_of(layer, input, &[self.size], &self.options)?;
        output.push(filters);
        let weights = weights.layer("depthwise_conv1d");
        let shape = [self.size, inputs, self.multiplier];
        let kernel = weights.trainable("kernel", &shape, Initializer::GLOROT_UNIFORM)?;
        let bias = self
            .use_bias
            .then(|| weights.trainable("bias", &[filters], Initializer::Zeros))
            .transpose()?;
        let (options, activation) = (self.options, self.activation);
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let y = depthwise(cx, x, &kernel.read(cx)?, bias.as_ref(), &options)?;
            activation.apply(cx, &y)
        })
    }
}

/// A convolution of each channel alone, of which another one of single elements makes the output: of
/// (steps, channels) with one size, of images with two.
#[derive(Clone, Debug, PartialEq)]
pub struct SeparableConv {
    /// How many channels the output has.
    pub filters: i64,
    /// The size of the window in each dimension.
    pub size: Vec<i64>,
    /// How many outputs each channel has before they are mixed.
    pub multiplier: i64,
    /// Strides, dilations, padding.
    pub options: ConvOptions,
    /// The function of the output.
    pub activation: Activation,
    /// Whether something is added.
    pub use_bias: bool,
}

impl SeparableConv {
    /// A layer with Keras' defaults.
    #[must_use]
    pub fn new(filters: i64, size: &[i64]) -> Self {
        Self {
            filters,
            size: size.to_vec(),
            multiplier: 1,
            options: ConvOptions::default(),
            activation: Activation::Linear,
            use_bias: true,
        }
    }
}

impl Layer for SeparableConv {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        KerasLayer::new(format!("SeparableConv{}D", self.size.len()))
            .set("filters", self.filters)
            .set("depth_multiplier", self.multiplier)
            .conv(&self.size, &self.options)
            .dense(self.activation, self.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = "SeparableConv";
        let inputs = channels(layer, input)?;
        let dims = self.size.len();
        check_sizes(
            layer,
            "filters and multiplier",
            &[self.filters, self.multiplier],
        )?;
        let mut output = windows_of(layer, input, &self.size, &self.options)?;
        output.push(self.filters);
        let weights = weights.layer(match dims {
            1 => "separable_conv1d",
            _ => "separable_conv2d",
        });
        let inner = inputs.saturating_mul(self.multiplier);
        let shape = [self.size.as_slice(), &[inputs, self.multiplier]].concat();
        let first = Initializer::GLOROT_UNIFORM;
        let depth = weights.trainable("depthwise_kernel", &shape, first)?;
        let shape = [vec![1; dims], vec![inner, self.filters]].concat();
        let point = weights.trainable("pointwise_kernel", &shape, first)?;
        let bias = self
            .use_bias
            .then(|| weights.trainable("bias", &[self.filters], Initializer::Zeros))
            .transpose()?;
        let (options, activation) = (self.options, self.activation);
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let apart = depthwise(cx, x, &depth.read(cx)?, None, &options)?;
            let mixing = ConvOptions::default();
            let y = f::conv(cx, &apart, &point.read(cx)?, bias.as_ref(), &mixing)?;
            activation.apply(cx, &y)
        })
    }
}

/// The output's sizes beside the channels.
fn windows_of(layer: &str, input: &[i64], size: &[i64], options: &ConvOptions) -> Result<Vec<i64>> {
    let dims = size.len();
    if !(1..=2).contains(&dims) || input.len() != dims + 1 {
        let expected = format!("{dims} dimensions and channels");
        return Err(wrong_input(layer, &expected, input));
    }
    not_causal(layer, options.padding)?;
    let pair = |(first, second): (i64, i64)| [first, second];
    let (strides, spread) = (pair(options.strides), pair(options.dilations));
    check_sizes(layer, "size", size)?;
    check_sizes(layer, "strides", &strides[..dims])?;
    check_sizes(layer, "dilations", &spread[..dims])?;
    let output: Vec<i64> = (0..dims)
        .map(|at| {
            windows(
                input[at],
                size[at],
                strides[at],
                spread[at],
                options.padding,
            )
        })
        .collect();
    if output.iter().any(|&size| size == 0 || size < -1) {
        return Err(wrong_input(layer, "at least one window", input));
    }
    Ok(output)
}

/// A depthwise convolution of images, or of steps as images with one row.
fn depthwise(
    cx: &AnyContext,
    x: &AnyValue,
    kernel: &AnyValue,
    bias: Option<&AnyValue>,
    options: &ConvOptions,
) -> Result<AnyValue> {
    if kernel.shape()?.rank() == Some(4) {
        return f::depthwise_conv2d(cx, x, kernel, bias, options);
    }
    // The op takes equal strides only; of one row every stride leaves one.
    let image = ops::expand_dims(cx, x, 1)?;
    let kernel = ops::expand_dims(cx, kernel, 0)?;
    let options = ConvOptions {
        strides: (options.strides.0, options.strides.0),
        dilations: (options.dilations.0, options.dilations.0),
        ..*options
    };
    let y = f::depthwise_conv2d(cx, &image, &kernel, bias, &options)?;
    let squeeze = ops::SqueezeOptions {
        squeeze_dims: Some(&[1]),
    };
    ops::squeeze(cx, y, squeeze)
}
