// crate: multi
// error: E0308
use tvm_models::{conv, mlp};

fn main() {
    let image = conv::InputData::new();
    let vector = mlp::Input::new();
    drop(mlp::Inputs::new(&image)); // misuse
    drop(mlp::Inputs::new(&vector)); // right
    drop(conv::Inputs::new(&image));
    let _ = vector;
}
