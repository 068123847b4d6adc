//! What a training makes small and measures: losses and metrics, those of Keras and your own.

use std::fmt::Debug;
use std::sync::Arc;

use tfp_core::{DataType, Error, Result};

use super::Loss;
use super::metric::{Goal, Metric};
use super::policy::as_type;
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::ops;

/// A loss: what a training makes small. [`Loss`] has those of Keras.
pub trait LossFunction: Debug + Send + Sync {
    /// Returns the name that logs have.
    fn name(&self) -> String;

    /// Returns the loss of Keras that it is, for its files.
    fn as_loss(&self) -> Option<Loss> {
        None
    }

    /// Returns the element type of truths.
    fn truth(&self) -> DataType {
        DataType::FLOAT
    }

    /// Computes each sample's loss from truths and predictions, (batch, ...) each: the shape of
    /// predictions without the last dimension, or a scalar.
    ///
    /// # Errors
    /// What TensorFlow says, as for shapes that don't fit.
    fn per_sample(
        &self,
        cx: &AnyContext,
        truth: &AnyValue,
        predicted: &AnyValue,
    ) -> Result<AnyValue>;
}

impl LossFunction for Loss {
    fn as_loss(&self) -> Option<Loss> {
        Some(*self)
    }

    fn name(&self) -> String {
        Loss::name(*self).to_owned()
    }

    fn truth(&self) -> DataType {
        match self {
            Self::SparseCategoricalCrossentropy { .. } => DataType::INT64,
            _ => DataType::FLOAT,
        }
    }

    fn per_sample(
        &self,
        cx: &AnyContext,
        truth: &AnyValue,
        predicted: &AnyValue,
    ) -> Result<AnyValue> {
        Loss::per_sample(*self, cx, truth, predicted)
    }
}

/// A metric: what is measured beside the loss. [`Metric`] has those of Keras.
///
/// A batch gives a vector of statistics; their sums over batches give the result.
pub trait MetricFunction: Debug + Send + Sync {
    /// Returns the name that logs have.
    fn name(&self) -> String;

    /// Returns the metric of Keras that it is, for its files.
    fn as_metric(&self) -> Option<Metric> {
        None
    }

    /// Returns which values are better, for callbacks that watch it.
    fn goal(&self) -> Goal {
        Goal::Auto
    }

    /// Computes a batch's statistics from truths and predictions, (batch, ...) each: a float32 vector.
    /// A mask, of the shape of predictions without the last dimension, is false for what doesn't count.
    ///
    /// # Errors
    /// What TensorFlow says, as for shapes that don't fit.
    fn statistics(
        &self,
        cx: &AnyContext,
        truth: &AnyValue,
        predicted: &AnyValue,
        mask: Option<&AnyValue>,
    ) -> Result<AnyValue>;

    /// Computes the metric from the sums of its statistics, which are empty when nothing was seen.
    fn result(&self, sums: &[f64]) -> f64;
}

impl MetricFunction for Metric {
    fn as_metric(&self) -> Option<Metric> {
        Some(*self)
    }

    fn name(&self) -> String {
        Metric::name(*self).to_owned()
    }

    fn goal(&self) -> Goal {
        Metric::goal(*self)
    }

    fn statistics(
        &self,
        cx: &AnyContext,
        truth: &AnyValue,
        predicted: &AnyValue,
        mask: Option<&AnyValue>,
    ) -> Result<AnyValue> {
        self.masked_statistics(cx, truth, predicted, mask)
    }

    fn result(&self, sums: &[f64]) -> f64 {
        Metric::result(*self, sums)
    }
}

/// A metric with the sums of what it has seen.
#[derive(Clone, Debug)]
pub struct Meter {
    metric: Arc<dyn MetricFunction>,
    sums: Vec<f64>,
}

impl Meter {
    /// Begins with nothing seen.
    #[must_use]
    pub fn new(metric: impl MetricFunction + 'static) -> Self {
        Self::of(Arc::new(metric))
    }

    /// Begins with nothing seen of a metric that others have, too.
    #[must_use]
    pub fn of(metric: Arc<dyn MetricFunction>) -> Self {
        Self {
            metric,
            sums: Vec::new(),
        }
    }

    /// Returns the metric.
    #[must_use]
    pub fn metric(&self) -> &dyn MetricFunction {
        &*self.metric
    }

    /// Adds a batch's statistics.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for statistics of another length than
    /// those before.
    pub fn add(&mut self, statistics: &[f32]) -> Result<()> {
        if self.sums.is_empty() {
            self.sums.resize(statistics.len(), 0.0);
        }
        if self.sums.len() != statistics.len() {
            return Err(Error::argument(format!(
                "{}: {} statistics, expected {}",
                self.metric.name(),
                statistics.len(),
                self.sums.len()
            )));
        }
        for (sum, value) in self.sums.iter_mut().zip(statistics) {
            *sum += f64::from(*value);
        }
        Ok(())
    }

    /// Returns the metric of everything seen.
    #[must_use]
    pub fn result(&self) -> f64 {
        self.metric.result(&self.sums)
    }

    /// Returns the sums of everything seen.
    pub(super) fn sums(&self) -> &[f64] {
        &self.sums
    }

    /// Goes on from sums of another meter of the same metric.
    pub(super) fn set_sums(&mut self, sums: Vec<f64>) {
        self.sums = sums;
    }

    /// Forgets everything seen.
    pub fn reset(&mut self) {
        self.sums.clear();
    }
}

/// Computes the mean loss over the samples for which a mask is true, times the weights of samples: a
/// scalar. The divisor is the number of samples, not of weights, as in Keras.
pub(super) fn mean_loss(
    loss: &dyn LossFunction,
    cx: &AnyContext,
    [truth, predicted]: [&AnyValue; 2],
    mask: Option<&AnyValue>,
    weights: Option<&AnyValue>,
) -> Result<AnyValue> {
    let mut losses = loss.per_sample(cx, truth, predicted)?;
    if let Some(mask) = mask {
        let mask = as_type(cx, mask, losses.dtype())?;
        let share = ops::mean(cx, ops::reshape(cx, &mask, [-1])?, 0, Default::default())?;
        // Where nothing is left the loss is zero, and so are its gradients.
        losses = ops::mul(cx, losses, ops::div_no_nan(cx, mask, share)?)?;
    }
    if let Some(weights) = weights {
        let weights = as_type(cx, weights, losses.dtype())?;
        losses = weighted(cx, &losses, weights)?;
    }
    let flat = ops::reshape(cx, losses, [-1])?;
    ops::mean(cx, flat, 0, Default::default())
}

/// Multiplies losses by weights, of which there is one per sample.
fn weighted(cx: &AnyContext, losses: &AnyValue, mut weights: AnyValue) -> Result<AnyValue> {
    for _ in 1..losses.shape()?.rank().unwrap_or(1) {
        weights = ops::expand_dims(cx, weights, -1)?;
    }
    ops::mul(cx, losses, weights)
}
