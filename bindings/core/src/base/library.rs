//! Libraries that add ops, kernels and devices to TensorFlow.

use std::ffi::CString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use tfp_sys::loader::fenced;

use crate::base::api::{Status, api, text_from_ptr};
use crate::base::buffer::OutBuffer;
use crate::base::error::{Error, Result};

/// Returns TensorFlow's version, as `2.21.0`.
///
/// # Errors
/// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there.
pub fn version() -> Result<String> {
    // SAFETY: the function returns a constant C string.
    Ok(unsafe { text_from_ptr(api()?.c_api.TF_Version()) })
}

/// Returns all ops that TensorFlow has now, as a serialized `OpList`.
///
/// # Errors
/// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there.
pub fn all_ops() -> Result<Vec<u8>> {
    let api = api()?;
    // SAFETY: the function has no precondition; its caller owns the buffer.
    let buffer = fenced(|| unsafe { api.c_api.TF_GetAllOpList() })?;
    // SAFETY: as above.
    let buffer = unsafe { OutBuffer::from_owned_ptr(buffer, api) }?;
    Ok(buffer.as_slice().to_vec())
}

/// Returns the kernels that an op has, or all kernels, as a serialized `KernelList`.
///
/// # Errors
/// What TensorFlow says.
pub fn kernels(op_type: Option<&str>) -> Result<Vec<u8>> {
    let api = api()?;
    let status = Status::new(api)?;
    let name = op_type.map(crate::base::api::c_string).transpose()?;
    // SAFETY: name and status are alive; the caller of either function owns the buffer.
    let buffer = fenced(|| unsafe {
        match &name {
            Some(name) => api
                .c_api
                .TF_GetRegisteredKernelsForOp(name.as_ptr(), status.as_ptr()),
            None => api.c_api.TF_GetAllRegisteredKernels(status.as_ptr()),
        }
    })?;
    status.check()?;
    // SAFETY: as above.
    Ok(unsafe { OutBuffer::from_owned_ptr(buffer, api) }?
        .as_slice()
        .to_vec())
}

/// Returns the path of a file, from the root on: a name without a slash is looked for where the
/// system's libraries are, and not in the current folder.
fn c_path(path: &Path) -> Result<CString> {
    let absolute = std::path::absolute(path).ok();
    let Some(absolute) = absolute.filter(|path| path.is_file()) else {
        return Err(Error::not_found(
            "library",
            path.display().to_string(),
            "the file system",
        ));
    };
    Ok(CString::new(absolute.as_os_str().as_bytes())?)
}

/// Loads a library of custom ops and kernels, for the rest of the process, and returns its ops as
/// a serialized `OpList`.
///
/// # Errors
/// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for a file that does not exist, and
/// TensorFlow's status for one that it can't load.
pub fn load_op_library(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let api = api()?;
    let path = c_path(path.as_ref())?;
    let status = Status::new(api)?;
    // SAFETY: path and status are alive.
    let library = fenced(|| unsafe { api.c_api.TF_LoadLibrary(path.as_ptr(), status.as_ptr()) })?;
    status.check()?;
    if library.is_null() {
        return Err(Error::internal("TF_LoadLibrary returned null"));
    }
    // SAFETY: the handle is alive until its end below, which does not unload the library; the list
    // is owned by it.
    Ok(unsafe {
        let list = api.c_api.TF_GetOpList(library);
        let bytes = if list.data.is_null() || list.length == 0 {
            Vec::new()
        } else {
            std::slice::from_raw_parts(list.data.cast::<u8>(), list.length).to_vec()
        };
        api.c_api.TF_DeleteLibraryHandle(library);
        bytes
    })
}

/// Loads a pluggable device, for the rest of the process. Sessions and contexts that are made
/// afterwards have its devices.
///
/// # Errors
/// As for [`load_op_library`].
pub fn load_pluggable_device(path: impl AsRef<Path>) -> Result<()> {
    let api = api()?;
    let path = c_path(path.as_ref())?;
    let status = Status::new(api)?;
    // SAFETY: path and status are alive.
    let library = fenced(|| unsafe {
        api.c_api_experimental
            .TF_LoadPluggableDeviceLibrary(path.as_ptr(), status.as_ptr())
    })?;
    status.check()?;
    if library.is_null() {
        return Err(Error::internal(
            "TF_LoadPluggableDeviceLibrary returned null",
        ));
    }
    // SAFETY: the handle is alive, and this is its end; the library stays loaded.
    unsafe {
        let c = &api.c_api_experimental;
        c.TF_DeletePluggableDeviceLibraryHandle(library);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn paths_go_to_the_loader_from_the_root_on() {
        let file = std::env::current_exe().expect("the path of the test");
        let folder = std::env::current_dir().expect("the current folder");
        let up: PathBuf = folder.components().skip(1).map(|_| "..").collect();
        let relative = up.join(file.strip_prefix("/").expect("an absolute path"));
        let found = c_path(&relative).expect("a file");
        assert!(found.as_bytes().starts_with(b"/"), "{found:?}");
        assert!(c_path(Path::new("no_such_library.so")).is_err());
    }
}
