//! Where ops go, in any mode: graphs, functions that are being traced, eager contexts and tapes.

pub(crate) mod any;
pub(crate) mod expression;
pub(crate) mod func_graph;
pub(crate) mod kept;
pub(crate) mod op_info;
pub(crate) mod record;
pub(crate) mod run;
pub(crate) mod slices;
pub(crate) mod tape;
pub(crate) mod value;
