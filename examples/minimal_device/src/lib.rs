//! A complete TensorFlow device of type `MINIMAL` with one kernel: `Relu` on float32.
//!
//! The device computes on the host, so the SDK's [`HostDevice`] does for memory, streams and
//! events. Load the library by setting `TF_PLUGGABLE_DEVICE_LIBRARY_PATH` to its path, and compute
//! `with tf.device("/device:MINIMAL:0")`.

use tfp_bindings::host::{HostDevice, HostOptions};
use tfp_bindings::{
    Construction, Context, DataType, Kernel, Platform, PlatformInfo, Registration, Result,
};

const DEVICE_TYPE: &str = "MINIMAL";

struct Minimal;

impl Platform for Minimal {
    type Device = HostDevice;

    fn info(&self) -> PlatformInfo {
        PlatformInfo::new(DEVICE_TYPE)
    }

    fn device_count(&self) -> Result<usize> {
        Ok(1)
    }

    fn create_device(&self, ordinal: usize) -> Result<HostDevice> {
        let name = format!("minimal device {ordinal}");
        Ok(HostDevice::new(HostOptions::new(&name)))
    }
}

struct Relu;

impl Kernel for Relu {
    fn new(_: &Construction) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let input = context.input(0)?;
        let dims: Vec<usize> = input.dims().collect();
        let mut output = context.allocate_output(0, DataType::FLOAT, &dims)?;
        let pairs = output.as_mut_slice::<f32>()?.iter_mut();
        for (y, &x) in pairs.zip(input.as_slice::<f32>()?) {
            // `max` would turn a NaN into 0.
            *y = if x < 0.0 { 0.0 } else { x };
        }
        Ok(())
    }
}

fn register() -> Result<()> {
    Registration::new("Relu", DEVICE_TYPE)
        .constraint("T", DataType::FLOAT)
        .register::<Relu>()?;
    Ok(())
}

tfp_bindings::export_plugin! {
    platform: Ok(Minimal),
    kernels: register(),
}
