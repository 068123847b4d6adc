//! Products of eight bits by `sdot`, of the extension `dotprod`.

use core::arch::aarch64::*;
use core::arch::asm;

use super::super::{GROUP, STEP, Spaced, Sums};
use super::{Rows, VECTORS, add, signed};

/// # Safety
/// The processor has `dotprod`; rows, blocks and sums are as long as [`super::super::Dots::add`]
/// says.
#[target_feature(enable = "neon,dotprod")]
pub unsafe fn add_by_dotprod(
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
            let to = (&mut sums[row * blocks + block..], blocks);
            // SAFETY: so many rows and a block, of so many groups, by the caller.
            row += unsafe {
                match rows - row {
                    8.. => {
                        tile::<8, 2>((&mut *to.0, to.1), from, w, 0, groups);
                        tile::<8, 2>(to, from, w, 2, groups)
                    }
                    4.. => tile::<4, 4>(to, from, w, 0, groups),
                    2.. => tile::<2, 4>(to, from, w, 0, groups),
                    _ => tile::<1, 4>(to, from, w, 0, groups),
                }
            };
        }
    }
}

/// Adds the sums of rows and of `V` vectors of a block from `first` on; the sums of a row are
/// `stride` after those of the last one. Returns the number of rows.
///
/// # Safety
/// The processor has `dotprod`; `groups` of each row and of the block can be read.
#[inline]
#[target_feature(enable = "neon,dotprod")]
unsafe fn tile<const R: usize, const V: usize>(
    (out, stride): (&mut [Sums], usize),
    x: Rows,
    w: *const i8,
    first: usize,
    groups: usize,
) -> usize {
    let mut sums = Tile::<R, V> {
        rows: [[vdupq_n_s32(0); V]; R],
        offset: [vdupq_n_s32(0); V],
    };
    let w = w.wrapping_add(first * 16);
    let mut group = 0;
    while group + 4 <= groups {
        let mut four = [vdupq_n_s8(0); R];
        for (row, four) in four.iter_mut().enumerate() {
            // SAFETY: four groups of a row, by the caller.
            *four = signed(unsafe { x.groups(row, group * GROUP) });
        }
        let w = w.wrapping_add(group * STEP);
        // SAFETY: four groups of the block, by the caller.
        unsafe {
            sums.add::<0>(&four, w);
            sums.add::<1>(&four, w.wrapping_add(STEP));
            sums.add::<2>(&four, w.wrapping_add(2 * STEP));
            sums.add::<3>(&four, w.wrapping_add(3 * STEP));
        }
        group += 4;
    }
    while group < groups {
        let mut one = [vdupq_n_s8(0); R];
        for (row, one) in one.iter_mut().enumerate() {
            // SAFETY: a group of a row, by the caller.
            *one = signed(unsafe { x.group(row, group * GROUP) });
        }
        // SAFETY: a group of the block, by the caller.
        unsafe { sums.add::<0>(&one, w.wrapping_add(group * STEP)) };
        group += 1;
    }
    for (row, of) in sums.rows.iter().enumerate() {
        for (v, (&of, &offset)) in of.iter().zip(&sums.offset).enumerate() {
            let sum = vsubq_s32(of, offset);
            add(&mut out[row * stride], first + v, sum);
        }
    }
    R
}

/// Sums of rows, whose bytes are 128 less than they should be, and -128 times the weights.
struct Tile<const R: usize, const V: usize> {
    rows: [[int32x4_t; V]; R],
    offset: [int32x4_t; V],
}

impl<const R: usize, const V: usize> Tile<R, V> {
    const FITS: () = assert!(V <= VECTORS);

    /// Adds the products of a group, which is one of four of `x`.
    ///
    /// # Safety
    /// `V` vectors of weights can be read.
    #[inline]
    #[target_feature(enable = "neon,dotprod")]
    unsafe fn add<const LANE: i32>(&mut self, x: &[int8x16_t; R], w: *const i8) {
        const { Self::FITS };
        for v in 0..V {
            // SAFETY: by the caller.
            let w = unsafe { vld1q_s8(w.wrapping_add(v * 16)) };
            self.offset[v] = sdot::<0>(self.offset[v], w, vdupq_n_s8(-128));
            for (sums, &x) in self.rows.iter_mut().zip(x) {
                sums[v] = sdot::<LANE>(sums[v], w, x);
            }
        }
    }
}

/// Adds to each lane of 32 bits the products of its four bytes with four bytes of `x`.
#[inline]
#[target_feature(enable = "neon,dotprod")]
fn sdot<const LANE: i32>(mut sum: int32x4_t, w: int8x16_t, x: int8x16_t) -> int32x4_t {
    // SAFETY: an instruction of `dotprod`, registers only.
    unsafe {
        asm!(
            "sdot {sum:v}.4s, {w:v}.16b, {x:v}.4b[{lane}]",
            sum = inout(vreg) sum,
            w = in(vreg) w,
            x = in(vreg) x,
            lane = const LANE,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
    sum
}
