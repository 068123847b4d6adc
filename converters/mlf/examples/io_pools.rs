//! Running a model whose inputs and outputs lie in its pools.
//!
//! Crate: the hand-made archive `io_in_pools`. The borrow of the inputs ends before the run starts,
//! because a run overwrites them; the outputs borrow the pools until they are read.

use tvmgen_default::{Dtcm, Error, Model, Sram, WorkspacePools};

fn main() -> Result<(), Error> {
    let dtcm = Dtcm::take().expect("the first use of the crate's pool");
    let sram = Sram::take().expect("the first use of the crate's pool");
    let mut pools = WorkspacePools::new(dtcm, sram);

    let inputs = pools.inputs_mut();
    inputs.x_0.copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
    inputs.bias.copy_from_slice(&[1, 1, 1, 1]);

    let outputs = Model::new().run(&mut pools)?;
    assert_eq!(*outputs.y, [0.0, 1.0, 2.0, 3.0]);
    println!("{:?}", outputs.y);
    Ok(())
}
