//! Ops that hand a tensor from this device's memory to the host's, and back.
//!
//! Both are the same memory. TensorFlow does not know that: between a kernel that leaves a value on
//! the device and one that wants it in the host's memory it puts a copy, and a thread that polls
//! until that is done.

use tfp_bindings::{Construction, Context, Kernel, Registration, RegistrationError, Result, log};

use tfp_adapter::profile::Profiled;

/// From the device to the host.
pub const TO_HOST: &str = "TfpToHost";
/// From the host to the device.
pub const TO_DEVICE: &str = "TfpToDevice";

/// Registers their kernels.
pub fn register(device_type: &str) {
    for (op, host) in [(TO_HOST, "y"), (TO_DEVICE, "x")] {
        let registration = Registration::new(op, device_type).host_memory(host);
        match registration.register::<Profiled<MoveKernel>>() {
            Ok(()) | Err(RegistrationError::UnknownOp { .. }) => {}
            Err(error) => log(&format!("kernel left out: {error}")),
        }
    }
}

/// The kernel of a node: its output is its input.
struct MoveKernel;

impl Kernel for MoveKernel {
    fn new(_: &Construction) -> Result<Self> {
        Ok(Self)
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        let tensor = context.input(0)?;
        context.set_output(0, &tensor)
    }
}
