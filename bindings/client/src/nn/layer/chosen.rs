//! The variables of a layer that a name chooses.

use tfp_core::{Error, Result};

use crate::nn::Weights;
use crate::variable::Variable;

/// Builds a layer and returns the variables of a name that it asked for; none is an error.
pub(super) fn build<T>(
    weights: &Weights,
    name: &str,
    purpose: &str,
    build: impl FnOnce(&Weights) -> Result<T>,
) -> Result<(T, Vec<Variable>)> {
    let before = weights.asked();
    let built = build(weights)?;
    let (mut chosen, mut names): (Vec<Variable>, Vec<String>) = (Vec::new(), Vec::new());
    for (asked, variable) in weights.asked_by_name(before) {
        let last = asked.rsplit('/').next().unwrap_or_default();
        names.push(format!("'{last}'"));
        // A layer inside may be called twice.
        let is_new =
            |chosen: &[Variable]| chosen.iter().all(|one| one.handle() != variable.handle());
        if last == name && is_new(&chosen) {
            chosen.push(variable);
        }
    }
    if chosen.is_empty() {
        return Err(Error::argument(format!(
            "{purpose} of '{name}'; the layer's variables are [{}]",
            names.join(", ")
        )));
    }
    Ok((built, chosen))
}

/// The first part of the keys that Keras has for options of a variable.
pub(super) fn key(name: &str) -> &str {
    match name {
        "recurrent_kernel" => "recurrent",
        other => other,
    }
}

/// Refuses to describe options of a variable of a layer inside of another one.
pub(super) fn check_class(class: &str, option: &str) -> Result<()> {
    match class {
        "TimeDistributed" | "Bidirectional" | "RNN" => Err(Error::argument(format!(
            "{option} of a layer inside of another can't be described"
        ))),
        _ => Ok(()),
    }
}
