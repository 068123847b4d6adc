//! `TfpFusedConv2D`, an op that the plug-in defines: `activation(conv(input, filter) + bias)`.

use crate::conv::layout::Room;
use crate::conv::{Filter, Forward};
use crate::conv2d::{self, sizes};
use crate::def::{AttrKind, Call, KernelDef, Variant};
use crate::dtype::DType;
use crate::error::Result;
use crate::fused_mat_mul::activation;
use crate::scratch;

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    op: "TfpFusedConv2D",
    variants: &[Variant {
        types: &[("T", DType::F32)],
        host: &[],
    }],
    attrs: &[
        ("strides", AttrKind::Ints),
        ("dilations", AttrKind::Ints),
        ("padding", AttrKind::String),
        ("explicit_paddings", AttrKind::Ints),
        ("data_format", AttrKind::String),
        ("activation", AttrKind::String),
    ],
    forward: &[],
    outputs: |inputs, sink| (conv2d::DEF.outputs)(inputs, sink),
    scratch: |inputs| (conv2d::DEF.scratch)(inputs),
    run,
};

fn run(call: &mut Call<'_>) -> Result<()> {
    let (input, filter) = (call.inputs.get(0, "input")?, call.inputs.get(1, "filter")?);
    let bias = call.inputs.get(2, "bias")?.f32("bias")?;
    let (format, conv) = sizes(&call.inputs, input.shape(), filter.shape())?;
    let forward = Forward {
        bias: Some(bias),
        activation: activation(call.inputs.attrs.string("activation")?)?,
        ..Forward::new(conv, Filter::Plain(filter.f32("filter")?))
    };
    let parallel = call.parallel;
    let mut room = Room::new(format, scratch::f32s(call.scratch), parallel);
    let pixels = conv.y.input * conv.x.input;
    let input = room.channels_last(input.f32("input")?, pixels, conv.in_channels)?;
    let pixels = conv.y.output * conv.x.output;
    let output = scratch::first_output(call.outputs)?.f32_mut("output")?;
    room.output(output, pixels, conv.out_channels, |output, scratch| {
        forward.run(input, output, scratch, parallel)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Value, call, numbers};

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
            attrs.push(("activation", Value::Text("Relu")));
            let inputs = [image, filter, (vec![5], bias.clone())];
            let found = call(&DEF, &attrs, &inputs).unwrap();
            assert_eq!(found[0].0, plain[0].0);
            for (i, (&found, &plain)) in found[0].1.iter().zip(&plain[0].1).enumerate() {
                let channel = if format == "NHWC" { i % 5 } else { i / 42 % 5 };
                assert!((found - (plain + bias[channel]).max(0.0)).abs() < 1e-6);
            }
            let (image, filter) = (&inputs[0], &inputs[1]);
            let short = [image.clone(), filter.clone(), (vec![4], numbers(4, 3))];
            assert!(call(&DEF, &attrs, &short).is_err());
        }
    }
}
