//! Firmware without allocator: runs one model on a recorded input and prints its outputs.

#![no_std]
#![no_main]

use core::arch::asm;
use core::panic::PanicInfo;

fn semihosting(operation: u32, argument: *const u8) {
    // SAFETY: a semihosting call; QEMU reads what the operation says, all of it static or on the stack.
    unsafe {
        asm!("bkpt 0xAB", inlateout("r0") operation => _, in("r1") argument, options(nostack));
    }
}

fn print(text: &[u8]) {
    for &byte in text {
        semihosting(3, &byte);
    }
}

fn print_bytes(name: &str, bytes: &[u8]) {
    print(name.as_bytes());
    print(b" ");
    for byte in bytes {
        print(&[
            b"0123456789abcdef"[usize::from(byte >> 4)],
            b"0123456789abcdef"[usize::from(byte & 15)],
        ]);
    }
    print(b"\n");
}

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    print(b"panic\n");
    exit(0x20023)
}

fn exit(reason: u32) -> ! {
    loop {
        semihosting(0x18, reason as *const u8);
    }
}

include!("body.rs");

// SAFETY: the only `main` of the firmware.
#[unsafe(no_mangle)]
extern "C" fn main() -> ! {
    body();
    print(b"done\n");
    exit(0x20026)
}
