//! Loops of TensorFlow 1: `Enter`, `Merge`, `Switch`, `NextIteration` and `Exit`.

use std::collections::HashSet;

use tfp_sys::{TF_Output, TF_WhileParams};

use crate::OpBuilder;
use crate::base::api::{Status, c_string};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::shape::Shape;
use crate::graph::Graph;
use crate::graph::attr::Attr;
use crate::graph::import::ImportOptions;
use crate::graph::operation::{Operation, Output, count_of};
use crate::graph::scope::Scope;
use tfp_wire::DataType;
use tfp_wire::{Reader, Writer};

/// A condition or a body: a graph of its own that becomes a part of the loop.
struct Part {
    graph_def: Vec<u8>,
    graph: Graph,
    arguments: Vec<String>,
    results: Vec<(String, usize)>,
}

impl Graph {
    /// Adds a loop in the form of TensorFlow 1, which old graphs and consumers without functions
    /// need, and returns the variables as the loop leaves them.
    ///
    /// Condition and body are called once, each with a scope of a graph of its own and a variable per
    /// input, whose shape is not known there; they take nothing else from outside. The name is that
    /// of the loop's operations; a number makes it unique. [`Self::add_gradients`] goes through such a
    /// loop where the gradient of its body needs no value of the body, as that of a sum.
    ///
    /// # Errors
    /// Those of the closures; [`ErrorKind::Argument`] without inputs or for another number of results,
    /// [`ErrorKind::DType`] for a condition that is not a truth value or a result of another type than
    /// its variable, [`ErrorKind::Foreign`] for an output of another graph, and what TensorFlow says.
    pub fn add_while(
        &self,
        name: &str,
        inputs: &[Output],
        condition: impl FnOnce(&Scope, &[Output]) -> Result<Output>,
        body: impl FnOnce(&Scope, &[Output]) -> Result<Vec<Output>>,
    ) -> Result<Vec<Output>> {
        inputs.iter().try_for_each(|input| self.check_own(input))?;
        if inputs.is_empty() {
            return Err(Error::argument(format!("loop '{name}' has no variable")));
        }
        let types: Vec<DataType> = inputs.iter().map(Output::dtype).collect();
        let condition = Part::trace(
            name,
            "condition",
            &types,
            &[DataType::BOOL],
            |scope, args| condition(scope, args).map(|holds| vec![holds]),
        )?;
        let body = Part::trace(name, "body", &types, &types, body)?;
        let functions = [&condition, &body].map(|part| part.graph.functions());
        for function in functions {
            function?
                .iter()
                .try_for_each(|function| self.add_function(function))?;
        }
        let name = c_string(&self.unique_scope(name))?;

        let api = self.inner.api;
        let status = Status::new(api)?;
        let mut raw: Vec<TF_Output> = inputs.iter().map(Output::raw).collect();
        let mut guard = self.inner.lock();
        guard.others_named();
        let count = count_of(&raw)?;
        // SAFETY: graph and status are alive, and the inputs are of this graph. Its lock is held until
        // the loop is finished or abandoned: no other thread adds operations in between.
        let params = self.inner.fence.call(|| unsafe {
            api.c_api.TF_NewWhile(
                self.inner.as_ptr(),
                raw.as_mut_ptr(),
                count,
                status.as_ptr(),
            )
        })?;
        status.check_ref()?;
        let mut pending = Pending {
            params,
            graph: self,
            is_open: true,
        };
        pending.params.name = name.as_ptr();
        // SAFETY: the graphs and the arrays of an open loop are alive; each array has an element per
        // variable, and TensorFlow takes what it is set to when the loop is finished.
        unsafe {
            let holds = condition.copy_to(params.cond_graph, params.cond_inputs, self)?;
            pending.params.cond_output = holds[0];
            for (at, result) in body
                .copy_to(params.body_graph, params.body_inputs, self)?
                .into_iter()
                .enumerate()
            {
                *params.body_outputs.add(at) = result;
            }
        }
        let mut outputs = raw;
        pending.is_open = false;
        // SAFETY: the loop is whole; this call ends it, whatever it returns. `outputs` has room for
        // an output per variable.
        self.inner.fence.call(|| unsafe {
            let params = &raw const pending.params;
            api.c_api
                .TF_FinishWhile(params, status.as_ptr(), outputs.as_mut_ptr());
        })?;
        drop(pending);
        drop(guard);
        status.check()?;
        outputs
            .into_iter()
            .map(|output| {
                let operation = std::ptr::NonNull::new(output.oper)
                    .ok_or_else(|| Error::internal("a loop's output has no operation"))?;
                // SAFETY: the operation was added to this graph.
                let operation = unsafe { Operation::from_borrowed_ptr(&self.inner, operation) };
                operation.output(usize::try_from(output.index).unwrap_or(0))
            })
            .collect()
    }
}

impl Graph {
    /// Refuses gradients through a loop of which a result is neither asked for nor depends on what is
    /// asked about: TensorFlow ends the process there.
    pub(crate) fn check_loops(&self, y: &[Output], x: &[Output]) -> Result<()> {
        let mut exits: Vec<(String, Operation)> = Vec::new();
        for operation in self.operations().filter(|op| op.op_type() == "Exit") {
            if let Some(frame) = frame_of(&operation) {
                exits.push((frame, operation));
            }
        }
        if exits.is_empty() {
            return Ok(());
        }
        let below = ancestors(y.iter().map(|y| y.operation().clone()).collect(), "");
        let used: HashSet<String> = exits
            .iter()
            .filter(|(_, exit)| below.contains(&address(exit)))
            .map(|(frame, _)| frame.clone())
            .collect();
        exits.retain(|(frame, _)| used.contains(frame));
        for (frame, exit) in &exits {
            let own = exit
                .inputs()
                .iter()
                .map(|x| x.operation().clone())
                .collect();
            let inside = ancestors(own, frame);
            let is_inside = |output: &&Output| inside.contains(&address(output.operation()));
            if let Some(part) = x.iter().chain(y).find(is_inside) {
                return Err(Error::argument(format!(
                    "'{}' is a part of loop '{frame}', which has gradients as a whole only",
                    part.name()
                )));
            }
        }
        for (frame, exit) in &exits {
            let sources = ancestors(vec![exit.clone()], "");
            let what = if !below.contains(&address(exit)) {
                "no `y` depends on"
            } else if !x.iter().any(|x| sources.contains(&address(x.operation()))) {
                "no `x` leads to"
            } else {
                continue;
            };
            return Err(Error::argument(format!(
                "gradients through loop '{frame}' need all of its variables, and {what} '{}'",
                exit.name()
            )));
        }
        Ok(())
    }
}

/// Returns operations, by their addresses, with all that they depend on, up to where loop `frame` is
/// entered.
fn ancestors(mut waiting: Vec<Operation>, frame: &str) -> HashSet<usize> {
    let mut seen = HashSet::new();
    while let Some(operation) = waiting.pop() {
        let is_end = !frame.is_empty() && enters(&operation).is_some_and(|name| name == frame);
        if !is_end && seen.insert(address(&operation)) {
            waiting.extend(operation.inputs().iter().map(|x| x.operation().clone()));
        }
    }
    seen
}

/// Returns the name of the loop that an operation enters, if it does.
fn enters(operation: &Operation) -> Option<String> {
    match (operation.op_type().as_str(), operation.attr("frame_name")) {
        ("Enter", Ok(Attr::String(name))) => Some(String::from_utf8_lossy(&name).into_owned()),
        _ => None,
    }
}

fn address(operation: &Operation) -> usize {
    operation.as_ptr().addr()
}

/// Returns the name of the loop that an `Exit` leaves.
fn frame_of(exit: &Operation) -> Option<String> {
    let first = |operation: &Operation| Some(operation.inputs().first()?.operation().clone());
    let merge = first(&first(exit)?)?;
    merge
        .inputs()
        .iter()
        .find_map(|input| enters(input.operation()))
}

/// A loop that is being made; what is not finished is abandoned.
struct Pending<'g> {
    params: TF_WhileParams,
    graph: &'g Graph,
    is_open: bool,
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        if self.is_open {
            // SAFETY: the loop is neither finished nor abandoned yet.
            unsafe {
                self.graph
                    .inner
                    .api
                    .c_api
                    .TF_AbortWhile(&raw const self.params)
            };
        }
    }
}

impl Part {
    fn trace(
        name: &str,
        part: &str,
        arguments: &[DataType],
        results: &[DataType],
        trace: impl FnOnce(&Scope, &[Output]) -> Result<Vec<Output>>,
    ) -> Result<Self> {
        let graph = Graph::new()?;
        let scope = graph.scope();
        let variables = arguments
            .iter()
            .map(|&dtype| scope.placeholder("variable", dtype, &Shape::unknown()))
            .collect::<Result<Vec<_>>>()?;
        let returned = trace(&scope, &variables)?;
        if returned.len() != results.len() {
            return Err(Error::argument(format!(
                "the {part} of loop '{name}' returns {} values, expected {}",
                returned.len(),
                results.len()
            )));
        }
        for (index, (output, &expected)) in returned.iter().zip(results).enumerate() {
            graph.check_own(output)?;
            if output.dtype() != expected {
                return Err(Error::new(ErrorKind::DType {
                    what: format!("value {index} of the {part} of loop '{name}'"),
                    expected,
                    found: output.dtype(),
                }));
            }
        }
        let place = |output: &Output| (output.operation().name(), output.index());
        let arguments: Vec<String> = variables.iter().map(|v| v.operation().name()).collect();
        Ok(Self {
            graph_def: without_nodes(&graph.to_graph_def()?, &arguments)?,
            results: returned.iter().map(place).collect(),
            arguments,
            graph,
        })
    }

    /// Copies the part into a graph of the loop, whose variables take the arguments' place, and
    /// returns the results there.
    ///
    /// # Safety
    /// `graph` is alive, used by this thread alone, and has an output for each argument at `inputs`.
    unsafe fn copy_to(
        &self,
        graph: *mut tfp_sys::TF_Graph,
        inputs: *const TF_Output,
        parent: &Graph,
    ) -> Result<Vec<TF_Output>> {
        // SAFETY: the graph outlives this function, and nothing made of it here leaves.
        let graph = unsafe { Graph::from_borrowed_ptr(graph, parent.inner.api)? };
        let mut mapped = Vec::with_capacity(self.arguments.len());
        let scope = graph.scope();
        for (at, argument) in self.arguments.iter().enumerate() {
            // SAFETY: by this function's contract.
            let input = unsafe { *inputs.add(at) };
            let operation = std::ptr::NonNull::new(input.oper)
                .ok_or_else(|| Error::internal("a loop's variable has no operation"))?;
            // SAFETY: the operation is of the loop's graph.
            let operation = unsafe { Operation::from_borrowed_ptr(&graph.inner, operation) };
            let variable = operation.output(usize::try_from(input.index).unwrap_or(0))?;
            // After the last iteration a `Switch` is alive still, and so is what waits for it alone.
            // This is not: what has no inputs waits for it, and so does what an optimizer adds.
            let output = OpBuilder::new("Identity")?.input(&variable).one(&scope)?;
            mapped.push((argument.as_str(), 0, output));
        }
        let results: Vec<(&str, usize)> = self
            .results
            .iter()
            .map(|(name, index)| (name.as_str(), *index))
            .collect();
        let pivot = mapped
            .first()
            .map(|(_, _, output)| output.operation().clone());
        let options = ImportOptions {
            uniquify_names: true,
            input_map: &mapped,
            control_dependencies: pivot.as_slice(),
            return_outputs: &results,
            ..ImportOptions::default()
        };
        let imported = graph.import(&self.graph_def, &options)?;
        Ok(imported.outputs.iter().map(Output::raw).collect())
    }
}

/// Returns a `GraphDef` without some of its nodes.
fn without_nodes(graph_def: &[u8], names: &[String]) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    for field in Reader::new("GraphDef", graph_def) {
        let (number, field) = field?;
        let mut is_kept = true;
        if number == 1 {
            for field in Reader::new("NodeDef", field.bytes()?) {
                if let (1, name) = field? {
                    let name = name.text()?;
                    is_kept = !names.iter().any(|dropped| dropped == name);
                }
            }
        }
        if is_kept {
            out.raw(field.raw());
        }
    }
    Ok(out.into_bytes())
}
