//! Devices.

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_DeviceList};

use crate::base::api::{Status, text_from_ptr};
use crate::base::error::{Error, Result};

/// A device that a session or an eager context can use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The full name, as `/job:localhost/replica:0/task:0/device:CPU:0`.
    pub name: String,
    /// The kind, as `CPU`.
    pub kind: String,
    /// The memory that TensorFlow may use there, in bytes.
    pub memory_bytes: i64,
    /// A number that changes when the device starts anew.
    pub incarnation: u64,
}

/// Reads and deletes a list of devices.
///
/// # Safety
/// `list` is null or a list that nothing else deletes.
pub(crate) unsafe fn from_owned_list(
    list: *mut TF_DeviceList,
    api: &'static ClientApi,
) -> Result<Vec<Device>> {
    /// Deletes the list on every way out.
    struct Owned(*mut TF_DeviceList, &'static ClientApi);
    impl Drop for Owned {
        fn drop(&mut self) {
            // SAFETY: the list is alive, and this is its end.
            unsafe { self.1.c_api.TF_DeleteDeviceList(self.0) };
        }
    }
    if list.is_null() {
        return Err(Error::internal(
            "TensorFlow returned a null list of devices",
        ));
    }
    let list = Owned(list, api);
    let c = &api.c_api;
    // SAFETY: the list is alive.
    let count = unsafe { c.TF_DeviceListCount(list.0) };
    (0..count)
        .map(|index| {
            let status = Status::new(api)?;
            // SAFETY: list and status are alive, and the index is below the count; the texts are
            // copied while the list lives.
            let device = fenced(|| unsafe {
                Device {
                    name: text_from_ptr(c.TF_DeviceListName(list.0, index, status.as_ptr())),
                    kind: text_from_ptr(c.TF_DeviceListType(list.0, index, status.as_ptr())),
                    memory_bytes: c.TF_DeviceListMemoryBytes(list.0, index, status.as_ptr()),
                    incarnation: c.TF_DeviceListIncarnation(list.0, index, status.as_ptr()),
                }
            })?;
            status.check()?;
            Ok(device)
        })
        .collect()
}

/// Refuses what names no device, as TensorFlow does when an operation runs at last.
///
/// A name is parts such as `/job:worker`, `/replica:0`, `/task:1` and `/device:CPU:0`, of which any may
/// be left out; a star stands for any number. `/cpu:0` and `/gpu:0` are old forms of the last.
///
/// # Errors
/// [`ErrorKind::Argument`](crate::ErrorKind::Argument).
pub(crate) fn check_name(name: &str) -> Result<()> {
    let is_index = |index: &str| {
        index == "*" || (!index.is_empty() && index.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let is_word = |word: &str| {
        word.starts_with(|first: char| first.is_ascii_alphabetic())
            && word
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let is_part = |part: &str| match part.split_once(':') {
        Some(("job", job)) => job == "*" || is_word(job),
        Some(("replica" | "task" | "cpu" | "CPU" | "gpu" | "GPU", index)) => is_index(index),
        Some(("device", device)) => match device.split_once(':') {
            Some((kind, index)) => (kind == "*" || is_word(kind)) && is_index(index),
            None => device == "*" || is_word(device),
        },
        _ => false,
    };
    let parts = name.strip_prefix('/').map(|parts| parts.split('/'));
    // A slash alone leaves all of them out.
    if name == "/" || parts.is_some_and(|mut parts| parts.all(is_part)) {
        return Ok(());
    }
    Err(Error::argument(format!(
        "{name:?} is not the name of a device: expected one such as \"/device:CPU:0\" or \
         \"/job:worker/task:1/device:GPU:0\""
    )))
}
