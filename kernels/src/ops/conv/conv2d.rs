//! `Conv2D`: `output[n, y, x, o] = sum(input[n, y * stride + i * dilation - pad, ...] *
//! filter[i, j, c, o])`, NHWC or NCHW, grouped if the filter has fewer channels than the input.

use crate::base::adapt::{check_shape, variants};
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::scratch;
use crate::base::shape::Shape;
use crate::conv::attributes::{Format, Sliding};
use crate::conv::layout::Room;
use crate::conv::{Conv, Filter, Forward};

/// The kernel as TensorFlow sees it.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: ATTRS,
    outputs,
    scratch: scratch_bytes,
    run,
    ..KernelDef::of("Conv2D")
};

/// The attributes of the three convolution ops.
pub(crate) const ATTRS: &[(&str, AttrKind)] = &[
    ("strides", AttrKind::Ints),
    ("dilations", AttrKind::Ints),
    ("padding", AttrKind::String),
    ("explicit_paddings", AttrKind::Ints),
    ("data_format", AttrKind::String),
];

/// The sizes of a convolution from the shapes of input and filter.
///
/// # Errors
/// If they do not fit together or the attributes are not allowed.
pub(crate) fn sizes(inputs: &Inputs<'_>, input: &Shape, filter: &Shape) -> Result<(Format, Conv)> {
    let sliding = Sliding::of_convolution(inputs.attrs)?;
    let [batch, height, width, in_channels] = sliding.format.image("input", input)?;
    let [rows, columns, depth, out_channels] = Format::Nhwc.image("filter", filter)?;
    if depth == 0 || !in_channels.is_multiple_of(depth) {
        return Err(Error::Incompatible {
            arguments: ("input", "filter"),
            shapes: (*input, *filter),
            rule: "the filter's third dimension must divide the input's channels",
        });
    }
    let [y, x] = sliding.windows([height, width], [rows, columns])?;
    let conv = Conv {
        batch,
        y,
        x,
        in_channels,
        out_channels,
        groups: (in_channels / depth).max(1),
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
    let packed = Forward::new(conv, Filter::Plain(&[])).scratch_len()?;
    scratch::f32_bytes(packed + images_len(format, &conv))
}

/// Elements of scratch memory for both images with channels last.
pub(crate) fn images_len(format: Format, conv: &Conv) -> usize {
    match format {
        Format::Nhwc => 0,
        Format::Nchw => conv.input_len() + conv.output_len(),
    }
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
    room.output(output, pixels, conv.out_channels, |output, scratch| {
        Forward::new(conv, Filter::Plain(filter)).run(input, output, scratch, parallel)
    })
}

/// Fails unless the gradient of the output has the output's shape.
pub(crate) fn check_gradient(format: Format, conv: &Conv, gradient: &Shape) -> Result<()> {
    let dims = [conv.batch, conv.y.output, conv.x.output, conv.out_channels];
    check_shape("out_backprop", gradient, &format.shape(dims)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Tensor, Value, call, numbers};

    /// The attributes of a convolution with the same stride and dilation on both axes.
    fn attrs(
        format: &'static str,
        stride: i64,
        dilation: i64,
        padding: &'static str,
    ) -> Vec<(&'static str, Value)> {
        let four = |x| match format {
            "NHWC" => Value::Ints(vec![1, x, x, 1]),
            _ => Value::Ints(vec![1, 1, x, x]),
        };
        let pads = match (padding, format) {
            ("EXPLICIT", "NHWC") => vec![0, 0, 2, 1, 0, 3, 0, 0],
            ("EXPLICIT", _) => vec![0, 0, 0, 0, 2, 1, 0, 3],
            _ => vec![],
        };
        vec![
            ("strides", four(stride)),
            ("dilations", four(dilation)),
            ("padding", Value::Text(padding)),
            ("explicit_paddings", Value::Ints(pads)),
            ("data_format", Value::Text(format)),
        ]
    }

    fn conv(
        attrs: &[(&'static str, Value)],
        input: [usize; 4],
        filter: [usize; 4],
    ) -> Result<Tensor> {
        let tensor = |dims: [usize; 4], seed| (dims.to_vec(), numbers(dims.iter().product(), seed));
        let mut outputs = call(&DEF, attrs, &[tensor(input, 1), tensor(filter, 2)])?;
        Ok(outputs.remove(0))
    }

    #[test]
    fn shapes_are_those_of_tensorflow() {
        for (stride, dilation, padding, expected) in [
            (1, 1, "SAME", [2, 9, 8, 4]),
            (2, 1, "SAME", [2, 5, 4, 4]),
            (2, 1, "VALID", [2, 4, 3, 4]),
            (1, 2, "VALID", [2, 5, 4, 4]),
            (1, 1, "EXPLICIT", [2, 10, 9, 4]),
        ] {
            let attrs = attrs("NHWC", stride, dilation, padding);
            let output = conv(&attrs, [2, 9, 8, 3], [3, 3, 3, 4]).unwrap();
            assert_eq!(output.0, expected, "{stride} {dilation} {padding}");
            assert!(output.1.iter().all(|x| x.is_finite()));
        }
    }

    #[test]
    fn channels_first_is_channels_last_transposed() {
        let (n, h, w, c) = (2, 6, 7, 4);
        let input = numbers(n * h * w * c, 1);
        let mut swapped = vec![0.0; input.len()];
        for (i, &x) in input.iter().enumerate() {
            let (b, p, k) = (i / (h * w * c), i / c % (h * w), i % c);
            swapped[(b * c + k) * h * w + p] = x;
        }
        let filter = (vec![3, 3, 2, 6], numbers(3 * 3 * 2 * 6, 2));
        for padding in ["SAME", "EXPLICIT"] {
            let first = (vec![n, c, h, w], swapped.clone());
            let last = (vec![n, h, w, c], input.clone());
            let first = call(
                &DEF,
                &attrs("NCHW", 2, 1, padding),
                &[first, filter.clone()],
            );
            let last = call(&DEF, &attrs("NHWC", 2, 1, padding), &[last, filter.clone()]);
            let (first, last) = (&first.unwrap()[0], &last.unwrap()[0]);
            let [_, oh, ow, oc] = <[usize; 4]>::try_from(&last.0[..]).unwrap();
            assert_eq!(first.0, [n, oc, oh, ow]);
            for (i, &x) in last.1.iter().enumerate() {
                let (b, p, k) = (i / (oh * ow * oc), i / oc % (oh * ow), i % oc);
                assert_eq!(first.1[(b * oc + k) * oh * ow + p], x);
            }
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let good = attrs("NHWC", 1, 1, "VALID");
        assert!(conv(&good, [1, 5, 5, 3], [3, 3, 2, 4]).is_err());
        assert!(conv(&good, [1, 1, 5, 3], [3, 3, 3, 4]).is_err());
        assert!(conv(&good, [1, 5, 5, 3], [3, 3, 0, 4]).is_err());
        assert!(conv(&attrs("NHWC", 0, 1, "VALID"), [1, 5, 5, 3], [3, 3, 3, 4]).is_err());
        assert!(conv(&attrs("NHWC", 1, 1, "FULL"), [1, 5, 5, 3], [3, 3, 3, 4]).is_err());
        assert!(
            conv(
                &attrs("NCHW_VECT_C", 1, 1, "SAME"),
                [1, 5, 5, 3],
                [3, 3, 3, 4]
            )
            .is_err()
        );
    }
}
