//! Ops of an eager context that wait for their next call.

use std::cell::Cell;
use std::ffi::CString;
use std::ptr::{self, NonNull};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tfp_sys::{ClientApi, TFE_Context, TFE_Op};

use crate::base::api::{Status, not_null};
use crate::base::error::Result;
use crate::base::op::OpDesc;

/// How many ops wait at most; more are deleted.
const CAPACITY: usize = 32;

/// What an op was reset for. An op remembers the executor of the thread that reset it, so only
/// that thread takes it as it is, and only while threads keep their executors.
#[derive(Clone, PartialEq, Eq)]
struct Ready {
    desc: *const OpDesc,
    device: Option<Arc<CString>>,
    thread: u64,
    generation: u64,
}

/// An op without operands and attributes, used by nobody.
struct IdleOp {
    raw: NonNull<TFE_Op>,
    ready: Ready,
}

// SAFETY: an idle op has no thread; whoever takes it from the pool has it alone. The description's
// address is only compared.
unsafe impl Send for IdleOp {}

/// The idle ops of a context.
#[derive(Default)]
pub(super) struct OpPool {
    // The op that waited longest is first.
    idle: Mutex<Vec<IdleOp>>,
    // Counts changes of the threads' executors.
    generation: AtomicU64,
}

/// An op that a call fills and executes.
pub(super) struct BusyOp<'c> {
    raw: NonNull<TFE_Op>,
    api: &'static ClientApi,
    pool: &'c OpPool,
    ready: Ready,
}

/// Returns the number of this thread, which no other thread of the process has or had.
pub(super) fn thread_number() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    thread_local!(static NUMBER: Cell<u64> = const { Cell::new(0) });
    NUMBER.with(|number| {
        if number.get() == 0 {
            number.set(NEXT.fetch_add(1, Ordering::Relaxed));
        }
        number.get()
    })
}

impl OpPool {
    /// Forgets which executor each op would use; called when a thread's executor changes.
    pub(super) fn executors_changed(&self) {
        self.generation.fetch_add(1, Ordering::AcqRel);
    }

    /// Deletes the idle ops.
    ///
    /// # Safety
    /// The context of the ops is alive.
    pub(super) unsafe fn clear(&mut self, api: &ClientApi) {
        let idle = std::mem::take(self.idle.get_mut().unwrap_or_else(PoisonError::into_inner));
        for op in idle {
            // SAFETY: the op is alive and idle, and this is its end.
            unsafe { api.eager_c_api.TFE_DeleteOp(op.raw.as_ptr()) };
        }
    }

    /// Takes an op for a call: one that was made ready for the same op, one that is reset, or a
    /// new one.
    ///
    /// # Safety
    /// `context` is alive and the one whose ops this pool keeps.
    pub(super) unsafe fn take<'c>(
        &'c self,
        api: &'static ClientApi,
        context: *mut TFE_Context,
        desc: &'static OpDesc,
        device: Option<&Arc<CString>>,
        status: &Status,
    ) -> Result<BusyOp<'c>> {
        let ready = Ready {
            desc: ptr::from_ref(desc),
            device: device.cloned(),
            thread: thread_number(),
            generation: self.generation.load(Ordering::Acquire),
        };
        let (found, is_ready) = {
            let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
            match idle.iter().rposition(|op| op.ready == ready) {
                Some(last) => (Some(idle.swap_remove(last)), true),
                None if idle.len() == CAPACITY => (Some(idle.remove(0)), false),
                None => (None, false),
            }
        };
        let busy = |raw, ready| BusyOp {
            raw,
            api,
            pool: self,
            ready,
        };
        if let Some(op) = found {
            let op = busy(op.raw, ready);
            if !is_ready {
                op.reset(status)?;
            }
            return Ok(op);
        }
        let c = &api.eager_c_api;
        // SAFETY: context, name and status are alive.
        let raw = unsafe { c.TFE_NewOp(context, desc.name.as_ptr(), status.as_ptr()) };
        status.check_ref()?;
        let raw = not_null(raw, "TFE_NewOp")?;
        let op = busy(raw, ready);
        if let Some(device) = device {
            // SAFETY: op, name and status are alive.
            unsafe { c.TFE_OpSetDevice(raw.as_ptr(), device.as_ptr(), status.as_ptr()) };
            status.check_ref()?;
        }
        Ok(op)
    }
}

impl BusyOp<'_> {
    pub(super) fn as_ptr(&self) -> *mut TFE_Op {
        self.raw.as_ptr()
    }

    /// Makes the op as new, for the op and device that it is ready for.
    fn reset(&self, status: &Status) -> Result<()> {
        let device = self.ready.device.as_ref();
        let device = device.map_or(ptr::null(), |device| device.as_ptr());
        // SAFETY: descriptions live until the process ends.
        let name = unsafe { (*self.ready.desc).name };
        let c = &self.api.eager_c_api_experimental;
        // SAFETY: the op is this call's alone; names and status are alive.
        unsafe { c.TFE_OpReset(self.as_ptr(), name.as_ptr(), device, status.as_ptr()) };
        status.check_ref()
    }

    /// Returns the op to the pool. It is reset first, so that it holds no operand.
    pub(super) fn recycle(self, status: &Status) {
        if self.reset(status).is_err() {
            return;
        }
        let mut idle = self
            .pool
            .idle
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if idle.len() == CAPACITY {
            return;
        }
        let op = std::mem::ManuallyDrop::new(self);
        idle.push(IdleOp {
            raw: op.raw,
            // SAFETY: the op is not dropped, so that this is the only use of what is moved out.
            ready: unsafe { ptr::read(&raw const op.ready) },
        });
    }
}

impl Drop for BusyOp<'_> {
    fn drop(&mut self) {
        // SAFETY: the op is alive, and this is its end.
        unsafe { self.api.eager_c_api.TFE_DeleteOp(self.raw.as_ptr()) };
    }
}
