//! The table of TensorFlow's functions, and statuses.

use std::cell::Cell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::ptr::NonNull;

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_Code, TF_OK, TF_Status};

use crate::base::error::{Code, Error, ErrorKind, Result};

/// Returns TensorFlow's functions; the first call finds and opens its libraries.
///
/// # Errors
/// [`ErrorKind::Load`] with every place that was tried.
#[inline]
pub fn api() -> Result<&'static ClientApi> {
    ClientApi::global().map_err(load_error)
}

#[cold]
fn load_error(error: impl std::fmt::Display) -> Error {
    Error::new(ErrorKind::Load {
        message: error.to_string(),
    })
}

/// Converts a name to a C string.
///
/// # Errors
/// [`ErrorKind::Argument`] for a NUL byte within.
pub(crate) fn c_string(text: &str) -> Result<CString> {
    Ok(CString::new(text)?)
}

/// Copies a C string that TensorFlow returned; the empty text for null.
///
/// # Safety
/// `text` is null or a C string that lives for the duration of the call.
pub(crate) unsafe fn text_from_ptr(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: not null, so a C string by the contract of this function.
    unsafe { CStr::from_ptr(text) }
        .to_string_lossy()
        .into_owned()
}

/// Returns the pointer that `function` of TensorFlow returned.
///
/// # Errors
/// [`ErrorKind::Internal`] for null.
#[inline]
pub(crate) fn not_null<T>(raw: *mut T, function: &str) -> Result<NonNull<T>> {
    NonNull::new(raw).ok_or_else(|| Error::internal(format!("{function} returned null")))
}

/// A status object, borrowed from this thread's store for the duration of a call.
pub(crate) struct Status {
    raw: NonNull<TF_Status>,
    api: &'static ClientApi,
}

/// The one idle status of a thread, kept so that calls do not allocate.
struct Idle(Cell<Option<Status>>);

thread_local! {
    static IDLE: Idle = const { Idle(Cell::new(None)) };
}

impl Status {
    /// Returns a status that says OK.
    ///
    /// # Errors
    /// [`ErrorKind::Internal`] when TensorFlow returns none.
    #[inline]
    pub(crate) fn new(api: &'static ClientApi) -> Result<Self> {
        if let Ok(Some(status)) = IDLE.try_with(|idle| idle.0.take()) {
            return Ok(status);
        }
        // SAFETY: the function has no precondition.
        let raw = fenced(|| unsafe { api.tf_status.TF_NewStatus() })?;
        let raw = not_null(raw, "TF_NewStatus")?;
        Ok(Self { raw, api })
    }

    /// Returns the pointer to hand to a function.
    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut TF_Status {
        self.raw.as_ptr()
    }

    /// Returns the error that the last function left in the status, if any, and recycles it.
    #[inline]
    pub(crate) fn check(self) -> Result<()> {
        // SAFETY: the status is alive.
        let code = unsafe { self.api.tf_status.TF_GetCode(self.raw.as_ptr()) };
        if code.0 == 0 {
            self.recycle();
            Ok(())
        } else {
            Err(self.to_error(code))
        }
    }

    /// As [`Self::check`], for a status that is used again; it says OK afterwards.
    #[inline]
    pub(crate) fn check_ref(&self) -> Result<()> {
        // SAFETY: the status is alive.
        let code = unsafe { self.api.tf_status.TF_GetCode(self.raw.as_ptr()) };
        if code.0 == 0 {
            return Ok(());
        }
        let error = self.to_error(code);
        // SAFETY: the status is alive, the message a C string. It says OK again for its next use.
        unsafe {
            self.api
                .tf_status
                .TF_SetStatus(self.raw.as_ptr(), TF_OK, c"".as_ptr())
        };
        Err(error)
    }

    /// Gives a status that says OK back to the thread.
    #[inline]
    pub(crate) fn recycle(self) {
        // A replaced one, or this one while the thread ends, is deleted by its destructor.
        let _ = IDLE.try_with(|idle| drop(idle.0.replace(Some(self))));
    }

    #[cold]
    fn to_error(&self, code: TF_Code) -> Error {
        let mut payloads: Vec<(String, Vec<u8>)> = Vec::new();
        // SAFETY: the status is alive and its message lives as long as it does; the callback gets
        // the address of `payloads`, which outlives the call.
        let message = unsafe {
            self.api.tf_status.TF_ForEachPayload(
                self.raw.as_ptr(),
                Some(push_payload),
                (&raw mut payloads).cast(),
            );
            text_from_ptr(self.api.tf_status.TF_Message(self.raw.as_ptr()))
        };
        let (code, op) = (Code::from_number(code.0), String::new());
        Error::new(ErrorKind::Status {
            code,
            op,
            message,
            payloads,
        })
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: the status is alive, and this is its end.
        unsafe { self.api.tf_status.TF_DeleteStatus(self.raw.as_ptr()) };
    }
}

unsafe extern "C" fn push_payload(key: *const c_char, value: *const c_char, list: *mut c_void) {
    // SAFETY: `list` is the vector that `to_error` passed, which nothing else uses meanwhile.
    let list = unsafe { &mut *list.cast::<Vec<(String, Vec<u8>)>>() };
    // SAFETY: TensorFlow hands C strings that live during the callback.
    let key = unsafe { text_from_ptr(key) };
    let value = if value.is_null() {
        Vec::new()
    } else {
        // SAFETY: as above; the C API cuts payloads at a NUL byte.
        unsafe { CStr::from_ptr(value) }.to_bytes().to_vec()
    };
    list.push((key, value));
}
