//! A device that computes on the host and whose memory is host memory.

mod device;
mod memory;
mod stream;

pub use device::{HostDevice, HostOptions};
pub use memory::{BlockSource, HostMemory};
pub use stream::{HostEvent, HostStream, HostTimer};
