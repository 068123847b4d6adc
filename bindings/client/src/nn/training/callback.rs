//! What is told of a training's progress and may end it.

use std::fmt;

use tfp_core::{Error, Result};

use super::Trainer;
use crate::nn::optimizer::Rule;

/// Loss and metrics by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Logs {
    entries: Vec<(String, f64)>,
}

impl Logs {
    pub(super) fn set(&mut self, name: String, value: f64) {
        self.entries.push((name, value));
    }

    pub(super) fn extend(&mut self, other: Self) {
        self.entries.extend(other.entries);
    }

    /// Returns a value.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<f64> {
        let mut entries = self.entries.iter();
        entries
            .find(|(entry, _)| entry == name)
            .map(|&(_, value)| value)
    }

    /// Returns all names and values.
    pub fn iter(&self) -> impl Iterator<Item = (&str, f64)> {
        self.entries
            .iter()
            .map(|(name, value)| (name.as_str(), *value))
    }

    /// Returns a value that must be there.
    pub(super) fn need(&self, name: &str) -> Result<f64> {
        self.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.iter().map(|(name, _)| name).collect();
            Error::argument(format!(
                "no {name:?} is measured; there are {}",
                names.join(", ")
            ))
        })
    }
}

impl<'n, const N: usize> From<[(&'n str, f64); N]> for Logs {
    fn from(entries: [(&'n str, f64); N]) -> Self {
        let entries = entries.map(|(name, value)| (name.to_owned(), value));
        Self {
            entries: entries.into(),
        }
    }
}

impl fmt::Display for Logs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, value)) in self.iter().enumerate() {
            let space = if index == 0 { "" } else { "  " };
            write!(f, "{space}{name} {value:.4}")?;
        }
        Ok(())
    }
}

/// Whether a training goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Control {
    /// It goes on.
    Continue,
    /// It ends after this epoch.
    Stop,
}

/// Something that is told of a training's progress.
pub trait Callback<R: Rule> {
    /// A training begins: what was noted of another one must be forgotten.
    ///
    /// # Errors
    /// Those that end the training.
    fn start(&mut self, _trainer: &Trainer<R>) -> Result<()> {
        Ok(())
    }

    /// A training is about to begin: the trainer may be changed, as to one that was saved.
    ///
    /// # Errors
    /// Those that end the training.
    fn prepare(&mut self, _trainer: &mut Trainer<R>) -> Result<()> {
        Ok(())
    }

    /// A training has ended, without an error.
    ///
    /// # Errors
    /// Those of the training.
    fn finish(&mut self, _trainer: &Trainer<R>) -> Result<()> {
        Ok(())
    }

    /// An epoch of so many, with so many batches where their number is known, begins.
    ///
    /// # Errors
    /// Those that end the training.
    fn begin(&mut self, _epoch: usize, _epochs: usize, _batches: Option<usize>) -> Result<()> {
        Ok(())
    }

    /// An epoch begins, whose number is counted from 0. Here the rate may be set.
    ///
    /// # Errors
    /// Those that end the training.
    fn before_epoch(&mut self, _epoch: usize, _trainer: &Trainer<R>) -> Result<()> {
        Ok(())
    }

    /// A step was made; the loss is the mean of the epoch up to now. A training that is saved here goes
    /// on with the next step.
    ///
    /// # Errors
    /// Those that end the training.
    fn step(&mut self, _index: usize, _loss: f64, _trainer: &Trainer<R>) -> Result<()> {
        Ok(())
    }

    /// An epoch has ended.
    ///
    /// # Errors
    /// Those that end the training.
    fn end(&mut self, epoch: usize, logs: &Logs, trainer: &Trainer<R>) -> Result<Control>;
}
