//! What a training does.

use tfp_core::DataType;

use crate::nn::optimizer::{Optimizer, Rule};
use crate::nn::{Loss, Metric};

/// How a model is trained.
#[derive(Clone, Debug)]
pub struct Plan<R> {
    /// What is made small.
    pub loss: Loss,
    /// What is measured beside it.
    pub metrics: Vec<Metric>,
    /// How variables change.
    pub optimizer: Optimizer<R>,
    /// The element type of inputs.
    pub input: DataType,
    /// The element type of truths.
    pub truth: DataType,
}

impl<R: Rule> Plan<R> {
    /// A plan for float32 inputs and truths, or class numbers of type int64 where the loss takes
    /// them.
    #[must_use]
    pub fn new(loss: Loss, rule: R) -> Self {
        let truth = match loss {
            Loss::SparseCategoricalCrossentropy { .. } => DataType::INT64,
            _ => DataType::FLOAT,
        };
        Self {
            loss,
            metrics: Vec::new(),
            optimizer: Optimizer::new(rule),
            input: DataType::FLOAT,
            truth,
        }
    }

    /// Adds a metric.
    #[must_use]
    pub fn metric(mut self, metric: Metric) -> Self {
        self.metrics.push(metric);
        self
    }

    /// Sets the learning rate, a number or a schedule.
    #[must_use]
    pub fn rate(mut self, rate: impl Into<crate::nn::optimizer::Schedule>) -> Self {
        self.optimizer = self.optimizer.rate(rate);
        self
    }
}
