//! The platform: as many devices as the configuration asks for, with memory of the host or of the GPU.

use tfp_bindings::host::{HostDevice, HostOptions};
use tfp_bindings::{Code, Error, Platform, PlatformInfo, Result};

use tfp_adapter::config::Config;
use tfp_adapter::gpu;

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
        let Some(gpu) = gpu::chosen() else {
            return Ok(HostDevice::new(options));
        };
        options
            .info
            .hardware_name
            .clone_from(&gpu.description().name);
        let memory = gpu::memory(gpu, options.memory_limit);
        Ok(HostDevice::with_memory(options.info, memory))
    }
}
