//! The bodies of `tfp-gpu` against the kernels of the CPU: the same calls on both, compared and timed.

pub mod arena;
pub mod cases;
pub mod compare;
pub mod run;
pub mod tensor;
