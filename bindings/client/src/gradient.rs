//! Gradients: one registry of gradient functions, for graphs and for tapes.
//!
//! A gradient function takes an op that was added or executed and the gradients of its outputs
//! ([`Backward`]), and returns those of its inputs by calling ops in the same context. So one
//! function serves graphs, tapes and functions that are being traced, and what it computes can be
//! differentiated again.

pub(crate) mod calls;
mod custom;
mod einsum;
pub(crate) mod engine;
pub(crate) mod graph;
mod jacobian;
mod of_graph;
mod of_tape;
pub(crate) mod registry;
pub(crate) mod rule;
mod rules;
mod shapes;
mod slices;
mod swish;

pub use custom::custom_gradient;
pub use engine::{GradientOptions, Unconnected};
pub use jacobian::{WithTangent, batch_jacobian, forward_products, hessian, jacobian};
pub use of_graph::{gradients, gradients_with};
pub use registry::{differentiable_ops, register_gradient};
pub use rule::{Backward, InputGradients};
