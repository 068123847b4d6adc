//! `Conv2DBackpropInput`: the gradient of `Conv2D` by its input, which is also the transposed
//! convolution.

use crate::base::adapt::variants;
use crate::base::def::{Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::scratch;
use crate::conv::attributes::Format;
use crate::conv::layout::Room;
use crate::conv::{BackwardInput, Conv, Filter};
use crate::ops::conv::conv2d::{ATTRS, check_gradient, images_len, sizes};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["input_sizes"];),
    attrs: ATTRS,
    outputs,
    scratch: scratch_bytes,
    run,
    ..KernelDef::of("Conv2DBackpropInput")
};

fn of(inputs: &Inputs<'_>) -> Result<(Format, Conv)> {
    let mut input = inputs.shape_value(0, "input_sizes")?;
    let filter = inputs.shape(1, "filter")?;
    let gradient = inputs.shape(2, "out_backprop")?;
    if input.rank() == 2 {
        // Height and width alone are allowed: the other two follow.
        let format = Format::read(inputs.attrs)?;
        let [batch, ..] = format.image("out_backprop", &gradient)?;
        let [_, _, depth, _] = Format::Nhwc.image("filter", &filter)?;
        input = format.shape([batch, input[0], input[1], depth])?;
    }
    let (format, conv) = sizes(inputs, &input, &filter)?;
    check_gradient(format, &conv, &gradient)?;
    Ok((format, conv))
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let (format, conv) = of(inputs)?;
    let dims = [conv.batch, conv.y.input, conv.x.input, conv.in_channels];
    sink(DType::F32, format.shape(dims)?)
}

fn scratch_bytes(inputs: &Inputs<'_>) -> Result<usize> {
    let (format, conv) = of(inputs)?;
    let packed = BackwardInput::new(conv, Filter::Plain(&[])).scratch_len()?;
    scratch::f32_bytes(packed + images_len(format, &conv))
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let (format, conv) = of(&call.inputs)?;
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
    room.output(output, pixels.1, conv.in_channels, |output, scratch| {
        let backward = BackwardInput::new(conv, Filter::Plain(filter));
        backward.run(gradient, output, scratch, parallel)
    })
}
