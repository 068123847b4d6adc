//! What a kernel is constructed from.

use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::proto::attr::{Attr, AttrList, PartialShape};
use crate::proto::graph::NodeDef;

/// The node that a kernel is constructed for. Every attribute kind is read from the node itself,
/// because the C functions for shapes are missing from some releases of TensorFlow.
#[derive(Clone, Debug)]
pub struct Construction {
    node: NodeDef,
}

macro_rules! getters {
    ($($(#[$doc:meta])* $name:ident: $variant:ident => $type:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// If the attribute is missing or of another kind.
            pub fn $name(&self, name: &str) -> Result<$type> {
                match self.attr(name)? {
                    Attr::$variant(value) => Ok(value),
                    other => Err(self.wrong_kind(name, &other, stringify!($name))),
                }
            }
        )*
    };
}

macro_rules! list_getters {
    ($($(#[$doc:meta])* $name:ident: $field:ident => $type:ty;)*) => {
        $(
            $(#[$doc])*
            ///
            /// # Errors
            /// If the attribute is missing or not a list. A list of another kind reads as empty
            /// only if it is empty.
            pub fn $name(&self, name: &str) -> Result<Vec<$type>> {
                let list = self.list(name)?;
                if list.$field.is_empty() && list != AttrList::default() {
                    return Err(self.wrong_kind(name, &Attr::List(list), stringify!($name)));
                }
                Ok(list.$field)
            }
        )*
    };
}

impl Construction {
    /// For a node; also useful in tests.
    #[must_use]
    pub fn new(node: NodeDef) -> Self {
        Self { node }
    }

    /// Name of the node.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.node.name
    }

    /// Name of the op.
    #[must_use]
    pub fn op(&self) -> &str {
        &self.node.op
    }

    /// The node.
    #[must_use]
    pub fn node(&self) -> &NodeDef {
        &self.node
    }

    /// Whether the node has the attribute.
    #[must_use]
    pub fn has(&self, name: &str) -> bool {
        self.node.attrs.iter().any(|(n, _)| n == name)
    }

    /// An attribute of any kind.
    ///
    /// # Errors
    /// If the attribute is missing.
    pub fn attr(&self, name: &str) -> Result<Attr> {
        self.node.attr(name)
    }

    getters! {
        /// A `string` as bytes.
        bytes: String => Vec<u8>;
        /// An `int`.
        int: Int => i64;
        /// A `float`.
        float: Float => f32;
        /// A `bool`.
        boolean: Bool => bool;
        /// A `type`.
        data_type: Type => DataType;
        /// A `shape`.
        shape: Shape => PartialShape;
        /// A `tensor` as a serialized `TensorProto`.
        tensor: Tensor => Vec<u8>;
        /// A `func` as a serialized `NameAttrList`.
        func: Func => Vec<u8>;
        /// A list of any kind.
        list: List => AttrList;
    }

    list_getters! {
        /// A `list(string)`.
        byte_strings: strings => Vec<u8>;
        /// A `list(int)`.
        ints: ints => i64;
        /// A `list(float)`.
        floats: floats => f32;
        /// A `list(bool)`.
        bools: bools => bool;
        /// A `list(type)`.
        data_types: types => DataType;
        /// A `list(shape)`.
        shapes: shapes => PartialShape;
        /// A `list(tensor)` as serialized `TensorProto`s.
        tensors: tensors => Vec<u8>;
        /// A `list(func)` as serialized `NameAttrList`s.
        funcs: funcs => Vec<u8>;
    }

    /// A `string` that is UTF-8.
    ///
    /// # Errors
    /// If the attribute is missing, of another kind or not UTF-8.
    pub fn string(&self, name: &str) -> Result<String> {
        String::from_utf8(self.bytes(name)?)
            .map_err(|_| Error::invalid(format!("attribute {name} is not UTF-8")))
    }

    fn wrong_kind(&self, name: &str, found: &Attr, expected: &str) -> Error {
        Error::invalid(format!(
            "attribute {name} of {} is a {}, expected {expected}",
            self.op(),
            found.kind()
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn construction() -> Construction {
        let mut node = NodeDef {
            name: "n".into(),
            op: "Op".into(),
            ..NodeDef::default()
        };
        node.set_attr("i", &Attr::Int(4));
        node.set_attr("s", &Attr::String(b"SAME".to_vec()));
        node.set_attr("shape", &Attr::Shape(Some(vec![2, -1])));
        node.set_attr("empty", &Attr::List(AttrList::default()));
        let ints = AttrList {
            ints: vec![1, 2],
            ..AttrList::default()
        };
        node.set_attr("ints", &Attr::List(ints));
        Construction::new(node)
    }

    #[test]
    fn attributes_have_kinds() {
        let c = construction();
        assert_eq!(c.int("i").unwrap(), 4);
        assert_eq!(c.string("s").unwrap(), "SAME");
        assert_eq!(c.shape("shape").unwrap(), Some(vec![2, -1]));
        assert_eq!(c.ints("ints").unwrap(), [1, 2]);
        assert!(c.floats("empty").unwrap().is_empty());
        assert!(c.floats("ints").is_err());
        let message = c.float("i").unwrap_err().to_string();
        assert_eq!(message, "attribute i of Op is a int, expected float");
        assert!(c.int("missing").is_err());
        assert!(c.has("i") && !c.has("missing"));
    }
}
