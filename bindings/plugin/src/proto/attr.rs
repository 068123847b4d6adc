//! `AttrValue`: the value of a node's attribute.

use crate::data_type::DataType;
use crate::error::{Error, Result};
use tfp_wire::{Reader, Writer};

/// A shape; `None` for an unknown rank, -1 for an unknown dimension.
pub type PartialShape = Option<Vec<i64>>;

/// The value of an attribute, one variant per kind.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Attr {
    /// `string`: any bytes.
    String(Vec<u8>),
    /// `int`
    Int(i64),
    /// `float`
    Float(f32),
    /// `bool`
    Bool(bool),
    /// `type`
    Type(DataType),
    /// `shape`
    Shape(PartialShape),
    /// `tensor`: a serialized `TensorProto`.
    Tensor(Vec<u8>),
    /// `func`: a serialized `NameAttrList`.
    Func(Vec<u8>),
    /// A list of one kind.
    List(AttrList),
    /// A placeholder in a function body.
    Placeholder(String),
}

/// The lists of an attribute. At most one is not empty; an empty list has no kind of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AttrList {
    /// `list(string)`
    pub strings: Vec<Vec<u8>>,
    /// `list(int)`
    pub ints: Vec<i64>,
    /// `list(float)`
    pub floats: Vec<f32>,
    /// `list(bool)`
    pub bools: Vec<bool>,
    /// `list(type)`
    pub types: Vec<DataType>,
    /// `list(shape)`
    pub shapes: Vec<PartialShape>,
    /// `list(tensor)`: serialized `TensorProto`s.
    pub tensors: Vec<Vec<u8>>,
    /// `list(func)`: serialized `NameAttrList`s.
    pub funcs: Vec<Vec<u8>>,
}

impl Attr {
    /// Name of the kind, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::String(_) => "string",
            Self::Int(_) => "int",
            Self::Float(_) => "float",
            Self::Bool(_) => "bool",
            Self::Type(_) => "type",
            Self::Shape(_) => "shape",
            Self::Tensor(_) => "tensor",
            Self::Func(_) => "func",
            Self::List(_) => "list",
            Self::Placeholder(_) => "placeholder",
        }
    }

    /// Reads an `AttrValue`.
    ///
    /// # Errors
    /// If the message is malformed or holds no value.
    pub fn parse(message: &[u8]) -> Result<Self> {
        let mut found = None;
        for field in Reader::new("AttrValue", message) {
            found = Some(match field? {
                (1, value) => Self::List(AttrList::parse(value.bytes()?)?),
                (2, value) => Self::String(value.bytes()?.to_vec()),
                (3, value) => Self::Int(value.int()?),
                (4, value) => Self::Float(value.float()?),
                (5, value) => Self::Bool(value.int()? != 0),
                (6, value) => Self::Type(data_type(value.int()?)?),
                (7, value) => Self::Shape(parse_shape(value.bytes()?)?),
                (8, value) => Self::Tensor(value.bytes()?.to_vec()),
                (9, value) => Self::Placeholder(value.text()?.to_owned()),
                (10, value) => Self::Func(value.bytes()?.to_vec()),
                _ => continue,
            });
        }
        found.ok_or_else(|| Error::invalid("an attribute has no value of a known kind"))
    }

    /// The serialized `AttrValue`.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new();
        match self {
            Self::String(value) => w.bytes(2, value),
            Self::Int(value) => w.int(3, *value),
            Self::Float(value) => w.float(4, *value),
            Self::Bool(value) => w.int(5, i64::from(*value)),
            Self::Type(value) => w.int(6, value.number().into()),
            Self::Shape(value) => w.bytes(7, &shape_bytes(value)),
            Self::Tensor(value) => w.bytes(8, value),
            Self::Placeholder(value) => w.bytes(9, value.as_bytes()),
            Self::Func(value) => w.bytes(10, value),
            Self::List(value) => w.bytes(1, &value.to_bytes()),
        };
        w.into_bytes()
    }
}

impl AttrList {
    fn parse(message: &[u8]) -> Result<Self> {
        let mut list = Self::default();
        for field in Reader::new("AttrValue.ListValue", message) {
            let mut ints = Vec::new();
            match field? {
                (2, value) => list.strings.push(value.bytes()?.to_vec()),
                (3, value) => value.ints(&mut list.ints)?,
                (4, value) => value.floats(&mut list.floats)?,
                (5, value) => {
                    value.ints(&mut ints)?;
                    list.bools.extend(ints.iter().map(|&b| b != 0));
                }
                (6, value) => {
                    value.ints(&mut ints)?;
                    for number in ints {
                        list.types.push(data_type(number)?);
                    }
                }
                (7, value) => list.shapes.push(parse_shape(value.bytes()?)?),
                (8, value) => list.tensors.push(value.bytes()?.to_vec()),
                (9, value) => list.funcs.push(value.bytes()?.to_vec()),
                _ => {}
            }
        }
        Ok(list)
    }

    fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new();
        for value in &self.strings {
            w.bytes(2, value);
        }
        for &value in &self.ints {
            w.int(3, value);
        }
        for &value in &self.floats {
            w.float(4, value);
        }
        for &value in &self.bools {
            w.int(5, i64::from(value));
        }
        for value in &self.types {
            w.int(6, value.number().into());
        }
        for value in &self.shapes {
            w.bytes(7, &shape_bytes(value));
        }
        for value in &self.tensors {
            w.bytes(8, value);
        }
        for value in &self.funcs {
            w.bytes(9, value);
        }
        w.into_bytes()
    }
}

fn data_type(number: i64) -> Result<DataType> {
    u32::try_from(number)
        .map(DataType::from_number)
        .map_err(|_| Error::invalid(format!("data type {number} is out of range")))
}

/// Reads a `TensorShapeProto`.
pub(crate) fn parse_shape(message: &[u8]) -> Result<PartialShape> {
    let mut dims = Vec::new();
    for field in Reader::new("TensorShapeProto", message) {
        match field? {
            (2, dim) => {
                let mut size = 0;
                for field in Reader::new("TensorShapeProto.Dim", dim.bytes()?) {
                    if let (1, value) = field? {
                        size = value.int()?;
                    }
                }
                dims.push(size);
            }
            (3, unknown) if unknown.int()? != 0 => return Ok(None),
            _ => {}
        }
    }
    Ok(Some(dims))
}

fn shape_bytes(shape: &PartialShape) -> Vec<u8> {
    let mut w = Writer::new();
    match shape {
        None => {
            w.int(3, 1);
        }
        Some(dims) => {
            for &dim in dims {
                w.message(2, |w| {
                    if dim != 0 {
                        w.int(1, dim);
                    }
                });
            }
        }
    }
    w.into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_round_trips() {
        let list = |fill: fn(&mut AttrList)| {
            let mut list = AttrList::default();
            fill(&mut list);
            Attr::List(list)
        };
        let attrs = [
            Attr::String(b"NHWC".to_vec()),
            Attr::Int(-7),
            Attr::Float(0.5),
            Attr::Bool(false),
            Attr::Type(DataType::INT64),
            Attr::Shape(None),
            Attr::Shape(Some(vec![])),
            Attr::Shape(Some(vec![2, -1, 0])),
            Attr::Tensor(vec![8, 1]),
            Attr::Func(vec![10, 1, b'f']),
            Attr::Placeholder("T".to_owned()),
            list(|_| ()),
            list(|l| l.strings = vec![b"a".to_vec(), vec![0, 255]]),
            list(|l| l.ints = vec![1, -2, i64::MAX]),
            list(|l| l.floats = vec![1.0, -0.0]),
            list(|l| l.bools = vec![true, false]),
            list(|l| l.types = vec![DataType::FLOAT, DataType::BOOL]),
            list(|l| l.shapes = vec![None, Some(vec![3])]),
        ];
        for attr in attrs {
            assert_eq!(Attr::parse(&attr.to_bytes()).unwrap(), attr);
        }
    }

    #[test]
    fn nothing_is_an_error() {
        assert!(Attr::parse(&[]).is_err());
        assert!(Attr::parse(&[0x12, 5, b'x']).is_err());
    }
}
