// crate: constant_pool
// error: E0133
use tvmgen_default::{FLASH, FlashMemory, Sram, WorkspacePools};

fn main() {
    let mut sram = Sram::new();
    let bytes = FLASH.as_bytes();
    let flash = FlashMemory::from_bytes(bytes).unwrap(); // misuse
    let flash = unsafe { FlashMemory::from_bytes(bytes) }.unwrap(); // right
    drop(WorkspacePools {
        flash,
        sram: &mut sram,
    });
}
