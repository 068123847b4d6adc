//! What a user of the SDK writes for a device: no kernels, the host's memory.

use tfp_bindings::host::{HostDevice, HostOptions};
use tfp_bindings::{Platform, PlatformInfo, Result};

struct Mine;

impl Platform for Mine {
    type Device = HostDevice;

    fn info(&self) -> PlatformInfo {
        PlatformInfo::new("MINE")
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn create_device(&self, _: usize) -> Result<HostDevice> {
        Ok(HostDevice::new(HostOptions::new("mine")))
    }
}

tfp_bindings::export_plugin! {
    platform: Ok(Mine),
    kernels: Ok(()),
}
