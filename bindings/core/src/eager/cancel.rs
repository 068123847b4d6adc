//! Ends eager ops from another thread.

use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use tfp_sys::{ClientApi, TFE_CancellationManager};

use crate::base::api::api;
use crate::base::error::{Code, Error, ErrorKind, Result};

/// TensorFlow's cancellation manager, alive as long as an op may look at it.
pub(super) struct RawCancellation {
    raw: NonNull<TFE_CancellationManager>,
    api: &'static ClientApi,
}

// SAFETY: a cancellation manager guards itself.
unsafe impl Send for RawCancellation {}
// SAFETY: as above.
unsafe impl Sync for RawCancellation {}

impl RawCancellation {
    pub(super) fn as_ptr(&self) -> *mut TFE_CancellationManager {
        self.raw.as_ptr()
    }

    pub(super) fn is_cancelled(&self) -> bool {
        let c = &self.api.eager_c_api_experimental;
        // SAFETY: the manager is alive.
        unsafe {
            c.TFE_CancellationManagerIsCancelling(self.as_ptr())
                || c.TFE_CancellationManagerIsCancelled(self.as_ptr())
        }
    }
}

impl Drop for RawCancellation {
    fn drop(&mut self) {
        let c = &self.api.eager_c_api_experimental;
        // SAFETY: the manager is alive, no op looks at it, and this is its end.
        unsafe { c.TFE_DeleteCancellationManager(self.as_ptr()) };
    }
}

/// Ends the ops of contexts that [`EagerContext::cancelled_by`](super::EagerContext::cancelled_by) made
/// with it.
///
/// A clone is the same cancellation. It is cancelled once and for all: later ops need another one.
#[derive(Clone)]
pub struct Cancellation {
    pub(super) raw: Arc<RawCancellation>,
}

impl Cancellation {
    /// Makes a cancellation that nobody has asked for yet.
    ///
    /// # Errors
    /// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there.
    pub fn new() -> Result<Self> {
        let api = api()?;
        // SAFETY: the function has no precondition.
        let raw = unsafe { api.eager_c_api_experimental.TFE_NewCancellationManager() };
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                raw: Arc::new(RawCancellation { raw, api }),
            }),
            None => Err(Error::internal("TFE_NewCancellationManager returned null")),
        }
    }

    /// Ends the ops: those that are going on end with [`Code::Cancelled`](crate::Code::Cancelled) where
    /// they wait or where a loop begins another iteration, and later ones before they begin. Any thread may call it.
    pub fn cancel(&self) {
        let c = &self.raw.api.eager_c_api_experimental;
        // SAFETY: the manager is alive.
        unsafe { c.TFE_CancellationManagerStartCancel(self.raw.as_ptr()) };
    }

    /// Whether somebody has called [`Self::cancel`].
    #[must_use]
    pub fn is_cancelled(&self) -> bool {
        self.raw.is_cancelled()
    }
}

impl Cancellation {
    /// Refuses an op that was cancelled before it begins.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            return Err(Error::new(ErrorKind::Status {
                code: Code::Cancelled,
                op: String::new(),
                message: "it was cancelled before it began".to_owned(),
                payloads: Vec::new(),
            }));
        }
        Ok(())
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cancelled = self.is_cancelled();
        f.debug_struct("Cancellation")
            .field("cancelled", &cancelled)
            .finish()
    }
}
