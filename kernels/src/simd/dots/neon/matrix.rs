//! Matmuls of bytes by `usmmla`, of the extension `i8mm`.

use core::arch::aarch64::*;
use core::arch::asm;

use super::super::{GROUP, STEP, Spaced, Sums};
use super::{Rows, VECTORS, add};

/// # Safety
/// The processor has `i8mm`; rows, blocks and sums are as long as [`super::super::Dots::add`] says.
#[target_feature(enable = "neon,i8mm")]
pub unsafe fn add_by_matrices(
    sums: &mut [Sums],
    x: Spaced<'_, u8>,
    weights: Spaced<'_, i8>,
    groups: usize,
) {
    let (rows, blocks) = (x.count, weights.count);
    for block in 0..blocks {
        let w = weights.data.as_ptr().wrapping_add(block * weights.pitch);
        let mut row = 0;
        while row < rows {
            let from = Rows {
                at: x.data.as_ptr().wrapping_add(row * x.pitch),
                pitch: x.pitch,
            };
            let (to, stride) = (&mut sums[row * blocks + block..], blocks);
            // SAFETY: so many rows and a block, of so many groups, by the caller.
            row += unsafe {
                match rows - row {
                    8.. => {
                        tile::<4>((to, stride), from, w, 0, groups);
                        tile::<4>((to, stride), from, w, 2, groups)
                    }
                    4.. => {
                        tile::<2>((to, stride), from, w, 0, groups);
                        tile::<2>((to, stride), from, w, 2, groups)
                    }
                    2.. => {
                        tile::<1>((to, stride), from, w, 0, groups);
                        tile::<1>((to, stride), from, w, 2, groups)
                    }
                    _ => single(&mut to[0], from, w, groups),
                }
            };
        }
    }
}

/// Adds the sums of `P` pairs of rows and of two vectors of a block from `first` on; the sums of a
/// row are `stride` after those of the last one. Returns the number of rows.
///
/// # Safety
/// The processor has `i8mm`; `groups` of each row and of the block can be read.
#[inline]
#[target_feature(enable = "neon,i8mm")]
unsafe fn tile<const P: usize>(
    (out, stride): (&mut [Sums], usize),
    x: Rows,
    w: *const i8,
    first: usize,
    groups: usize,
) -> usize {
    let mut sums = [[vdupq_n_s32(0); 4]; P];
    let w = w.wrapping_add(first * 16);
    let mut group = 0;
    while group + 2 <= groups {
        // SAFETY: two groups of each row and of the block, by the caller.
        unsafe { step::<P, true>(&mut sums, x, group * GROUP, w.wrapping_add(group * STEP)) };
        group += 2;
    }
    if group < groups {
        // SAFETY: a group of each row and of the block, by the caller.
        unsafe { step::<P, false>(&mut sums, x, group * GROUP, w.wrapping_add(group * STEP)) };
    }
    for (pair, sums) in sums.iter().enumerate() {
        for v in 0..2 {
            let (a, b) = (
                vreinterpretq_s64_s32(sums[2 * v]),
                vreinterpretq_s64_s32(sums[2 * v + 1]),
            );
            let rows = [vzip1q_s64(a, b), vzip2q_s64(a, b)];
            for (row, sum) in rows.into_iter().enumerate() {
                let to = &mut out[(2 * pair + row) * stride];
                add(to, first + v, vreinterpretq_s32_s64(sum));
            }
        }
    }
    2 * P
}

/// Adds the products of two groups, or if not `BOTH` of one, to sums of two rows and two channels.
///
/// # Safety
/// The processor has `i8mm`; the groups of each row from `place` on and of the block can be read.
#[inline]
#[target_feature(enable = "neon,i8mm")]
unsafe fn step<const P: usize, const BOTH: bool>(
    sums: &mut [[int32x4_t; 4]; P],
    x: Rows,
    place: usize,
    w: *const i8,
) {
    // SAFETY: one group of the block, or two, by the caller.
    let ([a, b], [c, d]) = unsafe {
        let near = [vld1q_s32(w.cast()), vld1q_s32(w.wrapping_add(16).cast())];
        let mut far = [vdupq_n_s32(0); 2];
        if BOTH {
            let w = w.wrapping_add(STEP);
            far = [vld1q_s32(w.cast()), vld1q_s32(w.wrapping_add(16).cast())];
        }
        (near, far)
    };
    let parts = [
        vzip1q_s32(a, c),
        vzip2q_s32(a, c),
        vzip1q_s32(b, d),
        vzip2q_s32(b, d),
    ];
    for (pair, sums) in sums.iter_mut().enumerate() {
        let at = |row: usize| x.at.wrapping_add((2 * pair + row) * x.pitch + place);
        // SAFETY: as many groups of both rows, by the caller; no alignment is asked for.
        let rows = unsafe {
            if BOTH {
                vcombine_u8(vld1_u8(at(0)), vld1_u8(at(1)))
            } else {
                let four = |row| u64::from(at(row).cast::<u32>().read_unaligned());
                vcombine_u8(vcreate_u8(four(0)), vcreate_u8(four(1)))
            }
        };
        for (sum, &part) in sums.iter_mut().zip(&parts) {
            *sum = usmmla(*sum, rows, vreinterpretq_s8_s32(part));
        }
    }
}

/// Adds the sums of one row and a block. Returns the number of rows.
///
/// # Safety
/// The processor has `i8mm`; `groups` of the row and of the block can be read.
#[inline]
#[target_feature(enable = "neon,i8mm")]
unsafe fn single(out: &mut Sums, x: Rows, w: *const i8, groups: usize) -> usize {
    let mut sums = [vdupq_n_s32(0); VECTORS];
    let mut group = 0;
    while group + 4 <= groups {
        // SAFETY: four groups of the row and of the block, by the caller.
        unsafe {
            let four = x.groups(0, group * GROUP);
            let w = w.wrapping_add(group * STEP);
            grouped::<0>(&mut sums, four, w);
            grouped::<1>(&mut sums, four, w.wrapping_add(STEP));
            grouped::<2>(&mut sums, four, w.wrapping_add(2 * STEP));
            grouped::<3>(&mut sums, four, w.wrapping_add(3 * STEP));
        }
        group += 4;
    }
    while group < groups {
        // SAFETY: a group of the row and of the block, by the caller.
        unsafe {
            let one = x.group(0, group * GROUP);
            grouped::<0>(&mut sums, one, w.wrapping_add(group * STEP));
        }
        group += 1;
    }
    for (v, sum) in sums.into_iter().enumerate() {
        add(out, v, sum);
    }
    1
}

/// Adds the products of a group, which is one of four of `x`.
///
/// # Safety
/// The weights of a group can be read.
#[inline]
#[target_feature(enable = "neon,i8mm")]
unsafe fn grouped<const LANE: i32>(sums: &mut [int32x4_t; VECTORS], x: uint8x16_t, w: *const i8) {
    for (v, sum) in sums.iter_mut().enumerate() {
        // SAFETY: by the caller.
        let w = unsafe { vld1q_s8(w.wrapping_add(v * 16)) };
        *sum = sudot::<LANE>(*sum, w, x);
    }
}

/// Adds the products of two rows of eight bytes each, without signs, with two of weights.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn usmmla(mut sum: int32x4_t, x: uint8x16_t, w: int8x16_t) -> int32x4_t {
    // SAFETY: an instruction of `i8mm`, registers only.
    unsafe {
        asm!(
            "usmmla {sum:v}.4s, {x:v}.16b, {w:v}.16b",
            sum = inout(vreg) sum,
            x = in(vreg) x,
            w = in(vreg) w,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}

/// Adds to each lane of 32 bits the products of its four weights with four bytes of `x`.
#[inline]
#[target_feature(enable = "neon,i8mm")]
fn sudot<const LANE: i32>(mut sum: int32x4_t, w: int8x16_t, x: uint8x16_t) -> int32x4_t {
    // SAFETY: an instruction of `i8mm`, registers only.
    unsafe {
        asm!(
            "sudot {sum:v}.4s, {w:v}.16b, {x:v}.4b[{lane}]",
            sum = inout(vreg) sum,
            w = in(vreg) w,
            x = in(vreg) x,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}
