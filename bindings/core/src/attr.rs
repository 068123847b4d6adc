//! Attribute values, as a call borrows them.

pub(crate) mod function;
pub(crate) mod proto;
pub(crate) mod set;
pub(crate) mod sharing;

#[cfg(test)]
mod proto_test;

use crate::attr::function::Function;
use crate::base::error::Result;
use crate::base::shape::Shape;
use crate::tensor::Tensor;
use tfp_wire::DataType;

/// A string attribute: any bytes. Texts convert to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct Bytes<'a>(pub &'a [u8]);

impl<'a> Bytes<'a> {
    /// The bytes of a text.
    #[must_use]
    pub const fn new(text: &'a str) -> Self {
        Self(text.as_bytes())
    }
}

impl<'a, T: AsRef<[u8]> + ?Sized> From<&'a T> for Bytes<'a> {
    fn from(bytes: &'a T) -> Self {
        Self(bytes.as_ref())
    }
}

/// A function that an op calls.
///
/// A reference by value of a [`Function`] also adds that function, and all that it calls, to the
/// graph or context of the call; a name refers to one that is there already.
#[derive(Clone, Copy, Debug)]
pub struct FuncRef<'a> {
    pub(crate) name: &'a str,
    pub(crate) function: Option<&'a Function>,
    pub(crate) attrs: &'a [(&'a str, AttrValue<'a>)],
}

impl<'a> FuncRef<'a> {
    /// Refers to a function of the graph or context by its name.
    #[must_use]
    pub const fn named(name: &'a str) -> Self {
        Self {
            name,
            function: None,
            attrs: &[],
        }
    }

    /// The same, with values for the function's own attributes: those that operations of its graph
    /// have as [`AttrValue::Placeholder`]s.
    #[must_use]
    pub const fn with_attrs(self, attrs: &'a [(&'a str, AttrValue<'a>)]) -> Self {
        Self { attrs, ..self }
    }

    /// Returns the function's name.
    #[must_use]
    pub const fn name(&self) -> &'a str {
        self.name
    }

    /// Returns the function, when the reference was made from one.
    #[must_use]
    pub const fn function(&self) -> Option<&'a Function> {
        self.function
    }

    /// Returns the values for the function's own attributes.
    #[must_use]
    pub const fn attrs(&self) -> &'a [(&'a str, AttrValue<'a>)] {
        self.attrs
    }
}

impl<'a> From<&'a str> for FuncRef<'a> {
    fn from(name: &'a str) -> Self {
        Self::named(name)
    }
}

impl<'a> From<&'a Function> for FuncRef<'a> {
    fn from(function: &'a Function) -> Self {
        Self {
            name: function.name(),
            function: Some(function),
            attrs: &[],
        }
    }
}

/// The value of an attribute in a call.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the variants are the attribute kinds of an OpDef"
)]
pub enum AttrValue<'a> {
    /// The caller left the attribute out.
    #[default]
    Default,
    Int(i64),
    Float(f32),
    Bool(bool),
    String(Bytes<'a>),
    Type(DataType),
    Shape(&'a Shape),
    Tensor(&'a Tensor),
    Func(FuncRef<'a>),
    /// Whatever the caller of the function gives its attribute of this name, in a graph that becomes
    /// a function; see [`FuncRef::with_attrs`]. Types and numbers of outputs can't follow from it.
    Placeholder(&'a str),
    IntList(&'a [i64]),
    FloatList(&'a [f32]),
    BoolList(&'a [bool]),
    /// A list of strings that are texts.
    TextList(&'a [&'a str]),
    /// A list of strings.
    StringList(&'a [Bytes<'a>]),
    TypeList(&'a [DataType]),
    ShapeList(&'a [Shape]),
    TensorList(&'a [Tensor]),
    FuncList(&'a [FuncRef<'a>]),
}

impl AttrValue<'_> {
    /// Whether the value is a list.
    #[must_use]
    pub const fn is_list(&self) -> bool {
        !matches!(
            self,
            Self::Default
                | Self::Int(_)
                | Self::Float(_)
                | Self::Bool(_)
                | Self::String(_)
                | Self::Type(_)
                | Self::Shape(_)
                | Self::Tensor(_)
                | Self::Func(_)
                | Self::Placeholder(_)
        )
    }

    /// Calls `f` with each function that the value refers to by a [`Function`].
    pub(crate) fn functions(&self, f: &mut dyn FnMut(&Function) -> Result<()>) -> Result<()> {
        let funcs = match self {
            Self::Func(func) => std::slice::from_ref(func),
            Self::FuncList(funcs) => *funcs,
            _ => return Ok(()),
        };
        for func in funcs {
            if let Some(function) = func.function {
                f(function)?;
            }
            for (_, value) in func.attrs {
                value.functions(f)?;
            }
        }
        Ok(())
    }
}

macro_rules! from {
    ($($variant:ident: $type:ty;)*) => {
        $(impl<'a> From<$type> for AttrValue<'a> {
            #[inline]
            fn from(value: $type) -> Self {
                Self::$variant(value)
            }
        })*
    };
}

from! {
    Int: i64;
    Float: f32;
    Bool: bool;
    String: Bytes<'a>;
    Type: DataType;
    Shape: &'a Shape;
    Tensor: &'a Tensor;
    Func: FuncRef<'a>;
    IntList: &'a [i64];
    FloatList: &'a [f32];
    BoolList: &'a [bool];
    TextList: &'a [&'a str];
    StringList: &'a [Bytes<'a>];
    TypeList: &'a [DataType];
    ShapeList: &'a [Shape];
    TensorList: &'a [Tensor];
    FuncList: &'a [FuncRef<'a>];
}

impl<'a> From<&'a str> for AttrValue<'a> {
    #[inline]
    fn from(value: &'a str) -> Self {
        Self::String(Bytes(value.as_bytes()))
    }
}

impl<'a, T: Into<AttrValue<'a>>> From<Option<T>> for AttrValue<'a> {
    #[inline]
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Default, Into::into)
    }
}
