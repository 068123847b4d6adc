//! Methods that change a variable, or read parts of it.

use tfp_core::{IntoOperand, Operation, Result};
use tfp_ops::{
    ResourceGatherOptions, assign_add_variable_op, assign_sub_variable_op, assign_variable_op,
    resource_gather, resource_gather_nd, resource_scatter_add, resource_scatter_div,
    resource_scatter_max, resource_scatter_min, resource_scatter_mul, resource_scatter_nd_add,
    resource_scatter_nd_max, resource_scatter_nd_min, resource_scatter_nd_sub,
    resource_scatter_nd_update, resource_scatter_sub, resource_scatter_update, select_v2,
};

use super::Variable;
use crate::context::any::{AnyContext, Mode};
use crate::context::value::AnyValue;

impl Variable {
    /// Returns an operand as a value of the variable's type, once it is known to fit.
    fn value_for<'a, C: Mode>(
        &self,
        context: &C,
        value: impl IntoOperand<'a, C::Value>,
        whole: bool,
    ) -> Result<C::Value> {
        let what = format!("a value for variable '{}'", self.name());
        let value = value
            .into_operand()
            .into_value(context, self.dtype(), &what)?;
        if whole {
            self.check_shape(&value)?;
        }
        Ok(value)
    }

    /// Sets the value. In a graph this returns the operation that does so when it runs.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign), [`ErrorKind::DType`](tfp_core::ErrorKind::DType) and [`ErrorKind::Shape`](tfp_core::ErrorKind::Shape), which name the variable,
    /// and what TensorFlow says.
    pub fn assign<'a, C: Mode>(
        &self,
        context: &C,
        value: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Operation> {
        let handle = self.handle_in(context)?;
        let value = self.value_for(context, value, true)?;
        self.own(assign_variable_op(
            &*context.at_resource(),
            &handle,
            &value,
            Default::default(),
        ))
    }

    /// Adds to the value.
    ///
    /// # Errors
    /// As for [`Self::assign`].
    pub fn assign_add<'a, C: Mode>(
        &self,
        context: &C,
        value: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Operation> {
        let handle = self.handle_in(context)?;
        let value = self.value_for(context, value, true)?;
        let place = context.at_resource();
        self.own(assign_add_variable_op(&*place, &handle, &value))
    }

    /// Subtracts from the value.
    ///
    /// # Errors
    /// As for [`Self::assign`].
    pub fn assign_sub<'a, C: Mode>(
        &self,
        context: &C,
        value: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Operation> {
        let handle = self.handle_in(context)?;
        let value = self.value_for(context, value, true)?;
        let place = context.at_resource();
        self.own(assign_sub_variable_op(&*place, &handle, &value))
    }

    /// Sets the value if a boolean scalar is true or there is none, and otherwise the old one, which was
    /// read before.
    pub(crate) fn assign_if(
        &self,
        cx: &AnyContext,
        condition: Option<&AnyValue>,
        new: AnyValue,
        old: &AnyValue,
    ) -> Result<Option<Operation>> {
        match condition {
            Some(condition) => self.assign(cx, select_v2(cx, condition, new, old)?),
            None => self.assign(cx, new),
        }
    }

    /// Returns the slices at indices along the first axis, without reading the rest.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign), and TensorFlow's status for an index that is too large.
    pub fn gather<'a, C: Mode>(
        &self,
        context: &C,
        indices: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Value> {
        let handle = self.handle_in(context)?;
        let options = ResourceGatherOptions::default();
        let place = context.at_resource();
        let value = resource_gather(&*place, handle, indices, self.dtype(), options);
        self.as_read(context, self.own(value)?)
    }

    /// Returns the slices at positions: the last axis of `indices` holds one each.
    ///
    /// # Errors
    /// As for [`Self::gather`].
    pub fn gather_nd<'a, C: Mode>(
        &self,
        context: &C,
        indices: impl IntoOperand<'a, C::Value>,
    ) -> Result<C::Value> {
        let handle = self.handle_in(context)?;
        let place = context.at_resource();
        let value = resource_gather_nd(&*place, handle, indices, self.dtype());
        self.as_read(context, self.own(value)?)
    }
}

macro_rules! scatters {
    ($($name:ident, $op:ident, $what:literal;)*) => {
        impl Variable {
            $(
                #[doc = $what]
                /// `updates` has a slice per index, or is one value for all.
                ///
                /// # Errors
                /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) and [`ErrorKind::DType`](tfp_core::ErrorKind::DType), which name the variable, and
                /// TensorFlow's status for an index that is too large.
                pub fn $name<'a, C: Mode>(
                    &self,
                    context: &C,
                    indices: impl IntoOperand<'a, C::Value>,
                    updates: impl IntoOperand<'a, C::Value>,
                ) -> Result<C::Operation> {
                    let handle = self.handle_in(context)?;
                    let updates = self.value_for(context, updates, false)?;
                    self.own($op(&*context.at_resource(), handle, indices, updates))
                }
            )*
        }
    };
}

scatters! {
    scatter_update, resource_scatter_update, "Sets slices along the first axis.";
    scatter_add, resource_scatter_add, "Adds to slices along the first axis.";
    scatter_sub, resource_scatter_sub, "Subtracts from slices along the first axis.";
    scatter_mul, resource_scatter_mul, "Multiplies slices along the first axis.";
    scatter_div, resource_scatter_div, "Divides slices along the first axis.";
    scatter_min, resource_scatter_min, "Replaces slices along the first axis by minima.";
    scatter_max, resource_scatter_max, "Replaces slices along the first axis by maxima.";
}

macro_rules! scatters_nd {
    ($($name:ident, $op:ident, $what:literal;)*) => {
        impl Variable {
            $(
                #[doc = $what]
                /// The last axis of `indices` holds a position each; `updates` has a slice per position.
                ///
                /// # Errors
                /// [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) and [`ErrorKind::DType`](tfp_core::ErrorKind::DType), which name the variable, and
                /// TensorFlow's status for a position that does not exist.
                pub fn $name<'a, C: Mode>(
                    &self,
                    context: &C,
                    indices: impl IntoOperand<'a, C::Value>,
                    updates: impl IntoOperand<'a, C::Value>,
                ) -> Result<C::Operation> {
                    let handle = self.handle_in(context)?;
                    let updates = self.value_for(context, updates, false)?;
                    let place = context.at_resource();
                    self.own($op(&*place, handle, indices, updates, Default::default()))
                }
            )*
        }
    };
}

scatters_nd! {
    scatter_nd_update, resource_scatter_nd_update, "Sets slices at positions.";
    scatter_nd_add, resource_scatter_nd_add, "Adds to slices at positions.";
    scatter_nd_sub, resource_scatter_nd_sub, "Subtracts from slices at positions.";
    scatter_nd_min, resource_scatter_nd_min, "Replaces slices at positions by minima.";
    scatter_nd_max, resource_scatter_nd_max, "Replaces slices at positions by maxima.";
}
