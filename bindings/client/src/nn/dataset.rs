//! Input pipelines on TensorFlow's data ops.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_core::{
    Code, Context, DataType, EagerContext, Error, Result, Shape, Tensor, TensorHandle, Value,
};

use super::training::{Batch, Source};
use crate::function::GraphFunction;
use crate::ops;

/// A sequence of elements, each some tensors, that TensorFlow's runtime computes. It is lazy: nothing
/// is computed before an element is asked for.
#[derive(Clone)]
pub struct Dataset {
    cx: EagerContext,
    variant: TensorHandle,
    types: Vec<DataType>,
    shapes: Vec<Shape>,
    // How often reading began.
    readings: Arc<AtomicU64>,
    // How many tensors of an element are inputs of a model; the others are truths.
    inputs: usize,
}

impl Dataset {
    fn next(&self, variant: TensorHandle) -> Self {
        Self {
            variant,
            readings: Arc::default(),
            ..self.clone()
        }
    }

    /// The rows of tensors that have the same first dimension.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for scalars, and what TensorFlow says.
    pub fn rows(cx: &EagerContext, tensors: &[Tensor]) -> Result<Self> {
        let handles = tensors
            .iter()
            .map(|tensor| cx.constant(tensor))
            .collect::<Result<Vec<_>>>()?;
        let types: Vec<DataType> = handles.iter().map(Value::dtype).collect();
        let shapes = tensors
            .iter()
            .map(|tensor| match tensor.dims() {
                [_, row @ ..] => Ok(Shape::from(row)),
                [] => Err(Error::argument("a scalar has no rows for a dataset")),
            })
            .collect::<Result<Vec<_>>>()?;
        let options = ops::TensorSliceDatasetOptions::default();
        let variant = ops::tensor_slice_dataset(cx, &handles, &shapes, options)?;
        Ok(Self {
            cx: cx.clone(),
            variant,
            types,
            shapes,
            readings: Arc::default(),
            inputs: 1,
        })
    }

    /// The numbers from `start` up to below `stop`, int64 scalars.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn range(cx: &EagerContext, start: i64, stop: i64) -> Result<Self> {
        let (types, shapes) = (vec![DataType::INT64], vec![Shape::scalar()]);
        let options = ops::RangeDatasetOptions::default();
        let variant = ops::range_dataset(cx, start, stop, 1_i64, &types, &shapes, options)?;
        Ok(Self {
            cx: cx.clone(),
            variant,
            types,
            shapes,
            readings: Arc::default(),
            inputs: 1,
        })
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

    /// Draws each element from the next `buffer` ones. Each reading has another order, and equal
    /// seeds give equal orders. A training that is saved and restored has the same ones, as long as
    /// nothing else reads its dataset.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn shuffle(&self, buffer: i64, seed: i64) -> Result<Self> {
        let options = ops::ShuffleDatasetOptions::default();
        let (types, shapes) = (&self.types, &self.shapes);
        ops::shuffle_dataset(
            &self.cx,
            &self.variant,
            buffer,
            seed,
            // Two zeros ask for a random seed.
            if seed == 0 { i64::from(i32::MAX) } else { 0 },
            types,
            shapes,
            options,
        )
        .map(|variant| self.next(variant))
    }

    /// Puts `size` elements together along a new first dimension. The last batch may be smaller, or is
    /// dropped then.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn batch(&self, size: i64, drop_smaller: bool) -> Result<Self> {
        let first = if drop_smaller { size } else { -1 };
        let shapes: Vec<Shape> = self
            .shapes
            .iter()
            .map(|shape| match shape.dims() {
                Some(dims) => {
                    let mut dims = dims.to_vec();
                    dims.insert(0, first);
                    Shape::from(&dims)
                }
                None => Shape::unknown(),
            })
            .collect();
        let options = ops::BatchDatasetV2Options::default();
        let variant = ops::batch_dataset_v2(
            &self.cx,
            &self.variant,
            size,
            drop_smaller,
            &self.types,
            &shapes,
            options,
        )?;
        Ok(Self {
            shapes,
            ..self.next(variant)
        })
    }

    /// Begins again at the end: `count` times in all, forever when it is negative.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn repeat(&self, count: i64) -> Result<Self> {
        let options = ops::RepeatDatasetOptions::default();
        let (types, shapes) = (&self.types, &self.shapes);
        ops::repeat_dataset(&self.cx, &self.variant, count, types, shapes, options)
            .map(|variant| self.next(variant))
    }

    /// The first elements.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn take(&self, count: i64) -> Result<Self> {
        let options = ops::TakeDatasetOptions::default();
        let (types, shapes) = (&self.types, &self.shapes);
        ops::take_dataset(&self.cx, &self.variant, count, types, shapes, options)
            .map(|variant| self.next(variant))
    }

    /// All but the first elements.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn skip(&self, count: i64) -> Result<Self> {
        let options = ops::SkipDatasetOptions::default();
        let (types, shapes) = (&self.types, &self.shapes);
        ops::skip_dataset(&self.cx, &self.variant, count, types, shapes, options)
            .map(|variant| self.next(variant))
    }

    /// Computes up to `buffer` elements ahead, on a thread of its own.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn prefetch(&self, buffer: i64) -> Result<Self> {
        let options = ops::PrefetchDatasetOptions::default();
        let (types, shapes) = (&self.types, &self.shapes);
        ops::prefetch_dataset(&self.cx, &self.variant, buffer, types, shapes, options)
            .map(|variant| self.next(variant))
    }

    /// Applies a function to each element. Its arguments are the element's tensors, and its results
    /// those of the new one.
    ///
    /// # Errors
    /// What TensorFlow says, as for arguments of other types.
    pub fn map(&self, function: &GraphFunction) -> Result<Self> {
        function.install(&self.cx)?;
        let captures = function
            .captures()
            .iter()
            .map(|value| value.handle().cloned())
            .collect::<Result<Vec<_>>>()?;
        let (types, shapes): (Vec<_>, Vec<_>) = function.results().iter().cloned().unzip();
        let variant = ops::map_dataset(
            &self.cx,
            &self.variant,
            &captures,
            function.function(),
            &types,
            &shapes,
            ops::MapDatasetOptions::default(),
        )?;
        Ok(Self {
            cx: self.cx.clone(),
            variant,
            types,
            shapes,
            readings: Arc::default(),
            inputs: 1,
        })
    }

    /// Begins to read.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn iter(&self) -> Result<Elements> {
        self.readings.fetch_add(1, Ordering::Relaxed);
        let iterator = ops::anonymous_iterator_v3(&self.cx, &self.types, &self.shapes)?;
        ops::make_iterator(&self.cx, &self.variant, &iterator)?;
        Ok(Elements {
            dataset: self.clone(),
            iterator,
            is_done: false,
        })
    }
}

/// The elements of a [`Dataset`], until its end or its first error.
pub struct Elements {
    dataset: Dataset,
    iterator: TensorHandle,
    is_done: bool,
}

impl Iterator for Elements {
    type Item = Result<Vec<TensorHandle>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.is_done {
            return None;
        }
        let Dataset {
            cx, types, shapes, ..
        } = &self.dataset;
        let element = ops::iterator_get_next(cx, &self.iterator, types, shapes);
        match element {
            Err(error) if error.code() == Code::OutOfRange => {
                self.is_done = true;
                None
            }
            other => {
                self.is_done = other.is_err();
                Some(other)
            }
        }
    }
}

impl Source for Dataset {
    fn count(&self) -> Option<usize> {
        let options = ops::DatasetCardinalityOptions::default();
        let count = ops::dataset_cardinality(&self.cx, &self.variant, options).ok()?;
        // Negative ones stand for infinite and unknown.
        let count = count.to_tensor().ok()?;
        usize::try_from(count.to_scalar::<i64>().ok()?).ok()
    }

    fn epoch(&self, epoch: u64) -> Result<Box<dyn Iterator<Item = Result<Batch>> + '_>> {
        // Each reading has another order: a training that goes on begins with that of its epoch.
        while self.readings.load(Ordering::Relaxed) < epoch {
            self.iter()?;
        }
        Ok(Box::new(self.iter()?.map(|element| {
            let element = element?;
            if element.len() <= self.inputs {
                return Err(Error::argument(format!(
                    "a dataset of {} tensors per element can't be trained on, expected {} and truths",
                    element.len(),
                    match self.inputs {
                        1 => "inputs".to_owned(),
                        inputs => format!("{inputs} inputs"),
                    }
                )));
            }
            let mut x = Vec::new();
            for handle in &element {
                x.push(handle.to_tensor()?);
            }
            let truth = x.split_off(self.inputs);
            Ok(Batch {
                x,
                truth,
                weights: Vec::new(),
            })
        })))
    }
}
