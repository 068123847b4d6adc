//! Contexts whose ops another thread can end.

use std::sync::{Arc, PoisonError};

use super::EagerContext;
use crate::base::error::Result;
use crate::eager::cancel::Cancellation;

impl EagerContext {
    /// Returns the context with ops, and calls of functions, that a [`Cancellation`] ends. Tensors are
    /// those of the one context, and variables too.
    ///
    /// An executor in the background keeps the cancellation until the context ends.
    #[must_use]
    pub fn cancelled_by(&self, cancellation: &Cancellation) -> Self {
        let mut context = self.clone();
        context.cancellation = Some(cancellation.clone());
        context
    }

    /// Refuses an op that was cancelled, and keeps what one in the background may look at.
    pub(super) fn begin(&self, cancellation: &Cancellation) -> Result<()> {
        cancellation.check()?;
        if self.thread_executor()?.is_async() {
            let kept = self.inner.cancellations.lock();
            let mut kept = kept.unwrap_or_else(PoisonError::into_inner);
            let raw = &cancellation.raw;
            if !kept.iter().any(|each| Arc::ptr_eq(each, raw)) {
                kept.push(Arc::clone(raw));
            }
        }
        Ok(())
    }
}
