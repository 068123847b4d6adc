//! The attributes of operations that exist.

use std::ffi::c_int;

use tfp_sys::loader::fenced;

use crate::attr::proto::read_shape;
use crate::base::api::{Status, c_string};
use crate::base::buffer::OutBuffer;
use crate::base::error::{Error, Result};
use crate::base::op::{AttrKind, OpDesc};
use crate::base::shape::Shape;
use crate::graph::operation::Operation;
use crate::tensor::Tensor;
use tfp_wire::DataType;
use tfp_wire::Reader;

/// The value of an attribute, as it was read.
#[derive(Debug)]
#[non_exhaustive]
#[allow(
    missing_docs,
    reason = "the variants are the attribute kinds of an OpDef"
)]
pub enum Attr {
    Int(i64),
    Float(f32),
    Bool(bool),
    String(Vec<u8>),
    Type(DataType),
    Shape(Shape),
    Tensor(Tensor),
    Func(FuncAttr),
    /// The name of a function's attribute that gives the value.
    Placeholder(String),
    IntList(Vec<i64>),
    FloatList(Vec<f32>),
    BoolList(Vec<bool>),
    StringList(Vec<Vec<u8>>),
    TypeList(Vec<DataType>),
    ShapeList(Vec<Shape>),
    TensorList(Vec<Tensor>),
    FuncList(Vec<FuncAttr>),
}

/// A function as the value of an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FuncAttr {
    /// Its name.
    pub name: String,
    /// The values of its own attributes, each a serialized `AttrValue`.
    pub attrs: Vec<(String, Vec<u8>)>,
}

/// What an attribute is, without its value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttrInfo {
    /// The kind of its values.
    pub kind: AttrKind,
    /// The number of elements of a list.
    pub list_len: Option<usize>,
}

impl Attr {
    /// Reads a serialized `AttrValue` whose kind is known.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](crate::ErrorKind::Proto) for bytes that are none, and
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a tensor, which has no such form here.
    pub fn from_proto(kind: AttrKind, bytes: &[u8]) -> Result<Self> {
        match kind {
            AttrKind::Tensor | AttrKind::TensorList => Err(Error::argument(
                "a tensor attribute can't be read from its serialized form",
            )),
            _ => decode(kind, bytes),
        }
    }
}

impl Operation {
    /// Returns the names of the attributes, sorted.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn attr_names(&self) -> Result<Vec<String>> {
        let api = &self.inner().api.c_api;
        // SAFETY: the operation is alive.
        let count = unsafe { api.TF_OperationGetNumAttrs(self.as_ptr()) };
        let mut names = (0..count)
            .map(|index| {
                let status = Status::new(self.inner().api)?;
                // SAFETY: the operation is alive, and the index is below the count.
                let length = unsafe { api.TF_OperationGetAttrNameLength(self.as_ptr(), index) };
                // TensorFlow copies the name without a NUL byte; one more is room for it.
                let mut name = vec![0_u8; usize::try_from(length).unwrap_or(0) + 1];
                // SAFETY: as above; `name` has more room than the length that was announced.
                fenced(|| unsafe {
                    let (data, status) = (name.as_mut_ptr().cast(), status.as_ptr());
                    api.TF_OperationGetAttrName(self.as_ptr(), index, data, status);
                })?;
                status.check()?;
                name.truncate(usize::try_from(length).unwrap_or(0));
                while name.last() == Some(&0) {
                    name.pop();
                }
                Ok(String::from_utf8_lossy(&name).into_owned())
            })
            .collect::<Result<Vec<_>>>()?;
        names.sort();
        Ok(names)
    }

    /// Returns what an attribute is.
    ///
    /// # Errors
    /// TensorFlow's status for an attribute that the operation does not have.
    pub fn attr_info(&self, name: &str) -> Result<AttrInfo> {
        let c_name = c_string(name)?;
        let status = Status::new(self.inner().api)?;
        // SAFETY: operation, name and status are alive.
        let data = fenced(|| unsafe {
            let api = &self.inner().api.c_api;
            api.TF_OperationGetAttrMetadata(self.as_ptr(), c_name.as_ptr(), status.as_ptr())
        })?;
        status
            .check()
            .map_err(|error| error.in_op(&self.op_type()))?;
        let is_list = data.is_list != 0;
        let kind = match (data.r#type, is_list) {
            (tfp_sys::TF_ATTR_STRING, false) => AttrKind::String,
            (tfp_sys::TF_ATTR_STRING, true) => AttrKind::StringList,
            (tfp_sys::TF_ATTR_INT, false) => AttrKind::Int,
            (tfp_sys::TF_ATTR_INT, true) => AttrKind::IntList,
            (tfp_sys::TF_ATTR_FLOAT, false) => AttrKind::Float,
            (tfp_sys::TF_ATTR_FLOAT, true) => AttrKind::FloatList,
            (tfp_sys::TF_ATTR_BOOL, false) => AttrKind::Bool,
            (tfp_sys::TF_ATTR_BOOL, true) => AttrKind::BoolList,
            (tfp_sys::TF_ATTR_TYPE, false) => AttrKind::Type,
            (tfp_sys::TF_ATTR_TYPE, true) => AttrKind::TypeList,
            (tfp_sys::TF_ATTR_SHAPE, false) => AttrKind::Shape,
            (tfp_sys::TF_ATTR_SHAPE, true) => AttrKind::ShapeList,
            (tfp_sys::TF_ATTR_TENSOR, false) => AttrKind::Tensor,
            (tfp_sys::TF_ATTR_TENSOR, true) => AttrKind::TensorList,
            (tfp_sys::TF_ATTR_FUNC, true) => AttrKind::FuncList,
            // What stands for a value is of the kind that the op's definition says.
            (tfp_sys::TF_ATTR_PLACEHOLDER, _) => self.defined_kind(name)?,
            _ => AttrKind::Func,
        };
        let list_len = is_list.then(|| usize::try_from(data.list_size).unwrap_or(0));
        Ok(AttrInfo { kind, list_len })
    }

    fn defined_kind(&self, name: &str) -> Result<AttrKind> {
        let op_type = self.op_type();
        let desc = OpDesc::find(&op_type)?;
        let mut attrs = desc.attrs.iter();
        match attrs.find(|attr| attr.name.to_bytes() == name.as_bytes()) {
            Some(attr) => Ok(attr.kind),
            None => Err(Error::not_found("attribute", name, op_type)),
        }
    }

    /// Returns the value of an attribute, of any kind.
    ///
    /// # Errors
    /// TensorFlow's status for an attribute that the operation does not have.
    pub fn attr(&self, name: &str) -> Result<Attr> {
        let info = self.attr_info(name)?;
        let proto = self.attr_proto(name)?;
        if let Some(Ok((9, placeholder))) = Reader::new("AttrValue", &proto).next() {
            return Ok(Attr::Placeholder(placeholder.text()?.to_owned()));
        }
        match info.kind {
            AttrKind::Tensor => self.tensor_attr(name).map(Attr::Tensor),
            AttrKind::TensorList => self
                .tensor_list_attr(name, info.list_len)
                .map(Attr::TensorList),
            kind => decode(kind, &proto),
        }
    }

    /// Returns the value of an attribute as a serialized `AttrValue`.
    ///
    /// # Errors
    /// TensorFlow's status for an attribute that the operation does not have.
    pub fn attr_proto(&self, name: &str) -> Result<Vec<u8>> {
        let api = self.inner().api;
        let c_name = c_string(name)?;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: operation, name, buffer and status are alive.
        fenced(|| unsafe {
            let (out, status) = (buffer.as_ptr(), status.as_ptr());
            api.c_api
                .TF_OperationGetAttrValueProto(self.as_ptr(), c_name.as_ptr(), out, status);
        })?;
        status
            .check()
            .map_err(|error| error.in_op(&self.op_type()))?;
        Ok(buffer.as_slice().to_vec())
    }

    fn tensor_attr(&self, name: &str) -> Result<Tensor> {
        let api = self.inner().api;
        let c_name = c_string(name)?;
        let status = Status::new(api)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: operation, name and status are alive; `raw` receives a pointer.
        fenced(|| unsafe {
            let (out, status) = (&raw mut raw, status.as_ptr());
            api.c_api
                .TF_OperationGetAttrTensor(self.as_ptr(), c_name.as_ptr(), out, status);
        })?;
        status
            .check()
            .map_err(|error| error.in_op(&self.op_type()))?;
        // SAFETY: the caller of the function owns the tensor.
        unsafe { Tensor::from_owned_ptr(raw, api) }
    }

    fn tensor_list_attr(&self, name: &str, length: Option<usize>) -> Result<Vec<Tensor>> {
        let api = self.inner().api;
        let c_name = c_string(name)?;
        let status = Status::new(api)?;
        let mut raw = vec![std::ptr::null_mut(); length.unwrap_or(0)];
        let count = raw.len() as c_int;
        // SAFETY: operation, name and status are alive; `raw` has room for `count` pointers.
        fenced(|| unsafe {
            let (out, status) = (raw.as_mut_ptr(), status.as_ptr());
            api.c_api.TF_OperationGetAttrTensorList(
                self.as_ptr(),
                c_name.as_ptr(),
                out,
                count,
                status,
            );
        })?;
        let outcome = status.check();
        // SAFETY: the caller of the function owns each tensor; unset ones are null.
        let tensors = raw
            .into_iter()
            .map(|raw| unsafe { Tensor::from_owned_ptr(raw, api) });
        let tensors: Vec<_> = tensors.collect();
        outcome?;
        tensors.into_iter().collect()
    }
}

/// Reads an `AttrValue` whose kind is known and is not a tensor.
fn decode(kind: AttrKind, bytes: &[u8]) -> Result<Attr> {
    let (mut ints, mut floats, mut strings) = (Vec::new(), Vec::new(), Vec::new());
    let (mut shapes, mut funcs) = (Vec::new(), Vec::new());
    let mut take = |number: u32, field: tfp_wire::Field<'_>, is_list: bool| -> Result<()> {
        match number {
            2 => strings.push(field.bytes()?.to_vec()),
            3 | 5 | 6 => field.ints(&mut ints)?,
            4 => field.floats(&mut floats)?,
            7 => shapes.push(read_shape(field.bytes()?)?),
            9 if is_list => funcs.push(read_func(field.bytes()?)?),
            10 if !is_list => funcs.push(read_func(field.bytes()?)?),
            _ => {}
        }
        Ok(())
    };
    for field in Reader::new("AttrValue", bytes) {
        match field? {
            (1, list) => {
                for field in Reader::new("AttrValue.ListValue", list.bytes()?) {
                    let (number, field) = field?;
                    take(number, field, true)?;
                }
            }
            (9, name) => return Ok(Attr::Placeholder(name.text()?.to_owned())),
            (number, field) => take(number, field, false)?,
        }
    }
    // A scalar that is missing is its type's zero, as always in this format.
    let int = ints.last().copied().unwrap_or(0);
    let dtype = |number: i64| DataType::from_number(u32::try_from(number).unwrap_or(0));
    Ok(match kind {
        AttrKind::Int => Attr::Int(int),
        AttrKind::Bool => Attr::Bool(int != 0),
        AttrKind::Type => Attr::Type(dtype(int)),
        AttrKind::Float => Attr::Float(floats.last().copied().unwrap_or(0.0)),
        AttrKind::String => Attr::String(strings.pop().unwrap_or_default()),
        AttrKind::Shape => Attr::Shape(shapes.pop().unwrap_or_default()),
        AttrKind::Func => Attr::Func(funcs.pop().unwrap_or_default()),
        AttrKind::IntList => Attr::IntList(ints),
        AttrKind::BoolList => Attr::BoolList(ints.iter().map(|&value| value != 0).collect()),
        AttrKind::TypeList => Attr::TypeList(ints.into_iter().map(dtype).collect()),
        AttrKind::FloatList => Attr::FloatList(floats),
        AttrKind::StringList => Attr::StringList(strings),
        AttrKind::ShapeList => Attr::ShapeList(shapes),
        AttrKind::FuncList => Attr::FuncList(funcs),
        AttrKind::Tensor | AttrKind::TensorList => {
            return Err(Error::internal("a tensor attribute was read as a message"));
        }
    })
}

/// Reads a `NameAttrList`.
fn read_func(bytes: &[u8]) -> Result<FuncAttr> {
    let mut func = FuncAttr::default();
    for field in Reader::new("NameAttrList", bytes) {
        match field? {
            (1, name) => func.name = name.text()?.to_owned(),
            (2, entry) => {
                let (mut name, mut value) = (String::new(), Vec::new());
                for field in Reader::new("NameAttrList.AttrEntry", entry.bytes()?) {
                    match field? {
                        (1, field) => name = field.text()?.to_owned(),
                        (2, field) => value = field.bytes()?.to_vec(),
                        _ => {}
                    }
                }
                func.attrs.push((name, value));
            }
            _ => {}
        }
    }
    func.attrs.sort();
    Ok(func)
}
