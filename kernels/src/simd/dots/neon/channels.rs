//! Depthwise convolutions and rescaling with NEON.

use core::arch::aarch64::*;

use super::super::lines::{self, Channels};
use super::super::{CHANNELS, Deep, Ends, Factors, ONCE, PLAIN, REAL, Sums};

/// NEON, where no two weights of a channel are -128: two products fit in 16 bits.
#[derive(Clone, Copy)]
struct Neon;

/// NEON for all weights.
#[derive(Clone, Copy)]
struct Exact;

/// As [`super::super::Dots::narrow`].
pub fn narrow<const HOW: u8>(
    sums: &[Sums],
    stride: usize,
    factors: Factors<'_>,
    ends: Ends,
    out: (&mut [i8], usize, usize),
) {
    lines::narrow::<_, HOW>(Neon, sums, stride, factors, ends, out);
}

/// As [`lines::lines`].
pub fn lines<const PAIRS: usize, const HOW: u8>(of: &Deep<'_>, first: usize, out: &mut [i8]) {
    if of.filter.contains(&i8::MIN) {
        lines::lines::<_, PAIRS, HOW>(Exact, of, first, out);
    } else {
        lines::lines::<_, PAIRS, HOW>(Neon, of, first, out);
    }
}

/// Four vectors: the channels in their order.
type Four = [int32x4_t; 4];

/// Factors as instructions take them.
#[derive(Clone, Copy)]
pub struct Scale {
    multiplier: Four,
    left: Four,
    /// Shifts to the right are negative.
    right: Four,
    zero: i32,
    low: i8,
    high: i8,
}

#[inline(always)]
fn four(of: &Sums) -> Four {
    // SAFETY: four numbers each; NEON, which the target has.
    core::array::from_fn(|v| unsafe { vld1q_s32(of.as_chunks::<4>().0[v].as_ptr()) })
}

impl Scale {
    #[inline(always)]
    fn new(factors: Factors<'_>, ends: Ends) -> Self {
        let shift = four(factors.shift);
        let Ends { zero, low, high } = ends;
        // SAFETY: NEON, which the target has; registers only.
        let (left, right) = unsafe {
            (
                shift.map(|shift| vmaxq_s32(shift, vdupq_n_s32(0))),
                shift.map(|shift| vminq_s32(shift, vdupq_n_s32(0))),
            )
        };
        Self {
            multiplier: four(factors.multiplier),
            left,
            right,
            zero,
            low,
            high,
        }
    }

    /// What `scaled`, `scaled_once` or `scaled_real` of `crate::quantized` makes of four sums, and unless [`PLAIN`] or
    /// [`REAL`] what stands for 0 added.
    #[inline(always)]
    fn of<const HOW: u8>(&self, v: usize, x: int32x4_t) -> int32x4_t {
        let (multiplier, left, right) = (self.multiplier[v], self.left[v], self.right[v]);
        // SAFETY: NEON, which the target has; registers only.
        unsafe {
            if HOW == REAL {
                let product = vmulq_f32(vcvtq_f32_s32(x), vreinterpretq_f32_s32(multiplier));
                return vcvtnq_s32_f32(product);
            }
            if HOW == PLAIN {
                let high = vqrdmulhq_s32(x, multiplier);
                // Ties go away from zero; nothing overflows.
                return vrshlq_s32(vsraq_n_s32::<31>(high, high), right);
            }
            let zero = vdupq_n_s32(self.zero);
            if HOW == ONCE {
                let shift = vsubq_s32(vaddq_s32(left, right), vdupq_n_s32(31));
                let low = vmull_s32(vget_low_s32(x), vget_low_s32(multiplier));
                let low = vrshlq_s64(low, vmovl_s32(vget_low_s32(shift)));
                let high = vrshlq_s64(vmull_high_s32(x, multiplier), vmovl_high_s32(shift));
                let (low, high) = (vreinterpretq_s32_s64(low), vreinterpretq_s32_s64(high));
                return vaddq_s32(vuzp1q_s32(low, high), zero);
            }
            let high = vqrdmulhq_s32(vshlq_s32(x, left), multiplier);
            // 0 where nothing is shifted out, and else -1 below zero.
            let less = vshrq_n_s32::<31>(vandq_s32(high, right));
            vaddq_s32(vrshlq_s32(vqaddq_s32(high, less), right), zero)
        }
    }

    #[inline(always)]
    fn store<const HOW: u8>(&self, x: Four, to: &mut [i8; CHANNELS]) {
        // SAFETY: sixteen elements; NEON, which the target has.
        unsafe {
            let join = |a, b| {
                vqmovn_high_s32(vqmovn_s32(self.of::<HOW>(a, x[a])), self.of::<HOW>(b, x[b]))
            };
            let (mut a, mut b) = (join(0, 1), join(2, 3));
            if HOW == PLAIN || HOW == REAL {
                // What saturates here is beyond int8 with `zero`, too.
                let zero = vdupq_n_s16(self.zero as i16);
                (a, b) = (vqaddq_s16(a, zero), vqaddq_s16(b, zero));
            }
            let x = vqmovn_high_s16(vqmovn_s16(a), b);
            let x = vminq_s8(vmaxq_s8(x, vdupq_n_s8(self.low)), vdupq_n_s8(self.high));
            vst1q_s8(to.as_mut_ptr(), x);
        }
    }
}

macro_rules! channels {
    ($type:ty, $exact:expr) => {
        impl Channels for $type {
            type Sums = Four;
            type Pair = [int8x16_t; 2];
            type Scale = Scale;

            #[inline(always)]
            fn sums(self, of: &Sums) -> Four {
                four(of)
            }

            #[inline(always)]
            fn pair(self, of: [&[i8; CHANNELS]; 2]) -> [int8x16_t; 2] {
                // SAFETY: sixteen weights each; NEON, which the target has.
                of.map(|of| unsafe { vld1q_s8(of.as_ptr()) })
            }

            #[inline(always)]
            unsafe fn add(self, sums: Four, x: [*const i8; 2], weights: [int8x16_t; 2]) -> Four {
                // SAFETY: NEON, which the target has; by the caller, both can be read.
                unsafe { products::<{ $exact }>(sums, x.map(|x| vld1q_s8(x)), weights) }
            }

            #[inline(always)]
            fn scale<const HOW: u8>(self, factors: Factors<'_>, ends: Ends) -> Scale {
                Scale::new(factors, ends)
            }

            #[inline(always)]
            fn store<const HOW: u8>(self, scale: &Scale, sums: Four, to: &mut [i8; CHANNELS]) {
                scale.store::<HOW>(sums, to);
            }
        }
    };
}

channels!(Neon, false);
channels!(Exact, true);

/// Adds products of channels; two of them at a time, unless `EXACT`.
#[inline(always)]
fn products<const EXACT: bool>(sums: Four, x: [int8x16_t; 2], w: [int8x16_t; 2]) -> Four {
    let [mut a, mut b, mut c, mut d] = sums;
    // SAFETY: NEON, which the target has; registers only.
    unsafe {
        let mut low = vmull_s8(vget_low_s8(x[0]), vget_low_s8(w[0]));
        let mut high = vmull_high_s8(x[0], w[0]);
        if EXACT {
            (a, b) = (vaddw_s16(a, vget_low_s16(low)), vaddw_high_s16(b, low));
            (c, d) = (vaddw_s16(c, vget_low_s16(high)), vaddw_high_s16(d, high));
            low = vmull_s8(vget_low_s8(x[1]), vget_low_s8(w[1]));
            high = vmull_high_s8(x[1], w[1]);
        } else {
            low = vmlal_s8(low, vget_low_s8(x[1]), vget_low_s8(w[1]));
            high = vmlal_high_s8(high, x[1], w[1]);
        }
        (a, b) = (vaddw_s16(a, vget_low_s16(low)), vaddw_high_s16(b, low));
        (c, d) = (vaddw_s16(c, vget_low_s16(high)), vaddw_high_s16(d, high));
    }
    [a, b, c, d]
}
