//! Which nodes could be steps of an expression.

use tfp_bindings::DataType;
use tfp_bindings::proto::graph::NodeDef;
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::shape::MAX_RANK;
use tfp_kernels::ops::elementwise::expression::{operation, step_of};

use crate::graph::fuse::{CAST, cast_types, float_of, is_float};
use crate::graph::norm::Shapes;
use crate::graph::view::{data_inputs, is_on};

/// A node that could be a step.
pub struct Candidate {
    /// The number of the step.
    pub step: i64,
    pub shape: Vec<i64>,
    /// The types of its operands and of its result.
    pub from: DataType,
    pub to: DataType,
}

impl Candidate {
    pub fn is_wide(&self) -> bool {
        (self.from, self.to) == (DataType::FLOAT, DataType::FLOAT)
    }

    /// Whether the result is the operand, in a type that holds it.
    pub fn is_widening(&self) -> bool {
        self.from != self.to && self.to == DataType::FLOAT
    }
}

/// Whether a node does in float32 what a step can do.
pub fn is_step(node: &NodeDef) -> bool {
    is_float(node) && types(node).is_some()
}

/// The types of the operands and of the result of a node that does what a step can do.
pub fn types(node: &NodeDef) -> Option<(DataType, DataType)> {
    let (_, operands) = operation(&node.op)?;
    let types = match &*node.op {
        CAST => cast_types(node)?,
        _ => {
            let float = float_of(node)?;
            (float, float)
        }
    };
    (operands == data_inputs(node).count()).then_some(types)
}

/// The step that a node on the device could be, if its shape is known.
pub fn candidate(node: &NodeDef, device_type: &str, shapes: &Shapes<'_>) -> Option<Candidate> {
    let (from, to) = types(node).filter(|_| is_on(node, device_type))?;
    let (operation, _) = operation(&node.op)?;
    let step = step_of(operation, dtype(to)?)?;
    let shape = shapes(&node.name).filter(|shape| !shape.contains(&-1))?;
    // TensorFlow can take over an op of its own, but no expression.
    (shape.len() <= MAX_RANK).then_some(Candidate {
        step,
        shape,
        from,
        to,
    })
}

fn dtype(of: DataType) -> Option<DType> {
    match of {
        DataType::FLOAT => Some(DType::F32),
        DataType::HALF => Some(DType::F16),
        DataType::BFLOAT16 => Some(DType::BF16),
        _ => None,
    }
}
