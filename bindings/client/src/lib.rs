//! TensorFlow from Rust: ops in graphs and at once, gradients, functions, control flow, variables
//! and training.
//!
//! This crate is everything that `tfp_core` has, the ops of `tfp_ops` as [`ops`], and what is built
//! over them.
#![deny(
    unsafe_op_in_unsafe_fn,
    clippy::undocumented_unsafe_blocks,
    missing_docs
)]

pub use tfp_core::*;
pub use tfp_ops as ops;

mod any;
mod control_flow;
mod function;
mod gradient;
pub mod nn;
mod tape;
mod variable;

pub use any::{AnyContext, AnyValue, Mode};
pub use variable::{Variable, VariableOptions, initialize, set_in, values_in};
