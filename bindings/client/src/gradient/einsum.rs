//! The gradient of `Einsum`: further einsums over the same labels.

use std::collections::BTreeSet;

use tfp_core::{Error, Result};
use tfp_ops::*;

use super::rule::{Backward, InputGradients};
use super::shapes::{conj, unbroadcast};
use crate::context::run::Run;
use crate::context::value::AnyValue;

/// An equation with its ellipsis written as one label.
struct Equation {
    inputs: Vec<String>,
    output: String,
}

/// A label that no equation has: it stands for the ellipsis while labels are counted.
const DOTS: char = '\u{2026}';

fn parse(text: &str) -> Result<Equation> {
    let text: String = text.replace("...", &DOTS.to_string()).replace(' ', "");
    let Some((inputs, output)) = text.split_once("->") else {
        return Err(Error::argument(format!(
            "the equation {text:?} of an Einsum has no arrow"
        )));
    };
    Ok(Equation {
        inputs: inputs.split(',').map(str::to_owned).collect(),
        output: output.to_owned(),
    })
}

fn labels(text: &str) -> BTreeSet<char> {
    text.chars().collect()
}

fn written(text: &str) -> String {
    text.replace(DOTS, "...")
}

/// Returns the gradients of one or two operands.
pub(super) fn gradient(c: &Backward<'_>) -> Result<InputGradients> {
    let equation = parse(&c.op.text("equation")?)?;
    let grad = c.grad(0)?;
    match equation.inputs.as_slice() {
        [only] => {
            let value = of_operand(c, &grad, &equation.output, &[], only, c.input(0))?;
            Ok(vec![Some(value.into())])
        }
        [left, right] => {
            let mut found = vec![None, None];
            if c.needs(0) {
                let other = [(right.as_str(), c.input(1))];
                found[0] =
                    Some(of_operand(c, &grad, &equation.output, &other, left, c.input(0))?.into());
            }
            if c.needs(1) {
                let other = [(left.as_str(), c.input(0))];
                found[1] =
                    Some(of_operand(c, &grad, &equation.output, &other, right, c.input(1))?.into());
            }
            Ok(found)
        }
        more => Err(Error::argument(format!(
            "the gradient of an Einsum of {} operands is not known: expected one or two",
            more.len()
        ))),
    }
}

/// Returns the gradient of one operand, given the other one.
fn of_operand(
    c: &Backward<'_>,
    grad: &AnyValue,
    output: &str,
    other: &[(&str, &AnyValue)],
    mine: &str,
    x: &AnyValue,
) -> Result<AnyValue> {
    let mut available = labels(output);
    other
        .iter()
        .for_each(|(text, _)| available.extend(labels(text)));
    let own = labels(mine);
    let repeated = own.len() != mine.chars().count();
    // A label that only this operand has was summed: its gradient is the same along it.
    let missing: Vec<char> = own
        .difference(&available)
        .copied()
        .filter(|&label| label != DOTS)
        .collect();
    let present: String = mine_order(mine)
        .chars()
        .filter(|label| available.contains(label) || *label == DOTS)
        .collect();
    // The ellipsis is there in the result when the operands have it at all.
    let has_dots = |text: &str| text.contains(DOTS);
    let target =
        match !has_dots(mine) && (has_dots(output) || other.iter().any(|(t, _)| has_dots(t))) {
            true => format!("{DOTS}{present}"),
            false => present,
        };
    let target =
        match has_dots(mine) && !has_dots(output) && !other.iter().any(|(t, _)| has_dots(t)) {
            true => target.replace(DOTS, ""),
            false => target,
        };
    let mut left = vec![written(output)];
    let mut operands = vec![grad.clone()];
    for (text, value) in other {
        left.push(written(text));
        operands.push(conj(c.cx, value)?);
    }
    let equation = format!("{}->{}", left.join(","), written(&target));
    let mut value = einsum(c.cx, &operands, equation.as_str())?;
    if repeated || !missing.is_empty() {
        value = spread(c, value, &target, mine, x)?;
    }
    if target.contains(DOTS)
        && (!mine.contains(DOTS) || x.shape()? != value.shape()? || !x.shape()?.is_fully_known())
    {
        value = unbroadcast(c.cx, value, x)?;
    }
    Ok(value)
}

fn mine_order(text: &str) -> String {
    let mut seen = String::new();
    for label in text.chars() {
        if !seen.contains(label) {
            seen.push(label);
        }
    }
    seen
}

/// Spreads a gradient along labels that were summed, and on the diagonal of repeated ones.
fn spread(
    c: &Backward<'_>,
    value: AnyValue,
    target: &str,
    mine: &str,
    x: &AnyValue,
) -> Result<AnyValue> {
    if mine.contains(DOTS) || target.contains(DOTS) {
        return Err(Error::argument(format!(
            "the gradient of an Einsum whose operand {:?} has an ellipsis beside labels that are \
             summed in it alone or repeated is not known",
            written(mine)
        )));
    }
    let size = c.cx.shape_of(x)?;
    let order = mine_order(mine);
    // First one axis per label, of length one where it was summed; then the full length.
    let (mut value, mut axis) = (value, 0);
    for label in order.chars() {
        if !target.contains(label) {
            value = expand_dims(c.cx, &value, axis)?;
        }
        axis += 1;
    }
    let places: Vec<i64> = order
        .chars()
        .filter_map(|label| mine.chars().position(|other| other == label))
        .map(|place| place as i64)
        .collect();
    let full = gather_v2(
        c.cx,
        &size,
        c.cx.ints(&places)?,
        0,
        GatherV2Options::default(),
    )?;
    let mut value = broadcast_to(c.cx, value, full)?;
    if order.len() == mine.len() {
        return Ok(value);
    }
    // A repeated label: the value goes to places where all its axes have one index.
    let mut axes: Vec<char> = order.chars().collect();
    for (place, label) in mine.chars().enumerate() {
        let before = mine
            .chars()
            .take(place)
            .filter(|&other| other == label)
            .count();
        if before == 0 {
            continue;
        }
        let Some(first) = axes.iter().position(|&other| other == label) else {
            continue;
        };
        // diag(value) along a new last axis, by a product with the identity.
        let length = gather_v2(
            c.cx,
            &size,
            c.cx.ints(&[place as i64])?,
            0,
            GatherV2Options::default(),
        )?;
        let ones = fill(c.cx, length, c.cx.scalar_like(x, 1.0)?)?;
        let identity = matrix_diag(c.cx, ones)?;
        let names: String = ('a'..='z').take(axes.len()).collect();
        let own = names.chars().nth(first).unwrap_or('a');
        let equation = format!("{names},{own}Z->{names}Z");
        value = einsum(c.cx, [&value, &identity], equation.as_str())?;
        axes.push(label);
    }
    // Axes are now first occurrences, then repetitions: back to the order of the operand.
    let mut taken = vec![false; axes.len()];
    let perm: Vec<i64> = mine
        .chars()
        .filter_map(|label| {
            let at = (0..axes.len()).find(|&at| axes[at] == label && !taken[at])?;
            taken[at] = true;
            Some(at as i64)
        })
        .collect();
    transpose(c.cx, value, c.cx.ints(&perm)?)
}
