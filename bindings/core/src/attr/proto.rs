//! Shapes, tensors and attribute values as protocol buffers.

use crate::attr::{AttrValue, FuncRef};
use crate::base::error::Result;
use crate::base::shape::Shape;
use crate::tensor::Tensor;
use tfp_wire::DataType;
use tfp_wire::{Reader, Writer};

impl Shape {
    /// Reads a serialized `TensorShapeProto`. Names of dimensions are not kept.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](crate::ErrorKind::Proto) for bytes that are none.
    pub fn from_proto(bytes: &[u8]) -> Result<Self> {
        read_shape(bytes)
    }

    /// Returns the shape as a serialized `TensorShapeProto`.
    #[must_use]
    pub fn to_proto(&self) -> Vec<u8> {
        shape_proto(self)
    }
}

/// Reads a `TensorShapeProto`.
pub fn read_shape(bytes: &[u8]) -> Result<Shape> {
    let mut dims = Vec::new();
    for field in Reader::new("TensorShapeProto", bytes) {
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
            (3, unknown) if unknown.int()? != 0 => return Ok(Shape::unknown()),
            _ => {}
        }
    }
    Ok(Shape::new(&dims))
}

/// Returns a `TensorShapeProto`.
pub fn shape_proto(shape: &Shape) -> Vec<u8> {
    let mut out = Writer::new();
    match shape.dims() {
        None => out.int(3, 1),
        Some(dims) => {
            for &dim in dims {
                out.message(2, |out| out.int(1, dim));
            }
        }
    }
    out.into_bytes()
}

/// Returns an `AttrValue`. Tensors must be plain or strings.
///
/// # Errors
/// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a tensor that can't be written.
pub fn attr_proto(value: &AttrValue<'_>) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    let mut list = Writer::new();
    match value {
        AttrValue::Default => {}
        AttrValue::String(bytes) => out.bytes(2, bytes.0),
        AttrValue::Int(value) => out.int(3, *value),
        AttrValue::Float(value) => out.float(4, *value),
        AttrValue::Bool(value) => out.int(5, (*value).into()),
        AttrValue::Type(dtype) => out.int(6, dtype.number().into()),
        AttrValue::Shape(shape) => out.bytes(7, &shape_proto(shape)),
        AttrValue::Tensor(tensor) => out.bytes(8, &tensor_proto(tensor)?),
        AttrValue::Func(func) => out.bytes(10, &func_proto(func)?),
        AttrValue::Placeholder(name) => out.bytes(9, name.as_bytes()),
        AttrValue::TextList(texts) => texts.iter().for_each(|text| list.bytes(2, text.as_bytes())),
        AttrValue::StringList(strings) => strings.iter().for_each(|bytes| list.bytes(2, bytes.0)),
        AttrValue::IntList(values) => values.iter().for_each(|value| list.int(3, *value)),
        AttrValue::FloatList(values) => values.iter().for_each(|value| list.float(4, *value)),
        AttrValue::BoolList(values) => values.iter().for_each(|value| list.int(5, (*value).into())),
        AttrValue::TypeList(types) => types.iter().for_each(|t| list.int(6, t.number().into())),
        AttrValue::ShapeList(shapes) => {
            shapes
                .iter()
                .for_each(|shape| list.bytes(7, &shape_proto(shape)));
        }
        AttrValue::TensorList(tensors) => {
            for tensor in *tensors {
                list.bytes(8, &tensor_proto(tensor)?);
            }
        }
        AttrValue::FuncList(funcs) => {
            for func in *funcs {
                list.bytes(9, &func_proto(func)?);
            }
        }
    }
    if value.is_list() {
        out.bytes(1, &list.into_bytes());
    }
    Ok(out.into_bytes())
}

/// Returns a `NameAttrList`.
pub fn func_proto(func: &FuncRef<'_>) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    out.bytes(1, func.name().as_bytes());
    for (name, value) in func.attrs() {
        let value = attr_proto(value)?;
        out.message(2, |entry| {
            entry.bytes(1, name.as_bytes());
            entry.bytes(2, &value);
        });
    }
    Ok(out.into_bytes())
}

/// Returns a `TensorProto`.
fn tensor_proto(tensor: &Tensor) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    out.int(1, tensor.dtype().number().into());
    out.bytes(2, &shape_proto(&tensor.shape()));
    if tensor.dtype() == DataType::STRING {
        tensor
            .as_strings()?
            .iter()
            .for_each(|string| out.bytes(8, string));
    } else {
        out.bytes(4, tensor.as_bytes()?);
    }
    Ok(out.into_bytes())
}
