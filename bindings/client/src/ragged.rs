//! Ragged tensors: rows of different lengths.

use tfp_core::{DataType, Element, Error, IntoOperand, Result, Tensor, TensorHandle, Value};
use tfp_ops as ops;

use crate::context::any::Mode;
use crate::sparse::SparseTensor;

/// A tensor whose rows have different lengths: the values of all rows, and where rows begin.
#[derive(Clone, Debug)]
pub struct RaggedTensor<V> {
    /// The values of all rows of the innermost level.
    pub flat_values: V,
    /// Of each level, outermost first, where its rows begin, and the end: `[rows + 1]`, `INT64`.
    pub row_splits: Vec<V>,
}

impl<V: Value> RaggedTensor<V> {
    /// Makes a ragged tensor of rows.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn from_rows<C: Mode<Value = V>, T: Element, R: AsRef<[T]>>(
        context: &C,
        rows: &[R],
    ) -> Result<Self> {
        let mut splits = vec![0_i64];
        let mut values = Vec::new();
        for row in rows {
            values.extend_from_slice(row.as_ref());
            splits.push(values.len() as i64);
        }
        let count = values.len() as i64;
        Ok(Self {
            flat_values: context.constant(&Tensor::from_vec(values, &[count])?)?,
            row_splits: vec![
                context.constant(&Tensor::from_slice(&splits, &[splits.len() as i64])?)?,
            ],
        })
    }

    /// Makes a ragged tensor of one level of values and the lengths of its rows.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a negative length or lengths that do
    /// not add up to the number of values, where that is known.
    pub fn from_row_lengths<'a, C: Mode<Value = V>>(
        context: &C,
        values: impl IntoOperand<'a, V>,
        lengths: &[i64],
    ) -> Result<Self> {
        let mut splits = vec![0_i64];
        for &length in lengths {
            let end = splits.last().copied().unwrap_or(0);
            let next = (length >= 0).then(|| end.checked_add(length)).flatten();
            splits.push(next.ok_or_else(|| {
                Error::argument(format!(
                    "a row of {length} values can't be in a ragged tensor"
                ))
            })?);
        }
        Self::from_row_splits(context, values, &splits)
    }

    /// Makes a ragged tensor of one level of values and where its rows begin, and the end.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for splits that do not begin with 0, go
    /// back or do not end with the number of values, where that is known.
    pub fn from_row_splits<'a, C: Mode<Value = V>>(
        context: &C,
        values: impl IntoOperand<'a, V>,
        splits: &[i64],
    ) -> Result<Self> {
        let values = values.into_operand().into_own_value(context)?;
        let count = Value::shape(&values)?.dim(0);
        let ends = |end: i64| count.is_none_or(|count| count == end);
        let goes_on = splits.windows(2).all(|pair| pair[0] <= pair[1]);
        if splits.first() != Some(&0) || !goes_on || !splits.last().is_some_and(|&end| ends(end)) {
            return Err(Error::argument(format!(
                "{splits:?} are no splits of rows: expected 0 first, no step back, and last the number of \
                 values{}",
                count.map_or(String::new(), |count| format!(", {count}"))
            )));
        }
        let splits = Tensor::from_slice(splits, &[splits.len() as i64])?;
        Ok(Self {
            flat_values: values,
            row_splits: vec![context.constant(&splits)?],
        })
    }

    /// Returns the dense tensor, with a value after the end of shorter rows.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn to_dense<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        default: impl IntoOperand<'a, V>,
    ) -> Result<V> {
        let dtype = Value::dtype(&self.flat_values).base();
        let default = default.into_operand();
        let default = default.into_value(context, dtype, "the default of a ragged tensor")?;
        let kinds = vec!["ROW_SPLITS"; self.row_splits.len()];
        let (values, splits) = (&self.flat_values, &self.row_splits);
        ops::ragged_tensor_to_tensor(context, -1_i64, values, &default, splits, &kinds)
    }

    /// Returns the sparse tensor of the values.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn to_sparse<C: Mode<Value = V>>(&self, context: &C) -> Result<SparseTensor<V>> {
        let sparse = ops::ragged_tensor_to_sparse(context, &self.row_splits, &self.flat_values)?;
        Ok(SparseTensor {
            indices: sparse.sparse_indices,
            values: sparse.sparse_values,
            dense_shape: sparse.sparse_dense_shape,
        })
    }

    /// Returns the same rows with each value changed by an op that keeps the number of values.
    ///
    /// # Errors
    /// What the closure returns.
    pub fn map<C: Mode<Value = V>>(
        &self,
        context: &C,
        change: impl FnOnce(&C, &V) -> Result<V>,
    ) -> Result<Self> {
        Ok(Self {
            flat_values: change(context, &self.flat_values)?,
            row_splits: self.row_splits.clone(),
        })
    }

    fn outer(&self) -> Result<&V> {
        self.row_splits
            .first()
            .ok_or_else(|| Error::argument("a ragged tensor has no row splits"))
    }

    /// Returns the lengths of the outermost rows, of type `INT64`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn row_lengths<C: Mode<Value = V>>(&self, context: &C) -> Result<V> {
        let splits = self.outer()?;
        let options = ops::SizeOptions {
            out_type: Some(DataType::INT64),
        };
        let size = ops::size(context, splits, options)?;
        let rows = ops::sub(context, &size, 1_i64)?;
        let rows = ops::reshape(context, &rows, [1])?;
        let starts = ops::slice(context, splits, [0_i64], &rows)?;
        let ends = ops::slice(context, splits, [1_i64], &rows)?;
        ops::sub(context, &ends, &starts)
    }

    /// Returns the row of each value of the innermost level, of type `INT64`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn value_row_ids<C: Mode<Value = V>>(&self, context: &C) -> Result<V> {
        let Some(splits) = self.row_splits.last() else {
            return Err(Error::argument("a ragged tensor has no row splits"));
        };
        let options = ops::ShapeOptions {
            out_type: Some(DataType::INT64),
        };
        let shape = ops::shape(context, &self.flat_values, options)?;
        let count = ops::slice(context, &shape, [0_i64], [1_i64])?;
        let count = ops::reshape(context, &count, &[0_i32; 0][..])?;
        let numbers = ops::range(context, 0_i64, &count, 1_i64)?;
        let (sorted, numbers) = (
            ops::expand_dims(context, splits, 0)?,
            ops::expand_dims(context, &numbers, 0)?,
        );
        let options = ops::UpperBoundOptions {
            out_type: Some(DataType::INT64),
        };
        let after = ops::upper_bound(context, &sorted, &numbers, options)?;
        let ids = ops::sub(context, &after, 1_i64)?;
        ops::reshape(context, &ids, [-1])
    }

    /// Returns the sum of each innermost row.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn row_sums<C: Mode<Value = V>>(&self, context: &C) -> Result<V> {
        let Some(splits) = self.row_splits.last() else {
            return Err(Error::argument("a ragged tensor has no row splits"));
        };
        let ids = self.value_row_ids(context)?;
        let options = ops::SizeOptions {
            out_type: Some(DataType::INT64),
        };
        let rows = ops::sub(context, ops::size(context, splits, options)?, 1_i64)?;
        ops::unsorted_segment_sum(context, &self.flat_values, &ids, &rows)
    }

    /// Returns outermost rows by their numbers.
    ///
    /// # Errors
    /// TensorFlow's status for a row that there is not.
    pub fn gather<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        rows: impl IntoOperand<'a, V>,
    ) -> Result<Self> {
        let rank = self.row_splits.len() as i64;
        let rows =
            rows.into_operand()
                .into_value(context, DataType::INT64, "the numbers of rows")?;
        let (splits, values) = (&self.row_splits, &self.flat_values);
        let found = ops::ragged_gather(context, splits, values, &rows, rank)?;
        Ok(Self {
            flat_values: found.output_dense_values,
            row_splits: found.output_nested_splits,
        })
    }
}

impl RaggedTensor<TensorHandle> {
    /// Returns the rows of a ragged tensor of one level.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for more levels or values with more
    /// dimensions, and [`ErrorKind::DType`](tfp_core::ErrorKind::DType).
    pub fn to_rows<T: Element>(&self) -> Result<Vec<Vec<T>>> {
        let values = self.flat_values.to_tensor()?;
        let ([splits], [_]) = (&self.row_splits[..], values.dims()) else {
            return Err(Error::argument(format!(
                "a ragged tensor of {} levels with values of {} dimensions is no list of rows",
                self.row_splits.len(),
                values.dims().len()
            )));
        };
        let (splits, values) = (splits.to_tensor()?, values.as_slice::<T>()?);
        splits
            .as_slice::<i64>()?
            .windows(2)
            .map(|pair| {
                let range = usize::try_from(pair[0])
                    .ok()
                    .zip(usize::try_from(pair[1]).ok());
                let row = range.and_then(|(start, end)| values.get(start..end));
                row.map(<[T]>::to_vec).ok_or_else(|| {
                    Error::argument(format!(
                        "a row from {} to {} is not there",
                        pair[0], pair[1]
                    ))
                })
            })
            .collect()
    }
}
