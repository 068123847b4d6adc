//! `While`.
//!
//! The forward loop counts its iterations and pushes what the gradient needs of each onto lists; the
//! backward loop pops them, last first.

use tfp_core::{AttrValue, DataType, Error, FuncRef, OpBuilder, Output, Result, Shape, Tensor};
use tfp_ops as ops;

use super::branches::zeros;
use super::derivative::{Derivative, Source};
use super::{Plan, Ran, Wanted};
use crate::context::any::{AnyContext, Mode};
use crate::context::func_graph::FuncGraph;
use crate::context::record::OpRecord;
use crate::context::run::Run;
use crate::context::value::{AnyValue, is_differentiable};
use crate::function::body::{Body, Library};
use crate::function::traced::Traced;

/// Where the backward loop has a value of an iteration from.
#[derive(Clone)]
enum Kept {
    /// It is the same in each: the loop variable with this number.
    Same(usize),
    /// The list with this number.
    List(usize),
}

pub(super) struct LoopPlan {
    count: usize,
    forward: [Traced; 2],
    backward: [Traced; 2],
    parallel: i64,
    /// The types of what the lists hold.
    lists: Vec<DataType>,
    /// The loop variables of which each iteration passes a gradient on.
    passed: Vec<usize>,
    /// Variables, and tensors that stay the same, to whose gradient each iteration adds.
    added: Vec<usize>,
    added_types: Vec<DataType>,
    /// Loop variables that the backward loop takes as they are.
    same: Vec<usize>,
}

/// Whether a loop variable is what it was before the iteration.
fn is_same(body: &Body, index: usize) -> bool {
    let mut output = body.outputs[index].clone();
    loop {
        if output == body.inputs[index] {
            return true;
        }
        let operation = output.operation().clone();
        match (operation.op_type().as_str(), operation.inputs().as_slice()) {
            ("Identity", [input]) => output = input.clone(),
            _ => return false,
        }
    }
}

fn known_shape(output: &Output) -> Result<Shape> {
    match output.dtype() {
        DataType::RESOURCE | DataType::VARIANT => Ok(Shape::unknown()),
        _ => output.shape(),
    }
}

impl LoopPlan {
    pub(super) fn new(cx: &AnyContext, op: &OpRecord, wanted: &Wanted<'_>) -> Result<Self> {
        let (cond_name, body_name) = (op.function("cond")?, op.function("body")?);
        let count = op.inputs().len();
        // Shapes as they are through all iterations: what is known of them after the loop.
        let shapes: Vec<Shape> = match op.operation() {
            Some(operation) => operation
                .outputs()
                .iter()
                .map(known_shape)
                .collect::<Result<_>>()?,
            None => vec![Shape::unknown(); count],
        };
        let plain = Body::import(&Library::of(cx, &body_name)?, &shapes)?;
        if plain.inputs.len() != count || plain.outputs.len() != count {
            return Err(Error::argument(format!(
                "the body of {} does not take and return its {count} variables",
                op.op_type()
            )));
        }
        let is_passed = |index: usize| {
            let dtype = op.inputs()[index].dtype();
            let matters = wanted.grads[index] || wanted.needs[index];
            is_differentiable(dtype)
                && dtype != DataType::RESOURCE
                && (dtype != DataType::VARIANT || matters)
                && !is_same(&plain, index)
        };
        let passed: Vec<usize> = (0..count).filter(|&index| is_passed(index)).collect();
        let is_added = |index: &usize| {
            wanted.needs[*index]
                && is_same(&plain, *index)
                && is_differentiable(op.inputs()[*index].dtype())
        };
        let grads: Vec<bool> = (0..count).map(|index| passed.contains(&index)).collect();
        let needs: Vec<bool> = (0..count)
            .map(|index| grads[index] || is_added(&index))
            .collect();
        let inner = Wanted {
            grads: &grads,
            needs: &needs,
        };
        let derivative = Derivative::new(cx, &body_name, &shapes, &inner)?;
        let added: Vec<usize> = (0..count)
            .filter(|index| is_added(index) && derivative.results[*index].is_some())
            .collect();
        let added_types = added
            .iter()
            .filter_map(|&index| derivative.results[index])
            .map(|at| derivative.core.outputs[at].0)
            .collect();
        // What differs between iterations goes onto lists.
        let mut pushed: Vec<Output> = Vec::new();
        let mut same: Vec<usize> = Vec::new();
        let mut kept = Vec::new();
        for source in &derivative.sources {
            kept.push(match source {
                Source::Input(index) if is_same(&plain, *index) => {
                    let at = same.iter().position(|other| other == index);
                    Kept::Same(at.unwrap_or_else(|| {
                        same.push(*index);
                        same.len() - 1
                    }))
                }
                Source::Input(index) => {
                    pushed.push(derivative.body.inputs[*index].clone());
                    Kept::List(pushed.len() - 1)
                }
                Source::Value(output) => {
                    pushed.push(output.clone());
                    Kept::List(pushed.len() - 1)
                }
            });
        }
        // Zeros of a variable are asked of the variable.
        for &index in &added {
            if op.inputs()[index].dtype() == DataType::RESOURCE && !same.contains(&index) {
                same.push(index);
            }
        }
        let lists: Vec<DataType> = pushed.iter().map(Output::dtype).collect();
        let parts = Parts {
            derivative: &derivative,
            pushed: &pushed,
            kept: &kept,
            passed: &passed,
            added: &added,
            same: &same,
        };
        let library = Library::of(cx, &cond_name)?;
        let condition = Body::import(&library, &shapes)?;
        let condition = Traced::new(
            "condition",
            &condition.graph,
            &condition.inputs,
            &condition.outputs,
            &condition.effects,
            condition.holds,
        )?;
        let [backward_condition, backward_body] = parts.backward()?;
        Ok(Self {
            count,
            forward: [parts.forward_condition(&condition)?, parts.forward_body()?],
            backward: [backward_condition, backward_body],
            parallel: op.int("parallel_iterations")?,
            lists,
            passed,
            added,
            added_types,
            same,
        })
    }

    fn run(
        &self,
        cx: &AnyContext,
        functions: &[Traced; 2],
        vars: &[AnyValue],
        shapes: &[Shape],
    ) -> Result<Vec<AnyValue>> {
        call_loop(cx, functions, vars, shapes, self.parallel)
    }
}

/// Calls `While` with a condition and a body.
pub(crate) fn call_loop(
    cx: &AnyContext,
    functions: &[Traced; 2],
    vars: &[AnyValue],
    shapes: &[Shape],
    parallel: i64,
) -> Result<Vec<AnyValue>> {
    let [condition, body] = functions;
    condition.install(cx)?;
    body.install(cx)?;
    let op_type = match condition.is_stateful || body.is_stateful {
        true => "While",
        false => "StatelessWhile",
    };
    Ok(OpBuilder::new(op_type)?
        .list(vars)
        .attr("cond", FuncRef::named(condition.function.name()))?
        .attr("body", FuncRef::named(body.function.name()))?
        .attr("output_shapes", AttrValue::ShapeList(shapes))?
        .attr("parallel_iterations", parallel)?
        .execute(cx)?
        .all())
}

/// What the functions of both loops are made of.
struct Parts<'a> {
    derivative: &'a Derivative,
    pushed: &'a [Output],
    kept: &'a [Kept],
    passed: &'a [usize],
    added: &'a [usize],
    same: &'a [usize],
}

impl Parts<'_> {
    /// The arguments of the forward loop: its variables, the count, the lists.
    fn forward_arguments(&self, func: &FuncGraph) -> Result<Vec<AnyValue>> {
        let mut args = Vec::new();
        for input in &self.derivative.body.inputs {
            args.push(
                func.argument("variable", input.dtype(), &known_shape(input)?)?
                    .into(),
            );
        }
        args.push(
            func.argument("count", DataType::INT32, &Shape::scalar())?
                .into(),
        );
        for _ in self.pushed {
            args.push(
                func.argument("list", DataType::VARIANT, &Shape::unknown())?
                    .into(),
            );
        }
        Ok(args)
    }

    fn forward_condition(&self, condition: &Traced) -> Result<Traced> {
        let func = FuncGraph::of_body()?;
        let args = self.forward_arguments(&func)?;
        let count = self.derivative.body.inputs.len();
        let holds = condition.call(&func.any(), &args[..count])?;
        finish("loop_condition", &func, &holds)
    }

    fn forward_body(&self) -> Result<Traced> {
        let func = FuncGraph::of_body()?;
        let cx = func.any();
        let args = self.forward_arguments(&func)?;
        let count = self.derivative.body.inputs.len();
        let core = self.derivative.with_results(self.pushed)?;
        let mut outputs = core.call(&cx, &args[..count])?;
        let values = outputs.split_off(count);
        // What stays the same is passed by, so that it is seen to stay.
        for index in 0..count {
            if is_same(&self.derivative.body, index) {
                outputs[index] = args[index].clone();
            }
        }
        outputs.push(ops::add_v2(&cx, &args[count], 1)?);
        for (list, value) in args[count + 1..].iter().zip(&values) {
            outputs.push(ops::tensor_list_push_back(&cx, list, value)?);
        }
        finish("loop_body", &func, &outputs)
    }

    /// The arguments of the backward loop: the count, gradients that are passed on, gradients that
    /// are added to, lists, and what stays the same.
    fn backward(&self) -> Result<[Traced; 2]> {
        let derivative = self.derivative;
        let arguments = |func: &FuncGraph| -> Result<Vec<AnyValue>> {
            let mut args: Vec<AnyValue> = vec![
                func.argument("count", DataType::INT32, &Shape::scalar())?
                    .into(),
            ];
            for &index in self.passed {
                let input = &derivative.body.inputs[index];
                args.push(
                    func.argument("gradient", input.dtype(), &known_shape(input)?)?
                        .into(),
                );
            }
            for &index in self.added {
                let dtype = derivative.results[index]
                    .map_or(DataType::FLOAT, |at| derivative.core.outputs[at].0);
                args.push(func.argument("sum", dtype, &Shape::unknown())?.into());
            }
            for _ in self.pushed {
                args.push(
                    func.argument("list", DataType::VARIANT, &Shape::unknown())?
                        .into(),
                );
            }
            for &index in self.same {
                let input = &derivative.body.inputs[index];
                args.push(
                    func.argument("same", input.dtype(), &known_shape(input)?)?
                        .into(),
                );
            }
            Ok(args)
        };
        let func = FuncGraph::of_body()?;
        let args = arguments(&func)?;
        let more = ops::greater(&func.any(), &args[0], 0)?;
        let condition = finish("gradient_condition", &func, &[more])?;

        let func = FuncGraph::of_body()?;
        let cx = func.any();
        let args = arguments(&func)?;
        let sums = 1 + self.passed.len();
        let lists = sums + self.added.len();
        let same = lists + self.pushed.len();
        let (mut shorter, mut values) = (Vec::new(), Vec::new());
        for (list, pushed) in args[lists..same].iter().zip(self.pushed) {
            let shape = known_shape(pushed)?;
            let shape = match shape.dims() {
                Some(dims) => cx.ints(dims)?,
                None => cx.constant_of(&Tensor::scalar(-1_i32)?)?,
            };
            let popped = ops::tensor_list_pop_back(&cx, list, shape, pushed.dtype())?;
            shorter.push(popped.output_handle);
            values.push(popped.tensor);
        }
        let mut inner: Vec<AnyValue> = args[1..sums].to_vec();
        inner.extend(self.kept.iter().map(|kept| match kept {
            Kept::Same(at) => args[same + at].clone(),
            Kept::List(at) => values[*at].clone(),
        }));
        let found = derivative.core.call(&cx, &inner)?;
        let grad_of = |index: usize| derivative.results[index].and_then(|at| found.get(at));
        let mut outputs = vec![ops::sub(&cx, &args[0], 1)?];
        for (place, &index) in self.passed.iter().enumerate() {
            outputs.push(match grad_of(index) {
                Some(grad) => grad.clone(),
                None => ops::zeros_like(&cx, &args[1 + place])?,
            });
        }
        for (place, &index) in self.added.iter().enumerate() {
            let sum = &args[sums + place];
            outputs.push(match grad_of(index) {
                Some(grad) if grad.dtype() == DataType::VARIANT => ops::add_n(&cx, [sum, grad])?,
                Some(grad) => ops::add_v2(&cx, sum, grad)?,
                None => sum.clone(),
            });
        }
        outputs.extend(shorter);
        outputs.extend(args[same..].iter().cloned());
        Ok([condition, finish("gradient_body", &func, &outputs)?])
    }
}

fn finish(name: &str, func: &FuncGraph, outputs: &[AnyValue]) -> Result<Traced> {
    let cx = func.any();
    let outputs: Vec<Output> = outputs
        .iter()
        .map(|value| ops::identity(&cx, value)?.output().cloned())
        .collect::<Result<_>>()?;
    Traced::of(name, func, &func.arguments(), &outputs)
}

impl Plan for LoopPlan {
    fn forward(&self, cx: &AnyContext, inputs: &[AnyValue]) -> Result<Ran> {
        let mut vars = inputs.to_vec();
        vars.push(cx.constant_of(&Tensor::scalar(0_i32)?)?);
        let any = cx.constant_of(&Tensor::scalar(-1_i32)?)?;
        for &dtype in &self.lists {
            vars.push(ops::empty_tensor_list(cx, &any, &any, dtype)?);
        }
        let shapes: Vec<Shape> = self.forward[1]
            .inputs
            .iter()
            .map(|(_, shape)| shape.clone())
            .collect();
        let mut outputs = self.run(cx, &self.forward, &vars, &shapes)?;
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
        let (outputs, kept) = ran;
        let mut vars = vec![kept[0].clone()];
        for &index in &self.passed {
            vars.push(match &grads[index] {
                Some(grad) => grad.clone(),
                None => ops::zeros_like(cx, &outputs[index])?,
            });
        }
        for (&index, &dtype) in self.added.iter().zip(&self.added_types) {
            vars.push(match &grads[index] {
                Some(grad) => grad.clone(),
                None => zeros(cx, &inputs[index], || dtype)?,
            });
        }
        vars.extend(kept[1..].iter().cloned());
        vars.extend(self.same.iter().map(|&index| inputs[index].clone()));
        let shapes: Vec<Shape> = self.backward[1]
            .inputs
            .iter()
            .map(|(_, shape)| shape.clone())
            .collect();
        let results = self.run(cx, &self.backward, &vars, &shapes)?;
        let mut found = vec![None; inputs.len()];
        for (place, &index) in self.passed.iter().chain(&self.added).enumerate() {
            found[index] = Some(results[1 + place].clone());
        }
        // A gradient of what stays the same passes by when no iteration adds to it.
        for (index, grad) in grads.iter().enumerate() {
            if found[index].is_none()
                && !self.passed.contains(&index)
                && let Some(grad) = grad
            {
                found[index] = Some(grad.clone());
            }
        }
        Ok(found)
    }
}
