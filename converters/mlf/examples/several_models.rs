//! Two models of one archive, each in its own module.
//!
//! Crate: the archive `multi.tar`.

use tvm_models::{Error, conv, mlp};

fn main() -> Result<(), Error> {
    let image = conv::InputData::new();
    println!("{} rows", image.as_nested()[0].len());
    let mut features = conv::Output::new();
    conv::Model::new().run(
        &conv::Inputs::new(&image),
        &mut conv::Outputs::new(&mut features),
    )?;

    let vector = mlp::Input::new();
    let mut scores = mlp::Output::new();
    let mut classifier = mlp::Model::take().expect("the first and only use");
    classifier.run(
        &mlp::Inputs::new(&vector),
        &mut mlp::Outputs::new(&mut scores),
    )?;
    println!("{scores:?}");
    Ok(())
}
