//! Convolutions and pooling.

use tfp_core::{AttrValue, Result};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::slices::Gradient;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};

const CONV_2D: &[&str] = &[
    "strides",
    "padding",
    "explicit_paddings",
    "data_format",
    "dilations",
    "use_cudnn_on_gpu",
];
const DEPTHWISE: &[&str] = &[
    "strides",
    "padding",
    "explicit_paddings",
    "data_format",
    "dilations",
];
const CONV_3D: &[&str] = &["strides", "padding", "data_format", "dilations"];
const POOL: &[&str] = &["ksize", "strides", "padding", "data_format"];
const MAX_POOL: &[&str] = &[
    "ksize",
    "strides",
    "padding",
    "data_format",
    "explicit_paddings",
];

type Grad = Option<Gradient<AnyValue>>;

/// Calls an op when its value is needed.
fn when(c: &Backward<'_>, input: usize, value: impl FnOnce() -> Result<AnyValue>) -> Result<Grad> {
    match c.needs(input) {
        true => Ok(Some(value()?.into())),
        false => Ok(None),
    }
}

/// The gradients of a convolution of input 0 by the filter, input 1.
fn conv(c: &Backward<'_>, names: [&str; 2], attrs: &[&str]) -> Result<InputGradients> {
    let (x, filter, grad) = (c.input(0), c.input(1), c.grad(0)?);
    Ok(vec![
        when(c, 0, || {
            c.run1(names[0], &[&c.cx.shape_of(x)?, filter, &grad], attrs)
        })?,
        when(c, 1, || {
            c.run1(names[1], &[x, &c.cx.shape_of(filter)?, &grad], attrs)
        })?,
    ])
}

/// The gradients of the gradient with respect to the input: inputs are sizes, filter, gradient.
fn of_input(c: &Backward<'_>, names: [&str; 2], attrs: &[&str]) -> Result<InputGradients> {
    let (filter, dy, grad) = (c.input(1), c.input(2), c.grad(0)?);
    Ok(vec![
        None,
        when(c, 1, || {
            c.run1(names[1], &[&grad, &c.cx.shape_of(filter)?, dy], attrs)
        })?,
        when(c, 2, || c.run1(names[0], &[&grad, filter], attrs))?,
    ])
}

/// The gradients of the gradient with respect to the filter: inputs are input, sizes, gradient.
fn of_filter(c: &Backward<'_>, names: [&str; 2], attrs: &[&str]) -> Result<InputGradients> {
    let (x, dy, grad) = (c.input(0), c.input(2), c.grad(0)?);
    Ok(vec![
        when(c, 0, || {
            c.run1(names[1], &[&c.cx.shape_of(x)?, &grad, dy], attrs)
        })?,
        None,
        when(c, 2, || c.run1(names[0], &[x, &grad], attrs))?,
    ])
}

/// The gradients of an op whose inputs are the input, the output and the output's gradient.
fn of_pool_grad(c: &Backward<'_>, op: &str, attrs: &[&str]) -> Result<InputGradients> {
    let grad = c.run1(op, &[c.input(0), c.input(1), &c.grad(0)?], attrs)?;
    let zeros = |index: usize| zeros_like(c.cx, c.input(index));
    Ok(vec![
        Some(zeros(0)?.into()),
        Some(zeros(1)?.into()),
        Some(grad.into()),
    ])
}

fn fractional(c: &Backward<'_>, op: &str, with_values: bool) -> Result<InputGradients> {
    let overlapping = [("overlapping", AttrValue::Bool(c.op.bool("overlapping")?))];
    let grad = c.grad(0)?;
    let size = cast(
        c.cx,
        c.cx.shape_of(c.input(0))?,
        tfp_core::DataType::INT64,
        CastOptions::default(),
    )?;
    let inputs = match with_values {
        true => vec![c.input(0), c.output(0), &grad, c.output(1), c.output(2)],
        false => vec![&size, &grad, c.output(1), c.output(2)],
    };
    let mut found = c.run_with(op, &inputs, &[], &overlapping)?;
    found.truncate(1);
    Ok(found.into_iter().map(|grad| Some(grad.into())).collect())
}

fn dilation(c: &Backward<'_>) -> Result<InputGradients> {
    let attrs = ["strides", "rates", "padding"];
    let inputs = [c.input(0), c.input(1), &c.grad(0)?];
    Ok(vec![
        when(c, 0, || c.run1("Dilation2DBackpropInput", &inputs, &attrs))?,
        when(c, 1, || c.run1("Dilation2DBackpropFilter", &inputs, &attrs))?,
    ])
}

pub(super) static RULES: Rules = &[
    ("Conv2D", |c| {
        conv(c, ["Conv2DBackpropInput", "Conv2DBackpropFilter"], CONV_2D)
    }),
    ("Conv2DBackpropInput", |c| {
        of_input(c, ["Conv2D", "Conv2DBackpropFilter"], CONV_2D)
    }),
    ("Conv2DBackpropFilter", |c| {
        of_filter(c, ["Conv2D", "Conv2DBackpropInput"], CONV_2D)
    }),
    ("DepthwiseConv2dNative", |c| {
        let names = [
            "DepthwiseConv2dNativeBackpropInput",
            "DepthwiseConv2dNativeBackpropFilter",
        ];
        conv(c, names, DEPTHWISE)
    }),
    ("DepthwiseConv2dNativeBackpropInput", |c| {
        of_input(
            c,
            [
                "DepthwiseConv2dNative",
                "DepthwiseConv2dNativeBackpropFilter",
            ],
            DEPTHWISE,
        )
    }),
    ("DepthwiseConv2dNativeBackpropFilter", |c| {
        of_filter(
            c,
            [
                "DepthwiseConv2dNative",
                "DepthwiseConv2dNativeBackpropInput",
            ],
            DEPTHWISE,
        )
    }),
    ("Conv3D", |c| {
        conv(
            c,
            ["Conv3DBackpropInputV2", "Conv3DBackpropFilterV2"],
            CONV_3D,
        )
    }),
    ("Conv3DBackpropInputV2", |c| {
        of_input(c, ["Conv3D", "Conv3DBackpropFilterV2"], CONV_3D)
    }),
    ("Conv3DBackpropFilterV2", |c| {
        of_filter(c, ["Conv3D", "Conv3DBackpropInputV2"], CONV_3D)
    }),
    ("Dilation2D", dilation),
    ("AvgPool", |c| {
        one(c.run1(
            "AvgPoolGrad",
            &[&c.cx.shape_of(c.input(0))?, &c.grad(0)?],
            POOL,
        ))
    }),
    ("AvgPoolGrad", |c| {
        Ok(vec![
            None,
            Some(c.run1("AvgPool", &[&c.grad(0)?], POOL)?.into()),
        ])
    }),
    ("AvgPool3D", |c| {
        one(c.run1(
            "AvgPool3DGrad",
            &[&c.cx.shape_of(c.input(0))?, &c.grad(0)?],
            POOL,
        ))
    }),
    ("AvgPool3DGrad", |c| {
        Ok(vec![
            None,
            Some(c.run1("AvgPool3D", &[&c.grad(0)?], POOL)?.into()),
        ])
    }),
    ("MaxPool", |c| {
        one(c.run1(
            "MaxPoolGrad",
            &[c.input(0), c.output(0), &c.grad(0)?],
            MAX_POOL,
        ))
    }),
    ("MaxPoolGrad", |c| of_pool_grad(c, "MaxPoolGradGrad", POOL)),
    ("MaxPoolGradGrad", |c| of_pool_grad(c, "MaxPoolGrad", POOL)),
    ("MaxPoolV2", |c| {
        let inputs = [c.input(0), c.output(0), &c.grad(0)?, c.input(1), c.input(2)];
        let grad = c.run1("MaxPoolGradV2", &inputs, &["padding", "data_format"])?;
        Ok(vec![Some(grad.into()), None, None])
    }),
    ("MaxPoolGradV2", |c| {
        let inputs = [c.input(0), c.input(1), &c.grad(0)?, c.input(3), c.input(4)];
        let grad = c.run1("MaxPoolGradGradV2", &inputs, &["padding", "data_format"])?;
        Ok(vec![None, None, Some(grad.into()), None, None])
    }),
    ("MaxPool3D", |c| {
        one(c.run1(
            "MaxPool3DGrad",
            &[c.input(0), c.output(0), &c.grad(0)?],
            POOL,
        ))
    }),
    ("MaxPool3DGrad", |c| {
        of_pool_grad(c, "MaxPool3DGradGrad", POOL)
    }),
    ("MaxPool3DGradGrad", |c| {
        of_pool_grad(c, "MaxPool3DGrad", POOL)
    }),
    ("MaxPoolWithArgmax", |c| {
        let attrs = ["ksize", "strides", "padding", "include_batch_in_index"];
        let inputs = [c.input(0), &c.grad(0)?, c.output(1)];
        one(c.run1("MaxPoolGradWithArgmax", &inputs, &attrs))
    }),
    ("FractionalMaxPool", |c| {
        fractional(c, "FractionalMaxPoolGrad", true)
    }),
    ("FractionalAvgPool", |c| {
        fractional(c, "FractionalAvgPoolGrad", false)
    }),
];
