//! The bodies of `tfp-gpu` against the kernels of the CPU: the same calls on both, compared and timed.
// Errors of kernels carry two shapes by value.
#![allow(clippy::result_large_err)]

pub mod arena;
pub mod cases;
pub mod compare;
pub mod run;
pub mod tensor;
