//! A plug-in of QEMU 7 and later, for programs of one thread: the instructions that it ran, on
//! standard error.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::sync::atomic::{AtomicU64, Ordering};

/// The plug-in's interface that this is written for; QEMU reads it.
#[unsafe(no_mangle)]
pub static qemu_plugin_version: c_int = 1;

/// Instructions, and those that read or write memory.
static COUNTS: [AtomicU64; 2] = [AtomicU64::new(0), AtomicU64::new(0)];

/// `QEMU_PLUGIN_INLINE_ADD_U64`
const ADD: c_uint = 0;
/// `QEMU_PLUGIN_MEM_RW`
const READS_AND_WRITES: c_uint = 3;
/// `QEMU_PLUGIN_CB_NO_REGS`
const NO_REGISTERS: c_uint = 0;

type Translated = extern "C" fn(u64, *mut c_void);
type Accessed = extern "C" fn(c_uint, u32, u64, *mut c_void);

unsafe extern "C" {
    fn qemu_plugin_register_vcpu_tb_trans_cb(id: u64, callback: Translated);
    fn qemu_plugin_register_atexit_cb(
        id: u64,
        callback: extern "C" fn(u64, *mut c_void),
        data: *mut c_void,
    );
    fn qemu_plugin_register_vcpu_tb_exec_inline(
        block: *mut c_void,
        op: c_uint,
        counter: *mut c_void,
        by: u64,
    );
    fn qemu_plugin_tb_n_insns(block: *const c_void) -> usize;
    fn qemu_plugin_tb_get_insn(block: *const c_void, index: usize) -> *mut c_void;
    fn qemu_plugin_register_vcpu_mem_cb(
        instruction: *mut c_void,
        callback: Accessed,
        flags: c_uint,
        which: c_uint,
        data: *mut c_void,
    );
}

extern "C" fn accessed(_: c_uint, _: u32, _: u64, _: *mut c_void) {
    COUNTS[1].fetch_add(1, Ordering::Relaxed);
}

extern "C" fn translated(_: u64, block: *mut c_void) {
    // SAFETY: QEMU lends the block for this call, and knows these functions; the counter lives as
    // long as the process, and one thread adds to it.
    unsafe {
        let count = qemu_plugin_tb_n_insns(block);
        let counter = COUNTS[0].as_ptr().cast();
        qemu_plugin_register_vcpu_tb_exec_inline(block, ADD, counter, count as u64);
        for index in 0..count {
            let instruction = qemu_plugin_tb_get_insn(block, index);
            let nothing = std::ptr::null_mut();
            qemu_plugin_register_vcpu_mem_cb(
                instruction,
                accessed,
                NO_REGISTERS,
                READS_AND_WRITES,
                nothing,
            );
        }
    }
}

extern "C" fn done(_: u64, _: *mut c_void) {
    let [instructions, accesses] = COUNTS.each_ref().map(|count| count.load(Ordering::Relaxed));
    eprintln!("instructions {instructions} accesses {accesses}");
}

/// QEMU calls it before the program starts.
#[unsafe(no_mangle)]
pub extern "C" fn qemu_plugin_install(
    id: u64,
    _: *const c_void,
    _: c_int,
    _: *const *const c_char,
) -> c_int {
    // SAFETY: QEMU knows these functions, and gave the number.
    unsafe {
        qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
        qemu_plugin_register_atexit_cb(id, done, std::ptr::null_mut());
    }
    0
}
