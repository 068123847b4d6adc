//! The bodies for WebAssembly with vectors of 128 bits.
//!
//! `i32x4.relaxed_dot_i8x16_i7x16_add_s` is not used: one of its operands has seven bits, and the
//! bytes of a row have eight.

// Only where the target has the vectors is this module compiled: `SAFETY: simd128` refers to it.

use core::arch::wasm32::*;

use super::lines::{self, Channels};
use super::{CHANNELS, Deep, Ends, Factors, GROUP, ONCE, PLAIN, REAL, STEP, Spaced, Sums, TWICE};

/// Vectors of a block: each has four channels.
const VECTORS: usize = 4;

/// The vectors of the target.
#[derive(Clone, Copy)]
struct Simd128;

/// As [`super::Dots::narrow`].
pub fn narrow<const HOW: u8>(
    sums: &[Sums],
    stride: usize,
    factors: Factors<'_>,
    ends: Ends,
    out: (&mut [i8], usize, usize),
) {
    lines::narrow::<_, HOW>(Simd128, sums, stride, factors, ends, out);
}

/// As [`lines::lines`].
pub fn lines<const PAIRS: usize, const HOW: u8>(of: &Deep<'_>, first: usize, out: &mut [i8]) {
    lines::lines::<_, PAIRS, HOW>(Simd128, of, first, out);
}

/// The channels in their order.
type Four = [v128; VECTORS];

#[inline(always)]
fn four(of: &Sums) -> Four {
    let parts = of.as_chunks::<4>().0;
    core::array::from_fn(|v| {
        let [a, b, c, d] = parts[v];
        i32x4(a, b, c, d)
    })
}

/// # Safety
/// Rows, blocks and sums are as long as [`super::Dots::add`] says.
pub unsafe fn add(sums: &mut [Sums], x: Spaced<'_, u8>, weights: Spaced<'_, i8>, groups: usize) {
    let (rows, blocks) = (x.count, weights.count);
    for block in 0..blocks {
        let w = weights.data.as_ptr().wrapping_add(block * weights.pitch);
        let mut row = 0;
        while row < rows {
            let x = (x.data.as_ptr().wrapping_add(row * x.pitch), x.pitch);
            let to = (&mut sums[row * blocks + block..], blocks);
            // SAFETY: so many rows and a block, of so many groups, by the caller.
            row += unsafe {
                match rows - row {
                    4.. => tile::<4>(to, x, w, groups),
                    2.. => tile::<2>(to, x, w, groups),
                    _ => tile::<1>(to, x, w, groups),
                }
            };
        }
    }
}

/// Adds the sums of rows and a block; the sums of a row are `stride` after those of the last one.
/// Returns the number of rows.
///
/// # Safety
/// `groups` of each row and of the block can be read.
#[inline(never)]
unsafe fn tile<const R: usize>(
    (out, stride): (&mut [Sums], usize),
    (x, pitch): (*const u8, usize),
    w: *const i8,
    groups: usize,
) -> usize {
    for half in 0..2 {
        // Two lanes of each channel.
        let mut sums = [[i32x4_splat(0); VECTORS]; R];
        for group in 0..groups {
            let w = w
                .wrapping_add(group * STEP + half * STEP / 2)
                .cast::<v128>();
            // SAFETY: half of a group of the block, by the caller; no alignment is asked for.
            let bytes = unsafe { [w.read_unaligned(), w.wrapping_add(1).read_unaligned()] };
            let weights = [
                i16x8_extend_low_i8x16(bytes[0]),
                i16x8_extend_high_i8x16(bytes[0]),
                i16x8_extend_low_i8x16(bytes[1]),
                i16x8_extend_high_i8x16(bytes[1]),
            ];
            for (row, sums) in sums.iter_mut().enumerate() {
                let x = x.wrapping_add(row * pitch + group * GROUP).cast::<u32>();
                // SAFETY: a group of a row, by the caller; no alignment is asked for.
                let bytes = u32x4_splat(unsafe { x.read_unaligned() });
                let factor = u16x8_extend_low_u8x16(bytes);
                for (sum, weights) in sums.iter_mut().zip(weights) {
                    *sum = i32x4_add(*sum, i32x4_dot_i16x8(factor, weights));
                }
            }
        }
        for (row, sums) in sums.iter().enumerate() {
            for v in 0..2 {
                let (a, b) = (sums[2 * v], sums[2 * v + 1]);
                let even = i32x4_shuffle::<0, 2, 4, 6>(a, b);
                let odd = i32x4_shuffle::<1, 3, 5, 7>(a, b);
                let to = &mut out[row * stride].as_chunks_mut::<4>().0[2 * half + v];
                let to = to.as_mut_ptr().cast::<v128>();
                // SAFETY: four sums; no alignment is asked for.
                unsafe { to.write_unaligned(i32x4_add(to.read_unaligned(), i32x4_add(even, odd))) };
            }
        }
    }
    R
}

/// Factors of four channels. There is no shift of each lane by itself: a product with a power of
/// two is one to the left, and its upper half is one to the right.
#[derive(Clone, Copy)]
struct Factor {
    multiplier: v128,
    /// `2^left`.
    left: v128,
    /// `2^(31 - right)`, where something is shifted out.
    right: v128,
    /// Half of what is shifted out.
    half: v128,
    /// The bits that are shifted out.
    mask: v128,
    /// All bits where nothing is shifted out.
    none: v128,
}

/// Factors of sixteen channels.
#[derive(Clone, Copy)]
pub struct Scale {
    factors: [Factor; VECTORS],
    zero: i32,
    low: i8,
    high: i8,
}

impl Factor {
    #[inline(always)]
    fn new<const HOW: u8>(multiplier: &[i32; 4], shift: &[i32; 4]) -> Self {
        let of = |f: fn(u32) -> i32, by: [u32; 4]| {
            let [a, b, c, d] = by.map(f);
            i32x4(a, b, c, d)
        };
        let shift = if HOW == REAL { &[0; 4] } else { shift };
        let left = shift.map(|shift| shift.max(0).cast_unsigned());
        // Rounded once, a product has lost half of its bits before the shift.
        let lost = i32::from(HOW == ONCE);
        let right = shift.map(|shift| (-shift - lost).max(0).cast_unsigned());
        let [a, b, c, d] = *multiplier;
        Self {
            multiplier: i32x4(a, b, c, d),
            left: of(|by| (1_u32 << by).cast_signed(), left),
            right: of(|by| (1_u32 << (31 - by)).cast_signed(), right),
            half: of(|by| ((1_u32 << by) >> 1).cast_signed(), right),
            mask: of(|by| ((1_u32 << by) - 1).cast_signed(), right),
            none: of(|by| if by == 0 { -1 } else { 0 }, right),
        }
    }

    /// What `scaled`, `scaled_once` or `scaled_real` of `crate::quantized` makes of four sums.
    #[inline(always)]
    fn of<const HOW: u8>(&self, x: v128) -> v128 {
        if HOW == REAL {
            let product = f32x4_mul(f32x4_convert_i32x4(x), self.multiplier);
            return i32x4_trunc_sat_f32x4(f32x4_nearest(product));
        }
        let x = if HOW == TWICE {
            i32x4_mul(x, self.left)
        } else {
            x
        };
        let products = [
            i64x2_extmul_low_i32x4(x, self.multiplier),
            i64x2_extmul_high_i32x4(x, self.multiplier),
        ];
        if HOW == ONCE {
            // Of what is shifted out, 32 bits and `right` more, half is at least 2^31.
            let half = [
                i64x2_shl(u64x2_extend_low_u32x4(self.half_once()), 31),
                i64x2_shl(u64x2_extend_high_u32x4(self.half_once()), 31),
            ];
            let sum = |i: usize| i64x2_add(products[i], half[i]);
            return self.shifted(upper(sum(0), sum(1)));
        }
        let round = i64x2_splat(1 << 30);
        let high = products.map(|x| i64x2_shl(i64x2_add(x, round), 1));
        let high = upper(high[0], high[1]);
        let below = i32x4_shr(high, 31);
        if HOW == PLAIN {
            // Twice as much does not overflow.
            let sum = i32x4_add(i32x4_add(high, below), self.half);
            let sum = i32x4_add(sum, sum);
            return upper(
                i64x2_extmul_low_i32x4(sum, self.right),
                i64x2_extmul_high_i32x4(sum, self.right),
            );
        }
        let threshold = i32x4_sub(u32x4_shr(self.mask, 1), below);
        let more = i32x4_gt(v128_and(high, self.mask), threshold);
        i32x4_sub(self.shifted(high), more)
    }

    /// `2^right`.
    #[inline(always)]
    fn half_once(&self) -> v128 {
        i32x4_add(self.mask, i32x4_splat(1))
    }

    /// Shifts to the right.
    #[inline(always)]
    fn shifted(&self, x: v128) -> v128 {
        let low = i64x2_shl(i64x2_extmul_low_i32x4(x, self.right), 1);
        let high = i64x2_shl(i64x2_extmul_high_i32x4(x, self.right), 1);
        v128_bitselect(x, upper(low, high), self.none)
    }
}

/// The upper halves of numbers of 64 bits.
#[inline(always)]
fn upper(low: v128, high: v128) -> v128 {
    i32x4_shuffle::<1, 3, 5, 7>(low, high)
}

impl Channels for Simd128 {
    type Sums = Four;
    type Pair = Four;
    type Scale = Scale;

    #[inline(always)]
    fn sums(self, of: &Sums) -> Four {
        four(of)
    }

    #[inline(always)]
    fn pair(self, of: [&[i8; CHANNELS]; 2]) -> Four {
        // SAFETY: sixteen weights each.
        unsafe { joined(of.map(|of| of.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn add(self, mut sums: Four, x: [*const i8; 2], weights: Four) -> Four {
        // SAFETY: by the caller, sixteen numbers each.
        let x = unsafe { joined(x) };
        for v in 0..VECTORS {
            sums[v] = i32x4_add(sums[v], i32x4_dot_i16x8(x[v], weights[v]));
        }
        sums
    }

    #[inline(always)]
    fn scale<const HOW: u8>(self, factors: Factors<'_>, ends: Ends) -> Scale {
        let (multiplier, shift) = (
            factors.multiplier.as_chunks().0,
            factors.shift.as_chunks().0,
        );
        let Ends { zero, low, high } = ends;
        Scale {
            factors: core::array::from_fn(|v| Factor::new::<HOW>(&multiplier[v], &shift[v])),
            zero,
            low,
            high,
        }
    }

    #[inline(always)]
    fn store<const HOW: u8>(self, scale: &Scale, sums: Four, to: &mut [i8; CHANNELS]) {
        let of = |v: usize| {
            let x = scale.factors[v].of::<HOW>(sums[v]);
            if HOW == PLAIN || HOW == REAL {
                x
            } else {
                i32x4_add(x, i32x4_splat(scale.zero))
            }
        };
        let (mut a, mut b) = (
            i16x8_narrow_i32x4(of(0), of(1)),
            i16x8_narrow_i32x4(of(2), of(3)),
        );
        if HOW == PLAIN || HOW == REAL {
            // What saturates here is beyond int8 with `zero`, too.
            let zero = i16x8_splat(scale.zero as i16);
            (a, b) = (i16x8_add_sat(a, zero), i16x8_add_sat(b, zero));
        }
        let x = i8x16_max(i8x16_narrow_i16x8(a, b), i8x16_splat(scale.low));
        let x = i8x16_min(x, i8x16_splat(scale.high));
        // SAFETY: sixteen elements; no alignment is asked for.
        unsafe { to.as_mut_ptr().cast::<v128>().write_unaligned(x) };
    }
}

/// Numbers of two taps beside each other, of 16 bits.
///
/// # Safety
/// Sixteen numbers can be read from both places on.
#[inline(always)]
unsafe fn joined(of: [*const i8; 2]) -> Four {
    // SAFETY: by the caller; no alignment is asked for.
    let [a, b] = of.map(|of| unsafe { of.cast::<v128>().read_unaligned() });
    let low = i8x16_shuffle::<0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23>(a, b);
    let high = i8x16_shuffle::<8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31>(a, b);
    [
        i16x8_extend_low_i8x16(low),
        i16x8_extend_high_i8x16(low),
        i16x8_extend_low_i8x16(high),
        i16x8_extend_high_i8x16(high),
    ]
}
