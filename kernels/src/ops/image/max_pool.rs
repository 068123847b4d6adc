//! `MaxPool` and `AvgPool`, and their gradients.

use crate::base::adapt::{check_shape, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink, Variants};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::conv::attributes::{Format, Sliding, spatial};
use crate::conv::geometry::Padding;
use crate::conv::layout::Room;
use crate::ops::image::pooling::{Kind, Pooling};

const ATTRS: &[(&str, AttrKind)] = &[
    ("ksize", AttrKind::Ints),
    ("strides", AttrKind::Ints),
    ("padding", AttrKind::String),
    ("data_format", AttrKind::String),
];

const MAX_ATTRS: &[(&str, AttrKind)] = &[
    ("ksize", AttrKind::Ints),
    ("strides", AttrKind::Ints),
    ("padding", AttrKind::String),
    ("explicit_paddings", AttrKind::Ints),
    ("data_format", AttrKind::String),
];

const F32: &[Variants] = variants!(["T": F32];);

/// `MaxPool` as TensorFlow sees it.
pub static MAX_POOL: KernelDef = KernelDef {
    variants: F32,
    attrs: MAX_ATTRS,
    outputs: |inputs, sink| forward_outputs(inputs, Kind::Max, sink),
    scratch: |inputs| forward_scratch(inputs, Kind::Max),
    run: |call| forward_run(call, Kind::Max),
    ..KernelDef::of("MaxPool")
};

/// `AvgPool` as TensorFlow sees it.
pub static AVG_POOL: KernelDef = KernelDef {
    variants: F32,
    attrs: ATTRS,
    outputs: |inputs, sink| forward_outputs(inputs, Kind::Average, sink),
    scratch: |inputs| forward_scratch(inputs, Kind::Average),
    run: |call| forward_run(call, Kind::Average),
    ..KernelDef::of("AvgPool")
};

/// `MaxPoolGrad` as TensorFlow sees it.
pub static MAX_POOL_GRAD: KernelDef = KernelDef {
    variants: F32,
    attrs: MAX_ATTRS,
    outputs: |inputs, sink| {
        of_max_grad(inputs)?;
        sink(DType::F32, inputs.shape(0, "orig_input")?)
    },
    scratch: |inputs| {
        let (format, pooling) = of_max_grad(inputs)?;
        scratch_bytes(format, 2 * pooling.input_len() + pooling.output_len())
    },
    run: run_max_grad,
    ..KernelDef::of("MaxPoolGrad")
};

/// `AvgPoolGrad` as TensorFlow sees it.
pub static AVG_POOL_GRAD: KernelDef = KernelDef {
    variants: variants!(["T": F32] host &["orig_input_shape"];),
    attrs: ATTRS,
    outputs: |inputs, sink| {
        of_average_grad(inputs)?;
        sink(DType::F32, inputs.shape_value(0, "orig_input_shape")?)
    },
    scratch: |inputs| {
        let (format, pooling) = of_average_grad(inputs)?;
        scratch_bytes(format, pooling.input_len() + pooling.output_len())
    },
    run: run_average_grad,
    ..KernelDef::of("AvgPoolGrad")
};

/// The sizes of a pooling of an input of this shape.
fn sizes(inputs: &Inputs<'_>, kind: Kind, input: &Shape) -> Result<(Format, Pooling)> {
    let sliding = Sliding::of_pooling(inputs.attrs, kind == Kind::Max)?;
    let size = spatial(inputs.attrs, "ksize", sliding.format)?;
    let [batch, height, width, channels] = sliding.format.image("input", input)?;
    for (padding, size) in sliding.padding.iter().zip(size) {
        if matches!(*padding, Padding::Explicit(before, after) if before.max(after) >= size) {
            return Err(Error::Value {
                argument: "explicit_paddings",
                expected: "less than a window's size on each side",
            });
        }
    }
    let [y, x] = sliding.windows([height, width], size)?;
    Ok((sliding.format, Pooling::new(kind, batch, channels, y, x)?))
}

fn output_shape(format: Format, pooling: &Pooling) -> Result<Shape> {
    let (y, x) = (pooling.y.output, pooling.x.output);
    format.shape([pooling.batch, y, x, pooling.channels])
}

fn scratch_bytes(format: Format, elements: usize) -> Result<usize> {
    match format {
        Format::Nhwc => Ok(0),
        Format::Nchw => scratch::f32_bytes(elements),
    }
}

fn forward_outputs(inputs: &Inputs<'_>, kind: Kind, sink: &mut OutputSink<'_>) -> Result<()> {
    let (format, pooling) = sizes(inputs, kind, &inputs.shape(0, "input")?)?;
    sink(DType::F32, output_shape(format, &pooling)?)
}

fn forward_scratch(inputs: &Inputs<'_>, kind: Kind) -> Result<usize> {
    let (format, pooling) = sizes(inputs, kind, &inputs.shape(0, "input")?)?;
    scratch_bytes(format, pooling.input_len() + pooling.output_len())
}

fn forward_run(call: &mut Call<'_>, kind: Kind) -> Result<()> {
    let (format, pooling) = sizes(&call.inputs, kind, &call.inputs.shape(0, "input")?)?;
    let input = call.inputs.get(0, "input")?.f32("input")?;
    let parallel = call.parallel;
    let mut room = Room::new(format, scratch::f32s(call.scratch), parallel);
    let pixels = pooling.y.input * pooling.x.input;
    let input = room.channels_last(input, pixels, pooling.channels)?;
    let pixels = pooling.y.output * pooling.x.output;
    let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
    room.output(output, pixels, pooling.channels, |output, _| {
        pooling.run(input, output, parallel)
    })
}

fn of_max_grad(inputs: &Inputs<'_>) -> Result<(Format, Pooling)> {
    let (format, pooling) = sizes(inputs, Kind::Max, &inputs.shape(0, "orig_input")?)?;
    let expected = output_shape(format, &pooling)?;
    check_shape("orig_output", &inputs.shape(1, "orig_output")?, &expected)?;
    check_shape("grad", &inputs.shape(2, "grad")?, &expected)?;
    Ok((format, pooling))
}

fn run_max_grad(call: &mut Call<'_>) -> Result<()> {
    let (format, pooling) = of_max_grad(&call.inputs)?;
    let input = call.inputs.get(0, "orig_input")?.f32("orig_input")?;
    backward(call, format, &pooling, input, 2)
}

fn of_average_grad(inputs: &Inputs<'_>) -> Result<(Format, Pooling)> {
    let input = inputs.shape_value(0, "orig_input_shape")?;
    let (format, pooling) = sizes(inputs, Kind::Average, &input)?;
    let expected = output_shape(format, &pooling)?;
    check_shape("grad", &inputs.shape(1, "grad")?, &expected)?;
    Ok((format, pooling))
}

fn run_average_grad(call: &mut Call<'_>) -> Result<()> {
    let (format, pooling) = of_average_grad(&call.inputs)?;
    backward(call, format, &pooling, &[], 1)
}

fn backward<'a>(
    call: &mut Call<'a>,
    format: Format,
    pooling: &Pooling,
    input: &'a [f32],
    gradient: usize,
) -> Result<()> {
    let gradient = call.inputs.get(gradient, "grad")?.f32("grad")?;
    let parallel = call.parallel;
    let mut room = Room::new(format, scratch::f32s(call.scratch), parallel);
    let pixels = (
        pooling.y.input * pooling.x.input,
        pooling.y.output * pooling.x.output,
    );
    let input = match pooling.kind {
        Kind::Max => room.channels_last(input, pixels.0, pooling.channels)?,
        Kind::Average => input,
    };
    let gradient = room.channels_last(gradient, pixels.1, pooling.channels)?;
    let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
    room.output(output, pixels.0, pooling.channels, |output, _| {
        pooling.backward(input, gradient, output, parallel)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Data, Value, call, call_with, numbers};

    fn attrs(format: &'static str) -> Vec<(&'static str, Value)> {
        let list = |x: i64| match format {
            "NHWC" => Value::Ints(vec![1, x, x, 1]),
            _ => Value::Ints(vec![1, 1, x, x]),
        };
        vec![
            ("ksize", list(3)),
            ("strides", list(2)),
            ("padding", Value::Text("SAME")),
            ("explicit_paddings", Value::Ints(vec![])),
            ("data_format", Value::Text(format)),
        ]
    }

    /// `[2, 7, 5, 3]` as channels first.
    fn swapped(data: &[f32], pixels: usize, channels: usize) -> Vec<f32> {
        let mut out = vec![0.0; data.len()];
        for (i, &x) in data.iter().enumerate() {
            let (b, p, c) = (i / (pixels * channels), i / channels % pixels, i % channels);
            out[(b * channels + c) * pixels + p] = x;
        }
        out
    }

    #[test]
    fn both_orders_of_axes_agree() {
        let input = numbers(2 * 35 * 3, 1);
        let slope = numbers(2 * 12 * 3, 2);
        let last =
            |dims: [usize; 3], data: &[f32]| (vec![2, dims[0], dims[1], dims[2]], data.to_vec());
        let first = |dims: [usize; 3], data: &[f32]| {
            let data = swapped(data, dims[0] * dims[1], dims[2]);
            (vec![2, dims[2], dims[0], dims[1]], data)
        };
        for def in [&MAX_POOL, &AVG_POOL] {
            let a = call(def, &attrs("NHWC"), &[last([7, 5, 3], &input)])
                .unwrap()
                .remove(0);
            let b = call(def, &attrs("NCHW"), &[first([7, 5, 3], &input)])
                .unwrap()
                .remove(0);
            assert_eq!((&a.0[..], &b.0[..]), (&[2, 4, 3, 3][..], &[2, 3, 4, 3][..]));
            assert_eq!(swapped(&a.1, 12, 3), b.1);
            let (backward_last, backward_first) = if def.op == "MaxPool" {
                let inputs = [last([7, 5, 3], &input), a.clone(), last([4, 3, 3], &slope)];
                let one = call(&MAX_POOL_GRAD, &attrs("NHWC"), &inputs);
                let inputs = [
                    first([7, 5, 3], &input),
                    b.clone(),
                    first([4, 3, 3], &slope),
                ];
                (one, call(&MAX_POOL_GRAD, &attrs("NCHW"), &inputs))
            } else {
                let run = |format, dims: [i32; 4], slope: (Vec<usize>, Vec<f32>)| {
                    let shape = (vec![4], Data::I32(dims.to_vec()));
                    let inputs = [shape, (slope.0, Data::F32(slope.1))];
                    call_with(&AVG_POOL_GRAD, &attrs(format), &inputs)
                };
                let one = run("NHWC", [2, 7, 5, 3], last([4, 3, 3], &slope));
                (one, run("NCHW", [2, 3, 7, 5], first([4, 3, 3], &slope)))
            };
            let (a, b) = (
                backward_last.unwrap().remove(0),
                backward_first.unwrap().remove(0),
            );
            assert_eq!(swapped(&a.1, 35, 3), b.1);
            // All of the gradient arrives somewhere.
            let (sum, expected): (f32, f32) = (a.1.iter().sum(), slope.iter().sum());
            assert!(
                (sum - expected).abs() < 1e-3,
                "{}: {sum} {expected}",
                def.op
            );
        }
    }

    #[test]
    fn shapes_must_fit() {
        let input = (vec![1, 4, 4, 2], numbers(32, 1));
        let wrong = (vec![1, 2, 3, 2], numbers(12, 1));
        let right = (vec![1, 2, 2, 2], numbers(8, 1));
        let grad = |a, b| call(&MAX_POOL_GRAD, &attrs("NHWC"), &[input.clone(), a, b]);
        assert!(grad(right.clone(), right.clone()).is_ok());
        assert!(grad(wrong.clone(), right.clone()).is_err());
        assert!(grad(right, wrong).is_err());
    }
}
