//! Ops of the plug-in's own, which the graph optimizer puts into graphs.

use std::sync::atomic::{AtomicBool, Ordering};

use tfp_bindings::op::{OpDefinition, SameShape, UnknownShapes};
use tfp_bindings::{Code, Result, log};

use crate::moves::{TO_DEVICE, TO_HOST};
use crate::variables::fits;

/// Whether this process knows all of them.
static DEFINED: AtomicBool = AtomicBool::new(false);

/// Whether this process knows all of them.
pub fn are_defined() -> bool {
    DEFINED.load(Ordering::Relaxed)
}

/// Defines them for the process.
pub fn define() {
    let activation = "activation: string = ''";
    // The slope of the negative side, of one activation.
    let alpha = "alpha: float = 0.2";
    let fused_mat_mul = OpDefinition::new("TfpFusedMatMul")
        .input("a: T")
        .input("b: T")
        .input("bias: T")
        .output("product: T")
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr(activation)
        .attr(alpha)
        .attr("T: type");
    let fused_conv = OpDefinition::new("TfpFusedConv2D")
        .input("input: T")
        .input("filter: U")
        .input("bias: U")
        .input("residual: N * T")
        .output("output: T")
        .attr("N: int >= 0 = 0")
        .attr("strides: list(int)")
        .attr("dilations: list(int) = [1, 1, 1, 1]")
        .attr("padding: string")
        .attr("explicit_paddings: list(int) = []")
        .attr("data_format: string = 'NHWC'")
        .attr(activation)
        .attr(alpha)
        .attr("T: type")
        .attr("U: type");
    let scatter = OpDefinition::new("TfpScatter")
        .input("tensor: T")
        .input("indices: Tindices")
        .input("updates: T")
        .output("output: T")
        .attr("reduction: string")
        .attr("nd: bool = false")
        .attr("T: type")
        .attr("Tindices: {int32, int64}");
    let scale_shift = OpDefinition::new("TfpScaleShift")
        .input("x: T")
        .input("scale: U")
        .input("shift: U")
        .output("y: T")
        .attr(activation)
        .attr("T: type")
        .attr("U: type");
    let expression = OpDefinition::new("TfpExpression")
        .input("inputs: Tin")
        .output("outputs: M * T")
        .attr("Tin: list({float, half, bfloat16}) >= 1")
        .attr("M: int >= 1 = 1")
        .attr("program: list(int)")
        .attr("results: list(int) = []")
        .attr("extents: list(int) = []")
        .attr("T: type");
    let moving = |op| {
        OpDefinition::new(op)
            .input("x: T")
            .output("y: T")
            .attr("T: type")
    };
    let results = [
        expression.register::<UnknownShapes>(),
        fused_mat_mul.register::<UnknownShapes>(),
        fused_conv.register::<UnknownShapes>(),
        scale_shift.register::<SameShape>(),
        scatter.register::<SameShape>(),
        moving(TO_HOST).register::<SameShape>(),
        moving(TO_DEVICE).register::<SameShape>(),
        fits::definition().register::<UnknownShapes>(),
    ];
    let known = results.map(is_known);
    DEFINED.store(known.iter().all(|&known| known), Ordering::Relaxed);
}

/// Whether an op is defined after an attempt with this result.
fn is_known(result: Result<()>) -> bool {
    match result {
        Ok(()) => true,
        // Another copy of the library has been loaded before.
        Err(error) if error.code() == Code::AlreadyExists => true,
        Err(error) => {
            log(&format!("op left out: {error}"));
            false
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tfp_bindings::Error;

    #[test]
    fn an_op_that_exists_is_known() {
        assert!(is_known(Ok(())));
        assert!(is_known(Err(Error::new(Code::AlreadyExists, "it does"))));
        assert!(!is_known(Err(Error::internal("broken"))));
    }
}
