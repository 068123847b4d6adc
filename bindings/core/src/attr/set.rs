//! Attribute values on their way into an operation that is being made.

use std::ffi::{CStr, c_int, c_uchar};
use std::ptr;

use tfp_sys::{ClientApi, TF_OperationDescription, TF_Tensor, TFE_Op};

use crate::attr::AttrValue;
use crate::attr::proto::attr_proto;
use crate::base::api::{Status, c_string};
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::base::small_vec::SmallVec;

/// How lists that the C API wants in another form are held.
type List<T> = SmallVec<T, 8>;

pub(crate) fn c_int_len(len: usize) -> Result<c_int> {
    c_int::try_from(len)
        .map_err(|_| Error::argument(format!("a list of {len} elements is too long")))
}

fn rank_and_dims(shape: &Shape) -> Result<(c_int, *const i64)> {
    Ok(match shape.dims() {
        Some(dims) => (c_int_len(dims.len())?, dims.as_ptr()),
        None => (-1, ptr::null()),
    })
}

/// Sets an attribute of an operation of a graph. What a function throws passes this, and is for the
/// caller to fence, once for all of an operation.
///
/// # Safety
/// `desc` is an operation that is being made, by this thread alone.
pub(crate) unsafe fn set_in_graph(
    api: &ClientApi,
    status: &Status,
    desc: *mut TF_OperationDescription,
    name: &CStr,
    value: &AttrValue<'_>,
) -> Result<()> {
    let (c, name) = (&api.c_api, name.as_ptr());
    // SAFETY: the operation is being made; names, pointers and lengths are those of live Rust
    // values, and the C API copies what it is given.
    unsafe {
        match value {
            AttrValue::Default => {}
            AttrValue::Int(value) => c.TF_SetAttrInt(desc, name, *value),
            AttrValue::Float(value) => c.TF_SetAttrFloat(desc, name, *value),
            AttrValue::Bool(value) => c.TF_SetAttrBool(desc, name, (*value).into()),
            AttrValue::Type(dtype) => c.TF_SetAttrType(desc, name, dtype.raw()),
            AttrValue::String(bytes) => {
                c.TF_SetAttrString(desc, name, bytes.0.as_ptr().cast(), bytes.0.len());
            }
            AttrValue::Shape(shape) => {
                let (rank, dims) = rank_and_dims(shape)?;
                c.TF_SetAttrShape(desc, name, dims, rank);
            }
            AttrValue::Tensor(tensor) => {
                c.TF_SetAttrTensor(desc, name, tensor.as_ptr(), status.as_ptr());
                status.check_ref()?;
            }
            AttrValue::Placeholder(placeholder) => {
                let placeholder = c_string(placeholder)?;
                c.TF_SetAttrPlaceholder(desc, name, placeholder.as_ptr());
            }
            AttrValue::Func(func) if func.attrs().is_empty() => {
                let function = func.name();
                c.TF_SetAttrFuncName(desc, name, function.as_ptr().cast(), function.len());
            }
            AttrValue::IntList(list) => {
                c.TF_SetAttrIntList(desc, name, list.as_ptr(), c_int_len(list.len())?);
            }
            AttrValue::FloatList(list) => {
                c.TF_SetAttrFloatList(desc, name, list.as_ptr(), c_int_len(list.len())?);
            }
            AttrValue::BoolList(list) => {
                // A `bool` is a byte of 0 or 1.
                let bytes = list.as_ptr().cast::<c_uchar>();
                c.TF_SetAttrBoolList(desc, name, bytes, c_int_len(list.len())?);
            }
            AttrValue::TypeList(list) => {
                let raw: List<_> = list.iter().map(|dtype| dtype.raw()).collect();
                c.TF_SetAttrTypeList(desc, name, raw.as_ptr(), c_int_len(raw.len())?);
            }
            AttrValue::TextList(list) => {
                let data: List<_> = list.iter().map(|text| text.as_ptr().cast()).collect();
                let lengths: List<_> = list.iter().map(|text| text.len()).collect();
                let count = c_int_len(list.len())?;
                c.TF_SetAttrStringList(desc, name, data.as_ptr(), lengths.as_ptr(), count);
            }
            AttrValue::StringList(list) => {
                let data: List<_> = list.iter().map(|bytes| bytes.0.as_ptr().cast()).collect();
                let lengths: List<_> = list.iter().map(|bytes| bytes.0.len()).collect();
                let count = c_int_len(list.len())?;
                c.TF_SetAttrStringList(desc, name, data.as_ptr(), lengths.as_ptr(), count);
            }
            AttrValue::ShapeList(list) => {
                let mut dims: List<*const i64> = List::new();
                let mut ranks: List<c_int> = List::new();
                for shape in *list {
                    let (rank, data) = rank_and_dims(shape)?;
                    ranks.push(rank);
                    dims.push(data);
                }
                let count = c_int_len(list.len())?;
                c.TF_SetAttrShapeList(desc, name, dims.as_ptr(), ranks.as_ptr(), count);
            }
            AttrValue::TensorList(list) => {
                let raw: List<*mut TF_Tensor> = list.iter().map(|t| t.as_ptr()).collect();
                let count = c_int_len(list.len())?;
                c.TF_SetAttrTensorList(desc, name, raw.as_ptr(), count, status.as_ptr());
                status.check_ref()?;
            }
            AttrValue::Func(_) | AttrValue::FuncList(_) => {
                let proto = attr_proto(value)?;
                let data = proto.as_ptr().cast();
                c.TF_SetAttrValueProto(desc, name, data, proto.len(), status.as_ptr());
                status.check_ref()?;
            }
        }
    }
    Ok(())
}

/// Sets an attribute of an eager operation; what a function throws passes this, too.
///
/// # Safety
/// `op` is an operation that is being made, by this thread alone.
pub(crate) unsafe fn set_in_eager(
    api: &ClientApi,
    status: &Status,
    op: *mut TFE_Op,
    name: &CStr,
    value: &AttrValue<'_>,
) -> Result<()> {
    let (c, name) = (&api.eager_c_api, name.as_ptr());
    // SAFETY: as for `set_in_graph`.
    unsafe {
        match value {
            // An eager context refuses placeholders before.
            AttrValue::Default | AttrValue::Placeholder(_) => {}
            AttrValue::Int(value) => c.TFE_OpSetAttrInt(op, name, *value),
            AttrValue::Float(value) => c.TFE_OpSetAttrFloat(op, name, *value),
            AttrValue::Bool(value) => c.TFE_OpSetAttrBool(op, name, (*value).into()),
            AttrValue::Type(dtype) => c.TFE_OpSetAttrType(op, name, dtype.raw()),
            AttrValue::String(bytes) => {
                c.TFE_OpSetAttrString(op, name, bytes.0.as_ptr().cast(), bytes.0.len());
            }
            AttrValue::Shape(shape) => {
                let (rank, dims) = rank_and_dims(shape)?;
                c.TFE_OpSetAttrShape(op, name, dims, rank, status.as_ptr());
                status.check_ref()?;
            }
            AttrValue::Tensor(tensor) => {
                c.TFE_OpSetAttrTensor(op, name, tensor.as_ptr(), status.as_ptr());
                status.check_ref()?;
            }
            AttrValue::Func(func) if func.attrs().is_empty() => {
                let function = func.name();
                c.TFE_OpSetAttrFunctionName(op, name, function.as_ptr().cast(), function.len());
            }
            AttrValue::IntList(list) => {
                c.TFE_OpSetAttrIntList(op, name, list.as_ptr(), c_int_len(list.len())?);
            }
            AttrValue::FloatList(list) => {
                c.TFE_OpSetAttrFloatList(op, name, list.as_ptr(), c_int_len(list.len())?);
            }
            AttrValue::BoolList(list) => {
                let bytes = list.as_ptr().cast::<c_uchar>();
                c.TFE_OpSetAttrBoolList(op, name, bytes, c_int_len(list.len())?);
            }
            AttrValue::TypeList(list) => {
                let raw: List<_> = list.iter().map(|dtype| dtype.raw()).collect();
                c.TFE_OpSetAttrTypeList(op, name, raw.as_ptr(), c_int_len(raw.len())?);
            }
            AttrValue::TextList(list) => {
                let data: List<_> = list.iter().map(|text| text.as_ptr().cast()).collect();
                let lengths: List<_> = list.iter().map(|text| text.len()).collect();
                let count = c_int_len(list.len())?;
                c.TFE_OpSetAttrStringList(op, name, data.as_ptr(), lengths.as_ptr(), count);
            }
            AttrValue::StringList(list) => {
                let data: List<_> = list.iter().map(|bytes| bytes.0.as_ptr().cast()).collect();
                let lengths: List<_> = list.iter().map(|bytes| bytes.0.len()).collect();
                let count = c_int_len(list.len())?;
                c.TFE_OpSetAttrStringList(op, name, data.as_ptr(), lengths.as_ptr(), count);
            }
            AttrValue::ShapeList(list) => {
                let mut dims: List<*const i64> = List::new();
                let mut ranks: List<c_int> = List::new();
                for shape in *list {
                    let (rank, data) = rank_and_dims(shape)?;
                    ranks.push(rank);
                    dims.push(data);
                }
                let count = c_int_len(list.len())?;
                let (dims, ranks) = (dims.as_mut_ptr(), ranks.as_ptr());
                c.TFE_OpSetAttrShapeList(op, name, dims, ranks, count, status.as_ptr());
                status.check_ref()?;
            }
            AttrValue::Func(_) | AttrValue::FuncList(_) | AttrValue::TensorList(_) => {
                let proto = attr_proto(value)?;
                let (data, length) = (proto.as_ptr().cast(), proto.len());
                let set = &api.eager_c_api_experimental;
                set.TFE_OpSetAttrValueProto(op, name, data, length, status.as_ptr());
                status.check_ref()?;
            }
        }
    }
    Ok(())
}
