//! Callbacks that watch for the best epoch.

use tfp_core::{Error, Result, Tensor};

use super::{Callback, Control, Logs, Trainer};
use crate::nn::metric::Goal;
use crate::nn::optimizer::Rule;

/// A measure that is watched.
#[derive(Clone, Debug)]
pub(super) struct Monitor {
    pub name: String,
    pub goal: Goal,
    pub min_delta: f64,
}

impl Monitor {
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            goal: Goal::Auto,
            min_delta: 0.0,
        }
    }

    /// Returns the goal, which is `Min` or `Max`.
    pub fn goal<R: Rule>(&self, trainer: &Trainer<R>) -> Result<Goal> {
        if self.goal != Goal::Auto {
            return Ok(self.goal);
        }
        let name = self.name.strip_prefix("val_").unwrap_or(&self.name);
        let found = trainer.meters.iter().find(|(meter, _)| meter == name);
        let goal = found.map(|(_, meter)| meter.metric().goal());
        goal.filter(|goal| *goal != Goal::Auto).ok_or_else(|| {
            Error::argument(format!(
                "whether a smaller or a larger {:?} is better is not known: it is not the loss or a \
                 metric of the plan; set the goal",
                self.name
            ))
        })
    }

    /// Whether a value is better than another by more than the smallest change that counts.
    pub fn is_better(&self, goal: Goal, now: f64, than: f64) -> bool {
        match goal {
            Goal::Max => now - self.min_delta > than,
            _ => now + self.min_delta < than,
        }
    }
}

/// Ends a training when a measure has not become better for some epochs. When the training ends, then
/// or later, the model gets the values of the best epoch.
///
/// These are the rules of Keras with `restore_best_weights=True`.
#[derive(Debug)]
pub struct EarlyStopping {
    monitor: Monitor,
    patience: usize,
    baseline: Option<f64>,
    start_from_epoch: usize,
    restore_best: bool,
    // Of the training that runs.
    best: Option<f64>,
    values: Option<Vec<Tensor>>,
    waited: usize,
    epochs: usize,
}

impl EarlyStopping {
    /// Watches a measure, as `val_loss` or `val_binary_accuracy`, and waits for so many epochs.
    #[must_use]
    pub fn new(monitor: &str, patience: usize) -> Self {
        Self {
            monitor: Monitor::new(monitor),
            patience,
            baseline: None,
            start_from_epoch: 0,
            restore_best: true,
            best: None,
            values: None,
            waited: 0,
            epochs: 0,
        }
    }

    /// Sets which values are better.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Self {
        self.monitor.goal = goal;
        self
    }

    /// Sets the smallest change that counts as better, zero or more.
    #[must_use]
    pub fn min_delta(mut self, delta: f64) -> Self {
        self.monitor.min_delta = delta.abs();
        self
    }

    /// Sets a value that the measure must become better than within the patience.
    #[must_use]
    pub fn baseline(mut self, baseline: f64) -> Self {
        self.baseline = Some(baseline);
        self
    }

    /// Sets the number of epochs at the beginning of each training that are not watched.
    #[must_use]
    pub fn start_from_epoch(mut self, epochs: usize) -> Self {
        self.start_from_epoch = epochs;
        self
    }

    /// Sets whether the model gets the values of the best epoch at the end; otherwise it keeps those of
    /// the last.
    #[must_use]
    pub fn restore_best(mut self, restore: bool) -> Self {
        self.restore_best = restore;
        self
    }
}

impl<R: Rule> Callback<R> for EarlyStopping {
    fn start(&mut self, _: &Trainer<R>) -> Result<()> {
        (self.best, self.values) = (None, None);
        (self.waited, self.epochs) = (0, 0);
        Ok(())
    }

    fn end(&mut self, _: usize, logs: &Logs, trainer: &Trainer<R>) -> Result<Control> {
        let now = logs.need(&self.monitor.name)?;
        let goal = self.monitor.goal(trainer)?;
        let index = self.epochs;
        self.epochs += 1;
        if index < self.start_from_epoch {
            return Ok(Control::Continue);
        }
        // Also when no epoch is better than any, as when all are NaN.
        if self.restore_best && self.values.is_none() {
            self.values = Some(trainer.values()?);
        }
        self.waited += 1;
        let is_better = match self.best {
            Some(best) => self.monitor.is_better(goal, now, best),
            None => !now.is_nan(),
        };
        if is_better {
            self.best = Some(now);
            if self.restore_best {
                self.values = Some(trainer.values()?);
            }
            let beats = |baseline| self.monitor.is_better(goal, now, baseline);
            if self.baseline.is_none_or(beats) {
                self.waited = 0;
            }
            return Ok(Control::Continue);
        }
        if self.waited >= self.patience && index > 0 {
            return Ok(Control::Stop);
        }
        Ok(Control::Continue)
    }

    fn finish(&mut self, trainer: &Trainer<R>) -> Result<()> {
        match self.values.take() {
            Some(values) => trainer.set_values(&values),
            None => Ok(()),
        }
    }
}

/// Calls a function with the trainer whenever a measure is better than in all epochs of the training
/// before, as to write a checkpoint.
pub struct SaveBest<F> {
    monitor: Monitor,
    threshold: Option<f64>,
    best: Option<f64>,
    save: F,
}

impl<F> SaveBest<F> {
    /// Watches a measure, as `val_loss` or `val_binary_accuracy`.
    pub fn new(monitor: &str, save: F) -> Self {
        Self {
            monitor: Monitor::new(monitor),
            threshold: None,
            best: None,
            save,
        }
    }

    /// Sets which values are better.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Self {
        self.monitor.goal = goal;
        self
    }

    /// Sets a value that the first epoch must be better than, as the best of an earlier training.
    #[must_use]
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = Some(threshold);
        self
    }
}

impl<R: Rule, F: FnMut(usize, &Trainer<R>) -> Result<()>> Callback<R> for SaveBest<F> {
    fn start(&mut self, _: &Trainer<R>) -> Result<()> {
        self.best = self.threshold;
        Ok(())
    }

    fn end(&mut self, epoch: usize, logs: &Logs, trainer: &Trainer<R>) -> Result<Control> {
        let now = logs.need(&self.monitor.name)?;
        let goal = self.monitor.goal(trainer)?;
        let is_better = match self.best {
            Some(best) => self.monitor.is_better(goal, now, best),
            None => !now.is_nan(),
        };
        if is_better {
            self.best = Some(now);
            (self.save)(epoch, trainer)?;
        }
        Ok(Control::Continue)
    }
}
