//! Fourier transforms. The adjoint of one is the other direction of it, scaled.

use tfp_core::Result;
use tfp_ops::*;

use super::unary::real_part;
use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::{elements_from, reshape_like};

/// The number of points of a transform over the last `axes` axes of a value.
fn points(c: &Backward<'_>, value: &AnyValue, axes: i32) -> Result<AnyValue> {
    let last = elements_from(c.cx, &c.cx.shape_of(value)?, -axes)?;
    prod(c.cx, last, [0], ProdOptions::default())
}

/// `op(dy)`, times or over the number of points.
fn complex_grad(
    c: &Backward<'_>,
    op: &str,
    axes: i32,
    scale: fn(&Backward<'_>, &AnyValue, &AnyValue) -> Result<AnyValue>,
) -> Result<InputGradients> {
    let g = c.grad(0)?;
    let count = points(c, &g, axes)?;
    let count =
        c.cx.cast(&c.cx.cast(&count, real_part(g.dtype()))?, g.dtype())?;
    one(scale(c, &c.cx.op1(op, &[&g])?, &count))
}

fn times(c: &Backward<'_>, value: &AnyValue, count: &AnyValue) -> Result<AnyValue> {
    mul(c.cx, value, count)
}

fn over(c: &Backward<'_>, value: &AnyValue, count: &AnyValue) -> Result<AnyValue> {
    div(c.cx, value, count)
}

/// Cuts the last axes of a value, or fills them up with zeros, to the shape of another.
fn fit(c: &Backward<'_>, value: &AnyValue, to: &AnyValue) -> Result<AnyValue> {
    let from = shape(c.cx, value, ShapeOptions::default())?;
    let both = minimum(c.cx, from, to)?;
    let zeros = zeros_like(c.cx, &both)?;
    let taken = slice(c.cx, value, &zeros, &both)?;
    let after = sub(c.cx, to, &both)?;
    let paddings = pack(c.cx, [&zeros, &after], PackOptions { axis: Some(1) })?;
    let fitted = pad(c.cx, taken, paddings)?;
    match value.shape()?.rank() {
        Some(_) => Ok(fitted),
        None => reshape(c.cx, fitted, to),
    }
}

/// The shape of a value whose last axes have other sizes.
fn with_last(c: &Backward<'_>, value: &AnyValue, last: &AnyValue, axes: i32) -> Result<AnyValue> {
    let options = StridedSliceOptions {
        begin_mask: Some(1),
        ..Default::default()
    };
    let all = c.cx.shape_of(value)?;
    let before = strided_slice(c.cx, all, [0], [-axes], [1], options)?;
    concat_v2(c.cx, [&before, last], 0)
}

/// Of real numbers: the real part of the adjoint, where the half of the spectrum that the transform
/// leaves out adds nothing.
fn real_grad(c: &Backward<'_>, back: &str, axes: i32) -> Result<InputGradients> {
    let (x, length, g) = (c.input(0), c.input(1), c.grad(0)?);
    let whole = fit(c, &g, &with_last(c, &g, length, axes)?)?;
    let dtype = x.dtype();
    let turned = real(
        c.cx,
        c.cx.op1(back, &[&whole])?,
        RealOptions { tout: Some(dtype) },
    )?;
    let count =
        c.cx.cast(&prod(c.cx, length, [0], ProdOptions::default())?, dtype)?;
    let scaled = mul(c.cx, turned, count)?;
    let fitted = fit(c, &scaled, &c.cx.shape_of(x)?)?;
    Ok(vec![Some(reshape_like(c.cx, &fitted, x)?.into()), None])
}

/// To real numbers: each frequency counts twice but those that are their own mirror images.
fn inverse_real_grad(c: &Backward<'_>, forth: &str, axes: i32) -> Result<InputGradients> {
    let (x, length, g) = (c.input(0), c.input(1), c.grad(0)?);
    let dtype = x.dtype();
    let spectrum = c.run_with(forth, &[&g, length], &[], &[("Tcomplex", dtype.into())])?;
    let spectrum = crate::context::run::first(spectrum)?;
    let last = gather_v2(c.cx, length, axes - 1, 0, GatherV2Options::default())?;
    let frequencies = range(c.cx, 0, add_v2(c.cx, floor_div(c.cx, &last, 2)?, 1)?, 1)?;
    let doubled = mul(c.cx, &frequencies, 2)?;
    let mirror = floor_mod(c.cx, doubled, last)?;
    let own = c.cx.cast(
        &equal(c.cx, mirror, 0, EqualOptions::default())?,
        real_part(dtype),
    )?;
    let count = c.cx.cast(
        &prod(c.cx, length, [0], ProdOptions::default())?,
        real_part(dtype),
    )?;
    let weights = div(c.cx, sub(c.cx, 2.0, own)?, count)?;
    let weighted = mul(c.cx, spectrum, c.cx.cast(&weights, dtype)?)?;
    let fitted = fit(c, &weighted, &c.cx.shape_of(x)?)?;
    Ok(vec![Some(reshape_like(c.cx, &fitted, x)?.into()), None])
}

pub(super) static RULES: Rules = &[
    ("FFT", |c| complex_grad(c, "IFFT", 1, times)),
    ("FFT2D", |c| complex_grad(c, "IFFT2D", 2, times)),
    ("FFT3D", |c| complex_grad(c, "IFFT3D", 3, times)),
    ("IFFT", |c| complex_grad(c, "FFT", 1, over)),
    ("IFFT2D", |c| complex_grad(c, "FFT2D", 2, over)),
    ("IFFT3D", |c| complex_grad(c, "FFT3D", 3, over)),
    ("RFFT", |c| real_grad(c, "IFFT", 1)),
    ("RFFT2D", |c| real_grad(c, "IFFT2D", 2)),
    ("RFFT3D", |c| real_grad(c, "IFFT3D", 3)),
    ("IRFFT", |c| inverse_real_grad(c, "RFFT", 1)),
    ("IRFFT2D", |c| inverse_real_grad(c, "RFFT2D", 2)),
    ("IRFFT3D", |c| inverse_real_grad(c, "RFFT3D", 3)),
];
