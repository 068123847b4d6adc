//! Running a simple model: plain arrays in, plain arrays out.
//!
//! Crate: the archive `plain.tar`. Its C keeps scratch memory in a static, so the model exists once.

use tvmgen_default::{Error, Input, Inputs, Model, Output, Outputs};

fn create_input() -> [f32; Input::LEN] {
    core::array::from_fn(|index| index as f32 / 16.0)
}

fn main() -> Result<(), Error> {
    let input_data = Input(create_input());
    let mut output_data = Output::new();

    let mut model = Model::take().expect("the first and only use");
    model.run(
        &Inputs::new(&input_data),
        &mut Outputs::new(&mut output_data),
    )?;

    let sum: f32 = output_data.iter().sum();
    assert!((sum - 1.0).abs() < 1e-6, "softmax sums to one");
    println!("{output_data:?}");
    Ok(())
}
