//! Objects of TensorFlow that several owners share, and that any thread may use.

use std::ptr::NonNull;

use tfp_sys::{ClientApi, TFE_CancellationManager, TFE_Executor};

use crate::base::api::not_null;
use crate::base::error::Result;

/// A type of the C API whose objects guard themselves.
pub(super) trait Guarded {
    /// Ends an object, or one reference to it.
    ///
    /// # Safety
    /// The object is alive, and the caller does not use it again.
    unsafe fn delete(api: &ClientApi, raw: *mut Self);
}

impl Guarded for TFE_Executor {
    unsafe fn delete(api: &ClientApi, raw: *mut Self) {
        // SAFETY: by the contract of this function.
        unsafe { api.eager_c_api_experimental.TFE_DeleteExecutor(raw) };
    }
}

impl Guarded for TFE_CancellationManager {
    unsafe fn delete(api: &ClientApi, raw: *mut Self) {
        let c = &api.eager_c_api_experimental;
        // SAFETY: by the contract of this function.
        unsafe { c.TFE_DeleteCancellationManager(raw) };
    }
}

/// An object of the C API, alive as long as this is.
pub(super) struct Owned<T: Guarded> {
    raw: NonNull<T>,
    pub(super) api: &'static ClientApi,
}

// SAFETY: objects of guarded types may be used and deleted on any thread.
unsafe impl<T: Guarded> Send for Owned<T> {}
// SAFETY: as above.
unsafe impl<T: Guarded> Sync for Owned<T> {}

impl<T: Guarded> Owned<T> {
    /// Takes what `function` of the C API returned.
    ///
    /// # Safety
    /// `raw` is null or an object, or a reference to one, that nothing else deletes.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`](crate::ErrorKind::Internal) for null.
    pub(super) unsafe fn from_owned_ptr(
        raw: *mut T,
        api: &'static ClientApi,
        function: &str,
    ) -> Result<Self> {
        let raw = not_null(raw, function)?;
        Ok(Self { raw, api })
    }

    pub(super) fn as_ptr(&self) -> *mut T {
        self.raw.as_ptr()
    }
}

impl<T: Guarded> Drop for Owned<T> {
    fn drop(&mut self) {
        // SAFETY: the object is alive, and this is the end of its owner.
        unsafe { T::delete(self.api, self.raw.as_ptr()) };
    }
}
