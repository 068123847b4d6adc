//! One call of an op, and the place where calls go: a graph to which they add operations, or an
//! eager context that executes them.

mod check;
pub(crate) mod infer;
pub(crate) mod lengths;
mod literal;
#[cfg(feature = "ndarray")]
mod ndarray;
pub(crate) mod operand;
pub(crate) mod results;
pub(crate) mod slot;

#[cfg(test)]
mod call_test;

use crate::attr::AttrValue;
use crate::base::error::{Error, Result};
use crate::base::op::OpDesc;
use crate::call::lengths::Lengths;
use crate::call::operand::{IntoOperand, IntoOperands, Operand, Operands, Value};
use crate::call::results::{Prepared, Results};
use crate::call::slot::Slots;
use crate::tensor::Tensor;
use tfp_wire::DataType;

/// A graph scope or an eager context.
///
/// Every generated op function, and every function that is written over them, takes a context as
/// its first argument and so serves both modes: one call adds an operation to a graph, or executes it.
pub trait Context {
    /// A tensor value: an output of an operation in a graph, a handle in eager mode.
    type Value: Value;

    /// What remains of a call beside its values: the operation in a graph, nothing in eager mode.
    type Operation;

    /// Makes a constant.
    ///
    /// # Errors
    /// What TensorFlow says, as for a type that it can't hold.
    fn constant(&self, tensor: &Tensor) -> Result<Self::Value>;

    /// Adds or executes one op.
    ///
    /// `attrs` has a value per attribute that is not inferred, in the order of the description.
    ///
    /// # Errors
    /// [`ErrorKind::Input`](crate::ErrorKind::Input) or
    /// [`ErrorKind::Attribute`](crate::ErrorKind::Attribute) for what the op's description rules
    /// out, [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for a value of another graph or
    /// context, and [`ErrorKind::Status`](crate::ErrorKind::Status) for what TensorFlow refuses.
    fn execute(
        &self,
        call: &mut Call<'_, Self::Value>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<Self::Value, Self::Operation>>;
}

impl<C: Context + ?Sized> Context for &C {
    type Value = C::Value;
    type Operation = C::Operation;

    fn constant(&self, tensor: &Tensor) -> Result<Self::Value> {
        (**self).constant(tensor)
    }

    fn execute(
        &self,
        call: &mut Call<'_, Self::Value>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<Self::Value, Self::Operation>> {
        (**self).execute(call, attrs)
    }
}

/// A call of an op with its operands, in the order of the op's inputs.
pub struct Call<'a, V> {
    desc: &'static OpDesc,
    operands: Operands<'a, V>,
    lengths: Lengths,
    // What the operands determined when the call was last prepared.
    slots: Slots,
}

impl<'a, V: Value> Call<'a, V> {
    /// Begins a call.
    #[must_use]
    #[inline]
    pub const fn new(desc: &'static OpDesc) -> Self {
        Self {
            desc,
            operands: Operands::new(),
            lengths: Lengths::new(),
            slots: Slots::new(),
        }
    }

    /// Appends the operand of a single input.
    #[inline]
    pub fn input(&mut self, operand: impl IntoOperand<'a, V>) -> &mut Self {
        self.operands.push(operand.into_operand());
        self.lengths.push(1);
        self
    }

    /// Appends the operands of a list input.
    #[inline]
    pub fn list(&mut self, operands: impl IntoOperands<'a, V>) -> &mut Self {
        let before = self.operands.len();
        operands.append_to(&mut self.operands);
        self.lengths.push((self.operands.len() - before) as u32);
        self
    }

    /// Returns the op's description.
    #[must_use]
    pub fn desc(&self) -> &'static OpDesc {
        self.desc
    }

    /// Returns all operands, those of lists one by one.
    #[must_use]
    pub fn operands(&self) -> &[Operand<'a, V>] {
        &self.operands
    }

    /// Returns the number of operands of each input.
    #[must_use]
    pub fn lengths(&self) -> &[u32] {
        &self.lengths
    }

    /// Replaces the first operand.
    pub(crate) fn replace_first(&mut self, value: V) {
        if let Some(first) = self.operands.iter_mut().next() {
            *first = Operand::Owned(value);
        }
    }

    /// Infers the attributes that the operands determine, makes constants of tensors and literals,
    /// and checks everything that the op's description rules out.
    ///
    /// A context does this first; one that wraps another may do it and pass the call on.
    ///
    /// # Errors
    /// As for [`Context::execute`].
    pub fn prepare<C>(&mut self, context: &C, attrs: &[AttrValue<'_>]) -> Result<Prepared<'_, V>>
    where
        C: Context<Value = V> + ?Sized,
    {
        infer::infer(self.desc, &self.operands, &self.lengths, &mut self.slots)?;
        check::check_attrs(self.desc, &self.slots, attrs)?;
        if self
            .operands
            .iter()
            .any(|operand| operand.value().is_none())
        {
            infer::make_constants(
                self.desc,
                &mut self.operands,
                &self.lengths,
                &self.slots,
                |tensor| context.constant(tensor),
            )?;
        }
        let outputs = infer::output_lengths(self.desc, &self.slots, attrs)?;
        Ok(Prepared {
            desc: self.desc,
            operands: &self.operands,
            lengths: &self.lengths,
            slots: &self.slots,
            outputs,
        })
    }
}

impl<V: Value> Operand<'_, V> {
    /// Returns the operand as a value of an element type; tensors and literals become constants, and a
    /// literal takes the type when its values allow it.
    ///
    /// # Errors
    /// [`ErrorKind::DType`](crate::ErrorKind::DType), naming `what`, for an operand of another type,
    /// and what TensorFlow says.
    pub fn into_value<C>(self, context: &C, dtype: DataType, what: &str) -> Result<V>
    where
        C: Context<Value = V> + ?Sized,
    {
        let found = match &self {
            Self::Value(value) => value.dtype().base(),
            Self::Owned(value) => value.dtype().base(),
            Self::Tensor(tensor) => tensor.dtype(),
            Self::Literal(literal) if literal.fits(dtype)? => {
                return match literal.as_tensor(dtype) {
                    Some(tensor) => context.constant(tensor),
                    None => context.constant(&literal.to_tensor(dtype)?),
                };
            }
            Self::Literal(literal) => literal.dtype()?,
        };
        if found != dtype {
            return Err(Error::dtype(what, dtype, found));
        }
        self.into_own_value(context)
    }

    /// Returns the operand as a value; tensors and literals become constants of their own type.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn into_own_value<C>(self, context: &C) -> Result<V>
    where
        C: Context<Value = V> + ?Sized,
    {
        match self {
            Self::Value(value) => Ok(value.clone()),
            Self::Owned(value) => Ok(value),
            Self::Tensor(tensor) => context.constant(tensor),
            Self::Literal(literal) => {
                let dtype = literal.dtype()?;
                match literal.as_tensor(dtype) {
                    Some(tensor) => context.constant(tensor),
                    None => context.constant(&literal.to_tensor(dtype)?),
                }
            }
        }
    }
}
