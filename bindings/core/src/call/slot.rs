//! Attributes that the operands of a call determine.

use crate::attr::AttrValue;
use crate::base::error::{Error, ErrorKind};
use crate::base::op::{Allowed, AttrDesc, OpDesc, text};
use crate::base::small_vec::SmallVec;
use tfp_wire::{DataType, TypeSet};

/// The value of an attribute that operands determine.
#[derive(Clone, Debug, PartialEq)]
pub enum Slot {
    /// Nothing determines it.
    Unset,
    /// The length of a list.
    Int(i64),
    /// The type of an operand.
    Type(DataType),
    /// The types of a list.
    Types(SmallVecTypes),
}

impl Slot {
    /// Returns the slot as an attribute's value; unset, it is the default.
    pub(crate) fn value(&self) -> AttrValue<'_> {
        match self {
            Self::Unset => AttrValue::Default,
            Self::Int(value) => AttrValue::Int(*value),
            Self::Type(dtype) => AttrValue::Type(*dtype),
            Self::Types(types) => AttrValue::TypeList(types),
        }
    }
}

/// A list of types.
pub type SmallVecTypes = Vec<DataType>;

/// A [`Slot`] per attribute of the op.
pub type Slots = SmallVec<Slot, 8>;

pub(crate) fn allowed_types(attr: &AttrDesc) -> TypeSet {
    match attr.allowed {
        Allowed::Types(types) => types,
        _ => TypeSet::ANY,
    }
}

#[cold]
pub(crate) fn bad_attr(desc: &OpDesc, attr: &AttrDesc, problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::Attribute {
        op: desc.name_str().to_owned(),
        attr: text(attr.name).to_owned(),
        problem: problem.into(),
    })
}
