//! Batches of elements of about the same length.

use tfp_core::{Context as _, DataType, Error, Result, Shape, Tensor};

use super::apply::{is_number, traced_of, window};
use super::dataset::{Dataset, zero};
use super::transform::stacked;
use crate::context::any::AnyContext;
use crate::context::value::AnyValue;
use crate::ops;

/// The batches of [`Dataset::bucket_by_length`]: which lengths come together, and how many.
#[derive(Clone, Debug)]
pub struct Buckets {
    boundaries: Vec<i64>,
    sizes: Vec<i64>,
    shapes: Option<Vec<Shape>>,
    drops_smaller: bool,
}

impl Buckets {
    /// Elements shorter than the first boundary, those up to below the next one, and so on, and those that
    /// are as long as the last or longer. `sizes` has the number of elements of a batch for each.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for boundaries that do not rise, sizes below
    /// one, or a number of sizes that is not one more than that of boundaries.
    pub fn new(boundaries: &[i64], sizes: &[i64]) -> Result<Self> {
        let rises = boundaries.windows(2).all(|pair| pair[0] < pair[1]);
        if !rises || sizes.iter().any(|&size| size < 1) || sizes.len() != boundaries.len() + 1 {
            return Err(Error::argument(format!(
                "buckets need boundaries that rise and one more size, each at least 1: {boundaries:?} and \
                 {sizes:?}"
            )));
        }
        Ok(Self {
            boundaries: boundaries.to_vec(),
            sizes: sizes.to_vec(),
            shapes: None,
            drops_smaller: false,
        })
    }

    /// Sets the shapes up to which elements are filled, as for [`Dataset::padded_batch`]. Without this,
    /// each dimension that is not known is as large as the largest of the batch.
    #[must_use]
    pub fn shapes(self, shapes: &[Shape]) -> Self {
        let shapes = Some(shapes.to_vec());
        Self { shapes, ..self }
    }

    /// Leaves the last batch of a bucket out if it is smaller than the others.
    #[must_use]
    pub fn drop_smaller(self) -> Self {
        Self {
            drops_smaller: true,
            ..self
        }
    }
}

impl Dataset {
    /// Puts elements of about the same length together, filled up with zeros: batches come as they are
    /// full, the rest at the end, as those of Python's `bucket_by_sequence_length`. The length, an int64
    /// scalar, is computed by a closure that is traced once.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for elements of unknown rank or a length of
    /// another type or shape, those of the closure, and what TensorFlow says.
    pub fn bucket_by_length(
        &self,
        buckets: &Buckets,
        length: impl FnOnce(&AnyContext, &[AnyValue]) -> Result<AnyValue>,
    ) -> Result<Self> {
        let shapes = buckets.shapes.as_deref().unwrap_or(self.shapes());
        let known = shapes.iter().filter(|shape| shape.rank().is_some()).count();
        if shapes.len() != self.types().len() || known != shapes.len() {
            return Err(Error::argument(format!(
                "buckets of {} tensors per element need as many shapes of known rank: {shapes:?}",
                self.types().len()
            )));
        }
        let padding = self.types().iter().map(|&dtype| zero(dtype));
        let padding = padding.collect::<Result<Vec<_>>>()?;
        let boundaries =
            Tensor::from_slice(&buckets.boundaries, &[buckets.boundaries.len() as i64])?;
        let sizes = Tensor::from_slice(&buckets.sizes, &[buckets.sizes.len() as i64])?;

        let (key, key_captures) = self.traced("bucket", |cx, element| {
            let length = length(cx, element)?;
            if !is_number(&length)? {
                return Err(Error::argument(format!(
                    "the length of an element is {} of shape {}, expected an int64 scalar",
                    length.dtype(),
                    length.shape()?
                )));
            }
            let boundaries = cx.constant(&boundaries)?;
            let below = ops::less_equal(cx, &boundaries, &length)?;
            let ones = ops::cast(cx, &below, DataType::INT64, ops::CastOptions::default())?;
            Ok(vec![ops::sum(
                cx,
                &ones,
                0_i32,
                ops::SumOptions::default(),
            )?])
        })?;
        let size_of = |cx: &AnyContext, bucket: &AnyValue| {
            let sizes = cx.constant(&sizes)?;
            ops::gather_v2(cx, &sizes, bucket, 0_i32, ops::GatherV2Options::default())
        };
        let number = (DataType::INT64, Shape::scalar());
        let (size, size_captures) = traced_of(
            self.place(),
            "bucket_size",
            std::slice::from_ref(&number),
            |cx, key| Ok(vec![size_of(cx, &key[0])?]),
        )?;
        let arguments = [number, (DataType::VARIANT, Shape::scalar())];
        let (batch, batch_captures) =
            traced_of(self.place(), "bucket_batch", &arguments, |cx, arguments| {
                let size = size_of(cx, &arguments[0])?;
                let window = window(cx, &arguments[1], self);
                let batch = window.padded(&size, shapes, &padding, buckets.drops_smaller, -1)?;
                Ok(vec![batch.value().clone()])
            })?;
        let made_shapes = stacked(shapes, -1);
        let made = ops::group_by_window_dataset(
            self.place(),
            self.value(),
            &key_captures,
            &batch_captures,
            &size_captures,
            key.function(),
            batch.function(),
            size.function(),
            self.types(),
            &made_shapes,
            ops::GroupByWindowDatasetOptions::default(),
        )?;
        Ok(self.over(made, self.types(), &made_shapes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_checked() {
        assert!(Buckets::new(&[3, 5], &[4, 2, 1]).is_ok());
        assert!(Buckets::new(&[5, 3], &[4, 2, 1]).is_err());
        assert!(Buckets::new(&[3], &[4]).is_err());
        assert!(Buckets::new(&[3], &[4, 0]).is_err());
    }
}
