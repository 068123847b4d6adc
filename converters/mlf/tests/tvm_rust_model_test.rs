//! The Bazel rule's crate links with its C and runs.

use tvm_constant_pool::{Input, Inputs, Model, Output, Outputs, Sram, WorkspacePools};

#[test]
fn softmax_sums_to_one() {
    let input = Input([0.25; Input::LEN]);
    let mut output = Output::new();
    let mut sram = Sram::new();
    let mut pools = WorkspacePools::new(&mut sram);
    let mut outputs = Outputs::new(&mut output);
    Model::new()
        .run(&Inputs::new(&input), &mut outputs, &mut pools)
        .expect("the model runs");
    assert!((output.iter().sum::<f32>() - 1.0).abs() < 1e-6);
}
