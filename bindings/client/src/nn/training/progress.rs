//! A line that shows how far a training is.

use std::io::{self, IsTerminal, Write};
use std::time::Instant;

use tfp_core::Result;

use super::{Callback, Control, Logs, Trainer};
use crate::nn::optimizer::Rule;

/// How many characters the bar has.
const WIDTH: usize = 24;

/// Shows epochs and steps on standard error: a bar that moves on a terminal, a line per epoch
/// elsewhere.
#[derive(Debug)]
pub struct Progress {
    epoch: (usize, usize),
    batches: Option<usize>,
    begun: Instant,
    drawn: Option<Instant>,
    is_terminal: bool,
}

impl Default for Progress {
    fn default() -> Self {
        Self {
            epoch: (0, 0),
            batches: None,
            begun: Instant::now(),
            drawn: None,
            is_terminal: io::stderr().is_terminal(),
        }
    }
}

impl Progress {
    fn head(&self) -> String {
        format!("epoch {}/{}", self.epoch.0 + 1, self.epoch.1)
    }
}

impl<R: Rule> Callback<R> for Progress {
    fn begin(&mut self, epoch: usize, epochs: usize, batches: Option<usize>) -> Result<()> {
        self.epoch = (epoch, epochs);
        self.batches = batches;
        self.begun = Instant::now();
        self.drawn = None;
        Ok(())
    }

    fn step(&mut self, index: usize, loss: f64, _: &Trainer<R>) -> Result<()> {
        // Ten times a second is as often as anyone reads.
        let is_due = self
            .drawn
            .is_none_or(|drawn| drawn.elapsed().as_millis() >= 100);
        if self.is_terminal && is_due {
            let head = self.head();
            let (steps, bar) = match self.batches {
                None => (format!("{}", index + 1), String::new()),
                Some(batches) => {
                    let done = ((index + 1) * WIDTH / batches.max(1)).min(WIDTH);
                    let bar = format!("[{}{}] ", "=".repeat(done), " ".repeat(WIDTH - done));
                    (format!("{}/{batches}", index + 1), bar)
                }
            };
            // A terminal that is gone is no reason to end a training.
            drop(write!(io::stderr(), "\r{head} {bar}{steps} loss {loss:.4}"));
            self.drawn = Some(Instant::now());
        }
        Ok(())
    }

    fn end(&mut self, _: usize, logs: &Logs, _: &Trainer<R>) -> Result<Control> {
        let seconds = self.begun.elapsed().as_secs_f64();
        let clear = if self.drawn.is_some() { "\r\x1b[K" } else { "" };
        drop(writeln!(
            io::stderr(),
            "{clear}{} {seconds:.1} s  {logs}",
            self.head()
        ));
        Ok(Control::Continue)
    }
}
