//! Ops as data: the descriptions that generated code hands to the core, and what follows from them.
//!
//! # The contract between generated code and this crate
//!
//! A generated function is one call of [`Context::execute`](crate::Context::execute), with
//!
//! - a `static` [`OpDesc`], which says everything that the core needs to know about the op;
//! - a [`Call`](crate::Call), to which each input was appended in the order of the op's definition:
//!   [`input`](crate::Call::input) for a single tensor, [`list`](crate::Call::list) for a list,
//!   whether its length is an attribute (`N * T`) or it is typed by a list of types;
//! - a slice with one [`AttrValue`](crate::AttrValue) **per attribute that is not inferred, in the
//!   order of [`OpDesc::attrs`]**. An optional attribute that the caller leaves out is
//!   [`AttrValue::Default`](crate::AttrValue::Default), which is also what `None` converts to;
//!   it is not sent, so TensorFlow's own default holds.
//!
//! It takes the results off [`Results`](crate::Results) in the order of the definition:
//! [`one`](crate::Results::one) for a single tensor, [`list`](crate::Results::list) for a list;
//! an op without outputs returns [`operation`](crate::Results::operation).
//!
//! ```ignore
//! static TOP_K_V2: OpDesc = OpDesc {
//!     name: c"TopKV2",
//!     inputs: &[ArgDesc::one(c"input", TypeOf::Attr(1)), ArgDesc::one(c"k", TypeOf::Attr(2))],
//!     outputs: &[ArgDesc::one(c"values", TypeOf::Attr(1)), ArgDesc::one(c"indices", TypeOf::Attr(3))],
//!     attrs: &[
//!         AttrDesc::new(c"sorted", AttrKind::Bool).default(AttrDefault::Other),
//!         AttrDesc::new(c"T", AttrKind::Type).inferred().types(TypeSet::of(&[DataType::FLOAT])),
//!         AttrDesc::new(c"Tk", AttrKind::Type).inferred().default(AttrDefault::Type(DataType::INT32)),
//!         AttrDesc::new(c"index_type", AttrKind::Type).default(AttrDefault::Type(DataType::INT32)),
//!     ],
//! };
//!
//! pub fn top_k_v2<'a, C: Context + ?Sized>(
//!     ctx: &C,
//!     input: impl IntoOperand<'a, C::Value>,
//!     k: impl IntoOperand<'a, C::Value>,
//!     options: TopKV2Options,
//! ) -> Result<TopKV2<C::Value>> {
//!     let mut call = Call::new(&TOP_K_V2);
//!     call.input(input).input(k);
//!     let mut out = ctx.execute(&mut call, &[options.sorted.into(), options.index_type.into()])?;
//!     Ok(TopKV2 { values: out.one()?, indices: out.one()? })
//! }
//!
//! pub fn concat_v2<'a, C: Context + ?Sized>(
//!     ctx: &C,
//!     values: impl IntoOperands<'a, C::Value>,
//!     axis: impl IntoOperand<'a, C::Value>,
//! ) -> Result<C::Value> {
//!     let mut call = Call::new(&CONCAT_V2);
//!     call.list(values).input(axis);
//!     ctx.execute(&mut call, &[])?.one()
//! }
//!
//! pub fn no_op<C: Context + ?Sized>(ctx: &C) -> Result<C::Operation> {
//!     Ok(ctx.execute(&mut Call::new(&NO_OP), &[])?.operation())
//! }
//! ```
//!
//! Rust types of attributes that are arguments or fields of an options struct (a field is an
//! `Option` of it, `None` by default, so that the struct is `Copy` and derives `Default`):
//!
//! | attribute | Rust | list |
//! |---|---|---|
//! | `int` | `i64` | `&'a [i64]` |
//! | `float` | `f32` | `&'a [f32]` |
//! | `bool` | `bool` | `&'a [bool]` |
//! | `string` | `impl Into<Bytes<'a>>`, in a struct `Bytes<'a>` | `&'a [&'a str]`, or `&'a [Bytes<'a>]` |
//! | `string` with allowed values | the generated enum, sent as `AttrValue::from(x.as_str())` | `&'a [&'a str]` |
//! | `type` | [`DataType`] | `&'a [DataType]` |
//! | `shape` | `&'a Shape` | `&'a [Shape]` |
//! | `tensor` | `&'a Tensor` | `&'a [Tensor]` |
//! | `func` | [`FuncRef<'a>`](crate::FuncRef) | `&'a [FuncRef<'a>]` |
//!
//! All of these, and `Option`s of them, convert to [`AttrValue`](crate::AttrValue) with `into()`.
//!
//! The core infers the other attributes from the operands, gives literals their type, adds the
//! constants, checks types, lengths, minimums and allowed values, and returns an error that names
//! the op and the input or attribute before TensorFlow sees the call.

use std::ffi::CStr;

use tfp_wire::{DataType, TypeSet};

/// What the core needs to know about an op. One `static` per op, written by the generator.
#[derive(Debug)]
pub struct OpDesc {
    /// The name of the type of op, as in a `NodeDef`.
    pub name: &'static CStr,
    /// Inputs, in the order of the op's definition.
    pub inputs: &'static [ArgDesc],
    /// Outputs, in the order of the op's definition.
    pub outputs: &'static [ArgDesc],
    /// All attributes, inferred ones too, in the order of the op's definition (at most 255).
    pub attrs: &'static [AttrDesc],
}

/// An input or output of an op.
#[derive(Clone, Copy, Debug)]
pub struct ArgDesc {
    /// Its name.
    pub name: &'static CStr,
    /// How many tensors it stands for, and of which types.
    pub kind: ArgKind,
    /// Whether it is a reference to a tensor that the op may change (`Ref(T)`).
    pub is_ref: bool,
}

/// How many tensors an argument stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArgKind {
    /// One tensor.
    One(TypeOf),
    /// Several tensors of one type.
    Many {
        /// Index, in [`OpDesc::attrs`], of the `int` attribute with their number.
        count: u8,
        /// Their type.
        ty: TypeOf,
    },
    /// Several tensors of several types: the index, in [`OpDesc::attrs`], of the `list(type)` attribute.
    Types(u8),
}

/// Where the element type of an argument comes from.
// Without bytes between tag and type: compilers compare both as one number, which is wrong for nobody
// but tools that watch bytes that were never written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum TypeOf {
    /// It is always this.
    Fixed(DataType),
    /// It is the value of the `type` attribute with this index in [`OpDesc::attrs`].
    Attr(u8),
}

impl ArgDesc {
    /// One tensor.
    #[must_use]
    pub const fn one(name: &'static CStr, ty: TypeOf) -> Self {
        Self {
            name,
            kind: ArgKind::One(ty),
            is_ref: false,
        }
    }

    /// As many tensors of one type as the attribute with index `count` says.
    #[must_use]
    pub const fn many(name: &'static CStr, count: u8, ty: TypeOf) -> Self {
        Self {
            name,
            kind: ArgKind::Many { count, ty },
            is_ref: false,
        }
    }

    /// One tensor for each type in the attribute with index `types`.
    #[must_use]
    pub const fn types(name: &'static CStr, types: u8) -> Self {
        Self {
            name,
            kind: ArgKind::Types(types),
            is_ref: false,
        }
    }

    /// The same, as a reference.
    #[must_use]
    pub const fn reference(self) -> Self {
        Self {
            is_ref: true,
            ..self
        }
    }
}

/// An attribute of an op.
#[derive(Clone, Copy, Debug)]
pub struct AttrDesc {
    /// Its name.
    pub name: &'static CStr,
    /// The kind of its values.
    pub kind: AttrKind,
    /// Whether an input determines it, so that callers never give it.
    pub inferred: bool,
    /// What holds when the caller leaves it out.
    pub default: AttrDefault,
    /// The least value of an `int`, or the least length of a list; `i64::MIN` for none.
    pub minimum: i64,
    /// The values that are allowed; for a list, of its elements.
    pub allowed: Allowed,
}

/// The kind of an attribute's values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(
    missing_docs,
    reason = "the names are those of OpDef's attribute types"
)]
pub enum AttrKind {
    Int,
    Float,
    Bool,
    String,
    Type,
    Shape,
    Tensor,
    Func,
    IntList,
    FloatList,
    BoolList,
    StringList,
    TypeList,
    ShapeList,
    TensorList,
    FuncList,
}

/// What holds for an attribute that is left out.
///
/// Only the defaults from which types or numbers of tensors follow are given by value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttrDefault {
    /// It cannot be left out.
    Required,
    /// TensorFlow has a default of another kind than the following ones.
    Other,
    /// A number.
    Int(i64),
    /// A type.
    Type(DataType),
    /// A list of types.
    Types(&'static [DataType]),
}

/// The values that an attribute may have.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    /// Any of its kind.
    Any,
    /// These types.
    Types(TypeSet),
    /// These strings.
    Strings(&'static [&'static str]),
}

impl AttrDesc {
    /// A required attribute without limits.
    #[must_use]
    pub const fn new(name: &'static CStr, kind: AttrKind) -> Self {
        Self {
            name,
            kind,
            inferred: false,
            default: AttrDefault::Required,
            minimum: i64::MIN,
            allowed: Allowed::Any,
        }
    }

    /// The same, determined by an input.
    #[must_use]
    pub const fn inferred(self) -> Self {
        Self {
            inferred: true,
            ..self
        }
    }

    /// The same, with a default.
    #[must_use]
    pub const fn default(self, default: AttrDefault) -> Self {
        Self { default, ..self }
    }

    /// The same, with a least value or length.
    #[must_use]
    pub const fn minimum(self, minimum: i64) -> Self {
        Self { minimum, ..self }
    }

    /// The same, limited to some types.
    #[must_use]
    pub const fn types(self, types: TypeSet) -> Self {
        Self {
            allowed: Allowed::Types(types),
            ..self
        }
    }

    /// The same, limited to some strings.
    #[must_use]
    pub const fn strings(self, strings: &'static [&'static str]) -> Self {
        Self {
            allowed: Allowed::Strings(strings),
            ..self
        }
    }
}

impl OpDesc {
    /// Returns the op's name as text.
    #[must_use]
    pub fn name_str(&self) -> &'static str {
        text(self.name)
    }

    /// Returns the attributes that callers give, in the order of their values in a call.
    pub fn given_attrs(&self) -> impl Iterator<Item = (usize, &'static AttrDesc)> {
        self.attrs
            .iter()
            .enumerate()
            .filter(|(_, attr)| !attr.inferred)
    }
}

/// Returns a name of TensorFlow as text; all of them are ASCII.
pub(crate) fn text(name: &'static CStr) -> &'static str {
    name.to_str().unwrap_or("?")
}
