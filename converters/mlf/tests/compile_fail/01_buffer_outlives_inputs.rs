// crate: constant_pool
// error: E0597
use tvmgen_default::{Input, Inputs};

fn make<'a>(kept: &'a Input) -> Inputs<'a> {
    let local = Input::new();
    let _ = &local;
    let inputs: Inputs<'a> = Inputs::new(&local); // misuse
    let inputs: Inputs<'a> = Inputs::new(kept); // right
    inputs
}

fn main() {
    make(&Input::new());
}
