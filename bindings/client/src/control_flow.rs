//! Branches and loops whose bodies are closures.
//!
//! In a graph the closures become functions that one op calls. In eager mode they simply run, so a
//! tape sees what they execute. What they take from outside is captured.

use tfp_core::{
    AttrValue, DataType, Error, ErrorKind, FuncRef, OpBuilder, Output, Result, Shape, Tensor,
};
use tfp_ops as ops;

use crate::context::any::{AnyContext, Mode};
use crate::context::func_graph::FuncGraph;
use crate::context::value::AnyValue;
use crate::function::identities;
use crate::function::traced::Traced;
use crate::gradient::calls::loops::call_loop;

/// A branch of [`case`].
pub type Branch<'b> = Box<dyn FnOnce(&AnyContext) -> Result<Vec<AnyValue>> + 'b>;

/// Returns what one of two closures returns.
///
/// In a graph both are traced, and must return as many values of the same types; a run computes
/// only the one that `predicate` chooses.
///
/// # Errors
/// Those of the closures; [`ErrorKind::Shape`] and [`ErrorKind::DType`] for a predicate that is not
/// one truth value, [`ErrorKind::Argument`] and [`ErrorKind::DType`] for branches that do not agree.
pub fn cond<C: Mode>(
    cx: &C,
    predicate: &C::Value,
    then: impl FnOnce(&AnyContext) -> Result<Vec<AnyValue>>,
    otherwise: impl FnOnce(&AnyContext) -> Result<Vec<AnyValue>>,
) -> Result<Vec<C::Value>> {
    let (any, predicate) = (cx.any(), cx.to_any(predicate));
    check_scalar("the predicate of cond", &predicate, &[DataType::BOOL])?;
    let values = if any.is_eager() {
        match predicate.handle()?.to_tensor()?.to_scalar::<bool>()? {
            true => then(&any)?,
            false => otherwise(&any)?,
        }
    } else {
        branches(
            &any,
            &predicate,
            vec![Box::new(then), Box::new(otherwise)],
            false,
        )?
    };
    values.into_iter().map(|value| cx.from_any(value)).collect()
}

/// Returns what the closure with a number returns; the last one where there is none.
///
/// In a graph all are traced, and must return as many values of the same types.
///
/// # Errors
/// Those of the closures; [`ErrorKind::Argument`] without closures, and as for [`cond`]; `index` is a
/// scalar of type `int32`.
pub fn case<C: Mode>(cx: &C, index: &C::Value, list: Vec<Branch<'_>>) -> Result<Vec<C::Value>> {
    let (any, index) = (cx.any(), cx.to_any(index));
    check_scalar("the index of case", &index, &[DataType::INT32])?;
    if list.is_empty() {
        return Err(Error::argument("case needs a branch, there is none"));
    }
    let values = if any.is_eager() {
        let index = index.handle()?.to_tensor()?.to_scalar::<i32>()?;
        let last = list.len() - 1;
        let chosen = usize::try_from(index).map_or(last, |index| index.min(last));
        match list.into_iter().nth(chosen) {
            Some(branch) => branch(&any)?,
            None => Vec::new(),
        }
    } else {
        branches(&any, &index, list, true)?
    };
    values.into_iter().map(|value| cx.from_any(value)).collect()
}

fn check_scalar(what: &str, value: &AnyValue, types: &[DataType]) -> Result<()> {
    if !types.contains(&value.dtype()) {
        return Err(Error::new(ErrorKind::DType {
            what: what.to_owned(),
            expected: types[0],
            found: value.dtype(),
        }));
    }
    let shape = value.shape()?;
    if shape.is_compatible_with(&Shape::scalar()) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Shape {
        what: what.to_owned(),
        expected: "a scalar".to_owned(),
        found: shape,
    }))
}

/// Finishes functions that take the same captured values behind their arguments.
fn with_same_captures(
    name: &str,
    funcs: &[(FuncGraph, Vec<AnyValue>)],
) -> Result<(Vec<Traced>, Vec<AnyValue>)> {
    let mut captured: Vec<AnyValue> = Vec::new();
    let mut outputs: Vec<Vec<Output>> = Vec::new();
    for (func, values) in funcs {
        let cx = func.any();
        // A result of its own, also where a closure returns what it captured.
        let own = values
            .iter()
            .map(|value| ops::identity(&cx, value)?.output().cloned())
            .collect::<Result<_>>()?;
        outputs.push(own);
        for (value, _) in func.captures() {
            if !captured.contains(&value) {
                captured.push(value);
            }
        }
    }
    let traced = funcs
        .iter()
        .zip(outputs)
        .map(|((func, _), outputs)| {
            let mut inputs = func.arguments();
            for value in &captured {
                inputs.push(func.input_for(value)?);
            }
            Traced::of(name, func, &inputs, &outputs)
        })
        .collect::<Result<_>>()?;
    Ok((traced, captured))
}

fn branches(
    cx: &AnyContext,
    which: &AnyValue,
    list: Vec<Branch<'_>>,
    is_case: bool,
) -> Result<Vec<AnyValue>> {
    let funcs: Vec<(FuncGraph, Vec<AnyValue>)> = list
        .into_iter()
        .map(|branch| {
            let func = FuncGraph::new(Some(cx.clone()))?;
            let values = branch(&func.any())?;
            Ok((func, values))
        })
        .collect::<Result<_>>()?;
    let first = &funcs[0].1;
    for (number, (_, values)) in funcs.iter().enumerate().skip(1) {
        if values.len() != first.len() {
            return Err(Error::argument(format!(
                "branch {number} returns {} values, branch 0 returns {}: expected as many",
                values.len(),
                first.len()
            )));
        }
        for (index, (value, other)) in values.iter().zip(first).enumerate() {
            if value.dtype() != other.dtype() {
                return Err(Error::new(ErrorKind::DType {
                    what: format!("value {index} of branch {number}, by that of branch 0"),
                    expected: other.dtype(),
                    found: value.dtype(),
                }));
            }
        }
    }
    let (traced, captured) = with_same_captures("branch", &funcs)?;
    for function in &traced {
        function.install(cx)?;
    }
    let is_stateful = traced.iter().any(|function| function.is_stateful);
    let op_type = match (is_case, is_stateful) {
        (true, true) => "Case",
        (true, false) => "StatelessCase",
        (false, true) => "If",
        (false, false) => "StatelessIf",
    };
    let shapes: Vec<Shape> = (0..first.len())
        .map(|index| common_shape(traced.iter().map(|function| &function.outputs[index].1)))
        .collect();
    let types = traced[0].types();
    let names: Vec<FuncRef<'_>> = traced
        .iter()
        .map(|function| FuncRef::named(function.function.name()))
        .collect();
    let call = OpBuilder::new(op_type)?
        .input(which)
        .list(&captured)
        .attr("Tout", AttrValue::TypeList(&types))?
        .attr("output_shapes", AttrValue::ShapeList(&shapes))?;
    let call = match is_case {
        true => call.attr("branches", AttrValue::FuncList(&names))?,
        false => call
            .attr("then_branch", names[0])?
            .attr("else_branch", names[1])?,
    };
    identities(cx, &call.execute(cx)?.all())
}

/// Returns the shape that tensors of all the shapes have.
fn common_shape<'s>(mut shapes: impl Iterator<Item = &'s Shape>) -> Shape {
    let Some(first) = shapes.next() else {
        return Shape::unknown();
    };
    let Some(mut dims) = first.dims().map(<[i64]>::to_vec) else {
        return Shape::unknown();
    };
    for shape in shapes {
        match shape.dims() {
            Some(other) if other.len() == dims.len() => {
                for (dim, &other) in dims.iter_mut().zip(other) {
                    if *dim != other {
                        *dim = -1;
                    }
                }
            }
            _ => return Shape::unknown(),
        }
    }
    Shape::new(&dims)
}

/// How a loop runs.
#[derive(Clone, Debug, Default)]
pub struct LoopOptions<'a> {
    /// The shapes that the variables have in every iteration; those of the first where empty.
    pub shapes: &'a [Shape],
    /// After how many iterations the loop ends in any case.
    pub maximum_iterations: Option<i64>,
    /// How many iterations of a graph may run at the same time; TensorFlow's default is 10.
    pub parallel_iterations: Option<i64>,
}

/// Repeats a closure on variables as long as another one holds, and returns the variables.
///
/// In a graph the closures are traced once. The gradient of such a loop keeps what it needs of each
/// iteration in lists, so it costs memory per iteration and no second computation.
///
/// # Errors
/// Those of the closures, and as for [`while_loop_with`].
pub fn while_loop<C: Mode>(
    cx: &C,
    variables: &[C::Value],
    condition: impl Fn(&AnyContext, &[AnyValue]) -> Result<AnyValue>,
    body: impl Fn(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
) -> Result<Vec<C::Value>> {
    while_loop_with(cx, variables, condition, body, &LoopOptions::default())
}

/// The same as [`while_loop`], with options.
///
/// # Errors
/// Those of the closures; [`ErrorKind::Argument`] when the body does not return a value per
/// variable, [`ErrorKind::DType`] and [`ErrorKind::Shape`] for one that does not fit its variable, or
/// a condition that is not one truth value.
pub fn while_loop_with<C: Mode>(
    cx: &C,
    variables: &[C::Value],
    condition: impl Fn(&AnyContext, &[AnyValue]) -> Result<AnyValue>,
    body: impl Fn(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>>,
    options: &LoopOptions<'_>,
) -> Result<Vec<C::Value>> {
    let any = cx.any();
    let variables: Vec<AnyValue> = variables.iter().map(|value| cx.to_any(value)).collect();
    if !options.shapes.is_empty() && options.shapes.len() != variables.len() {
        return Err(Error::argument(format!(
            "{} shapes are given for {} loop variables: expected as many, or none",
            options.shapes.len(),
            variables.len()
        )));
    }
    let values = match any.is_eager() {
        true => run_loop(&any, variables, &condition, &body, options)?,
        false => trace_loop(&any, &variables, &condition, &body, options)?,
    };
    values.into_iter().map(|value| cx.from_any(value)).collect()
}

fn check_results(variables: &[AnyValue], results: &[AnyValue], shapes: &[Shape]) -> Result<()> {
    if results.len() != variables.len() {
        return Err(Error::argument(format!(
            "the body of a loop returns {} values for {} variables: expected as many",
            results.len(),
            variables.len()
        )));
    }
    for (index, (variable, result)) in variables.iter().zip(results).enumerate() {
        if variable.dtype() != result.dtype() {
            return Err(Error::new(ErrorKind::DType {
                what: format!("value {index} of the body of a loop"),
                expected: variable.dtype(),
                found: result.dtype(),
            }));
        }
        let Some(shape) = shapes.get(index) else {
            continue;
        };
        if matches!(result.dtype(), DataType::RESOURCE | DataType::VARIANT) {
            continue;
        }
        let found = result.shape()?;
        if !found.is_compatible_with(shape) {
            return Err(Error::new(ErrorKind::Shape {
                what: format!("value {index} of the body of a loop"),
                expected: format!(
                    "shape {shape}, that of its variable (LoopOptions::shapes can say less)"
                ),
                found,
            }));
        }
    }
    Ok(())
}

type Condition<'c> = dyn Fn(&AnyContext, &[AnyValue]) -> Result<AnyValue> + 'c;
type Body<'b> = dyn Fn(&AnyContext, &[AnyValue]) -> Result<Vec<AnyValue>> + 'b;

fn run_loop(
    cx: &AnyContext,
    mut variables: Vec<AnyValue>,
    condition: &Condition<'_>,
    body: &Body<'_>,
    options: &LoopOptions<'_>,
) -> Result<Vec<AnyValue>> {
    let mut left = options.maximum_iterations.unwrap_or(i64::MAX);
    while left > 0 {
        let holds = condition(cx, &variables)?;
        check_scalar("the condition of a loop", &holds, &[DataType::BOOL])?;
        if !holds.handle()?.to_tensor()?.to_scalar::<bool>()? {
            break;
        }
        let results = body(cx, &variables)?;
        check_results(&variables, &results, options.shapes)?;
        variables = results;
        left -= 1;
    }
    Ok(variables)
}

fn trace_loop(
    cx: &AnyContext,
    variables: &[AnyValue],
    condition: &Condition<'_>,
    body: &Body<'_>,
    options: &LoopOptions<'_>,
) -> Result<Vec<AnyValue>> {
    let mut variables = variables.to_vec();
    let mut shapes: Vec<Shape> = match options.shapes.is_empty() {
        false => options.shapes.to_vec(),
        true => variables
            .iter()
            .map(|value| match value.dtype() {
                DataType::RESOURCE | DataType::VARIANT => Ok(Shape::unknown()),
                _ => value.shape(),
            })
            .collect::<Result<_>>()?,
    };
    // The count of iterations is a variable in front of the others.
    let counts = usize::from(options.maximum_iterations.is_some());
    if options.maximum_iterations.is_some() {
        variables.insert(0, tfp_core::Context::constant(cx, &Tensor::scalar(0_i64)?)?);
        shapes.insert(0, Shape::scalar());
    }
    let begin = || -> Result<(FuncGraph, Vec<AnyValue>)> {
        let func = FuncGraph::new(Some(cx.clone()))?;
        let args = variables
            .iter()
            .zip(&shapes)
            .map(|(value, shape)| {
                func.argument("variable", value.dtype(), shape)
                    .map(Into::into)
            })
            .collect::<Result<_>>()?;
        Ok((func, args))
    };
    let (test, args) = begin()?;
    let test_cx = test.any();
    let mut holds = condition(&test_cx, &args[counts..])?;
    check_scalar("the condition of a loop", &holds, &[DataType::BOOL])?;
    if let Some(maximum) = options.maximum_iterations {
        let left = ops::less(&test_cx, &args[0], maximum)?;
        holds = ops::logical_and(&test_cx, left, &holds)?;
    }
    let (step, args) = begin()?;
    let step_cx = step.any();
    let mut results = body(&step_cx, &args[counts..])?;
    check_results(&args[counts..], &results, &shapes[counts..])?;
    if counts > 0 {
        results.insert(0, ops::add_v2(&step_cx, &args[0], 1_i64)?);
    }
    // Captured values are further variables that stay the same.
    let mut captured: Vec<AnyValue> = Vec::new();
    for result in &results {
        step.capture(result)?;
    }
    test.capture(&holds)?;
    for func in [&test, &step] {
        for (value, _) in func.captures() {
            if !captured.contains(&value) {
                captured.push(value);
            }
        }
    }
    for value in &captured {
        results.push(step.input_for(value)?.into());
    }
    let (traced, order) = with_same_captures("loop", &[(test, vec![holds]), (step, results)])?;
    let [condition, body]: [Traced; 2] = traced
        .try_into()
        .map_err(|_| Error::argument("a loop has a condition and a body"))?;
    debug_assert_eq!(order, captured);
    for value in &captured {
        shapes.push(match value.dtype() {
            DataType::RESOURCE | DataType::VARIANT => Shape::unknown(),
            _ => value.shape()?,
        });
    }
    let count = variables.len();
    variables.extend(captured);
    let parallel = options.parallel_iterations.unwrap_or(10);
    let mut outputs = call_loop(cx, &[condition, body], &variables, &shapes, parallel)?;
    outputs.truncate(count);
    identities(cx, &outputs[counts..])
}
