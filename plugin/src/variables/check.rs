//! What TensorFlow's own kernels of optimizer steps refuse, before anything is changed.

use tfp_bindings::{Error, Result};

use super::table::VariableOp;

/// Fails unless the inputs of an optimizer's step fit each other: their shapes do, and `indices` are
/// within the variable's first axis. `shapes` has a shape per input; a row that is no optimizer's step
/// passes.
///
/// # Errors
/// `InvalidArgument` with the names of the inputs and what was expected.
pub fn check(row: &VariableOp, shapes: &[Vec<usize>], indices: &[i64]) -> Result<()> {
    if !row.is_step() {
        return Ok(());
    }
    shapes_fit(row, shapes)?;
    let limit = shapes.first().and_then(|shape| shape.first());
    let limit = limit.copied().unwrap_or(0);
    let outside = |&&index: &&i64| usize::try_from(index).map_or(true, |index| index >= limit);
    match indices.iter().find(outside) {
        Some(index) => Err(Error::invalid(format!(
            "indices has {index}, expected numbers from 0 to below {limit}"
        ))),
        None => Ok(()),
    }
}

/// Fails unless the shapes of an optimizer's step fit each other: slots and a dense gradient have the
/// variable's shape, a sparse one has a slice of the variable for each index, and all other inputs are
/// numbers. `shapes` has a shape per input.
///
/// # Errors
/// `InvalidArgument` with the names of the inputs and what was expected.
pub fn shapes_fit(row: &VariableOp, shapes: &[Vec<usize>]) -> Result<()> {
    let Some(variable) = shapes.first() else {
        return Err(Error::internal("a step has no variable"));
    };
    let indices = row.inputs.iter().position(|name| *name == "indices");
    let is_sparse = indices.is_some();
    let count = indices.and_then(|place| shapes.get(place)?.first());
    let refuse = |name: &str, found: &[usize], expected: &str| {
        let name = name.trim_start_matches('&');
        Err(Error::invalid(format!(
            "{name} has the shape {found:?}, expected {expected}; the variable's shape is {variable:?}"
        )))
    };
    if is_sparse && variable.is_empty() {
        return refuse("var", variable, "at least one axis");
    }
    for (&name, found) in row.inputs.iter().zip(shapes) {
        match name {
            _ if name.starts_with('&') => {
                if found != variable {
                    return refuse(name, found, "the variable's shape");
                }
            }
            "indices" => {
                if found.len() != 1 {
                    return refuse(name, found, "a vector");
                }
            }
            "grad" | "delta" if is_sparse => {
                let slices = count.is_some() && found.first() == count;
                if !slices || found.get(1..) != variable.get(1..) {
                    return refuse(name, found, "a slice of the variable for each index");
                }
            }
            "grad" | "delta" => {
                if found != variable {
                    return refuse(name, found, "the variable's shape");
                }
            }
            _ => {
                if !found.is_empty() {
                    return refuse(name, found, "a number");
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::table::{SLICES, STEPS};
    use super::*;

    fn row(op: &str) -> &'static VariableOp {
        SLICES.iter().chain(STEPS).find(|row| row.op == op).unwrap()
    }

    /// Shapes that fit: variables of [4, 3], three slices.
    fn shapes(row: &VariableOp) -> Vec<Vec<usize>> {
        let is_sparse = row.inputs.contains(&"indices");
        let shape = |name: &&str| match *name {
            "indices" => vec![3],
            "grad" | "delta" if is_sparse => vec![3, 3],
            "grad" | "delta" => vec![4, 3],
            name if name.starts_with('&') => vec![4, 3],
            _ => vec![],
        };
        row.inputs.iter().map(shape).collect()
    }

    #[test]
    fn every_input_of_every_step_is_checked() {
        for row in STEPS.iter().filter(|row| row.op.contains("Apply")) {
            let indices: &[i64] = if row.inputs.contains(&"indices") {
                &[0, 3, 0]
            } else {
                &[]
            };
            assert!(check(row, &shapes(row), indices).is_ok(), "{}", row.op);
            for place in 0..row.inputs.len() {
                for other in [vec![1], vec![4, 1], vec![2, 3]] {
                    let mut wrong = shapes(row);
                    wrong[place] = other;
                    assert!(check(row, &wrong, indices).is_err(), "{} {place}", row.op);
                }
            }
        }
    }

    #[test]
    fn indices_are_within_the_variable() {
        let row = row("ResourceSparseApplyAdagrad");
        for outside in [[0, 1, 4], [0, -1, 2]] {
            let error = check(row, &shapes(row), &outside).unwrap_err();
            assert!(error.message().starts_with("indices has "));
        }
    }

    #[test]
    fn what_is_no_step_passes() {
        let scatter = row("ResourceScatterAdd");
        assert!(check(scatter, &[vec![4], vec![2], vec![]], &[9, 9]).is_ok());
    }
}
