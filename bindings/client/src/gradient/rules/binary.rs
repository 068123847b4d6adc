//! Functions of two tensors that are broadcast to each other, and sums of several.

use tfp_core::Result;
use tfp_ops::*;

use crate::context::run::Run;
use crate::context::slices::Gradient;
use crate::context::value::AnyValue;
use crate::gradient::rule::{Backward, InputGradients, Rules};
use crate::gradient::shapes::{conj, unbroadcast};

type Partial<'c> = dyn Fn(&Backward<'_>, &AnyValue) -> Result<AnyValue> + 'c;

/// The gradients of two inputs, each summed over what was broadcast, as far as they are needed.
pub(super) fn two(c: &Backward<'_>, x: &Partial<'_>, y: &Partial<'_>) -> Result<InputGradients> {
    let grad = c.grad(0)?;
    let partial = |index: usize, f: &Partial<'_>| -> Result<Option<Gradient<AnyValue>>> {
        if !c.needs(index) {
            return Ok(None);
        }
        let value = f(c, &grad)?;
        Ok(Some(unbroadcast(c.cx, value, c.input(index))?.into()))
    };
    Ok(vec![partial(0, x)?, partial(1, y)?])
}

fn same(_: &Backward<'_>, grad: &AnyValue) -> Result<AnyValue> {
    Ok(grad.clone())
}

fn minus(c: &Backward<'_>, grad: &AnyValue) -> Result<AnyValue> {
    neg(c.cx, grad)
}

fn zero(c: &Backward<'_>, grad: &AnyValue) -> Result<AnyValue> {
    zeros_like(c.cx, grad)
}

/// The conjugate of an input.
fn input(c: &Backward<'_>, index: usize) -> Result<AnyValue> {
    conj(c.cx, c.input(index))
}

fn quotient(
    c: &Backward<'_>,
    by: impl Fn(&Backward<'_>, &AnyValue, &AnyValue) -> Result<AnyValue>,
) -> Result<InputGradients> {
    two(c, &|c, g| by(c, g, &input(c, 1)?), &|c, g| {
        let (x, y) = (input(c, 0)?, input(c, 1)?);
        mul(c.cx, g, by(c, &by(c, &neg(c.cx, &x)?, &y)?, &y)?)
    })
}

fn pow_grad(c: &Backward<'_>) -> Result<InputGradients> {
    two(
        c,
        &|c, g| {
            let (x, y) = (input(c, 0)?, input(c, 1)?);
            let power = pow(c.cx, &x, sub(c.cx, &y, c.cx.scalar_like(&y, 1.0)?)?)?;
            mul(c.cx, mul(c.cx, g, &y)?, power)
        },
        &|c, g| {
            // The logarithm counts as zero where the real function has none.
            let x = input(c, 0)?;
            let zero = c.cx.scalar_like(&x, 0.0)?;
            let mask = match x.dtype().is_complex() {
                true => not_equal(c.cx, &x, &zero, NotEqualOptions::default())?,
                false => greater(c.cx, &x, &zero)?,
            };
            let safe = select_v2(c.cx, &mask, &x, ones_like(c.cx, &x)?)?;
            let power = log(c.cx, select_v2(c.cx, &mask, safe, ones_like(c.cx, &x)?)?)?;
            mul(c.cx, mul(c.cx, g, conj(c.cx, c.output(0))?)?, power)
        },
    )
}

/// The gradient goes to the input that was chosen; the first one where both are equal.
fn extreme(
    c: &Backward<'_>,
    first: impl Fn(&Backward<'_>) -> Result<AnyValue>,
) -> Result<InputGradients> {
    let mask = first(c)?;
    two(
        c,
        &|c, g| select_v2(c.cx, &mask, g, zeros_like(c.cx, g)?),
        &|c, g| select_v2(c.cx, &mask, zeros_like(c.cx, g)?, g),
    )
}

fn is_nonzero(c: &Backward<'_>, index: usize) -> Result<AnyValue> {
    let x = c.input(index);
    let zero = c.cx.scalar_like(x, 0.0)?;
    let is = not_equal(c.cx, x, &zero, NotEqualOptions::default())?;
    c.cx.cast(&is, x.dtype())
}

fn atan2_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (y, x) = (c.input(0), c.input(1));
    let norm = add_v2(c.cx, square(c.cx, x)?, square(c.cx, y)?)?;
    two(c, &|c, g| mul(c.cx, g, div(c.cx, x, &norm)?), &|c, g| {
        mul(c.cx, g, neg(c.cx, div(c.cx, y, &norm)?)?)
    })
}

/// The derivative of the lower incomplete gamma function with respect to `x`.
fn gamma_density(c: &Backward<'_>) -> Result<AnyValue> {
    let (a, x) = (c.input(0), c.input(1));
    let power = mul(c.cx, sub(c.cx, a, 1.0)?, log(c.cx, x)?)?;
    exp(c.cx, sub(c.cx, sub(c.cx, power, x)?, lgamma(c.cx, a)?)?)
}

fn betainc_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (a, b, x) = (c.input(0), c.input(1), c.input(2));
    let log_beta = sub(
        c.cx,
        add_v2(c.cx, lgamma(c.cx, a)?, lgamma(c.cx, b)?)?,
        lgamma(c.cx, add_v2(c.cx, a, b)?)?,
    )?;
    let tails = add_v2(
        c.cx,
        xlog1py(c.cx, sub(c.cx, b, 1.0)?, neg(c.cx, x)?)?,
        xlogy(c.cx, sub(c.cx, a, 1.0)?, x)?,
    )?;
    let density = exp(c.cx, sub(c.cx, tails, log_beta)?)?;
    let grad = unbroadcast(c.cx, mul(c.cx, density, &c.grad(0)?)?, x)?;
    Ok(vec![None, None, Some(grad.into())])
}

fn select_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (mask, grad) = (c.input(0), c.grad(0)?);
    let zeros = zeros_like(c.cx, &grad)?;
    let old = c.op.op_type() == "Select";
    let pick = |index: usize| -> Result<Option<Gradient<AnyValue>>> {
        if !c.needs(index) {
            return Ok(None);
        }
        let (t, e) = if index == 1 {
            (&grad, &zeros)
        } else {
            (&zeros, &grad)
        };
        let picked = match old {
            true => select(c.cx, mask, t, e)?,
            false => select_v2(c.cx, mask, t, e)?,
        };
        Ok(Some(unbroadcast(c.cx, picked, c.input(index))?.into()))
    };
    Ok(vec![None, pick(1)?, pick(2)?])
}

fn clip_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let (x, low, high, grad) = (c.input(0), c.input(1), c.input(2), c.grad(0)?);
    let zeros = zeros_like(c.cx, &grad)?;
    let (below, above) = (less(c.cx, x, low)?, greater(c.cx, x, high)?);
    let outside = logical_or(c.cx, &below, &above)?;
    let gx = select_v2(c.cx, outside, &zeros, &grad)?;
    let glow = unbroadcast(c.cx, select_v2(c.cx, &below, &grad, &zeros)?, low)?;
    let ghigh = unbroadcast(c.cx, select_v2(c.cx, &above, &grad, &zeros)?, high)?;
    Ok(vec![Some(gx.into()), Some(glow.into()), Some(ghigh.into())])
}

/// The same gradient for every input.
fn each(c: &Backward<'_>) -> Result<InputGradients> {
    Ok(vec![c.raw_grad(0).cloned(); c.op.inputs().len()])
}

fn complex_grad(c: &Backward<'_>) -> Result<InputGradients> {
    let tout = Some(c.input(0).dtype());
    two(c, &|c, g| real(c.cx, g, RealOptions { tout }), &|c, g| {
        imag(c.cx, g, ImagOptions { tout })
    })
}

pub(super) static RULES: Rules = &[
    ("Add", |c| two(c, &same, &same)),
    ("AddV2", |c| two(c, &same, &same)),
    ("Sub", |c| two(c, &same, &minus)),
    ("Mul", |c| {
        two(c, &|c, g| mul(c.cx, g, input(c, 1)?), &|c, g| {
            mul(c.cx, input(c, 0)?, g)
        })
    }),
    ("MulNoNan", |c| {
        two(c, &|c, g| mul_no_nan(c.cx, g, c.input(1)), &|c, g| {
            mul_no_nan(c.cx, c.input(0), g)
        })
    }),
    ("Div", |c| quotient(c, |c, x, y| div(c.cx, x, y))),
    ("RealDiv", |c| quotient(c, |c, x, y| real_div(c.cx, x, y))),
    ("DivNoNan", |c| {
        quotient(c, |c, x, y| div_no_nan(c.cx, x, y))
    }),
    ("FloorMod", |c| {
        two(c, &same, &|c, g| {
            mul(
                c.cx,
                g,
                neg(c.cx, floor_div(c.cx, c.input(0), c.input(1))?)?,
            )
        })
    }),
    ("Pow", pow_grad),
    ("Maximum", |c| {
        extreme(c, |c| greater_equal(c.cx, c.input(0), c.input(1)))
    }),
    ("Minimum", |c| {
        extreme(c, |c| less_equal(c.cx, c.input(0), c.input(1)))
    }),
    ("SquaredDifference", |c| {
        let twice = |c: &Backward<'_>, g: &AnyValue, a: usize, b: usize| -> Result<AnyValue> {
            let difference = sub(c.cx, c.input(a), c.input(b))?;
            mul(c.cx, mul(c.cx, g, c.cx.scalar_like(g, 2.0)?)?, difference)
        };
        two(c, &|c, g| twice(c, g, 0, 1), &|c, g| twice(c, g, 1, 0))
    }),
    ("Atan2", atan2_grad),
    ("Xlogy", |c| {
        two(
            c,
            &|c, g| mul(c.cx, g, xlogy(c.cx, is_nonzero(c, 0)?, c.input(1))?),
            &|c, g| mul(c.cx, g, xdivy(c.cx, c.input(0), c.input(1))?),
        )
    }),
    ("Xlog1py", |c| {
        two(
            c,
            &|c, g| mul(c.cx, g, xlog1py(c.cx, is_nonzero(c, 0)?, c.input(1))?),
            &|c, g| {
                let y = add_v2(c.cx, c.input(1), c.cx.scalar_like(c.input(1), 1.0)?)?;
                mul(c.cx, g, xdivy(c.cx, c.input(0), y)?)
            },
        )
    }),
    ("Xdivy", |c| {
        two(
            c,
            &|c, g| mul(c.cx, g, xdivy(c.cx, is_nonzero(c, 0)?, c.input(1))?),
            &|c, g| {
                let y = c.input(1);
                let over = xdivy(c.cx, neg(c.cx, c.input(0))?, square(c.cx, y)?)?;
                mul(c.cx, g, over)
            },
        )
    }),
    ("Igamma", |c| {
        two(
            c,
            &|c, g| mul(c.cx, g, igamma_grad_a(c.cx, c.input(0), c.input(1))?),
            &|c, g| mul(c.cx, g, gamma_density(c)?),
        )
    }),
    ("Igammac", |c| {
        two(
            c,
            &|c, g| {
                mul(
                    c.cx,
                    neg(c.cx, g)?,
                    igamma_grad_a(c.cx, c.input(0), c.input(1))?,
                )
            },
            &|c, g| mul(c.cx, neg(c.cx, g)?, gamma_density(c)?),
        )
    }),
    ("Betainc", betainc_grad),
    ("Polygamma", |c| {
        // Only with respect to x: the order is an integer.
        let (n, x) = (c.input(0), c.input(1));
        let next = polygamma(c.cx, add_v2(c.cx, n, 1.0)?, x)?;
        let grad = unbroadcast(c.cx, mul(c.cx, &c.grad(0)?, next)?, x)?;
        Ok(vec![None, Some(grad.into())])
    }),
    ("Zeta", |c| {
        // Only with respect to q.
        let (x, q) = (c.input(0), c.input(1));
        let next = zeta(c.cx, add_v2(c.cx, x, 1.0)?, q)?;
        let slope = neg(c.cx, mul(c.cx, x, next)?)?;
        let grad = unbroadcast(c.cx, mul(c.cx, &c.grad(0)?, slope)?, q)?;
        Ok(vec![None, Some(grad.into())])
    }),
    ("NextAfter", |c| two(c, &same, &zero)),
    ("Select", select_grad),
    ("SelectV2", select_grad),
    ("ClipByValue", clip_grad),
    ("Complex", complex_grad),
    ("AddN", each),
    ("AccumulateNV2", each),
    ("Cross", |c| {
        two(c, &|c, g| cross(c.cx, c.input(1), g), &|c, g| {
            cross(c.cx, g, c.input(0))
        })
    }),
];
