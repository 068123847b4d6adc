//! Logarithms.

use crate::math::single::polynomial;
use crate::simd::Simd;

/// About `1 / m` in the middle of a sixteenth of the mantissas from 0.75 to 1.5, those from 1 on
/// first; 1 on both sides of 1.
const LOG_INVERSE: [f32; 16] = [
    1.0,
    0.913_962_4,
    0.866_656_84,
    0.820_747_1,
    0.779_430_87,
    0.744_044_6,
    0.711_002_23,
    0.679_261_4,
    1.303_410_3,
    1.254_223_6,
    1.206_985_1,
    1.162_128_6,
    1.121_931,
    1.080_037_6,
    1.044_415_1,
    1.0,
];
/// Minus the logarithm of [`LOG_INVERSE`]: the nearest multiple of 2^-16, which is less than 4e-10
/// off.
const LOG_WHOLE: [f32; 16] = [
    0.0,
    0.089_965_82,
    0.143_112_18,
    0.197_540_28,
    0.249_191_28,
    0.295_654_3,
    0.341_079_7,
    0.386_749_27,
    -0.264_984_13,
    -0.226_516_72,
    -0.188_125_61,
    -0.150_253_3,
    -0.115_051_27,
    -0.076_995_85,
    -0.043_457_03,
    0.0,
];
/// Coefficients of `(log(1 + f) - f) / f^2` for `f` in -1/32..1/16, fitted; relative error of the
/// logarithm 3e-9.
const LOG_NEAR: [f32; 4] = [-0.5, 0.333_344_6, -0.250_072_03, 0.188_579_32];

/// `log(m * 2^n) ` for the parts of a number, and a part `lost` of `m`.
#[inline(always)]
fn log_of_parts<S: Simd>(s: S, (m, n): (S::F, S::F), lost: Option<S::F>) -> S::F {
    /// The logarithm of 2 in two parts, the first a multiple of 2^-16.
    const HIGH: f32 = 0.693_138_1;
    const LOW: f32 = 9.058_001e-6;
    let index = s.shr_i::<19>(s.to_bits(m));
    let inverse = s.look_up(&LOG_INVERSE, index);
    let f = s.mul_add(m, inverse, s.splat(-1.0));
    let f = lost.map_or(f, |lost| s.mul_add(lost, inverse, f));
    let whole = s.mul_add(n, s.splat(HIGH), s.look_up(&LOG_WHOLE, index));
    let low = s.mul(n, s.splat(LOW));
    let rest = s.mul_add(polynomial(s, &LOG_NEAR, f), s.mul(f, f), low);
    s.add(whole, s.add(f, rest))
}

/// [`single::log`](crate::math::single::log).
#[inline(always)]
pub(in crate::math) fn log<S: Simd>(s: S, x: S::F) -> S::F {
    log_of_parts(s, s.parts(x), None)
}

/// `log(sum + lost)`, where `lost` is small.
#[inline(always)]
pub(in crate::math) fn log_of_sum<S: Simd>(s: S, sum: S::F, lost: S::F) -> S::F {
    let (m, n) = s.parts(sum);
    log_of_parts(s, (m, n), Some(s.scale(lost, s.neg(n))))
}
