// crate: constant_pool
// error: E0308
use tvmgen_default::{Output, Outputs};

fn main() {
    let mut buffer = Output::new();
    let outputs = Outputs::new(&buffer); // misuse
    let outputs = Outputs::new(&mut buffer); // right
    drop(outputs);
}
