//! Callbacks of the chief.

use tfp_core::Result;

use super::workers::MultiWorker;
use crate::nn::optimizer::Rule;
use crate::nn::training::{Callback, Control, Logs, Trainer};

/// A callback that the chief alone calls, as one that writes checkpoints or a log. If it ends the training, it
/// ends that of all workers.
///
/// What it changes before a training begins, as [`BackupAndRestore`](crate::nn::training::BackupAndRestore)
/// does, reaches all workers.
#[derive(Debug)]
pub struct ChiefOnly<C> {
    callback: C,
    workers: MultiWorker,
}

impl<C> ChiefOnly<C> {
    /// Lets the chief of some workers have a callback.
    #[must_use]
    pub fn new(workers: &MultiWorker, callback: C) -> Self {
        Self {
            callback,
            workers: workers.clone(),
        }
    }

    /// Returns the callback.
    #[must_use]
    pub fn callback(&self) -> &C {
        &self.callback
    }
}

impl<R: Rule, C: Callback<R>> Callback<R> for ChiefOnly<C> {
    fn start(&mut self, trainer: &Trainer<R>) -> Result<()> {
        if !self.workers.is_chief() {
            return Ok(());
        }
        self.callback.start(trainer)
    }

    fn prepare(&mut self, trainer: &mut Trainer<R>) -> Result<()> {
        if self.workers.is_chief() {
            self.callback.prepare(trainer)?;
        }
        trainer.synchronize()
    }

    fn finish(&mut self, trainer: &Trainer<R>) -> Result<()> {
        if !self.workers.is_chief() {
            return Ok(());
        }
        self.callback.finish(trainer)
    }

    fn begin(&mut self, epoch: usize, epochs: usize, batches: Option<usize>) -> Result<()> {
        if !self.workers.is_chief() {
            return Ok(());
        }
        self.callback.begin(epoch, epochs, batches)
    }

    fn before_epoch(&mut self, epoch: usize, trainer: &Trainer<R>) -> Result<()> {
        if !self.workers.is_chief() {
            return Ok(());
        }
        self.callback.before_epoch(epoch, trainer)
    }

    fn step(&mut self, index: usize, loss: f64, trainer: &Trainer<R>) -> Result<()> {
        if !self.workers.is_chief() {
            return Ok(());
        }
        self.callback.step(index, loss, trainer)
    }

    fn end(&mut self, epoch: usize, logs: &Logs, trainer: &Trainer<R>) -> Result<Control> {
        let mut control = Control::Continue;
        if self.workers.is_chief() {
            control = self.callback.end(epoch, logs, trainer)?;
        }
        Ok(match self.workers.any(control == Control::Stop)? {
            true => Control::Stop,
            false => Control::Continue,
        })
    }
}
