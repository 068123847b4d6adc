//! Random numbers by their parameters: how a sample moves where its place in the distribution stays
//! (Figurnov, Mohamed and Mnih, "Implicit reparameterization gradients", 2018).

use tfp_core::Result;
use tfp_ops::*;

use crate::gradient::rule::{Backward, InputGradients, Rules};
use crate::gradient::shapes::unbroadcast;

/// The gradient by the shape parameter of gamma distributions, which is an input.
fn gamma_grad(c: &Backward<'_>, parameter: usize) -> Result<InputGradients> {
    let (alpha, sample) = (c.input(parameter), c.output(0));
    let slope = random_gamma_grad(c.cx, alpha, sample)?;
    let found = unbroadcast(c.cx, mul(c.cx, c.grad(0)?, slope)?, alpha)?;
    let mut all = vec![None; c.op.inputs.len()];
    all[parameter] = Some(found.into());
    Ok(all)
}

pub(super) static RULES: Rules = &[
    ("RandomGamma", |c| gamma_grad(c, 1)),
    ("StatelessRandomGammaV2", |c| gamma_grad(c, 2)),
    ("StatelessRandomGammaV3", |c| gamma_grad(c, 4)),
];
