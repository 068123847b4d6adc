//! The values that a session has for variables of its graph.

use tfp_core::{Error, ErrorKind, Operation, Output, Result, Session, Tensor};
use tfp_ops::{AssignVariableOpOptions, assign_variable_op, read_variable_op};

use super::Variable;

/// Gives variables of a session's graph their initial values.
///
/// # Errors
/// [`ErrorKind::Foreign`] for a variable of another graph or of an eager context,
/// [`ErrorKind::Argument`] for one without an initial value, and what TensorFlow says.
pub fn initialize<'v>(
    session: &Session,
    variables: impl IntoIterator<Item = &'v Variable>,
) -> Result<()> {
    let (mut feeds, mut targets) = (Vec::new(), Vec::new());
    for variable in variables {
        let handle = variable.own(variable.inner.handle.output())?;
        if !handle.operation().graph().is_same(session.graph()) {
            return Err(foreign(variable));
        }
        match (&variable.inner.given, variable.initializer()) {
            (Some(value), _) => {
                let (fed, assign) = fed_assignment(session, variable, handle)?;
                feeds.push((fed, value));
                targets.push(assign);
            }
            (None, Some(operation)) => targets.push(operation.clone()),
            (None, None) => {
                return Err(Error::argument(format!(
                    "variable '{}' has no initial value",
                    variable.name()
                )));
            }
        }
    }
    run_assignments(session, &feeds, &targets)
}

/// Runs operations that give variables values.
fn run_assignments(
    session: &Session,
    feeds: &[(Output, &Tensor)],
    targets: &[Operation],
) -> Result<()> {
    if targets.is_empty() {
        return Ok(());
    }
    let mut run = session.run();
    for (output, tensor) in feeds {
        run = run.feed(output, tensor);
    }
    for target in targets {
        run = run.target(target);
    }
    run.go().map(drop)
}

/// The assignment of a fed value to a variable of a session's graph, and what is fed: one per variable
/// serves every call.
fn fed_assignment(
    session: &Session,
    variable: &Variable,
    handle: &Output,
) -> Result<(Output, Operation)> {
    let scope = session.graph().scope();
    let name = format!("{}/tfp_set", variable.name());
    let assign = match session.graph().operation(&name) {
        Ok(operation) if operation.inputs().first() == Some(handle) => operation,
        _ => {
            let fed = format!("{}/tfp_fed", variable.name());
            let fed = scope.placeholder(&fed, variable.dtype(), variable.shape())?;
            let options = AssignVariableOpOptions::default();
            assign_variable_op(&scope.named(&name), handle, &fed, options)?
        }
    };
    let fed = assign.inputs().into_iter().nth(1);
    let fed = fed.ok_or_else(|| Error::argument("an assignment has no value"))?;
    Ok((fed, assign))
}

#[cold]
fn foreign(variable: &Variable) -> Error {
    Error::new(ErrorKind::Foreign {
        what: format!(
            "variable '{}' is of another graph than the session",
            variable.name()
        ),
    })
}

/// Returns the values that a session has for variables of its graph, in their order.
///
/// # Errors
/// As for [`Variable::value_in`].
pub fn values_in(session: &Session, variables: &[Variable]) -> Result<Vec<Tensor>> {
    let scope = session.graph().scope();
    let mut reads = Vec::with_capacity(variables.len());
    for variable in variables {
        let handle = variable.own(variable.inner.handle.output())?;
        if !handle.operation().graph().is_same(session.graph()) {
            return Err(foreign(variable));
        }
        // One read per variable serves every call.
        let name = format!("{}/tfp_value", variable.name());
        let read = match session.graph().operation(&name) {
            Ok(operation) if operation.inputs() == [handle.clone()] => operation.output(0)?,
            _ => read_variable_op(&scope.named(&name), handle, variable.dtype())?,
        };
        reads.push(read);
    }
    if reads.is_empty() {
        return Ok(Vec::new());
    }
    session.eval(&[], &reads.iter().collect::<Vec<_>>())
}

/// Gives variables of a session's graph values, in their order.
///
/// # Errors
/// [`ErrorKind::Foreign`], [`ErrorKind::DType`] and [`ErrorKind::Shape`], which name the variable.
pub fn set_in(session: &Session, values: &[(&Variable, &Tensor)]) -> Result<()> {
    let mut feeds = Vec::with_capacity(values.len());
    let mut targets = Vec::with_capacity(values.len());
    for (variable, tensor) in values {
        let handle = variable.own(variable.inner.handle.output())?;
        if !handle.operation().graph().is_same(session.graph()) {
            return Err(foreign(variable));
        }
        variable.check_tensor(tensor)?;
        let (fed, assign) = fed_assignment(session, variable, handle)?;
        feeds.push((fed, *tensor));
        targets.push(assign);
    }
    run_assignments(session, &feeds, &targets)
}
