//! What an exception leaves behind in an object of TensorFlow.
//!
//! TensorFlow is built without exceptions: what passes its functions frees nothing there and unlocks
//! nothing. The graph or context on which it was called is therefore used no more, since the next call
//! may wait for ever.

use std::sync::atomic::{AtomicBool, Ordering};

use tfp_sys::loader::fenced;

use crate::base::error::{Code, Error, Result};

/// Calls functions on an object as long as none has thrown.
#[derive(Default)]
pub(crate) struct Fence {
    is_broken: AtomicBool,
}

impl Fence {
    /// Calls functions of TensorFlow on the object.
    ///
    /// # Errors
    /// What they throw, and [`Code::FailedPrecondition`] from then on.
    #[inline]
    pub(crate) fn call<T>(&self, functions: impl FnOnce() -> T) -> Result<T> {
        self.check()?;
        fenced(functions).map_err(|thrown| {
            self.is_broken.store(true, Ordering::Release);
            thrown.into()
        })
    }

    /// Refuses an object on which a function has thrown.
    ///
    /// # Errors
    /// [`Code::FailedPrecondition`].
    #[inline]
    pub(crate) fn check(&self) -> Result<()> {
        if self.is_broken() {
            Err(broken())
        } else {
            Ok(())
        }
    }

    /// Whether a function has thrown: then the object is not even deleted.
    #[inline]
    pub(crate) fn is_broken(&self) -> bool {
        self.is_broken.load(Ordering::Acquire)
    }
}

#[cold]
fn broken() -> Error {
    let message = "TensorFlow threw an exception in an earlier call on this graph or context, and may \
                   have left it locked: make another one";
    Error::status(Code::FailedPrecondition, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_errors_of_functions_are_no_exceptions() {
        let fence = Fence::default();
        assert_eq!(fence.call(|| 7), Ok(7));
        assert_eq!(fence.call(|| Err::<(), _>("no")), Ok(Err("no")));
        assert_eq!(fence.check(), Ok(()));
    }

    #[test]
    fn what_has_thrown_is_used_no_more() {
        let fence = Fence::default();
        fence.is_broken.store(true, Ordering::Release);
        let error = fence.call(|| panic!("it is not called")).map(|(): ()| ());
        assert_eq!(
            error.map_err(|error| error.code()),
            Err(Code::FailedPrecondition)
        );
    }
}
