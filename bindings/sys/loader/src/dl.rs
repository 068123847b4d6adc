//! The dynamic linker's three functions, declared by hand.

use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr::NonNull;

const RTLD_LAZY: c_int = 1;
const RTLD_NOLOAD: c_int = 4;
const RTLD_GLOBAL: c_int = 0x100;
const RTLD_DEFAULT: *mut c_void = std::ptr::null_mut();

unsafe extern "C" {
    fn dlopen(filename: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(handle: *mut c_void, symbol: *const c_char) -> *mut c_void;
    fn dlerror() -> *mut c_char;
}

/// A library that stays open until the process ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Handle(NonNull<c_void>);

// SAFETY: a handle is a number to the dynamic linker, whose functions may be called from any thread.
unsafe impl Send for Handle {}
// SAFETY: as above; `dlsym` does not change the handle.
unsafe impl Sync for Handle {}

/// Opens a library for the whole process; its symbols become visible to later libraries, which is
/// what a plug-in that TensorFlow loads afterwards needs.
///
/// # Errors
/// The dynamic linker's message.
pub(crate) fn open(path: &OsStr) -> Result<Handle, String> {
    let Ok(path) = CString::new(path.as_bytes()) else {
        return Err("the path holds a NUL byte".to_owned());
    };
    // SAFETY: `path` is a C string; opening a library runs its initialisers, which are TensorFlow's.
    let handle = unsafe { dlopen(path.as_ptr(), RTLD_LAZY | RTLD_GLOBAL) };
    NonNull::new(handle).map(Handle).ok_or_else(last_error)
}

/// Returns a library that the process has loaded under this name already, or `None`.
pub(crate) fn loaded(name: &CStr) -> Option<Handle> {
    // SAFETY: `name` is a C string; `RTLD_NOLOAD` runs no initialiser.
    let handle = unsafe { dlopen(name.as_ptr(), RTLD_LAZY | RTLD_NOLOAD) };
    NonNull::new(handle).map(Handle)
}

/// Returns the address of a symbol in a library or in what the library depends on; null for none.
pub(crate) fn symbol(handle: Handle, name: &CStr) -> *mut c_void {
    // SAFETY: the handle came from `dlopen` and is never closed; `name` is a C string.
    unsafe { dlsym(handle.0.as_ptr(), name.as_ptr()) }
}

/// Returns the address of a symbol in the process's global scope; null for none.
pub(crate) fn process_symbol(name: &CStr) -> *mut c_void {
    // SAFETY: `RTLD_DEFAULT` is always valid; `name` is a C string.
    unsafe { dlsym(RTLD_DEFAULT, name.as_ptr()) }
}

fn last_error() -> String {
    // SAFETY: `dlerror` returns null or a C string that lives until this thread's next call.
    let message = unsafe { dlerror() };
    if message.is_null() {
        return "no reason given".to_owned();
    }
    // SAFETY: not null, so a C string as above; it is copied before any further call.
    unsafe { CStr::from_ptr(message) }
        .to_string_lossy()
        .into_owned()
}
