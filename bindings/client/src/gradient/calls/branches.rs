//! `If` and `Case`.

use tfp_core::{AttrValue, DataType, Error, FuncRef, OpBuilder, Output, Result, Shape, Tensor};
use tfp_ops as ops;

use super::derivative::Derivative;
use super::{Plan, Ran, Wanted};
use crate::context::any::{AnyContext, Mode};
use crate::context::func_graph::FuncGraph;
use crate::context::record::OpRecord;
use crate::context::run::Run;
use crate::context::value::AnyValue;
use crate::function::traced::Traced;

pub(super) struct BranchPlan {
    is_case: bool,
    forward: Vec<Traced>,
    backward: Vec<Traced>,
    /// The number of results of the original call.
    count: usize,
    /// For each input behind the first, the result of `backward` that is its gradient.
    results: Vec<Option<usize>>,
}

impl BranchPlan {
    pub(super) fn new(
        cx: &AnyContext,
        op: &OpRecord,
        shapes: &[Shape],
        wanted: &Wanted<'_>,
    ) -> Result<Self> {
        let is_case = op.op_type().ends_with("Case");
        let names = match is_case {
            true => op.function_list("branches")?,
            false => vec![op.function("then_branch")?, op.function("else_branch")?],
        };
        let inner = Wanted {
            grads: wanted.grads,
            needs: &wanted.needs[1..],
        };
        let derivatives: Vec<Derivative> = names
            .iter()
            .map(|name| Derivative::new(cx, name, &shapes[1..], &inner))
            .collect::<Result<_>>()?;
        if derivatives
            .iter()
            .any(|branch| branch.body.inputs.len() + 1 != shapes.len())
        {
            return Err(Error::argument(format!(
                "a branch of {} takes another number of values than it is given",
                op.op_type()
            )));
        }
        let kept: Vec<Vec<Output>> = derivatives.iter().map(Derivative::kept).collect();
        let inputs = shapes.len() - 1;
        // An input has a gradient when it has one in any branch.
        let mut results = vec![None; inputs];
        let mut next = 0;
        for (index, result) in results.iter_mut().enumerate() {
            if derivatives
                .iter()
                .any(|branch| branch.results[index].is_some())
            {
                *result = Some(next);
                next += 1;
            }
        }
        let forward = (0..names.len())
            .map(|branch| forward_branch(&derivatives, &kept, branch))
            .collect::<Result<_>>()?;
        let backward = (0..names.len())
            .map(|branch| backward_branch(&derivatives, &kept, branch, &results))
            .collect::<Result<_>>()?;
        Ok(Self {
            is_case,
            forward,
            backward,
            count: derivatives
                .first()
                .map_or(0, |first| first.body.outputs.len()),
            results,
        })
    }
}

/// The branch with what it keeps, and stand-ins for what the others keep.
fn forward_branch(
    derivatives: &[Derivative],
    kept: &[Vec<Output>],
    branch: usize,
) -> Result<Traced> {
    let own = &derivatives[branch];
    let core = own.with_results(&kept[branch])?;
    let func = FuncGraph::of_body()?;
    let cx = func.any();
    let args = arguments_like(&func, &own.body.inputs)?;
    let mut outputs = core.call(&cx, &args)?;
    let mine = outputs.split_off(own.body.outputs.len());
    for (other, values) in kept.iter().enumerate() {
        if other == branch {
            outputs.extend(mine.iter().cloned());
            continue;
        }
        for value in values {
            outputs.push(stand_in(&cx, value.dtype())?);
        }
    }
    finish("branch", &func, &outputs)
}

/// A value of a type that nobody looks at.
fn stand_in(cx: &AnyContext, dtype: DataType) -> Result<AnyValue> {
    match dtype {
        DataType::VARIANT => ops::optional_none(cx),
        DataType::STRING => cx.constant_of(&Tensor::from_string("")?),
        _ => cx.constant_of(&Tensor::zeros(dtype, &[])?),
    }
}

fn arguments_like(func: &FuncGraph, inputs: &[Output]) -> Result<Vec<AnyValue>> {
    inputs
        .iter()
        .map(|input| {
            let shape = match input.dtype() {
                DataType::RESOURCE | DataType::VARIANT => Shape::unknown(),
                _ => input.shape()?,
            };
            func.argument("argument", input.dtype(), &shape)
                .map(Into::into)
        })
        .collect()
}

fn finish(name: &str, func: &FuncGraph, outputs: &[AnyValue]) -> Result<Traced> {
    let cx = func.any();
    let outputs: Vec<Output> = outputs
        .iter()
        .map(|value| ops::identity(&cx, value)?.output().cloned())
        .collect::<Result<_>>()?;
    Traced::of(name, func, &func.arguments(), &outputs)
}

/// The gradients of a branch: takes the gradients, all inputs, and what all branches keep.
fn backward_branch(
    derivatives: &[Derivative],
    kept: &[Vec<Output>],
    branch: usize,
    results: &[Option<usize>],
) -> Result<Traced> {
    let own = &derivatives[branch];
    let func = FuncGraph::of_body()?;
    let cx = func.any();
    let grad_count = own.core.inputs.len() - own.sources.len();
    let mut args = Vec::new();
    for (dtype, _) in &own.core.inputs[..grad_count] {
        args.push(func.argument("gradient", *dtype, &Shape::unknown())?.into());
    }
    let inputs = arguments_like(&func, &own.body.inputs)?;
    let mut mine = Vec::new();
    for (other, values) in kept.iter().enumerate() {
        for value in values {
            // The others' have any shape here.
            let value: AnyValue = func
                .argument("kept", value.dtype(), &Shape::unknown())?
                .into();
            if other == branch {
                mine.push(value);
            }
        }
    }
    args.extend(own.arguments(&inputs, &mine));
    let found = own.core.call(&cx, &args)?;
    let mut outputs = Vec::new();
    for (index, input) in inputs
        .iter()
        .enumerate()
        .filter(|(index, _)| results[*index].is_some())
    {
        outputs.push(match own.results[index].and_then(|at| found.get(at)) {
            Some(grad) => grad.clone(),
            None => zeros(&cx, input, || of_variable(derivatives, index))?,
        });
    }
    finish("branch_gradient", &func, &outputs)
}

/// The type of a variable's gradient, as a branch that has one tells it.
fn of_variable(derivatives: &[Derivative], input: usize) -> DataType {
    derivatives
        .iter()
        .find_map(|branch| {
            let at = branch.results[input]?;
            branch.core.outputs.get(at).map(|(dtype, _)| *dtype)
        })
        .unwrap_or(DataType::FLOAT)
}

/// Returns zeros for a tensor or a variable.
pub(super) fn zeros(
    cx: &AnyContext,
    like: &AnyValue,
    of_variable: impl FnOnce() -> DataType,
) -> Result<AnyValue> {
    if like.dtype() != DataType::RESOURCE {
        return ops::zeros_like(cx, like);
    }
    let shape = ops::variable_shape(cx, like, ops::VariableShapeOptions::default())?;
    let zero = cx.constant_of(&Tensor::zeros(of_variable(), &[])?)?;
    ops::fill(cx, shape, zero)
}

/// Calls one of several functions with the same inputs and results.
fn choose(
    cx: &AnyContext,
    is_case: bool,
    branches: &[Traced],
    which: &AnyValue,
    args: &[AnyValue],
) -> Result<Vec<AnyValue>> {
    let Some(first) = branches.first() else {
        return Ok(Vec::new());
    };
    for branch in branches {
        branch.install(cx)?;
    }
    let is_stateful = branches.iter().any(|branch| branch.is_stateful);
    let op_type = match (is_case, is_stateful) {
        (true, true) => "Case",
        (true, false) => "StatelessCase",
        (false, true) => "If",
        (false, false) => "StatelessIf",
    };
    let names: Vec<FuncRef<'_>> = branches
        .iter()
        .map(|branch| FuncRef::named(branch.function.name()))
        .collect();
    let types = first.types();
    let call = OpBuilder::new(op_type)?
        .input(which)
        .list(args)
        .attr("Tout", AttrValue::TypeList(&types))?;
    let call = match is_case {
        true => call.attr("branches", AttrValue::FuncList(&names))?,
        false => call
            .attr("then_branch", names[0])?
            .attr("else_branch", names[1])?,
    };
    Ok(call.execute(cx)?.all())
}

impl Plan for BranchPlan {
    fn forward(&self, cx: &AnyContext, inputs: &[AnyValue]) -> Result<Ran> {
        let mut outputs = choose(cx, self.is_case, &self.forward, &inputs[0], &inputs[1..])?;
        let kept = outputs.split_off(self.count);
        Ok((outputs, kept))
    }

    fn backward(
        &self,
        cx: &AnyContext,
        inputs: &[AnyValue],
        ran: &Ran,
        grads: &[Option<AnyValue>],
    ) -> Result<Vec<Option<AnyValue>>> {
        let mut found = vec![None; inputs.len()];
        if self.results.iter().all(Option::is_none) {
            return Ok(found);
        }
        let mut args: Vec<AnyValue> = grads.iter().flatten().cloned().collect();
        args.extend(inputs[1..].iter().cloned());
        args.extend(ran.1.iter().cloned());
        let values = choose(cx, self.is_case, &self.backward, &inputs[0], &args)?;
        for (index, result) in self.results.iter().enumerate() {
            found[index + 1] = result.and_then(|at| values.get(at).cloned());
            // The shape is the input's, which a branch does not tell.
            if let Some(AnyValue::Output(output)) = &found[index + 1]
                && inputs[index + 1].dtype() != DataType::RESOURCE
                && output.dtype() != DataType::VARIANT
            {
                let shape = inputs[index + 1].shape()?;
                output.operation().graph().set_shape(output, &shape)?;
            }
        }
        Ok(found)
    }
}
