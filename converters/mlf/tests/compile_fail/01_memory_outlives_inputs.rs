// crate: constant_pool
// error: E0597
use tvmgen_default::{InputMemory, Inputs};

fn make<'a>(kept: &'a [f32]) -> Inputs<'a> {
    let local = [0.0f32; 16];
    let _ = &local;
    let memory = InputMemory::from_slice(&local); // misuse
    let memory = InputMemory::from_slice(kept); // right
    let memory: &'a InputMemory = memory.unwrap();
    Inputs::new(memory)
}

fn main() {
    make(&[]);
}
