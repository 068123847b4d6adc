//! What runs in every step of a model: the adapter between the crate `tfp_kernels` and TensorFlow,
//! with the configuration (`config`), the ops that TensorFlow's own kernels compute (`host`), the
//! GPU that may compute (`gpu`) and the record of what ran (`profile`).
//!
//! It is a crate of its own because it is optimized for speed, and all else of `libtfp.so` for size.
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]
// The kernels' errors carry two shapes by value.
#![allow(clippy::result_large_err)]

mod adapter;
mod attrs;
mod channels;
pub mod config;
mod drivers;
mod dtype;
pub mod gpu;
pub mod host;
pub mod profile;
pub mod reads;
mod served;
mod slots;
mod subnormal;
mod views;

pub use adapter::{OpKernel, configure, register};
pub use served::serves;
