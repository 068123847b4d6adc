//! Convolutions of images with the channels last, and their two gradients.

use tfp_kernels::base::shape::Shape;
use tfp_kernels::conv::attributes::{Format, Sliding};
use tfp_kernels::conv::geometry::Conv;

use super::product::{After, Batch, Left, Product, Right};
use crate::request::{Operand, Request};
use crate::vulkan::device::Limits;
use crate::work::Plan;

/// The sizes of a convolution of one group with the channels last.
fn sizes(request: &Request<'_>, input: &Shape, filter: &Shape) -> Option<Conv> {
    let sliding = Sliding::of_convolution(request.attrs).ok()?;
    if sliding.format != Format::Nhwc || !request.is_f32_but_sizes() {
        return None;
    }
    let &[batch, height, width, in_channels] = &input[..] else {
        return None;
    };
    let &[rows, columns, depth, out_channels] = &filter[..] else {
        return None;
    };
    if depth != in_channels {
        return None;
    }
    let [y, x] = sliding.windows([height, width], [rows, columns]).ok()?;
    let conv = Conv {
        batch,
        y,
        x,
        in_channels,
        out_channels,
        groups: 1,
    };
    conv.check().ok()?;
    // The output's pixels are stepped through with signed numbers of 32 bits.
    let largest = conv
        .input_len()
        .max(conv.output_len())
        .max(conv.filter_len());
    (largest < 1 << 30).then_some(conv)
}

fn words(conv: &Conv) -> [usize; 13] {
    [
        conv.y.input,
        conv.x.input,
        conv.in_channels,
        conv.y.output,
        conv.x.output,
        conv.out_channels,
        conv.x.size,
        conv.y.stride,
        conv.x.stride,
        conv.y.dilation,
        conv.x.dilation,
        conv.y.before,
        conv.x.before,
    ]
}

fn output_shape(conv: &Conv) -> [usize; 4] {
    [conv.batch, conv.y.output, conv.x.output, conv.out_channels]
}

fn taps(conv: &Conv) -> usize {
    conv.y.size * conv.x.size
}

/// Whether there is a number per channel; axes of one element may be in front.
fn is_by_channel(bias: &Operand, channels: usize) -> bool {
    let last = bias.shape.last().copied();
    last == Some(channels) && bias.elements() == channels
}

/// `Conv2D`, and the plug-in's with a bias, a residual and an activation.
pub fn forward(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [input, filter] = request.inputs.first_chunk()?;
    let conv = sizes(request, &input.shape, &filter.shape)?;
    let (bias, after) = match request.inputs.get(2) {
        Some(bias) => (Some(bias), After::read(request.attrs)?),
        None => (None, After::default()),
    };
    let extra = request.inputs.get(3);
    let output = request.outputs.first()?;
    if bias.is_some_and(|bias| !is_by_channel(bias, conv.out_channels))
        || extra.is_some_and(|extra| extra.shape != output.shape)
    {
        return None;
    }
    let pixels = conv.batch * conv.y.output * conv.x.output;
    let k = taps(&conv) * conv.in_channels;
    // One tap that moves by one pixel sees the image as a matrix.
    let left = if conv.is_pointwise() {
        Left::Rows
    } else {
        Left::Image
    };
    Product {
        size: [pixels, conv.out_channels, k],
        a: (input, left, conv.in_channels),
        b: (filter, Right::Rows, conv.out_channels),
        c: output,
        bias,
        extra,
        after,
        batch: Batch::ONE,
        convolution: words(&conv),
        vectors: [conv.in_channels % 4 == 0, conv.out_channels % 4 == 0],
    }
    .plan()
}

/// `Conv2DBackpropInput`.
pub fn by_input(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [_, filter, gradient] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let conv = sizes(request, &output.shape, &filter.shape)?;
    if gradient.shape[..] != output_shape(&conv) {
        return None;
    }
    let pixels = conv.batch * conv.y.input * conv.x.input;
    let pointwise = conv.is_pointwise();
    let even = conv.out_channels % 4 == 0;
    Product {
        size: [pixels, conv.in_channels, taps(&conv) * conv.out_channels],
        a: (
            gradient,
            if pointwise {
                Left::Rows
            } else {
                Left::Gradient
            },
            conv.out_channels,
        ),
        b: (filter, Right::Exchanged, 1),
        c: output,
        bias: None,
        extra: None,
        after: After::default(),
        batch: Batch::ONE,
        convolution: words(&conv),
        vectors: [even, even],
    }
    .plan()
}

/// `Conv2DBackpropFilter`.
pub fn by_filter(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [input, _, gradient] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let conv = sizes(request, &input.shape, &output.shape)?;
    if gradient.shape[..] != output_shape(&conv) {
        return None;
    }
    let pixels = conv.batch * conv.y.output * conv.x.output;
    let left = if conv.is_pointwise() {
        Left::Columns
    } else {
        Left::Filter
    };
    Product {
        size: [taps(&conv) * conv.in_channels, conv.out_channels, pixels],
        a: (input, left, conv.in_channels),
        b: (gradient, Right::Rows, conv.out_channels),
        c: output,
        bias: None,
        extra: None,
        after: After::default(),
        batch: Batch::ONE,
        convolution: words(&conv),
        vectors: [conv.in_channels % 4 == 0, conv.out_channels % 4 == 0],
    }
    .plan()
}
