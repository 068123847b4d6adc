//! Where the elements of a dataset come from: an iterator of Rust, which TensorFlow's kernels ask.

use std::fmt;
use std::sync::Arc;

use tfp_core::{Buffer, DataType, Error, ErrorKind, HostFunction, Result, Shape, Tensor};

use super::reading::{Make, Readings};

/// What the kernels call: `begin` gives a reading its number, and `next` has its elements.
pub(super) struct Source {
    pub begin: HostFunction,
    pub next: HostFunction,
    readings: Arc<Readings>,
}

impl Source {
    pub(super) fn new(signature: &[(DataType, Shape)], make: Box<Make>) -> Result<Self> {
        let readings = Arc::new(Readings::new(signature, make));
        let types: Vec<DataType> = signature.iter().map(|(dtype, _)| *dtype).collect();
        let begun = Arc::clone(&readings);
        let begin = HostFunction::new(&[DataType::INT64], move |_| {
            let (number, guard) = begun.begin();
            Ok(vec![token(number, guard)?])
        })?;
        let asked = Arc::clone(&readings);
        let next = HostFunction::new(&types, move |inputs| {
            let [reading, index] = inputs else {
                return Err(Error::argument("a reading and an index are expected"));
            };
            let (reading, index) = (reading.to_scalar()?, index.to_scalar()?);
            asked.next(reading, index)
        })?;
        Ok(Self {
            begin,
            next,
            readings,
        })
    }

    /// Until it is dropped, somebody reads the elements.
    pub(super) fn open(&self) -> Opened {
        self.readings.open();
        Opened(Arc::clone(&self.readings))
    }

    /// The error of the iterator that TensorFlow's error tells of.
    pub(super) fn failure(&self, error: &Error) -> Option<Error> {
        let ErrorKind::Status { message, .. } = error.kind() else {
            return None;
        };
        self.readings.failure(message)
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an iterator of Rust")
    }
}

/// A reader of elements. When the last one is gone, nothing waits for an iterator any more.
#[derive(Debug)]
pub(super) struct Opened(Arc<Readings>);

impl Drop for Opened {
    fn drop(&mut self) {
        self.0.leave();
    }
}

/// A number that TensorFlow passes around. What is kept is dropped with its last copy.
pub(super) fn token(number: i64, kept: impl Send + 'static) -> Result<Tensor> {
    let mut buffer = Buffer::new(1)?;
    buffer[0] = number;
    Tensor::from_buffer_with(buffer, kept, &[])
}
