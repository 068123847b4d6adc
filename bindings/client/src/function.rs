//! Functions: closures as graphs that ops call.

pub(crate) mod body;
mod graph_function;
pub(crate) mod traced;

pub use graph_function::GraphFunction;
pub(crate) use graph_function::identities;
