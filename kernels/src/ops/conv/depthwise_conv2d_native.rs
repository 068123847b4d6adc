//! `DepthwiseConv2dNative`: a convolution of each channel with filters of its own.

use crate::base::adapt::{check_shape, variants};
use crate::base::def::{Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::conv::Conv;
use crate::conv::attributes::{Format, Sliding};
use crate::conv::depthwise::Depthwise;
use crate::conv::layout::Room;
use crate::ops::conv::conv2d::{ATTRS, images_len};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: ATTRS,
    outputs,
    scratch: scratch_bytes,
    run,
    ..KernelDef::of("DepthwiseConv2dNative")
};

/// The sizes of a depthwise convolution from the shapes of input and filter.
///
/// # Errors
/// If they do not fit together or the attributes are not allowed.
pub(crate) fn sizes(inputs: &Inputs<'_>, input: &Shape, filter: &Shape) -> Result<(Format, Conv)> {
    let sliding = Sliding::of_convolution(inputs.attrs)?;
    let [batch, height, width, in_channels] = sliding.format.image("input", input)?;
    let [rows, columns, depth, many] = Format::Nhwc.image("filter", filter)?;
    if depth != in_channels {
        return Err(Error::Incompatible {
            arguments: ("input", "filter"),
            shapes: (*input, *filter),
            rule: "the filter's third dimension must be the input's channels",
        });
    }
    let [y, x] = sliding.windows([height, width], [rows, columns])?;
    let out_channels = in_channels
        .checked_mul(many)
        .ok_or(Error::Overflow { argument: "filter" })?;
    let conv = Conv {
        batch,
        y,
        x,
        in_channels,
        out_channels,
        groups: in_channels.max(1),
    };
    conv.check()?;
    Ok((sliding.format, conv))
}

fn of(inputs: &Inputs<'_>) -> Result<(Format, Conv)> {
    let (input, filter) = (inputs.shape(0, "input")?, inputs.shape(1, "filter")?);
    sizes(inputs, &input, &filter)
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (format, conv) = of(inputs)?;
    let dims = [conv.batch, conv.y.output, conv.x.output, conv.out_channels];
    sink(DType::F32, format.shape(dims)?)
}

fn scratch_bytes(inputs: &Inputs<'_>) -> Result<usize> {
    let (format, conv) = of(inputs)?;
    scratch::f32_bytes(images_len(format, &conv))
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let (format, conv) = of(&call.inputs)?;
    if call.is_empty() {
        return Ok(());
    }
    let input = call.inputs.get(0, "input")?.f32("input")?;
    let filter = call.inputs.get(1, "filter")?.f32("filter")?;
    let parallel = call.parallel;
    let mut room = Room::new(format, scratch::f32s(call.scratch), parallel);
    let input = room.channels_last(input, conv.y.input * conv.x.input, conv.in_channels)?;
    let pixels = conv.y.output * conv.x.output;
    let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
    room.output(output, pixels, conv.out_channels, |output, _| {
        Depthwise::new(conv).run(input, filter, output, parallel)
    })
}

/// The gradient by the input as TensorFlow sees it.
pub static BACKPROP_INPUT: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["input_sizes"];),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        let (format, conv) = of_backprop_input(inputs)?;
        let dims = [conv.batch, conv.y.input, conv.x.input, conv.in_channels];
        sink(DType::F32, format.shape(dims)?)
    },
    scratch: |inputs| {
        let (format, conv) = of_backprop_input(inputs)?;
        scratch::f32_bytes(images_len(format, &conv))
    },
    run: run_backprop_input,
    ..KernelDef::of("DepthwiseConv2dNativeBackpropInput")
};

fn check_gradient(format: Format, conv: &Conv, gradient: &Shape) -> Result<()> {
    let dims = [conv.batch, conv.y.output, conv.x.output, conv.out_channels];
    check_shape("out_backprop", gradient, &format.shape(dims)?)
}

fn of_backprop_input(inputs: &Inputs<'_>) -> Result<(Format, Conv)> {
    let input = inputs.shape_value(0, "input_sizes")?;
    let filter = inputs.shape(1, "filter")?;
    let (format, conv) = sizes(inputs, &input, &filter)?;
    check_gradient(format, &conv, &inputs.shape(2, "out_backprop")?)?;
    Ok((format, conv))
}

fn run_backprop_input(call: &mut Call<'_>) -> Result<()> {
    let (format, conv) = of_backprop_input(&call.inputs)?;
    if call.is_empty() {
        return Ok(());
    }
    let filter = call.inputs.get(1, "filter")?.f32("filter")?;
    let gradient = call.inputs.get(2, "out_backprop")?.f32("out_backprop")?;
    let parallel = call.parallel;
    let mut room = Room::new(format, scratch::f32s(call.scratch), parallel);
    let pixels = (conv.y.output * conv.x.output, conv.y.input * conv.x.input);
    let gradient = room.channels_last(gradient, pixels.0, conv.out_channels)?;
    let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
    room.output(output, pixels.1, conv.in_channels, |output, _| {
        Depthwise::new(conv).backward_input(gradient, filter, output, parallel)
    })
}

/// The gradient by the filter as TensorFlow sees it.
pub static BACKPROP_FILTER: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["filter_sizes"];),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        of_backprop_filter(inputs)?;
        sink(DType::F32, inputs.shape_value(1, "filter_sizes")?)
    },
    scratch: |inputs| {
        let (format, conv) = of_backprop_filter(inputs)?;
        scratch::f32_bytes(images_len(format, &conv))
    },
    run: run_backprop_filter,
    ..KernelDef::of("DepthwiseConv2dNativeBackpropFilter")
};

fn of_backprop_filter(inputs: &Inputs<'_>) -> Result<(Format, Conv)> {
    let input = inputs.shape(0, "input")?;
    let filter = inputs.shape_value(1, "filter_sizes")?;
    let (format, conv) = sizes(inputs, &input, &filter)?;
    check_gradient(format, &conv, &inputs.shape(2, "out_backprop")?)?;
    Ok((format, conv))
}

fn run_backprop_filter(call: &mut Call<'_>) -> Result<()> {
    let (format, conv) = of_backprop_filter(&call.inputs)?;
    if call.is_empty() {
        return Ok(());
    }
    let input = call.inputs.get(0, "input")?.f32("input")?;
    let gradient = call.inputs.get(2, "out_backprop")?.f32("out_backprop")?;
    let parallel = call.parallel;
    let mut room = Room::new(format, scratch::f32s(call.scratch), parallel);
    let input = room.channels_last(input, conv.y.input * conv.x.input, conv.in_channels)?;
    let pixels = conv.y.output * conv.x.output;
    let gradient = room.channels_last(gradient, pixels, conv.out_channels)?;
    let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
    Depthwise::new(conv).backward_filter(input, gradient, output, parallel)
}
