//! The attributes of a node, read once.

use tfp_bindings::{Construction, Error, Result};
use tfp_kernels::base::def::{AttrKind, Attrs, KernelDef};
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::error as kernels;

use crate::dtype;

/// The attributes that a kernel reads.
#[derive(Debug)]
pub struct NodeAttrs(Vec<(&'static str, Value)>);

#[derive(Debug)]
enum Value {
    Int(i64),
    Float(f32),
    Bool(bool),
    String(String),
    Type(DType),
    Ints(Vec<i64>),
}

/// The integers that TensorFlow's own kernels read with 64 bits; all others have to be an int32.
const WIDE: &[&str] = &["explicit_paddings", "seed", "seed2"];

/// Fails for an integer that TensorFlow's own kernels refuse, too.
fn check_width(name: &str, values: &[i64]) -> Result<()> {
    let wide = values.iter().find(|&&value| i32::try_from(value).is_err());
    match wide {
        Some(value) if !WIDE.contains(&name) => Err(Error::invalid(format!(
            "attribute {name} has the value {value}, which is no int32"
        ))),
        _ => Ok(()),
    }
}

impl NodeAttrs {
    /// Reads what `def` names.
    ///
    /// # Errors
    /// If an attribute is missing, of another kind, or out of the range that TensorFlow gives it.
    pub fn read(def: &'static KernelDef, node: &Construction) -> Result<Self> {
        let values = def.attrs.iter().map(|&(name, kind)| {
            let value = match kind {
                AttrKind::Int => Value::Int(node.int(name)?),
                AttrKind::Float => Value::Float(node.float(name)?),
                AttrKind::Bool => Value::Bool(node.boolean(name)?),
                AttrKind::String => Value::String(node.string(name)?),
                AttrKind::Ints => Value::Ints(node.ints(name)?),
                AttrKind::Type => {
                    let found = node.data_type(name)?;
                    Value::Type(dtype::from_tensorflow(found).ok_or_else(|| {
                        Error::invalid(format!("attribute {name}: no kernel computes {found}"))
                    })?)
                }
            };
            match &value {
                Value::Int(value) => check_width(name, &[*value])?,
                Value::Ints(values) => check_width(name, values)?,
                _ => {}
            }
            Ok((name, value))
        });
        values.collect::<Result<_>>().map(Self)
    }

    fn get(&self, name: &'static str, expected: &'static str) -> kernels::Result<&Value> {
        let found = self.0.iter().find(|(candidate, _)| *candidate == name);
        found
            .map(|(_, value)| value)
            .ok_or_else(|| wrong(name, expected))
    }
}

fn wrong(argument: &'static str, expected: &'static str) -> kernels::Error {
    kernels::Error::Value { argument, expected }
}

macro_rules! getters {
    ($($name:ident: $variant:ident($value:ident) => $result:expr, $type:ty, $text:literal;)*) => {
        impl Attrs for NodeAttrs {
            $(
                fn $name(&self, name: &'static str) -> kernels::Result<$type> {
                    match self.get(name, $text)? {
                        Value::$variant($value) => Ok($result),
                        _ => Err(wrong(name, $text)),
                    }
                }
            )*
        }
    };
}

getters! {
    int: Int(value) => *value, i64, "an int attribute";
    float: Float(value) => *value, f32, "a float attribute";
    boolean: Bool(value) => *value, bool, "a bool attribute";
    string: String(value) => value, &str, "a string attribute";
    dtype: Type(value) => *value, DType, "a type attribute";
    ints: Ints(value) => value, &[i64], "a list(int) attribute";
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfp_bindings::DataType;
    use tfp_bindings::proto::attr::{Attr, AttrList};
    use tfp_bindings::proto::graph::NodeDef;
    use tfp_kernels::base::def::no_scratch;

    static DEF: KernelDef = KernelDef {
        op: "Test",
        variants: &[],
        attrs: &[
            ("i", AttrKind::Int),
            ("f", AttrKind::Float),
            ("b", AttrKind::Bool),
            ("s", AttrKind::String),
            ("t", AttrKind::Type),
            ("l", AttrKind::Ints),
        ],
        forward: &[],
        outputs: |_, _| Ok(()),
        scratch: no_scratch,
        run: |_| Ok(()),
    };

    fn node() -> NodeDef {
        let ints = AttrList {
            ints: vec![1, 2],
            ..AttrList::default()
        };
        let mut node = NodeDef::default();
        node.set_attr("i", &Attr::Int(3));
        node.set_attr("f", &Attr::Float(0.5));
        node.set_attr("b", &Attr::Bool(true));
        node.set_attr("s", &Attr::String(b"SAME".to_vec()));
        node.set_attr("t", &Attr::Type(DataType::INT64));
        node.set_attr("l", &Attr::List(ints));
        node
    }

    #[test]
    fn every_kind_is_read() {
        let attrs = NodeAttrs::read(&DEF, &Construction::new(node())).unwrap();
        assert_eq!(attrs.int("i"), Ok(3));
        assert_eq!(attrs.float("f"), Ok(0.5));
        assert_eq!(attrs.boolean("b"), Ok(true));
        assert_eq!(attrs.string("s"), Ok("SAME"));
        assert_eq!(attrs.dtype("t"), Ok(DType::I64));
        assert_eq!(attrs.ints("l"), Ok([1, 2].as_slice()));
        assert!(attrs.int("f").is_err());
        assert!(attrs.int("missing").is_err());
    }

    #[test]
    fn a_missing_or_impossible_attribute_is_an_error() {
        let mut odd = node();
        odd.set_attr("t", &Attr::Type(DataType::STRING));
        let message = NodeAttrs::read(&DEF, &Construction::new(odd)).unwrap_err();
        assert_eq!(message.message(), "attribute t: no kernel computes string");
        assert!(NodeAttrs::read(&DEF, &Construction::new(NodeDef::default())).is_err());
        let mut wide = node();
        wide.set_attr("i", &Attr::Int(1 << 32));
        let message = NodeAttrs::read(&DEF, &Construction::new(wide)).unwrap_err();
        assert_eq!(
            message.message(),
            "attribute i has the value 4294967296, which is no int32"
        );
    }
}
