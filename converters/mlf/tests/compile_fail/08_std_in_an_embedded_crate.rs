// crate: constant_pool
// error: E0433
// type: lib
#![no_std]
use core::ffi::c_void as right;
use std::os::raw::c_void; // misuse

pub fn size() -> usize {
    core::mem::size_of::<*mut right>() + tvmgen_default::Input::SIZE
}
