//! Convolutions.

use tfp_core::{Error, Result};

use super::described::{KerasLayer, dims_of, initializer, sized};
use super::{Built, Layer, channels, check_sizes, wrong_input};
use crate::nn::functional::{self as f, ConvOptions, Padding, not_causal, transposable};
use crate::nn::{Activation, Initializer, Weights};

/// A convolution in one dimension (steps, channels) or two (rows, columns, channels).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Conv {
    /// How many channels the output has.
    pub filters: i64,
    /// The size of the window; one dimension uses the first number.
    pub size: (i64, i64),
    /// Strides, dilations, padding, groups.
    pub options: ConvOptions,
    /// The function of the output.
    pub activation: Activation,
    /// Whether something is added.
    pub use_bias: bool,
    /// What the kernel is at first.
    pub kernel: Initializer,
}

impl Conv {
    /// A layer with square windows and Keras' defaults.
    #[must_use]
    pub fn new(filters: i64, size: i64) -> Self {
        Self {
            filters,
            size: (size, size),
            options: ConvOptions::default(),
            activation: Activation::Linear,
            use_bias: true,
            kernel: Initializer::GLOROT_UNIFORM,
        }
    }

    /// Sets the function of the output.
    #[must_use]
    pub fn activation(self, activation: Activation) -> Self {
        Self { activation, ..self }
    }

    /// Sets how borders are treated.
    #[must_use]
    pub fn padding(mut self, padding: Padding) -> Self {
        self.options.padding = padding;
        self
    }

    /// Sets the step between windows.
    #[must_use]
    pub fn strides(mut self, strides: i64) -> Self {
        self.options.strides = (strides, strides);
        self
    }
}

/// The output's size along one dimension; an unknown one stays so.
pub(super) fn windows(input: i64, size: i64, stride: i64, dilation: i64, padding: Padding) -> i64 {
    if input < 0 {
        return -1;
    }
    let reach = (size - 1) * dilation + 1;
    match padding {
        Padding::Valid => {
            (input.saturating_sub(reach).saturating_add(stride) / stride.max(1)).max(0)
        }
        Padding::Same | Padding::Causal => input.saturating_add(stride - 1) / stride.max(1),
    }
}

/// Checks what layers say per dimension: one of (steps, channels), two of an image.
pub(super) fn check_pairs(layer: &str, input: &[i64], pairs: &[(&str, (i64, i64))]) -> Result<()> {
    let dimensions = input.len().saturating_sub(1).min(2);
    pairs.iter().try_for_each(|&(what, (first, second))| {
        check_sizes(layer, what, &[first, second][..dimensions])
    })
}

fn output_shape(
    layer: &str,
    input: &[i64],
    size: (i64, i64),
    options: &ConvOptions,
    filters: i64,
) -> Result<Vec<i64>> {
    let (s, d) = (options.strides, options.dilations);
    check_pairs(
        layer,
        input,
        &[("size", size), ("strides", s), ("dilations", d)],
    )?;
    check_sizes(layer, "filters", &[filters])?;
    let one =
        |input, size, stride, dilation| windows(input, size, stride, dilation, options.padding);
    let output = match *input {
        [steps, _] => vec![one(steps, size.0, s.0, d.0), filters],
        [rows, columns, _] => vec![
            one(rows, size.0, s.0, d.0),
            one(columns, size.1, s.1, d.1),
            filters,
        ],
        _ => return Err(wrong_input(layer, "(steps, channels) or an image", input)),
    };
    if output.iter().any(|&size| size == 0 || size < -1) {
        return Err(wrong_input(layer, "at least one window", input));
    }
    Ok(output)
}

impl Layer for Conv {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let dims = dims_of(inputs);
        KerasLayer::new(format!("Conv{dims}D"))
            .set("filters", self.filters)
            .set("groups", self.options.groups)
            .set("kernel_initializer", initializer(self.kernel))
            .conv(&sized(self.size, dims), &self.options)
            .dense(self.activation, self.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let (channels, groups) = (channels("Conv", input)?, self.options.groups);
        if groups < 1 || channels % groups != 0 || self.filters % groups != 0 {
            return Err(Error::argument(format!(
                "Conv: {groups} groups don't divide {channels} channels and {} filters",
                self.filters
            )));
        }
        if input.len() == 3 {
            not_causal("Conv", self.options.padding)?;
        }
        let inputs = channels / groups;
        let output = output_shape("Conv", input, self.size, &self.options, self.filters)?;
        let is_image = input.len() == 3;
        let weights = weights.layer(if is_image { "conv2d" } else { "conv1d" });
        let mut shape = vec![self.size.0];
        if is_image {
            shape.push(self.size.1);
        }
        shape.extend([inputs, self.filters]);
        let kernel = weights.trainable("kernel", &shape, self.kernel)?;
        let bias = self
            .use_bias
            .then(|| weights.trainable("bias", &[self.filters], Initializer::Zeros))
            .transpose()?;
        let (options, activation) = (self.options, self.activation);
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let y = f::conv(cx, x, &kernel.read(cx)?, bias.as_ref(), &options)?;
            activation.apply(cx, &y)
        })
    }
}

/// A convolution that makes its input larger by the strides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConvTranspose {
    /// As for [`Conv`].
    pub conv: Conv,
}

impl ConvTranspose {
    /// A layer with square windows and Keras' defaults.
    #[must_use]
    pub fn new(filters: i64, size: i64) -> Self {
        Self {
            conv: Conv::new(filters, size),
        }
    }
}

impl Layer for ConvTranspose {
    fn keras(&self, inputs: &[&[i64]]) -> Result<KerasLayer> {
        let (dims, conv) = (dims_of(inputs), &self.conv);
        KerasLayer::new(format!("Conv{dims}DTranspose"))
            .set("filters", conv.filters)
            .set("kernel_initializer", initializer(conv.kernel))
            .conv(&sized(conv.size, dims), &conv.options)
            .dense(conv.activation, conv.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let conv = self.conv;
        let inputs = channels("ConvTranspose", input)?;
        let is_image = match input.len() {
            2 => false,
            3 => true,
            _ => {
                let expected = "(steps, channels) or an image";
                return Err(wrong_input("ConvTranspose", expected, input));
            }
        };
        let layer = "ConvTranspose";
        transposable(layer, &conv.options)?;
        let (size, strides, spread) = (conv.size, conv.options.strides, conv.options.dilations);
        check_pairs(
            layer,
            input,
            &[("size", size), ("strides", strides), ("dilations", spread)],
        )?;
        check_sizes(layer, "filters", &[conv.filters])?;
        let weights = weights.layer(if is_image {
            "conv2d_transpose"
        } else {
            "conv1d_transpose"
        });
        let sizes = [conv.size.0, conv.size.1];
        let sizes = &sizes[..input.len() - 1];
        let steps = [(strides.0, spread.0), (strides.1, spread.1)];
        let mut shape = sizes.to_vec();
        shape.extend([conv.filters, inputs]);
        let kernel = weights.trainable("kernel", &shape, conv.kernel)?;
        let bias = conv
            .use_bias
            .then(|| weights.trainable("bias", &[conv.filters], Initializer::Zeros))
            .transpose()?;
        let mut output: Vec<i64> = input
            .iter()
            .zip(sizes)
            .zip(steps)
            .map(|((&input, &size), (stride, dilation))| {
                let reach = match conv.options.padding {
                    Padding::Same => 0,
                    Padding::Valid | Padding::Causal => (size - 1).saturating_mul(dilation) + 1,
                };
                let more = (reach - stride).max(0);
                match input < 0 {
                    true => -1,
                    false => input.saturating_mul(stride).saturating_add(more),
                }
            })
            .collect();
        output.push(conv.filters);
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let kernel = kernel.read(cx)?;
            let y = f::conv_transpose(cx, x, &kernel, bias.as_ref(), &conv.options)?;
            conv.activation.apply(cx, &y)
        })
    }
}

/// A convolution of images that sees each channel alone.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DepthwiseConv2d {
    /// The size of the window.
    pub size: (i64, i64),
    /// How many outputs each channel has.
    pub multiplier: i64,
    /// Strides, dilations, padding.
    pub options: ConvOptions,
    /// The function of the output.
    pub activation: Activation,
    /// Whether something is added.
    pub use_bias: bool,
}

impl DepthwiseConv2d {
    /// A layer with square windows and Keras' defaults.
    #[must_use]
    pub fn new(size: i64) -> Self {
        Self {
            size: (size, size),
            multiplier: 1,
            options: ConvOptions::default(),
            activation: Activation::Linear,
            use_bias: true,
        }
    }
}

impl Layer for DepthwiseConv2d {
    fn keras(&self, _: &[&[i64]]) -> Result<KerasLayer> {
        KerasLayer::new("DepthwiseConv2D")
            .set("depth_multiplier", self.multiplier)
            .conv(&sized(self.size, 2), &self.options)
            .dense(self.activation, self.use_bias)
    }

    fn build(&self, weights: &Weights, input: &[i64]) -> Result<Built> {
        let layer = "DepthwiseConv2d";
        let inputs = channels(layer, input)?;
        if input.len() != 3 {
            return Err(wrong_input(layer, "an image", input));
        }
        not_causal(layer, self.options.padding)?;
        check_sizes(layer, "multiplier", &[self.multiplier])?;
        let filters = inputs.saturating_mul(self.multiplier);
        let output = output_shape(layer, input, self.size, &self.options, filters)?;
        let weights = weights.layer("depthwise_conv2d");
        let shape = [self.size.0, self.size.1, inputs, self.multiplier];
        let kernel = weights.trainable("kernel", &shape, Initializer::GLOROT_UNIFORM)?;
        let bias = self
            .use_bias
            .then(|| weights.trainable("bias", &[filters], Initializer::Zeros))
            .transpose()?;
        let (options, activation) = (self.options, self.activation);
        Built::new(output, move |pass, x| {
            let cx = pass.context();
            let bias = bias.as_ref().map(|bias| bias.read(cx)).transpose()?;
            let y = f::depthwise_conv2d(cx, x, &kernel.read(cx)?, bias.as_ref(), &options)?;
            activation.apply(cx, &y)
        })
    }
}
