//! What a Python program's TensorFlow is told when it has loaded the device.
//!
//! TensorFlow's C API has no word for a device that XLA does not compile for: Keras' models and
//! `tf.function(jit_compile=True)` would end with an error. The switch is in TensorFlow's Python, so
//! it is Python that turns it, in the interpreter that has loaded this library, if there is one.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;

use tfp_bindings::log;
use tfp_sys_loader::{Process, Symbol, resolve};

/// Under this name the wheel's package finds it, too.
const MODULE: &CStr = c"tfp_plugin._xla";
const FILE: &CStr = c"libtfp.so/_xla.py";
const SOURCE: &str = include_str!("../python/tfp_plugin/_xla.py");
/// `Py_file_input`: the text is that of a module.
const MODULE_TEXT: c_int = 257;

/// Functions of Python's stable ABI, in every version from 3.2 on.
const SYMBOLS: [Symbol; 7] = [
    Symbol::required(c"Py_IsInitialized"),
    Symbol::required(c"PyGILState_Ensure"),
    Symbol::required(c"PyGILState_Release"),
    Symbol::required(c"Py_CompileString"),
    Symbol::required(c"PyImport_ExecCodeModule"),
    Symbol::required(c"Py_DecRef"),
    Symbol::required(c"PyErr_Clear"),
];

/// A `PyObject*`.
type Object = *mut c_void;

/// Executes the module in the interpreter of this process; does nothing where there is none.
///
/// The name of the type of device is one that TensorFlow takes: capital letters and underscores.
pub fn tell(device_type: &str) {
    let Ok(source) = CString::new(format!("{SOURCE}\nautomatic('{device_type}')\n")) else {
        return;
    };
    let Ok(found) = resolve(&Process, "Python.h", &SYMBOLS) else {
        return;
    };
    let [
        initialized,
        ensure,
        release,
        compile,
        execute,
        dec_ref,
        clear,
    ] = found;
    // SAFETY: these are the functions of these names in Python's stable ABI, with its signatures; none
    // is null, because all are required.
    let (initialized, ensure, release, compile, execute, dec_ref, clear) = unsafe {
        (
            transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(initialized),
            transmute::<*mut c_void, unsafe extern "C" fn() -> c_int>(ensure),
            transmute::<*mut c_void, unsafe extern "C" fn(c_int)>(release),
            transmute::<
                *mut c_void,
                unsafe extern "C" fn(*const c_char, *const c_char, c_int) -> Object,
            >(compile),
            transmute::<*mut c_void, unsafe extern "C" fn(*const c_char, Object) -> Object>(
                execute,
            ),
            transmute::<*mut c_void, unsafe extern "C" fn(Object)>(dec_ref),
            transmute::<*mut c_void, unsafe extern "C" fn()>(clear),
        )
    };
    // SAFETY: callable at any time, from any thread.
    if unsafe { initialized() } == 0 {
        return;
    }
    // SAFETY: the interpreter is initialized; `ensure` takes its lock whether or not this thread has
    // it, and `release` gives back what was taken. In between: the texts are C strings, an object is
    // used once if it is not null (`dec_ref` takes null as well), and errors are cleared where one of the
    // two functions has returned null.
    let done = unsafe {
        let state = ensure();
        let code = compile(source.as_ptr(), FILE.as_ptr(), MODULE_TEXT);
        let module = if code.is_null() {
            std::ptr::null_mut()
        } else {
            execute(MODULE.as_ptr(), code)
        };
        let done = !module.is_null();
        if !done {
            clear();
        }
        dec_ref(module);
        dec_ref(code);
        release(state);
        done
    };
    if !done {
        log(
            "this Python does not take the module that keeps XLA from the device: pass jit_compile=False",
        );
    }
}
