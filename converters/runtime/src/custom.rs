//! Operators that a model's owner wrote.

use crate::error::{Error, at};
use crate::kernels::base::error::Error as KernelError;

/// Names the layer and the operator that a refusal comes from; `expected` says in words what the
/// operator accepts.
pub fn refused(layer: &'static str, operator: &'static str) -> impl FnOnce(&'static str) -> Error {
    move |expected| {
        at(layer)(KernelError::Value {
            argument: operator,
            expected,
        })
    }
}
