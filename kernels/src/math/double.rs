//! Exponentials, logarithms and what is made of them, in `f64`.
//!
//! They are meant for arguments and results that are `f32`: their relative error is below 1e-9 (see
//! each), so that the rounded result is within 0.51 ulp of the exact one, except where a result is
//! subnormal. Ranges are cut where an `f32` result has long become 0 or infinity.

use super::sqrt;

/// 1.5 * 2^52: adding it leaves the nearest integer in the low bits of the sum.
pub(super) const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// `exp(x)` for |x| cut at 104 (0 or infinity in `f32`); relative error below 3e-11.
#[inline(always)]
pub(crate) fn exp(x: f64) -> f64 {
    let (scale, rest) = exp_parts(x);
    scale * rest + scale
}

/// `exp(x) - 1`, cut as [`exp`]; relative error below 3e-11.
#[inline(always)]
pub(crate) fn exp_m1(x: f64) -> f64 {
    let (scale, rest) = exp_parts(x);
    scale * rest + (scale - 1.0)
}

/// `2^n` and `exp(r) - 1` for `x = n ln 2 + r`.
#[inline(always)]
fn exp_parts(x: f64) -> (f64, f64) {
    let x = if x > 104.0 { 104.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * core::f64::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = x - n * core::f64::consts::LN_2;
    let scale = f64::from_bits(shifted.to_bits().wrapping_add(1023) << 52);
    let p = 1.0 / 362_880.0;
    let p = p * r + 1.0 / 40_320.0;
    let p = p * r + 1.0 / 5_040.0;
    let p = p * r + 1.0 / 720.0;
    let p = p * r + 1.0 / 120.0;
    let p = p * r + 1.0 / 24.0;
    let p = p * r + 1.0 / 6.0;
    let p = p * r + 0.5;
    (scale, p * r * r + r)
}

/// Natural logarithm; relative error below 1e-11 for normal numbers. Infinity for infinity, minus
/// infinity for 0, NaN for negative numbers.
#[inline(always)]
pub(crate) fn log(x: f64) -> f64 {
    let bits = x.to_bits();
    // The mantissa in [sqrt(1/2), sqrt(2)) and the exponent that belongs to it.
    let shifted = bits.wrapping_sub(0x3FE6_A09E_667F_3BCD);
    let exponent = f64::from_bits((shifted.wrapping_add(1023 << 52) >> 52) | 0x4330_0000_0000_0000)
        - (4_503_599_627_370_496.0 + 1023.0);
    let mantissa = f64::from_bits((shifted & 0x000F_FFFF_FFFF_FFFF) + 0x3FE6_A09E_667F_3BCD);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let p = 1.0 / 13.0;
    let p = p * z + 1.0 / 11.0;
    let p = p * z + 1.0 / 9.0;
    let p = p * z + 1.0 / 7.0;
    let p = p * z + 0.2;
    let p = p * z + 1.0 / 3.0;
    let p = p * z + 1.0;
    let value = exponent * core::f64::consts::LN_2 + 2.0 * s * p;
    let value = if x == f64::INFINITY { x } else { value };
    let value = if x > 0.0 { value } else { f64::NAN };
    if x == 0.0 { f64::NEG_INFINITY } else { value }
}

/// `log(1 + x)`; relative error below 1e-11 also next to 0.
#[inline(always)]
pub(crate) fn log_1p(x: f64) -> f64 {
    let sum = 1.0 + x;
    let lost = x - (sum - 1.0);
    let value = log(sum);
    // Next to 0 the sum has lost digits of x; at infinity there is nothing to mend.
    if sum > 0.0 && sum < f64::MAX {
        value + lost / sum
    } else {
        value
    }
}

/// Hyperbolic sine.
#[inline(always)]
pub(crate) fn sinh(x: f64) -> f64 {
    let e = exp_m1(x.abs());
    (0.5 * (e + e / (e + 1.0))).copysign(x)
}

/// Hyperbolic cosine.
#[inline(always)]
pub(crate) fn cosh(x: f64) -> f64 {
    let e = exp(x.abs());
    0.5 * (e + 1.0 / e)
}

/// Inverse hyperbolic sine.
#[inline(always)]
pub(crate) fn asinh(x: f64) -> f64 {
    let size = x.abs();
    let value = log_1p(size + size * (size / (1.0 + sqrt(1.0 + size * size))));
    let value = if size == f64::INFINITY { size } else { value };
    value.copysign(x)
}

/// Inverse hyperbolic cosine.
#[inline(always)]
pub(crate) fn acosh(x: f64) -> f64 {
    let value = log(x + sqrt((x - 1.0) * (x + 1.0)));
    if x < 1.0 { f64::NAN } else { value }
}

/// Inverse hyperbolic tangent.
#[inline(always)]
pub(crate) fn atanh(x: f64) -> f64 {
    let size = x.abs();
    let value = (0.5 * log_1p(2.0 * size / (1.0 - size))).copysign(x);
    if size == 1.0 {
        f64::INFINITY.copysign(x)
    } else {
        value
    }
}

/// `a` to the power of `b`, with the special cases of IEEE 754; relative error below 1e-9.
#[inline(always)]
pub(crate) fn pow(a: f64, b: f64) -> f64 {
    let size = exp(b * log(a.abs()));
    let whole = b == nearest(b);
    let odd = whole && b.abs() < 9_007_199_254_740_992.0 && {
        let half = b * 0.5;
        half != nearest(half)
    };
    let negative = a < 0.0 || (a == 0.0 && a.is_sign_negative());
    let signed = if negative && odd { -size } else { size };
    let signed = if a < 0.0 && !whole { f64::NAN } else { signed };
    let signed = if a == f64::NEG_INFINITY && !whole {
        size
    } else {
        signed
    };
    let one = b == 0.0 || a == 1.0 || (a == -1.0 && b.is_infinite());
    if one { 1.0 } else { signed }
}

/// The nearest integer, halves to the even one.
#[inline(always)]
fn nearest(x: f64) -> f64 {
    const STEP: f64 = 4_503_599_627_370_496.0;
    let near = (x.abs() + STEP) - STEP;
    let near = if x.abs() < STEP { near } else { x.abs() };
    near.copysign(x)
}
