//! Reverse accumulation over a list of ops, which a graph or a tape gives.
#![allow(
    clippy::mutable_key_type,
    reason = "a value's hash and equality are those of its place, which does not change"
)]

use std::collections::{HashMap, HashSet};

use tfp_core::{DataType, Error, ErrorKind, Operation, Output, Result, Shape};
use tfp_ops as ops;

use super::registry::{self, Known};
use super::rule::{Backward, Rule};
use super::slices;
use super::swish::{swish, swishes};
use crate::context::any::AnyContext;
use crate::context::record::OpRecord;
use crate::context::slices::Gradient;
use crate::context::value::{AnyValue, foreign, is_differentiable};

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

/// A question about gradients.
pub(crate) struct Question<'a> {
    pub(crate) ys: &'a [AnyValue],
    pub(crate) grad_ys: &'a [Option<AnyValue>],
    pub(crate) xs: &'a [AnyValue],
    pub(crate) stops: &'a [AnyValue],
    /// The gradient function of ops that call functions.
    pub(crate) calls: Rule,
}

/// Returns the gradients of `ys` at the beginning of the way back.
fn seeds(
    cx: &AnyContext,
    question: &Question<'_>,
) -> Result<HashMap<AnyValue, Vec<Gradient<AnyValue>>>> {
    let (ys, grad_ys) = (question.ys, question.grad_ys);
    if !grad_ys.is_empty() && grad_ys.len() != ys.len() {
        return Err(Error::argument(format!(
            "{} output gradients are given for {} values to differentiate: expected as many, or none",
            grad_ys.len(),
            ys.len()
        )));
    }
    let mut found: HashMap<AnyValue, Vec<Gradient<AnyValue>>> = HashMap::new();
    for (index, y) in ys.iter().enumerate() {
        let given = grad_ys.get(index).and_then(Option::as_ref);
        let grad = match given {
            Some(grad) => {
                if y.dtype() != DataType::RESOURCE && grad.dtype() != y.dtype() {
                    return Err(Error::new(ErrorKind::DType {
                        what: format!("the given gradient of value {index}"),
                        expected: y.dtype(),
                        found: grad.dtype(),
                    }));
                }
                if !matches!(y.dtype(), DataType::RESOURCE | DataType::VARIANT) {
                    let (shape, found) = (y.shape()?, grad.shape()?);
                    if !shape.is_compatible_with(&found) {
                        return Err(Error::new(ErrorKind::Shape {
                            what: format!("the given gradient of value {index}"),
                            expected: format!("shape {shape}, that of the value"),
                            found,
                        }));
                    }
                }
                grad.clone()
            }
            None if y.dtype().is_float() => ones_like(cx, y)?,
            None => {
                return Err(Error::new(ErrorKind::Argument {
                    message: format!(
                        "value {index} to differentiate is {}: expected a real floating-point \
                         tensor, or a given gradient",
                        y.dtype()
                    ),
                }));
            }
        };
        found.entry(y.clone()).or_default().push(grad.into());
    }
    Ok(found)
}

fn ones_like(cx: &AnyContext, y: &AnyValue) -> Result<AnyValue> {
    if y.dtype() == DataType::FLOAT && y.shape()? == Shape::scalar() {
        return tfp_core::Context::constant(cx, &tfp_core::Tensor::scalar(1.0_f32)?);
    }
    ops::ones_like(cx, y)
}

/// Returns the gradient of each `x` by going back over `records`, which are in the order in which
/// they were added or executed; `None` where no `y` depends on the `x`.
pub(crate) fn differentiate(
    cx: &AnyContext,
    records: &[&OpRecord],
    question: &Question<'_>,
) -> Result<Vec<Option<Gradient<AnyValue>>>> {
    let mut grads = seeds(cx, question)?;
    let wanted: HashSet<&AnyValue> = question.xs.iter().collect();
    let stops: HashSet<&AnyValue> = question.stops.iter().collect();
    let mut active: HashSet<&AnyValue> = wanted.clone();
    // For each op, which inputs depend on an `x`; none for an op that does not matter.
    let mut needs: Vec<Vec<bool>> = Vec::with_capacity(records.len());
    for record in records {
        let need: Vec<bool> = record
            .inputs
            .iter()
            .map(|input| active.contains(input) && !stops.contains(input))
            .collect();
        if !need.contains(&true) {
            needs.push(Vec::new());
            continue;
        }
        if !matches!(known(record, question.calls), Some(Known::Stops)) {
            active.extend(
                record
                    .outputs
                    .iter()
                    .filter(|output| is_differentiable(output.dtype())),
            );
        }
        needs.push(need);
    }
    let is_plain =
        |record: &OpRecord| matches!(known(record, question.calls), Some(Known::Rule(_)));
    let is_kept = |value: &AnyValue| stops.contains(value) || wanted.contains(value);
    let swishes = swishes(records, is_plain, is_kept);
    let mut results: HashMap<AnyValue, Gradient<AnyValue>> = HashMap::new();
    for (record, needs) in records.iter().zip(&needs).rev() {
        if needs.is_empty() {
            continue;
        }
        let mut of_outputs = Vec::with_capacity(record.outputs.len());
        for output in &record.outputs {
            let grad = match grads.remove(output) {
                Some(list) => Some(slices::sum(cx, list)?),
                None => None,
            };
            if let Some(grad) = &grad
                && wanted.contains(output)
            {
                results.insert(output.clone(), grad.clone());
            }
            of_outputs.push(grad);
        }
        if of_outputs.iter().all(Option::is_none) {
            continue;
        }
        let of_inputs = match record
            .outputs
            .first()
            .is_some_and(|one| swishes.contains(one))
        {
            true => swish(&Backward {
                cx,
                op: record,
                grads: &of_outputs,
                needs,
            })?,
            false => backward(cx, record, question.calls, &of_outputs, needs)?,
        };
        if of_inputs.len() != record.inputs.len() {
            return Err(Error::argument(format!(
                "the gradient function of {} returned {} gradients, the op has {} inputs",
                record.op_type,
                of_inputs.len(),
                record.inputs.len()
            )));
        }
        for ((input, grad), need) in record.inputs.iter().zip(of_inputs).zip(needs) {
            if let Some(grad) = grad
                && *need
            {
                grads.entry(input.clone()).or_default().push(grad);
            }
        }
    }
    question
        .xs
        .iter()
        .map(|x| {
            if let Some(grad) = results.get(x) {
                return Ok(Some(grad.clone()));
            }
            let Some(list) = grads.remove(x) else {
                return Ok(None);
            };
            let grad = slices::sum(cx, list)?;
            results.insert(x.clone(), grad.clone());
            Ok(Some(grad))
        })
        .collect()
}

/// Returns what is known of the op's gradient.
fn known(record: &OpRecord, calls: Rule) -> Option<Known> {
    if let Some(rule) = &record.custom {
        return Some(Known::User(rule.clone()));
    }
    if let Some(operation) = record.operation()
        && has_gradient_attr(operation)
        && let Ok(name) = record.text(GRADIENT_ATTR)
    {
        // A name that nobody registered is an error when the gradient is asked for.
        return registry::find(&name, calls);
    }
    registry::find(&record.op_type, calls)
}

/// Returns the gradients of an op's inputs.
fn backward(
    cx: &AnyContext,
    record: &OpRecord,
    calls: Rule,
    grads: &[Option<Gradient<AnyValue>>],
    needs: &[bool],
) -> Result<Vec<Option<Gradient<AnyValue>>>> {
    let call = Backward {
        cx,
        op: record,
        grads,
        needs,
    };
    match known(record, calls) {
        Some(Known::Rule(rule)) => rule(&call),
        Some(Known::User(rule)) => (rule.0)(cx, record, grads, needs),
        Some(Known::Stops) => Ok(vec![None; record.inputs.len()]),
        None => from_tensorflow(&call),
    }
}

#[cold]
fn missing(record: &OpRecord) -> Error {
    Error::new(ErrorKind::NotFound {
        what: "gradient of op",
        name: record.op_type.clone(),
        place: format!(
            "the registry of {} ops, which {} asks for; register_gradient adds one",
            registry::count(),
            record.place()
        ),
    })
}

/// Asks TensorFlow's own registry, which only graphs have.
fn from_tensorflow(call: &Backward<'_>) -> Result<Vec<Option<Gradient<AnyValue>>>> {
    let (Some(operation), Some(graph)) = (call.op.operation(), call.cx.graph()) else {
        return Err(missing(call.op));
    };
    if !operation.graph().is_same(graph) || has_gradient_attr(operation) {
        return Err(missing(call.op));
    }
    let (mut ys, mut dys) = (Vec::new(), Vec::new());
    for (index, output) in call.op.outputs.iter().enumerate() {
        if let Some(grad) = call.grad_or_none(index)? {
            ys.push(output.output()?.clone());
            dys.push(grad.output()?.clone());
        }
    }
    let mut xs: Vec<Output> = Vec::new();
    for (input, _) in call
        .op
        .inputs
        .iter()
        .zip(call.needs)
        .filter(|(_, need)| **need)
    {
        let input = input.output()?;
        if !xs.contains(input) {
            xs.push(input.clone());
        }
    }
    let found = graph.add_gradients(None, &ys, &xs, &dys).map_err(|error| {
        let mut missing = missing(call.op);
        if let ErrorKind::NotFound { place, .. } = missing.kind() {
            missing = Error::new(ErrorKind::NotFound {
                what: "gradient of op",
                name: call.op.op_type.clone(),
                place: format!("{place}; TensorFlow's own registry says: {error}"),
            });
        }
        missing
    })?;
    let mut found: HashMap<Output, Option<Output>> = xs.into_iter().zip(found).collect();
    // An input that is there twice has the sum at its first place.
    call.op
        .inputs
        .iter()
        .map(|input| {
            let grad = found.remove(input.output()?).flatten();
            Ok(grad.map(|grad| AnyValue::Output(grad).into()))
        })
        .collect()
}

/// Returns zeros for an `x` on which nothing depends.
pub(crate) fn zeros_of(cx: &AnyContext, x: &AnyValue) -> Result<AnyValue> {
    if x.dtype() == DataType::RESOURCE {
        return Err(foreign(
            "zeros were asked for as the gradient of a variable on which nothing depends: \
             the type of its value is not known here",
        ));
    }
    ops::zeros_like(cx, x)
}
