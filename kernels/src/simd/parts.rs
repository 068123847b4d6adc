//! Mantissa and exponent by integer arithmetic.

use super::Simd;

/// [`Simd::parts`] for levels that have no instruction for it.
#[inline(always)]
pub(super) fn parts<S: Simd>(s: S, a: S::F) -> (S::F, S::F) {
    /// The bits of 0.75.
    const LEAST: i32 = 0x3F40_0000;
    let infinity = s.splat(f32::INFINITY);
    let small = s.lt(a, s.splat(f32::MIN_POSITIVE));
    let normal = s.select(small, s.mul(a, s.splat(33_554_432.0)), a);
    let shifted = s.sub_i(s.to_bits(normal), s.splat_i(LEAST));
    let n = s.from_int(s.shr_i::<23>(shifted));
    let n = s.select(small, s.sub(n, s.splat(25.0)), n);
    let fraction = s.and_i(shifted, s.splat_i(0x007F_FFFF));
    let m = s.from_bits(s.add_i(fraction, s.splat_i(LEAST)));
    let zero = s.eq(a, s.zero());
    let sign = s.and_i(s.to_bits(a), s.splat_i(i32::MIN));
    let one = s.from_bits(s.or_i(s.to_bits(s.splat(1.0)), sign));
    let m = s.select(zero, one, s.select(s.eq(a, infinity), s.splat(1.0), m));
    let n = s.select(zero, s.neg(infinity), s.select(s.eq(a, infinity), a, n));
    let positive = s.le(s.zero(), a);
    (
        s.select(positive, m, s.splat(f32::NAN)),
        s.select(positive, n, s.splat(f32::NAN)),
    )
}
