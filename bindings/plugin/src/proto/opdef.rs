//! `OpDef`, as far as a kernel's registration is checked against it.

use crate::data_type::DataType;
use crate::error::Result;
use crate::proto::attr::Attr;
use tfp_wire::Reader;

/// The definition of an op.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct OpDef {
    /// Name.
    pub name: String,
    /// Names of the inputs.
    pub inputs: Vec<String>,
    /// Names of the outputs.
    pub outputs: Vec<String>,
    /// Attributes.
    pub attrs: Vec<AttrDef>,
}

/// The definition of an attribute.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttrDef {
    /// Name.
    pub name: String,
    /// Kind, such as `type` or `list(int)`.
    pub kind: String,
    /// Allowed types; empty if any is.
    pub allowed_types: Vec<DataType>,
}

impl OpDef {
    /// Reads an `OpDef`.
    ///
    /// # Errors
    /// If the message is malformed.
    pub fn parse(message: &[u8]) -> Result<Self> {
        let mut op = Self::default();
        for field in Reader::new("OpDef", message) {
            match field? {
                (1, name) => op.name = name.text()?.to_owned(),
                (2, input) => op.inputs.push(first_text(input.bytes()?)?),
                (3, output) => op.outputs.push(first_text(output.bytes()?)?),
                (4, attr) => op.attrs.push(AttrDef::parse(attr.bytes()?)?),
                _ => {}
            }
        }
        Ok(op)
    }

    /// Reads an `OpList` and returns the op called `name`, if it is there.
    ///
    /// # Errors
    /// If the message is malformed.
    pub fn find(op_list: &[u8], name: &str) -> Result<Option<Self>> {
        for field in Reader::new("OpList", op_list) {
            if let (1, op) = field? {
                let message = op.bytes()?;
                if first_text(message)? == name {
                    return Self::parse(message).map(Some);
                }
            }
        }
        Ok(None)
    }
}

impl AttrDef {
    fn parse(message: &[u8]) -> Result<Self> {
        let mut attr = Self::default();
        for field in Reader::new("OpDef.AttrDef", message) {
            match field? {
                (1, name) => attr.name = name.text()?.to_owned(),
                (2, kind) => attr.kind = kind.text()?.to_owned(),
                (7, allowed) => {
                    if let Attr::List(list) = Attr::parse(allowed.bytes()?)? {
                        attr.allowed_types = list.types;
                    }
                }
                _ => {}
            }
        }
        Ok(attr)
    }
}

/// Field 1 of a message, which is its name in every message read here.
fn first_text(message: &[u8]) -> Result<String> {
    for field in Reader::new("OpDef.ArgDef", message) {
        if let (1, name) = field? {
            return Ok(name.text()?.to_owned());
        }
    }
    Ok(String::new())
}
