//! Training: steps, epochs, callbacks.

mod batches;
mod best;
mod callback;
mod engine;
mod plan;
mod progress;
mod saving;

use tfp_core::{DataType, Error, ErrorKind, Result, Tensor};

use super::layer::Sequential;
use super::optimizer::Rule;
use super::{Meter, Metric};
use engine::Engine;

pub use crate::nn::metric::Goal;
pub use batches::{Batch, Batches, Source};
pub use best::{EarlyStopping, SaveBest};
pub use callback::{Callback, Control, Logs};
pub use plan::Plan;
pub use progress::Progress;

/// A model in training: in a graph with a session of its own, or in eager mode with a tape per step,
/// as the context of its variables says.
pub struct Trainer<R> {
    model: Sequential,
    plan: Plan<R>,
    engine: Engine,
    step: u64,
    // Epochs that were made, and batches of the next one.
    epoch: u64,
    batch: u64,
    meters: Vec<Meter>,
    loss: Meter,
}

impl<R: Rule> Trainer<R> {
    /// Makes a model ready for training; in a graph this gives its variables their initial values.
    ///
    /// # Errors
    /// What TensorFlow says, and [`ErrorKind::NotFound`] for an op
    /// without a gradient.
    pub fn new(model: Sequential, plan: Plan<R>) -> Result<Self> {
        let engine = Engine::new(&model, &plan)?;
        let meters = plan.metrics.iter().copied().map(Meter::new).collect();
        let loss = Meter::new(Metric::Mean(plan.loss));
        Ok(Self {
            model,
            plan,
            engine,
            step: 0,
            epoch: 0,
            batch: 0,
            meters,
            loss,
        })
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Sequential {
        &self.model
    }

    /// Returns how many steps were made.
    #[must_use]
    pub fn step(&self) -> u64 {
        self.step
    }

    /// Returns how many epochs [`Self::fit`] made, also before the training was saved and restored. Of
    /// the next one some batches may be done.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// Returns the values of all the model's variables, in their order.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn values(&self) -> Result<Vec<Tensor>> {
        self.engine.values(&self.model.weights().variables())
    }

    /// Sets the values of all the model's variables, in their order.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] when their number differs, and as for
    /// [`Variable::assign`](crate::Variable::assign).
    pub fn set_values(&self, values: &[Tensor]) -> Result<()> {
        let variables = self.model.weights().variables();
        if variables.len() != values.len() {
            return Err(Error::argument(format!(
                "{} values for {} variables",
                values.len(),
                variables.len()
            )));
        }
        self.engine.set_values(&variables, values)
    }

    /// Makes one step and returns the loss before it.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for inputs or truths of another type than the plan's, [`ErrorKind::Shape`]
    /// for inputs of another shape than the model's, and what TensorFlow says, as for truths whose shape
    /// doesn't fit.
    pub fn train_on(&mut self, x: &Tensor, truth: &Tensor) -> Result<f32> {
        self.check_input(x)?;
        self.check_truth(truth)?;
        let numbers = self.plan.optimizer.numbers(self.step)?;
        let measured = self
            .engine
            .train(&self.model, &self.plan, x, truth, &numbers, self.step)?;
        self.step += 1;
        self.measure(x, &measured)
    }

    /// Measures loss and metrics of a batch without a step, and returns the loss.
    ///
    /// # Errors
    /// As for [`Self::train_on`].
    pub fn test_on(&mut self, x: &Tensor, truth: &Tensor) -> Result<f32> {
        self.check_input(x)?;
        self.check_truth(truth)?;
        let measured = self.engine.test(&self.model, &self.plan, x, truth)?;
        self.measure(x, &measured)
    }

    /// Computes a batch's results.
    ///
    /// # Errors
    /// As for [`Self::train_on`].
    pub fn predict(&self, x: &Tensor) -> Result<Tensor> {
        self.check_input(x)?;
        self.engine.predict(&self.model, x)
    }

    fn check_input(&self, x: &Tensor) -> Result<()> {
        check_type("the inputs of a batch", self.plan.input, x)?;
        let expected = engine::batch_of(self.model.input_shape());
        if x.shape().is_compatible_with(&expected) {
            return Ok(());
        }
        Err(Error::new(ErrorKind::Shape {
            what: "the inputs of a batch".to_owned(),
            expected: format!("shape {expected}"),
            found: x.shape(),
        }))
    }

    fn check_truth(&self, truth: &Tensor) -> Result<()> {
        check_type("the truths of a batch", self.plan.truth, truth)
    }

    /// Takes a loss and statistics into the meters.
    fn measure(&mut self, x: &Tensor, measured: &[Tensor]) -> Result<f32> {
        let (loss, statistics) = measured
            .split_first()
            .ok_or_else(|| Error::argument("a step returned no loss"))?;
        let loss = loss.to_scalar::<f32>()?;
        let samples = x.dims().first().copied().unwrap_or(1) as f32;
        self.loss.add(&[loss * samples, samples])?;
        for (meter, statistics) in self.meters.iter_mut().zip(statistics) {
            meter.add(statistics.as_slice::<f32>()?)?;
        }
        Ok(loss)
    }

    /// Returns loss and metrics of what was seen since the last call.
    fn logs(&mut self, prefix: &str) -> Logs {
        let mut logs = Logs::default();
        logs.set(format!("{prefix}loss"), self.loss.result());
        self.loss.reset();
        for meter in &mut self.meters {
            logs.set(format!("{prefix}{}", meter.metric().name()), meter.result());
            meter.reset();
        }
        logs
    }

    /// Measures loss and metrics over data.
    ///
    /// # Errors
    /// As for [`Self::train_on`], and [`ErrorKind::Argument`] for data without a batch.
    pub fn evaluate(&mut self, data: &impl Source) -> Result<Logs> {
        self.logs("");
        self.test_all(data)?;
        Ok(self.logs(""))
    }

    fn test_all(&mut self, data: &dyn Source) -> Result<()> {
        let mut count = 0;
        for batch in data.epoch(0)? {
            let Batch { x, truth } = batch?;
            self.test_on(&x, &truth)?;
            count += 1;
        }
        check_batches(count, "the data of an evaluation has")
    }

    /// Trains for epochs and returns the logs of each. Loss and metrics of the validation data have
    /// the prefix `val_`.
    ///
    /// Epochs are counted over the life of a training, so that a second call has other orders of shuffled
    /// data. After [`Self::restore`] the first epoch is the one that was going on, from the batch after
    /// the last: with `epochs` less by [`Self::epoch`] the training ends as if it had not ended before.
    ///
    /// # Errors
    /// As for [`Self::evaluate`], and those of callbacks.
    pub fn fit(
        &mut self,
        data: &impl Source,
        epochs: usize,
        validation: Option<&dyn Source>,
        callbacks: &mut [&mut dyn Callback<R>],
    ) -> Result<Vec<Logs>> {
        let mut history = Vec::new();
        if self.batch == 0 {
            self.logs("");
        }
        for callback in callbacks.iter_mut() {
            callback.start(self)?;
        }
        let last = self.epoch + epochs as u64;
        while self.epoch < last {
            let epoch = self.epoch as usize;
            for callback in callbacks.iter_mut() {
                callback.begin(epoch, last as usize, data.count())?;
            }
            let done = self.batch as usize;
            for (index, batch) in data.epoch(self.epoch)?.enumerate().skip(done) {
                let Batch { x, truth } = batch?;
                self.train_on(&x, &truth)?;
                self.batch += 1;
                let loss = self.loss.result();
                for callback in callbacks.iter_mut() {
                    callback.step(index, loss, self)?;
                }
            }
            check_batches(self.batch as usize, "an epoch of the training has")?;
            let mut logs = self.logs("");
            (self.epoch, self.batch) = (self.epoch + 1, 0);
            if let Some(validation) = validation {
                self.test_all(validation)?;
                logs.extend(self.logs("val_"));
            }
            let mut control = Control::Continue;
            for callback in callbacks.iter_mut() {
                if callback.end(epoch, &logs, self)? == Control::Stop {
                    control = Control::Stop;
                }
            }
            history.push(logs);
            if control == Control::Stop {
                break;
            }
        }
        for callback in callbacks.iter_mut() {
            callback.finish(self)?;
        }
        Ok(history)
    }
}

/// Refuses a tensor that is not of the plan's type: eager mode would compute with any that its ops take.
fn check_type(what: &str, expected: DataType, tensor: &Tensor) -> Result<()> {
    if tensor.dtype() == expected {
        return Ok(());
    }
    Err(Error::new(ErrorKind::DType {
        what: what.to_owned(),
        expected,
        found: tensor.dtype(),
    }))
}

/// A loss of nothing would be zero, the best there is.
fn check_batches(count: usize, what: &str) -> Result<()> {
    match count {
        0 => Err(Error::argument(format!("{what} no batch"))),
        _ => Ok(()),
    }
}
