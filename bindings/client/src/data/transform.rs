//! Datasets of the elements of datasets.

use tfp_core::{Context as _, DataType, Error, Result, Shape, Tensor};

use super::dataset::{Dataset, seeds};
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::ops;

/// Shapes with another first dimension; that of unknown shapes stays unknown.
pub(super) fn stacked(shapes: &[Shape], first: i64) -> Vec<Shape> {
    let shapes = shapes.iter().map(|shape| match shape.dims() {
        Some(dims) => Shape::from([&[first], dims].concat().as_slice()),
        None => Shape::unknown(),
    });
    shapes.collect()
}

impl Dataset {
    /// A dataset of the same elements, or some of them.
    pub(super) fn next(
        &self,
        make: impl FnOnce(&AnyContext, &AnyValue, &[DataType], &[Shape]) -> Result<AnyValue>,
    ) -> Result<Self> {
        let variant = make(self.place(), self.value(), self.types(), self.shapes())?;
        Ok(self.over(variant, self.types(), self.shapes()))
    }

    /// Draws each element from the next `buffer` ones. Each reading has another order, and equal
    /// seeds give equal orders: those of Python's `shuffle` with this seed. A training that is saved and
    /// restored has the same ones, as long as nothing else reads its dataset.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn shuffle(&self, buffer: i64, seed: i64) -> Result<Self> {
        self.shuffled(buffer, seed, true)
    }

    /// Draws each element from the next `buffer` ones, in the same order in every reading.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn shuffle_once(&self, buffer: i64, seed: i64) -> Result<Self> {
        self.shuffled(buffer, seed, false)
    }

    fn shuffled(&self, buffer: i64, seed: i64, again: bool) -> Result<Self> {
        let options = ops::ShuffleDatasetV3Options {
            reshuffle_each_iteration: Some(again),
            ..Default::default()
        };
        let (first, second) = seeds(seed);
        self.next(|cx, variant, types, shapes| {
            let generator = ops::dummy_seed_generator(cx)?;
            ops::shuffle_dataset_v3(
                cx, variant, buffer, first, second, &generator, types, shapes, options,
            )
        })
    }

    /// Puts `size` elements together along a new first dimension. The last batch may be smaller, or is
    /// dropped then.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn batch(&self, size: i64, drop_smaller: bool) -> Result<Self> {
        let shapes = stacked(self.shapes(), if drop_smaller { size } else { -1 });
        let options = ops::BatchDatasetV2Options::default();
        let (cx, variant) = (self.place(), self.value());
        let types = self.types();
        let made = ops::batch_dataset_v2(cx, variant, size, drop_smaller, types, &shapes, options)?;
        Ok(self.over(made, types, &shapes))
    }

    /// Puts `size` elements together, each filled up to a shape with zeros, false or empty strings.
    /// `shapes` has one per tensor of an element; a negative dimension stands for the largest of the
    /// batch. The last batch may be smaller, or is dropped then.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for another number of shapes or one of
    /// unknown rank, what TensorFlow says, and an error of an element for one that does not fit.
    pub fn padded_batch(&self, size: i64, shapes: &[Shape], drop_smaller: bool) -> Result<Self> {
        let zeros = self.types().iter().map(|&dtype| super::bucket::zero(dtype));
        let zeros = zeros.collect::<Result<Vec<_>>>()?;
        self.padded_batch_with(size, shapes, &zeros, drop_smaller)
    }

    /// As [`Self::padded_batch`], with values to fill up with: a scalar per tensor of an element.
    ///
    /// # Errors
    /// As for [`Self::padded_batch`].
    pub fn padded_batch_with(
        &self,
        size: i64,
        shapes: &[Shape],
        padding: &[Tensor],
        drop_smaller: bool,
    ) -> Result<Self> {
        let count = self.types().len();
        let dims: Vec<&[i64]> = shapes.iter().filter_map(Shape::dims).collect();
        if dims.len() != count || shapes.len() != count || padding.len() != count {
            return Err(Error::argument(format!(
                "{} shapes of known rank and {} values to fill up with, for elements of {count} tensors",
                dims.len(),
                padding.len()
            )));
        }
        let first = if drop_smaller { size } else { -1 };
        let size = self.place().constant(&Tensor::scalar(size)?)?;
        self.padded(&size, shapes, padding, drop_smaller, first)
    }

    /// Puts elements together; `first` is what is known of the new dimension.
    pub(super) fn padded(
        &self,
        size: &AnyValue,
        shapes: &[Shape],
        padding: &[Tensor],
        drop_smaller: bool,
        first: i64,
    ) -> Result<Self> {
        let padded = shapes
            .iter()
            .map(|shape| {
                let dims = shape.dims().unwrap_or_default();
                Tensor::from_slice(dims, &[dims.len() as i64])
            })
            .collect::<Result<Vec<_>>>()?;
        let made_shapes = stacked(shapes, first);
        let made = ops::padded_batch_dataset_v2(
            self.place(),
            self.value(),
            size,
            padded.iter().collect::<Vec<_>>(),
            padding.iter().collect::<Vec<_>>(),
            drop_smaller,
            &made_shapes,
            ops::PaddedBatchDatasetV2Options::default(),
        )?;
        Ok(self.over(made, self.types(), &made_shapes))
    }

    /// Takes batches apart: each row is an element.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for scalars, and what TensorFlow says.
    pub fn unbatch(&self) -> Result<Self> {
        let shapes = self
            .shapes()
            .iter()
            .map(|shape| match shape.dims() {
                Some([_, row @ ..]) => Ok(Shape::from(row)),
                Some([]) => Err(Error::argument(
                    "a scalar is no batch that can be taken apart",
                )),
                None => Ok(Shape::unknown()),
            })
            .collect::<Result<Vec<_>>>()?;
        let options = ops::UnbatchDatasetOptions::default();
        let made =
            ops::unbatch_dataset(self.place(), self.value(), self.types(), &shapes, options)?;
        Ok(self.over(made, self.types(), &shapes))
    }

    /// Begins again at the end: `count` times in all, forever when it is negative.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn repeat(&self, count: i64) -> Result<Self> {
        let options = ops::RepeatDatasetOptions::default();
        self.next(|cx, variant, types, shapes| {
            ops::repeat_dataset(cx, variant, count, types, shapes, options)
        })
    }

    /// The first elements.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn take(&self, count: i64) -> Result<Self> {
        let options = ops::TakeDatasetOptions::default();
        self.next(|cx, variant, types, shapes| {
            ops::take_dataset(cx, variant, count, types, shapes, options)
        })
    }

    /// All but the first elements.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn skip(&self, count: i64) -> Result<Self> {
        let options = ops::SkipDatasetOptions::default();
        self.next(|cx, variant, types, shapes| {
            ops::skip_dataset(cx, variant, count, types, shapes, options)
        })
    }

    /// Every `count`th element, from the one at `index` on: the share of one of `count` workers.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn shard(&self, count: i64, index: i64) -> Result<Self> {
        let options = ops::ShardDatasetOptions::default();
        self.next(|cx, variant, types, shapes| {
            ops::shard_dataset(cx, variant, count, index, types, shapes, options)
        })
    }

    /// Computes up to `buffer` elements ahead, on a thread of its own; TensorFlow chooses how many for -1.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn prefetch(&self, buffer: i64) -> Result<Self> {
        let options = ops::PrefetchDatasetOptions::default();
        self.next(|cx, variant, types, shapes| {
            ops::prefetch_dataset(cx, variant, buffer, types, shapes, options)
        })
    }

    /// Keeps the elements of the first whole reading in memory, for further ones.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn cache(&self) -> Result<Self> {
        self.cached("")
    }

    /// Keeps the elements of the first whole reading in files that begin with a path; they stay there,
    /// also for other processes.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a path that is empty or not UTF-8, and
    /// what TensorFlow says.
    pub fn cache_in(&self, path: impl AsRef<std::path::Path>) -> Result<Self> {
        match path.as_ref().to_str() {
            Some(path) if !path.is_empty() => self.cached(path),
            _ => Err(Error::argument(format!(
                "the path of a cache must be UTF-8 and not empty: {}",
                path.as_ref().display()
            ))),
        }
    }

    fn cached(&self, path: &str) -> Result<Self> {
        let options = ops::CacheDatasetV2Options::default();
        self.next(|cx, variant, types, shapes| {
            let cache = ops::dummy_memory_cache(cx)?;
            ops::cache_dataset_v2(cx, variant, path, &cache, types, shapes, options)
        })
    }

    /// Elements of this dataset, then those of another one of the same types.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for other types, and what TensorFlow says.
    pub fn concatenate(&self, other: &Self) -> Result<Self> {
        if self.types() != other.types() {
            return Err(Error::argument(format!(
                "elements of {:?} can't follow elements of {:?}",
                other.types(),
                self.types()
            )));
        }
        let shapes: Vec<Shape> = self
            .shapes()
            .iter()
            .zip(other.shapes())
            .map(|(one, other)| common(one, other))
            .collect();
        let options = ops::ConcatenateDatasetOptions::default();
        let made = ops::concatenate_dataset(
            self.place(),
            self.value(),
            other.value(),
            self.types(),
            &shapes,
            options,
        )?;
        let over = self.over(made, self.types(), &shapes);
        Ok(over.joined(other))
    }

    /// Puts elements of several datasets side by side, until the first of them ends.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for no dataset, and what TensorFlow says.
    pub fn zip(datasets: &[&Self]) -> Result<Self> {
        let [first, rest @ ..] = datasets else {
            return Err(Error::argument("there is no dataset to zip"));
        };
        let all = || datasets.iter();
        let types: Vec<DataType> = all().flat_map(|one| one.types()).copied().collect();
        let shapes: Vec<Shape> = all().flat_map(|one| one.shapes()).cloned().collect();
        let variants: Vec<&AnyValue> = all().map(|one| one.value()).collect();
        let options = ops::ZipDatasetOptions::default();
        let made = ops::zip_dataset(first.place(), variants, &types, &shapes, options)?;
        let over = first.over(made, &types, &shapes);
        Ok(rest.iter().fold(over, |over, other| over.joined(other)))
    }

    /// Puts the number of each element before it, int64 from zero on.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn enumerate(&self) -> Result<Self> {
        let numbers = Self::range(self.place(), 0, i64::MAX)?;
        Self::zip(&[&numbers, self])
    }

    fn joined(self, other: &Self) -> Self {
        let origins = other.origins().to_vec();
        self.with_origins(origins)
    }
}

/// What is known of both shapes.
fn common(one: &Shape, other: &Shape) -> Shape {
    match (one.dims(), other.dims()) {
        (Some(one), Some(other)) if one.len() == other.len() => {
            let dims = one
                .iter()
                .zip(other)
                .map(|(a, b)| if a == b { *a } else { -1 });
            Shape::from(dims.collect::<Vec<_>>().as_slice())
        }
        _ => Shape::unknown(),
    }
}
