//! All that calls Vulkan, and the only module with `unsafe`.

pub mod device;
pub mod instance;
mod memory;
mod pipeline;
mod submit;
