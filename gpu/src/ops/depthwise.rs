//! Depthwise convolutions with the channels last, and their gradients.

use tfp_kernels::base::shape::Shape;
use tfp_kernels::conv::attributes::{Format, Sliding};
use tfp_kernels::conv::geometry::Conv;

use super::columns::{Columns, Kind};
use crate::request::Request;
use crate::shader::Shader;
use crate::vulkan::device::Limits;
use crate::work::{Dispatch, Plan, Region, numbers, spread};

/// Groups that keep a large device busy.
const GROUPS: usize = 1024;
/// Pixels of a part at least.
const LEAST: usize = 512;

fn sizes(request: &Request<'_>, input: &Shape, filter: &Shape) -> Option<Conv> {
    let sliding = Sliding::of_convolution(request.attrs).ok()?;
    let &[batch, height, width, in_channels] = &input[..] else {
        return None;
    };
    let &[rows, columns, depth, many] = &filter[..] else {
        return None;
    };
    if sliding.format != Format::Nhwc || depth != in_channels || !request.is_f32_but_sizes() {
        return None;
    }
    let [y, x] = sliding.windows([height, width], [rows, columns]).ok()?;
    let conv = Conv {
        batch,
        y,
        x,
        in_channels,
        out_channels: in_channels.checked_mul(many)?,
        groups: in_channels.max(1),
    };
    conv.check().ok()?;
    // Pixels are stepped through with signed numbers of 32 bits.
    let all = [conv.input_len(), conv.output_len(), conv.filter_len()];
    let small = [y, x].iter().all(|axis| {
        let reach = axis.size.checked_mul(axis.dilation);
        let last = axis.output.checked_mul(axis.stride);
        [reach, last]
            .iter()
            .all(|end| end.is_some_and(|end| end < 1 << 28))
    });
    (small && all.iter().all(|&len| len > 0 && len < 1 << 30)).then_some(conv)
}

fn output_shape(conv: &Conv) -> [usize; 4] {
    [conv.batch, conv.y.output, conv.x.output, conv.out_channels]
}

fn flops(conv: &Conv) -> u64 {
    2 * (conv.output_len() * conv.y.size * conv.x.size) as u64
}

fn dispatch(
    conv: &Conv,
    constants: [usize; 2],
    (count, parts): (usize, [usize; 2]),
    buffers: [Region; 3],
) -> Option<Dispatch> {
    let (y, x) = (&conv.y, &conv.x);
    let words = [
        count,
        conv.batch,
        y.input,
        x.input,
        conv.in_channels,
        y.output,
        x.output,
        conv.out_channels,
        y.size,
        x.size,
        y.stride,
        x.stride,
        y.dilation,
        x.dilation,
        y.before,
        x.before,
        parts[0],
        parts[1],
    ];
    Some(Dispatch {
        shader: Shader::Depthwise,
        constants: numbers(&constants)?,
        words: numbers(&words)?,
        buffers: buffers.into(),
        groups: spread(count.div_ceil(256))?,
    })
}

/// `DepthwiseConv2dNative`.
pub fn forward(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [input, filter] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let conv = sizes(request, &input.shape, &filter.shape)?;
    let buffers = [input.region(), filter.region(), output.region()];
    let dispatch = dispatch(&conv, [0, 1], (output.elements(), [0; 2]), buffers)?;
    Some(Plan::one(dispatch, flops(&conv)))
}

/// `DepthwiseConv2dNativeBackpropInput`.
pub fn by_input(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [_, filter, slope] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let conv = sizes(request, &output.shape, &filter.shape)?;
    if slope.shape[..] != output_shape(&conv) {
        return None;
    }
    let buffers = [slope.region(), filter.region(), output.region()];
    let dispatch = dispatch(&conv, [1, 1], (output.elements(), [0; 2]), buffers)?;
    Some(Plan::one(dispatch, flops(&conv)))
}

/// `DepthwiseConv2dNativeBackpropFilter`: sums of parts of the pixels, and their sum.
pub fn by_filter(request: &Request<'_>, _: &Limits) -> Option<Plan> {
    let [input, _, slope] = request.inputs.first_chunk()?;
    let output = request.outputs.first()?;
    let conv = sizes(request, &input.shape, &output.shape)?;
    if slope.shape[..] != output_shape(&conv) {
        return None;
    }
    let pixels = conv.batch * conv.y.output * conv.x.output;
    let width = conv.out_channels.next_power_of_two().min(64);
    let groups = conv.y.size * conv.x.size * conv.out_channels.div_ceil(width);
    let chunk = pixels.div_ceil((GROUPS / groups).clamp(1, pixels.div_ceil(LEAST)));
    let parts = pixels.div_ceil(chunk);
    let elements = output.elements();
    let mut plan = Plan::default();
    let target = if parts > 1 {
        plan.room(parts * elements * 4)
    } else {
        output.region()
    };
    let buffers = [input.region(), slope.region(), target];
    let count = groups * parts * 256;
    let part = dispatch(&conv, [2, width], (count, [chunk, parts]), buffers)?;
    plan.dispatches.push(part);
    if parts > 1 {
        let sum = Columns::of(Kind::Sum, [1, parts, elements], target, 1.0);
        sum.add_to(&mut plan, output.region())?;
    }
    plan.flops += flops(&conv);
    Some(plan)
}
