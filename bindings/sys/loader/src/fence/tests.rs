use std::cell::Cell;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::fenced;

unsafe extern "C" {
    fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
    fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
}
unsafe extern "C-unwind" {
    fn _Unwind_RaiseException(exception: *mut Foreign) -> c_int;
}

/// A symbol of C++'s library.
fn cpp(name: &CStr) -> *mut c_void {
    // SAFETY: C strings; the library of the language is safe to load.
    let found = unsafe { dlsym(dlopen(c"libstdc++.so.6".as_ptr(), 1), name.as_ptr()) };
    assert!(!found.is_null(), "{name:?}");
    found
}

/// Throws as C++ does where there is no memory.
fn throw_bad_alloc() {
    // SAFETY: `std::__throw_bad_alloc()` has no arguments.
    let throw = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn()>(cpp(
            c"_ZSt17__throw_bad_allocv",
        ))
    };
    // SAFETY: as above.
    unsafe { throw() };
}

/// How many C++ exceptions of this thread nobody has caught.
fn uncaught() -> c_int {
    // SAFETY: `std::uncaught_exceptions()` has no arguments.
    let count = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(cpp(
            c"_ZSt19uncaught_exceptionsv",
        ))
    };
    // SAFETY: as above.
    unsafe { count() }
}

/// An exception of another language.
#[repr(C, align(16))]
struct Foreign {
    class: u64,
    cleanup: extern "C" fn(c_int, *mut Foreign),
    private: [usize; 6],
    ended: *const Cell<bool>,
}

extern "C" fn freed(_reason: c_int, exception: *mut Foreign) {
    // SAFETY: it is what the test made, and the cell outlives it.
    unsafe { (*(*exception).ended).set(true) };
}

struct Dropped<'a>(&'a Cell<u32>);

impl Drop for Dropped<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() + 1);
    }
}

#[test]
fn a_result_and_an_error_pass() {
    assert_eq!(fenced(|| 7), Ok(7));
    assert_eq!(fenced(|| Err::<(), _>("no")), Ok(Err("no")));
}

#[test]
fn no_memory_in_cpp_is_an_error() {
    for _ in 0..3 {
        let error = fenced(throw_bad_alloc).unwrap_err();
        assert!(error.is_no_memory());
        assert!(error.to_string().contains("std::bad_alloc"), "{error}");
        assert_eq!(uncaught(), 0);
    }
}

#[test]
fn other_exceptions_are_named() {
    // SAFETY: `std::__throw_length_error(char const*)`.
    let throw = unsafe {
        std::mem::transmute::<*mut c_void, unsafe extern "C-unwind" fn(*const c_char)>(cpp(
            c"_ZSt20__throw_length_errorPKc",
        ))
    };
    // SAFETY: a C string.
    let error = fenced(|| unsafe { throw(c"too long".as_ptr()) }).unwrap_err();
    assert!(!error.is_no_memory());
    assert!(error.to_string().contains("length_error"), "{error}");
}

#[test]
fn what_rust_frames_own_is_dropped() {
    let count = Cell::new(0);
    let error = fenced(|| {
        let _outer = Dropped(&count);
        let own = Dropped(&count);
        throw_bad_alloc();
        drop(own);
    });
    assert!(error.is_err());
    assert_eq!(count.get(), 2);
}

#[test]
fn an_exception_of_another_language_is_freed() {
    let ended = Cell::new(false);
    let mut exception = Foreign {
        class: u64::from_be_bytes(*b"TFPTEST\0"),
        cleanup: freed,
        private: [0; 6],
        ended: &raw const ended,
    };
    // SAFETY: it lives until it is freed.
    let error = fenced(|| unsafe { _Unwind_RaiseException(&raw mut exception) }).unwrap_err();
    assert!(error.to_string().contains("unknown"), "{error}");
    assert!(ended.get());
}

#[test]
fn a_panic_goes_on() {
    let caught = catch_unwind(AssertUnwindSafe(|| fenced(|| panic!("mine"))));
    assert_eq!(*caught.unwrap_err().downcast::<&str>().unwrap(), "mine");
}

#[test]
fn the_inner_fence_catches() {
    let error = fenced(|| {
        let inner = fenced(throw_bad_alloc);
        assert!(inner.unwrap_err().is_no_memory());
        throw_bad_alloc();
    });
    assert!(error.unwrap_err().is_no_memory());
    assert_eq!(uncaught(), 0);
}
