//! `TF_Buffer`.

use std::ffi::c_void;
use std::ptr::NonNull;

use tfp_sys as sys;

use crate::api::{Api, api};
use crate::error::{Error, Result};

/// An owned `TF_Buffer`.
pub(crate) struct Buffer {
    raw: NonNull<sys::TF_Buffer>,
    api: &'static Api,
}

impl Buffer {
    pub(crate) fn new() -> Result<Self> {
        let api = api()?;
        // SAFETY: the function takes nothing and returns a new object.
        let raw = unsafe { api.tf_buffer.TF_NewBuffer() };
        let raw = NonNull::new(raw).ok_or_else(|| Error::internal("TF_NewBuffer returned null"))?;
        Ok(Self { raw, api })
    }

    /// Takes over a buffer that nobody else will delete.
    pub(crate) fn from_owned_ptr(raw: NonNull<sys::TF_Buffer>, api: &'static Api) -> Self {
        Self { raw, api }
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::TF_Buffer {
        self.raw.as_ptr()
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        // SAFETY: the buffer is live and not changed while `self` is borrowed.
        unsafe { bytes(self.raw.as_ref()) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: `raw` is owned and not used again.
        unsafe { self.api.tf_buffer.TF_DeleteBuffer(self.raw.as_ptr()) }
    }
}

/// The contents of a buffer.
///
/// # Safety
/// The buffer's pointer and length describe readable memory that lives as long as the reference.
pub(crate) unsafe fn bytes(buffer: &sys::TF_Buffer) -> &[u8] {
    if buffer.data.is_null() || buffer.length == 0 {
        &[]
    } else {
        // SAFETY: by this function's contract.
        unsafe { std::slice::from_raw_parts(buffer.data.cast(), buffer.length) }
    }
}

/// Hands `contents` over to a buffer, with the function that frees them.
pub(crate) fn fill(buffer: &mut sys::TF_Buffer, contents: Vec<u8>) {
    let contents = contents.into_boxed_slice();
    buffer.length = contents.len();
    buffer.data = Box::into_raw(contents).cast::<c_void>().cast_const();
    buffer.data_deallocator = Some(free);
}

unsafe extern "C" fn free(data: *mut c_void, length: usize) {
    if !data.is_null() {
        let slice = std::ptr::slice_from_raw_parts_mut(data.cast::<u8>(), length);
        // SAFETY: `fill` made the buffer from a box of this length.
        drop(unsafe { Box::from_raw(slice) });
    }
}
