//! Functions: closures as graphs that ops call.

mod func_graph;

pub use func_graph::FuncGraph;
