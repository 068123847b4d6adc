//! Eager contexts.

mod cancelled;
mod functions;

use std::collections::HashMap;
use std::ffi::{CString, c_int};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use tfp_sys::loader::fenced;
use tfp_sys::{
    ClientApi, TFE_Context, TFE_ContextDevicePlacementPolicy, TFE_ContextOptions, TFE_TensorHandle,
};

use super::cancel::{Cancellation, RawCancellation};
use super::executor::{Executor, RawExecutor};
use super::handle::TensorHandle;
use super::places::Places;
use super::pool::{OpPool, thread_number};
use crate::attr::AttrValue;
use crate::attr::function::FunctionId;
use crate::attr::set::{c_int_len, set_in_eager};
use crate::base::api::{Status, api, not_null};
use crate::base::buffer::OutBuffer;
use crate::base::config::Config;
use crate::base::device::{self, Device};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::fence::Fence;
use crate::base::op::{ArgKind, OpDesc, text};
use crate::base::small_vec::SmallVec;
use crate::call::results::{Prepared, Results};
use crate::call::slot::bad_attr;
use crate::call::{Call, Context};
use crate::graph::in_place;
use crate::graph::operation::count_of;
use crate::graph::untrusted::Calls;
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
    /// TensorFlow's settings.
    pub config: Config,
}

pub(super) struct ContextInner {
    raw: NonNull<TFE_Context>,
    pub(super) api: &'static ClientApi,
    pub(super) fence: Fence,
    // Making an op costs more than resetting one.
    pub(super) ops: OpPool,
    /// What each thread's ops use: TensorFlow's ops hold their executor by a bare pointer.
    executors: Mutex<HashMap<u64, Arc<RawExecutor>>>,
    /// What ops in the background may look at: TensorFlow's ops hold it by a bare pointer.
    cancellations: Mutex<Vec<Arc<RawCancellation>>>,
    // The functions that were added, by name: calls bring theirs along each time.
    functions: Mutex<HashMap<String, FunctionId>>,
    calls: Mutex<Calls>,
    /// Whether ops of some thread ever ran in the background.
    in_background: AtomicBool,
    /// Bytes of the functions that were removed since the cached kernels were dropped.
    removed: AtomicUsize,
    pub(super) places: Places,
}

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
        if self.fence.is_broken() {
            let executors = self.executors.get_mut();
            let executors = executors.unwrap_or_else(PoisonError::into_inner);
            // What it may have left locked stays.
            std::mem::forget(std::mem::take(executors));
            return;
        }
        // SAFETY: the context is alive.
        unsafe { self.ops.clear(self.api) };
        let executors = self.executors.get_mut();
        executors.unwrap_or_else(PoisonError::into_inner).clear();
        // SAFETY: the context is alive, and no handle or op of it is left.
        unsafe { self.api.eager_c_api.TFE_DeleteContext(self.raw.as_ptr()) };
    }
}

/// A context in which calls execute eagerly.
///
/// A clone is the same context. Handles keep the context alive. Several threads may execute together.
#[derive(Clone)]
pub struct EagerContext {
    inner: Arc<ContextInner>,
    device: Option<Arc<CString>>,
    cancellation: Option<Cancellation>,
}

/// An [`EagerContext`] that may be gone.
#[derive(Clone)]
pub struct WeakEagerContext(Weak<ContextInner>);

impl WeakEagerContext {
    /// Returns the context, if something still keeps it.
    #[must_use]
    pub fn upgrade(&self) -> Option<EagerContext> {
        self.0
            .upgrade()
            .map(|inner| EagerContext::from_inner(&inner))
    }

    /// Whether it is of a context.
    #[must_use]
    pub fn is_of(&self, context: &EagerContext) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&context.inner))
    }
}

impl fmt::Debug for WeakEagerContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.0.strong_count() == 0 {
            "gone"
        } else {
            "alive"
        };
        write!(f, "WeakEagerContext({state})")
    }
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
    /// As for [`Self::new`], and TensorFlow's status for bytes that are not a `ConfigProto`.
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
        let raw = fenced(|| unsafe {
            let raw = Owned(c.TFE_NewContextOptions(), api);
            let config = options.config.as_bytes();
            if !config.is_empty() {
                let (data, length) = (config.as_ptr().cast(), config.len());
                c.TFE_ContextOptionsSetConfig(raw.0, data, length, status.as_ptr());
                status.check_ref()?;
            }
            c.TFE_ContextOptionsSetAsync(raw.0, options.is_async.into());
            c.TFE_ContextOptionsSetDevicePlacementPolicy(raw.0, options.placement.raw());
            Ok::<_, Error>(c.TFE_NewContext(raw.0, status.as_ptr()))
        })??;
        status.check()?;
        Ok(Self {
            inner: Arc::new(ContextInner {
                raw: not_null(raw, "TFE_NewContext")?,
                api,
                fence: Fence::default(),
                ops: OpPool::default(),
                functions: Mutex::default(),
                calls: Mutex::default(),
                executors: Mutex::default(),
                cancellations: Mutex::default(),
                in_background: options.is_async.into(),
                removed: AtomicUsize::new(0),
                places: Places::new(&options.config),
            }),
            device: None,
            cancellation: None,
        })
    }

    pub(super) fn from_inner(inner: &Arc<ContextInner>) -> Self {
        Self {
            inner: Arc::clone(inner),
            device: None,
            cancellation: None,
        }
    }

    pub(super) fn as_ptr(&self) -> *mut TFE_Context {
        self.inner.as_ptr()
    }

    pub(super) fn api(&self) -> &'static ClientApi {
        self.inner.api
    }

    /// Whether TensorFlow threw an exception in a call on this context, so that it may have left it
    /// locked. Then every further call fails with
    /// [`Code::FailedPrecondition`](crate::Code::FailedPrecondition): make another context.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.inner.fence.is_broken()
    }

    /// Calls functions on the context.
    pub(super) fn fenced<T>(&self, functions: impl FnOnce() -> T) -> Result<T> {
        self.inner.fence.call(functions)
    }

    /// Forgets what names of devices stand for, after these have got others.
    pub(super) fn forget_places(&self) {
        self.inner.places.clear();
    }

    pub(super) fn note_background(&self) {
        self.inner.in_background.store(true, Ordering::Relaxed);
    }

    /// Whether ops of some thread have ever run in the background, by [`EagerOptions::is_async`] or an
    /// [`Executor`].
    #[must_use]
    pub fn runs_in_background(&self) -> bool {
        self.inner.in_background.load(Ordering::Relaxed)
    }

    /// Whether a thread has an executor of its own.
    fn has_executors(&self) -> bool {
        let executors = self.inner.executors.lock();
        !executors.unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    /// Returns a reference that does not keep the context alive.
    #[must_use]
    pub fn downgrade(&self) -> WeakEagerContext {
        WeakEagerContext(Arc::downgrade(&self.inner))
    }

    /// Keeps the executor that the current thread has from now on, instead of the one that it had.
    pub(super) fn keep_executor(&self, executor: &Arc<RawExecutor>) {
        self.inner.ops.executors_changed();
        let executors = self.inner.executors.lock();
        let mut executors = executors.unwrap_or_else(PoisonError::into_inner);
        let before = executors.insert(thread_number(), Arc::clone(executor));
        drop(executors);
        // Outside of the lock, for it may wait for its ops.
        drop(before);
    }

    /// Whether two are the same context.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the context with ops executed on a device, as `/device:CPU:0`; TensorFlow chooses
    /// where the name is empty.
    ///
    /// A device of another task of a cluster is named with as many parts as it takes to tell it from
    /// others, as `/job:worker/task:1/device:CPU:0`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for what is not the name of a device, for one
    /// that there is not, and for several of other tasks. With soft placement a device of this task may be
    /// missing.
    pub fn on_device(&self, device: &str) -> Result<Self> {
        let device = self.inner.places.find(device, || self.devices())?;
        Ok(Self {
            inner: Arc::clone(&self.inner),
            device,
            cancellation: self.cancellation.clone(),
        })
    }

    /// Makes a handle of a tensor, on the host and without a copy. No op writes to its memory: those
    /// that change their operand, such as `InplaceAdd`, get a copy.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn handle(&self, tensor: &Tensor) -> Result<TensorHandle> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        // SAFETY: tensor and status are alive; the handle counts its use of the tensor's memory.
        let raw = fenced(|| unsafe {
            api.eager_c_api
                .TFE_NewTensorHandle(tensor.as_ptr(), status.as_ptr())
        })?;
        status.check()?;
        let raw = not_null(raw, "TFE_NewTensorHandle")?;
        // SAFETY: a new handle, which belongs to whichever context it is used in.
        Ok(unsafe { TensorHandle::from_owned_ptr(raw, &self.inner) })
    }

    /// Returns the devices.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn devices(&self) -> Result<Vec<Device>> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        // SAFETY: context and status are alive.
        let list = self.fenced(|| unsafe {
            api.eager_c_api
                .TFE_ContextListDevices(self.as_ptr(), status.as_ptr())
        })?;
        status.check()?;
        // SAFETY: the caller of the function owns the list.
        unsafe { device::from_owned_list(list, api) }
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
        self.fenced(|| unsafe {
            let (c, status) = (&api.eager_c_api, status.as_ptr());
            c.TFE_ContextExportRunMetadata(self.as_ptr(), buffer.as_ptr(), status);
            c.TFE_ContextDisableRunMetadata(self.as_ptr());
        })?;
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Executes an op. What a function throws passes this and is for the caller to fence: one fence
    /// of all costs less than one of each.
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
        let cancellation = self.cancellation.as_ref();
        cancellation.map_or(Ok(()), |by| self.begin(by))?;
        let device = self.device.as_ref();
        // SAFETY: the context is alive, and the pool is its own.
        let op = unsafe {
            self.inner
                .ops
                .take(api, self.as_ptr(), desc, device, &status)?
        };
        // TensorFlow takes the type of a list from the wrong operand where another list comes
        // before it, and reads past the operands where a list is empty.
        if desc
            .inputs
            .iter()
            .any(|input| !matches!(input.kind, ArgKind::One(_)))
        {
            for (attr, slot) in desc.attrs.iter().zip(call.inferred().iter()) {
                // SAFETY: the op is this call's alone.
                unsafe { set_in_eager(api, &status, op.as_ptr(), attr.name, &slot.value())? };
            }
        }
        // One by one also for lists: their attributes are set, and from the first list on
        // TensorFlow infers none.
        for handle in call.values() {
            if !handle.is_of(&self.inner) {
                return Err(Error::foreign(format!(
                    "an operand of {} is of another eager context",
                    desc.name_str()
                )));
            }
            // SAFETY: the op is this call's alone; the handle is of this context and alive.
            unsafe { c.TFE_OpAddInput(op.as_ptr(), handle.as_ptr(), status.as_ptr()) };
            status.check_ref()?;
        }
        for ((_, attr), value) in desc.given_attrs().zip(attrs) {
            if let AttrValue::Placeholder(name) = value {
                let problem = format!("placeholder '{name}' is for graphs that become functions");
                return Err(bad_attr(desc, attr, problem));
            }
            // SAFETY: the op is this call's alone.
            unsafe { set_in_eager(api, &status, op.as_ptr(), attr.name, value)? };
        }
        if let Some(by) = cancellation {
            let by = by.raw.as_ptr();
            // SAFETY: the op is this call's alone; the manager lives until the op has run.
            unsafe {
                let c = &api.eager_c_api_experimental;
                c.TFE_OpSetCancellationManager(op.as_ptr(), by, status.as_ptr());
            }
            status.check_ref()?;
        }
        let expected = call.output_count();
        // Before memory for so many is asked for.
        c_int_len(expected)?;
        let (mut few, mut many) = ([ptr::null_mut::<TFE_TensorHandle>(); 4], Vec::new());
        let raw = match few.get_mut(..expected) {
            Some(few) => few,
            None => {
                many.resize(expected, ptr::null_mut());
                &mut many[..]
            }
        };
        let mut count: c_int = count_of(raw)?;
        // SAFETY: the op is whole; `raw` has room for `count` handles.
        unsafe {
            let data = raw.as_mut_ptr();
            c.TFE_Execute(op.as_ptr(), data, &raw mut count, status.as_ptr());
        }
        status.check_ref()?;
        let count = usize::try_from(count).unwrap_or(0);
        let mut handles = SmallVec::new();
        for raw in raw.iter().take(count).filter_map(|&raw| NonNull::new(raw)) {
            // SAFETY: the caller of the function owns each handle.
            handles.push(unsafe { TensorHandle::from_owned_ptr(raw, &self.inner) });
        }
        // Nothing says that a reset op forgets its cancellation.
        if cancellation.is_none() {
            op.recycle(&status);
        }
        status.recycle();
        Ok(handles)
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
        refuse_references(desc)?;
        if in_place::writes(desc.name.to_bytes()) {
            in_place::copy_written(call, self, attrs)?;
        }
        let prepared = call.prepare(self, attrs)?;
        let values = self
            .inner
            .fence
            .call(|| self.run(&prepared, attrs, desc))
            .flatten()
            .map_err(|e| e.in_op(desc.name_str()))?;
        prepared.results(values, ())
    }
}

/// Refuses ops on reference variables, which TensorFlow has in graphs only.
fn refuse_references(desc: &'static OpDesc) -> Result<()> {
    let args = desc.inputs.iter().chain(desc.outputs);
    match args.into_iter().find(|arg| arg.is_ref) {
        None => Ok(()),
        Some(arg) => Err(Error::new(ErrorKind::GraphOnly {
            op: desc.name_str().to_owned(),
            arg: text(arg.name).to_owned(),
        })),
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
