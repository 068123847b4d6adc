// crate: constant_pool
// error: E0308
use tvmgen_default::{Input, Inputs};

fn main() {
    let data = [0.0f32; 16]; // misuse
    let data = Input([0.0f32; 16]); // right
    drop(Inputs::new(&data));
    let _: Option<Input> = None;
}
