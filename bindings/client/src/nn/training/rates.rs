//! Callbacks that change the learning rate.

use std::fmt;

use tfp_core::{Error, Result};

use super::best::Monitor;
use super::{Callback, Control, Goal, Logs, Trainer};
use crate::nn::optimizer::Rule;

/// Lowers the learning rate when a measure has not become better for some epochs. These are the rules of
/// Keras' `ReduceLROnPlateau`.
#[derive(Debug)]
pub struct ReduceLrOnPlateau {
    monitor: Monitor,
    factor: f64,
    patience: usize,
    cooldown: usize,
    min_rate: f32,
    // Of the training that runs.
    best: Option<f64>,
    waited: usize,
    cooling: usize,
}

impl ReduceLrOnPlateau {
    /// Watches a measure, such as `val_loss`, with Keras' defaults: a tenth of the rate after 10 epochs that
    /// were not better by 1e-4.
    #[must_use]
    pub fn new(monitor: &str) -> Self {
        let mut monitor = Monitor::new(monitor);
        monitor.min_delta = 1e-4;
        Self {
            monitor,
            factor: 0.1,
            patience: 10,
            cooldown: 0,
            min_rate: 0.0,
            best: None,
            waited: 0,
            cooling: 0,
        }
    }

    /// Sets what the rate is multiplied by, below one.
    #[must_use]
    pub fn factor(self, factor: f64) -> Self {
        Self { factor, ..self }
    }

    /// Sets how many epochs may be not better.
    #[must_use]
    pub fn patience(self, patience: usize) -> Self {
        Self { patience, ..self }
    }

    /// Sets how many epochs after a change are not counted.
    #[must_use]
    pub fn cooldown(self, cooldown: usize) -> Self {
        Self { cooldown, ..self }
    }

    /// Sets the smallest rate.
    #[must_use]
    pub fn min_rate(self, min_rate: f32) -> Self {
        Self { min_rate, ..self }
    }

    /// Sets the smallest change that counts as better, zero or more.
    #[must_use]
    pub fn min_delta(mut self, delta: f64) -> Self {
        self.monitor.min_delta = delta.abs();
        self
    }

    /// Sets which values are better.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Self {
        self.monitor.goal = goal;
        self
    }
}

impl<R: Rule> Callback<R> for ReduceLrOnPlateau {
    fn start(&mut self, _: &Trainer<R>) -> Result<()> {
        if !(0.0..1.0).contains(&self.factor) {
            return Err(Error::argument(format!(
                "ReduceLrOnPlateau: the factor is {}, expected 0 or more and below 1",
                self.factor
            )));
        }
        (self.best, self.waited, self.cooling) = (None, 0, 0);
        Ok(())
    }

    fn end(&mut self, _: usize, logs: &Logs, trainer: &Trainer<R>) -> Result<Control> {
        let now = logs.need(&self.monitor.name)?;
        let goal = self.monitor.goal(trainer)?;
        if self.cooling > 0 {
            self.cooling -= 1;
            self.waited = 0;
        }
        let is_better = |best| self.monitor.is_better(goal, now, best);
        if self.best.is_none_or(is_better) {
            self.best = Some(now);
            self.waited = 0;
        } else if self.cooling == 0 {
            self.waited += 1;
            let rate = trainer.rate();
            if self.waited >= self.patience && rate > self.min_rate {
                let lower = (f64::from(rate) * self.factor).max(f64::from(self.min_rate));
                trainer.set_rate(lower as f32);
                self.cooling = self.cooldown;
                self.waited = 0;
            }
        }
        Ok(Control::Continue)
    }
}

/// Sets the learning rate of each epoch: a function of its number, from 0 on, and of the rate before.
pub struct LearningRateScheduler<F> {
    rate: F,
}

impl<F: FnMut(usize, f32) -> f32> LearningRateScheduler<F> {
    /// Sets the rate by a function.
    pub fn new(rate: F) -> Self {
        Self { rate }
    }
}

impl<F> fmt::Debug for LearningRateScheduler<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LearningRateScheduler")
            .finish_non_exhaustive()
    }
}

impl<R: Rule, F: FnMut(usize, f32) -> f32> Callback<R> for LearningRateScheduler<F> {
    fn before_epoch(&mut self, epoch: usize, trainer: &Trainer<R>) -> Result<()> {
        trainer.set_rate((self.rate)(epoch, trainer.rate()));
        Ok(())
    }

    fn end(&mut self, _: usize, _: &Logs, _: &Trainer<R>) -> Result<Control> {
        Ok(Control::Continue)
    }
}

/// Ends a training as soon as the loss is not a finite number.
#[derive(Clone, Copy, Debug, Default)]
pub struct TerminateOnNan;

impl<R: Rule> Callback<R> for TerminateOnNan {
    fn step(&mut self, _: usize, loss: f64, trainer: &Trainer<R>) -> Result<()> {
        if !loss.is_finite() {
            trainer.stop();
        }
        Ok(())
    }

    fn end(&mut self, _: usize, _: &Logs, _: &Trainer<R>) -> Result<Control> {
        Ok(Control::Continue)
    }
}
