//! Eager contexts.

use std::ffi::{CString, c_int};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, PoisonError};

use tfp_sys::{
    ClientApi, TFE_Context, TFE_ContextDevicePlacementPolicy, TFE_ContextOptions, TFE_Op,
    TFE_TensorHandle,
};

use super::executor::Executor;
use super::handle::TensorHandle;
use crate::api::{Status, api, c_string};
use crate::attr::AttrValue;
use crate::buffer::OutBuffer;
use crate::call::{Call, Prepared, Results};
use crate::context::Context;
use crate::device::{self, Device};
use crate::error::{Error, Result};
use crate::function::Function;
use crate::infer::Slot;
use crate::op::OpDesc;
use crate::operation::count_of;
use crate::set_attr::set_in_eager;
use crate::small_vec::SmallVec;
use crate::tensor::Tensor;

/// What happens when an operand is not on the device of the op.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PlacementPolicy {
    /// The call fails.
    Explicit,
    /// The operand is copied, and a warning is logged.
    Warn,
    /// The operand is copied.
    #[default]
    Silent,
    /// 32-bit integers are copied; for others the call fails.
    SilentForInt32,
}

impl PlacementPolicy {
    fn raw(self) -> TFE_ContextDevicePlacementPolicy {
        match self {
            Self::Explicit => tfp_sys::TFE_DEVICE_PLACEMENT_EXPLICIT,
            Self::Warn => tfp_sys::TFE_DEVICE_PLACEMENT_WARN,
            Self::Silent => tfp_sys::TFE_DEVICE_PLACEMENT_SILENT,
            Self::SilentForInt32 => tfp_sys::TFE_DEVICE_PLACEMENT_SILENT_FOR_INT32,
        }
    }
}

/// How a context is made.
#[derive(Clone, Debug, Default)]
pub struct EagerOptions {
    /// Whether ops run in the background, one after the other.
    pub is_async: bool,
    /// What happens to operands on other devices.
    pub placement: PlacementPolicy,
    /// A serialized `ConfigProto`; empty for TensorFlow's defaults.
    pub config: Vec<u8>,
}

pub(super) struct ContextInner {
    raw: NonNull<TFE_Context>,
    pub(super) api: &'static ClientApi,
    // Ops that are not in use; making one costs more than resetting one.
    idle: Mutex<Vec<IdleOp>>,
}

/// An op without inputs, used by nobody.
struct IdleOp(NonNull<TFE_Op>);

// SAFETY: an idle op has no thread; whoever takes it from the pool has it alone.
unsafe impl Send for IdleOp {}

// SAFETY: a context guards itself; the pool is guarded here.
unsafe impl Send for ContextInner {}
// SAFETY: as above.
unsafe impl Sync for ContextInner {}

impl ContextInner {
    pub(super) fn as_ptr(&self) -> *mut TFE_Context {
        self.raw.as_ptr()
    }
}

impl Drop for ContextInner {
    fn drop(&mut self) {
        let idle = std::mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        for IdleOp(op) in idle {
            // SAFETY: the op is alive and idle, and this is its end.
            unsafe { self.api.eager_c_api.TFE_DeleteOp(op.as_ptr()) };
        }
        // SAFETY: the context is alive, and no handle or op of it is left.
        unsafe { self.api.eager_c_api.TFE_DeleteContext(self.raw.as_ptr()) };
    }
}

/// A context in which calls execute at once.
///
/// A clone is the same context. Handles keep the context alive. Several threads may execute at once.
#[derive(Clone)]
pub struct EagerContext {
    inner: Arc<ContextInner>,
    device: Option<Arc<CString>>,
}

impl EagerContext {
    /// Makes a context with TensorFlow's defaults.
    ///
    /// # Errors
    /// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there.
    pub fn new() -> Result<Self> {
        Self::with_options(&EagerOptions::default())
    }

    /// Makes a context.
    ///
    /// # Errors
    /// As for [`Self::new`], and TensorFlow's status for bytes that are no `ConfigProto`.
    pub fn with_options(options: &EagerOptions) -> Result<Self> {
        /// Deletes the options on every way out.
        struct Owned(*mut TFE_ContextOptions, &'static ClientApi);
        impl Drop for Owned {
            fn drop(&mut self) {
                // SAFETY: the options are alive, and this is their end.
                unsafe { self.1.eager_c_api.TFE_DeleteContextOptions(self.0) };
            }
        }
        let api = api()?;
        let c = &api.eager_c_api;
        let status = Status::new(api)?;
        // SAFETY: the options, the bytes and the status are alive during each call.
        let raw = unsafe {
            let raw = Owned(c.TFE_NewContextOptions(), api);
            if !options.config.is_empty() {
                let (data, length) = (options.config.as_ptr().cast(), options.config.len());
                c.TFE_ContextOptionsSetConfig(raw.0, data, length, status.as_ptr());
                status.check_ref()?;
            }
            c.TFE_ContextOptionsSetAsync(raw.0, options.is_async.into());
            c.TFE_ContextOptionsSetDevicePlacementPolicy(raw.0, options.placement.raw());
            c.TFE_NewContext(raw.0, status.as_ptr())
        };
        status.check()?;
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                inner: Arc::new(ContextInner {
                    raw,
                    api,
                    idle: Mutex::default(),
                }),
                device: None,
            }),
            None => Err(Error::internal("TFE_NewContext returned null")),
        }
    }

    pub(super) fn from_inner(inner: &Arc<ContextInner>) -> Self {
        Self {
            inner: Arc::clone(inner),
            device: None,
        }
    }

    pub(super) fn as_ptr(&self) -> *mut TFE_Context {
        self.inner.as_ptr()
    }

    pub(super) fn api(&self) -> &'static ClientApi {
        self.inner.api
    }

    /// Whether two are the same context.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the context with ops executed on a device, as `/device:CPU:0`; TensorFlow chooses
    /// where the name is empty.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a NUL byte in the name.
    pub fn on_device(&self, device: &str) -> Result<Self> {
        let device = if device.is_empty() {
            None
        } else {
            Some(Arc::new(c_string(device)?))
        };
        Ok(Self {
            inner: Arc::clone(&self.inner),
            device,
        })
    }

    /// Makes a handle of a tensor, on the host and without a copy.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn handle(&self, tensor: &Tensor) -> Result<TensorHandle> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        // SAFETY: tensor and status are alive; the handle counts its use of the tensor's memory.
        let raw = unsafe {
            api.eager_c_api
                .TFE_NewTensorHandle(tensor.as_ptr(), status.as_ptr())
        };
        status.check()?;
        match NonNull::new(raw) {
            // SAFETY: a new handle, which belongs to whichever context it is used in.
            Some(raw) => Ok(unsafe { TensorHandle::from_owned_ptr(raw, &self.inner) }),
            None => Err(Error::internal("TFE_NewTensorHandle returned null")),
        }
    }

    /// Returns the devices.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        // SAFETY: context and status are alive.
        let list = unsafe {
            api.eager_c_api
                .TFE_ContextListDevices(self.as_ptr(), status.as_ptr())
        };
        status.check()?;
        // SAFETY: the caller of the function owns the list.
        unsafe { device::from_owned_list(list, api) }
    }

    /// Adds a function; does nothing when the same function is there.
    ///
    /// # Errors
    /// TensorFlow's status when another function of the name is there.
    pub fn add_function(&self, function: &Function) -> Result<()> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        // SAFETY: context, function and status are alive.
        unsafe {
            let c = &api.eager_c_api;
            c.TFE_ContextAddFunction(self.as_ptr(), function.as_ptr(), status.as_ptr());
        }
        status.check()
    }

    /// Adds a function by its serialized `FunctionDef`.
    ///
    /// # Errors
    /// TensorFlow's status for bytes that are none.
    pub fn add_function_def(&self, bytes: &[u8]) -> Result<()> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        let (data, length) = (bytes.as_ptr().cast(), bytes.len());
        // SAFETY: context, bytes and status are alive.
        unsafe {
            let c = &api.eager_c_api;
            c.TFE_ContextAddFunctionDef(self.as_ptr(), data, length, status.as_ptr());
        }
        status.check()
    }

    /// Whether there is a function.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a NUL byte in the name.
    pub fn has_function(&self, name: &str) -> Result<bool> {
        let name = c_string(name)?;
        // SAFETY: context and name are alive.
        let found = unsafe {
            self.inner
                .api
                .eager_c_api
                .TFE_ContextHasFunction(self.as_ptr(), name.as_ptr())
        };
        Ok(found != 0)
    }

    /// Returns a function as a serialized `FunctionDef`.
    ///
    /// # Errors
    /// TensorFlow's status when there is none of the name.
    pub fn function_def(&self, name: &str) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let name = c_string(name)?;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: context, name, buffer and status are alive.
        unsafe {
            let (c, out) = (&api.eager_c_api_experimental, buffer.as_ptr());
            c.TFE_ContextGetFunctionDef(self.as_ptr(), name.as_ptr(), out, status.as_ptr());
        }
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Removes a function.
    ///
    /// # Errors
    /// TensorFlow's status when there is none of the name.
    pub fn remove_function(&self, name: &str) -> Result<()> {
        if !self.has_function(name)? {
            return Err(Error::not_found("function", name, "the eager context"));
        }
        let name = c_string(name)?;
        let api = self.inner.api;
        let status = Status::new(api)?;
        // SAFETY: context, name and status are alive.
        unsafe {
            let c = &api.eager_c_api;
            c.TFE_ContextRemoveFunction(self.as_ptr(), name.as_ptr(), status.as_ptr());
        }
        status.check()
    }

    /// Drops cached kernels.
    pub fn clear_caches(&self) {
        // SAFETY: the context is alive.
        unsafe {
            self.inner
                .api
                .eager_c_api
                .TFE_ContextClearCaches(self.as_ptr())
        };
    }

    /// Sets what happens to operands on other devices, for this thread.
    pub fn set_thread_placement(&self, policy: PlacementPolicy) {
        let c = &self.inner.api.eager_c_api;
        // SAFETY: the context is alive.
        unsafe { c.TFE_ContextSetThreadLocalDevicePlacementPolicy(self.as_ptr(), policy.raw()) };
    }

    /// Waits until all ops of this thread's executor have run.
    ///
    /// # Errors
    /// The first error of an op that ran in the background; [`Executor::clear_error`] ends it.
    pub fn wait(&self) -> Result<()> {
        self.thread_executor()?.wait()
    }

    /// Returns the executor that runs this thread's ops.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when TensorFlow returns none.
    pub fn thread_executor(&self) -> Result<Executor> {
        Executor::of_thread(self)
    }

    /// Records what is executed, until [`Self::stop_recording`].
    pub fn start_recording(&self) {
        // SAFETY: the context is alive.
        unsafe {
            self.inner
                .api
                .eager_c_api
                .TFE_ContextEnableRunMetadata(self.as_ptr())
        };
    }

    /// Returns what was executed since [`Self::start_recording`] as a serialized `RunMetadata`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn stop_recording(&self) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: context, buffer and status are alive.
        unsafe {
            let (c, status) = (&api.eager_c_api, status.as_ptr());
            c.TFE_ContextExportRunMetadata(self.as_ptr(), buffer.as_ptr(), status);
            c.TFE_ContextDisableRunMetadata(self.as_ptr());
        }
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Takes an op for a call, from the pool or new.
    fn take_op(&self, desc: &'static OpDesc, status: &Status) -> Result<BusyOp<'_>> {
        let c = &self.inner.api.eager_c_api;
        let device = self
            .device
            .as_ref()
            .map_or(ptr::null(), |device| device.as_ptr());
        let idle = self
            .inner
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        if let Some(IdleOp(raw)) = idle {
            let op = BusyOp {
                raw,
                context: &self.inner,
            };
            let reset = &self.inner.api.eager_c_api_experimental;
            // SAFETY: the op is this call's alone; names and status are alive.
            unsafe { reset.TFE_OpReset(raw.as_ptr(), desc.name.as_ptr(), device, status.as_ptr()) };
            status.check_ref()?;
            return Ok(op);
        }
        // SAFETY: context, name and status are alive.
        let raw = unsafe { c.TFE_NewOp(self.as_ptr(), desc.name.as_ptr(), status.as_ptr()) };
        status.check_ref()?;
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::internal("TFE_NewOp returned null"));
        };
        let op = BusyOp {
            raw,
            context: &self.inner,
        };
        if !device.is_null() {
            // SAFETY: op, name and status are alive.
            unsafe { c.TFE_OpSetDevice(raw.as_ptr(), device, status.as_ptr()) };
            status.check_ref()?;
        }
        Ok(op)
    }

    fn run(
        &self,
        call: &Prepared<'_, TensorHandle>,
        attrs: &[AttrValue<'_>],
        desc: &'static OpDesc,
    ) -> Result<SmallVec<TensorHandle, 4>> {
        let api = self.inner.api;
        let c = &api.eager_c_api;
        for attr in attrs {
            attr.functions(&mut |function| self.add_function(function))?;
        }
        let status = Status::new(api)?;
        let op = self.take_op(desc, &status)?;
        // TensorFlow infers the types of a list as if every input before it were one tensor. Where
        // that is not so, a list that is added one by one ends its inference.
        let mut before = 0;
        let one_by_one = call
            .inputs()
            .enumerate()
            .any(|(index, (is_list, operands))| {
                let moved = is_list && before != index;
                before += operands.len();
                moved
            });
        for (is_list, operands) in call.inputs() {
            let mut handles: SmallVec<*mut TFE_TensorHandle, 8> = SmallVec::new();
            for handle in operands.iter().filter_map(|operand| operand.value()) {
                if !handle.is_of(&self.inner) {
                    return Err(Error::foreign(format!(
                        "an operand of {} is of another eager context",
                        desc.name_str()
                    )));
                }
                handles.push(handle.as_ptr());
            }
            // SAFETY: the op is this call's alone; the handles are of this context and alive.
            unsafe {
                match (is_list, &*handles) {
                    (false, [handle]) => {
                        c.TFE_OpAddInput(op.raw.as_ptr(), *handle, status.as_ptr());
                    }
                    _ if one_by_one => {
                        for handle in &*handles {
                            c.TFE_OpAddInput(op.raw.as_ptr(), *handle, status.as_ptr());
                        }
                    }
                    _ => {
                        let (count, data) = (count_of(&handles)?, handles.as_mut_ptr());
                        c.TFE_OpAddInputList(op.raw.as_ptr(), data, count, status.as_ptr());
                    }
                }
            }
            status.check_ref()?;
        }
        if one_by_one {
            for (attr, slot) in desc.attrs.iter().zip(call.inferred().iter()) {
                let value = match slot {
                    Slot::Unset => continue,
                    Slot::Int(value) => AttrValue::Int(*value),
                    Slot::Type(dtype) => AttrValue::Type(*dtype),
                    Slot::Types(types) => AttrValue::TypeList(types),
                };
                // SAFETY: the op is this call's alone.
                unsafe { set_in_eager(api, &status, op.raw.as_ptr(), attr.name, &value)? };
            }
        }
        for ((_, attr), value) in desc.given_attrs().zip(attrs) {
            // SAFETY: the op is this call's alone.
            unsafe { set_in_eager(api, &status, op.raw.as_ptr(), attr.name, value)? };
        }
        let expected = call.output_count();
        let mut raw: SmallVec<*mut TFE_TensorHandle, 4> =
            (0..expected).map(|_| ptr::null_mut()).collect();
        let mut count: c_int = count_of(&raw)?;
        // SAFETY: the op is whole; `raw` has room for `count` handles.
        unsafe {
            let data = raw.as_mut_ptr();
            c.TFE_Execute(op.raw.as_ptr(), data, &raw mut count, status.as_ptr());
        }
        status.check_ref()?;
        let handles = raw
            .iter()
            .take(usize::try_from(count).unwrap_or(0))
            .filter_map(|&raw| NonNull::new(raw))
            // SAFETY: the caller of the function owns each handle.
            .map(|raw| unsafe { TensorHandle::from_owned_ptr(raw, &self.inner) })
            .collect();
        op.recycle(&status);
        Ok(handles)
    }
}

/// An op that a call fills and executes.
struct BusyOp<'c> {
    raw: NonNull<TFE_Op>,
    context: &'c ContextInner,
}

impl BusyOp<'_> {
    /// Returns the op to the pool. It is reset first, so that it holds no operand.
    fn recycle(self, status: &Status) {
        let reset = &self.context.api.eager_c_api_experimental;
        let (raw, name) = (self.raw, c"NoOp".as_ptr());
        // SAFETY: the op is this call's alone; name and status are alive.
        unsafe { reset.TFE_OpReset(raw.as_ptr(), name, ptr::null(), status.as_ptr()) };
        if status.check_ref().is_err() {
            return;
        }
        let context = self.context;
        std::mem::forget(self);
        context
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(IdleOp(raw));
    }
}

impl Drop for BusyOp<'_> {
    fn drop(&mut self) {
        // SAFETY: the op is alive, and this is its end.
        unsafe { self.context.api.eager_c_api.TFE_DeleteOp(self.raw.as_ptr()) };
    }
}

impl Context for EagerContext {
    type Value = TensorHandle;
    type Operation = ();

    fn constant(&self, tensor: &Tensor) -> Result<TensorHandle> {
        self.handle(tensor)
    }

    fn execute(
        &self,
        call: &mut Call<'_, TensorHandle>,
        attrs: &[AttrValue<'_>],
    ) -> Result<Results<TensorHandle, ()>> {
        let desc = call.desc();
        let prepared = call.prepare(self, attrs)?;
        let values = self
            .run(&prepared, attrs, desc)
            .map_err(|e| e.in_op(desc.name_str()))?;
        prepared.results(values, ())
    }
}

impl fmt::Debug for EagerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.device {
            Some(device) => write!(f, "EagerContext on {}", device.to_string_lossy()),
            None => f.write_str("EagerContext"),
        }
    }
}
