//! Readings of iterators of Rust: a thread for each, which TensorFlow's kernels ask for elements.

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::thread;

use tfp_core::{Code, DataType, Error, ErrorKind, Result, Shape, Tensor};

pub(super) type Elements = dyn Iterator<Item = Result<Vec<Tensor>>>;
pub(super) type Make = dyn Fn() -> Result<Box<Elements>> + Send + Sync;

/// How many errors of iterators are kept for their readers.
const FAILURES: usize = 16;

/// The readings of a dataset.
pub(super) struct Readings {
    signature: Vec<(DataType, Shape)>,
    make: Arc<Make>,
    open: Mutex<Open>,
    failures: Mutex<VecDeque<Error>>,
}

#[derive(Default)]
struct Open {
    readers: usize,
    begun: i64,
    readings: HashMap<i64, Arc<Reading>>,
}

/// Ends a reading when it is dropped.
pub(super) struct Guard {
    number: i64,
    readings: Weak<Readings>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some(readings) = self.readings.upgrade() else {
            return;
        };
        let reading = readings.lock().readings.remove(&self.number);
        if let Some(reading) = reading {
            reading.close();
        }
    }
}

impl fmt::Debug for Readings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Readings({})", self.lock().readings.len())
    }
}

impl Drop for Readings {
    fn drop(&mut self) {
        for reading in self.lock().readings.values() {
            reading.close();
        }
    }
}

impl Readings {
    pub(super) fn new(signature: &[(DataType, Shape)], make: Box<Make>) -> Self {
        Self {
            signature: signature.to_vec(),
            make: make.into(),
            open: Mutex::default(),
            failures: Mutex::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A reader comes.
    pub(super) fn open(&self) {
        self.lock().readers += 1;
    }

    /// A reader goes. The last one ends what is still read, so that nothing waits for an iterator.
    pub(super) fn leave(&self) {
        let mut open = self.lock();
        open.readers = open.readers.saturating_sub(1);
        if open.readers > 0 {
            return;
        }
        let left = std::mem::take(&mut open.readings);
        drop(open);
        left.values().for_each(|reading| reading.close());
    }

    /// Begins a reading: its number, and what ends it.
    pub(super) fn begin(self: &Arc<Self>) -> (i64, Guard) {
        let mut open = self.lock();
        open.begun += 1;
        let number = open.begun;
        open.readings.insert(number, Arc::default());
        let readings = Arc::downgrade(self);
        (number, Guard { number, readings })
    }

    /// Returns the element at an index of a reading; indices only grow.
    ///
    /// # Errors
    /// [`Code::OutOfRange`] at the end, by which a dataset ends; the iterator's own, which are kept, too.
    pub(super) fn next(&self, number: i64, index: i64) -> Result<Vec<Tensor>> {
        let reading = self.lock().readings.get(&number).cloned();
        let reading = reading.ok_or_else(closed)?;
        let answer = reading.ask(index, &self.make);
        match answer.and_then(|element| element.map(|all| self.checked(all)).transpose()) {
            Ok(Some(element)) => Ok(element),
            Ok(None) => Err(Error::status(Code::OutOfRange, "the iterator has ended")),
            Err(error) => Err(self.keep(error)),
        }
    }

    fn checked(&self, element: Vec<Tensor>) -> Result<Vec<Tensor>> {
        if element.len() != self.signature.len() {
            return Err(Error::argument(format!(
                "an iterator of Rust gave an element of {} tensors, expected {}",
                element.len(),
                self.signature.len()
            )));
        }
        for (at, (tensor, (dtype, shape))) in element.iter().zip(&self.signature).enumerate() {
            let what = || format!("tensor {at} of an element of an iterator of Rust");
            if tensor.dtype() != *dtype {
                return Err(Error::new(ErrorKind::DType {
                    what: what(),
                    expected: *dtype,
                    found: tensor.dtype(),
                }));
            }
            if !tensor.shape().is_compatible_with(shape) {
                return Err(Error::new(ErrorKind::Shape {
                    what: what(),
                    expected: format!("shape {shape}"),
                    found: tensor.shape(),
                }));
            }
        }
        Ok(element)
    }

    /// Keeps an error, and returns the status that TensorFlow gets. One that means the end there has
    /// another class.
    fn keep(&self, error: Error) -> Error {
        let code = match error.code() {
            Code::Ok | Code::OutOfRange => Code::Unknown,
            code => code,
        };
        let status = Error::status(code, text(&error));
        let mut failures = self.failures();
        if failures.len() == FAILURES {
            failures.pop_front();
        }
        failures.push_back(error);
        status
    }

    fn failures(&self) -> MutexGuard<'_, VecDeque<Error>> {
        self.failures.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the last error that a message of TensorFlow tells of.
    pub(super) fn failure(&self, message: &str) -> Option<Error> {
        let mut failures = self.failures();
        let found = failures
            .iter()
            .rposition(|error| message.contains(text(error).as_str()))?;
        failures.remove(found)
    }
}

/// The text of an error without its class.
fn text(error: &Error) -> String {
    match error.kind() {
        ErrorKind::Status { message, .. } => message.clone(),
        _ => error.to_string(),
    }
}

fn closed() -> Error {
    Error::status(
        Code::Cancelled,
        "the reading of an iterator of Rust has ended",
    )
}

/// A reading. Its thread begins when an element is asked for.
#[derive(Default)]
struct Reading {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    has_thread: bool,
    step: Step,
}

#[derive(Default)]
enum Step {
    #[default]
    Idle,
    Asked(i64),
    Answered(Result<Option<Vec<Tensor>>>),
    Closed,
}

impl Reading {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(
        &self,
        state: MutexGuard<'a, State>,
        until: impl Fn(&Step) -> bool,
    ) -> MutexGuard<'a, State> {
        let waited = self.changed.wait_while(state, |state| !until(&state.step));
        waited.unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, state: &mut State, step: Step) -> Step {
        self.changed.notify_all();
        std::mem::replace(&mut state.step, step)
    }

    fn close(&self) {
        self.set(&mut self.lock(), Step::Closed);
    }

    fn ask(self: &Arc<Self>, index: i64, make: &Arc<Make>) -> Result<Option<Vec<Tensor>>> {
        let state = self.lock();
        let mut state = self.wait(state, |step| matches!(step, Step::Idle | Step::Closed));
        if matches!(state.step, Step::Closed) {
            return Err(closed());
        }
        if !state.has_thread {
            let (reading, make) = (Arc::clone(self), Arc::clone(make));
            let thread = thread::Builder::new().name("tfp-iterator".to_owned());
            let spawned = thread.spawn(move || reading.work(&make));
            spawned.map_err(|error| Error::status(Code::ResourceExhausted, error.to_string()))?;
            state.has_thread = true;
        }
        self.set(&mut state, Step::Asked(index));
        let mut state = self.wait(state, |step| {
            matches!(step, Step::Answered(_) | Step::Closed)
        });
        if matches!(state.step, Step::Closed) {
            return Err(closed());
        }
        match self.set(&mut state, Step::Idle) {
            Step::Answered(answer) => answer,
            _ => Err(closed()),
        }
    }

    /// What the thread does until the reading ends.
    fn work(&self, make: &Arc<Make>) {
        let (mut elements, mut position) = (None, 0);
        loop {
            let state = self.lock();
            let state = self.wait(state, |step| matches!(step, Step::Asked(_) | Step::Closed));
            let Step::Asked(index) = state.step else {
                return;
            };
            drop(state);
            // A panic of the iterator is an error of the reading.
            let made = catch_unwind(AssertUnwindSafe(|| {
                produce(&mut elements, &mut position, index, make)
            }));
            let answer =
                made.unwrap_or_else(|panic| Err(Error::panicked("an iterator of Rust", panic)));
            let mut state = self.lock();
            if matches!(state.step, Step::Closed) {
                return;
            }
            self.set(&mut state, Step::Answered(answer));
        }
    }
}

/// Returns the element at an index, or nothing at the end. Elements before it, which a reading that
/// goes on has had, are skipped.
fn produce(
    elements: &mut Option<Box<Elements>>,
    position: &mut i64,
    index: i64,
    make: &Arc<Make>,
) -> Result<Option<Vec<Tensor>>> {
    let elements = match elements {
        Some(elements) => elements,
        None => elements.insert(make()?),
    };
    loop {
        let element = elements.next();
        *position += 1;
        if *position > index || element.is_none() {
            return element.transpose();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn readings(count: i64) -> Arc<Readings> {
        let make = move || -> Result<Box<Elements>> {
            Ok(Box::new((0..count).map(|n| Ok(vec![Tensor::scalar(n)?]))))
        };
        let signature = [(DataType::INT64, Shape::scalar())];
        Arc::new(Readings::new(&signature, Box::new(make)))
    }

    #[test]
    fn a_reading_that_has_ended_is_cancelled() {
        let readings = readings(3);
        let (number, guard) = readings.begin();
        drop(guard);
        let error = readings.next(number, 0).expect_err("ended");
        assert_eq!(error.code(), Code::Cancelled);
        assert_eq!(readings.lock().readings.len(), 0);
    }

    #[test]
    fn the_last_reader_ends_all_readings() {
        let readings = readings(3);
        readings.open();
        readings.open();
        let (number, _guard) = readings.begin();
        readings.leave();
        assert!(readings.lock().readings.contains_key(&number));
        readings.leave();
        assert!(readings.lock().readings.is_empty());
    }

    #[test]
    fn kept_errors_are_bounded_and_the_last_is_found_first() {
        let readings = readings(0);
        for number in 0..40 {
            let _ = readings.keep(Error::argument(format!("number {number}.")));
        }
        assert_eq!(readings.failures().len(), FAILURES);
        assert!(readings.failure("x: number 3.").is_none());
        let found = readings.failure("Map: number 39. [Op:X]");
        assert_eq!(found, Some(Error::argument("number 39.")));
        assert!(readings.failure("Map: number 39. [Op:X]").is_none());
    }
}
