//! NEON: 8 lanes in pairs of registers, of which there are 16.

// Only where the target has NEON is this module compiled; `SAFETY: NEON` refers to it.

use core::arch::aarch64::*;

use super::pair::{Pair, halves, parts_of_slices};
use super::{Body, Simd};
use crate::base::level::Level;

/// Runs `body` with NEON, which the target has.
// Out of line, as the bodies of other levels are.
#[inline(never)]
pub fn run<B: Body>(body: B) -> B::Out {
    body.run(Neon)
}

/// Pairs of four lanes.
#[derive(Clone, Copy, Debug)]
pub struct Neon;

const LANES: usize = 8;
const HALF: usize = LANES / 2;

/// The four elements of a slice.
#[inline(always)]
fn load_four(from: &[f32]) -> float32x4_t {
    let from = &from[..HALF];
    // SAFETY: 4 elements, checked above; NEON.
    unsafe { vld1q_f32(from.as_ptr()) }
}

/// The elements of a slice of at most 4, and `nothing` in the other lanes.
#[inline(always)]
fn load_few(from: &[f32], nothing: float32x4_t) -> float32x4_t {
    // SAFETY: NEON; registers only.
    unsafe {
        match *from {
            [] => nothing,
            [a] => vsetq_lane_f32::<0>(a, nothing),
            [_, _] => vcombine_f32(load_two(from), vget_high_f32(nothing)),
            [_, _, c] => {
                let high = vset_lane_f32::<0>(c, vget_high_f32(nothing));
                vcombine_f32(load_two(from), high)
            }
            _ => load_four(from),
        }
    }
}

/// The first two elements of a slice.
#[inline(always)]
fn load_two(from: &[f32]) -> float32x2_t {
    let from = &from[..2];
    // SAFETY: 2 elements, checked above; NEON.
    unsafe { vld1_f32(from.as_ptr()) }
}

/// Writes the four elements of a slice.
#[inline(always)]
fn store_four(to: &mut [f32], x: float32x4_t) {
    let to = &mut to[..HALF];
    // SAFETY: 4 elements, checked above; NEON.
    unsafe { vst1q_f32(to.as_mut_ptr(), x) }
}

/// Writes the elements of a slice of at most 4.
#[inline(always)]
fn store_few(to: &mut [f32], x: float32x4_t) {
    // SAFETY: NEON; registers only.
    unsafe {
        match to {
            [] => {}
            [a] => *a = vgetq_lane_f32::<0>(x),
            [_, _] => store_two(to, vget_low_f32(x)),
            [_, _, c] => {
                *c = vgetq_lane_f32::<2>(x);
                store_two(to, vget_low_f32(x));
            }
            _ => store_four(to, x),
        }
    }
}

/// Writes the first two elements of a slice.
#[inline(always)]
fn store_two(to: &mut [f32], x: float32x2_t) {
    let to = &mut to[..2];
    // SAFETY: 2 elements, checked above; NEON.
    unsafe { vst1_f32(to.as_mut_ptr(), x) }
}

impl Simd for Neon {
    type F = Pair<float32x4_t>;
    type I = Pair<int32x4_t>;
    type M = Pair<uint32x4_t>;

    const LANES: usize = LANES;
    const REGISTERS: usize = 16;
    const LEVEL: Level = Level::Neon;
    const FUSED: bool = true;

    #[inline(always)]
    fn apart<B: Body>(self, body: B) -> B::Out {
        run(body)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        // SAFETY: NEON; registers only.
        let x = unsafe { vdupq_n_f32(x) };
        Pair(x, x)
    }

    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        // SAFETY: NEON; registers only.
        let x = unsafe { vdupq_n_s32(x) };
        Pair(x, x)
    }

    parts_of_slices!(float32x4_t);

    halves! {
        add(a: F, b: F) -> F = vaddq_f32(a, b);
        sub(a: F, b: F) -> F = vsubq_f32(a, b);
        mul(a: F, b: F) -> F = vmulq_f32(a, b);
        div(a: F, b: F) -> F = vdivq_f32(a, b);
        mul_add(a: F, b: F, c: F) -> F = vfmaq_f32(c, a, b);
        // The instructions for it order zeros, and know NaN.
        min(a: F, b: F) -> F = vbslq_f32(vcltq_f32(a, b), a, b);
        max(a: F, b: F) -> F = vbslq_f32(vcgtq_f32(a, b), a, b);
        sqrt(a: F) -> F = vsqrtq_f32(a);
        abs(a: F) -> F = vabsq_f32(a);
        neg(a: F) -> F = vnegq_f32(a);
        lt(a: F, b: F) -> M = vcltq_f32(a, b);
        le(a: F, b: F) -> M = vcleq_f32(a, b);
        eq(a: F, b: F) -> M = vceqq_f32(a, b);
        select(mask: M, a: F, b: F) -> F = vbslq_f32(mask, a, b);
        to_bits(a: F) -> I = vreinterpretq_s32_f32(a);
        from_bits(a: I) -> F = vreinterpretq_f32_s32(a);
        to_int(a: F) -> I = to_int(a);
        from_int(a: I) -> F = vcvtq_f32_s32(a);
        add_i(a: I, b: I) -> I = vaddq_s32(a, b);
        sub_i(a: I, b: I) -> I = vsubq_s32(a, b);
        and_i(a: I, b: I) -> I = vandq_s32(a, b);
        or_i(a: I, b: I) -> I = vorrq_s32(a, b);
        xor_i(a: I, b: I) -> I = veorq_s32(a, b);
        zero_below(a: F, x: F, least: F) -> F = and_not(a, vcltq_f32(x, least));
    }

    #[inline(always)]
    fn shl_i<const BITS: i32>(self, a: Self::I) -> Self::I {
        // SAFETY: NEON; registers only.
        unsafe { Pair(vshlq_n_s32::<BITS>(a.0), vshlq_n_s32::<BITS>(a.1)) }
    }

    #[inline(always)]
    fn shr_i<const BITS: i32>(self, a: Self::I) -> Self::I {
        // To the left by a negative number: the instruction for a constant one has no 0.
        // SAFETY: NEON; registers only.
        unsafe {
            let by = vdupq_n_s32(-BITS);
            Pair(vshlq_s32(a.0, by), vshlq_s32(a.1, by))
        }
    }

    #[inline(always)]
    fn permute(self, a: Self::F, index: Self::I) -> Self::F {
        Pair(lanes_of(a, index.0), lanes_of(a, index.1))
    }

    #[inline(always)]
    fn zip(self, a: Self::F, b: Self::F) -> (Self::F, Self::F) {
        // SAFETY: NEON; registers only.
        unsafe {
            (
                Pair(vzip1q_f32(a.0, b.0), vzip2q_f32(a.0, b.0)),
                Pair(vzip1q_f32(a.1, b.1), vzip2q_f32(a.1, b.1)),
            )
        }
    }

    #[inline(always)]
    fn any(self, mask: Self::M) -> bool {
        // SAFETY: NEON; registers only.
        unsafe { vmaxvq_u32(vorrq_u32(mask.0, mask.1)) != 0 }
    }

    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        // SAFETY: NEON; registers only.
        unsafe {
            let four = vaddq_f32(a.0, a.1);
            let two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
            vget_lane_f32::<0>(two) + vget_lane_f32::<1>(two)
        }
    }
}

/// [`Simd::to_int`]: the instruction takes the nearest integer, and 0 for NaN.
#[inline(always)]
fn to_int(a: float32x4_t) -> int32x4_t {
    // SAFETY: NEON; registers only.
    unsafe {
        let held = vcltq_f32(a, vdupq_n_f32(2_147_483_648.0));
        vbslq_s32(held, vcvtnq_s32_f32(a), vdupq_n_s32(i32::MIN))
    }
}

/// `a`, but 0 where the mask is true.
#[inline(always)]
fn and_not(a: float32x4_t, mask: uint32x4_t) -> float32x4_t {
    // SAFETY: NEON; registers only.
    unsafe { vreinterpretq_f32_u32(vbicq_u32(vreinterpretq_u32_f32(a), mask)) }
}

/// The lanes of `a` that the last bits of four indices say.
#[inline(always)]
fn lanes_of(a: Pair<float32x4_t>, index: int32x4_t) -> float32x4_t {
    // SAFETY: NEON; registers only.
    unsafe {
        let table = uint8x16x2_t(vreinterpretq_u8_f32(a.0), vreinterpretq_u8_f32(a.1));
        let lane = vandq_s32(index, vdupq_n_s32(LANES as i32 - 1));
        // The four bytes of that lane.
        let bytes = vmlaq_n_s32(vdupq_n_s32(0x0302_0100), lane, 0x0404_0404);
        vreinterpretq_f32_u8(vqtbl2q_u8(table, vreinterpretq_u8_s32(bytes)))
    }
}
