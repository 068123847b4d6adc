//! Training: steps, epochs, callbacks.

mod across;
mod batches;
mod best;
mod callback;
mod engine;
mod files;
mod graph;
mod job;
mod plan;
mod progress;
mod rates;
mod saving;
mod stepped;
mod tensorboard;
mod together;
mod traced;
mod weights;
mod whole;

use tfp_core::{DataType, Error, ErrorKind, Result, Session, Tensor};

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use super::layer::Model;
use super::optimizer::{Rule, Scaling, Schedule};
use super::{Meter, MetricFunction};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use engine::Engine;
use job::{Fed, Job, Measured};
use plan::Trained;

pub use crate::nn::metric::Goal;
pub use batches::{Batch, Batches, Source, Tensors};
pub use best::{EarlyStopping, SaveBest};
pub use callback::{Callback, Control, Logs};
pub use files::{BackupAndRestore, CsvLogger, ModelCheckpoint};
pub use plan::{Head, Plan};
pub use progress::Progress;
pub use rates::{LearningRateScheduler, ReduceLrOnPlateau, TerminateOnNan};
pub use tensorboard::TensorBoard;

/// A model in training: in a graph with a session of its own, or in eager mode with a tape per step,
/// as the context of its variables says.
pub struct Trainer<R> {
    model: Model,
    plan: Plan<R>,
    heads: Vec<Trained>,
    engine: Engine,
    step: u64,
    // Epochs that were made, and batches of the next one.
    epoch: u64,
    batch: u64,
    // The loss, those of the outputs where there are several, and the metrics, with their names.
    meters: Vec<(String, Meter)>,
    losses: usize,
    // A rate that takes the place of the plan's, and whether the training is to end.
    rate: Mutex<Option<f32>>,
    // The scale of the loss, if it has one.
    scaling: Option<Scaling>,
    is_stopped: AtomicBool,
}

/// A mean whose sums are added by the trainer.
#[derive(Debug)]
struct Mean(String);

impl MetricFunction for Mean {
    fn name(&self) -> String {
        self.0.clone()
    }

    fn goal(&self) -> Goal {
        Goal::Min
    }

    fn statistics(
        &self,
        _: &AnyContext,
        _: &AnyValue,
        _: &AnyValue,
        _: Option<&AnyValue>,
    ) -> Result<AnyValue> {
        Err(Error::argument("the mean of a loss has no statistics"))
    }

    fn result(&self, sums: &[f64]) -> f64 {
        match sums {
            [sum, count] if *count != 0.0 => sum / count,
            _ => 0.0,
        }
    }
}

impl<R: Rule> Trainer<R> {
    /// Makes a model ready for training; in a graph this gives its variables their initial values.
    ///
    /// # Errors
    /// What TensorFlow says, [`ErrorKind::NotFound`] for an op without a gradient, and
    /// [`ErrorKind::Argument`] for a head of an output that the model doesn't have.
    pub fn new(model: impl Into<Model>, plan: Plan<R>) -> Result<Self> {
        let model = model.into();
        let heads = plan.heads_of(&model)?;
        let scaling = Scaling::new(plan.loss_scale, model.weights().is_scaled())?;
        let job = Job {
            model: &model,
            heads: &heads,
            is_scaled: scaling.is_some(),
        };
        let engine = Engine::new(job, &plan)?;
        let mean = |name: &str| (name.to_owned(), Meter::new(Mean(name.to_owned())));
        let mut meters = vec![mean("loss")];
        if heads.len() > 1 {
            meters.extend(heads.iter().map(|one| mean(&format!("{}loss", one.prefix))));
        }
        let losses = meters.len();
        for Trained { prefix, head, .. } in &heads {
            for metric in &head.metrics {
                let name = format!("{prefix}{}", metric.name());
                meters.push((name, Meter::of(Arc::clone(metric))));
            }
        }
        Ok(Self {
            model,
            plan,
            heads,
            engine,
            step: 0,
            epoch: 0,
            batch: 0,
            meters,
            losses,
            rate: Mutex::new(None),
            scaling,
            is_stopped: AtomicBool::new(false),
        })
    }

    /// Returns the model.
    #[must_use]
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// The session that has the values of the variables, in graph mode.
    pub(crate) fn session(&self) -> Option<&Session> {
        self.engine.session()
    }

    pub(crate) fn plan(&self) -> &Plan<R> {
        &self.plan
    }

    /// The outputs that have a loss, by number, and what is done with them.
    pub(crate) fn trained(&self) -> impl Iterator<Item = (usize, &Head)> {
        self.heads.iter().map(|one| (one.output, &one.head))
    }

    /// The values of what the optimizer keeps: all slots of a variable, one variable after the other.
    pub(crate) fn slot_values(&self) -> Result<Vec<Tensor>> {
        let slots: Vec<_> = self.engine.slots().into_iter().cloned().collect();
        self.engine.values(&slots)
    }

    /// Whether the rate is a number, which Keras keeps in a variable.
    pub(crate) fn has_rate(&self) -> bool {
        self.own_rate().is_some() || matches!(self.plan.optimizer.rate, Schedule::Constant(_))
    }

    fn job(&self) -> Job<'_> {
        Job {
            model: &self.model,
            heads: &self.heads,
            is_scaled: self.scaling.is_some(),
        }
    }

    /// Returns the learning rate of the next step.
    #[must_use]
    pub fn rate(&self) -> f32 {
        self.own_rate()
            .unwrap_or_else(|| self.plan.optimizer.rate.rate(self.iterations()))
    }

    /// Sets the learning rate of all further steps, instead of the plan's: a number or a schedule.
    pub fn set_rate(&self, rate: f32) {
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner) = Some(rate);
    }

    /// Returns what the loss of the next step is multiplied by; none where it has no
    /// [scale](crate::nn::optimizer::LossScale).
    #[must_use]
    pub fn loss_scale(&self) -> Option<f32> {
        self.scaling.map(|scaling| scaling.scale)
    }

    /// Returns how many steps changed nothing, since their gradients were not finite at the scale of the
    /// loss.
    #[must_use]
    pub fn skipped(&self) -> u64 {
        self.scaling.map_or(0, |scaling| scaling.skipped)
    }

    /// The scale of the loss, if it has one.
    pub(crate) fn scaling(&self) -> Option<&Scaling> {
        self.scaling.as_ref()
    }

    /// How many steps the optimizer has made.
    pub(crate) fn iterations(&self) -> u64 {
        self.step.saturating_sub(self.skipped())
    }

    fn own_rate(&self) -> Option<f32> {
        *self.rate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes each step in eager mode one call of a function, which is traced when a batch comes first. In a
    /// training of [several workers](Self::across) the function has the collective op, too.
    ///
    /// What a layer, loss or metric of your own does besides calling ops happens once, while it is traced.
    /// In a graph this changes nothing: its steps are traced.
    #[must_use]
    pub fn traced(mut self) -> Self {
        if let Engine::Eager(eager) = &mut self.engine {
            eager.trace();
        }
        self
    }

    /// Makes [`Self::fit`] end after the step that is going on. The epoch ends with it.
    pub fn stop(&self) {
        self.is_stopped.store(true, Ordering::Relaxed);
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
        self.engine.values(self.model.variables())
    }

    /// Sets the values of all the model's variables, in their order.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] when their number differs, and as for
    /// [`Variable::assign`](crate::Variable::assign).
    pub fn set_values(&self, values: &[Tensor]) -> Result<()> {
        let variables = self.model.variables();
        if variables.len() != values.len() {
            return Err(Error::argument(format!(
                "{} values for {} variables",
                values.len(),
                variables.len()
            )));
        }
        self.engine.set_values(variables, values)
    }

    /// Makes one step and returns the loss before it. Of models with several inputs or outputs, tensors
    /// are given in order or by name.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for inputs or truths of another type than the plan's, [`ErrorKind::Shape`]
    /// for inputs of another shape than the model's, and what TensorFlow says, as for truths whose shape
    /// doesn't fit.
    pub fn train_on<'a>(
        &mut self,
        x: impl Into<Tensors<'a>>,
        truth: impl Into<Tensors<'a>>,
    ) -> Result<f32> {
        let fed = self.fed(x.into(), truth.into(), &[])?;
        self.train_fed(&fed)
    }

    /// Makes one step with the weights of a batch, and returns the loss before it.
    ///
    /// # Errors
    /// As for [`Self::train_on`], and [`ErrorKind::Argument`] for weights that the plan doesn't take.
    pub fn train_batch(&mut self, batch: &Batch) -> Result<f32> {
        let fed = self.fed((&batch.x).into(), (&batch.truth).into(), &batch.weights)?;
        self.train_fed(&fed)
    }

    fn train_fed(&mut self, fed: &Fed<'_>) -> Result<f32> {
        let (rate, step) = self.plan.optimizer.numbers(self.iterations())?;
        let rate = match self.own_rate() {
            Some(own) => Tensor::scalar(own)?,
            None => rate,
        };
        let scale = Tensor::scalar(self.loss_scale().unwrap_or(1.0))?;
        let numbers = [rate, step, scale];
        let (job, plan) = (self.job(), &self.plan);
        let mut measured = self.engine.train(job, plan, fed, &numbers, self.step)?;
        self.step += 1;
        if let Some(scaling) = &mut self.scaling {
            let finite = measured.values.pop();
            let finite = finite.ok_or_else(|| Error::argument("a step returned no value"))?;
            scaling.step(finite.to_scalar()?);
        }
        self.measure(&measured)
    }

    /// Measures loss and metrics of a batch without a step, and returns the loss.
    ///
    /// # Errors
    /// As for [`Self::train_on`].
    pub fn test_on<'a>(
        &mut self,
        x: impl Into<Tensors<'a>>,
        truth: impl Into<Tensors<'a>>,
    ) -> Result<f32> {
        let fed = self.fed(x.into(), truth.into(), &[])?;
        self.test_fed(&fed)
    }

    fn test_fed(&mut self, fed: &Fed<'_>) -> Result<f32> {
        let measured = self.engine.test(self.job(), fed)?;
        self.measure(&measured)
    }

    /// Computes a batch's results: those of the first output.
    ///
    /// # Errors
    /// As for [`Self::train_on`].
    pub fn predict<'a>(&self, x: impl Into<Tensors<'a>>) -> Result<Tensor> {
        let first = self.predict_all(x)?.into_iter().next();
        first.ok_or_else(|| Error::argument("a model returned no value"))
    }

    /// Computes a batch's results: those of all outputs, in their order.
    ///
    /// # Errors
    /// As for [`Self::train_on`].
    pub fn predict_all<'a>(&self, x: impl Into<Tensors<'a>>) -> Result<Vec<Tensor>> {
        let x = self.inputs(x.into())?;
        self.engine.predict(&self.model, &x)
    }

    /// Computes the results of all batches of some data: one tensor for each output.
    ///
    /// # Errors
    /// As for [`Self::train_on`], and [`ErrorKind::Argument`] for data without a batch.
    pub fn predict_over(&self, data: &impl Source) -> Result<Vec<Tensor>> {
        let mut parts: Vec<Vec<Tensor>> = Vec::new();
        for batch in data.epoch(0)? {
            let results = self.predict_all(&batch?.x)?;
            parts.resize_with(results.len(), Vec::new);
            for (part, result) in parts.iter_mut().zip(results) {
                part.push(result);
            }
        }
        check_batches(parts.len(), "the data of a prediction has")?;
        parts.iter().map(|parts| batches::joined(parts)).collect()
    }

    /// Brings inputs into their order and checks them.
    fn inputs<'a>(&self, x: Tensors<'a>) -> Result<Vec<&'a Tensor>> {
        let ports = self.model.inputs();
        let names: Vec<&str> = ports.iter().map(|port| &*port.name).collect();
        let x = x.ordered("inputs", &names)?;
        for (port, x) in ports.iter().zip(&x) {
            let what = match names.len() {
                1 => "the inputs of a batch".to_owned(),
                _ => format!("the input '{}' of a batch", port.name),
            };
            check_type(&what, port.dtype.unwrap_or(self.plan.input), x)?;
            let expected = job::batch_of(&port.shape);
            if !x.shape().is_compatible_with(&expected) {
                return Err(Error::new(ErrorKind::Shape {
                    what,
                    expected: format!("shape {expected}"),
                    found: x.shape(),
                }));
            }
        }
        Ok(x)
    }

    /// Brings the tensors of a batch into their order and checks them.
    fn fed<'a>(&self, x: Tensors<'a>, truth: Tensors<'a>, weights: &[Tensor]) -> Result<Fed<'a>> {
        let x = self.inputs(x)?;
        let ports = self.model.outputs();
        let names = self.heads.iter().map(|one| ports[one.output].name.as_str());
        let names: Vec<&str> = names.collect();
        let given = truth.ordered("outputs that have a loss,", &names)?;
        let mut truth = Vec::new();
        for ((trained, name), given) in self.heads.iter().zip(&names).zip(given) {
            let what = match names.len() {
                1 => "the truths of a batch".to_owned(),
                _ => format!("the truths of '{name}' of a batch"),
            };
            let expected = trained.head.truth;
            // Class numbers are of either type.
            let widened = expected == DataType::INT64 && given.dtype() == DataType::INT32;
            if widened {
                let numbers = given.as_slice::<i32>()?;
                let numbers = numbers.iter().copied().map(i64::from).collect();
                truth.push(Tensor::from_vec(numbers, given.dims())?);
            } else {
                check_type(&what, expected, given)?;
                truth.push(given.share()?);
            }
        }
        let samples = x.first().and_then(|x| x.dims().first()).copied();
        let samples = samples.unwrap_or(1);
        let weights = weights::per_head(&self.plan, &truth, weights, samples)?;
        Ok(Fed { x, truth, weights })
    }

    /// Takes losses and statistics into the meters.
    fn measure(&mut self, measured: &Measured) -> Result<f32> {
        let Measured { values, samples } = measured;
        let first = values.first();
        let loss = first.ok_or_else(|| Error::argument("a step returned no loss"))?;
        let loss = loss.to_scalar::<f32>()?;
        for (index, ((_, meter), value)) in self.meters.iter_mut().zip(values).enumerate() {
            if index < self.losses {
                meter.add(&[value.to_scalar::<f32>()? * samples, *samples])?;
            } else {
                meter.add(value.as_slice::<f32>()?)?;
            }
        }
        Ok(loss)
    }

    /// Returns loss and metrics of what was seen since the last call.
    fn logs(&mut self, prefix: &str) -> Logs {
        let mut logs = Logs::default();
        for (name, meter) in &self.meters {
            logs.set(format!("{prefix}{name}"), meter.result());
        }
        self.forget();
        logs
    }

    /// Forgets what was seen since the last logs.
    fn forget(&mut self) {
        for (_, meter) in &mut self.meters {
            meter.reset();
        }
    }

    /// The mean loss of what was seen since the last logs.
    fn mean_loss(&self) -> f64 {
        self.meters.first().map_or(0.0, |(_, meter)| meter.result())
    }

    /// Measures loss and metrics over data.
    ///
    /// # Errors
    /// As for [`Self::train_on`], and [`ErrorKind::Argument`] for data without a batch.
    pub fn evaluate(&mut self, data: &impl Source) -> Result<Logs> {
        self.forget();
        self.test_all(data)?;
        Ok(self.logs(""))
    }

    fn test_all(&mut self, data: &dyn Source) -> Result<()> {
        let mut count = 0;
        for batch in data.epoch(0)? {
            let Batch { x, truth, weights } = batch?;
            let fed = self.fed((&x).into(), (&truth).into(), &weights)?;
            self.test_fed(&fed)?;
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
        self.is_stopped.store(false, Ordering::Relaxed);
        let last = self.epoch + epochs as u64;
        for callback in callbacks.iter_mut() {
            callback.prepare(self)?;
        }
        if self.batch == 0 {
            self.forget();
        }
        for callback in callbacks.iter_mut() {
            callback.start(self)?;
        }
        while self.epoch < last {
            let epoch = self.epoch as usize;
            for callback in callbacks.iter_mut() {
                callback.begin(epoch, last as usize, data.count())?;
                callback.before_epoch(epoch, self)?;
            }
            let done = self.batch as usize;
            for (index, batch) in data.epoch(self.epoch)?.enumerate().skip(done) {
                self.train_batch(&batch?)?;
                self.batch += 1;
                let loss = self.mean_loss();
                for callback in callbacks.iter_mut() {
                    callback.step(index, loss, self)?;
                }
                if self.is_stopped.load(Ordering::Relaxed) {
                    break;
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
            if control == Control::Stop || self.is_stopped.load(Ordering::Relaxed) {
                break;
            }
        }
        self.use_averages()?;
        for callback in callbacks.iter_mut() {
            callback.finish(self)?;
        }
        Ok(history)
    }

    /// Sets the variables to their [moving averages](crate::nn::optimizer::Optimizer::average), as
    /// [`Self::fit`] does at its end. Without averages it does nothing.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn use_averages(&self) -> Result<()> {
        let optimizer = &self.plan.optimizer;
        if optimizer.average.is_none() || self.step == 0 {
            return Ok(());
        }
        let count = optimizer.kept().len();
        let averages = self.slot_values()?.into_iter();
        let averages: Vec<Tensor> = averages.skip(count - 1).step_by(count).collect();
        self.engine.set_values(&self.model.trainables(), &averages)
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
