//! No C++ exception passes what Rust can't let it pass.
//!
//! TensorFlow's functions are C++ and throw where there is no memory. An exception may unwind Rust
//! frames whose calls are `C-unwind`, but `catch_unwind` ends the process for it, and so do a callback,
//! the end of a thread and that of a program. A frame of machine code below them catches whatever is
//! not a panic of Rust.

use std::error::Error;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::fmt;

/// What a function of TensorFlow threw: a C++ exception, or one of another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thrown {
    kind: Option<String>,
}

impl Thrown {
    /// Whether it says that there is no memory.
    #[must_use]
    pub fn is_no_memory(&self) -> bool {
        let kind = self.kind.as_deref();
        kind.is_some_and(|kind| kind.ends_with("bad_alloc"))
    }
}

impl fmt::Display for Thrown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            _ if self.is_no_memory() => {
                f.write_str("TensorFlow has no memory: it threw std::bad_alloc")
            }
            Some(kind) => write!(f, "TensorFlow threw a C++ exception of {kind}"),
            None => f.write_str("TensorFlow threw an exception of an unknown type"),
        }
    }
}

impl Error for Thrown {}

/// Calls `body`; a C++ exception becomes an error that names its type. A panic goes on.
///
/// What `body` owns is dropped. On other systems than Linux, on processors other than x86-64 and
/// 64-bit Arm, and in programs built with `panic = "abort"`, an exception ends the process.
///
/// # Errors
/// What was thrown.
pub fn fenced<T>(body: impl FnOnce() -> T) -> Result<T, Thrown> {
    let mut call = Call {
        body: Some(body),
        result: None,
    };
    let data: *mut _ = &raw mut call;
    // SAFETY: the function gets what it is written for, and has returned or is unwound before `call`
    // goes.
    let thrown = unsafe { frame::fence(run(&call), data.cast()) };
    if let Some(result) = call.result {
        return Ok(result);
    }
    // SAFETY: without a result, the frame gave the exception that it caught.
    let kind = unsafe { frame::end(thrown) };
    Err(Thrown { kind })
}

/// A function to call, and what it gave.
struct Call<F, T> {
    body: Option<F>,
    result: Option<T>,
}

type Run = unsafe extern "C-unwind" fn(*mut c_void);

/// The function that runs a call of this type.
fn run<F: FnOnce() -> T, T>(_: &Call<F, T>) -> Run {
    /// # Safety
    /// `data` points to a `Call<F, T>` that nobody else uses.
    unsafe extern "C-unwind" fn run<F: FnOnce() -> T, T>(data: *mut c_void) {
        // SAFETY: by this function's contract.
        let call = unsafe { &mut *data.cast::<Call<F, T>>() };
        call.result = call.body.take().map(|body| body());
    }
    run::<F, T>
}

#[cfg(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod frame {
    use super::{CStr, Run, c_char, c_int, c_void};
    use std::mem::transmute;

    /// The constants of the unwinder's interface.
    const SEARCH_PHASE: c_int = 1;
    const HANDLER_FRAME: c_int = 4;
    const HANDLER_FOUND: c_int = 6;
    const INSTALL_CONTEXT: c_int = 7;
    const CONTINUE_UNWIND: c_int = 8;
    /// The class of Rust's panics; versions of Rust differ in the order of its bytes.
    const RUST: u64 = u64::from_be_bytes(*b"MOZ\0RUST");
    /// The class of C++ exceptions without its last byte.
    const CPP: u64 = u64::from_be_bytes(*b"GNUCC++\0");

    // Of libgcc, which Rust's library links.
    unsafe extern "C" {
        fn _Unwind_SetGR(context: *mut c_void, register: c_int, value: usize);
        fn _Unwind_SetIP(context: *mut c_void, address: usize);
        fn _Unwind_DeleteException(exception: *mut c_void);
        fn dlopen(name: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }

    /// What the unwinder asks about the frame of [`fence`]: it handles whatever is not Rust's, and goes
    /// on at [`landing`].
    ///
    /// # Safety
    /// Called by the unwinder.
    unsafe extern "C" fn personality(
        _version: c_int,
        actions: c_int,
        class: u64,
        exception: *mut c_void,
        context: *mut c_void,
    ) -> c_int {
        if class == RUST || class == RUST.swap_bytes() {
            return CONTINUE_UNWIND;
        }
        if actions & SEARCH_PHASE != 0 {
            return HANDLER_FOUND;
        }
        // The end of a thread unwinds, too, and is not handled.
        if actions & HANDLER_FRAME == 0 {
            return CONTINUE_UNWIND;
        }
        // SAFETY: the context is the unwinder's. Register 0 is `rax` or `x0`, which hold a result.
        unsafe {
            _Unwind_SetGR(context, 0, exception as usize);
            _Unwind_SetIP(context, landing as *const () as usize);
        }
        INSTALL_CONTEXT
    }

    /// Calls `run(data)`; returns null, or the exception that is not Rust's.
    ///
    /// # Safety
    /// `run` may be called with `data`.
    #[cfg(target_arch = "x86_64")]
    #[unsafe(naked)]
    pub(super) unsafe extern "C-unwind" fn fence(run: Run, data: *mut c_void) -> *mut c_void {
        std::arch::naked_asm!(
            ".cfi_startproc",
            ".cfi_personality 0x1b, {personality}",
            "push rbp",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset rbp, -16",
            "mov rbp, rsp",
            ".cfi_def_cfa_register rbp",
            "mov rax, rdi",
            "mov rdi, rsi",
            "call rax",
            "xor eax, eax",
            "pop rbp",
            ".cfi_def_cfa rsp, 8",
            "ret",
            ".cfi_endproc",
            personality = sym personality,
        )
    }

    /// Where [`fence`] goes on with an exception as its result: it returns.
    ///
    /// # Safety
    /// The unwinder jumps there.
    #[cfg(target_arch = "x86_64")]
    #[unsafe(naked)]
    unsafe extern "C" fn landing() {
        std::arch::naked_asm!("pop rbp", "ret")
    }

    /// As above.
    ///
    /// # Safety
    /// `run` may be called with `data`.
    #[cfg(target_arch = "aarch64")]
    #[unsafe(naked)]
    pub(super) unsafe extern "C-unwind" fn fence(run: Run, data: *mut c_void) -> *mut c_void {
        std::arch::naked_asm!(
            ".cfi_startproc",
            ".cfi_personality 0x1b, {personality}",
            "stp x29, x30, [sp, #-16]!",
            ".cfi_def_cfa_offset 16",
            ".cfi_offset x29, -16",
            ".cfi_offset x30, -8",
            "mov x29, sp",
            ".cfi_def_cfa_register x29",
            "mov x9, x0",
            "mov x0, x1",
            "blr x9",
            "mov x0, xzr",
            "ldp x29, x30, [sp], #16",
            ".cfi_def_cfa sp, 0",
            ".cfi_restore x29",
            ".cfi_restore x30",
            "ret",
            ".cfi_endproc",
            personality = sym personality,
        )
    }

    /// As above.
    ///
    /// # Safety
    /// The unwinder jumps there.
    #[cfg(target_arch = "aarch64")]
    #[unsafe(naked)]
    unsafe extern "C" fn landing() {
        std::arch::naked_asm!("ldp x29, x30, [sp], #16", "ret")
    }

    /// Frees an exception; returns the name of its type if it is of C++.
    ///
    /// # Safety
    /// [`fence`] gave it.
    pub(super) unsafe fn end(exception: *mut c_void) -> Option<String> {
        // SAFETY: an exception begins with its class.
        let class = unsafe { exception.cast::<u64>().read() };
        if class & !0xff == CPP
            && let Some(cpp) = Cpp::find()
        {
            // SAFETY: as C++'s own handler does.
            return unsafe { cpp.end(exception) };
        }
        // SAFETY: nobody handles it any more.
        unsafe { _Unwind_DeleteException(exception) };
        None
    }

    /// What a handler of C++ calls, of the library that TensorFlow brought.
    struct Cpp {
        begin_catch: BeginCatch,
        end_catch: EndCatch,
        current_type: CurrentType,
    }

    type BeginCatch = unsafe extern "C" fn(*mut c_void) -> *mut c_void;
    type EndCatch = unsafe extern "C" fn();
    type CurrentType = unsafe extern "C" fn() -> *const *const c_char;

    impl Cpp {
        fn find() -> Option<Self> {
            const LAZY_IF_LOADED: c_int = 1 | 4;
            // SAFETY: a C string; nothing is loaded.
            let library = unsafe { dlopen(c"libstdc++.so.6".as_ptr(), LAZY_IF_LOADED) };
            if library.is_null() {
                return None;
            }
            let symbol = |name: &CStr| {
                // SAFETY: the library is loaded; a C string.
                let found = unsafe { dlsym(library, name.as_ptr()) };
                (!found.is_null()).then_some(found)
            };
            let begin = symbol(c"__cxa_begin_catch")?;
            let end = symbol(c"__cxa_end_catch")?;
            let current = symbol(c"__cxa_current_exception_type")?;
            // SAFETY: the types are those of the C++ ABI.
            unsafe {
                Some(Self {
                    begin_catch: transmute::<*mut c_void, BeginCatch>(begin),
                    end_catch: transmute::<*mut c_void, EndCatch>(end),
                    current_type: transmute::<*mut c_void, CurrentType>(current),
                })
            }
        }

        /// # Safety
        /// A C++ exception that was caught.
        unsafe fn end(&self, exception: *mut c_void) -> Option<String> {
            // SAFETY: in the order of a handler. A type has a table of functions and then its name.
            unsafe {
                (self.begin_catch)(exception);
                let kind = (self.current_type)();
                let name = (!kind.is_null()).then(|| CStr::from_ptr(*kind.add(1)));
                let name = name.map(|name| name.to_string_lossy().into_owned());
                (self.end_catch)();
                name
            }
        }
    }
}

/// Elsewhere, an exception ends the process.
#[cfg(not(all(
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
)))]
mod frame {
    use super::{Run, c_void};

    pub(super) unsafe fn fence(run: Run, data: *mut c_void) -> *mut c_void {
        // SAFETY: by this function's contract.
        unsafe { run(data) };
        std::ptr::null_mut()
    }

    pub(super) unsafe fn end(_: *mut c_void) -> Option<String> {
        None
    }
}

#[cfg(all(
    test,
    target_os = "linux",
    any(target_arch = "x86_64", target_arch = "aarch64")
))]
mod tests;
