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
