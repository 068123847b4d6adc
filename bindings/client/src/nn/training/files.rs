//! Callbacks that write files.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use tfp_core::{Error, ErrorKind, Result};

use super::best::Monitor;
use super::{Callback, Control, Goal, Logs, Trainer};
use crate::checkpoint::index_path;
use crate::files::{folder_of, unwritten};
use crate::nn::optimizer::Rule;

/// Saves a training after each epoch, or after those that are better than all before.
///
/// The path may have places for the number of the epoch, from 1 on, and for measures, as Keras' have:
/// `model-{epoch:02d}-{val_loss:.2f}.keras`.
pub struct ModelCheckpoint<S> {
    pattern: String,
    save: S,
    monitor: Option<Monitor>,
    threshold: Option<f64>,
    best: Option<f64>,
}

impl<S> ModelCheckpoint<S> {
    /// Saves by a function of the path, as `|path, trainer| trainer.save(path)`.
    pub fn new(pattern: &str, save: S) -> Self {
        Self {
            pattern: pattern.to_owned(),
            save,
            monitor: None,
            threshold: None,
            best: None,
        }
    }

    /// Saves after an epoch only if a measure, as `val_loss`, is better than in all epochs before.
    #[must_use]
    pub fn save_best_only(mut self, monitor: &str) -> Self {
        self.monitor = Some(Monitor::new(monitor));
        self
    }

    /// Sets which values of the measure are better.
    #[must_use]
    pub fn goal(mut self, goal: Goal) -> Self {
        if let Some(monitor) = &mut self.monitor {
            monitor.goal = goal;
        }
        self
    }

    /// Sets a value that the first epoch must be better than.
    #[must_use]
    pub fn threshold(mut self, threshold: f64) -> Self {
        self.threshold = Some(threshold);
        self
    }
}

impl<S> fmt::Debug for ModelCheckpoint<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ModelCheckpoint")
            .field("pattern", &self.pattern)
            .field("best", &self.best)
            .finish_non_exhaustive()
    }
}

impl<R: Rule, S: FnMut(&Path, &Trainer<R>) -> Result<()>> Callback<R> for ModelCheckpoint<S> {
    fn start(&mut self, _: &Trainer<R>) -> Result<()> {
        self.best = self.threshold;
        Ok(())
    }

    fn end(&mut self, epoch: usize, logs: &Logs, trainer: &Trainer<R>) -> Result<Control> {
        if let Some(monitor) = &self.monitor {
            let now = logs.need(&monitor.name)?;
            let goal = monitor.goal(trainer)?;
            if self
                .best
                .is_some_and(|best| !monitor.is_better(goal, now, best))
            {
                return Ok(Control::Continue);
            }
            self.best = Some(now);
        }
        let path = PathBuf::from(filled(&self.pattern, epoch + 1, logs)?);
        let folder = folder_of(&path);
        fs::create_dir_all(folder).map_err(unwritten(folder))?;
        (self.save)(&path, trainer)?;
        Ok(Control::Continue)
    }
}

/// Fills the places of a pattern.
fn filled(pattern: &str, epoch: usize, logs: &Logs) -> Result<String> {
    let mut text = String::new();
    let mut rest = pattern;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let wrong = |why: &str| Error::argument(format!("the path '{pattern}': {why}"));
        let (place, after) = after
            .split_once('}')
            .ok_or_else(|| wrong("a '{' without a '}'"))?;
        rest = after;
        let (name, format) = place.split_once(':').unwrap_or((place, ""));
        if name == "epoch" {
            let width = format.trim_end_matches('d');
            let digits = width.parse::<usize>().unwrap_or(0);
            text.push_str(&match width.starts_with('0') {
                true => format!("{epoch:0digits$}"),
                false => format!("{epoch:digits$}"),
            });
            continue;
        }
        let value = logs.need(name)?;
        let digits = format
            .strip_prefix('.')
            .and_then(|one| one.strip_suffix('f'));
        let digits = digits.map(str::parse::<usize>);
        text.push_str(&match (digits, format) {
            (Some(Ok(digits)), _) => format!("{value:.digits$}"),
            (None, "") => python(value),
            _ => {
                return Err(wrong(&format!(
                    "the format '{format}', expected one as '.2f'"
                )));
            }
        });
    }
    text.push_str(rest);
    Ok(text)
}

/// A number as Python writes it.
fn python(value: f64) -> String {
    let size = value.abs();
    if value.is_nan() {
        return "nan".to_owned();
    }
    if size != 0.0 && size.is_finite() && !(1e-4..1e16).contains(&size) {
        let text = format!("{value:e}");
        let (digits, power) = text.split_once('e').unwrap_or((&text, "0"));
        let (sign, power) = match power.strip_prefix('-') {
            Some(power) => ('-', power),
            None => ('+', power),
        };
        return format!("{digits}e{sign}{power:0>2}");
    }
    format!("{value:?}")
}

/// Writes loss and metrics of each epoch as a row of a CSV file, as Keras' `CSVLogger` does.
#[derive(Debug)]
pub struct CsvLogger {
    path: PathBuf,
    separator: String,
    append: bool,
    file: Option<File>,
    names: Vec<String>,
}

impl CsvLogger {
    /// Writes a file, which replaces one that is there when a training begins.
    pub fn new(path: impl AsRef<Path>) -> Self {
        Self {
            path: path.as_ref().to_owned(),
            separator: ",".to_owned(),
            append: false,
            file: None,
            names: Vec::new(),
        }
    }

    /// Adds rows to a file that is there.
    #[must_use]
    pub fn append(self) -> Self {
        Self {
            append: true,
            ..self
        }
    }

    /// Sets what is between columns.
    #[must_use]
    pub fn separator(self, separator: &str) -> Self {
        let separator = separator.to_owned();
        Self { separator, ..self }
    }
}

impl<R: Rule> Callback<R> for CsvLogger {
    fn start(&mut self, _: &Trainer<R>) -> Result<()> {
        let folder = folder_of(&self.path);
        fs::create_dir_all(folder).map_err(unwritten(folder))?;
        let mut options = OpenOptions::new();
        options.create(true).append(self.append);
        options.write(true).truncate(!self.append);
        self.file = Some(options.open(&self.path).map_err(unwritten(&self.path))?);
        self.names.clear();
        Ok(())
    }

    fn end(&mut self, epoch: usize, logs: &Logs, _: &Trainer<R>) -> Result<Control> {
        let Some(file) = &mut self.file else {
            return Ok(Control::Continue);
        };
        let failed = unwritten(&self.path);
        let mut text = String::new();
        if self.names.is_empty() {
            self.names = logs.iter().map(|(name, _)| name.to_owned()).collect();
            self.names.sort();
            // Columns for a validation that a later epoch may have.
            if !self.names.iter().any(|name| name.starts_with("val_")) {
                let more: Vec<String> = self.names.iter().map(|one| format!("val_{one}")).collect();
                self.names.extend(more);
            }
            let is_new = file.metadata().is_ok_and(|file| file.len() == 0);
            if is_new {
                let names = self.names.join(&self.separator);
                text = format!("epoch{}{names}\r\n", self.separator);
            }
        }
        text.push_str(&epoch.to_string());
        for name in &self.names {
            text.push_str(&self.separator);
            text.push_str(&logs.get(name).map_or_else(|| "NA".to_owned(), python));
        }
        text.push_str("\r\n");
        file.write_all(text.as_bytes()).map_err(failed)?;
        Ok(Control::Continue)
    }

    fn finish(&mut self, _: &Trainer<R>) -> Result<()> {
        self.file = None;
        Ok(())
    }
}

/// Lets a training that died go on where it was: it is saved after each epoch, and [`Trainer::fit`]
/// begins from what is there. Further losses are those that it would have had. When the training ends,
/// the save is deleted.
#[derive(Clone, Debug)]
pub struct BackupAndRestore {
    prefix: PathBuf,
    every: Option<usize>,
    keep: bool,
}

impl BackupAndRestore {
    /// Saves in a folder.
    pub fn new(folder: impl AsRef<Path>) -> Self {
        Self {
            prefix: folder.as_ref().join("latest"),
            every: None,
            keep: false,
        }
    }

    /// Saves after so many batches of an epoch, too.
    #[must_use]
    pub fn every(self, batches: usize) -> Self {
        Self {
            every: Some(batches.max(1)),
            ..self
        }
    }

    /// Keeps the save when the training ends.
    #[must_use]
    pub fn keep(self) -> Self {
        Self { keep: true, ..self }
    }

    fn save<R: Rule>(&self, trainer: &Trainer<R>) -> Result<()> {
        let folder = folder_of(&self.prefix);
        fs::create_dir_all(folder).map_err(unwritten(folder))?;
        trainer.save(&self.prefix)
    }
}

impl<R: Rule> Callback<R> for BackupAndRestore {
    fn prepare(&mut self, trainer: &mut Trainer<R>) -> Result<()> {
        match index_path(&self.prefix).exists() {
            true => trainer.restore(&self.prefix),
            false => Ok(()),
        }
    }

    fn step(&mut self, index: usize, _: f64, trainer: &Trainer<R>) -> Result<()> {
        match self.every {
            Some(every) if (index + 1).is_multiple_of(every) => self.save(trainer),
            _ => Ok(()),
        }
    }

    fn end(&mut self, _: usize, _: &Logs, trainer: &Trainer<R>) -> Result<Control> {
        self.save(trainer)?;
        Ok(Control::Continue)
    }

    fn finish(&mut self, _: &Trainer<R>) -> Result<()> {
        if self.keep {
            return Ok(());
        }
        let folder = folder_of(&self.prefix);
        let start = self.prefix.file_name().unwrap_or_default().to_os_string();
        let Ok(entries) = fs::read_dir(folder) else {
            return Ok(());
        };
        // The index first: without it the rest is no save.
        let index = index_path(&self.prefix);
        let rest = entries.flatten().map(|entry| entry.path());
        let rest = rest.filter(|path| path.file_stem() == Some(start.as_os_str()));
        for path in [index].into_iter().chain(rest.collect::<Vec<_>>()) {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::new(ErrorKind::File {
                        path: path.display().to_string(),
                        problem: format!("it can't be deleted: {error}"),
                    }));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_have_places_for_measures() -> Result<()> {
        let logs = Logs::from([("val_loss", 0.126), ("loss", 1e-5)]);
        assert_eq!(
            filled("a/{epoch:02d}-{val_loss:.2f}.keras", 7, &logs)?,
            "a/07-0.13.keras"
        );
        assert_eq!(filled("{epoch}{loss}", 12, &logs)?, "121e-05");
        assert_eq!(filled("plain", 1, &logs)?, "plain");
        for bad in ["{other}", "{epoch", "{loss:x}"] {
            assert!(filled(bad, 1, &logs).is_err(), "{bad}");
        }
        Ok(())
    }

    #[test]
    fn numbers_are_those_of_python() {
        for (value, text) in [
            (0.25, "0.25"),
            (1.0, "1.0"),
            (0.0001, "0.0001"),
            (0.00001, "1e-05"),
            (-2.5e-7, "-2.5e-07"),
            (1e16, "1e+16"),
            (f64::NAN, "nan"),
            (f64::INFINITY, "inf"),
        ] {
            assert_eq!(python(value), text);
        }
    }
}
