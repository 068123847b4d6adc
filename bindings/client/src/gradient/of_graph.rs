//! Gradients in a graph.

use tfp_core::Result;

use super::calls;
use super::engine::{self, GradientOptions, Question, Unconnected};
use super::graph::in_graph;
use crate::context::any::Mode;
use crate::context::slices::Gradient;
use crate::context::value::AnyValue;

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
/// [`ErrorKind::NotFound`](tfp_core::ErrorKind::NotFound) names an op that has no gradient
/// function; [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) an output of another graph;
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) a `y` that is not of a floating-point
/// type.
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
/// As for [`gradients`], [`ErrorKind::DType`](tfp_core::ErrorKind::DType) and
/// [`ErrorKind::Shape`](tfp_core::ErrorKind::Shape) for a given gradient that does not fit its `y`.
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
            calls: calls::gradient,
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
