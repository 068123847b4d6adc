// crate: io_in_pools
// error: E0499
use tvmgen_default::{Dtcm, Model, Sram, WorkspacePools};

fn main() {
    let (mut dtcm, mut sram) = (Dtcm::new(), Sram::new());
    let mut pools = WorkspacePools::new(&mut dtcm, &mut sram);
    let inputs = pools.inputs_mut();
    **inputs.x_0 = [1.0; 4];
    let outputs = Model::new().run(&mut pools).unwrap();
    **inputs.x_0 = [2.0; 4]; // misuse
    assert!(outputs.y[0] > 0.0);
}
