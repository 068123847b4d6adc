//! Gradients that a model has for operations of its functions, as `tf.custom_gradient` makes them.

use std::collections::BTreeSet;

use tfp_core::wire::Reader;
use tfp_core::{DataType, Error, Graph, Output, Result};
use tfp_ops::stateful_partitioned_call;

use super::proto::{Kind, MetaGraph};
use super::structure::Structure;
use crate::context::value::AnyValue;
use crate::gradient::register_gradient;

/// A `RegisteredGradient`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Registered {
    /// The function of the library that computes the gradient.
    pub(super) function: String,
    /// What operations name in the attribute `_gradient_op_type`.
    pub(super) op_type: String,
}

/// Reads the gradients of a `GraphDef`.
pub(super) fn registered(graph_def: &[u8]) -> Result<Vec<Registered>> {
    let mut list = Vec::new();
    for field in Reader::new("GraphDef", graph_def) {
        let (2, library) = field? else { continue };
        for field in Reader::new("FunctionDefLibrary", library.bytes()?) {
            let (3, entry) = field? else { continue };
            let (mut function, mut op_type) = (String::new(), String::new());
            for field in Reader::new("RegisteredGradient", entry.bytes()?) {
                match field? {
                    (1, value) => function = value.text()?.to_owned(),
                    (2, value) => op_type = value.text()?.to_owned(),
                    _ => {}
                }
            }
            list.push(Registered { function, op_type });
        }
    }
    Ok(list)
}

/// What follows the gradients in the arguments of a gradient's function.
#[derive(Clone, Debug)]
enum Capture {
    /// A tensor of the body that is differentiated: its name there, and its place if it is an argument.
    Inner(String, Option<usize>),
    /// A variable or constant.
    Outer(AnyValue),
}

impl Capture {
    fn in_body(&self, graph: &Graph) -> Result<AnyValue> {
        match self {
            Self::Outer(value) => Ok(value.clone()),
            Self::Inner(_, Some(index)) => {
                Ok(graph.output(&format!("tfp_argument_{index}:0"))?.into())
            }
            Self::Inner(name, None) => Ok(graph.output(name)?.into()),
        }
    }
}

/// Registers the gradient of operations with a type of gradient; one whose description is damaged is
/// left out, and asking for it says that there is none.
///
/// `tensor` gives the tensor of an object, and `arguments` the names of a function's arguments.
pub(super) fn register(
    meta: &MetaGraph,
    gradient: &Registered,
    suffix: &str,
    tensor: &dyn Fn(usize) -> Option<AnyValue>,
    arguments: &dyn Fn(&str) -> Result<Vec<String>>,
    types: Vec<DataType>,
) -> Result<()> {
    let Some(concrete) = meta.functions.get(&gradient.function) else {
        return Ok(());
    };
    let mut captures = Vec::with_capacity(concrete.bound_inputs.len());
    for &at in &concrete.bound_inputs {
        let captured = match &meta.nodes[at].kind {
            Kind::Captured(name, function) => {
                let argument = normalized(name);
                let place = arguments(function)?
                    .iter()
                    .position(|name| *name == argument);
                Some(Capture::Inner(name.clone(), place))
            }
            _ => tensor(at).map(Capture::Outer),
        };
        let Some(captured) = captured else {
            return Ok(());
        };
        captures.push(captured);
    }
    // A result per input of the operation, of which the function returns those that are something.
    let (Structure::List(items) | Structure::Tuple(items)) = &concrete.outputs else {
        return Ok(());
    };
    let is_given: Vec<bool> = items
        .iter()
        .map(|item| !matches!(item, Structure::Nothing | Structure::Value(_)))
        .collect();
    let takes = concrete.inputs.flatten().len();
    if is_given.iter().filter(|given| **given).count() != types.len() {
        return Ok(());
    }
    let function = format!("{}{suffix}", gradient.function);
    register_gradient(&format!("{}{suffix}", gradient.op_type), move |call| {
        let outputs: Vec<&Output> = call
            .op()
            .outputs()
            .iter()
            .map(AnyValue::output)
            .collect::<Result<_>>()?;
        let Some(first) = outputs.first().filter(|_| outputs.len() >= takes) else {
            return Err(Error::argument(format!(
                "the gradient '{function}' takes {takes} gradients, of an operation of {} results",
                outputs.len()
            )));
        };
        let graph = first.operation().graph();
        let mut all = (0..takes)
            .map(|at| call.grad(at))
            .collect::<Result<Vec<_>>>()?;
        for capture in &captures {
            all.push(capture.in_body(&graph)?);
        }
        let name = function.as_str();
        let found =
            stateful_partitioned_call(call.context(), &all, &types, name, Default::default())?;
        let mut found = found.into_iter();
        let results = is_given
            .iter()
            .map(|given| given.then(|| found.next()).flatten().map(Into::into));
        Ok(results.collect())
    });
    Ok(())
}

/// The name that a placeholder of a graph has as an argument of a function.
fn normalized(tensor: &str) -> String {
    let name = tensor.split(':').next().unwrap_or(tensor);
    let letter = |letter: char| match letter {
        'A'..='Z' => letter.to_ascii_lowercase(),
        'a'..='z' | '0'..='9' | '_' => letter,
        _ => '_',
    };
    name.chars().map(letter).collect()
}

/// Returns the types of gradients that operations may name.
pub(super) fn op_types(list: &[Registered]) -> BTreeSet<&str> {
    list.iter()
        .map(|gradient| gradient.op_type.as_str())
        .collect()
}
