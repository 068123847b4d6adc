//! Gradients in a graph.
#![allow(
    clippy::mutable_key_type,
    reason = "a value's hash and equality are those of its place, which does not change"
)]

use std::collections::{HashMap, HashSet};

use tfp_core::{Error, ErrorKind, Operation, Output, Result};

use super::engine::{self, Question};
use super::record::OpRecord;
use super::slices::Gradient;
use crate::any::{AnyContext, AnyValue, Mode, foreign};

/// The attribute by which an operation chooses another gradient function.
pub(crate) const GRADIENT_ATTR: &str = "_gradient_op_type";

pub(crate) fn has_gradient_attr(operation: &Operation) -> bool {
    operation.attr_info(GRADIENT_ATTR).is_ok()
}

/// What is returned where nothing depends on an `x`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unconnected {
    /// `None`.
    #[default]
    None,
    /// Zeros of the `x`'s shape.
    Zeros,
}

/// How gradients are computed.
#[derive(Clone, Debug)]
pub struct GradientOptions<'a, V> {
    /// The gradients of each `y`: one per `y`, ones where `None`; empty for ones everywhere.
    pub grad_ys: &'a [Option<V>],
    /// What is returned where nothing depends on an `x`.
    pub unconnected: Unconnected,
    /// Values that count as constants.
    pub stop: &'a [V],
}

impl<V> Default for GradientOptions<'_, V> {
    fn default() -> Self {
        Self {
            grad_ys: &[],
            unconnected: Unconnected::None,
            stop: &[],
        }
    }
}

/// Adds the gradients of the sum of all `ys` with respect to each of `xs` to a graph.
///
/// `cx` is a graph, a scope or a function that is being traced; the `ys` are outputs of its graph.
/// An `x` is an output: a placeholder, a constant, an intermediate value, or the resource of a
/// variable, whose gradient is that of the variable's value. In a function an `x` from outside
/// stands for its captured input. The gradient is `None` where no `y` depends on the `x`; slices
/// ([`gradients_with`]) are made dense.
///
/// An op's gradient is added by its function in the registry; ops without one take TensorFlow's
/// own where there is one. All gradient functions are made of ops that have gradients too, so
/// gradients can be differentiated again.
///
/// # Errors
/// [`ErrorKind::NotFound`] names an op that has no gradient function; [`ErrorKind::Foreign`] an
/// output of another graph; [`ErrorKind::Argument`] a `y` that is not of a floating-point type.
pub fn gradients<C>(cx: &C, ys: &[C::Value], xs: &[C::Value]) -> Result<Vec<Option<C::Value>>>
where
    C: Mode,
{
    gradients_with(cx, ys, xs, &GradientOptions::default())?
        .into_iter()
        .map(|grad| grad.map(|grad| grad.dense(cx)).transpose())
        .collect()
}

/// The same as [`gradients`], with options and with slices as they are.
///
/// # Errors
/// As for [`gradients`], [`ErrorKind::DType`] and [`ErrorKind::Shape`] for a given gradient that
/// does not fit its `y`.
pub fn gradients_with<C>(
    cx: &C,
    ys: &[C::Value],
    xs: &[C::Value],
    options: &GradientOptions<'_, C::Value>,
) -> Result<Vec<Option<Gradient<C::Value>>>>
where
    C: Mode,
{
    let any = |list: &[C::Value]| -> Vec<AnyValue> { list.iter().map(|v| cx.to_any(v)).collect() };
    let given: Vec<Option<AnyValue>> = options
        .grad_ys
        .iter()
        .map(|grad| grad.as_ref().map(|grad| cx.to_any(grad)))
        .collect();
    let found = in_graph(
        &cx.any(),
        &Question {
            ys: &any(ys),
            grad_ys: &given,
            xs: &any(xs),
            stops: &any(options.stop),
        },
    )?;
    let cx_any = cx.any();
    found
        .into_iter()
        .zip(xs)
        .map(|(grad, x)| {
            let grad = match (grad, options.unconnected) {
                (None, Unconnected::Zeros) => {
                    Some(engine::zeros_of(&cx_any, &cx.to_any(x))?.into())
                }
                (grad, _) => grad,
            };
            grad.map(|grad| grad.try_map(|value| cx.from_any(value)))
                .transpose()
        })
        .collect()
}

/// Answers a question about outputs of a graph.
///
/// The context may be a function over the graph of the outputs: it captures what it needs of them.
pub(crate) fn in_graph(
    cx: &AnyContext,
    question: &Question<'_>,
) -> Result<Vec<Option<Gradient<AnyValue>>>> {
    if cx.is_eager() {
        return Err(Error::new(ErrorKind::Argument {
            message: "gradients of what was executed at once need a Tape, which records it; \
                      gradients() differentiates a graph"
                .to_owned(),
        }));
    }
    let Some(first) = question.ys.first() else {
        return Ok(vec![None; question.xs.len()]);
    };
    let graph = first.output()?.operation().graph();
    if let AnyContext::Scope(scope) = cx
        && !scope.graph().is_same(&graph)
    {
        return Err(foreign(format!(
            "output '{}' is not of the graph of the scope that gradients are added to",
            first.output()?.name()
        )));
    }
    let mine = |value: &AnyValue| -> Result<AnyValue> {
        let output = value.output()?;
        if output.operation().graph().is_same(&graph) {
            return Ok(value.clone());
        }
        match cx {
            AnyContext::Func(func) if func.graph().is_same(&graph) => {
                Ok(func.capture(value)?.into())
            }
            _ => Err(foreign(format!(
                "output '{}' is not of the graph of the values to differentiate",
                output.name()
            ))),
        }
    };
    // An output from outside that the function did not capture is one on which nothing depends.
    let of_capture = |value: &AnyValue| match cx {
        AnyContext::Func(func) if func.graph().is_same(&graph) => func
            .captured(value)
            .map_or_else(|| value.clone(), AnyValue::Output),
        _ => value.clone(),
    };
    let ys: Vec<AnyValue> = question.ys.iter().map(&mine).collect::<Result<_>>()?;
    let xs: Vec<AnyValue> = question
        .xs
        .iter()
        .map(|x| match cx {
            AnyContext::Func(_) => Ok(of_capture(x)),
            _ => mine(x),
        })
        .collect::<Result<_>>()?;
    let stops: Vec<AnyValue> = question.stops.iter().map(of_capture).collect();
    let outputs: Vec<&Output> = ys.iter().map(AnyValue::output).collect::<Result<_>>()?;
    let (order, has_loop) = ancestors(&outputs);
    let question = Question {
        ys: &ys,
        grad_ys: question.grad_ys,
        xs: &xs,
        stops: &stops,
    };
    if has_loop {
        return loops(cx, &question);
    }
    let records: Vec<OpRecord> = between(order, &xs)
        .into_iter()
        .map(|(operation, inputs)| {
            OpRecord::of_operation(&operation, inputs.into_iter().map(Into::into).collect())
        })
        .collect();
    let cx = match cx {
        AnyContext::Scope(scope) => AnyContext::Scope(scope.sub_scope("gradients")),
        AnyContext::Func(func) => {
            AnyContext::Func(func.with_scope(|scope| scope.sub_scope("gradients")))
        }
        eager => eager.clone(),
    };
    engine::differentiate(&cx, &records.iter().collect::<Vec<_>>(), &question)
}

type Ordered = Vec<(Operation, Vec<Output>)>;

/// Returns the operations on which outputs depend, each after its inputs, and whether one of them
/// belongs to a loop of single operations.
fn ancestors(ys: &[&Output]) -> (Ordered, bool) {
    let mut seen: HashSet<Operation> = HashSet::new();
    let mut order = Vec::new();
    let mut has_loop = false;
    let mut stack: Vec<(Operation, Option<Vec<Output>>)> = ys
        .iter()
        .map(|output| (output.operation().clone(), None))
        .collect();
    while let Some((operation, inputs)) = stack.pop() {
        if let Some(inputs) = inputs {
            order.push((operation, inputs));
            continue;
        }
        if !seen.insert(operation.clone()) {
            continue;
        }
        let inputs = operation.inputs();
        has_loop |= inputs.len() == 1 && matches!(operation.op_type().as_str(), "Exit" | "RefExit");
        let next: Vec<_> = inputs
            .iter()
            .map(|input| input.operation())
            .filter(|operation| !seen.contains(operation))
            .map(|operation| (operation.clone(), None))
            .collect();
        stack.push((operation, Some(inputs)));
        stack.extend(next);
    }
    (order, has_loop)
}

/// Returns the operations that depend on an `x`.
fn between(order: Ordered, xs: &[AnyValue]) -> Ordered {
    let mut reached: HashSet<Output> = HashSet::new();
    let mut active: HashSet<Operation> = HashSet::new();
    reached.extend(xs.iter().filter_map(|x| x.output().ok().cloned()));
    order
        .into_iter()
        .filter(|(operation, inputs)| {
            let depends = inputs
                .iter()
                .any(|input| reached.contains(input) || active.contains(input.operation()));
            if depends {
                active.insert(operation.clone());
            }
            depends
        })
        .collect()
}

/// Differentiates a graph with loops of single operations, which only TensorFlow itself can.
fn loops(cx: &AnyContext, question: &Question<'_>) -> Result<Vec<Option<Gradient<AnyValue>>>> {
    let outputs = |list: &[AnyValue]| -> Result<Vec<Output>> {
        list.iter().map(|value| value.output().cloned()).collect()
    };
    let (ys, xs) = (outputs(question.ys)?, outputs(question.xs)?);
    let graph = ys[0].operation().graph();
    if !question.stops.is_empty() || !cx.graph().is_some_and(|own| own.is_same(&graph)) {
        return Err(Error::argument(
            "a loop of single operations (Enter, Exit) can be differentiated only in its own graph \
             and without values to stop at",
        ));
    }
    let mut dys = Vec::new();
    for (y, given) in question.ys.iter().zip(
        question
            .grad_ys
            .iter()
            .map(Option::as_ref)
            .chain(std::iter::repeat(None)),
    ) {
        let grad = match given {
            Some(grad) => grad.output()?.clone(),
            None => tfp_ops::ones_like(cx, y)?.output()?.clone(),
        };
        dys.push(grad);
    }
    let mut unique: Vec<Output> = Vec::new();
    for x in &xs {
        if !unique.contains(x) {
            unique.push(x.clone());
        }
    }
    let found = graph.add_gradients(None, &ys, &unique, &dys)?;
    let found: HashMap<Output, Option<Output>> = unique.into_iter().zip(found).collect();
    Ok(xs
        .iter()
        .map(|x| {
            let grad = found.get(x).cloned().flatten()?;
            Some(AnyValue::Output(grad).into())
        })
        .collect())
}
