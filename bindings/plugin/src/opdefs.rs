//! The definitions of the ops that this TensorFlow knows.

use std::ptr::NonNull;
use std::sync::OnceLock;

use tfp_sys as sys;

use crate::api::{Api, api};
use crate::buffer::Buffer;
use crate::error::{Code, Error, Result};
use crate::kernel::c_name;
use crate::proto::opdef::OpDef;
use crate::status::with_status;

/// Whether definitions can be looked up here.
///
/// # Errors
/// If TensorFlow's functions can't be resolved at all.
pub fn available() -> Result<bool> {
    let api = api()?;
    Ok(api.grappler.is_ok() || api.c_api.is_ok())
}

/// The definition of `op`; `None` if there is none.
///
/// # Errors
/// If TensorFlow can't be asked or answers with a malformed message.
pub fn find(op: &str) -> Result<Option<OpDef>> {
    let api = api()?;
    match &api.grappler {
        Ok(functions) => look_up(functions, op),
        Err(_) => OpDef::find(op_list(api)?, op),
    }
}

/// Asks for one op through an empty function library, which is cheap.
fn look_up(grappler: &sys::grappler::Functions, op: &str) -> Result<Option<OpDef>> {
    let name = c_name(op)?;
    let empty = Buffer::new()?;
    let answer = Buffer::new()?;
    with_status(|status| {
        // SAFETY: buffer and status are live.
        let library =
            unsafe { grappler.TF_NewFunctionLibraryDefinition(empty.as_ptr(), status.as_ptr()) };
        status.take()?;
        // SAFETY: all objects are live; the library is deleted once, after its last use.
        unsafe {
            grappler.TF_LookUpOpDef(library, name.as_ptr(), answer.as_ptr(), status.as_ptr());
            grappler.TF_DeleteFunctionLibraryDefinition(library);
        }
        match status.take() {
            Ok(()) => OpDef::parse(answer.bytes()).map(Some),
            Err(error) if error.code() == Code::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    })
}

/// The serialized list of all ops, fetched once.
fn op_list(api: &'static Api) -> Result<&'static [u8]> {
    static LIST: OnceLock<Vec<u8>> = OnceLock::new();
    let functions = api
        .c_api
        .as_ref()
        .map_err(|error| Error::new(Code::Unimplemented, error.to_string()))?;
    Ok(LIST.get_or_init(|| {
        // SAFETY: the function takes nothing and returns a new buffer.
        let raw = unsafe { functions.TF_GetAllOpList() };
        NonNull::new(raw)
            .map(|raw| Buffer::from_owned_ptr(raw, api).bytes().to_vec())
            .unwrap_or_default()
    }))
}
