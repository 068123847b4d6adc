//! Functions: closures as graphs that ops call.

pub(crate) mod body;
mod func_graph;
mod graph_function;
pub(crate) mod traced;

/// What the names of functions that this crate traces begin with; a number and a hash follow.
pub(crate) const OWN_PREFIX: &str = "tfp_";

pub use func_graph::FuncGraph;
pub use graph_function::GraphFunction;
pub(crate) use graph_function::identities;
