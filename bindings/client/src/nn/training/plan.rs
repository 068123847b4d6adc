//! What a training does.

use std::sync::Arc;

use tfp_core::{DataType, Error, Result};

use crate::nn::layer::Model;
use crate::nn::optimizer::{LossScale, Optimizer, Rule};
use crate::nn::{LossFunction, MetricFunction};

/// How a model is trained.
#[derive(Clone, Debug)]
pub struct Plan<R> {
    /// What is made small: of each output, unless it has a [`Head`] of its own.
    pub loss: Arc<dyn LossFunction>,
    /// What is measured beside it.
    pub metrics: Vec<Arc<dyn MetricFunction>>,
    /// How variables change.
    pub optimizer: Optimizer<R>,
    /// What the loss is multiplied by for gradients of float16.
    pub loss_scale: LossScale,
    /// The element type of inputs that don't say theirs.
    pub input: DataType,
    /// The element type of truths.
    pub truth: DataType,
    /// The outputs that have a loss of their own, by name. Where there are any, other outputs have no
    /// loss.
    pub heads: Vec<(String, Head)>,
    /// Whether batches have a weight per sample.
    pub weighted: bool,
    /// The weight of the samples of each class, by its number; other classes have a weight of one.
    pub class_weights: Vec<f32>,
}

/// What a training does with one output.
#[derive(Clone, Debug)]
pub struct Head {
    /// What is made small.
    pub loss: Arc<dyn LossFunction>,
    /// What the loss is multiplied by in the sum of all outputs.
    pub weight: f32,
    /// What is measured beside it.
    pub metrics: Vec<Arc<dyn MetricFunction>>,
    /// The element type of truths.
    pub truth: DataType,
}

impl Head {
    /// A loss with a weight of one.
    #[must_use]
    pub fn new(loss: impl LossFunction + 'static) -> Self {
        Self {
            truth: loss.truth(),
            loss: Arc::new(loss),
            weight: 1.0,
            metrics: Vec::new(),
        }
    }

    /// Sets what the loss is multiplied by in the sum of all outputs.
    #[must_use]
    pub fn weight(self, weight: f32) -> Self {
        Self { weight, ..self }
    }

    /// Adds a metric.
    #[must_use]
    pub fn metric(mut self, metric: impl MetricFunction + 'static) -> Self {
        self.metrics.push(Arc::new(metric));
        self
    }
}

impl<R: Rule> Plan<R> {
    /// A plan for float32 inputs and truths, or class numbers of type int64 where the loss takes
    /// them.
    #[must_use]
    pub fn new(loss: impl LossFunction + 'static, rule: R) -> Self {
        let Head { loss, truth, .. } = Head::new(loss);
        Self {
            loss,
            metrics: Vec::new(),
            optimizer: Optimizer::new(rule),
            loss_scale: LossScale::Auto,
            input: DataType::FLOAT,
            truth,
            heads: Vec::new(),
            weighted: false,
            class_weights: Vec::new(),
        }
    }

    /// Adds a metric.
    #[must_use]
    pub fn metric(mut self, metric: impl MetricFunction + 'static) -> Self {
        self.metrics.push(Arc::new(metric));
        self
    }

    /// Sets the learning rate, a number or a schedule.
    #[must_use]
    pub fn rate(mut self, rate: impl Into<crate::nn::optimizer::Schedule>) -> Self {
        self.optimizer = self.optimizer.rate(rate);
        self
    }

    /// Sets what the loss is multiplied by for gradients of float16. By default it is Keras' scale where
    /// a layer has the policy [`MixedFloat16`](crate::nn::Policy::MixedFloat16).
    #[must_use]
    pub fn loss_scale(self, loss_scale: LossScale) -> Self {
        Self { loss_scale, ..self }
    }

    /// Gives an output a loss of its own. The loss of the training is then the sum over such outputs.
    #[must_use]
    pub fn head(mut self, output: &str, head: Head) -> Self {
        self.heads.push((output.to_owned(), head));
        self
    }

    /// Takes batches that have a weight per sample ([`Batch::weights`](super::Batch::weights)).
    #[must_use]
    pub fn weighted(self) -> Self {
        Self {
            weighted: true,
            ..self
        }
    }

    /// Gives the samples of each class a weight, by the number of the class; other classes have one. A
    /// truth is the number of a class, or one-hot.
    #[must_use]
    pub fn class_weights(self, weights: &[f32]) -> Self {
        Self {
            class_weights: weights.to_vec(),
            weighted: true,
            ..self
        }
    }

    /// Returns what is done with which outputs of a model, by number, and the prefix of their logs.
    pub(super) fn heads_of(&self, model: &Model) -> Result<Vec<Trained>> {
        let ports = model.outputs();
        let prefix = |name: &str| match ports.len() {
            1 => String::new(),
            _ => format!("{name}_"),
        };
        if self.heads.is_empty() {
            let every = |(output, port): (usize, &crate::nn::layer::Port)| Trained {
                output,
                prefix: prefix(&port.name),
                head: Head {
                    loss: self.loss.clone(),
                    weight: 1.0,
                    metrics: self.metrics.clone(),
                    truth: self.truth,
                },
            };
            return Ok(ports.iter().enumerate().map(every).collect());
        }
        let mut heads: Vec<Trained> = Vec::new();
        for (name, head) in &self.heads {
            let output = ports.iter().position(|port| port.name == *name);
            let output = output.ok_or_else(|| {
                let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
                Error::argument(format!(
                    "the plan has a head for the output '{name}'; the model's outputs are {}",
                    names.join(", ")
                ))
            })?;
            if heads.iter().any(|other| other.output == output) {
                return Err(Error::argument(format!(
                    "the plan has two heads for the output '{name}'"
                )));
            }
            heads.push(Trained {
                output,
                prefix: prefix(name),
                head: head.clone(),
            });
        }
        heads.sort_by_key(|head| head.output);
        Ok(heads)
    }
}

/// An output that has a loss.
#[derive(Clone, Debug)]
pub(super) struct Trained {
    pub output: usize,
    /// What the names of its logs begin with.
    pub prefix: String,
    pub head: Head,
}
