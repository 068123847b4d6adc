//! Products of eight bits by instructions that every 64-bit Arm processor has.

use core::arch::aarch64::*;
use core::arch::asm;

use super::super::{GROUP, STEP, Spaced, Sums};
use super::{Rows, add, signed};

/// Vectors of a block whose sums are made together.
const TOGETHER: usize = 2;

/// # Safety
/// Rows, blocks and sums are as long as [`super::super::Dots::add`] says.
pub unsafe fn add_by_mlal(
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
                if rows - row >= 4 {
                    halves::<4>((to, stride), from, w, groups)
                } else {
                    halves::<1>((to, stride), from, w, groups)
                }
            };
        }
    }
}

/// Adds the sums of rows and a block. Returns the number of rows.
///
/// # Safety
/// `groups` of each row and of the block can be read.
#[inline(always)]
unsafe fn halves<const R: usize>(
    (out, stride): (&mut [Sums], usize),
    x: Rows,
    w: *const i8,
    groups: usize,
) -> usize {
    for first in [0, TOGETHER] {
        // SAFETY: by the caller.
        unsafe {
            if !tile::<R, false>((out, stride), x, w, first, groups) {
                tile::<R, true>((out, stride), x, w, first, groups);
            }
        }
    }
    R
}

/// Adds the sums of rows and of two vectors of a block from `first` on; the sums of a row are
/// `stride` after those of the last one.
///
/// Two products of bytes overflow 16 bits if all four are -128, and only then. If not `EXACT`, they
/// are added there, and if a weight is -128, nothing was done: then it returns `false`.
///
/// # Safety
/// `groups` of each row and of the block can be read.
#[inline(never)]
unsafe fn tile<const R: usize, const EXACT: bool>(
    (out, stride): (&mut [Sums], usize),
    x: Rows,
    w: *const i8,
    first: usize,
    groups: usize,
) -> bool {
    let w = w.wrapping_add(first * 16);
    let mut tile = Tile::<R>::new();
    let mut group = 0;
    while group + 2 <= groups {
        let at = w.wrapping_add(group * STEP);
        // SAFETY: two groups of the block and of each row, by the caller.
        unsafe {
            let (near, far) = (weights(at), weights(at.wrapping_add(STEP)));
            tile.add::<EXACT>(near, far, |row| x.two(row, group * GROUP));
        }
        group += 2;
    }
    while group < groups {
        // SAFETY: a group of the block and of each row, by the caller; NEON, which the target has.
        unsafe {
            let (near, far) = (weights(w.wrapping_add(group * STEP)), vdupq_n_s8(0));
            tile.add::<EXACT>(near, [far; TOGETHER], |row| {
                [signed(x.group(row, group * GROUP)); 2]
            });
        }
        group += 1;
    }
    // SAFETY: NEON, which the target has; registers only.
    if !EXACT && unsafe { vminvq_s8(tile.least) } == i8::MIN {
        return false;
    }
    for (row, sums) in tile.sums.iter().enumerate() {
        for (v, &[low, high]) in sums.iter().enumerate() {
            // SAFETY: NEON, which the target has; registers only. Bytes were 128 less than they
            // should be.
            let sum =
                unsafe { vaddq_s32(vpaddq_s32(low, high), vshlq_n_s32::<7>(tile.weights[v])) };
            add(&mut out[row * stride], first + v, sum);
        }
    }
    true
}

/// A group of weights of the channels of two vectors.
///
/// # Safety
/// They can be read.
#[inline(always)]
unsafe fn weights(at: *const i8) -> [int8x16_t; TOGETHER] {
    // SAFETY: by the caller; NEON, which the target has.
    unsafe { [vld1q_s8(at), vld1q_s8(at.wrapping_add(16))] }
}

/// What is summed of rows.
struct Tile<const R: usize> {
    /// Two lanes of each channel: of vectors, those of their low halves and of their high halves.
    sums: [[[int32x4_t; 2]; TOGETHER]; R],
    /// Of weights, for bytes are 128 less than they should be.
    weights: [int32x4_t; TOGETHER],
    /// The least weights.
    least: int8x16_t,
}

impl<const R: usize> Tile<R> {
    #[inline(always)]
    fn new() -> Self {
        // SAFETY: NEON, which the target has; registers only.
        unsafe {
            Self {
                sums: [[[vdupq_n_s32(0); 2]; TOGETHER]; R],
                weights: [vdupq_n_s32(0); TOGETHER],
                least: vdupq_n_s8(0),
            }
        }
    }

    /// Adds the products of two groups.
    #[inline(always)]
    fn add<const EXACT: bool>(
        &mut self,
        near: [int8x16_t; TOGETHER],
        far: [int8x16_t; TOGETHER],
        rows: impl Fn(usize) -> [int8x16_t; 2],
    ) {
        for v in 0..TOGETHER {
            // SAFETY: NEON, which the target has; registers only.
            unsafe {
                let some = vpadalq_s8(vpaddlq_s8(near[v]), far[v]);
                self.weights[v] = vpadalq_s16(self.weights[v], some);
                self.least = vminq_s8(vminq_s8(self.least, near[v]), far[v]);
            }
        }
        for (row, sums) in self.sums.iter_mut().enumerate() {
            let [one, two] = rows(row);
            if EXACT {
                for (v, sums) in sums.iter_mut().enumerate() {
                    exact(sums, near[v], one);
                    exact(sums, far[v], two);
                }
            } else {
                both(sums, near, far, one, two);
            }
        }
    }
}

/// Adds the products of a group.
#[inline(always)]
fn exact([low, high]: &mut [int32x4_t; 2], w: int8x16_t, x: int8x16_t) {
    // SAFETY: NEON, which the target has; registers only.
    unsafe {
        *low = vpadalq_s16(*low, vmull_s8(vget_low_s8(w), vget_low_s8(x)));
        *high = vpadalq_s16(*high, vmull_high_s8(w, x));
    }
}

/// Adds the products of two groups, of which two products each fit in 16 bits.
#[inline(always)]
fn both(
    sums: &mut [[int32x4_t; 2]; TOGETHER],
    near: [int8x16_t; TOGETHER],
    far: [int8x16_t; TOGETHER],
    one: int8x16_t,
    two: int8x16_t,
) {
    let [[a, b], [c, d]] = sums;
    // The compiler would take halves out of vectors, of which there are not enough then.
    // SAFETY: instructions of NEON, which the target has; registers only.
    unsafe {
        asm!(
            "smull {p:v}.8h, {near0:v}.8b, {one:v}.8b",
            "smull2 {q:v}.8h, {near0:v}.16b, {one:v}.16b",
            "smull {r:v}.8h, {near1:v}.8b, {one:v}.8b",
            "smull2 {s:v}.8h, {near1:v}.16b, {one:v}.16b",
            "smlal {p:v}.8h, {far0:v}.8b, {two:v}.8b",
            "smlal2 {q:v}.8h, {far0:v}.16b, {two:v}.16b",
            "smlal {r:v}.8h, {far1:v}.8b, {two:v}.8b",
            "smlal2 {s:v}.8h, {far1:v}.16b, {two:v}.16b",
            "sadalp {a:v}.4s, {p:v}.8h",
            "sadalp {b:v}.4s, {q:v}.8h",
            "sadalp {c:v}.4s, {r:v}.8h",
            "sadalp {d:v}.4s, {s:v}.8h",
            p = out(vreg) _,
            q = out(vreg) _,
            r = out(vreg) _,
            s = out(vreg) _,
            a = inlateout(vreg) *a,
            b = inlateout(vreg) *b,
            c = inlateout(vreg) *c,
            d = inlateout(vreg) *d,
            near0 = in(vreg) near[0],
            near1 = in(vreg) near[1],
            far0 = in(vreg) far[0],
            far1 = in(vreg) far[1],
            one = in(vreg) one,
            two = in(vreg) two,
            options(pure, nomem, nostack, preserves_flags),
        );
    }
}
