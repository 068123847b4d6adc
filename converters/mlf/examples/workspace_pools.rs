//! Running a model with workspace and constant pools.
//!
//! Crate: the archive `constant_pool.tar`. The weights stay in read-only memory: `WorkspacePools::new`
//! points at the crate's static, and nothing copies them. The workspace is a static in `.bss`.

use tvmgen_default::{
    Error, FLASH, Flash, Input, Inputs, Model, Output, Outputs, Sram, WorkspacePools,
};

fn main() -> Result<(), Error> {
    let input_data = Input([0.5; Input::LEN]);
    let mut output_data = Output::new();
    let model = Model::new();

    let workspace: &'static mut Sram = Sram::take().expect("the first use of the crate's pool");
    let mut pools = WorkspacePools::new(workspace);
    model.run(
        &Inputs::new(&input_data),
        &mut Outputs::new(&mut output_data),
        &mut pools,
    )?;

    // Memory of your own works too, and a copy of the weights in faster memory.
    let mut own = Sram::new();
    let fast: Flash = FLASH.clone();
    let mut second = Output::new();
    let mut pools = WorkspacePools {
        flash: &fast,
        sram: &mut own,
    };
    model.run(
        &Inputs::new(&input_data),
        &mut Outputs::new(&mut second),
        &mut pools,
    )?;
    assert_eq!(output_data, second);
    println!("{output_data:?}, {} bytes of workspace", Sram::SIZE);
    Ok(())
}
