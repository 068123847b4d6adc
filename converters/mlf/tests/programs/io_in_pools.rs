//! Inputs and outputs in the pools, with pools that the program owns.

use tvmgen_default::{Dtcm, InputX0, Model, Sram, WorkspacePools};

#[test]
fn several_runs_with_own_pools() {
    let (mut dtcm, mut sram) = (Dtcm::new(), Sram::new());
    let mut pools = WorkspacePools::new(&mut dtcm, &mut sram);
    let model = Model::new();
    for round in 0..3i16 {
        let inputs = pools.inputs_mut();
        **inputs.x_0 = [10.0, 20.0, 30.0, 40.0];
        **inputs.bias = [round; 4];
        assert_eq!(inputs.x_0.as_nested(), &[[10.0, 20.0], [30.0, 40.0]]);
        let outputs = model.run(&mut pools).unwrap();
        let r = f32::from(round);
        assert_eq!(*outputs.y, [10.0 - r, 20.0 - r, 30.0 - r, 40.0 - r]);
    }
    assert_eq!(InputX0::SHAPE, [2, 2]);
    assert!(Sram::take().is_some() && Sram::take().is_none());
}
