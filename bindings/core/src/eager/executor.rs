//! Executors: what runs a thread's ops, immediately or in the background.

use std::ptr::NonNull;
use std::sync::Arc;

use tfp_sys::{ClientApi, TFE_Executor};

use super::context::EagerContext;
use crate::base::api::Status;
use crate::base::error::{Error, Result};

/// TensorFlow's executor, alive as long as a thread may use it.
pub(super) struct RawExecutor {
    raw: NonNull<TFE_Executor>,
    api: &'static ClientApi,
}

// SAFETY: an executor guards itself.
unsafe impl Send for RawExecutor {}
// SAFETY: as above.
unsafe impl Sync for RawExecutor {}

impl RawExecutor {
    fn as_ptr(&self) -> *mut TFE_Executor {
        self.raw.as_ptr()
    }
}

impl Drop for RawExecutor {
    fn drop(&mut self) {
        let c = &self.api.eager_c_api_experimental;
        // SAFETY: the executor is alive, and this reference to it ends.
        unsafe { c.TFE_DeleteExecutor(self.as_ptr()) };
    }
}

/// What runs the ops of a thread.
pub struct Executor {
    // Before the context may go, the executor does.
    raw: Arc<RawExecutor>,
    context: EagerContext,
}

impl Executor {
    /// Makes an executor, which no thread uses yet. `in_flight` limits the ops that wait; 0 does not.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when TensorFlow returns none.
    pub fn new(context: &EagerContext, is_async: bool, in_flight: u16) -> Result<Self> {
        let c = &context.api().eager_c_api_experimental;
        // SAFETY: the function has no precondition.
        let raw = unsafe { c.TFE_NewExecutor(is_async, true, in_flight.into()) };
        Self::from_raw(raw, context)
    }

    pub(super) fn of_thread(context: &EagerContext) -> Result<Self> {
        let c = &context.api().eager_c_api_experimental;
        // SAFETY: the context is alive; the caller owns the reference that is returned.
        let raw = unsafe { c.TFE_ContextGetExecutorForThread(context.as_ptr()) };
        Self::from_raw(raw, context)
    }

    fn from_raw(raw: *mut TFE_Executor, context: &EagerContext) -> Result<Self> {
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw: Arc::new(RawExecutor {
                    raw,
                    api: context.api(),
                }),
                context: context.clone(),
            }),
            None => Err(Error::internal("TensorFlow returned a null executor")),
        }
    }

    /// Makes this the executor of the current thread, which keeps it until it has another one or the
    /// context ends.
    pub fn use_for_thread(&self) {
        let c = &self.context.api().eager_c_api_experimental;
        // SAFETY: context and executor are alive; TensorFlow keeps the executor while its ops wait.
        unsafe { c.TFE_ContextSetExecutorForThread(self.context.as_ptr(), self.raw.as_ptr()) };
        self.context.keep_executor(&self.raw);
    }

    /// Whether ops run in the background.
    #[must_use]
    pub fn is_async(&self) -> bool {
        // SAFETY: the executor is alive.
        unsafe {
            self.context
                .api()
                .eager_c_api_experimental
                .TFE_ExecutorIsAsync(self.raw.as_ptr())
        }
    }

    /// Waits until all ops have run.
    ///
    /// # Errors
    /// The first error of an op; it stays until [`Self::clear_error`].
    pub fn wait(&self) -> Result<()> {
        let status = Status::new(self.context.api())?;
        let c = &self.context.api().eager_c_api_experimental;
        // SAFETY: executor and status are alive.
        unsafe { c.TFE_ExecutorWaitForAllPendingNodes(self.raw.as_ptr(), status.as_ptr()) };
        status.check()
    }

    /// Forgets an error, so that ops run again.
    pub fn clear_error(&self) {
        // SAFETY: the executor is alive.
        unsafe {
            self.context
                .api()
                .eager_c_api_experimental
                .TFE_ExecutorClearError(self.raw.as_ptr());
        }
    }
}
