//! What a Python program's TensorFlow is told when it has loaded the device.
//!
//! TensorFlow's C API has no word for a device that XLA does not compile for: Keras' models and
//! `tf.function(jit_compile=True)` would end with an error. Nor does it say which devices `tf.data` and
//! `tf.distribute` may take. The switches are in TensorFlow's Python, so it is Python that turns them,
//! in the interpreter that has loaded this library, if there is one.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::mem::transmute;

use tfp_bindings::log;
use tfp_sys_loader::{Process, Symbol, resolve};

/// A module of the wheel's package: the name under which the package finds it, too, and its text.
struct Module {
    name: &'static CStr,
    file: &'static CStr,
    text: &'static str,
}

/// The last one calls the others.
const MODULES: [Module; 4] = [
    Module {
        name: c"tfp_plugin._xla",
        file: c"libtfp.so/_xla.py",
        text: include_str!("../python/tfp_plugin/_xla.py"),
    },
    Module {
        name: c"tfp_plugin._strategies",
        file: c"libtfp.so/_strategies.py",
        text: include_str!("../python/tfp_plugin/_strategies.py"),
    },
    Module {
        name: c"tfp_plugin._batches",
        file: c"libtfp.so/_batches.py",
        text: include_str!("../python/tfp_plugin/_batches.py"),
    },
    Module {
        name: c"tfp_plugin._start",
        file: c"libtfp.so/_start.py",
        text: include_str!("../python/tfp_plugin/_start.py"),
    },
];
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

/// Executes the modules in the interpreter of this process; does nothing where there is none.
///
/// The name of the type of device is one that TensorFlow takes: capital letters and underscores.
pub fn tell(device_type: &str) {
    let last = MODULES.len() - 1;
    let texts = MODULES.iter().enumerate().map(|(index, module)| {
        let call = if index == last {
            format!("automatic('{device_type}')\n")
        } else {
            String::new()
        };
        CString::new(format!("{}{call}", module.text))
    });
    let Ok(texts) = texts.collect::<Result<Vec<_>, _>>() else {
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
        let done = MODULES.iter().zip(&texts).all(|(module, text)| {
            let code = compile(text.as_ptr(), module.file.as_ptr(), MODULE_TEXT);
            let object = if code.is_null() {
                std::ptr::null_mut()
            } else {
                execute(module.name.as_ptr(), code)
            };
            let done = !object.is_null();
            if !done {
                clear();
            }
            dec_ref(object);
            dec_ref(code);
            done
        });
        release(state);
        done
    };
    if !done {
        log("this Python does not take the modules of the device: pass jit_compile=False");
    }
}
