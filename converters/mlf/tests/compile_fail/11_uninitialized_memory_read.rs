// crate: constant_pool
// error: E0616
use tvmgen_default::Sram;

fn main() {
    let sram = Sram::new();
    let bytes = unsafe { sram.0.assume_init_ref() }; // misuse
    let _ = bytes[0]; // misuse
    drop(sram);
}
