//! Colors, and patches of images and volumes.

use tfp_core::{DataType, Result, Tensor};
use tfp_ops::*;

use super::array::leading;
use crate::context::run::{Run, first};
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::elements_from;

/// The gradient of the hue, the saturation and the value of a color.
///
/// With the largest channel `v`, the smallest one `m` and `c = v - m`, the saturation is `c / v`; the
/// hue is `n / 6c` and a constant, where `n` is the channel after the largest one less that before it,
/// in a circle. What is undefined in grey and in black is zero.
fn rgb_to_hsv_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (cx, x, g) = (c.cx, c.input(0), c.grad(0)?);
    let row = |value: AnyValue| {
        sum(
            cx,
            value,
            [-1],
            SumOptions {
                keep_dims: Some(true),
            },
        )
    };
    let (on, off) = (cx.scalar_like(x, 1.0)?, cx.scalar_like(x, 0.0)?);
    let mark = |place: AnyValue| one_hot(cx, place, 3, &on, &off, OneHotOptions::default());
    let top = mark(arg_max(cx, x, -1, ArgMaxOptions::default())?)?;
    let bottom = mark(arg_min(cx, x, -1, ArgMinOptions::default())?)?;
    let circle = sub(cx, roll(cx, &top, 1, -1)?, roll(cx, &top, 2, -1)?)?;
    let (v, m) = (row(mul(cx, x, &top)?)?, row(mul(cx, x, &bottom)?)?);
    let chroma = sub(cx, &v, &m)?;
    let parts = split(cx, -1, &g, 3)?;
    let [of_hue, of_saturation, of_value] = &parts[..] else {
        return Ok(vec![None]);
    };

    let across = row(mul(cx, x, &circle)?)?;
    let lean = mul(
        cx,
        div_no_nan(cx, across, &chroma)?,
        sub(cx, &top, &bottom)?,
    )?;
    let six = mul(cx, &chroma, cx.scalar_like(x, 6.0)?)?;
    let hue = mul(cx, div_no_nan(cx, of_hue, six)?, sub(cx, circle, lean)?)?;
    let share = div_no_nan(cx, &m, &v)?;
    let turned = sub(cx, mul(cx, &top, share)?, &bottom)?;
    let saturation = mul(cx, div_no_nan(cx, of_saturation, v)?, turned)?;
    let value = mul(cx, of_value, top)?;
    one(add_v2(cx, value, add_v2(cx, hue, saturation)?))
}

/// The gradient of patches of images (batch, rows, columns, channels), or of volumes with one more axis.
fn patches_grad(c: &Backward<'_>, rank: i64, attrs: &[&str]) -> Result<InputGradients> {
    // What each place of a patch was taken from, as the patches of the positions.
    let (cx, x, grad) = (c.cx, c.input(0), c.grad(0)?);
    let size = cx.shape_of(x)?;
    let dims = unpack(cx, &size, rank, UnpackOptions::default())?;
    let [batch, space @ .., channels] = &dims[..] else {
        return Ok(vec![None]);
    };
    let single = cx.constant_of(&Tensor::scalar(1_i32)?)?;
    let mut shape = vec![&single];
    shape.extend(space);
    shape.push(&single);
    let shape = pack(cx, shape, PackOptions::default())?;
    let count = prod(cx, &shape, 0, ProdOptions::default())?;
    let one_more = add_v2(cx, count, 1)?;
    let positions = range(cx, 1, &one_more, 1)?;
    let positions = reshape(cx, cx.cast(&positions, DataType::DOUBLE)?, shape)?;
    let patches = first(c.run(c.op.op_type(), &[&positions], attrs)?)?;
    let places = reshape(cx, cx.cast(&patches, DataType::INT32)?, [-1])?;
    // Gradients as [places, batch and depth], summed by position; position 0 is padding.
    let places_count = tfp_ops::size(cx, &places, SizeOptions::default())?;
    let by_place = pack(cx, [batch, &places_count, channels], PackOptions::default())?;
    let rows = transpose(cx, reshape(cx, &grad, by_place)?, [1, 0, 2])?;
    let summed = unsorted_segment_sum(cx, rows, &places, &one_more)?;
    let kept = elements_from(cx, &summed, 1)?;
    let back = transpose(cx, kept, [1, 0, 2])?;
    leading(c, reshape(cx, back, size))
}

pub(super) static RULES: Rules = &[
    ("RGBToHSV", rgb_to_hsv_grad),
    ("ExtractImagePatches", |c| {
        patches_grad(c, 4, &["ksizes", "strides", "rates", "padding"])
    }),
    ("ExtractVolumePatches", |c| {
        patches_grad(c, 5, &["ksizes", "strides", "padding"])
    }),
];
