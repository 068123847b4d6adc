//! The place where calls go: a graph to which they add operations, or an eager context that
//! executes them.

use crate::attr::AttrValue;
use crate::call::{Call, Results};
use crate::error::Result;
use crate::operand::Value;
use crate::tensor::Tensor;

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
