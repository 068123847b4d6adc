//! Ops of the plug-in's own, which the graph optimizer puts into graphs.

use tfp_bindings::op::{OpDefinition, SameShape, UnknownShapes};
use tfp_bindings::{Code, Result, log};

/// Defines them for the process.
pub fn define() {
    let activation = "activation: string = ''";
    let fused_mat_mul = OpDefinition::new("TfpFusedMatMul")
        .input("a: T")
        .input("b: T")
        .input("bias: T")
        .output("product: T")
        .attr("transpose_a: bool = false")
        .attr("transpose_b: bool = false")
        .attr(activation)
        .attr("T: type");
    let fused_conv = OpDefinition::new("TfpFusedConv2D")
        .input("input: T")
        .input("filter: T")
        .input("bias: T")
        .output("output: T")
        .attr("strides: list(int)")
        .attr("dilations: list(int) = [1, 1, 1, 1]")
        .attr("padding: string")
        .attr("explicit_paddings: list(int) = []")
        .attr("data_format: string = 'NHWC'")
        .attr(activation)
        .attr("T: type");
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
        .input("scale: T")
        .input("shift: T")
        .output("y: T")
        .attr(activation)
        .attr("T: type");
    report(fused_mat_mul.register::<UnknownShapes>());
    report(fused_conv.register::<UnknownShapes>());
    report(scale_shift.register::<SameShape>());
    report(scatter.register::<SameShape>());
}

fn report(result: Result<()>) {
    match result {
        Ok(()) => {}
        // Another copy of the library has been loaded before.
        Err(error) if error.code() == Code::AlreadyExists => {}
        Err(error) => log(&format!("op left out: {error}")),
    }
}
