//! A dataset, and reading it.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use tfp_core::{
    Code, Context as _, DataType, EagerContext, Error, Result, Shape, Tensor, TensorHandle, Value,
};

use super::iterated::Opened;
use super::source::{Kind, Origin, damage};
use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;
use crate::ops;

/// A sequence of elements, each some tensors, that TensorFlow's runtime computes. It is lazy: nothing
/// is computed before an element is asked for.
#[derive(Clone)]
pub struct Dataset {
    cx: AnyContext,
    variant: AnyValue,
    types: Vec<DataType>,
    shapes: Vec<Shape>,
    // How often reading began.
    readings: Arc<AtomicU64>,
    // How many tensors of an element are inputs of a model; the others are truths.
    inputs: usize,
    // The files that are read, to say which one is damaged.
    origins: Vec<Origin>,
}

impl Dataset {
    /// Takes a dataset that an op made, as any of `ops::*_dataset`: its value of type variant, and the
    /// element types and shapes of an element's tensors.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a value of another type, and for a
    /// number of types that is not that of the shapes.
    pub fn from_value<C: Mode>(
        cx: &C,
        variant: &C::Value,
        types: &[DataType],
        shapes: &[Shape],
    ) -> Result<Self> {
        let variant = cx.to_any(variant);
        if variant.dtype() != DataType::VARIANT || types.len() != shapes.len() {
            return Err(Error::argument(format!(
                "a dataset is a variant with as many types as shapes; this is {} with {} and {}",
                variant.dtype(),
                types.len(),
                shapes.len()
            )));
        }
        Ok(Self::made(&place_of(cx), variant, types, shapes))
    }

    pub(super) fn made(
        cx: &AnyContext,
        variant: AnyValue,
        types: &[DataType],
        shapes: &[Shape],
    ) -> Self {
        Self {
            cx: cx.clone(),
            variant,
            types: types.to_vec(),
            shapes: shapes.to_vec(),
            readings: Arc::default(),
            inputs: 1,
            origins: Vec::new(),
        }
    }

    /// A dataset over this one, of elements of the same or other types.
    pub(super) fn over(&self, variant: AnyValue, types: &[DataType], shapes: &[Shape]) -> Self {
        Self {
            variant,
            types: types.to_vec(),
            shapes: shapes.to_vec(),
            readings: Arc::default(),
            ..self.clone()
        }
    }

    pub(super) fn with_origins(mut self, origins: impl IntoIterator<Item = Origin>) -> Self {
        self.origins.extend(origins);
        self
    }

    pub(super) fn origins(&self) -> &[Origin] {
        &self.origins
    }

    /// Where the dataset is.
    pub(crate) const fn place(&self) -> &AnyContext {
        &self.cx
    }

    pub(crate) fn readings(&self) -> &AtomicU64 {
        &self.readings
    }

    pub(crate) const fn inputs(&self) -> usize {
        self.inputs
    }

    /// Returns the dataset as the ops take it: a scalar of type variant.
    #[must_use]
    pub const fn value(&self) -> &AnyValue {
        &self.variant
    }

    /// The rows of tensors that have the same first dimension.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for scalars, and what TensorFlow says.
    pub fn rows(cx: &impl Mode, tensors: &[Tensor]) -> Result<Self> {
        let cx = place_of(cx);
        let values = tensors
            .iter()
            .map(|tensor| cx.constant(tensor))
            .collect::<Result<Vec<_>>>()?;
        let types: Vec<DataType> = tensors.iter().map(Tensor::dtype).collect();
        let shapes = tensors
            .iter()
            .map(|tensor| match tensor.dims() {
                [_, row @ ..] => Ok(Shape::from(row)),
                [] => Err(Error::argument("a scalar has no rows for a dataset")),
            })
            .collect::<Result<Vec<_>>>()?;
        let options = ops::TensorSliceDatasetOptions::default();
        let variant = ops::tensor_slice_dataset(&cx, &values, &shapes, options)?;
        Ok(Self::made(&cx, variant, &types, &shapes))
    }

    /// One element of some values, also of arguments of a function that is traced.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn one<C: Mode>(cx: &C, values: &[C::Value]) -> Result<Self> {
        let values: Vec<AnyValue> = values.iter().map(|value| cx.to_any(value)).collect();
        let cx = place_of(cx);
        let types: Vec<DataType> = values.iter().map(Value::dtype).collect();
        let shapes = values
            .iter()
            .map(AnyValue::shape)
            .collect::<Result<Vec<_>>>()?;
        let options = ops::TensorDatasetOptions::default();
        let variant = ops::tensor_dataset(&cx, &values, &shapes, options)?;
        Ok(Self::made(&cx, variant, &types, &shapes))
    }

    /// The numbers from `start` up to below `stop`, int64 scalars.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn range(cx: &impl Mode, start: i64, stop: i64) -> Result<Self> {
        let cx = place_of(cx);
        let (types, shapes) = ([DataType::INT64], [Shape::scalar()]);
        let options = ops::RangeDatasetOptions::default();
        let variant = ops::range_dataset(&cx, start, stop, 1_i64, &types, &shapes, options)?;
        Ok(Self::made(&cx, variant, &types, &shapes))
    }

    /// Random numbers without an end, int64 scalars. Each reading has others, and equal seeds give equal
    /// ones: those of Python's `Dataset.random(seed, rerandomize_each_iteration=True)`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn random(cx: &impl Mode, seed: i64) -> Result<Self> {
        let cx = place_of(cx);
        let (types, shapes) = ([DataType::INT64], [Shape::scalar()]);
        let options = ops::RandomDatasetV2Options {
            rerandomize_each_iteration: Some(true),
            ..Default::default()
        };
        let generator = ops::dummy_seed_generator(&cx)?;
        let (first, second) = seeds(seed);
        let variant =
            ops::random_dataset_v2(&cx, first, second, &generator, &types, &shapes, options)?;
        Ok(Self::made(&cx, variant, &types, &shapes))
    }

    /// Sets how many tensors of an element are inputs of the model that is trained; the others are truths.
    /// It is one at first.
    #[must_use]
    pub fn with_inputs(self, inputs: usize) -> Self {
        Self { inputs, ..self }
    }

    /// Returns the element types of an element's tensors.
    #[must_use]
    pub fn types(&self) -> &[DataType] {
        &self.types
    }

    /// Returns the shapes of an element's tensors, as far as they are known.
    #[must_use]
    pub fn shapes(&self) -> &[Shape] {
        &self.shapes
    }

    /// Returns type and shape of each of an element's tensors.
    pub(super) fn signature(&self) -> Vec<(DataType, Shape)> {
        let types = self.types.iter().copied();
        types.zip(self.shapes.iter().cloned()).collect()
    }

    /// Begins to read.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) for a dataset of a function that is traced,
    /// and what TensorFlow says.
    pub fn iter(&self) -> Result<Elements> {
        let opened = self.open();
        let iterator = ops::anonymous_iterator_v3(&self.cx, &self.types, &self.shapes)?;
        let iterator = iterator.handle()?.clone();
        self.readings.fetch_add(1, Ordering::Relaxed);
        let cx = iterator.context();
        ops::make_iterator(&cx, self.variant.handle()?, &iterator)?;
        Ok(Elements {
            _opened: opened,
            iterator,
            cx,
            dataset: self.clone(),
            is_done: Arc::default(),
        })
    }

    /// Until these are dropped, somebody reads the iterators behind the dataset.
    pub(super) fn open(&self) -> Vec<Opened> {
        let opened = self.origins.iter().filter_map(|origin| match &origin.kind {
            Kind::Rust(source) => Some(source.open()),
            _ => None,
        });
        opened.collect()
    }

    /// The error behind that of an element, if it is known.
    pub(super) fn explained(&self, error: Error) -> Error {
        damage(&self.cx, &self.origins, &error).unwrap_or(error)
    }
}

impl fmt::Debug for Dataset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Dataset({:?}, {:?})", self.types, self.shapes)
    }
}

/// The context of a dataset: a tape does not record it.
pub(super) fn place_of(cx: &impl Mode) -> AnyContext {
    match cx.any() {
        AnyContext::Tape(tape) => AnyContext::Eager(tape.eager().clone()),
        other => other,
    }
}

/// The two seeds that TensorFlow takes, as Python makes them of one.
pub(super) const fn seeds(seed: i64) -> (i64, i64) {
    (87_654_321, seed)
}

/// The elements of a [`Dataset`], until its end or its first error.
pub struct Elements {
    // It goes first: afterwards TensorFlow's threads wait for nothing, and the iterator can end.
    _opened: Vec<Opened>,
    iterator: TensorHandle,
    cx: EagerContext,
    dataset: Dataset,
    // A checkpoint that sets the reading back has it, too.
    is_done: Arc<AtomicBool>,
}

impl Elements {
    pub(super) fn parts(&self) -> (&EagerContext, &TensorHandle, &Arc<AtomicBool>) {
        (&self.cx, &self.iterator, &self.is_done)
    }
}

impl Iterator for Elements {
    type Item = Result<Vec<TensorHandle>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done.load(Ordering::Relaxed) {
            return None;
        }
        let Dataset { types, shapes, .. } = &self.dataset;
        match ops::iterator_get_next(&self.cx, &self.iterator, types, shapes) {
            Ok(element) => Some(Ok(element)),
            Err(error) => {
                self.is_done.store(true, Ordering::Relaxed);
                if error.code() == Code::OutOfRange {
                    return None;
                }
                Some(Err(self.dataset.explained(error)))
            }
        }
    }
}

impl fmt::Debug for Elements {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Elements of {:?}", self.dataset)
    }
}

/// What fills up values of a type.
pub(super) fn zero(dtype: DataType) -> Result<Tensor> {
    match dtype {
        DataType::STRING => Tensor::from_string(""),
        dtype => Tensor::zeros(dtype, &[]),
    }
}
