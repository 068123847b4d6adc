// crate: constant_pool
// error: unused_must_use
#![deny(unused_must_use)]
use tvmgen_default::{Input, Inputs, Model, Output, Outputs, Sram, WorkspacePools};

fn main() {
    let (input, mut output, mut sram) = (Input::new(), Output::new(), Sram::new());
    let inputs = Inputs::new(&input);
    let mut outputs = Outputs::new(&mut output);
    let mut pools = WorkspacePools::new(&mut sram);
    Model::new().run(&inputs, &mut outputs, &mut pools); // misuse
    assert!(Model::new().run(&inputs, &mut outputs, &mut pools).is_ok()); // right
}
