// crate: constant_pool
// error: E0423
use tvmgen_default::{FLASH, Flash, Sram, WorkspacePools};

fn main() {
    let mut sram = Sram::new();
    let flash: &Flash = &Flash([0; 2816]); // misuse
    let flash: &Flash = &FLASH; // right
    let pools = WorkspacePools {
        flash,
        sram: &mut sram,
    };
    drop((pools, FLASH.clone()));
}
