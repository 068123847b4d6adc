//! `Conv2DBackpropFilter`: the gradient of `Conv2D` by its filter.

use crate::base::adapt::variants;
use crate::base::def::{Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::scratch;
use crate::conv::attributes::Format;
use crate::conv::layout::Room;
use crate::conv::{BackwardFilter, Conv};
use crate::ops::conv::conv2d::{ATTRS, check_gradient, images_len, sizes};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["filter_sizes"];),
    attrs: ATTRS,
    outputs,
    scratch: scratch_bytes,
    run,
    ..KernelDef::of("Conv2DBackpropFilter")
};

fn of(inputs: &Inputs<'_>) -> Result<(Format, Conv)> {
    let input = inputs.shape(0, "input")?;
    let filter = inputs.shape_value(1, "filter_sizes")?;
    let (format, conv) = sizes(inputs, &input, &filter)?;
    check_gradient(format, &conv, &inputs.shape(2, "out_backprop")?)?;
    Ok((format, conv))
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    of(inputs)?;
    sink(DType::F32, inputs.shape_value(1, "filter_sizes")?)
}

fn scratch_bytes(inputs: &Inputs<'_>) -> Result<usize> {
    let (format, conv) = of(inputs)?;
    let points = BackwardFilter::new(conv).scratch_len()?;
    scratch::f32_bytes(images_len(format, &conv) + points)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let (format, conv) = of(&call.inputs)?;
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
    BackwardFilter::new(conv).run(input, gradient, output, room.rest(), parallel)
}
