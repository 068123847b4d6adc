//! TensorFlow's functions, resolved once from the process that loaded the plug-in.

use tfp_sys as sys;

use crate::error::{Code, Error, Result};

pub(crate) type Api = sys::PluginApi;

/// The table of functions.
///
/// # Errors
/// [`Code::Unimplemented`] naming every required function that this process lacks.
pub(crate) fn api() -> Result<&'static Api> {
    sys::PluginApi::global().map_err(|error| Error::new(Code::Unimplemented, error.to_string()))
}
