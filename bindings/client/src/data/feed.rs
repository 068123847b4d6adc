//! Datasets of Rust iterators: a thread of the program serves what TensorFlow's runtime asks for.
//!
//! The two talk by resources of TensorFlow. A queue has the numbers of readings that want an element; a
//! negative one says that a reading has ended. A staging area has the answer under the same number: what
//! it is, the text of an error, and the tensors of the element.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tfp_core::{
    Bytes, Context as _, DataType, EagerContext, Error, ErrorKind, Result, Shape, Tensor,
    TensorHandle,
};

use super::apply::traced_of;
use super::dataset::Dataset;
use crate::context::any::{AnyContext, HOST, Mode as _};
use crate::context::value::AnyValue;
use crate::ops;

/// What an answer is.
const ELEMENT: i32 = 0;
const END: i32 = 1;
const FAILED: i32 = 2;
/// The request that ends the thread.
const CLOSE: i64 = i64::MIN;

/// A thread that serves the elements of a dataset, until this is dropped.
pub(super) struct Feed {
    cx: EagerContext,
    requests: TensorHandle,
    errors: Errors,
}

type Errors = Arc<Mutex<Option<Error>>>;
type Items = Box<dyn Iterator<Item = Result<Vec<Tensor>>>>;

impl Feed {
    /// Takes the error with which an iterator ended.
    pub fn take_error(&self) -> Option<Error> {
        let mut last = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
        last.take()
    }
}

impl Drop for Feed {
    fn drop(&mut self) {
        // The thread ends when it comes to this; what it computes now it may finish.
        let _ = request(&self.cx, &self.requests, CLOSE);
    }
}

fn request(cx: &EagerContext, requests: &TensorHandle, number: i64) -> Result<()> {
    let number = cx.handle(&Tensor::scalar(number)?)?;
    let options = ops::QueueEnqueueV2Options::default();
    ops::queue_enqueue_v2(cx, requests, [&number].as_slice(), options).map(drop)
}

/// The place where answers are left.
#[derive(Clone)]
struct Area {
    name: String,
    types: Vec<DataType>,
}

impl Area {
    fn indices(&self) -> Vec<i32> {
        (0..self.types.len() as i32).collect()
    }
}

impl Dataset {
    /// The elements of a Rust iterator. `make` is called at the beginning of each reading, on a thread of
    /// its own, on which its iterator stays; elements are computed when they are asked for, so
    /// [`prefetch`](Self::prefetch) after it lets both sides work at the same time. `element` has the
    /// types and shapes of an element's tensors.
    ///
    /// An error of the iterator is that of the reading, as it is. The dataset must be read through this
    /// type: the thread ends with the last [`Dataset`] and [`Elements`](super::Elements) that come from it.
    /// The state of a reading can't be saved. A reading that computes ahead ends when the iterator has
    /// given what it was asked for, so an iterator should not wait forever.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for no tensor per element or one that is not
    /// plain data, and what TensorFlow says.
    pub fn from_iterator<I>(
        cx: &EagerContext,
        element: &[(DataType, Shape)],
        make: impl Fn() -> I + Send + 'static,
    ) -> Result<Self>
    where
        I: Iterator<Item = Result<Vec<Tensor>>> + 'static,
    {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let is_plain = |(dtype, _): &(DataType, Shape)| {
            !matches!(*dtype, DataType::RESOURCE | DataType::VARIANT)
        };
        if element.is_empty() || !element.iter().all(is_plain) {
            return Err(Error::argument(
                "an element of an iterator needs a tensor, and each must be plain data",
            ));
        }
        let cx = cx.on_device(HOST)?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("tfp_feed_{}_{number}", std::process::id());
        let queue = |what: &str| {
            let name = format!("{name}_{what}");
            let options = ops::FIFOQueueV2Options {
                shared_name: Some(Bytes::from(name.as_str())),
                ..Default::default()
            };
            ops::fifo_queue_v2(&cx, &[DataType::INT64], options)
        };
        let (requests, numbers) = (queue("requests")?, queue("numbers")?);
        request(&cx, &numbers, 0)?;
        let mut types = vec![DataType::INT32, DataType::STRING];
        types.extend(element.iter().map(|(dtype, _)| *dtype));
        let area = Area { name, types };
        let errors = Errors::default();
        let server = Server {
            cx: cx.clone(),
            requests: requests.clone(),
            area: area.clone(),
            element: element.to_vec(),
            errors: errors.clone(),
        };
        let feed = Arc::new(Feed {
            cx: cx.clone(),
            requests: requests.clone(),
            errors,
        });
        std::thread::Builder::new()
            .name("tfp_feed".to_owned())
            .spawn(move || server.serve(|| Box::new(make())))
            .map_err(|error| Error::argument(format!("no thread for the iterator: {error}")))?;
        let data = generated(&cx.any(), &requests, &numbers, &area, element)?;
        Ok(data.with_feeds([feed]))
    }
}

/// The dataset of the answers to requests.
fn generated(
    cx: &AnyContext,
    requests: &TensorHandle,
    numbers: &TensorHandle,
    area: &Area,
    element: &[(DataType, Shape)],
) -> Result<Dataset> {
    let (requests, numbers) = (AnyValue::from(requests), AnyValue::from(numbers));
    let state = [(DataType::INT64, Shape::scalar())];
    let ask = |cx: &AnyContext, number: &AnyValue| {
        let options = ops::QueueEnqueueV2Options::default();
        ops::queue_enqueue_v2(cx, &requests, [number].as_slice(), options).map(drop)
    };
    // Each reading takes the next number.
    let (init, init_captures) = traced_of(cx, "feed_init", &[], |cx, _| {
        let options = ops::QueueDequeueV2Options::default();
        let taken = ops::queue_dequeue_v2(cx, &numbers, &[DataType::INT64], options)?;
        let next = ops::add_v2(cx, &taken[0], 1_i64)?;
        let options = ops::QueueEnqueueV2Options::default();
        ops::queue_enqueue_v2(cx, &numbers, [&next].as_slice(), options)?;
        Ok(taken)
    })?;
    let (next, next_captures) = traced_of(cx, "feed_next", &state, |cx, state| {
        ask(cx, &state[0])?;
        let options = ops::MapUnstageOptions {
            shared_name: Some(Bytes::from(area.name.as_str())),
            ..Default::default()
        };
        let indices = area.indices();
        ops::map_unstage(cx, &state[0], indices.as_slice(), &area.types, options)
    })?;
    let (end, end_captures) = traced_of(cx, "feed_end", &state, |cx, state| {
        let ended = ops::invert(cx, &state[0])?;
        ask(cx, &ended)?;
        Ok(vec![ended])
    })?;
    let mut shapes = vec![Shape::scalar(), Shape::scalar()];
    shapes.extend(element.iter().map(|_| Shape::unknown()));
    let variant = ops::generator_dataset(
        cx,
        &init_captures,
        &next_captures,
        &end_captures,
        init.function(),
        next.function(),
        end.function(),
        &area.types,
        &shapes,
        ops::GeneratorDatasetOptions::default(),
    )?;
    let answers = Dataset::made(cx, variant, &area.types, &shapes);
    let answers = answers.take_while(|cx, answer| {
        ops::not_equal(cx, &answer[0], END, ops::NotEqualOptions::default())
    })?;
    answers.map_with(|cx, answer| {
        let is_whole = ops::equal(cx, &answer[0], ELEMENT, ops::EqualOptions::default())?;
        let options = ops::AssertOptions::default();
        ops::assert(cx, &is_whole, [&answer[1]].as_slice(), options)?;
        let values = answer[2..].iter().zip(element);
        values
            .map(|(value, (_, shape))| ops::ensure_shape(cx, value, shape))
            .collect()
    })
}

/// What the thread has.
struct Server {
    cx: EagerContext,
    requests: TensorHandle,
    area: Area,
    element: Vec<(DataType, Shape)>,
    errors: Errors,
}

impl Server {
    fn serve(self, make: impl Fn() -> Items) {
        let mut readings: HashMap<i64, Items> = HashMap::new();
        while let Some(number) = self.wait() {
            if number < 0 {
                readings.remove(&!number);
                continue;
            }
            let next = || {
                let items = readings.entry(number).or_insert_with(&make);
                items
                    .next()
                    .map(|item| item.and_then(|item| self.checked(item)))
            };
            let item = catch_unwind(AssertUnwindSafe(next)).unwrap_or_else(|panic| {
                let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
                let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
                Some(Err(Error::new(ErrorKind::Internal {
                    message: format!(
                        "the iterator of a dataset panicked: {}",
                        text.unwrap_or_default()
                    ),
                })))
            });
            if !matches!(item, Some(Ok(_))) {
                readings.remove(&number);
            }
            if self.answer(number, item).is_err() {
                break;
            }
        }
        // What still asks gets an error instead of waiting forever.
        let options = ops::QueueCloseV2Options {
            cancel_pending_enqueues: Some(true),
        };
        let _ = ops::queue_close_v2(&self.cx, &self.requests, options);
    }

    /// Waits for a request.
    fn wait(&self) -> Option<i64> {
        let options = ops::QueueDequeueV2Options::default();
        let types = [DataType::INT64];
        let taken = ops::queue_dequeue_v2(&self.cx, &self.requests, &types, options).ok()?;
        let number = taken.first()?.to_tensor().ok()?.to_scalar::<i64>().ok()?;
        (number != CLOSE).then_some(number)
    }

    /// Checks that an element is what was said.
    fn checked(&self, item: Vec<Tensor>) -> Result<Vec<Tensor>> {
        if item.len() != self.element.len() {
            return Err(Error::argument(format!(
                "the iterator of a dataset gave {} tensors, expected {}",
                item.len(),
                self.element.len()
            )));
        }
        for (index, (tensor, (dtype, shape))) in item.iter().zip(&self.element).enumerate() {
            let what = || format!("tensor {index} of an element of an iterator");
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
        Ok(item)
    }

    fn answer(&self, number: i64, item: Option<Result<Vec<Tensor>>>) -> Result<()> {
        let (kind, text, tensors) = match item {
            Some(Ok(item)) => (ELEMENT, String::new(), item),
            None => (END, String::new(), self.nothing()?),
            Some(Err(error)) => {
                let text = error.to_string();
                let mut last = self.errors.lock().unwrap_or_else(PoisonError::into_inner);
                *last = Some(error);
                (FAILED, text, self.nothing()?)
            }
        };
        let mut values = vec![Tensor::scalar(kind)?, Tensor::from_string(text)?];
        values.extend(tensors);
        let handles = values.iter().map(|value| self.cx.constant(value));
        let handles = handles.collect::<Result<Vec<_>>>()?;
        let options = ops::MapStageOptions {
            shared_name: Some(Bytes::from(self.area.name.as_str())),
            ..Default::default()
        };
        let indices = self.area.indices();
        let types = &self.area.types;
        ops::map_stage(
            &self.cx,
            number,
            indices.as_slice(),
            &handles,
            types,
            options,
        )
        .map(drop)
    }

    /// Tensors where there is no element.
    fn nothing(&self) -> Result<Vec<Tensor>> {
        let types = self.element.iter().map(|(dtype, _)| *dtype);
        types.map(super::bucket::zero).collect()
    }
}
