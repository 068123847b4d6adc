//! Lists of tensors as one value, which loops grow and gradients follow.

use tfp_core::{DataType, IntoOperand, Result, Shape, Tensor, Value};
use tfp_ops as ops;

use crate::context::any::Mode;

/// A list of tensors of one element type. Changes return another list.
#[derive(Clone, Debug)]
pub struct TensorList<V> {
    /// The value: a scalar of type `VARIANT`.
    pub handle: V,
    /// The element type.
    pub dtype: DataType,
    /// What is known of the shape of every tensor in it.
    pub shape: Shape,
}

/// Returns a shape as an operand: its dimensions, or -1 when the rank is unknown.
fn dims_of(shape: &Shape) -> Result<Tensor> {
    match shape.dims() {
        None => Tensor::scalar(-1_i32),
        Some(dims) => {
            let small: Vec<i32> = dims
                .iter()
                .map(|&dim| i32::try_from(dim).unwrap_or(-1))
                .collect();
            Tensor::from_vec(small, &[dims.len() as i64])
        }
    }
}

impl<V: Value> TensorList<V> {
    /// Makes an empty list that can grow.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn empty<C: Mode<Value = V>>(context: &C, dtype: DataType, shape: &Shape) -> Result<Self> {
        let handle = ops::empty_tensor_list(context, &dims_of(shape)?, -1, dtype)?;
        Ok(Self::of(handle, dtype, shape))
    }

    /// Makes a list of a length, whose tensors are set later.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn reserve<'a, C: Mode<Value = V>>(
        context: &C,
        length: impl IntoOperand<'a, V>,
        dtype: DataType,
        shape: &Shape,
    ) -> Result<Self> {
        let length = length
            .into_operand()
            .into_value(context, DataType::INT32, "a length")?;
        let handle = ops::tensor_list_reserve(context, &dims_of(shape)?, &length, dtype)?;
        Ok(Self::of(handle, dtype, shape))
    }

    /// Makes a list of the slices of a tensor along its first axis.
    ///
    /// # Errors
    /// What TensorFlow says, as for a scalar.
    pub fn from_tensor<C: Mode<Value = V>>(context: &C, tensor: &V) -> Result<Self> {
        let shape = match Value::shape(tensor)?.dims() {
            Some([_, rest @ ..]) => Shape::new(rest),
            _ => Shape::unknown(),
        };
        let handle = ops::tensor_list_from_tensor(context, tensor, &dims_of(&shape)?)?;
        Ok(Self::of(handle, Value::dtype(tensor).base(), &shape))
    }

    fn of(handle: V, dtype: DataType, shape: &Shape) -> Self {
        Self {
            handle,
            dtype,
            shape: shape.clone(),
        }
    }

    /// Returns the list with a tensor at its end.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](tfp_core::ErrorKind::DType) for a tensor of another type, and what TensorFlow
    /// says.
    pub fn push<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        tensor: impl IntoOperand<'a, V>,
    ) -> Result<Self> {
        let tensor = self.element(context, tensor)?;
        let handle = ops::tensor_list_push_back(context, &self.handle, &tensor)?;
        Ok(Self::of(handle, self.dtype, &self.shape))
    }

    fn element<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        tensor: impl IntoOperand<'a, V>,
    ) -> Result<V> {
        tensor
            .into_operand()
            .into_value(context, self.dtype, "a tensor for a list")
    }

    /// Returns the list without its last tensor, and that tensor.
    ///
    /// # Errors
    /// TensorFlow's status for an empty list.
    pub fn pop<C: Mode<Value = V>>(&self, context: &C) -> Result<(Self, V)> {
        let shape = dims_of(&self.shape)?;
        let popped = ops::tensor_list_pop_back(context, &self.handle, &shape, self.dtype)?;
        let rest = Self::of(popped.output_handle, self.dtype, &self.shape);
        Ok((rest, popped.tensor))
    }

    /// Returns a tensor.
    ///
    /// # Errors
    /// TensorFlow's status for an index that is too large.
    pub fn get<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        index: impl IntoOperand<'a, V>,
    ) -> Result<V> {
        let index = index
            .into_operand()
            .into_value(context, DataType::INT32, "an index")?;
        let shape = dims_of(&self.shape)?;
        ops::tensor_list_get_item(context, &self.handle, &index, &shape, self.dtype)
    }

    /// Returns the list with another tensor at an index.
    ///
    /// # Errors
    /// As for [`Self::get`] and [`Self::push`].
    pub fn set<'a, C: Mode<Value = V>>(
        &self,
        context: &C,
        index: impl IntoOperand<'a, V>,
        tensor: impl IntoOperand<'a, V>,
    ) -> Result<Self> {
        let index = index
            .into_operand()
            .into_value(context, DataType::INT32, "an index")?;
        let tensor = self.element(context, tensor)?;
        let options = Default::default();
        let handle = ops::tensor_list_set_item(context, &self.handle, &index, &tensor, options)?;
        Ok(Self::of(handle, self.dtype, &self.shape))
    }

    /// Returns the length.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn len<C: Mode<Value = V>>(&self, context: &C) -> Result<V> {
        ops::tensor_list_length(context, &self.handle)
    }

    /// Returns all tensors as one, along a new first axis.
    ///
    /// # Errors
    /// TensorFlow's status for tensors of several shapes.
    pub fn stack<C: Mode<Value = V>>(&self, context: &C) -> Result<V> {
        let shape = dims_of(&self.shape)?;
        ops::tensor_list_stack(
            context,
            &self.handle,
            &shape,
            self.dtype,
            Default::default(),
        )
    }

    /// Returns all tensors as one, one after the other along their first axis.
    ///
    /// # Errors
    /// TensorFlow's status for tensors that do not fit.
    pub fn concat<C: Mode<Value = V>>(&self, context: &C) -> Result<V> {
        let shape = dims_of(&self.shape)?;
        let none: &[i64] = &[];
        let all = ops::tensor_list_concat_v2(context, &self.handle, &shape, none, self.dtype)?;
        Ok(all.tensor)
    }
}
