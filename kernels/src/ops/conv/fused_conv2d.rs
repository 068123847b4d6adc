//! `TfpFusedConv2D`, an op that the plug-in defines: `activation(conv(input, filter) + bias)`, or
//! `activation(conv(input, filter) + bias + residual)`.
//!
//! Of 16-bit floats, filter and bias may be `f32`: weights that a batch norm is folded into.

use crate::base::adapt::{check_shape, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{AttrKind, Call, KernelDef, Variants};
use crate::base::error::{Error, Result};
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::conv::attributes::Format;
use crate::conv::layout::Room;
use crate::conv::{Filter, Forward};
use crate::ops::conv::conv2d::{self, sizes};
use crate::ops::matrix::fused_mat_mul::After;

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    op: "TfpFusedConv2D",
    variants: variants!(["T": F32, "U": F32];),
    attrs: &[
        ("strides", AttrKind::Ints),
        ("dilations", AttrKind::Ints),
        ("padding", AttrKind::String),
        ("explicit_paddings", AttrKind::Ints),
        ("data_format", AttrKind::String),
        ("activation", AttrKind::String),
        ("alpha", AttrKind::Float),
    ],
    forward: &[(3, 0)],
    outputs: |inputs, sink| (conv2d::DEF.outputs)(inputs, sink),
    scratch: |inputs| (conv2d::DEF.scratch)(inputs),
    run,
};

/// The types of 16-bit floats.
pub const NARROW: &[Variants] = variants!(
    ["T": F16 BF16, "U": F32];
    ["T": F16, "U": F16];
    ["T": BF16, "U": BF16];
);

/// A number per channel; axes of one element may be in front, as those of a batch norm's shift.
fn check_bias(shape: &Shape) -> Result<()> {
    match shape.split_last() {
        Some((_, before)) if before.iter().all(|&size| size == 1) => Ok(()),
        _ => Err(Error::Rank {
            argument: "bias",
            found: shape.rank(),
            expected: "1, or axes of one element before the last",
        }),
    }
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let (input, filter) = (call.inputs.get(0, "input")?, call.inputs.get(1, "filter")?);
    let bias = call.inputs.get(2, "bias")?;
    check_bias(bias.shape())?;
    let bias = bias.f32("bias")?;
    let (format, conv) = sizes(&call.inputs, input.shape(), filter.shape())?;
    let after = After::read(call.inputs.attrs)?;
    let residual = match call.inputs.tensors.get(3) {
        None => None,
        Some(tensor) if tensor.is_forwarded() => Some(&[][..]),
        Some(tensor) => Some(tensor.f32("residual")?),
    };
    if residual.is_some() && format != Format::Nhwc {
        return Err(Error::Value {
            argument: "data_format",
            expected: "NHWC where something is added",
        });
    }
    let forward = Forward {
        bias: Some(bias),
        accumulate: residual.is_some(),
        activation: after.activation,
        ..Forward::new(conv, Filter::Plain(filter.f32("filter")?))
    };
    let parallel = call.parallel;
    let mut room = Room::new(format, scratch::f32s(call.scratch), parallel);
    let pixels = conv.y.input * conv.x.input;
    let input = room.channels_last(input.f32("input")?, pixels, conv.in_channels)?;
    let pixels = conv.y.output * conv.x.output;
    let output = scratch::first_output(call.outputs)?;
    if let Some(residual) = call.inputs.tensors.get(3) {
        check_shape("residual", residual.shape(), output.shape())?;
    }
    let output = output.f32_mut("output")?;
    if let Some(residual) = residual.filter(|_| !call.inputs.tensors[3].is_forwarded()) {
        let chunk = chunk_len(parallel, output.len(), 16, 1);
        for_each_chunk(parallel, output, chunk, &|start, output| {
            output.copy_from_slice(&residual[start..start + output.len()]);
        });
    }
    room.output(output, pixels, conv.out_channels, |output, scratch| {
        forward.run(input, output, scratch, parallel)?;
        after.finish(output, parallel);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Value, call, numbers};
    use crate::trial::{Attr, Tensor, run};

    #[test]
    fn equals_the_convolution_then_bias_and_activation() {
        for (format, dims) in [("NHWC", [2, 6, 7, 3]), ("NCHW", [2, 3, 6, 7])] {
            let mut attrs = vec![
                ("strides", Value::Ints(vec![1, 1, 1, 1])),
                ("dilations", Value::Ints(vec![1, 1, 1, 1])),
                ("padding", Value::Text("SAME")),
                ("explicit_paddings", Value::Ints(vec![])),
                ("data_format", Value::Text(format)),
            ];
            let image = (dims.to_vec(), numbers(2 * 6 * 7 * 3, 1));
            let filter = (vec![3, 3, 3, 5], numbers(3 * 3 * 3 * 5, 2));
            let bias = numbers(5, 3);
            let plain = [image.clone(), filter.clone()];
            let plain = call(&conv2d::DEF, &attrs, &plain).unwrap();
            let inputs = [image, filter, (vec![5], bias.clone())];
            attrs.push(("alpha", Value::Float(0.25)));
            for (name, slope) in [("LeakyRelu", 0.25), ("Relu", 0.0)] {
                attrs.retain(|(attr, _)| *attr != "activation");
                attrs.push(("activation", Value::Text(name)));
                let found = call(&DEF, &attrs, &inputs).unwrap();
                assert_eq!(found[0].0, plain[0].0);
                for (i, (&found, &plain)) in found[0].1.iter().zip(&plain[0].1).enumerate() {
                    let channel = if format == "NHWC" { i % 5 } else { i / 42 % 5 };
                    let sum = plain + bias[channel];
                    assert!((found - sum.max(slope * sum)).abs() < 1e-6);
                }
            }
            let (image, filter) = (&inputs[0], &inputs[1]);
            let with = |dims: Vec<usize>| {
                let bias = numbers(dims.iter().product(), 3);
                call(&DEF, &attrs, &[image.clone(), filter.clone(), (dims, bias)])
            };
            assert_eq!(with(vec![1, 1, 1, 5]).unwrap(), with(vec![5]).unwrap());
            for wrong in [
                vec![4],
                vec![1, 1, 1, 4],
                vec![5, 1],
                vec![1, 5, 1, 1],
                vec![],
            ] {
                assert!(with(wrong).is_err());
            }
        }
    }

    #[test]
    fn what_is_added_may_be_in_the_output() {
        let mut attrs = vec![
            ("strides", Attr::Ints(&[1, 1, 1, 1])),
            ("dilations", Attr::Ints(&[1, 1, 1, 1])),
            ("padding", Attr::Text("SAME")),
            ("explicit_paddings", Attr::Ints(&[])),
            ("data_format", Attr::Text("NHWC")),
            ("activation", Attr::Text("")),
            ("alpha", Attr::Float(0.0)),
        ];
        for (batch, side, size) in [(2, 7, 3), (1, 1, 1), (3, 20, 1)] {
            let pixels = batch * side * side;
            let image = Tensor::f32(&[batch, side, side, 3], &numbers(pixels * 3, 1));
            let filter = Tensor::f32(&[size, size, 3, 17], &numbers(size * size * 3 * 17, 2));
            let bias = Tensor::f32(&[17], &numbers(17, 3));
            let residual = Tensor::f32(&[batch, side, side, 17], &numbers(pixels * 17, 4));
            attrs[5].1 = Attr::Text("");
            let plain = [&image, &filter, &bias].map(Clone::clone);
            let plain = run(&DEF, &attrs, &plain, false).unwrap()[0].to_f32();
            attrs[5].1 = Attr::Text("Relu");
            let inputs = [image, filter, bias, residual];
            for forward in [false, true] {
                let found = run(&DEF, &attrs, &inputs, forward).unwrap()[0].to_f32();
                let residual = inputs[3].to_f32();
                for ((found, plain), residual) in found.iter().zip(&plain).zip(&residual) {
                    assert!((found - (plain + residual).max(0.0)).abs() < 1e-5);
                }
            }
            let [image, filter, bias, _] = inputs;
            let short = Tensor::f32(&[1, 1, 1, 16], &[0.0; 16]);
            assert!(run(&DEF, &attrs, &[image, filter, bias, short], false).is_err());
        }
    }
}
