//! `Conv3D` and its gradients: planes of [`crate::conv`], added up along the depth.
//!
//! NDHWC or NCDHW; grouped if the filter has fewer channels than the input. Each tap of the depth is
//! a convolution of two axes of the planes that it falls on.

use core::ops::Range;

use crate::base::adapt::{check_shape, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Attrs, Call, Inputs, KernelDef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::conv::attributes::Format;
use crate::conv::geometry::{Padding, Window};
use crate::conv::layout::Room;
use crate::conv::{BackwardFilter, BackwardInput, Conv, Filter, Forward};

const ATTRS: &[(&str, AttrKind)] = &[
    ("strides", AttrKind::Ints),
    ("dilations", AttrKind::Ints),
    ("padding", AttrKind::String),
    ("data_format", AttrKind::String),
];

/// `Conv3D` of TensorFlow.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: ATTRS,
    outputs: |inputs, sink| sink(DType::F32, of(inputs)?.output_shape()?),
    scratch: |inputs| of(inputs)?.scratch(Direction::Forward),
    run: |call| {
        let sizes = of(&call.inputs)?;
        let sides = (call.inputs.get(0, "input")?, call.inputs.get(1, "filter")?);
        let (x, filter) = (sides.0.f32("input")?, sides.1.f32("filter")?);
        sizes.run(call, Direction::Forward, x, filter)
    },
    ..KernelDef::of("Conv3D")
};

/// `Conv3DBackpropInputV2` of TensorFlow.
pub static BACKPROP_INPUT: KernelDef = KernelDef {
    variants: variants!(["T": F32, "Tshape": I32 I64] host &["input_sizes"];),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        of_backprop_input(inputs)?;
        sink(DType::F32, inputs.shape_value(0, "input_sizes")?)
    },
    scratch: |inputs| of_backprop_input(inputs)?.scratch(Direction::Input),
    run: |call| {
        let sizes = of_backprop_input(&call.inputs)?;
        let filter = call.inputs.get(1, "filter")?.f32("filter")?;
        let gradient = call.inputs.get(2, "out_backprop")?.f32("out_backprop")?;
        sizes.run(call, Direction::Input, gradient, filter)
    },
    ..KernelDef::of("Conv3DBackpropInputV2")
};

/// `Conv3DBackpropFilterV2` of TensorFlow.
pub static BACKPROP_FILTER: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["filter_sizes"];),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        of_backprop_filter(inputs)?;
        sink(DType::F32, inputs.shape_value(1, "filter_sizes")?)
    },
    scratch: |inputs| of_backprop_filter(inputs)?.scratch(Direction::Filter),
    run: |call| {
        let sizes = of_backprop_filter(&call.inputs)?;
        let x = call.inputs.get(0, "input")?.f32("input")?;
        let gradient = call.inputs.get(2, "out_backprop")?.f32("out_backprop")?;
        sizes.run(call, Direction::Filter, x, gradient)
    },
    ..KernelDef::of("Conv3DBackpropFilterV2")
};

/// What is computed from the other two.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    /// The output.
    Forward,
    /// The gradient of the input.
    Input,
    /// The gradient of the filter.
    Filter,
}

/// The sizes of a convolution of three axes.
struct Sizes {
    format: Format,
    batch: usize,
    /// The depth.
    z: Window,
    /// The convolution of one plane.
    plane: Conv,
}

/// Five values in the order of `format`, as batch, depth, height, width, channels.
fn unpack<T: Copy>(format: Format, [a, b, c, d, e]: [T; 5]) -> [T; 5] {
    match format {
        Format::Nhwc => [a, b, c, d, e],
        Format::Nchw => [a, c, d, e, b],
    }
}

fn dims(argument: &'static str, shape: &Shape) -> Result<[usize; 5]> {
    <[usize; 5]>::try_from(&shape[..]).map_err(|_| Error::Rank {
        argument,
        found: shape.rank(),
        expected: "5",
    })
}

/// The values of a list attribute for the three axes.
fn axes(attrs: &dyn Attrs, name: &'static str, format: Format) -> Result<[usize; 3]> {
    let wrong = Error::Value {
        argument: name,
        expected: "five positive numbers, 1 for batch and channels",
    };
    let values = <[i64; 5]>::try_from(attrs.ints(name)?).map_err(|_| wrong)?;
    let [n, z, y, x, c] = unpack(format, values);
    if n != 1 || c != 1 || z < 1 || y < 1 || x < 1 {
        return Err(wrong);
    }
    let size = |value: i64| usize::try_from(value).map_err(|_| wrong);
    Ok([size(z)?, size(y)?, size(x)?])
}

fn sizes(inputs: &Inputs<'_>, input: &Shape, filter: &Shape) -> Result<Sizes> {
    let attrs = inputs.attrs;
    let format = match attrs.string("data_format")? {
        "NDHWC" => Format::Nhwc,
        "NCDHW" => Format::Nchw,
        _ => {
            return Err(Error::Value {
                argument: "data_format",
                expected: "NDHWC or NCDHW",
            });
        }
    };
    let padding = match attrs.string("padding")? {
        "SAME" => Padding::Same,
        "VALID" => Padding::Valid,
        _ => {
            return Err(Error::Value {
                argument: "padding",
                expected: "SAME or VALID",
            });
        }
    };
    let [batch, depth, height, width, in_channels] = unpack(format, dims("input", input)?);
    let [planes, rows, columns, channels, out_channels] = dims("filter", filter)?;
    if channels == 0 || !in_channels.is_multiple_of(channels) {
        return Err(Error::Incompatible {
            arguments: ("input", "filter"),
            shapes: (*input, *filter),
            rule: "the filter's fourth dimension must divide the input's channels",
        });
    }
    let strides = axes(attrs, "strides", format)?;
    let dilations = axes(attrs, "dilations", format)?;
    let window = |axis: usize, input, size| {
        Window::new(input, size, strides[axis], dilations[axis], padding)
    };
    let sizes = Sizes {
        format,
        batch,
        z: window(0, depth, planes)?,
        plane: Conv {
            batch: 1,
            y: window(1, height, rows)?,
            x: window(2, width, columns)?,
            in_channels,
            out_channels,
            groups: (in_channels / channels).max(1),
        },
    };
    sizes.planes(depth.max(sizes.z.output)).check()?;
    Ok(sizes)
}

fn of(inputs: &Inputs<'_>) -> Result<Sizes> {
    let (input, filter) = (inputs.shape(0, "input")?, inputs.shape(1, "filter")?);
    sizes(inputs, &input, &filter)
}

fn of_backprop_input(inputs: &Inputs<'_>) -> Result<Sizes> {
    let input = inputs.shape_value(0, "input_sizes")?;
    let sizes = sizes(inputs, &input, &inputs.shape(1, "filter")?)?;
    let gradient = inputs.shape(2, "out_backprop")?;
    check_shape("out_backprop", &gradient, &sizes.output_shape()?)?;
    Ok(sizes)
}

fn of_backprop_filter(inputs: &Inputs<'_>) -> Result<Sizes> {
    let filter = inputs.shape_value(1, "filter_sizes")?;
    let sizes = sizes(inputs, &inputs.shape(0, "input")?, &filter)?;
    let gradient = inputs.shape(2, "out_backprop")?;
    check_shape("out_backprop", &gradient, &sizes.output_shape()?)?;
    Ok(sizes)
}

/// Planes that follow each other and meet one tap: of the output, of the input, how many.
type Run = (usize, usize, usize);

impl Sizes {
    fn output_shape(&self) -> Result<Shape> {
        let (z, y, x) = (self.z.output, self.plane.y.output, self.plane.x.output);
        let channels = self.plane.out_channels;
        Shape::new(&match self.format {
            Format::Nhwc => [self.batch, z, y, x, channels],
            Format::Nchw => [self.batch, channels, z, y, x],
        })
    }

    /// The convolution of so many planes.
    fn planes(&self, batch: usize) -> Conv {
        Conv {
            batch,
            ..self.plane
        }
    }

    /// Elements of the input, of the filter and of the output.
    fn lens(&self) -> [usize; 3] {
        [
            self.batch * self.z.input * self.plane.input_len(),
            self.z.size * self.plane.filter_len(),
            self.batch * self.z.output * self.plane.output_len(),
        ]
    }

    /// The taps of the depth that fall on the input at all.
    fn taps(&self) -> Range<usize> {
        let z = &self.z;
        let last = z.output.saturating_sub(1).saturating_mul(z.stride);
        let start = z.before.saturating_sub(last) / z.dilation;
        let end = z.input.saturating_add(z.before).div_ceil(z.dilation);
        start..end.min(z.size)
    }

    /// The planes that a tap of the depth falls on.
    fn runs(&self, tap: usize) -> impl Iterator<Item = Run> + use<> {
        let z = self.z;
        let stops = z.stops(tap);
        // Side by side where the filter takes every plane.
        let each = if z.stride == 1 { stops.len().max(1) } else { 1 };
        stops.clone().step_by(each).map(move |stop| {
            let plane = stop * z.stride + tap * z.dilation - z.before;
            (stop, plane, each.min(stops.len()))
        })
    }

    /// Elements of the result of one run, at most.
    fn part(&self, direction: Direction) -> usize {
        let planes = if self.z.stride == 1 { self.z.output } else { 1 };
        match direction {
            Direction::Forward => planes * self.plane.output_len(),
            Direction::Input => planes * self.plane.input_len(),
            Direction::Filter => self.plane.filter_len(),
        }
    }

    /// Bytes of scratch memory.
    fn scratch(&self, direction: Direction) -> Result<usize> {
        let lens = self.lens();
        if lens.contains(&0) {
            return Ok(0);
        }
        let mut most = 0;
        for tap in self.taps() {
            let Some((_, _, count)) = self.runs(tap).next() else {
                continue;
            };
            let conv = self.planes(count);
            let filter = Filter::Plain(&[]);
            most = most.max(match direction {
                Direction::Forward => Forward::new(conv, filter).scratch_len()?,
                Direction::Input => BackwardInput::new(conv, filter).scratch_len()?,
                Direction::Filter => BackwardFilter::new(conv).scratch_len()?,
            });
        }
        let images = match self.format {
            Format::Nhwc => 0,
            Format::Nchw => lens[0] + lens[2],
        };
        scratch::f32_bytes(images + self.part(direction) + most)
    }

    /// Computes one of input, filter and output from the other two: the images, or what is
    /// convolved with them, in this order.
    fn run(
        &self,
        call: &mut Call<'_>,
        direction: Direction,
        first: &[f32],
        second: &[f32],
    ) -> Result<()> {
        if self.lens().contains(&0) {
            return scratch::first_output(call.outputs)?
                .f32_mut("output")
                .map(|output| output.fill(0.0));
        }
        let (inner, outer) = (
            self.z.input * self.plane.y.input * self.plane.x.input,
            self.z.output * self.plane.y.output * self.plane.x.output,
        );
        let (from, to) = (self.plane.in_channels, self.plane.out_channels);
        let parallel = call.parallel;
        let mut room = Room::new(self.format, scratch::f32s(call.scratch), parallel);
        let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
        match direction {
            Direction::Forward => {
                let x = room.channels_last(first, inner, from)?;
                room.output(output, outer, to, |output, scratch| {
                    self.add_up(direction, [x, second], output, scratch, parallel)
                })
            }
            Direction::Input => {
                let gradient = room.channels_last(first, outer, to)?;
                room.output(output, inner, from, |output, scratch| {
                    self.add_up(direction, [gradient, second], output, scratch, parallel)
                })
            }
            Direction::Filter => {
                let x = room.channels_last(first, inner, from)?;
                let gradient = room.channels_last(second, outer, to)?;
                self.add_up(direction, [x, gradient], output, room.rest(), parallel)
            }
        }
    }

    /// As [`Sizes::run`], with channels last.
    fn add_up(
        &self,
        direction: Direction,
        [first, second]: [&[f32]; 2],
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (inner, outer) = (self.plane.input_len(), self.plane.output_len());
        let filter_len = self.plane.filter_len();
        let found = scratch.len();
        let part = self.part(direction);
        let (part, scratch) = scratch.split_at_mut_checked(part).ok_or(Error::Length {
            argument: "scratch",
            found,
            expected: part,
        })?;
        output.fill(0.0);
        for image in 0..self.batch {
            let (inputs, outputs) = (image * self.z.input, image * self.z.output);
            for tap in self.taps() {
                for (stop, plane, count) in self.runs(tap) {
                    let conv = self.planes(count);
                    let x = (inputs + plane) * inner..(inputs + plane + count) * inner;
                    let y = (outputs + stop) * outer..(outputs + stop + count) * outer;
                    let weights = tap * filter_len..(tap + 1) * filter_len;
                    match direction {
                        Direction::Forward => {
                            let part = &mut part[..y.len()];
                            let filter = Filter::Plain(&second[weights]);
                            Forward::new(conv, filter).run(&first[x], part, scratch, parallel)?;
                            add(part, &mut output[y], parallel);
                        }
                        Direction::Input => {
                            let part = &mut part[..x.len()];
                            let backward =
                                BackwardInput::new(conv, Filter::Plain(&second[weights]));
                            backward.run(&first[y], part, scratch, parallel)?;
                            add(part, &mut output[x], parallel);
                        }
                        Direction::Filter => {
                            let backward = BackwardFilter::new(conv);
                            backward.run(&first[x], &second[y], part, scratch, parallel)?;
                            add(part, &mut output[weights], parallel);
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

/// `sums[i] += x[i]`.
fn add(x: &[f32], sums: &mut [f32], parallel: &dyn Parallel) {
    let chunk = chunk_len(parallel, sums.len(), 16, 1);
    for_each_chunk(parallel, sums, chunk, &|start, sums| {
        for (sum, &x) in sums.iter_mut().zip(&x[start..]) {
            *sum += x;
        }
    });
}

#[cfg(test)]
mod tests;
