//! No panic crosses into C++, and no C++ exception ends the process.

use std::any::Any;
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tfp_sys as sys;
use tfp_sys::loader::fenced;

use crate::api::api;
use crate::error::{Code, Error, Result};
use crate::status;

/// Calls `body`; a panic becomes an internal error with the panic's message, and a C++ exception one
/// that names its type.
pub(crate) fn guard<T>(body: impl FnOnce() -> Result<T>) -> Result<T> {
    // The state that a panic may leave half-changed belongs to the implementation behind the
    // callback, which gets `&self` and keeps its invariants behind its own locks.
    match catch_unwind(AssertUnwindSafe(|| fenced(body))) {
        Ok(Ok(result)) => result,
        Ok(Err(thrown)) => Err(if thrown.is_no_memory() {
            Error::new(Code::ResourceExhausted, thrown.to_string())
        } else {
            Error::internal(thrown.to_string())
        }),
        Err(payload) => {
            let message = format!("panic: {}", panic_message(&*payload));
            forget_payload(payload);
            Err(Error::internal(message))
        }
    }
}

/// Dropping a payload may itself panic; such a payload is leaked.
fn forget_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(second);
    }
}

fn panic_message(payload: &(dyn Any + Send)) -> &str {
    if let Some(text) = payload.downcast_ref::<&'static str>() {
        text
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text
    } else {
        "with a payload that is not text"
    }
}

/// Calls `body` and sets `status` to its outcome.
///
/// # Safety
/// `status` is null or points to a live `TF_Status`.
pub(crate) unsafe fn report(status: *mut sys::TF_Status, body: impl FnOnce() -> Result<()>) {
    let result = guard(body);
    if let Ok(api) = api() {
        // SAFETY: by this function's contract.
        unsafe { status::write(api, status, &result) };
    }
}

/// Calls `body` for a callback that can't report an error: the error is logged and `otherwise`
/// returned.
pub(crate) fn answer<T>(callback: &str, otherwise: T, body: impl FnOnce() -> Result<T>) -> T {
    guard(body).unwrap_or_else(|error| {
        log(&format!("{callback}: {error}"));
        otherwise
    })
}

/// Calls `register`; the whole body of a `TF_InitKernel`. TensorFlow asks for no result, so an error
/// or a panic is logged.
pub fn init_kernels(register: impl FnOnce() -> Result<()>) {
    answer("TF_InitKernel", (), register);
}

/// Writes one line to standard error, as TensorFlow's own log does. In one call of the system:
/// TensorFlow's threads write there, too, and know nothing of Rust's lock. An error has no place
/// left to be told.
pub fn log(line: &str) {
    let _ = std::io::stderr().write_all(format!("tfp: {line}\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::Code;

    #[test]
    fn panics_become_errors() {
        let error = guard::<()>(|| panic!("broken {}", 7)).unwrap_err();
        assert_eq!(error.code(), Code::Internal);
        assert_eq!(error.message(), "panic: broken 7");
        let error = guard::<()>(|| std::panic::panic_any(5_u8)).unwrap_err();
        assert!(error.message().contains("not text"));
        assert_eq!(answer("test", 3, || panic!("x")), 3);
    }

    /// Standard error belongs to the process, so that this takes one of its own.
    #[test]
    fn a_line_that_can_not_be_written_is_no_panic() {
        const CHILD: &str = "TFP_TEST_LOG";
        if std::env::var_os(CHILD).is_some() {
            log("nobody reads this");
            return;
        }
        let full = std::fs::File::options()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let name = "barrier::tests::a_line_that_can_not_be_written_is_no_panic";
        let done = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", name, "--nocapture"])
            .env(CHILD, "1")
            .stderr(full)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success() && text.contains("1 passed"), "{text}");
    }
}
