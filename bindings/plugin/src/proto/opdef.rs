//! `OpDef`, as far as a kernel's registration is checked against it.

use crate::data_type::DataType;
use crate::error::Result;
use crate::proto::attr::Attr;
use crate::proto::wire;

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
        for field in wire::fields(message) {
            let field = field?;
            match field.number {
                1 => op.name = field.value.text("op.name")?.to_owned(),
                2 => op
                    .inputs
                    .push(first_text(field.value.bytes("op.input_arg")?)?),
                3 => op
                    .outputs
                    .push(first_text(field.value.bytes("op.output_arg")?)?),
                4 => op
                    .attrs
                    .push(AttrDef::parse(field.value.bytes("op.attr")?)?),
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
        for field in wire::fields(op_list) {
            let field = field?;
            if field.number == 1 {
                let message = field.value.bytes("op")?;
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
        for field in wire::fields(message) {
            let field = field?;
            match field.number {
                1 => attr.name = field.value.text("attr.name")?.to_owned(),
                2 => attr.kind = field.value.text("attr.type")?.to_owned(),
                7 => {
                    let value = Attr::parse(field.value.bytes("attr.allowed_values")?)?;
                    if let Attr::List(list) = value {
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
    for field in wire::fields(message) {
        let field = field?;
        if field.number == 1 {
            return Ok(field.value.text("name")?.to_owned());
        }
    }
    Ok(String::new())
}
