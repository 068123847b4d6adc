//! The bodies for 64-bit Arm: products by the instructions that a processor has, and what NEON has
//! for the rest.

mod channels;
mod dotprod;
mod matrix;
mod plain;

pub use channels::{lines, narrow};
pub use dotprod::add_by_dotprod;
pub use matrix::add_by_matrices;
pub use plain::add_by_mlal;

use core::arch::aarch64::*;

use super::Sums;

/// Vectors of a block: each has four channels.
const VECTORS: usize = 4;

/// Rows at equal distances.
#[derive(Clone, Copy)]
struct Rows {
    at: *const u8,
    pitch: usize,
}

impl Rows {
    /// Four bytes of a row from a place on, four times.
    ///
    /// # Safety
    /// They can be read.
    #[inline(always)]
    unsafe fn group(self, row: usize, place: usize) -> uint8x16_t {
        let at = self.at.wrapping_add(row * self.pitch + place);
        // SAFETY: by the caller; no alignment is asked for.
        unsafe { vreinterpretq_u8_u32(vdupq_n_u32(at.cast::<u32>().read_unaligned())) }
    }

    /// Two times four bytes of a row from a place on, four times each, less 128.
    ///
    /// # Safety
    /// They can be read.
    #[inline(always)]
    unsafe fn two(self, row: usize, place: usize) -> [int8x16_t; 2] {
        // SAFETY: by the caller; NEON, which the target has.
        unsafe {
            let eight = vld1_u8(self.at.wrapping_add(row * self.pitch + place));
            let eight = vreinterpret_s32_u8(veor_u8(eight, vdup_n_u8(0x80)));
            [
                vreinterpretq_s8_s32(vdupq_lane_s32::<0>(eight)),
                vreinterpretq_s8_s32(vdupq_lane_s32::<1>(eight)),
            ]
        }
    }

    /// Sixteen bytes of a row from a place on.
    ///
    /// # Safety
    /// They can be read.
    #[inline(always)]
    unsafe fn groups(self, row: usize, place: usize) -> uint8x16_t {
        // SAFETY: by the caller.
        unsafe { vld1q_u8(self.at.wrapping_add(row * self.pitch + place)) }
    }
}

/// A byte less 128, as a number with a sign.
#[inline(always)]
fn signed(x: uint8x16_t) -> int8x16_t {
    // SAFETY: NEON, which the target has; registers only.
    unsafe { vreinterpretq_s8_u8(veorq_u8(x, vdupq_n_u8(0x80))) }
}

/// Adds to four neighbouring sums of channels.
#[inline(always)]
fn add(sums: &mut Sums, vector: usize, more: int32x4_t) {
    let to = &mut sums.as_chunks_mut::<VECTORS>().0[vector];
    // SAFETY: four sums; NEON, which the target has.
    unsafe { vst1q_s32(to.as_mut_ptr(), vaddq_s32(vld1q_s32(to.as_ptr()), more)) }
}
