//! Sparse tensors: positions and values of the elements that are not zero.

use tfp_core::{
    DataType, Error, ErrorKind, IntoOperand, Result, Shape, Tensor, TensorHandle, Value,
};
use tfp_ops as ops;

use crate::context::any::Mode;

/// A sparse tensor of a context: three dense ones.
///
/// Positions are sorted as the elements of a dense tensor are; [`Self::reorder`] sorts them.
#[derive(Clone, Debug)]
pub struct SparseTensor<V> {
    /// A row per value, its position: `[count, rank]`, of type `INT64`.
    pub indices: V,
    /// The values: `[count]`.
    pub values: V,
    /// The shape of the whole: `[rank]`, of type `INT64`.
    pub dense_shape: V,
}

impl<V: Value> SparseTensor<V> {
    /// Makes a sparse tensor of its parts.
    ///
    /// # Errors
    /// [`ErrorKind::DType`] for positions or a shape of another type than `INT64`, and
    /// [`ErrorKind::Shape`] for parts that do not fit together, as far as shapes are known.
    pub fn new<'a, C: Mode<Value = V>>(
        context: &C,
        indices: impl IntoOperand<'a, V>,
        values: impl IntoOperand<'a, V>,
        dense_shape: impl IntoOperand<'a, V>,
    ) -> Result<Self> {
        let int64 = DataType::INT64;
        let indices = indices.into_operand();
        let indices = indices.into_value(context, int64, "the indices of a sparse tensor")?;
        let values = values.into_operand().into_own_value(context)?;
        let shape = dense_shape.into_operand();
        let dense_shape = shape.into_value(context, int64, "the shape of a sparse tensor")?;
        let count = Value::shape(&values)?.dim(0).unwrap_or(-1);
        let rank = Value::shape(&dense_shape)?.dim(0).unwrap_or(-1);
        fits("the indices of a sparse tensor", &indices, &[count, rank])?;
        fits("the values of a sparse tensor", &values, &[-1])?;
        fits("the shape of a sparse tensor", &dense_shape, &[-1])?;
        Ok(Self {
            indices,
            values,
            dense_shape,
        })
    }

    /// Makes a sparse tensor of the elements of a dense one that are not zero.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn from_dense<C: Mode<Value = V>>(context: &C, dense: &V) -> Result<Self> {
        let zero = ops::zeros_like(context, dense)?;
        let is_there = ops::not_equal(context, dense, &zero, Default::default())?;
        let indices = ops::r#where(context, &is_there)?;
        let values = ops::gather_nd(context, dense, &indices, Default::default())?;
        let options = ops::ShapeOptions {
            out_type: Some(DataType::INT64),
        };
        Ok(Self {
            indices,
            values,
            dense_shape: ops::shape(context, dense, options)?,
        })
    }

    fn of(indices: V, values: V, dense_shape: V) -> Self {
        Self {
            indices,
            values,
            dense_shape,
        }
    }

    /// Returns the same positions with other values.
    #[must_use]
    pub fn with_values(&self, values: V) -> Self {
        Self {
            values,
            ..self.clone()
        }
    }

    /// Returns the dense tensor, with a value where there is none.
    ///
    /// # Errors
    /// TensorFlow's status for positions that are not sorted or there twice.
    pub fn to_dense<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        default: impl IntoOperand<'a, V>,
    ) -> Result<V> {
        let dtype = Value::dtype(&self.values).base();
        let default = default.into_operand();
        let default = default.into_value(context, dtype, "the default of a sparse tensor")?;
        let (at, shape) = (&self.indices, &self.dense_shape);
        ops::sparse_to_dense(
            context,
            at,
            shape,
            &self.values,
            &default,
            Default::default(),
        )
    }

    /// Returns the sum with another sparse tensor.
    ///
    /// # Errors
    /// TensorFlow's status for another shape.
    pub fn add<C: Mode<Value = V>>(&self, context: &C, other: &Self) -> Result<Self> {
        let zero = zero_of(context, &self.values)?;
        let sum = ops::sparse_add(
            context,
            &self.indices,
            &self.values,
            &self.dense_shape,
            &other.indices,
            &other.values,
            &other.dense_shape,
            &zero,
        )?;
        Ok(Self::of(sum.sum_indices, sum.sum_values, sum.sum_shape))
    }

    /// Returns the sum with a dense tensor of the same shape.
    ///
    /// # Errors
    /// TensorFlow's status for another shape.
    pub fn add_dense<C: Mode<Value = V>>(&self, context: &C, dense: &V) -> Result<V> {
        let (at, shape) = (&self.indices, &self.dense_shape);
        ops::sparse_tensor_dense_add(context, at, &self.values, shape, dense)
    }

    /// Returns the product with a dense tensor, element by element.
    ///
    /// # Errors
    /// TensorFlow's status for a shape that can't be broadcast.
    pub fn mul_dense<C: Mode<Value = V>>(&self, context: &C, dense: &V) -> Result<Self> {
        let (at, shape) = (&self.indices, &self.dense_shape);
        let values = ops::sparse_dense_cwise_mul(context, at, &self.values, shape, dense)?;
        Ok(self.with_values(values))
    }

    /// Returns the matrix product with a dense matrix.
    ///
    /// # Errors
    /// TensorFlow's status for shapes that do not fit.
    pub fn mat_mul<C: Mode<Value = V>>(&self, context: &C, dense: &V) -> Result<V> {
        let (at, shape, options) = (&self.indices, &self.dense_shape, Default::default());
        ops::sparse_tensor_dense_mat_mul(context, at, &self.values, shape, dense, options)
    }

    /// Returns the same with sorted positions.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn reorder<C: Mode<Value = V>>(&self, context: &C) -> Result<Self> {
        let sorted = ops::sparse_reorder(context, &self.indices, &self.values, &self.dense_shape)?;
        Ok(Self::of(
            sorted.output_indices,
            sorted.output_values,
            self.dense_shape.clone(),
        ))
    }

    /// Returns the same values in another shape of as many elements.
    ///
    /// # Errors
    /// TensorFlow's status for another number of elements.
    pub fn reshape<C: Mode<Value = V>>(&self, context: &C, shape: &[i64]) -> Result<Self> {
        let reshaped = ops::sparse_reshape(context, &self.indices, &self.dense_shape, shape)?;
        Ok(Self::of(
            reshaped.output_indices,
            self.values.clone(),
            reshaped.output_shape,
        ))
    }

    /// Returns a part.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn slice<C: Mode<Value = V>>(
        &self,
        context: &C,
        start: &[i64],
        size: &[i64],
    ) -> Result<Self> {
        let (at, shape) = (&self.indices, &self.dense_shape);
        let part = ops::sparse_slice(context, at, &self.values, shape, start, size)?;
        Ok(Self::of(
            part.output_indices,
            part.output_values,
            part.output_shape,
        ))
    }

    /// Returns sparse tensors one after the other along an axis.
    ///
    /// # Errors
    /// What TensorFlow says, as for none.
    pub fn concat<C: Mode<Value = V>>(context: &C, parts: &[Self], axis: i64) -> Result<Self> {
        let list = |part: fn(&Self) -> &V| parts.iter().map(part).cloned().collect::<Vec<V>>();
        let (indices, values) = (list(|p| &p.indices), list(|p| &p.values));
        let shapes = list(|p| &p.dense_shape);
        let all = ops::sparse_concat(context, &indices, &values, &shapes, axis)?;
        Ok(Self::of(
            all.output_indices,
            all.output_values,
            all.output_shape,
        ))
    }

    /// Returns the tensor with its axes in another order.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] unless each axis is there once.
    pub fn transpose<C: Mode<Value = V>>(&self, context: &C, axes: &[i64]) -> Result<Self> {
        let rank = Value::shape(&self.dense_shape)?.dim(0);
        let mut sorted = axes.to_vec();
        sorted.sort_unstable();
        if !sorted
            .iter()
            .copied()
            .eq(0..rank.unwrap_or(axes.len() as i64))
        {
            return Err(Error::argument(format!(
                "axes {axes:?} of a sparse tensor of rank {}: expected each axis once",
                rank.map_or("unknown".to_owned(), |rank| rank.to_string())
            )));
        }
        let options = Default::default();
        let indices = ops::gather_v2(context, &self.indices, axes, 1, options)?;
        let shape = ops::gather_v2(context, &self.dense_shape, axes, 0, options)?;
        Self::of(indices, self.values.clone(), shape).reorder(context)
    }

    /// Returns the softmax over the last axis, of what is there.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn softmax<C: Mode<Value = V>>(&self, context: &C) -> Result<Self> {
        let (at, shape) = (&self.indices, &self.dense_shape);
        let values = ops::sparse_softmax(context, at, &self.values, shape)?;
        Ok(self.with_values(values))
    }

    /// Returns the dense sums over axes.
    ///
    /// # Errors
    /// What TensorFlow says, as for an axis that there is not.
    pub fn reduce_sum<C: Mode<Value = V>>(&self, context: &C, axes: &[i32]) -> Result<V> {
        let (at, shape, options) = (&self.indices, &self.dense_shape, Default::default());
        ops::sparse_reduce_sum(context, at, &self.values, shape, axes, options)
    }

    /// Returns the same with a value in each row that is empty, and which rows were.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn fill_empty_rows<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        value: impl IntoOperand<'a, V>,
    ) -> Result<(Self, V)> {
        let dtype = Value::dtype(&self.values).base();
        let value = value
            .into_operand()
            .into_value(context, dtype, "the value of an empty row")?;
        let (at, shape) = (&self.indices, &self.dense_shape);
        let filled = ops::sparse_fill_empty_rows(context, at, &self.values, shape, &value)?;
        let whole = Self::of(filled.output_indices, filled.output_values, shape.clone());
        Ok((whole, filled.empty_row_indicator))
    }
}

impl SparseTensor<TensorHandle> {
    /// Returns positions, values and shape in host memory.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn to_tensors(&self) -> Result<(Tensor, Tensor, Tensor)> {
        Ok((
            self.indices.to_tensor()?,
            self.values.to_tensor()?,
            self.dense_shape.to_tensor()?,
        ))
    }
}

fn zero_of<C: Mode>(context: &C, values: &C::Value) -> Result<C::Value> {
    // The threshold of complex numbers is a real one.
    let dtype = match Value::dtype(values).base() {
        DataType::COMPLEX64 => DataType::FLOAT,
        DataType::COMPLEX128 => DataType::DOUBLE,
        dtype => dtype,
    };
    context.constant(&Tensor::zeros(dtype, &[])?)
}

fn fits(what: &str, value: &impl Value, dims: &[i64]) -> Result<()> {
    let (found, expected) = (value.shape()?, Shape::new(dims));
    if expected.is_compatible_with(&found) {
        return Ok(());
    }
    Err(Error::new(ErrorKind::Shape {
        what: what.to_owned(),
        expected: format!("shape {expected}"),
        found,
    }))
}
