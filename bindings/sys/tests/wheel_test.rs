//! The tables against an installed TensorFlow: that of the library `TF_LIBRARY`, else the one that
//! the loader finds.
//!
//! One TensorFlow fits in a process, so every test shares the libraries that the first one opens.
#![deny(unsafe_op_in_unsafe_fn, clippy::undocumented_unsafe_blocks)]

use std::ffi::{CStr, c_void};
use std::fs;
use std::mem::MaybeUninit;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use tfp_sys::loader::{CC_LIBRARIES, FRAMEWORK_LIBRARY, Found, Libraries, Lookup};
use tfp_sys::*;

fn folder() -> PathBuf {
    if let Some(library) = std::env::var_os("TF_LIBRARY") {
        let library = std::path::absolute(library).expect("a path");
        return library.parent().expect("a folder").to_owned();
    }
    match loader::find() {
        Ok(Found::Folder(folder)) => folder,
        other => panic!("no installed TensorFlow: {other:?}"),
    }
}

fn libraries() -> &'static Libraries {
    static LIBRARIES: OnceLock<Libraries> = OnceLock::new();
    LIBRARIES.get_or_init(|| Libraries::open(&folder()).unwrap_or_else(|e| panic!("{e}")))
}

fn client() -> &'static ClientApi {
    static API: OnceLock<ClientApi> = OnceLock::new();
    API.get_or_init(|| ClientApi::resolve(libraries()).unwrap_or_else(|e| panic!("{e}")))
}

/// A status that is deleted.
struct Status(*mut TF_Status);

impl Status {
    fn new() -> Self {
        // SAFETY: the function has no precondition.
        Self(unsafe { client().tf_status.TF_NewStatus() })
    }

    fn code(&self) -> TF_Code {
        // SAFETY: the status is alive.
        unsafe { client().tf_status.TF_GetCode(self.0) }
    }

    fn message(&self) -> String {
        // SAFETY: the status is alive, and its message a C string until it changes.
        unsafe { CStr::from_ptr(client().tf_status.TF_Message(self.0)) }
            .to_string_lossy()
            .into_owned()
    }
}

impl Drop for Status {
    fn drop(&mut self) {
        // SAFETY: it is deleted once.
        unsafe { client().tf_status.TF_DeleteStatus(self.0) }
    }
}

#[test]
fn the_version_is_called_through_the_table() {
    // SAFETY: the function returns a constant C string.
    let version = unsafe { CStr::from_ptr(client().c_api.TF_Version()) };
    let version = version.to_str().expect("ASCII");
    assert!(version.starts_with("2."), "{version}");
}

#[test]
fn optional_functions_are_there_or_reported() {
    let missing = |names: Vec<&'static CStr>| -> Vec<&str> {
        names.iter().filter_map(|name| name.to_str().ok()).collect()
    };
    let kernels = missing(kernels_experimental::Functions::missing(libraries()));
    let device = missing(next_pluggable_device::Functions::missing(libraries()));
    println!("kernels_experimental.h lacks {kernels:?}");
    println!("next_pluggable_device/c_api.h lacks {device:?}");
    // The fields agree with the report.
    let api = client();
    let field = api.kernels_experimental.TF_AssignVariable;
    assert_eq!(field.is_none(), kernels.contains(&"TF_AssignVariable"));
    for (have, what) in [
        (eager_dlpack::Functions::missing(libraries()), "dlpack.h"),
        (
            eager_c_api_unified_experimental::Functions::missing(libraries()),
            "c_api_unified_experimental.h",
        ),
    ] {
        println!("{what} lacks {:?}", missing(have));
    }
    assert!(api.tsl_status.is_ok());
    assert!(api.grappler.is_ok());
}

#[test]
fn a_process_with_tensorflow_is_a_plug_ins_world() {
    libraries();
    let api = PluginApi::from_process().unwrap_or_else(|e| panic!("{e}"));
    assert!(api.c_api.is_ok() && api.tf_tstring.is_ok() && api.grappler.is_ok());
    let same = PluginApi::global().unwrap_or_else(|e| panic!("{e}"));
    let (a, b) = (
        api.kernels.TF_NewKernelBuilder as usize,
        same.kernels.TF_NewKernelBuilder as usize,
    );
    assert_eq!(a, b);
    assert_eq!(
        a,
        libraries()
            .address(c"TF_NewKernelBuilder")
            .expose_provenance()
    );
}

#[test]
fn global_finds_what_is_in_the_process() {
    libraries();
    let api = ClientApi::global().unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(
        api.c_api.TF_Version as usize,
        client().c_api.TF_Version as usize
    );
}

#[test]
fn statuses() {
    let status = Status::new();
    assert_eq!(status.code(), TF_OK);
    // SAFETY: the status is alive, the message a C string.
    unsafe {
        client()
            .tf_status
            .TF_SetStatus(status.0, TF_UNAUTHENTICATED, c"who?".as_ptr());
    }
    assert_eq!(status.code(), TSL_UNAUTHENTICATED);
    assert_eq!(status.message(), "who?");
    // TensorFlow turns a code without a name into "unknown"; as a value it is fine here.
    // SAFETY: as above.
    unsafe {
        let code = TSL_Code(77);
        client()
            .tf_status
            .TF_SetStatus(status.0, code, c"".as_ptr());
    }
    assert_eq!(status.code(), TF_UNKNOWN);
}

static FREED: AtomicUsize = AtomicUsize::new(0);

unsafe extern "C" fn free_vec(data: *mut c_void, length: usize, capacity: *mut c_void) {
    FREED.fetch_add(length, Ordering::Relaxed);
    // SAFETY: the three describe the Vec that the test gave away.
    drop(unsafe { Vec::<f32>::from_raw_parts(data.cast(), length / 4, capacity.addr()) });
}

#[test]
fn tensors_with_a_callback() {
    let api = &client().tf_tensor;
    let mut data = vec![1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0];
    let (pointer, length) = (data.as_mut_ptr(), data.len() * 4);
    let capacity = std::ptr::without_provenance_mut(data.capacity());
    std::mem::forget(data);
    let dims = [2i64, 3];
    // SAFETY: the data lives until `free_vec`, which TensorFlow calls once; the rest is read-only.
    unsafe {
        let tensor = api.TF_NewTensor(
            TF_FLOAT,
            dims.as_ptr(),
            2,
            pointer.cast(),
            length,
            Some(free_vec),
            capacity,
        );
        assert_eq!(api.TF_TensorType(tensor), TF_FLOAT);
        assert_eq!((api.TF_NumDims(tensor), api.TF_Dim(tensor, 1)), (2, 3));
        assert_eq!(api.TF_TensorByteSize(tensor), 24);
        assert_eq!(*api.TF_TensorData(tensor).cast::<f32>().add(5), 6.0);
        api.TF_DeleteTensor(tensor);
    }
    assert_eq!(FREED.load(Ordering::Relaxed), 24);
    // SAFETY: no precondition.
    let size = unsafe { client().tf_datatype.TF_DataTypeSize(TF_BFLOAT16) };
    assert_eq!(size, 2);
}

#[test]
fn structs_by_value() {
    let api = client();
    let status = Status::new();
    // SAFETY: every pointer comes from the API and is deleted once.
    unsafe {
        let buffer = api
            .tf_buffer
            .TF_NewBufferFromString(c"bytes".as_ptr().cast(), 5);
        let view: TF_Buffer = api.tf_buffer.TF_GetBuffer(buffer);
        assert_eq!(view.length, 5);
        assert_eq!(*view.data.cast::<u8>(), b'b');
        assert!(view.data_deallocator.is_some());
        api.tf_buffer.TF_DeleteBuffer(buffer);

        let graph = api.c_api.TF_NewGraph();
        let node = api
            .c_api
            .TF_NewOperation(graph, c"Placeholder".as_ptr(), c"x".as_ptr());
        api.c_api.TF_SetAttrType(node, c"dtype".as_ptr(), TF_INT64);
        let oper = api.c_api.TF_FinishOperation(node, status.0);
        assert_eq!(status.message(), "");
        let output = TF_Output { oper, index: 0 };
        assert_eq!(api.c_api.TF_OperationOutputType(output), TF_INT64);
        let meta: TF_AttrMetadata =
            api.c_api
                .TF_OperationGetAttrMetadata(oper, c"dtype".as_ptr(), status.0);
        assert_eq!((meta.r#type, meta.is_list), (TF_ATTR_TYPE, 0));
        api.c_api.TF_DeleteGraph(graph);
    }
}

#[test]
fn strings_are_the_union_that_the_header_says() {
    let api = &client().tf_tstring;
    for (text, kind) in [
        ("short", TF_TSTR_SMALL),
        (&"long".repeat(20)[..], TF_TSTR_LARGE),
    ] {
        let mut string = MaybeUninit::<TF_TString>::uninit();
        // SAFETY: `TF_StringInit` initialises it, `TF_StringDealloc` frees it.
        unsafe {
            api.TF_StringInit(string.as_mut_ptr());
            api.TF_StringCopy(string.as_mut_ptr(), text.as_ptr().cast(), text.len());
            let mut string = string.assume_init();
            assert_eq!(api.TF_StringGetType(&raw const string), kind);
            assert_eq!(api.TF_StringGetSize(&raw const string), text.len());
            if kind == TF_TSTR_LARGE {
                assert_eq!(string.u.large.size >> 2, text.len());
            } else {
                assert_eq!(usize::from(string.u.smll.size >> 2), text.len());
            }
            api.TF_StringDealloc(&raw mut string);
        }
    }
}

#[test]
fn a_missing_library_is_named() {
    let root = std::env::var_os("TEST_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    let empty = root.join(format!("tfp_sys_{}", std::process::id()));
    fs::create_dir_all(&empty).expect("a temporary folder");
    let error = ClientApi::from_folder(&empty).expect_err("the folder is empty");
    assert_eq!(
        error,
        Error::MissingLibrary {
            folder: empty.clone(),
            names: vec![FRAMEWORK_LIBRARY.to_owned()],
        }
    );
    std::os::unix::fs::symlink(
        folder().join(FRAMEWORK_LIBRARY),
        empty.join(FRAMEWORK_LIBRARY),
    )
    .expect("a link");
    let error = ClientApi::from_folder(&empty).expect_err("the other library is missing");
    assert!(error.to_string().contains(CC_LIBRARIES[0]), "{error}");
    fs::write(empty.join(CC_LIBRARIES[0]), "text").expect("a file");
    let error = ClientApi::from_folder(&empty).expect_err("text is no library");
    let Error::Open { library, .. } = error else {
        panic!("{error}");
    };
    assert_eq!(library, empty.join(CC_LIBRARIES[0]));
    fs::remove_dir_all(&empty).expect("the folder is removed");
}

/// The libraries without one function, or with another version.
struct Changed {
    without: &'static CStr,
    version: Option<unsafe extern "C" fn() -> *const std::ffi::c_char>,
}

// SAFETY: the addresses are the libraries', but for a function of the same type.
unsafe impl Lookup for Changed {
    fn address(&self, name: &CStr) -> *mut c_void {
        match self.version {
            _ if name == self.without => std::ptr::null_mut(),
            Some(version) if name == c"TF_Version" => version as *mut c_void,
            _ => libraries().address(name),
        }
    }

    fn place(&self) -> String {
        Path::new("changed").display().to_string()
    }
}

unsafe extern "C" fn old_version() -> *const std::ffi::c_char {
    c"2.4.1".as_ptr()
}

#[test]
fn a_missing_symbol_is_named() {
    let changed = Changed {
        without: c"TF_DeleteTensor",
        version: None,
    };
    let error = PluginApi::resolve(&changed).expect_err("it is required");
    assert_eq!(
        error.to_string(),
        "changed lacks 1 required function: TF_DeleteTensor (tensorflow/c/tf_tensor.h)"
    );
    // A group that a plug-in can do without.
    let changed = Changed {
        without: c"TF_NewGraphProperties",
        version: None,
    };
    let api = PluginApi::resolve(&changed).expect("it is optional");
    let error = api.grappler.expect_err("a function of it is missing");
    assert!(
        error.to_string().contains("TF_NewGraphProperties"),
        "{error}"
    );
}

#[test]
fn a_wrong_version_is_named() {
    // It lacks functions, too, which says less.
    let changed = Changed {
        without: c"TFE_NewContext",
        version: Some(old_version),
    };
    let error = ClientApi::resolve(&changed).expect_err("it is too old");
    assert_eq!(
        error,
        Error::Version {
            found: "2.4.1".to_owned(),
            expected: "2.16 or later, below 3.0".to_owned(),
            searched: "changed".to_owned(),
        }
    );
}
