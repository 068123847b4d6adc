//! Signatures of a model that is made here: closures and parts of graphs as functions.

use std::collections::{BTreeMap, BTreeSet};

use tfp_core::{
    DataType, Error, Function, FunctionOptions, Graph, Operation, Output, Result, Shape, Value,
};

use super::structure::Spec;
use crate::context::func_graph::FuncGraph;
use crate::context::value::AnyValue;

/// A function with what it captured.
#[derive(Debug)]
pub(super) struct Traced {
    pub(super) name: String,
    /// Sorted by name, which is the order of the function's arguments.
    pub(super) inputs: Vec<Spec>,
    /// Sorted by name, which is the order of the function's results.
    pub(super) outputs: Vec<Spec>,
    pub(super) captures: Vec<AnyValue>,
    pub(super) function: Function,
    /// The functions that it may call.
    pub(super) nested: Vec<Function>,
}

/// Makes a function of a closure.
pub(super) fn trace(
    name: &str,
    arguments: &[(&str, DataType, Shape)],
    body: impl FnOnce(&FuncGraph, &BTreeMap<String, Output>) -> Result<Vec<(String, Output)>>,
) -> Result<Traced> {
    let func = FuncGraph::new(None)?;
    let sorted: BTreeMap<&str, (DataType, &Shape)> = arguments
        .iter()
        .map(|(name, dtype, shape)| (*name, (*dtype, shape)))
        .collect();
    if sorted.len() != arguments.len() {
        return Err(Error::argument(format!(
            "signature '{name}' has two arguments of one name"
        )));
    }
    let mut placeholders = BTreeMap::new();
    let mut inputs = Vec::new();
    for (argument, (dtype, shape)) in sorted {
        let output = func.argument(argument, dtype, shape)?;
        placeholders.insert(argument.to_owned(), output);
        inputs.push(Spec {
            name: argument.to_owned(),
            dtype,
            shape: shape.clone(),
        });
    }
    let results = body(&func, &placeholders)?;
    let mut named = BTreeMap::new();
    for (key, output) in results {
        // A result that is an argument or a captured value needs an operation of its own.
        let output = tfp_ops::identity(&func, &output)?;
        if named.insert(key.clone(), output).is_some() {
            return Err(Error::argument(format!(
                "signature '{name}' has two results '{key}'"
            )));
        }
    }
    let captures = func.captures();
    let mut all: Vec<Output> = placeholders.into_values().collect();
    all.extend(captures.iter().map(|(_, input)| input.clone()));
    let outputs: Vec<Output> = named.values().cloned().collect();
    let effects = func.effects();
    let control_names: Vec<String> = (0..effects.len())
        .map(|at| format!("effect_{at}"))
        .collect();
    let controls: Vec<(&str, Operation)> = control_names
        .iter()
        .map(String::as_str)
        .zip(effects)
        .collect();
    let options = FunctionOptions {
        control_outputs: &controls,
        ..FunctionOptions::default()
    };
    let function = make(func.graph(), name, &all, &outputs, &options)?;
    Ok(Traced {
        name: name.to_owned(),
        inputs,
        outputs: specs(named.iter().map(|(key, output)| (key.as_str(), output)))?,
        captures: captures.into_iter().map(|(value, _)| value).collect(),
        function,
        nested: func.graph().functions()?,
    })
}

/// Whether an operation is a variable or a lookup table.
pub(super) fn is_resource(operation: &Operation) -> bool {
    matches!(
        operation.op_type().as_str(),
        "VarHandleOp" | "HashTableV2" | "MutableHashTableV2" | "MutableHashTableOfTensorsV2"
    )
}

/// Makes a function of the part of a graph between some outputs; variables and tables become captures.
pub(super) fn cut(
    name: &str,
    arguments: &[(&str, &Output)],
    results: &[(&str, &Output)],
) -> Result<Traced> {
    let arguments: BTreeMap<&str, &Output> = arguments.iter().copied().collect();
    let results: BTreeMap<&str, &Output> = results.iter().copied().collect();
    let Some(graph) = results
        .values()
        .next()
        .map(|output| output.operation().graph())
    else {
        return Err(Error::argument(format!(
            "signature '{name}' has no results"
        )));
    };
    let given: BTreeSet<String> = arguments.values().map(|output| output.name()).collect();
    let mut handles: Vec<Output> = Vec::new();
    let (mut body, mut seen) = (Vec::new(), BTreeSet::new());
    let mut rest: Vec<Operation> = Vec::new();
    let visit = |output: &Output, rest: &mut Vec<Operation>, handles: &mut Vec<Output>| {
        if given.contains(&output.name()) {
            return;
        }
        if is_resource(output.operation()) {
            if !handles.contains(output) {
                handles.push(output.clone());
            }
            return;
        }
        rest.push(output.operation().clone());
    };
    results
        .values()
        .for_each(|output| visit(output, &mut rest, &mut handles));
    while let Some(operation) = rest.pop() {
        if !seen.insert(operation.name()) {
            continue;
        }
        if operation.op_type() == "Placeholder" {
            return Err(Error::argument(format!(
                "signature '{name}' needs placeholder '{}', which is none of its arguments",
                operation.name()
            )));
        }
        operation
            .inputs()
            .iter()
            .for_each(|input| visit(input, &mut rest, &mut handles));
        rest.extend(operation.control_inputs());
        body.push(operation);
    }
    let inputs: Vec<Output> = arguments.values().map(|&output| output.clone()).collect();
    let all: Vec<Output> = inputs.iter().chain(&handles).cloned().collect();
    let outputs: Vec<Output> = results.values().map(|&output| output.clone()).collect();
    let options = FunctionOptions {
        operations: Some(&body),
        ..FunctionOptions::default()
    };
    let function = make(&graph, name, &all, &outputs, &options)?;
    Ok(Traced {
        name: name.to_owned(),
        inputs: specs(arguments)?,
        outputs: specs(results)?,
        captures: handles.into_iter().map(AnyValue::from).collect(),
        function,
        nested: graph.functions()?,
    })
}

fn specs<'a>(outputs: impl IntoIterator<Item = (&'a str, &'a Output)>) -> Result<Vec<Spec>> {
    let spec = |(name, output): (&str, &Output)| {
        Ok(Spec {
            name: name.to_owned(),
            dtype: Value::dtype(output).base(),
            shape: output.shape()?,
        })
    };
    outputs.into_iter().map(spec).collect()
}

fn make(
    graph: &Graph,
    name: &str,
    inputs: &[Output],
    outputs: &[Output],
    options: &FunctionOptions<'_>,
) -> Result<Function> {
    let plain: String = name
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '_' })
        .collect();
    let names: Vec<String> = (0..outputs.len())
        .map(|at| format!("result_{at}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let options = FunctionOptions {
        append_hash: true,
        output_names: &names,
        ..options.clone()
    };
    graph.to_function(&format!("signature_{plain}"), inputs, outputs, &options)
}
