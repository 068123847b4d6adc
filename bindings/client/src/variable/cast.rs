//! Variables that are read in another type than they have.

use tfp_core::{DataType, Result, Value as _};
use tfp_ops::{CastOptions, cast};

use super::Variable;
use crate::context::any::Mode;

impl Variable {
    /// Returns the same variable, whose values are cast to a type when they are read.
    pub(crate) fn read_as(&self, dtype: DataType) -> Self {
        Self {
            read_as: (dtype != self.dtype()).then_some(dtype),
            ..self.clone()
        }
    }

    /// Returns the same variable, whose values are read as they are.
    pub(crate) fn stored(&self) -> Self {
        Self {
            read_as: None,
            ..self.clone()
        }
    }

    /// Casts a value that was read.
    pub(super) fn as_read<C: Mode>(&self, context: &C, value: C::Value) -> Result<C::Value> {
        match self.read_as {
            Some(dtype) if dtype != value.dtype() => {
                cast(context, &value, dtype, CastOptions::default())
            }
            _ => Ok(value),
        }
    }
}
