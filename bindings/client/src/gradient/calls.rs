//! Gradients of ops that call functions: calls, branches and loops.
//!
//! A call is exchanged for one that also returns the intermediate values that its gradient needs;
//! the gradient is a call of another function, of those values. In a graph the operations that took
//! the old call's outputs take the new one's; a tape calls the new one from the start.

mod branches;
mod call;
mod derivative;
pub(crate) mod loops;
mod plan;

use std::sync::Arc;

use tfp_core::{DataType, Error, Operation, Output, Result, Shape, TensorHandle};

use self::plan::{Plan, Ran, Wanted};
use super::rule::{Backward, InputGradients, shared};
use crate::context::any::{AnyContext, Mode};
use crate::context::kept::Kept;
use crate::context::record::OpRecord;
use crate::context::tape::{CALLS, Calls, READS, Tape};
use crate::context::value::{AnyValue, is_differentiable};
use crate::function::body::{Body, Library};

/// Returns the names of the functions that an op calls.
fn called(op: &OpRecord) -> Result<Vec<String>> {
    Ok(match op.op_type() {
        "PartitionedCall" | "StatefulPartitionedCall" => vec![op.function("f")?],
        "While" | "StatelessWhile" => vec![op.function("cond")?, op.function("body")?],
        "Case" | "StatelessCase" => op.function_list("branches")?,
        _ => vec![op.function("then_branch")?, op.function("else_branch")?],
    })
}

/// Returns the plan of a call on a tape, one that was made before where there is one.
fn repeated_plan(cx: &AnyContext, op: &OpRecord, wanted: &Wanted<'_>) -> Result<Arc<dyn Plan>> {
    let names = called(op)?;
    let Some(kept) = own(&names) else {
        return plan(cx, op, wanted).map(Arc::from);
    };
    let mut key = format!(
        "{} {names:?} {:?} {:?}",
        op.op_type(),
        wanted.grads,
        wanted.needs
    );
    for input in op.inputs() {
        key.push_str(&format!(" {}", known_shape(input)?));
    }
    let found = kept.derived(key, || plan(cx, op, wanted).map(Arc::<dyn Plan>::from))?;
    Ok(Arc::clone(&found))
}

/// Returns what holds the first of the functions, if all were traced by this crate or are of a model: other
/// names may mean another function in another context.
fn own(names: &[String]) -> Option<Arc<Kept>> {
    let first = Kept::find(names.first()?)?;
    let is_own = |name: &String| Kept::find(name).is_some();
    names.iter().all(is_own).then_some(first)
}

fn plan(cx: &AnyContext, op: &OpRecord, wanted: &Wanted<'_>) -> Result<Box<dyn Plan>> {
    let shapes: Vec<Shape> = op.inputs().iter().map(known_shape).collect::<Result<_>>()?;
    Ok(match op.op_type() {
        "PartitionedCall" | "StatefulPartitionedCall" => {
            Box::new(call::CallPlan::new(cx, op, &shapes, wanted)?)
        }
        "While" | "StatelessWhile" => Box::new(loops::LoopPlan::new(cx, op, wanted)?),
        _ => Box::new(branches::BranchPlan::new(cx, op, &shapes, wanted)?),
    })
}

/// Returns a shape where tensors have one.
fn known_shape(value: &AnyValue) -> Result<Shape> {
    match value.dtype() {
        DataType::RESOURCE | DataType::VARIANT => Ok(Shape::unknown()),
        _ => value.shape(),
    }
}

/// The gradient function of calls in a graph.
pub(super) fn gradient(c: &Backward<'_>) -> Result<InputGradients> {
    let Some(operation) = c.op.operation() else {
        return Err(Error::argument(format!(
            "a call by {} was recorded without what its gradient needs",
            c.op.op_type()
        )));
    };
    let graph = operation.graph();
    let grads: Vec<Option<AnyValue>> = (0..c.op.outputs().len())
        .map(|index| c.grad_or_none(index))
        .collect::<Result<_>>()?;
    let present: Vec<bool> = grads.iter().map(Option::is_some).collect();
    // The place of the call, waiting for what the call waits for.
    let scope = graph.scope().on_device(&operation.device())?;
    let place = AnyContext::Scope(scope.after(&operation.control_inputs())?);
    let wanted = Wanted {
        grads: &present,
        needs: c.needs,
    };
    // A function that is traced also calls those of the contexts around it.
    let library = match c.cx {
        AnyContext::Func(func) if func.graph().is_same(&graph) => c.cx,
        _ => &place,
    };
    let plan = plan(library, c.op, &wanted)?;
    let ran = plan.forward(&place, c.op.inputs())?;
    exchange(c.cx, operation, &ran.0)?;
    let found = plan.backward(c.cx, c.op.inputs(), &ran, &grads)?;
    Ok(found.into_iter().map(|grad| grad.map(Into::into)).collect())
}

/// Gives the consumers of an operation the outputs of another one.
fn exchange(cx: &AnyContext, old: &Operation, new: &[AnyValue]) -> Result<()> {
    let graph = old.graph();
    let new: Vec<&Output> = new.iter().map(AnyValue::output).collect::<Result<_>>()?;
    for (index, output) in new.iter().enumerate() {
        for (consumer, input) in old.consumers(index) {
            graph.update_edge(output, &consumer, input)?;
        }
    }
    if let Some(output) = new.first() {
        for consumer in old.control_outputs() {
            let mut controls = consumer.control_inputs();
            for control in controls.iter_mut().filter(|control| *control == old) {
                control.clone_from(output.operation());
            }
            graph.set_control_inputs(&consumer, &controls)?;
        }
    }
    if let AnyContext::Func(func) = cx {
        for (index, output) in new.iter().enumerate() {
            func.replace_captured(&old.output(index)?.into(), &(*output).into());
        }
        if let Some(output) = new.first() {
            func.replace_effect(old, output.operation());
        }
    }
    Ok(())
}

/// Returns, for each input of a call, whether it is a variable that the functions read.
fn read_variables(cx: &AnyContext, op: &OpRecord, names: &[String]) -> Result<Vec<bool>> {
    let first = usize::from(op.op_type().ends_with("If") || op.op_type().ends_with("Case"));
    let mut found = vec![false; op.inputs().len()];
    for name in names {
        let body = Body::import(&Library::of(cx, name)?, &[])?;
        for (input, reads) in body.inputs.iter().zip(&mut found[first..]) {
            *reads |= input.dtype() == DataType::RESOURCE
                && input.operation().consumers(0).iter().any(|(consumer, _)| {
                    let op_type = consumer.op_type();
                    READS.contains(&op_type.as_str()) || CALLS.contains(&op_type.as_str())
                });
        }
    }
    Ok(found)
}

/// The calls of a tape.
pub(super) struct OnTape;

impl Calls for OnTape {
    fn read_variables(&self, cx: &AnyContext, op: &OpRecord) -> Result<Vec<bool>> {
        let names = called(op)?;
        match own(&names) {
            Some(kept) => {
                let key = format!("{} {names:?}", op.op_type());
                let found = kept.derived(key, || read_variables(cx, op, &names))?;
                Ok(found.to_vec())
            }
            None => read_variables(cx, op, &names),
        }
    }

    fn execute(
        &self,
        tape: &Tape,
        op: OpRecord,
        tracked: &[bool],
    ) -> Result<Option<Vec<TensorHandle>>> {
        let parent = tape.parent();
        let any: AnyContext = tape.any();
        let types = match op.op_type() {
            "While" | "StatelessWhile" => op.inputs().iter().map(AnyValue::dtype).collect(),
            _ => match op.attr("Tout")? {
                tfp_core::Attr::TypeList(types) => types,
                _ => Vec::new(),
            },
        };
        let flows: Vec<bool> = types
            .iter()
            .map(|&dtype| is_differentiable(dtype) && dtype != DataType::RESOURCE)
            .collect();
        if !flows.contains(&true) {
            return Ok(None);
        }
        for function in op.functions() {
            parent.add_function(function)?;
        }
        let wanted = Wanted {
            grads: &flows,
            needs: tracked,
        };
        let plan = repeated_plan(&any, &op, &wanted)?;
        let (outputs, kept) = plan.forward(parent, op.inputs())?;
        let handles: Vec<TensorHandle> = outputs
            .iter()
            .map(|value| value.handle().cloned())
            .collect::<Result<_>>()?;
        let inputs: Vec<TensorHandle> = op
            .inputs()
            .iter()
            .map(|value| value.handle().cloned())
            .collect::<Result<_>>()?;
        let ran = (outputs, kept);
        let rule = shared(move |c: &Backward<'_>| {
            let grads: Vec<Option<AnyValue>> = flows
                .iter()
                .enumerate()
                .map(|(index, flows)| match flows {
                    true => c.grad(index).map(Some),
                    false => Ok(None),
                })
                .collect::<Result<_>>()?;
            let found = plan.backward(c.cx, c.op.inputs(), &ran, &grads)?;
            Ok(found.into_iter().map(|grad| grad.map(Into::into)).collect())
        });
        let flowing: Vec<TensorHandle> = handles.clone();
        tape.record_custom(op.op_type(), inputs, &flowing, rule)?;
        Ok(Some(handles))
    }
}
