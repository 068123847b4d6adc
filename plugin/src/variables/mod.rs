//! Ops on variables. TensorFlow 2.20 and 2.21 export no function with which a kernel could reach a
//! variable, so that such an op is replaced by ones that read the value, compute, and assign: in
//! graphs by the optimizer ([`crate::graph`]), elsewhere by a kernel that runs the same ops on
//! TensorFlow's eager runtime ([`kernel`]).
//!
//! What adds to a variable does so with TensorFlow's op for it, and so is one step for others. What
//! changes a part of a variable otherwise, such as the sparse step of an optimizer, or asks for
//! `use_locking`, stays one node, whose kernel runs alone, in the functions of the eager runtime; a
//! session's variables are out of the kernel's reach. Of other updates of one variable at a time one
//! may be lost. `docs/memory.md` has the table.

pub mod check;
pub mod fits;
pub mod formula;
pub mod generator;
pub mod kernel;
pub mod lower;
pub mod table;

use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{DataType, Error, Result};

use lower::{MASKS, Types};
use table::VariableOp;

/// The row and the types of a node whose attributes `attr` gives.
///
/// # Errors
/// If no row fits.
pub fn describe(
    op: &str,
    attr: impl Fn(&str) -> Option<Attr>,
) -> Result<(&'static VariableOp, Types)> {
    let flag = |name: &str| match attr(name) {
        Some(Attr::Bool(value)) => Some(value),
        _ => None,
    };
    let data_type = |name: &str| match attr(name) {
        Some(Attr::Type(value)) => Some(value),
        _ => None,
    };
    let row = table::find(op, flag)
        .ok_or_else(|| Error::internal(format!("{op} is no op on variables that is known here")))?;
    let variable: DataType = data_type(row.type_attr)
        .ok_or_else(|| Error::internal(format!("{op} has no attribute {}", row.type_attr)))?;
    let types = Types {
        variable,
        indices: data_type("Tindices").or_else(|| data_type("Index")),
        batch_dims: match attr("batch_dims") {
            Some(Attr::Int(value)) => value,
            _ => 0,
        },
        masks: MASKS.map(|name| match attr(name) {
            Some(Attr::Int(mask)) => mask,
            _ => 0,
        }),
    };
    Ok((row, types))
}
