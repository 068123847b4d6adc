//! The values that a session has for variables of its graph.

use tfp_core::{Error, ErrorKind, Graph, Operation, Output, Result, Session, Tensor};
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
    assignments(session.graph(), variables)?.run(session)
}

/// Operations that give variables values, and what they are fed with.
#[derive(Default)]
pub(crate) struct Assignments<'v> {
    feeds: Vec<(Output, &'v Tensor)>,
    targets: Vec<Operation>,
}

impl Assignments<'_> {
    /// Runs them in a session of their graph.
    pub fn run(&self, session: &Session) -> Result<()> {
        if self.targets.is_empty() {
            return Ok(());
        }
        let mut run = session.run();
        for (output, tensor) in &self.feeds {
            run = run.feed(output, tensor);
        }
        for target in &self.targets {
            run = run.target(target);
        }
        run.go().map(drop)
    }
}

/// Prepares a graph to give its variables their initial values; errors are those of [`initialize`].
pub(crate) fn assignments<'v>(
    graph: &Graph,
    variables: impl IntoIterator<Item = &'v Variable>,
) -> Result<Assignments<'v>> {
    let mut all = Assignments::default();
    for variable in variables {
        let handle = handle_of(graph, variable)?;
        match (&variable.inner.given, variable.initializer()) {
            (Some(value), _) => {
                let (fed, assign) = fed_assignment(graph, variable, handle)?;
                all.feeds.push((fed, value));
                all.targets.push(assign);
            }
            (None, Some(operation)) => all.targets.push(operation.clone()),
            (None, None) => {
                return Err(Error::argument(format!(
                    "variable '{}' has no initial value",
                    variable.name()
                )));
            }
        }
    }
    Ok(all)
}

/// The handle of a variable of a session's graph.
fn handle_of<'v>(graph: &Graph, variable: &'v Variable) -> Result<&'v Output> {
    let handle = variable.own(variable.inner.handle.output())?;
    if handle.operation().graph().is_same(graph) {
        return Ok(handle);
    }
    Err(Error::new(ErrorKind::Foreign {
        what: format!(
            "variable '{}' is of another graph than the session",
            variable.name()
        ),
    }))
}

/// The assignment of a fed value to a variable of a session's graph, and what is fed: one per variable
/// serves every call.
fn fed_assignment(
    graph: &Graph,
    variable: &Variable,
    handle: &Output,
) -> Result<(Output, Operation)> {
    let scope = graph.scope();
    let name = format!("{}/tfp_set", variable.name());
    let assign = match graph.operation(&name) {
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

/// Returns the values that a session has for variables of its graph, in their order.
///
/// # Errors
/// As for [`Variable::value_in`].
pub fn values_in(session: &Session, variables: &[Variable]) -> Result<Vec<Tensor>> {
    let scope = session.graph().scope();
    let mut reads = Vec::with_capacity(variables.len());
    for variable in variables {
        let handle = handle_of(session.graph(), variable)?;
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
    let mut all = Assignments::default();
    for (variable, tensor) in values {
        let handle = handle_of(session.graph(), variable)?;
        variable.check_tensor(tensor)?;
        let (fed, assign) = fed_assignment(session.graph(), variable, handle)?;
        all.feeds.push((fed, *tensor));
        all.targets.push(assign);
    }
    all.run(session)
}
