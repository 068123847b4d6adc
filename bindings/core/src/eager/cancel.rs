//! Ends eager ops from another thread.

use std::fmt;
use std::sync::Arc;

use tfp_sys::TFE_CancellationManager;
use tfp_sys::loader::fenced;

use super::shared::Owned;
use crate::base::api::api;
use crate::base::error::{Code, Error, Result};

/// TensorFlow's cancellation manager, alive as long as an op may look at it.
pub(super) type RawCancellation = Owned<TFE_CancellationManager>;

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
        let c = &api.eager_c_api_experimental;
        // SAFETY: the function has no precondition; nothing else deletes what it makes.
        let raw = fenced(|| unsafe {
            let raw = c.TFE_NewCancellationManager();
            Owned::from_owned_ptr(raw, api, "TFE_NewCancellationManager")
        })??;
        Ok(Self { raw: Arc::new(raw) })
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
        let c = &self.raw.api.eager_c_api_experimental;
        let raw = self.raw.as_ptr();
        // SAFETY: the manager is alive.
        unsafe {
            c.TFE_CancellationManagerIsCancelling(raw) || c.TFE_CancellationManagerIsCancelled(raw)
        }
    }

    /// Refuses an op that was cancelled before it begins.
    pub(super) fn check(&self) -> Result<()> {
        if self.is_cancelled() {
            let message = "it was cancelled before it began";
            return Err(Error::status(Code::Cancelled, message));
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
