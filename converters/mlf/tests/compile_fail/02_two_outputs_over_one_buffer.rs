// crate: constant_pool
// error: E0499
use tvmgen_default::{Output, Outputs};

fn main() {
    let mut buffer = Output::new();
    let first = Outputs::new(&mut buffer);
    let second = Outputs::new(&mut buffer); // misuse
    drop(second); // misuse
    drop(first);
}
