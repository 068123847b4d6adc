//! TensorFlow from Rust: ops in graph and eager mode, gradients, functions, control flow, variables
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

mod checkpoint;
mod context;
mod control_flow;
pub mod data;
pub mod distribute;
mod files;
mod formats;
mod function;
mod gradient;
pub mod nn;
mod ragged;
mod random;
mod room;
mod saved_model;
mod sparse;
mod table;
mod tensor_list;
mod variable;
pub mod weights;

pub use checkpoint::{Checkpoint, CheckpointReader, Restored, latest_checkpoint, write_tensors};
pub use context::any::{AnyContext, Mode};
pub use context::expression::Expression;
pub use context::func_graph::FuncGraph;
pub use context::record::OpRecord;
pub use context::slices::{Gradient, IndexedSlices};
pub use context::tape::{EagerMode, Tape};
pub use context::value::AnyValue;
pub use control_flow::{Branch, LoopOptions, case, cond, while_loop, while_loop_with};
pub use function::GraphFunction;
pub use gradient::{
    Backward, GradientOptions, InputGradients, Unconnected, WithTangent, batch_jacobian,
    custom_gradient, differentiable_ops, forward_products, gradients, gradients_with, hessian,
    jacobian, register_gradient,
};
pub use ragged::RaggedTensor;
pub use random::{RandomAlgorithm, RandomGenerator};
pub use saved_model::{Model, ModelFunction, ModelWriter, PythonValue, SessionModel, Spec};
pub use sparse::SparseTensor;
pub use table::{Column, LookupTable};
pub use tensor_list::TensorList;
pub use variable::{Variable, VariableOptions, initialize, set_in, values_in};
