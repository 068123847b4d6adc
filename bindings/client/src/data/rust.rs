//! Datasets whose elements an iterator of Rust makes.

use std::sync::{Arc, Mutex, PoisonError};

use tfp_core::{Code, Context as _, DataType, Error, Result, Shape, Tensor};

use super::dataset::{Dataset, place_of};
use super::iterated::{Source, token};
use super::reading::{Elements, Make};
use super::source::{Kind, Origin};
use crate::context::any::Mode;
use crate::ops;

impl Dataset {
    /// The elements of iterators of Rust, each some tensors of these types and shapes; sizes of -1 are
    /// open. Each reading calls `make` and asks its iterator for elements, one at a time, on a thread
    /// of its own.
    ///
    /// An error of the iterator is the reading's, unchanged, and one that panics ends it with
    /// [`ErrorKind::Internal`](tfp_core::ErrorKind::Internal). A reading that [goes on](super::Elements::restore) makes an iterator and
    /// skips the elements that were read. A reader that stops early does not wait for an iterator: its
    /// thread ends with the element that it is making.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) in a graph or a function that is traced, and
    /// what TensorFlow says.
    pub fn from_generator<I>(
        cx: &impl Mode,
        signature: &[(DataType, Shape)],
        make: impl Fn() -> I + Send + Sync + 'static,
    ) -> Result<Self>
    where
        I: IntoIterator<Item = Result<Vec<Tensor>>> + 'static,
    {
        Self::from_source(cx, signature, Box::new(move || Ok(boxed(make()))))
    }

    /// The elements of one iterator, such as the receiver of a channel: only the first reading has them,
    /// and others end with [`Code::FailedPrecondition`].
    ///
    /// # Errors
    /// As for [`Self::from_generator`].
    pub fn from_iterator<I>(
        cx: &impl Mode,
        signature: &[(DataType, Shape)],
        elements: I,
    ) -> Result<Self>
    where
        I: IntoIterator<Item = Result<Vec<Tensor>>> + Send + 'static,
    {
        let elements = Mutex::new(Some(elements));
        let make = move || {
            let taken = elements
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .take();
            taken.map(boxed).ok_or_else(|| {
                Error::status(
                    Code::FailedPrecondition,
                    "an iterator of Rust can be read once; from_generator makes one for each reading",
                )
            })
        };
        Self::from_source(cx, signature, Box::new(make))
    }

    fn from_source(
        cx: &impl Mode,
        signature: &[(DataType, Shape)],
        make: Box<Make>,
    ) -> Result<Self> {
        let cx = place_of(cx);
        if !cx.is_eager() {
            return Err(Error::argument(
                "a dataset of an iterator of Rust is made in eager mode: a graph can't hold it",
            ));
        }
        let source = Arc::new(Source::new(signature, make)?);
        // The dataset's tensor keeps the source, wherever TensorFlow takes it.
        let kept = cx.constant(&token(0, Arc::clone(&source))?)?;
        let made = Self::one(&cx, &[kept])?.flat_map(|cx, kept| {
            let reading = source.begin.call(cx, kept)?;
            Self::range(cx, 0, i64::MAX)?.map_with(|cx, index| {
                let called = source.next.call(cx, [&reading[0], &index[0]])?;
                let shaped = called.iter().zip(signature);
                shaped
                    .map(|(value, (_, shape))| match value.dtype() {
                        DataType::VARIANT | DataType::RESOURCE => Ok(value.clone()),
                        _ => ops::ensure_shape(cx, value, shape),
                    })
                    .collect()
            })
        })?;
        Ok(made.with_origins([Origin {
            kind: Kind::Rust(source),
            paths: Vec::new(),
            is_packed: false,
        }]))
    }
}

fn boxed<I>(elements: I) -> Box<Elements>
where
    I: IntoIterator<Item = Result<Vec<Tensor>>> + 'static,
{
    Box::new(elements.into_iter())
}
