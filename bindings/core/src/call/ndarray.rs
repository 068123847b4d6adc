//! Arrays of the crate `ndarray` as tensors, and the reverse.
//!
//! An array or view is accepted wherever an op takes a tensor, as a literal is: its element type
//! gives way to that of the values beside it. It is read in logical (row-major) order, whatever its
//! strides.

use ndarray::{ArrayBase, ArrayViewD, CowArray, Data, Dimension, IxDyn, OwnedRepr, ViewRepr};

use crate::base::error::{Error, Result};
use crate::call::operand::{IntoOperand, Literal, Operand};
use crate::tensor::Tensor;
use crate::tensor::element::Element;
use crate::tensor::memory::Buffer;

fn dims_of<S: Data, D: Dimension>(array: &ArrayBase<S, D>) -> Result<Vec<i64>> {
    let dims = array.shape().iter().map(|&dim| i64::try_from(dim));
    dims.collect::<std::result::Result<_, _>>()
        .map_err(|_| Error::argument("a dimension of the array does not fit 63 bits"))
}

impl Tensor {
    /// Makes a tensor of an array or view, with exactly one copy.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn from_ndarray<S, D>(array: &ArrayBase<S, D>) -> Result<Self>
    where
        S: Data,
        S::Elem: Element,
        D: Dimension,
    {
        let dims = dims_of(array)?;
        if let Some(elements) = array.as_slice() {
            return Self::from_slice(elements, &dims);
        }
        let mut buffer = Buffer::zeroed(array.len())?;
        for (slot, &element) in buffer.iter_mut().zip(array.iter()) {
            *slot = element;
        }
        Self::from_buffer(buffer, &dims)
    }

    /// Makes a tensor of an owned array: without a copy when it is in row-major order and its memory
    /// is aligned to [`ALIGNMENT`](crate::ALIGNMENT) bytes, and with one copy otherwise.
    ///
    /// # Errors
    /// As for [`Self::from_slice`].
    pub fn from_owned_ndarray<T, D>(array: ArrayBase<OwnedRepr<T>, D>) -> Result<Self>
    where
        T: Element,
        D: Dimension,
    {
        let dims = dims_of(&array)?;
        // A part of a larger allocation, or another order of elements, can't be handed over whole.
        if !array.is_standard_layout() {
            return Self::from_ndarray(&array);
        }
        let len = array.len();
        match array.into_raw_vec_and_offset() {
            (elements, None | Some(0)) if elements.len() == len => Self::from_vec(elements, &dims),
            (elements, offset) => {
                let first = offset.unwrap_or(0);
                let part = elements.get(first..first + len);
                Self::from_slice(part.unwrap_or_default(), &dims)
            }
        }
    }

    /// Returns the elements as a view, without a copy.
    ///
    /// # Errors
    /// As for [`Self::as_slice`].
    pub fn as_ndarray<T: Element>(&self) -> Result<ArrayViewD<'_, T>> {
        let dims: Vec<usize> = self
            .dims()
            .iter()
            .map(|&dim| usize::try_from(dim).unwrap_or(0))
            .collect();
        ArrayViewD::from_shape(IxDyn(&dims), self.as_slice::<T>()?)
            .map_err(|error| Error::argument(format!("{} as an array: {error}", self.shape())))
    }
}

impl<'a, V, S, D> IntoOperand<'a, V> for &ArrayBase<S, D>
where
    S: Data,
    S::Elem: Element,
    D: Dimension,
{
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Literal(Literal::made(Tensor::from_ndarray(self)))
    }
}

impl<'a, V, T: Element, D: Dimension> IntoOperand<'a, V> for ArrayBase<OwnedRepr<T>, D> {
    fn into_operand(self) -> Operand<'a, V> {
        Operand::Literal(Literal::made(Tensor::from_owned_ndarray(self)))
    }
}

impl<'a, V, T: Element, D: Dimension> IntoOperand<'a, V> for ArrayBase<ViewRepr<&T>, D> {
    fn into_operand(self) -> Operand<'a, V> {
        (&self).into_operand()
    }
}

impl<'a, V, T: Element, D: Dimension> IntoOperand<'a, V> for CowArray<'_, T, D> {
    fn into_operand(self) -> Operand<'a, V> {
        (&self).into_operand()
    }
}
