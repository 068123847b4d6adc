//! Single ops that TensorFlow's eager runtime executes, from within a kernel.
//!
//! A kernel has no other way to a variable's value where TensorFlow does not export the functions
//! for it. The ops run in a context of the plug-in's own, made when it is first needed; its devices
//! have the names of the program's, so that a variable is found through its handle.

use std::ffi::{CStr, c_int};
use std::ptr::NonNull;
use std::sync::OnceLock;

use tfp_sys as sys;

use crate::api::{Api, api};
use crate::data_type::DataType;
use crate::error::{Code, Error, Result};
use crate::kernel::c_name;
use crate::proto::attr::{Attr, AttrList};
use crate::status::with_status;
use crate::tensor::Tensor;

/// The runtime.
pub struct Eager {
    context: NonNull<sys::TFE_Context>,
    functions: &'static sys::eager_c_api::Functions,
    api: &'static Api,
}

// SAFETY: TensorFlow guards an eager context, which is not tied to a thread.
unsafe impl Send for Eager {}
// SAFETY: as above.
unsafe impl Sync for Eager {}

/// A tensor of the runtime.
pub struct Value {
    raw: NonNull<sys::TFE_TensorHandle>,
    functions: &'static sys::eager_c_api::Functions,
    api: &'static Api,
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: the handle is owned and not used again.
        unsafe { self.functions.TFE_DeleteTensorHandle(self.raw.as_ptr()) }
    }
}

/// An op that is being put together.
struct Op<'a> {
    raw: NonNull<sys::TFE_Op>,
    eager: &'a Eager,
}

impl Drop for Op<'_> {
    fn drop(&mut self) {
        // SAFETY: the op is owned and not used again.
        unsafe { self.eager.functions.TFE_DeleteOp(self.raw.as_ptr()) }
    }
}

impl Eager {
    /// The runtime of this process.
    ///
    /// # Errors
    /// [`Code::Unimplemented`] where TensorFlow does not export it.
    pub fn global() -> Result<&'static Self> {
        static GLOBAL: OnceLock<Result<Eager>> = OnceLock::new();
        GLOBAL.get_or_init(Self::new).as_ref().map_err(Clone::clone)
    }

    /// Whether TensorFlow exports the runtime.
    #[must_use]
    pub fn is_available() -> bool {
        api().is_ok_and(|api| api.eager_c_api.is_ok())
    }

    fn new() -> Result<Self> {
        let api = api()?;
        let functions = api
            .eager_c_api
            .as_ref()
            .map_err(|error| Error::new(Code::Unimplemented, error.to_string()))?;
        // SAFETY: the options are deleted once, after their last use; the status is live.
        let context = with_status(|status| unsafe {
            let options = functions.TFE_NewContextOptions();
            functions.TFE_ContextOptionsSetDevicePlacementPolicy(
                options,
                sys::TFE_DEVICE_PLACEMENT_SILENT,
            );
            let context = functions.TFE_NewContext(options, status.as_ptr());
            functions.TFE_DeleteContextOptions(options);
            status.take().map(|()| context)
        })?;
        Ok(Self {
            context: NonNull::new(context)
                .ok_or_else(|| Error::internal("TensorFlow gave no eager context"))?,
            functions,
            api,
        })
    }

    fn own(&self, raw: *mut sys::TFE_TensorHandle) -> Result<Value> {
        Ok(Value {
            raw: NonNull::new(raw).ok_or_else(|| Error::internal("TensorFlow gave no handle"))?,
            functions: self.functions,
            api: self.api,
        })
    }

    /// A value that has the tensor's buffer. It takes the tensor, so that nobody writes that any more.
    ///
    /// # Errors
    /// If TensorFlow refuses.
    pub fn value(&self, tensor: Tensor) -> Result<Value> {
        with_status(|status| {
            // SAFETY: tensor and status are live.
            let raw = unsafe {
                self.functions
                    .TFE_NewTensorHandle(tensor.as_ptr(), status.as_ptr())
            };
            status.take()?;
            self.own(raw)
        })
    }

    /// A value of these dimensions, whose elements lie in `bytes`.
    ///
    /// # Errors
    /// If the number of bytes is not the one that type and dimensions need.
    pub fn constant(&self, data_type: DataType, dims: &[i64], bytes: &[u8]) -> Result<Value> {
        let count = dims.iter().try_fold(1_usize, |count, &dim| {
            count.checked_mul(usize::try_from(dim).ok()?)
        });
        let expected = count.and_then(|count| count.checked_mul(data_type.size()?));
        if expected != Some(bytes.len()) {
            return Err(Error::internal(format!(
                "{} bytes are no {data_type} tensor of shape {dims:?}",
                bytes.len()
            )));
        }
        let rank = c_int::try_from(dims.len()).map_err(|_| Error::internal("the rank is wrong"))?;
        // SAFETY: the dimensions are `rank` long and fit the number of bytes.
        let raw = unsafe {
            self.api
                .tf_tensor
                .TF_AllocateTensor(data_type.raw(), dims.as_ptr(), rank, bytes.len())
        };
        // SAFETY: the callee passed ownership of a fresh tensor.
        let tensor = unsafe { Tensor::from_owned_ptr(raw, self.api, "a constant")? };
        if !bytes.is_empty() {
            // SAFETY: the tensor is fresh and has as many bytes.
            unsafe {
                let data = self.api.tf_tensor.TF_TensorData(tensor.as_ptr());
                data.cast::<u8>()
                    .copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
            }
        }
        self.value(tensor)
    }

    /// Gives a variable a new value of the old shape.
    ///
    /// TensorFlow's op for this looks for the variable by its name alone, and only in its own
    /// context. So the bytes are written into the variable's buffer, after an op that changes the
    /// variable has left that buffer to it alone.
    ///
    /// # Errors
    /// If the shapes differ, and what TensorFlow says.
    ///
    /// # Safety
    /// The variable lies in memory that the host sees, and nobody reads or changes it meanwhile.
    pub unsafe fn assign(&self, handle: &Value, data_type: DataType, value: &Value) -> Result<()> {
        let copy = |from: &[u8], to: &mut [u8]| {
            to.copy_from_slice(from);
            Ok(())
        };
        // SAFETY: what the caller promises.
        unsafe { self.assign_by(handle, data_type, value, copy) }
    }

    /// As [`Eager::assign`], by a copy of the caller's: it gets the bytes of the value and those of the variable, which
    /// are as many.
    ///
    /// # Errors
    /// As [`Eager::assign`], and what the copy says.
    ///
    /// # Safety
    /// As [`Eager::assign`].
    pub unsafe fn assign_by(
        &self,
        handle: &Value,
        data_type: DataType,
        value: &Value,
        copy: impl FnOnce(&[u8], &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let attrs = [("dtype", Attr::Type(data_type))];
        let value = value.to_tensor()?;
        let dims: Vec<i64> = value
            .dims()
            .map(|dim| i64::try_from(dim).unwrap_or(-1))
            .collect();
        let bytes = value.bytes()?;
        let zero = self.constant(data_type, &dims, &vec![0; bytes.len()])?;
        self.run("AssignAddVariableOp", &[handle, &zero], &attrs, 0)?;
        let current = self.run("ReadVariableOp", &[handle], &attrs, 1)?;
        let current = current
            .first()
            .ok_or_else(|| Error::internal("a variable has no value"))?;
        let functions = self
            .api
            .eager_c_api_experimental
            .as_ref()
            .map_err(|error| Error::new(Code::Unimplemented, error.to_string()))?;
        let target = with_status(|status| {
            // SAFETY: handle and status are live.
            let data = unsafe {
                functions.TFE_TensorHandleDevicePointer(current.raw.as_ptr(), status.as_ptr())
            };
            status.take().map(|()| data.cast::<u8>())
        })?;
        if bytes.is_empty() {
            return Ok(());
        }
        let target = NonNull::new(target).ok_or_else(|| Error::internal("there is no buffer"))?;
        // SAFETY: the op above has checked that the variable has the shape of `zero`, which is that
        // of `value`, and left the buffer to the variable alone; the caller answers for where it
        // is, and for the others.
        let target = unsafe { std::slice::from_raw_parts_mut(target.as_ptr(), bytes.len()) };
        copy(bytes, target)
    }

    /// Executes an op where TensorFlow places it; returns its outputs, of which there are at most
    /// `outputs`.
    ///
    /// # Errors
    /// What TensorFlow says of the op, and for an attribute that is not a number, truth value, text,
    /// type, shape, or list of numbers, truth values, types or shapes.
    pub fn run(
        &self,
        op: &str,
        inputs: &[&Value],
        attrs: &[(&str, Attr)],
        outputs: usize,
    ) -> Result<Vec<Value>> {
        self.run_on("", op, inputs, attrs, outputs)
    }

    /// As [`Eager::run`], on a device such as `/device:CPU:0`.
    ///
    /// # Errors
    /// As [`Eager::run`], and if there is no such device.
    pub fn run_on(
        &self,
        device: &str,
        op: &str,
        inputs: &[&Value],
        attrs: &[(&str, Attr)],
        outputs: usize,
    ) -> Result<Vec<Value>> {
        let device = c_name(device)?;
        let name = c_name(op)?;
        with_status(|status| {
            // SAFETY: the context lives as long as the process; name and status are live.
            let raw = unsafe {
                self.functions
                    .TFE_NewOp(self.context.as_ptr(), name.as_ptr(), status.as_ptr())
            };
            status.take()?;
            let raw = NonNull::new(raw).ok_or_else(|| Error::internal("TensorFlow gave no op"))?;
            let op = Op { raw, eager: self };
            // SAFETY: op, name and status are live.
            unsafe {
                self.functions
                    .TFE_OpSetDevice(op.raw.as_ptr(), device.as_ptr(), status.as_ptr());
            }
            status.take()?;
            for input in inputs {
                // SAFETY: op, input and status are live.
                unsafe {
                    self.functions.TFE_OpAddInput(
                        op.raw.as_ptr(),
                        input.raw.as_ptr(),
                        status.as_ptr(),
                    );
                }
                status.take()?;
            }
            for (name, value) in attrs {
                op.set(name, value)?;
            }
            let mut raw = vec![std::ptr::null_mut(); outputs];
            let mut count = c_int::try_from(outputs).unwrap_or(0);
            // SAFETY: the op is complete, and there is room for as many outputs as said.
            unsafe {
                self.functions.TFE_Execute(
                    op.raw.as_ptr(),
                    raw.as_mut_ptr(),
                    &mut count,
                    status.as_ptr(),
                );
            }
            status.take()?;
            let count = usize::try_from(count).unwrap_or(0);
            raw.into_iter()
                .take(count)
                .map(|raw| self.own(raw))
                .collect()
        })
    }
}

impl Op<'_> {
    fn set(&self, name: &str, value: &Attr) -> Result<()> {
        let c_name = c_name(name)?;
        let (functions, op, name_ptr) = (self.eager.functions, self.raw.as_ptr(), c_name.as_ptr());
        // SAFETY: the op and the name are live; the callee copies what it gets.
        unsafe {
            match value {
                Attr::Type(value) => functions.TFE_OpSetAttrType(op, name_ptr, value.raw()),
                Attr::Bool(value) => functions.TFE_OpSetAttrBool(op, name_ptr, (*value).into()),
                Attr::Int(value) => functions.TFE_OpSetAttrInt(op, name_ptr, *value),
                Attr::Float(value) => functions.TFE_OpSetAttrFloat(op, name_ptr, *value),
                Attr::String(value) => {
                    functions.TFE_OpSetAttrString(op, name_ptr, value.as_ptr().cast(), value.len())
                }
                Attr::Shape(value) => {
                    let dims = value.as_deref().unwrap_or_default();
                    let rank = value
                        .as_ref()
                        .map_or(Ok(-1), |dims| c_int::try_from(dims.len()));
                    let rank = rank.map_err(|_| Error::internal("the rank is wrong"))?;
                    with_status(|status| {
                        functions.TFE_OpSetAttrShape(
                            op,
                            name_ptr,
                            dims.as_ptr(),
                            rank,
                            status.as_ptr(),
                        );
                        status.take()
                    })?;
                }
                Attr::List(value) => self.set_list(name, &c_name, value)?,
                other => {
                    return Err(Error::internal(format!(
                        "attribute {name} is a {}, which can't be set here",
                        other.kind()
                    )));
                }
            }
        }
        Ok(())
    }
}

impl Op<'_> {
    /// Sets a list of numbers, truth values, types or shapes. An empty one has no kind: the op's default
    /// stays, which is empty as well wherever an op allows an empty list.
    fn set_list(&self, name: &str, c_name: &CStr, value: &AttrList) -> Result<()> {
        let (functions, op, name_ptr) = (self.eager.functions, self.raw.as_ptr(), c_name.as_ptr());
        let count =
            |len: usize| c_int::try_from(len).map_err(|_| Error::internal("the list is too long"));
        let AttrList {
            ints,
            floats,
            bools,
            types,
            shapes,
            ..
        } = value;
        // SAFETY: op and name are live, and each list is as long as said; the callee copies it.
        unsafe {
            if !ints.is_empty() {
                functions.TFE_OpSetAttrIntList(op, name_ptr, ints.as_ptr(), count(ints.len())?);
            } else if !floats.is_empty() {
                let len = count(floats.len())?;
                functions.TFE_OpSetAttrFloatList(op, name_ptr, floats.as_ptr(), len);
            } else if !bools.is_empty() {
                let bytes: Vec<u8> = bools.iter().map(|&value| value.into()).collect();
                let len = count(bytes.len())?;
                functions.TFE_OpSetAttrBoolList(op, name_ptr, bytes.as_ptr(), len);
            } else if !types.is_empty() {
                let raw: Vec<_> = types.iter().map(|value| value.raw()).collect();
                let len = count(raw.len())?;
                functions.TFE_OpSetAttrTypeList(op, name_ptr, raw.as_ptr(), len);
            } else if !shapes.is_empty() {
                let mut starts: Vec<_> = shapes
                    .iter()
                    .map(|shape| shape.as_ref().map_or(std::ptr::null(), Vec::as_ptr))
                    .collect();
                let ranks = shapes
                    .iter()
                    .map(|shape| shape.as_ref().map_or(Ok(-1), |dims| count(dims.len())))
                    .collect::<Result<Vec<_>>>()?;
                let len = count(shapes.len())?;
                with_status(|status| {
                    functions.TFE_OpSetAttrShapeList(
                        op,
                        name_ptr,
                        starts.as_mut_ptr(),
                        ranks.as_ptr(),
                        len,
                        status.as_ptr(),
                    );
                    status.take()
                })?;
            } else if *value != AttrList::default() {
                return Err(Error::internal(format!(
                    "attribute {name} is a list of what can't be set here"
                )));
            }
        }
        Ok(())
    }
}

impl Value {
    /// The value in host memory.
    ///
    /// # Errors
    /// What made the value fail.
    pub fn to_tensor(&self) -> Result<Tensor> {
        with_status(|status| {
            // SAFETY: handle and status are live.
            let raw = unsafe {
                self.functions
                    .TFE_TensorHandleResolve(self.raw.as_ptr(), status.as_ptr())
            };
            status.take()?;
            // SAFETY: the callee passed ownership of a tensor whose buffer nobody writes: outputs
            // of ops are not changed after the op.
            unsafe { Tensor::from_owned_ptr(raw, self.api, "a value") }
        })
    }
}
