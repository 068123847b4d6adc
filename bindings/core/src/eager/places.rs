//! Which devices of a context the names are of that its users give.

use std::collections::HashMap;
use std::ffi::CString;
use std::sync::{Arc, Mutex, PoisonError};

use tfp_wire::Reader;

use crate::base::api::c_string;
use crate::base::config::Config;
use crate::base::device::Device;
use crate::base::error::Result;
use crate::base::place;

/// How many names are kept at most: more are not in use at a time.
const KEPT: usize = 64;

/// Names that were looked up, each with its complete form: a list of the devices costs more than an op.
pub(super) struct Places {
    is_soft: bool,
    known: Mutex<HashMap<String, Option<Arc<CString>>>>,
}

impl Places {
    /// Of a context with these settings.
    pub(super) fn new(config: &Config) -> Self {
        Self {
            is_soft: is_soft(config.as_bytes()),
            known: Mutex::default(),
        }
    }

    /// Returns what TensorFlow is told for a name: the complete name, or nothing where it chooses.
    ///
    /// # Errors
    /// As for [`place::complete`], and those of `devices`, which lists them.
    pub(super) fn find(
        &self,
        name: &str,
        devices: impl FnOnce() -> Result<Vec<Device>>,
    ) -> Result<Option<Arc<CString>>> {
        if name.is_empty() {
            return Ok(None);
        }
        let known = || self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known().get(name) {
            return Ok(found.clone());
        }
        place::check_name(name)?;
        let full = place::complete(name, &devices()?, self.is_soft)?;
        let found = match full.is_empty() {
            true => None,
            false => Some(Arc::new(c_string(&full)?)),
        };
        let mut known = known();
        if known.len() >= KEPT {
            known.clear();
        }
        known.insert(name.to_owned(), found.clone());
        Ok(found)
    }

    /// Forgets all names, since the devices have others.
    pub(super) fn clear(&self) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.clear();
    }
}

/// Whether a `ConfigProto` allows an op on another device than it names. TensorFlow refuses one that can't
/// be read.
fn is_soft(config: &[u8]) -> bool {
    // `allow_soft_placement`
    let soft = Reader::new("ConfigProto", config)
        .map_while(std::result::Result::ok)
        .filter_map(|(number, field)| (number == 7).then(|| field.int().ok())?)
        .last();
    soft.is_some_and(|soft| soft != 0)
}
