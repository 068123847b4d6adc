//! A function and the function of its gradients.

use tfp_core::{DataType, Output, Result, Shape};
use tfp_ops as ops;

use super::Wanted;
use crate::context::any::{AnyContext, Mode};
use crate::context::func_graph::FuncGraph;
use crate::context::value::AnyValue;
use crate::function::body::{Body, Library};
use crate::function::traced::Traced;
use crate::gradient::engine::Question;
use crate::gradient::graph::in_graph;

/// Where an input of the gradient's function comes from.
#[derive(Clone)]
pub(super) enum Source {
    /// An input of the function.
    Input(usize),
    /// An intermediate value of its body, which it must return too.
    Value(Output),
}

/// A function's body, and the function of its gradients.
pub(super) struct Derivative {
    pub(super) body: Body,
    /// Takes the gradients of the outputs that have one, then a value per source.
    pub(super) core: Traced,
    pub(super) sources: Vec<Source>,
    /// For each input of the function, the result of `core` that is its gradient.
    pub(super) results: Vec<Option<usize>>,
}

impl Derivative {
    /// Differentiates a function of the context's library.
    pub(super) fn new(
        cx: &AnyContext,
        name: &str,
        shapes: &[Shape],
        wanted: &Wanted<'_>,
    ) -> Result<Self> {
        let body = Body::import(&Library::of(cx, name)?, shapes)?;
        let back = FuncGraph::over(&tfp_core::Graph::of_bodies()?, None, true)?;
        let (mut ys, mut dys) = (Vec::new(), Vec::new());
        for (output, _) in body
            .outputs
            .iter()
            .zip(wanted.grads)
            .filter(|(_, has)| **has)
        {
            let shape = match output.dtype() {
                DataType::VARIANT => Shape::unknown(),
                _ => output.shape()?,
            };
            ys.push(AnyValue::from(output));
            dys.push(Some(AnyValue::from(back.argument(
                "gradient",
                output.dtype(),
                &shape,
            )?)));
        }
        let needed: Vec<usize> = (0..body.inputs.len())
            .filter(|&index| wanted.needs.get(index).copied().unwrap_or(false))
            .collect();
        let xs: Vec<AnyValue> = needed
            .iter()
            .map(|&index| (&body.inputs[index]).into())
            .collect();
        let cx_back = back.any();
        let question = Question {
            ys: &ys,
            grad_ys: &dys,
            xs: &xs,
            stops: &[],
            calls: super::gradient,
        };
        let found = in_graph(&cx_back, &question)?;
        let mut results = vec![None; body.inputs.len()];
        let mut outputs = Vec::new();
        for (index, grad) in needed.into_iter().zip(found) {
            if let Some(grad) = grad {
                results[index] = Some(outputs.len());
                // An output that is an input as it is needs an operation of its own.
                let dense = ops::identity(&cx_back, &grad.dense(&cx_back)?)?;
                outputs.push(back.capture(&dense)?);
            }
        }
        let (values, stand_ins): (Vec<AnyValue>, Vec<Output>) = back.captures().into_iter().unzip();
        let sources = values
            .iter()
            .map(|value| {
                let output = value.output()?;
                Ok(match body.inputs.iter().position(|input| input == output) {
                    Some(index) => Source::Input(index),
                    None => Source::Value(output.clone()),
                })
            })
            .collect::<Result<_>>()?;
        let mut inputs = back.arguments();
        inputs.extend(stand_ins);
        Ok(Self {
            core: Traced::of("gradient", &back, &inputs, &outputs)?,
            body,
            sources,
            results,
        })
    }

    /// Returns the intermediate values that the function must return too.
    pub(super) fn kept(&self) -> Vec<Output> {
        self.sources
            .iter()
            .filter_map(|source| match source {
                Source::Input(_) => None,
                Source::Value(output) => Some(output.clone()),
            })
            .collect()
    }

    /// Returns the function with further results.
    pub(super) fn with_results(&self, more: &[Output]) -> Result<Traced> {
        let outputs: Vec<Output> = self.body.outputs.iter().chain(more).cloned().collect();
        let body = &self.body;
        Traced::new(
            "forward",
            &body.graph,
            &body.inputs,
            &outputs,
            &body.effects,
            body.holds.clone(),
        )
    }

    /// Returns the inputs of the gradient's function behind the gradients: `kept` are the values of
    /// [`Self::kept`].
    pub(super) fn arguments(&self, inputs: &[AnyValue], kept: &[AnyValue]) -> Vec<AnyValue> {
        let mut kept = kept.iter();
        self.sources
            .iter()
            .filter_map(|source| match source {
                Source::Input(index) => inputs.get(*index),
                Source::Value(_) => kept.next(),
            })
            .cloned()
            .collect()
    }
}
