//! Loading the same plug-in twice.
//!
//! TensorFlow loads a library once per path that leads to it, and ends the process when a platform
//! name comes twice. So every load after the first has to offer another name without devices. The
//! loads may be of one image in memory (a second path) or of several (a copy of the file), which
//! share nothing but TensorFlow: there, the first load leaves a mark in the kernel registry.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};

use crate::api::api;
use crate::buffer::Buffer;
use crate::construction::Construction;
use crate::context::Context;
use crate::device::PlatformInfo;
use crate::error::{Error, Result};
use crate::kernel::{Kernel, c_name};
use crate::registration::{Registration, RegistrationError};
use crate::status::with_status;
use tfp_wire::Reader;

/// The op that carries the mark: every TensorFlow has it, and a kernel with a label of its own is
/// never chosen for a node that does not ask for it.
const MARKED_OP: &str = "NoOp";

/// Leaves the mark that [`is_marked`] finds.
///
/// # Errors
/// If the mark exists or can't be left.
pub fn mark(device_type: &str, label: &str) -> std::result::Result<(), RegistrationError> {
    Registration::new(MARKED_OP, device_type)
        .label(label)
        .register::<Mark>()
}

/// Whether a load in this process has left a mark with this label, on any device type. False where
/// this TensorFlow can't say.
///
/// # Errors
/// If TensorFlow fails to answer.
pub fn is_marked(label: &str) -> Result<bool> {
    any_kernel(MARKED_OP, Field::Label, label)
}

/// Whether a type of device has a kernel of an op. False where this TensorFlow can't say.
///
/// # Errors
/// If `op` holds a NUL byte, or TensorFlow fails to answer.
pub fn has_kernel(op: &str, device_type: &str) -> Result<bool> {
    any_kernel(op, Field::DeviceType, device_type)
}

/// The fields of a `KernelDef` that are asked for, by their numbers.
#[derive(Clone, Copy)]
enum Field {
    DeviceType = 2,
    Label = 5,
}

/// Whether a field of one of the kernels of an op has this text.
fn any_kernel(op: &str, wanted: Field, text: &str) -> Result<bool> {
    let api = api()?;
    let Ok(functions) = &api.c_api else {
        return Ok(false);
    };
    let op = c_name(op)?;
    with_status(|status| {
        // SAFETY: the name is a C string and the status is live.
        let raw = unsafe { functions.TF_GetRegisteredKernelsForOp(op.as_ptr(), status.as_ptr()) };
        let buffer = NonNull::new(raw).map(|raw| Buffer::from_owned_ptr(raw, api));
        status.take()?;
        let buffer = buffer.ok_or_else(|| Error::internal("TensorFlow gave no kernel list"))?;
        for kernel in Reader::new("KernelList", buffer.bytes()) {
            for field in Reader::new("KernelDef", kernel?.1.bytes()?) {
                let (number, field) = field?;
                if number == wanted as u32 && field.text()? == text {
                    return Ok(true);
                }
            }
        }
        Ok(false)
    })
}

/// Names that no other platform in this process has, different with every call.
#[must_use]
pub fn spare_platform() -> PlatformInfo {
    static CALLS: AtomicU32 = AtomicU32::new(0);
    let call = CALLS.fetch_add(1, Ordering::Relaxed);
    // Two images in one process have their statics at different addresses.
    let image = std::ptr::from_ref(&CALLS).addr();
    PlatformInfo::new(&format!(
        "UNUSED_{}_{}",
        letters(image),
        letters(call as usize)
    ))
}

/// A number in capital letters.
fn letters(mut number: usize) -> String {
    let mut text = String::new();
    loop {
        text.push(char::from(b'A' + (number % 26) as u8));
        number /= 26;
        if number == 0 {
            return text;
        }
    }
}

struct Mark;

impl Kernel for Mark {
    fn new(_: &Construction) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, _: &mut Context<'_>) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spare_names_are_valid_and_different() {
        let names: Vec<_> = (0..30).map(|_| spare_platform()).collect();
        for (i, info) in names.iter().enumerate() {
            info.check().unwrap();
            assert!(!names[..i].contains(info));
        }
    }
}
