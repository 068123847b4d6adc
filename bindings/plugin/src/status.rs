//! `TF_Status`, owned and borrowed.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char};
use std::ptr::NonNull;

use tfp_sys as sys;

use crate::api::{Api, api};
use crate::error::{Code, Error, Result};

/// An owned `TF_Status`.
pub(crate) struct Status {
    raw: NonNull<sys::TF_Status>,
    api: &'static Api,
}

impl Status {
    pub(crate) fn new() -> Result<Self> {
        let api = api()?;
        // SAFETY: the function takes nothing and returns a new object.
        let raw = unsafe { api.tf_status.TF_NewStatus() };
        let raw = NonNull::new(raw)
            .ok_or_else(|| Error::new(Code::ResourceExhausted, "TF_NewStatus returned null"))?;
        Ok(Self { raw, api })
    }

    pub(crate) fn as_ptr(&self) -> *mut sys::TF_Status {
        self.raw.as_ptr()
    }

    pub(crate) fn api(&self) -> &'static Api {
        self.api
    }

    /// The outcome of the last call that got this status; the status is OK afterwards.
    pub(crate) fn take(&self) -> Result<()> {
        // SAFETY: `raw` is a live status that this object owns.
        match unsafe { read(self.api, self.raw.as_ptr()) } {
            Ok(()) => Ok(()),
            Err(error) => {
                // SAFETY: as above.
                unsafe { write_ok(self.api, self.raw.as_ptr()) };
                Err(error)
            }
        }
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: `raw` is owned and not used again.
        unsafe { self.api.tf_status.TF_DeleteStatus(self.raw.as_ptr()) }
    }
}

thread_local! {
    static SPARE: Cell<Option<Status>> = const { Cell::new(None) };
}

/// Calls `body` with a status of this thread, so that a call costs no allocation.
pub(crate) fn with_status<T>(body: impl FnOnce(&Status) -> Result<T>) -> Result<T> {
    let spare = SPARE.try_with(Cell::take).ok().flatten();
    let status = match spare {
        Some(status) => status,
        None => Status::new()?,
    };
    let result = body(&status);
    // During thread exit the cell may be gone: the status is then simply freed.
    let mut keep = Some(status);
    let _ = SPARE.try_with(|cell| cell.set(keep.take()));
    result
}

/// The state of a status as a result.
///
/// # Safety
/// `status` points to a live `TF_Status`.
#[inline]
pub(crate) unsafe fn read(api: &Api, status: *const sys::TF_Status) -> Result<()> {
    // SAFETY: by this function's contract.
    let code = unsafe { api.tf_status.TF_GetCode(status) };
    if code == sys::TSL_OK {
        return Ok(());
    }
    // SAFETY: by this function's contract.
    unsafe { read_error(api, status, code) }
}

/// # Safety
/// As [`read`].
#[cold]
unsafe fn read_error(api: &Api, status: *const sys::TF_Status, code: sys::TSL_Code) -> Result<()> {
    let Some(code) = Code::from_raw(code) else {
        return Ok(());
    };
    // SAFETY: as above; the message lives as long as the status is unchanged.
    let message = unsafe { text(api.tf_status.TF_Message(status)) };
    Err(Error::new(code, message))
}

/// Sets a status to `result`.
///
/// # Safety
/// `status` is null (then nothing happens) or points to a live `TF_Status`.
pub(crate) unsafe fn write(api: &Api, status: *mut sys::TF_Status, result: &Result<()>) {
    if status.is_null() {
        return;
    }
    match result {
        // SAFETY: by this function's contract.
        Ok(()) => unsafe { write_ok(api, status) },
        Err(error) => {
            let message = c_text(error.message());
            // SAFETY: by this function's contract; the message is copied by the callee.
            unsafe {
                api.tf_status
                    .TF_SetStatus(status, error.code().to_raw(), message.as_ptr())
            }
        }
    }
}

unsafe fn write_ok(api: &Api, status: *mut sys::TF_Status) {
    // SAFETY: the caller vouches for `status`; the literal is NUL-terminated.
    unsafe {
        api.tf_status
            .TF_SetStatus(status, sys::TSL_OK, c"".as_ptr())
    }
}

/// A copy of a C string; empty for null.
///
/// # Safety
/// `raw` is null or NUL-terminated.
pub(crate) unsafe fn text(raw: *const c_char) -> String {
    if raw.is_null() {
        String::new()
    } else {
        // SAFETY: by this function's contract.
        unsafe { CStr::from_ptr(raw) }
            .to_string_lossy()
            .into_owned()
    }
}

/// `text` for C; it ends at an embedded NUL.
pub(crate) fn c_text(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}
