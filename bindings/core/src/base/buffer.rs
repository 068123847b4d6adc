//! Buffers of bytes that TensorFlow fills or reads: serialized protocol buffers.

use std::ffi::c_void;
use std::ptr::NonNull;

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_Buffer};

use crate::base::api::not_null;
use crate::base::error::Result;

/// An empty buffer, for TensorFlow to fill.
pub(crate) struct OutBuffer {
    raw: NonNull<TF_Buffer>,
    api: &'static ClientApi,
}

impl OutBuffer {
    pub(crate) fn new(api: &'static ClientApi) -> Result<Self> {
        // SAFETY: the function has no precondition.
        let raw = fenced(|| unsafe { api.tf_buffer.TF_NewBuffer() })?;
        // SAFETY: a buffer that was just made, or null.
        unsafe { Self::from_owned_ptr(raw, api) }
    }

    /// Takes a buffer that TensorFlow gave away.
    ///
    /// # Safety
    /// `raw` is null or a buffer that nothing else deletes.
    pub(crate) unsafe fn from_owned_ptr(
        raw: *mut TF_Buffer,
        api: &'static ClientApi,
    ) -> Result<Self> {
        let raw = not_null(raw, "TensorFlow, asked for a buffer,")?;
        Ok(Self { raw, api })
    }

    pub(crate) fn as_ptr(&self) -> *mut TF_Buffer {
        self.raw.as_ptr()
    }

    /// Returns the bytes.
    pub(crate) fn as_slice(&self) -> &[u8] {
        // SAFETY: the buffer is alive, and TensorFlow changes it only in calls that get its pointer.
        let buffer = unsafe { self.raw.as_ref() };
        if buffer.data.is_null() || buffer.length == 0 {
            return &[];
        }
        // SAFETY: the buffer owns `length` initialised bytes.
        unsafe { std::slice::from_raw_parts(buffer.data.cast(), buffer.length) }
    }
}

impl Drop for OutBuffer {
    fn drop(&mut self) {
        // SAFETY: the buffer is alive, and this is its end.
        unsafe { self.api.tf_buffer.TF_DeleteBuffer(self.raw.as_ptr()) };
    }
}

/// Lends bytes as a buffer that TensorFlow only reads, for the duration of a call.
pub(crate) fn lend(bytes: &[u8]) -> TF_Buffer {
    TF_Buffer {
        data: bytes.as_ptr().cast::<c_void>(),
        length: bytes.len(),
        data_deallocator: None,
    }
}
