//! A model in training: what a batch gives it, and what is measured.

use tfp_core::{Context, Error, Output, Result, Shape, Tensor};

use super::plan::Trained;
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::nn::Policy;
use crate::nn::criterion::mean_loss;
use crate::nn::layer::{Model, Pass};
use crate::nn::optimizer::unscaled;
use crate::ops;
use crate::variable::Variable;

/// A model, and what is done with its outputs.
#[derive(Clone, Copy)]
pub(super) struct Job<'a> {
    pub model: &'a Model,
    pub heads: &'a [Trained],
    /// Whether the loss has a scale, so that a step also says whether its gradients were finite.
    pub is_scaled: bool,
}

/// The numbers of a step: the rate, the number, and the scale of the loss, which is one if there is none.
pub(super) type Numbers<V> = [V; 3];

/// The tensors of a batch in the order of inputs and heads, and weights where the plan has them.
pub(super) struct Fed<'a> {
    pub x: Vec<&'a Tensor>,
    pub truth: Vec<Tensor>,
    pub weights: Vec<Tensor>,
}

impl Fed<'_> {
    /// The number of samples.
    pub fn samples(&self) -> f32 {
        let first = self.x.first().and_then(|x| x.dims().first());
        first.copied().unwrap_or(1) as f32
    }

    pub fn measured(&self, values: Vec<Tensor>) -> Measured {
        Measured {
            values,
            samples: self.samples(),
        }
    }
}

/// What a batch gave.
pub(super) struct Measured {
    /// Losses, and the statistics of metrics.
    pub values: Vec<Tensor>,
    /// The samples that the losses are means of.
    pub samples: f32,
}

/// The values of eager mode, on the host.
pub(super) fn tensors(values: &[AnyValue]) -> Result<Vec<Tensor>> {
    let tensor = |value: &AnyValue| value.handle()?.to_tensor();
    values.iter().map(tensor).collect()
}

/// Returns the shape of a batch of any size.
pub(super) fn batch_of(sample: &[i64]) -> Shape {
    let mut dims = vec![-1];
    dims.extend(sample);
    Shape::new(&dims)
}

/// The values of a batch, in the order of inputs and heads.
pub(super) struct Given {
    pub x: Vec<AnyValue>,
    pub truth: Vec<AnyValue>,
    pub weights: Vec<AnyValue>,
}

impl Given {
    pub fn eager(cx: &AnyContext, fed: &Fed<'_>) -> Result<Self> {
        let all = |tensors: &[Tensor]| -> Result<Vec<AnyValue>> {
            tensors.iter().map(|tensor| cx.constant(tensor)).collect()
        };
        Ok(Self {
            x: fed
                .x
                .iter()
                .map(|x| cx.constant(x))
                .collect::<Result<_>>()?,
            truth: all(&fed.truth)?,
            weights: all(&fed.weights)?,
        })
    }

    pub fn graph(x: &[Output], truth: &[Output], weights: &[Output]) -> Self {
        let all = |outputs: &[Output]| outputs.iter().map(AnyValue::from).collect();
        Self {
            x: all(x),
            truth: all(truth),
            weights: all(weights),
        }
    }
}

impl Job<'_> {
    /// How many of the values that are measured are losses.
    pub fn losses(&self) -> usize {
        match self.heads.len() {
            1 => 1,
            heads => heads + 1,
        }
    }

    /// Computes the loss of a batch, the losses of the outputs where there are several, and the
    /// statistics of all metrics.
    pub fn measured(&self, pass: &Pass<'_>, given: &Given) -> Result<Vec<AnyValue>> {
        self.predicted(pass, given).map(|(measured, _)| measured)
    }

    /// Computes what [`Self::measured`] returns, and the outputs of the model.
    pub fn predicted(
        &self,
        pass: &Pass<'_>,
        given: &Given,
    ) -> Result<(Vec<AnyValue>, Vec<AnyValue>)> {
        let cx = pass.context();
        let inputs = given.x.iter().map(|x| (x.clone(), None)).collect();
        let outputs = self.model.run(pass, inputs)?;
        let mut total: Option<AnyValue> = None;
        let (mut losses, mut statistics) = (Vec::new(), Vec::new());
        for (index, (trained, truth)) in self.heads.iter().zip(&given.truth).enumerate() {
            let head = &trained.head;
            let (predicted, mask) = outputs
                .get(trained.output)
                .ok_or_else(|| Error::argument("a model returned too few outputs"))?;
            let (mask, weights) = (mask.as_ref(), given.weights.get(index));
            // Losses and metrics are computed in float32, whatever the model computes in.
            let [predicted, truth] = [predicted, truth].map(|one| Policy::Float32.cast(cx, one));
            let (predicted, truth) = (&predicted?, &truth?);
            let loss = mean_loss(&*head.loss, cx, [truth, predicted], mask, weights)?;
            let weighted = match head.weight {
                1.0 => loss.clone(),
                weight => ops::mul(cx, &loss, weight)?,
            };
            losses.push(loss);
            total = Some(match total {
                Some(total) => ops::add_v2(cx, total, weighted)?,
                None => weighted,
            });
            for metric in &head.metrics {
                statistics.push(metric.statistics(cx, truth, predicted, mask)?);
            }
        }
        let mut total = total.ok_or_else(|| Error::argument("a training without a loss"))?;
        for more in pass.take_losses() {
            total = ops::add_v2(cx, total, Policy::Float32.cast(cx, &more)?)?;
        }
        let after = pass.after_changes()?;
        let variables = self.model.variables();
        if let Some(penalty) = self.model.weights().penalty_of(&after, variables)? {
            total = ops::add_v2(cx, total, Policy::Float32.cast(cx, &penalty)?)?;
        }
        let mut measured = vec![total];
        if losses.len() > 1 {
            measured.extend(losses);
        }
        measured.extend(statistics);
        let outputs = outputs.into_iter().map(|(value, _)| value).collect();
        Ok((measured, outputs))
    }
}

impl Job<'_> {
    /// The loss whose gradients are computed.
    pub fn target(
        &self,
        cx: &AnyContext,
        measured: &[AnyValue],
        scale: &AnyValue,
    ) -> Result<AnyValue> {
        let loss = loss_of(measured)?;
        match self.is_scaled {
            true => ops::mul(cx, loss, scale),
            false => Ok(loss.clone()),
        }
    }

    /// The gradients without the scale, and whether they are finite, if there is a scale.
    pub fn unscaled(
        &self,
        cx: &AnyContext,
        gradients: Vec<Option<AnyValue>>,
        scale: &AnyValue,
    ) -> Result<(Vec<Option<AnyValue>>, Option<AnyValue>)> {
        if !self.is_scaled {
            return Ok((gradients, None));
        }
        let (gradients, finite) = unscaled(cx, &gradients, scale)?;
        Ok((gradients, Some(finite)))
    }
}

/// The loss of what was measured.
pub(super) fn loss_of(measured: &[AnyValue]) -> Result<&AnyValue> {
    let first = measured.first();
    first.ok_or_else(|| Error::argument("a training without a loss"))
}

/// The variables that a step changes: those with a gradient.
pub(super) fn changed(variables: &[Variable], gradients: &[Option<AnyValue>]) -> Vec<Variable> {
    let pairs = variables.iter().zip(gradients);
    let with = pairs.filter(|(_, gradient)| gradient.is_some());
    with.map(|(variable, _)| variable.clone()).collect()
}
