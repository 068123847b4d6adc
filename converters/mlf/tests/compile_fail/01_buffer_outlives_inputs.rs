// crate: constant_pool
// error: E0515
use tvmgen_default::{Input, Inputs};

fn make<'a>(_kept: &'a Input) -> Inputs<'a> {
    let local = Input::new(); // misuse
    Inputs::new(&local) // misuse
    Inputs::new(_kept) // right
}

fn main() {
    make(&Input::new());
}
