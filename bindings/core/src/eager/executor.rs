//! Executors: what runs a thread's ops, immediately or in the background.

use std::sync::Arc;

use tfp_sys::TFE_Executor;
use tfp_sys::loader::fenced;

use super::context::EagerContext;
use super::shared::Owned;
use crate::base::api::Status;
use crate::base::error::Result;

/// TensorFlow's executor, alive as long as a thread may use it.
pub(super) type RawExecutor = Owned<TFE_Executor>;

/// What runs the ops of a thread.
pub struct Executor {
    // Before the context may go, the executor does.
    raw: Arc<RawExecutor>,
    context: EagerContext,
}

impl Executor {
    /// Makes an executor, which no thread uses yet. `in_flight` limits the ops that wait; 0 does not. An op
    /// on another task of a cluster is a message of its own, which is an error when the task is gone.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) when TensorFlow returns none.
    pub fn new(context: &EagerContext, is_async: bool, in_flight: u16) -> Result<Self> {
        let c = &context.api().eager_c_api_experimental;
        if is_async {
            context.note_background();
        }
        // SAFETY: the function has no precondition; nothing else deletes what it makes.
        fenced(|| unsafe {
            // Not in a stream: after one has broken, another one waits for ever for the task.
            let raw = c.TFE_NewExecutor(is_async, false, in_flight.into());
            Self::from_owned_ptr(raw, context, "TFE_NewExecutor")
        })?
    }

    pub(super) fn of_thread(context: &EagerContext) -> Result<Self> {
        let c = &context.api().eager_c_api_experimental;
        // SAFETY: the context is alive; the caller owns the reference that is returned.
        context.fenced(|| unsafe {
            let raw = c.TFE_ContextGetExecutorForThread(context.as_ptr());
            Self::from_owned_ptr(raw, context, "TFE_ContextGetExecutorForThread")
        })?
    }

    /// Takes what `function` of the C API returned.
    ///
    /// # Safety
    /// `raw` is null or a reference to an executor that nothing else deletes.
    unsafe fn from_owned_ptr(
        raw: *mut TFE_Executor,
        context: &EagerContext,
        function: &str,
    ) -> Result<Self> {
        // SAFETY: by the contract of this function.
        let raw = unsafe { Owned::from_owned_ptr(raw, context.api(), function)? };
        Ok(Self {
            raw: Arc::new(raw),
            context: context.clone(),
        })
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
        self.context.fenced(|| unsafe {
            c.TFE_ExecutorWaitForAllPendingNodes(self.raw.as_ptr(), status.as_ptr())
        })?;
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
