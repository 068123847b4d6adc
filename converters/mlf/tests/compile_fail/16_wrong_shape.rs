// crate: constant_pool
// error: E0308
use tvmgen_default::Input;

fn main() {
    let input = Input::new();
    let rows: &[[f32; 8]; 2] = input.as_nested(); // misuse
    let rows: &[[f32; 16]; 1] = input.as_nested(); // right
    assert_eq!(rows.len() * rows[0].len(), Input::LEN);
}
