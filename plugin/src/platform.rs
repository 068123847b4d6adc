//! The platform: as many host devices as the configuration asks for.

use tfp_bindings::host::{HostDevice, HostOptions};
use tfp_bindings::{Code, Error, Platform, PlatformInfo, Result};

use tfp_adapter::config::Config;

/// The platform of one load.
pub struct TfpPlatform {
    config: Config,
}

impl TfpPlatform {
    /// With this configuration.
    pub fn new(config: Config) -> Self {
        Self { config }
    }
}

impl Platform for TfpPlatform {
    type Device = HostDevice;

    fn info(&self) -> PlatformInfo {
        self.config.names.clone()
    }

    fn device_count(&self) -> Result<usize> {
        Ok(self.config.devices)
    }

    fn create_device(&self, ordinal: usize) -> Result<HostDevice> {
        if ordinal >= self.config.devices {
            return Err(Error::new(
                Code::NotFound,
                format!("device {ordinal} of {} does not exist", self.config.devices),
            ));
        }
        let mut options = HostOptions::new("tfp host device");
        options.info.vendor = "tfp".to_owned();
        options.memory_limit = self.config.memory_limit;
        Ok(HostDevice::new(options))
    }
}
