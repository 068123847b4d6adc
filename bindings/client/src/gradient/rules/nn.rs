//! Losses, normalization, softmax and bias.

use tfp_core::{AttrValue, DataType, Result, Tensor};
use tfp_ops::*;

use super::array::leading;
use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::reshape_like;

/// Sum over the last axis, which is kept.
fn sum_last(c: &Backward<'_>, x: &AnyValue) -> Result<AnyValue> {
    sum(
        c.cx,
        x,
        [-1],
        SumOptions {
            keep_dims: Some(true),
        },
    )
}

fn softmax_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (y, g) = (c.output(0), c.grad(0)?);
    let inner = sum_last(c, &mul(c.cx, &g, y)?)?;
    one(mul(c.cx, sub(c.cx, &g, inner)?, y))
}

fn log_softmax_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let g = c.grad(0)?;
    let total = sum_last(c, &g)?;
    one(sub(c.cx, &g, mul(c.cx, total, exp(c.cx, c.output(0))?)?))
}

/// The gradient with respect to the logits, whose derivative the op has computed beside the loss.
fn by_row(c: &Backward<'_>, grad: &AnyValue, rows: &AnyValue) -> Result<AnyValue> {
    mul(c.cx, expand_dims(c.cx, grad, -1)?, rows)
}

/// What reaches the logits through the derivative that is the op's second output.
fn through_derivative(c: &Backward<'_>) -> Result<Option<AnyValue>> {
    let Some(second) = c.grad_or_none(1)? else {
        return Ok(None);
    };
    let probabilities = softmax(c.cx, c.input(0))?;
    let inner = sum_last(c, &mul(c.cx, &second, &probabilities)?)?;
    mul(c.cx, sub(c.cx, &second, inner)?, probabilities).map(Some)
}

fn cross_entropy_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let g = c.grad(0)?;
    let mut of_logits = by_row(c, &g, c.output(1))?;
    if let Some(more) = through_derivative(c)? {
        of_logits = add_v2(c.cx, of_logits, more)?;
    }
    let of_logits = crate::gradient::shapes::unbroadcast(c.cx, of_logits, c.input(0))?;
    let mut found = vec![Some(of_logits.into()), None];
    if c.needs(1) {
        let minus = neg(c.cx, log_softmax(c.cx, c.input(0))?)?;
        let of_labels = by_row(c, &g, &minus)?;
        let of_labels = crate::gradient::shapes::unbroadcast(c.cx, of_labels, c.input(1))?;
        found[1] = Some(of_labels.into());
    }
    Ok(found)
}

fn sparse_cross_entropy_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let mut of_logits = by_row(c, &c.grad(0)?, c.output(1))?;
    if let Some(more) = through_derivative(c)? {
        of_logits = add_v2(c.cx, of_logits, more)?;
    }
    Ok(vec![Some(of_logits.into()), None])
}

/// Inputs are images, mean, variance, offset and scale.
fn global_norm_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let inputs = [c.input(0), c.input(1), c.input(2), c.input(4), &c.grad(0)?];
    let attrs = ["variance_epsilon", "scale_after_normalization"];
    let found = c.run("BatchNormWithGlobalNormalizationGrad", &inputs, &attrs)?;
    Ok(found.into_iter().map(|value| Some(value.into())).collect())
}

/// Whether channels are the second axis, before the space.
fn channels_first(c: &Backward<'_>) -> Result<bool> {
    Ok(c.op.text("data_format")?.starts_with("NC"))
}

fn bias_add_grad_of(c: &Backward<'_>) -> Result<InputGradients> {
    let g = c.grad(0)?;
    let of_bias = match c.needs(1) {
        true => Some(c.run1("BiasAddGrad", &[&g], &["data_format"])?.into()),
        false => None,
    };
    Ok(vec![c.raw_grad(0).cloned(), of_bias])
}

fn bias_add_grad_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, g) = (c.input(0), c.grad(0)?);
    let g = match channels_first(c)? {
        true => {
            let rank = c.cx.rank_of(x)?;
            let ones = fill(c.cx, reshape(c.cx, sub(c.cx, rank, 2)?, [1])?, 1)?;
            let size = concat_v2(c.cx, (c.cx.ints(&[1, -1])?, ones), 0)?;
            reshape(c.cx, g, size)?
        }
        false => g,
    };
    one(broadcast_to(c.cx, g, c.cx.shape_of(x)?))
}

fn bias_add_v1_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let g = c.grad(0)?;
    let axes = range(c.cx, 0, sub(c.cx, c.cx.rank_of(&g)?, 1)?, 1)?;
    let of_bias = sum(c.cx, &g, axes, SumOptions::default())?;
    Ok(vec![Some(g.into()), Some(of_bias.into())])
}

fn batch_norm_grad(c: &Backward<'_>, version: u8) -> Result<InputGradients> {
    let (x, scale, g) = (c.input(0), c.input(1), c.grad(0)?);
    let training = c.op.bool("is_training")?;
    let name = match version {
        1 => "FusedBatchNormGrad",
        2 => "FusedBatchNormGradV2",
        _ => "FusedBatchNormGradV3",
    };
    let attrs = ["epsilon", "data_format", "is_training"];
    let (mean, variance) = match training {
        true => (c.output(3), c.output(4)),
        false => (c.input(3), c.input(4)),
    };
    let mut inputs = vec![&g, x, scale, mean, variance];
    if version == 3 {
        inputs.push(c.output(5));
    }
    let grads = c.run(name, &inputs, &attrs)?;
    let mut found: Vec<_> = grads
        .into_iter()
        .take(3)
        .map(|grad| Some(grad.into()))
        .collect();
    found.resize(c.op.inputs().len(), None);
    if !training {
        for (index, grad) in frozen_statistics(c, &g)? {
            found[index] = Some(grad.into());
        }
    }
    Ok(found)
}

/// The gradients of mean and variance where they are given.
fn frozen_statistics(c: &Backward<'_>, g: &AnyValue) -> Result<Vec<(usize, AnyValue)>> {
    if !c.needs(3) && !c.needs(4) {
        return Ok(Vec::new());
    }
    let (x, scale, mean, variance) = (c.input(0), c.input(1), c.input(3), c.input(4));
    let first = channels_first(c)?;
    let five = c.op.text("data_format")?.len() == 5;
    let (axes, size): (&[i64], &[i64]) = match (first, five) {
        (false, false) => (&[0, 1, 2], &[1, 1, 1, -1]),
        (false, true) => (&[0, 1, 2, 3], &[1, 1, 1, 1, -1]),
        (true, false) => (&[0, 2, 3], &[1, -1, 1, 1]),
        (true, true) => (&[0, 2, 3, 4], &[1, -1, 1, 1, 1]),
    };
    let axes = c.cx.ints(axes)?;
    let g = c.cx.cast(g, DataType::FLOAT)?;
    let x = c.cx.cast(x, DataType::FLOAT)?;
    let epsilon = f64::from(c.op.float("epsilon")?);
    let inverse = rsqrt(
        c.cx,
        add_v2(c.cx, variance, c.cx.scalar_like(variance, epsilon)?)?,
    )?;
    let total = sum(c.cx, &g, &axes, SumOptions::default())?;
    let scaled = mul(c.cx, scale, &inverse)?;
    let of_mean = neg(c.cx, mul(c.cx, &scaled, total)?)?;
    let centered = sub(c.cx, x, reshape(c.cx, mean, c.cx.ints(size)?)?)?;
    let product = sum(c.cx, mul(c.cx, &g, centered)?, &axes, SumOptions::default())?;
    let cube = mul(c.cx, &scaled, square(c.cx, &inverse)?)?;
    let of_variance = mul(
        c.cx,
        mul(c.cx, product, cube)?,
        c.cx.scalar_like(variance, -0.5)?,
    )?;
    Ok(vec![(3, of_mean), (4, of_variance)])
}

/// The gradient of the gradient of batch normalization, by differentiating it written out.
fn batch_norm_grad_grad(c: &Backward<'_>) -> Result<InputGradients> {
    // Inputs: dy, x, scale, and the mean and the variance or their stand-ins. Outputs: dx, dscale, doffset.
    let cx = c.cx;
    let (dy, x, scale) = (c.input(0), c.input(1), c.input(2));
    let training = c.op.bool("is_training")?;
    let first = channels_first(c)?;
    let five = c.op.text("data_format")?.len() == 5;
    let (axes, size): (&[i64], &[i64]) = match (first, five) {
        (false, false) => (&[0, 1, 2], &[1, 1, 1, -1]),
        (false, true) => (&[0, 1, 2, 3], &[1, 1, 1, 1, -1]),
        (true, false) => (&[0, 2, 3], &[1, -1, 1, 1]),
        (true, true) => (&[0, 2, 3, 4], &[1, -1, 1, 1, 1]),
    };
    let (axes, size) = (cx.ints(axes)?, cx.ints(size)?);
    let to32 = |value: &AnyValue| cx.cast(value, DataType::FLOAT);
    let (dy32, x32) = (to32(dy)?, to32(x)?);
    let (gx, gscale, goffset) = (to32(&c.grad(0)?)?, c.grad(1)?, c.grad(2)?);
    let wide = |value: &AnyValue| reshape(cx, value, &size);
    let mean_of = |value: &AnyValue| {
        mean(
            cx,
            value,
            &axes,
            MeanOptions {
                keep_dims: Some(true),
            },
        )
    };
    let sum_of = |value: &AnyValue| {
        sum(
            cx,
            value,
            &axes,
            SumOptions {
                keep_dims: Some(true),
            },
        )
    };
    let flat = |value: &AnyValue| reshape_like(cx, value, scale);
    let epsilon = f64::from(c.op.float("epsilon")?);
    let (center, variance) = match training {
        true => {
            let center = mean_of(&x32)?;
            let variance = mean_of(&square(cx, sub(cx, &x32, &center)?)?)?;
            (center, variance)
        }
        false => (wide(c.input(3))?, wide(c.input(4))?),
    };
    let inverse = rsqrt(
        cx,
        add_v2(cx, &variance, cx.scalar_like(&variance, epsilon)?)?,
    )?;
    let normal = mul(cx, sub(cx, &x32, &center)?, &inverse)?;
    let (gscale_w, goffset_w, scale_w) = (wide(&gscale)?, wide(&goffset)?, wide(scale)?);
    let factor = mul(cx, &scale_w, &inverse)?;
    // dscale = sum(dy * normal), doffset = sum(dy).
    let linear = add_v2(cx, mul(cx, &gscale_w, &normal)?, &goffset_w)?;
    if !training {
        // dx = dy * scale * inverse.
        let of_dy = add_v2(cx, mul(cx, &gx, &factor)?, linear)?;
        let of_x = mul(cx, mul(cx, &dy32, &gscale_w)?, &inverse)?;
        let of_scale = sum_of(&mul(cx, mul(cx, &gx, &dy32)?, &inverse)?)?;
        return finish(c, of_dy, of_x, flat(&of_scale)?);
    }
    // dx = factor * (dy - mean(dy) - normal * mean(dy * normal)).
    let project = |value: &AnyValue| -> Result<AnyValue> {
        let along = mul(cx, &normal, mean_of(&mul(cx, value, &normal)?)?)?;
        sub(cx, sub(cx, value, mean_of(value)?)?, along)
    };
    let of_dy = add_v2(cx, mul(cx, project(&gx)?, &factor)?, linear)?;
    let projected = project(&dy32)?;
    let of_scale = sum_of(&mul(cx, mul(cx, &gx, &projected)?, &inverse)?)?;
    // With respect to normal: of dscale, and of the two places in dx; then back through normal to x.
    let gf = mul(cx, &gx, &factor)?;
    let mean_dyn = mean_of(&mul(cx, &dy32, &normal)?)?;
    let mean_gn = mean_of(&mul(cx, &gf, &normal)?)?;
    let direct = mul(cx, &dy32, &gscale_w)?;
    let second = add_v2(cx, mul(cx, &gf, &mean_dyn)?, mul(cx, &dy32, &mean_gn)?)?;
    let of_normal = sub(cx, direct, second)?;
    let through_normal = mul(cx, project(&of_normal)?, &inverse)?;
    // With respect to inverse, which scales dx as a whole.
    let of_inverse = sum_of(&mul(cx, &gx, mul(cx, &scale_w, &projected)?)?)?;
    let share = mul(
        cx,
        mean_like(c, &x32, &axes)?,
        mul(cx, &of_inverse, square(cx, &inverse)?)?,
    )?;
    let through_inverse = neg(cx, mul(cx, share, &normal)?)?;
    let of_x = add_v2(cx, through_normal, through_inverse)?;
    finish(c, of_dy, of_x, flat(&of_scale)?)
}

/// One over the number of elements that a mean over `axes` is taken of.
fn mean_like(c: &Backward<'_>, x: &AnyValue, axes: &AnyValue) -> Result<AnyValue> {
    let size = c.cx.cast(&c.cx.shape_of(x)?, DataType::INT32)?;
    let picked = gather_v2(c.cx, size, axes, 0, GatherV2Options::default())?;
    let count = prod(c.cx, picked, [0], ProdOptions::default())?;
    reciprocal(c.cx, c.cx.cast(&count, DataType::FLOAT)?)
}

fn finish(c: &Backward<'_>, dy: AnyValue, x: AnyValue, scale: AnyValue) -> Result<InputGradients> {
    let mut found = vec![
        Some(c.cx.cast(&dy, c.input(0).dtype())?.into()),
        Some(c.cx.cast(&x, c.input(1).dtype())?.into()),
        Some(scale.into()),
    ];
    found.resize(c.op.inputs().len(), None);
    Ok(found)
}

fn lrn_grad_of(c: &Backward<'_>) -> Result<InputGradients> {
    let attrs = ["depth_radius", "bias", "alpha", "beta"];
    one(c.run1("LRNGrad", &[&c.grad(0)?, c.input(0), c.output(0)], &attrs))
}

fn ctc(c: &Backward<'_>) -> Result<InputGradients> {
    // Losses are per batch, which is the middle axis of the derivative.
    let grad = expand_dims(c.cx, c.grad(0)?, -1)?;
    leading(c, mul(c.cx, grad, c.output(1)))
}

fn resize_linear(c: &Backward<'_>, op: &str) -> Result<InputGradients> {
    let attrs = ["align_corners", "half_pixel_centers"];
    leading(c, c.run1(op, &[&c.grad(0)?, c.input(0)], &attrs))
}

fn resize_nearest(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    let size = slice(c.cx, c.cx.shape_of(x)?, [1], [2])?;
    let attrs = ["align_corners", "half_pixel_centers"];
    leading(
        c,
        c.run1("ResizeNearestNeighborGrad", &[&c.grad(0)?, &size], &attrs),
    )
}

fn crop_and_resize_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (image, boxes, index, g) = (c.input(0), c.input(1), c.input(2), c.grad(0)?);
    let mut found = vec![None; 4];
    let method = [("method", AttrValue::from("bilinear"))];
    if c.needs(0) {
        let size = c.cx.shape_of(image)?;
        let given = [method[0], ("T", AttrValue::Type(image.dtype()))];
        let grad = c.run_with(
            "CropAndResizeGradImage",
            &[&g, boxes, index, &size],
            &[],
            &given,
        )?;
        found[0] = grad.into_iter().next().map(Into::into);
    }
    if c.needs(1) {
        let grad = c.run_with(
            "CropAndResizeGradBoxes",
            &[&g, image, boxes, index],
            &[],
            &method,
        )?;
        found[1] = grad.into_iter().next().map(Into::into);
    }
    Ok(found)
}

fn scale_and_translate_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let inputs = [&c.grad(0)?, c.input(0), c.input(2), c.input(3)];
    let attrs = ["kernel_type", "antialias"];
    leading(c, c.run1("ScaleAndTranslateGrad", &inputs, &attrs))
}

/// As Python's: the gradient moves back by the inverse function.
fn projective_transform_grad(c: &Backward<'_>, has_fill: bool) -> Result<InputGradients> {
    let (cx, image, matrix) = (c.cx, c.input(0), c.input(1));
    // (n, 8) or (8), whose ninth number is one.
    let matrix = reshape(cx, matrix, [-1, 8])?;
    let ones = ones_like(cx, slice(cx, &matrix, [0, 0], [-1, 1])?)?;
    let matrix = reshape(cx, concat_v2(cx, (&matrix, ones), 1)?, [-1, 3, 3])?;
    let inverse = matrix_inverse(cx, matrix, MatrixInverseOptions::default())?;
    let inverse = reshape(cx, inverse, [-1, 9])?;
    let inverse = div(cx, &inverse, slice(cx, &inverse, [0, 8], [-1, 1])?)?;
    let inverse = slice(cx, inverse, [0, 0], [-1, 8])?;
    let size = slice(cx, cx.shape_of(image)?, [1], [2])?;
    let grad = c.grad(0)?;
    let attrs = ["interpolation", "fill_mode"];
    let found = match has_fill {
        true => {
            let zero = cx.constant_of(&Tensor::scalar(0.0_f32)?)?;
            let inputs = [&grad, &inverse, &size, &zero];
            c.run1("ImageProjectiveTransformV3", &inputs, &attrs)
        }
        false => c.run1(
            "ImageProjectiveTransformV2",
            &[&grad, &inverse, &size],
            &attrs,
        ),
    };
    leading(c, found)
}

pub(super) static RULES: Rules = &[
    ("Softmax", softmax_grad),
    ("LogSoftmax", log_softmax_grad),
    ("SoftmaxCrossEntropyWithLogits", cross_entropy_grad),
    (
        "SparseSoftmaxCrossEntropyWithLogits",
        sparse_cross_entropy_grad,
    ),
    ("BiasAdd", bias_add_grad_of),
    ("BiasAddGrad", bias_add_grad_grad),
    ("BiasAddV1", bias_add_v1_grad),
    ("BatchNormWithGlobalNormalization", global_norm_grad),
    ("FusedBatchNorm", |c| batch_norm_grad(c, 1)),
    ("FusedBatchNormV2", |c| batch_norm_grad(c, 2)),
    ("FusedBatchNormV3", |c| batch_norm_grad(c, 3)),
    ("FusedBatchNormGrad", batch_norm_grad_grad),
    ("FusedBatchNormGradV2", batch_norm_grad_grad),
    ("FusedBatchNormGradV3", batch_norm_grad_grad),
    ("LRN", lrn_grad_of),
    ("L2Loss", |c| one(mul(c.cx, c.input(0), &c.grad(0)?))),
    ("CTCLoss", ctc),
    ("CTCLossV2", ctc),
    ("ResizeBilinear", |c| resize_linear(c, "ResizeBilinearGrad")),
    ("ResizeBicubic", |c| resize_linear(c, "ResizeBicubicGrad")),
    ("ResizeNearestNeighbor", resize_nearest),
    ("CropAndResize", crop_and_resize_grad),
    ("ScaleAndTranslate", scale_and_translate_grad),
    ("ImageProjectiveTransformV2", |c| {
        projective_transform_grad(c, false)
    }),
    ("ImageProjectiveTransformV3", |c| {
        projective_transform_grad(c, true)
    }),
];
