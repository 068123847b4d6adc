// crate: plain
// error: E0451
use tvmgen_default::Model;

fn main() {
    let first = Model::take();
    let second = Model { _private: () }; // misuse
    drop(second); // misuse
    drop(first);
}
