//! Ops on variables. TensorFlow 2.20 and 2.21 export no function with which a kernel could reach a
//! variable, so that such an op is replaced by ones that read the value, compute, and assign: in
//! graphs by the optimizer ([`crate::graph`]), elsewhere by a kernel that runs the same ops on
//! TensorFlow's eager runtime ([`kernel`]).
//!
//! A replaced update is not one step for others: of two updates at a time one may be lost.

pub mod formula;
pub mod kernel;
pub mod lower;
pub mod table;

use tfp_bindings::proto::attr::Attr;
use tfp_bindings::{DataType, Error, Result};

use lower::Types;
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
        indices: data_type("Tindices"),
        batch_dims: match attr("batch_dims") {
            Some(Attr::Int(value)) => value,
            _ => 0,
        },
    };
    Ok((row, types))
}
