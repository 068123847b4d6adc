//! Questions about outputs of a graph.
#![allow(
    clippy::mutable_key_type,
    reason = "a value's hash and equality are those of its place, which does not change"
)]

use std::collections::{HashMap, HashSet};

use tfp_core::{Error, ErrorKind, Operation, Output, Result};

use super::engine::{self, Question};
use crate::context::any::AnyContext;
use crate::context::record::OpRecord;
use crate::context::slices::Gradient;
use crate::context::value::{AnyValue, foreign};

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
        calls: question.calls,
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
