//! Arithmetic of tensor lists, which the gradients of loops need.
//!
//! A list is a variant, which no function of TensorFlow's C interface can look into. So the kernels
//! hand the op to TensorFlow's own kernel for the CPU. The tensors of a list stay where they are:
//! this device's memory is the host's. Without these kernels TensorFlow would place the ops on the
//! CPU itself, and copy every tensor of the list there and back.

use tfp_bindings::eager::Eager;
use tfp_bindings::{
    Construction, Context, DataType, Kernel, Registration, RegistrationError, Result, log,
};

use tfp_adapter::host::HostOp;
use tfp_adapter::profile::Profiled;

/// The ops with an input of variants.
const OPS: &[&str] = &["AddN", "ZerosLike"];

/// Registers their kernels where the eager runtime is there to serve them.
pub fn register(device_type: &str) {
    if !Eager::is_available() {
        return;
    }
    for op in OPS {
        let registration = Registration::new(op, device_type).constraint("T", DataType::VARIANT);
        match registration.register::<Profiled<ListKernel>>() {
            Ok(()) | Err(RegistrationError::UnknownOp { .. }) => {}
            Err(error) => log(&format!("kernel left out: {error}")),
        }
    }
}

/// The kernel of a node.
struct ListKernel(HostOp);

impl Kernel for ListKernel {
    fn new(node: &Construction) -> Result<Self> {
        Ok(Self(HostOp::new(node)))
    }

    fn compute(&self, context: &mut Context<'_>) -> Result<()> {
        self.0.run(context)
    }
}
