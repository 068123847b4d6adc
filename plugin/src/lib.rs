//! `libtfp.so`: a TensorFlow device of type `TFP`.
//!
//! The compute is the crate `tfp_kernels`, the connection to TensorFlow the crate `tfp_bindings`, and
//! the one adapter between the two the crate `tfp_adapter`, which also has the device's configuration
//! and the profiler. This crate has the entry points, the graph optimizer (`graph`) and what stands in
//! for the kernels of variables that TensorFlow lets no plug-in write (`variables`, `lists`). `python`
//! keeps the XLA of a Python program away from the device.
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]
// The kernels' errors carry two shapes by value.
#![allow(clippy::result_large_err)]

mod entry;
mod graph;
mod hosted;
mod lists;
mod moves;
mod ops;
mod platform;
mod python;
mod variables;
