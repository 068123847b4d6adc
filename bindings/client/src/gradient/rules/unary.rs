//! Functions of one tensor, element by element.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use tfp_core::{DataType, Result};
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules, one};
use crate::gradient::shapes::conj;

/// `dy` times the conjugate of a derivative.
fn times(c: &Backward<'_>, derivative: Result<AnyValue>) -> Result<InputGradients> {
    let derivative = conj(c.cx, &derivative?)?;
    one(mul(c.cx, &c.grad(0)?, &derivative))
}

/// `dy` divided by the conjugate of something.
fn over(c: &Backward<'_>, divisor: Result<AnyValue>) -> Result<InputGradients> {
    let divisor = conj(c.cx, &divisor?)?;
    one(div(c.cx, &c.grad(0)?, &divisor))
}

/// The op's own gradient op over its output.
fn of_output(
    c: &Backward<'_>,
    op: fn(&Backward<'_>, &AnyValue, &AnyValue) -> Result<AnyValue>,
) -> Result<InputGradients> {
    one(op(c, &conj(c.cx, c.output(0))?, &c.grad(0)?))
}

/// `a * exp(b * x^2) * dy`.
fn bell(c: &Backward<'_>, x: &AnyValue, a: f64, b: f64) -> Result<InputGradients> {
    let bell = exp(c.cx, mul(c.cx, square(c.cx, x)?, b)?)?;
    times(c, mul(c.cx, bell, a))
}

/// The gradients of a gradient op whose inputs are an output `y` and its gradient `dy`.
fn pair(
    c: &Backward<'_>,
    of_y: Result<AnyValue>,
    of_dy: Result<AnyValue>,
) -> Result<InputGradients> {
    debug_assert_eq!(c.op.inputs.len(), 2);
    Ok(vec![Some(of_y?.into()), Some(of_dy?.into())])
}

fn sign_free(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    if !x.dtype().is_complex() {
        return times(c, sign(c.cx, x));
    }
    let unit = sign(c.cx, x)?;
    let grad = c.cx.cast(&c.grad(0)?, x.dtype())?;
    one(mul(c.cx, grad, unit))
}

/// `1 - x^2`.
fn one_minus_square(c: &Backward<'_>) -> Result<AnyValue> {
    sub(c.cx, 1.0, square(c.cx, c.input(0))?)
}

fn bessel(c: &Backward<'_>, first: &str, scaled: bool, minus: bool) -> Result<InputGradients> {
    // The derivative of order 0 is order 1; scaled functions add or take away themselves.
    let (x, y) = (c.input(0), c.output(0));
    let mut derivative = c.cx.op1(first, &[x])?;
    if minus {
        derivative = neg(c.cx, derivative)?;
    }
    if scaled {
        let own = match first {
            "BesselI1e" => neg(c.cx, mul(c.cx, sign(c.cx, x)?, y)?)?,
            _ => y.clone(),
        };
        derivative = add_v2(c.cx, derivative, own)?;
    }
    times(c, Ok(derivative))
}

/// Order 1 from order 0: `f0 - f1 / x` with the signs of each family; `at_zero` where `x` is 0.
fn bessel_of_one(
    c: &Backward<'_>,
    zeroth: &str,
    negative: bool,
    at_zero: Option<f64>,
) -> Result<InputGradients> {
    let (x, y) = (c.input(0), c.output(0));
    let zeroth = c.cx.op1(zeroth, &[x])?;
    let quotient = div(c.cx, y, x)?;
    let mut derivative = match negative {
        true => neg(c.cx, add_v2(c.cx, zeroth, quotient)?)?,
        false => sub(c.cx, zeroth, quotient)?,
    };
    match c.op.op_type() {
        "BesselI1e" => derivative = sub(c.cx, derivative, mul(c.cx, sign(c.cx, x)?, y)?)?,
        "BesselK1e" => derivative = add_v2(c.cx, derivative, y)?,
        _ => {}
    }
    if let Some(at_zero) = at_zero {
        let is_zero = equal(c.cx, x, 0.0, EqualOptions::default())?;
        let value = c.cx.scalar_like(x, at_zero)?;
        derivative = select_v2(c.cx, is_zero, value, derivative)?;
    }
    times(c, Ok(derivative))
}

fn spence_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    let derivative = div(c.cx, log(c.cx, x)?, sub(c.cx, 1.0, x)?)?;
    let is_one = equal(c.cx, x, 1.0, EqualOptions::default())?;
    times(
        c,
        select_v2(c.cx, is_one, c.cx.scalar_like(x, -1.0)?, derivative),
    )
}

fn cast_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (from, to) = (c.input(0).dtype(), c.output(0).dtype());
    let flows = |dtype: DataType| dtype.is_float() || dtype.is_complex();
    if !flows(from) || !flows(to) {
        return Ok(vec![None]);
    }
    let grad = c.grad(0)?;
    if to.is_complex() && !from.is_complex() {
        let part = real(
            c.cx,
            &grad,
            RealOptions {
                tout: Some(real_part(to)),
            },
        )?;
        return one(c.cx.cast(&part, from));
    }
    one(c.cx.cast(&grad, from))
}

/// The type of the parts of a complex type.
pub(super) fn real_part(dtype: DataType) -> DataType {
    match dtype {
        DataType::COMPLEX128 => DataType::DOUBLE,
        _ => DataType::FLOAT,
    }
}

fn complex_of(c: &Backward<'_>, re: &AnyValue, im: &AnyValue) -> Result<AnyValue> {
    let dtype = c.input(0).dtype();
    complex(c.cx, re, im, ComplexOptions { tout: Some(dtype) })
}

fn angle_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let x = c.input(0);
    let part = Some(real_part(x.dtype()));
    let (re, im) = (
        real(c.cx, x, RealOptions { tout: part })?,
        imag(c.cx, x, ImagOptions { tout: part })?,
    );
    let norm = add_v2(c.cx, square(c.cx, &re)?, square(c.cx, &im)?)?;
    let scale = div(c.cx, &c.grad(0)?, &norm)?;
    let (gre, gim) = (neg(c.cx, mul(c.cx, &im, &scale)?)?, mul(c.cx, &re, &scale)?);
    one(complex_of(c, &gre, &gim))
}

pub(super) static RULES: Rules = &[
    ("Abs", sign_free),
    ("ComplexAbs", sign_free),
    ("Neg", |c| one(neg(c.cx, &c.grad(0)?))),
    ("Inv", |c| {
        one(reciprocal_grad(c.cx, c.output(0), &c.grad(0)?))
    }),
    ("Reciprocal", |c| {
        one(reciprocal_grad(c.cx, c.output(0), &c.grad(0)?))
    }),
    ("InvGrad", reciprocal_grad_grad),
    ("ReciprocalGrad", reciprocal_grad_grad),
    ("Square", |c| times(c, mul(c.cx, c.input(0), 2.0))),
    ("Sqrt", |c| one(sqrt_grad(c.cx, c.output(0), &c.grad(0)?))),
    ("SqrtGrad", |c| {
        let ga = div(c.cx, &c.grad(0)?, &conj(c.cx, c.input(0))?)?;
        let of_y = neg(c.cx, mul(c.cx, &ga, conj(c.cx, c.output(0))?)?);
        pair(c, of_y, mul(c.cx, &ga, 0.5))
    }),
    ("Rsqrt", |c| one(rsqrt_grad(c.cx, c.output(0), &c.grad(0)?))),
    ("RsqrtGrad", |c| {
        let (a, b, g) = (conj(c.cx, c.input(0))?, c.input(1), c.grad(0)?);
        let cg = conj(c.cx, &g)?;
        let ga = mul(c.cx, mul(c.cx, mul(c.cx, cg, -1.5)?, b)?, square(c.cx, &a)?);
        let gb = rsqrt_grad(c.cx, &a, &g);
        pair(c, ga, gb)
    }),
    ("Exp", |c| times(c, Ok(c.output(0).clone()))),
    ("Expm1", |c| times(c, exp(c.cx, c.input(0)))),
    ("Log", |c| over(c, Ok(c.input(0).clone()))),
    ("Log1p", |c| over(c, add_v2(c.cx, c.input(0), 1.0))),
    ("Sinh", |c| times(c, cosh(c.cx, c.input(0)))),
    ("Cosh", |c| times(c, sinh(c.cx, c.input(0)))),
    ("Tanh", |c| of_output(c, |c, y, dy| tanh_grad(c.cx, y, dy))),
    ("TanhGrad", |c| {
        let (a, b, g) = (conj(c.cx, c.input(0))?, conj(c.cx, c.input(1))?, c.grad(0)?);
        let ga = mul(c.cx, mul(c.cx, mul(c.cx, &g, -2.0)?, &b)?, &a);
        pair(c, ga, tanh_grad(c.cx, &a, &g))
    }),
    ("Asinh", |c| over(c, cosh(c.cx, c.output(0)))),
    ("Acosh", |c| over(c, sinh(c.cx, c.output(0)))),
    ("Atanh", |c| over(c, one_minus_square(c))),
    ("Sin", |c| times(c, cos(c.cx, c.input(0)))),
    ("Cos", |c| times(c, neg(c.cx, sin(c.cx, c.input(0))?))),
    ("Tan", |c| over(c, square(c.cx, cos(c.cx, c.input(0))?))),
    ("Asin", |c| over(c, sqrt(c.cx, one_minus_square(c)?))),
    ("Acos", |c| {
        over(c, neg(c.cx, sqrt(c.cx, one_minus_square(c)?)?))
    }),
    ("Atan", |c| {
        over(c, add_v2(c.cx, square(c.cx, c.input(0))?, 1.0))
    }),
    ("Erf", |c| bell(c, c.input(0), FRAC_2_SQRT_PI, -1.0)),
    ("Erfc", |c| bell(c, c.input(0), -FRAC_2_SQRT_PI, -1.0)),
    ("Erfinv", |c| bell(c, c.output(0), PI.sqrt() / 2.0, 1.0)),
    ("Ndtri", |c| bell(c, c.output(0), (2.0 * PI).sqrt(), 0.5)),
    ("Lgamma", |c| times(c, digamma(c.cx, c.input(0)))),
    ("Digamma", |c| {
        times(
            c,
            polygamma(c.cx, c.cx.scalar_like(c.input(0), 1.0)?, c.input(0)),
        )
    }),
    ("Dawsn", |c| {
        let xy = mul(c.cx, c.input(0), c.output(0))?;
        times(c, sub(c.cx, 1.0, mul(c.cx, xy, 2.0)?))
    }),
    ("Expint", |c| {
        times(c, div(c.cx, exp(c.cx, c.input(0))?, c.input(0)))
    }),
    ("FresnelCos", |c| {
        times(
            c,
            cos(c.cx, mul(c.cx, square(c.cx, c.input(0))?, PI / 2.0)?),
        )
    }),
    ("FresnelSin", |c| {
        times(
            c,
            sin(c.cx, mul(c.cx, square(c.cx, c.input(0))?, PI / 2.0)?),
        )
    }),
    ("Spence", spence_grad),
    ("BesselI0", |c| bessel(c, "BesselI1", false, false)),
    ("BesselI0e", |c| bessel(c, "BesselI1e", true, false)),
    ("BesselK0", |c| bessel(c, "BesselK1", false, true)),
    ("BesselK0e", |c| bessel(c, "BesselK1e", true, true)),
    ("BesselJ0", |c| bessel(c, "BesselJ1", false, true)),
    ("BesselY0", |c| bessel(c, "BesselY1", false, true)),
    ("BesselI1", |c| {
        bessel_of_one(c, "BesselI0", false, Some(0.5))
    }),
    ("BesselI1e", |c| {
        bessel_of_one(c, "BesselI0e", false, Some(0.5))
    }),
    ("BesselK1", |c| bessel_of_one(c, "BesselK0", true, None)),
    ("BesselK1e", |c| bessel_of_one(c, "BesselK0e", true, None)),
    ("BesselJ1", |c| {
        bessel_of_one(c, "BesselJ0", false, Some(0.5))
    }),
    ("BesselY1", |c| bessel_of_one(c, "BesselY0", false, None)),
    ("Sigmoid", |c| {
        of_output(c, |c, y, dy| sigmoid_grad(c.cx, y, dy))
    }),
    ("SigmoidGrad", |c| {
        let (a, b, g) = (conj(c.cx, c.input(0))?, conj(c.cx, c.input(1))?, c.grad(0)?);
        let gb = mul(c.cx, &g, &b)?;
        let ga = sub(c.cx, &gb, mul(c.cx, mul(c.cx, &gb, 2.0)?, &a)?);
        pair(c, ga, sigmoid_grad(c.cx, &a, &g))
    }),
    ("Relu", |c| one(relu_grad(c.cx, &c.grad(0)?, c.output(0)))),
    ("Relu6", |c| one(relu6_grad(c.cx, &c.grad(0)?, c.output(0)))),
    ("LeakyRelu", |c| {
        one(c.run1("LeakyReluGrad", &[&c.grad(0)?, c.input(0)], &["alpha"]))
    }),
    ("LeakyReluGrad", |c| {
        let grad = c.run1("LeakyReluGrad", &[&c.grad(0)?, c.input(1)], &["alpha"])?;
        Ok(vec![Some(grad.into()), None])
    }),
    ("ReluGrad", |c| {
        Ok(vec![
            Some(relu_grad(c.cx, &c.grad(0)?, c.input(1))?.into()),
            None,
        ])
    }),
    ("Relu6Grad", |c| {
        Ok(vec![
            Some(relu6_grad(c.cx, &c.grad(0)?, c.input(1))?.into()),
            None,
        ])
    }),
    ("Elu", |c| one(elu_grad(c.cx, &c.grad(0)?, c.output(0)))),
    ("EluGrad", |c| {
        // Inputs are the gradient and the output y of Elu; the op multiplies by y + 1 where y < 0.
        let (dy, y, g) = (c.input(0), c.input(1), c.grad(0)?);
        let product = mul(c.cx, &g, dy)?;
        let of_y = select_v2(c.cx, less(c.cx, y, 0.0)?, &product, zeros_like(c.cx, y)?)?;
        Ok(vec![Some(elu_grad(c.cx, &g, y)?.into()), Some(of_y.into())])
    }),
    ("Selu", |c| one(selu_grad(c.cx, &c.grad(0)?, c.output(0)))),
    ("SeluGrad", |c| {
        let (dy, y, g) = (c.input(0), c.input(1), c.grad(0)?);
        let product = mul(c.cx, &g, dy)?;
        let of_y = select_v2(c.cx, less(c.cx, y, 0.0)?, &product, zeros_like(c.cx, y)?)?;
        Ok(vec![
            Some(selu_grad(c.cx, &g, y)?.into()),
            Some(of_y.into()),
        ])
    }),
    ("Softplus", |c| {
        one(softplus_grad(c.cx, &c.grad(0)?, c.input(0)))
    }),
    ("SoftplusGrad", |c| {
        let (dy, x, g) = (c.input(0), c.input(1), c.grad(0)?);
        let bell = add_v2(
            c.cx,
            add_v2(c.cx, exp(c.cx, neg(c.cx, x)?)?, exp(c.cx, x)?)?,
            2.0,
        )?;
        let of_x = div(c.cx, mul(c.cx, &g, dy)?, bell)?;
        Ok(vec![
            Some(softplus_grad(c.cx, &g, x)?.into()),
            Some(of_x.into()),
        ])
    }),
    ("Softsign", |c| {
        one(softsign_grad(c.cx, &c.grad(0)?, c.input(0)))
    }),
    ("Cast", cast_grad),
    ("Conj", |c| one(conj(c.cx, &c.grad(0)?))),
    ("Real", |c| {
        let re = c.grad(0)?;
        one(complex_of(c, &re, &zeros_like(c.cx, &re)?))
    }),
    ("Imag", |c| {
        let im = c.grad(0)?;
        one(complex_of(c, &zeros_like(c.cx, &im)?, &im))
    }),
    ("Angle", angle_grad),
    ("CheckNumerics", |c| {
        one(check_numerics(
            c.cx,
            &c.grad(0)?,
            "the gradient of CheckNumerics",
        ))
    }),
    ("CheckNumericsV2", |c| {
        one(check_numerics_v2(
            c.cx,
            &c.grad(0)?,
            "the gradient of CheckNumericsV2",
        ))
    }),
];

fn reciprocal_grad_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (a, b, g) = (conj(c.cx, c.input(0))?, c.input(1), c.grad(0)?);
    let cg = conj(c.cx, &g)?;
    let ga = mul(c.cx, mul(c.cx, mul(c.cx, cg, -2.0)?, b)?, &a);
    let gb = reciprocal_grad(c.cx, &a, &g);
    pair(c, ga, gb)
}
