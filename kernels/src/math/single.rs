//! Exponentials, logarithms and what is made of them, in `f32`, on vectors.
//!
//! Errors are stated in ulp of the exact result, and hold for subnormal results too. NaN gives NaN;
//! zeros keep their sign where the function has one. Operations are fused where the instruction set
//! can, so that the last bits depend on it; those of an element depend on nothing else.

use super::tables;
use crate::simd::Simd;

/// 1.5 * 2^23: adding it leaves the nearest integer in the low bits of the sum.
pub(crate) const ROUNDER: f32 = 12_582_912.0;
/// The logarithm of 2 in two parts, the first of 9 bits.
pub(crate) const LN_2_HIGH: f32 = 0.693_359_4;
pub(crate) const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Coefficients of `(exp(r) - 1 - r) / r^2` for |r| up to half the logarithm of 2, fitted; relative
/// error 2e-9 of `exp(r) - 1`.
const EXP: [f32; 6] = [
    0.5,
    0.166_666_67,
    0.041_666_35,
    0.008_333_273,
    0.001_394_131_7,
    0.000_199_139_5,
];

/// A polynomial, the coefficient of the highest power last.
#[inline(always)]
pub(super) fn polynomial<S: Simd, const N: usize>(s: S, coefficients: &[f32; N], x: S::F) -> S::F {
    let mut value = s.splat(coefficients[N - 1]);
    for &coefficient in coefficients.iter().rev().skip(1) {
        value = s.mul_add(value, x, s.splat(coefficient));
    }
    value
}

/// `x`, but not above `high`; NaN stays.
#[inline(always)]
pub(super) fn at_most<S: Simd>(s: S, x: S::F, high: f32) -> S::F {
    s.min(s.splat(high), x)
}

/// `x`, but not below `low`; NaN stays.
#[inline(always)]
fn at_least<S: Simd>(s: S, x: S::F, low: f32) -> S::F {
    s.max(s.splat(low), x)
}

/// `x` with the sign of `sign`.
#[inline(always)]
fn with_sign<S: Simd>(s: S, x: S::F, sign: S::F) -> S::F {
    let bit = s.and_i(s.to_bits(sign), s.splat_i(i32::MIN));
    s.from_bits(s.or_i(s.to_bits(s.abs(x)), bit))
}

/// `2^n` for whole -126 to 127.
#[inline(always)]
fn power_of_2<S: Simd>(s: S, n: S::F) -> S::F {
    // The low bits of the sum are the biased exponent.
    let biased = s.add(n, s.splat(ROUNDER + 127.0));
    s.from_bits(s.shl_i::<23>(s.to_bits(biased)))
}

/// The integer next to `x / ln 2`.
#[inline(always)]
fn multiple_of_ln_2<S: Simd>(s: S, x: S::F) -> S::F {
    let rounder = s.splat(ROUNDER);
    let shifted = s.mul_add(x, s.splat(core::f32::consts::LOG2_E), rounder);
    s.sub(shifted, rounder)
}

/// `x - n ln 2`
#[inline(always)]
fn less_multiple<S: Simd>(s: S, x: S::F, n: S::F) -> S::F {
    let high = s.mul_add(n, s.splat(-LN_2_HIGH), x);
    s.mul_add(n, s.splat(-LN_2_LOW), high)
}

/// `n` and `exp(r) - 1` for `x = n ln 2 + r`.
#[inline(always)]
fn exp_parts<S: Simd>(s: S, x: S::F) -> (S::F, S::F) {
    let n = multiple_of_ln_2(s, x);
    (n, exp_rest(s, less_multiple(s, x, n)))
}

/// `exp(r) - 1` for |r| up to half the logarithm of 2.
#[inline(always)]
fn exp_rest<S: Simd>(s: S, r: S::F) -> S::F {
    s.mul_add(polynomial(s, &EXP, r), s.mul(r, r), r)
}

/// `exp(r) * 2^n`
#[inline(always)]
fn exp_scaled<S: Simd>(s: S, r: S::F, n: S::F) -> S::F {
    let one = s.splat(1.0);
    let value = if S::FUSED {
        let p = s.mul_add(polynomial(s, &EXP, r), r, one);
        s.mul_add(p, r, one)
    } else {
        s.add(exp_rest(s, r), one)
    };
    s.scale(value, n)
}

/// Exponential; 1 ulp.
#[inline(always)]
pub(crate) fn exp<S: Simd>(s: S, x: S::F) -> S::F {
    exp_of_sum(s, at_least(s, at_most(s, x, 89.0), -104.0), None)
}

/// `exp(high + low)` for a sum in -104 to 89, where `low` is small.
#[inline(always)]
fn exp_of_sum<S: Simd>(s: S, high: S::F, low: Option<S::F>) -> S::F {
    let n = multiple_of_ln_2(s, high);
    let r = less_multiple(s, high, n);
    let r = low.map_or(r, |low| s.add(r, low));
    exp_scaled(s, r, n)
}

/// `exp(x) - 1`; 2 ulp.
#[inline(always)]
pub(crate) fn exp_m1<S: Simd>(s: S, x: S::F) -> S::F {
    let (n, fraction) = exp_parts(s, at_least(s, at_most(s, x, 89.0), -20.0));
    // Half of the result, because 2^n may be infinity.
    let scale = power_of_2(s, s.sub(n, s.splat(1.0)));
    let value = s.mul_add(scale, fraction, s.sub(scale, s.splat(0.5)));
    with_sign(s, s.add(value, value), x)
}

/// Hyperbolic tangent; 3 ulp.
#[inline(always)]
pub(crate) fn tanh<S: Simd>(s: S, x: S::F) -> S::F {
    let size = s.abs(x);
    if S::LOOKS_UP {
        return with_sign(s, tables::tanh_of_size(s, size), x);
    }
    let (n, fraction) = exp_parts(s, s.mul(s.splat(2.0), at_most(s, size, 10.0)));
    let scale = power_of_2(s, n);
    let e = s.mul_add(scale, fraction, s.sub(scale, s.splat(1.0)));
    with_sign(s, s.div(e, s.add(e, s.splat(2.0))), x)
}

/// `1 / (1 + exp(-x))`; 3 ulp.
#[inline(always)]
pub(crate) fn sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    if S::LOOKS_UP {
        return tables::sigmoid(s, x);
    }
    let one = s.splat(1.0);
    let e = exp_of_sum(s, at_least(s, s.neg(s.abs(x)), -104.0), None);
    let value = s.quotient(one, s.add(one, e));
    s.mul(s.select(s.lt(x, s.zero()), e, one), value)
}

/// Coefficients of `(log((1 + s) / (1 - s)) / s - 2) / s^2` in `s^2` for |s| up to 0.172, fitted;
/// relative error of the logarithm 1e-9.
const LOG: [f32; 3] = [0.666_667_8, 0.399_770_8, 0.298_851_9];

/// `log(x * 2^exponent) + tail` for a positive normal `x` and a small `tail`.
#[inline(always)]
fn log_of_normal<S: Simd>(s: S, x: S::F, tail: S::F, exponent: S::F) -> S::F {
    /// The logarithm of 2 in two parts, the first of 16 bits.
    const HIGH: f32 = 0.693_138_1;
    const LOW: f32 = 9.058_001e-6;
    /// The square root of 1/2.
    const ROOT: i32 = 0x3F35_04F3;
    // The mantissa in [sqrt(1/2), sqrt(2)) and the exponent that belongs to it.
    let root = s.splat_i(ROOT);
    let shifted = s.sub_i(s.to_bits(x), root);
    let n = s.add(s.from_int(s.shr_i::<23>(shifted)), exponent);
    let mantissa = s.add_i(s.and_i(shifted, s.splat_i(0x007F_FFFF)), root);
    let f = s.sub(s.from_bits(mantissa), s.splat(1.0));
    let ratio = s.div(f, s.add(s.splat(2.0), f));
    let z = s.mul(ratio, ratio);
    let half_square = s.mul(s.mul(s.splat(0.5), f), f);
    let inner = s.mul_add(z, polynomial(s, &LOG, z), half_square);
    let rest = s.mul_add(ratio, inner, s.mul_add(n, s.splat(LOW), tail));
    s.mul_add(n, s.splat(HIGH), s.sub(f, s.sub(half_square, rest)))
}

/// Natural logarithm; 1 ulp. Infinity for infinity, minus infinity for 0, NaN for negative numbers.
#[inline(always)]
pub(crate) fn log<S: Simd>(s: S, x: S::F) -> S::F {
    if S::LOOKS_UP {
        return tables::log(s, x);
    }
    let small = s.lt(x, s.splat(f32::MIN_POSITIVE));
    let exponent = s.select(small, s.splat(-25.0), s.zero());
    let normal = s.select(small, s.mul(x, s.splat(33_554_432.0)), x);
    let value = log_of_normal(s, normal, s.zero(), exponent);
    ends_of_log(s, value, x, x)
}

/// The value of a logarithm of `argument`, also where that is 0, infinity, negative or NaN; `x` is
/// infinity where `argument` is.
#[inline(always)]
fn ends_of_log<S: Simd>(s: S, value: S::F, argument: S::F, x: S::F) -> S::F {
    let value = s.select(s.eq(x, s.splat(f32::INFINITY)), x, value);
    let value = s.select(s.le(s.zero(), argument), value, s.splat(f32::NAN));
    s.select(s.eq(argument, s.zero()), s.splat(f32::NEG_INFINITY), value)
}

/// `log(1 + x)`; 2 ulp.
#[inline(always)]
pub(crate) fn log_1p<S: Simd>(s: S, x: S::F) -> S::F {
    let value = log_of_one_more(s, x);
    // The sum is 0 exactly where `x` is -1, because of gradual underflow.
    let value = ends_of_log(s, value, s.add(s.splat(1.0), x), x);
    s.select(s.eq(x, s.zero()), x, value)
}

/// `log(1 + x)` for `x` above -1 and below infinity.
#[inline(always)]
fn log_of_one_more<S: Simd>(s: S, x: S::F) -> S::F {
    let one = s.splat(1.0);
    let sum = s.add(one, x);
    let lost = s.sub(x, s.sub(sum, one));
    if S::LOOKS_UP {
        tables::log_of_sum(s, sum, lost)
    } else {
        log_of_normal(s, sum, s.div(lost, sum), s.zero())
    }
}

/// `log(1 + exp(x))`; 3 ulp.
#[inline(always)]
pub(crate) fn softplus<S: Simd>(s: S, x: S::F) -> S::F {
    let e = exp_of_sum(s, at_least(s, s.neg(s.abs(x)), -104.0), None);
    // `e` is in 0..=1, so that the logarithm needs none of its special cases.
    s.add(log_of_one_more(s, e), s.max(s.zero(), x))
}

/// Where the error function changes from one form to the other.
const ERF_NEAR: f32 = 1.15;

/// Coefficients of `erf(x) / x - 1` in `x * x` for |x| up to 1.15, fitted; relative error of the
/// error function 8e-9.
const ERF: [f32; 7] = [
    0.128_379_15,
    -0.376_125_75,
    0.112_830_41,
    -0.026_832_17,
    0.005_149_487_4,
    -0.000_768_892_64,
    6.856_543e-5,
];

/// Coefficients of the eighth root of `erfc(x)` in `x - 2` for x in 1.15..4, fitted; error of
/// `erfc(x)` 6e-9.
const ERFC_ROOT: [f32; 7] = [
    0.511_392_6,
    -0.282_427_55,
    0.018_936_13,
    0.017_206_885,
    -0.002_787_900_4,
    -0.000_654_490_8,
    0.000_164_790_28,
];

/// Coefficients of `(1 + 2 x) exp(x * x) erfc(x)` in `(x - 2) / (x + 2)` for x in 0..10.1, fitted;
/// relative error 4e-8.
const ERFC: [f32; 10] = [
    1.276_978_4,
    -0.092_763_975,
    -0.166_031_39,
    0.164_055_26,
    -0.054_204_587,
    -0.008_059_553,
    0.008_632_533,
    0.001_313_302_9,
    -0.001_230_782_2,
    -0.000_400_855_26,
];

/// `exp(x * x) * erfc(x)` for `x` in 0..10.1.
#[inline(always)]
fn erfc_scaled<S: Simd>(s: S, x: S::F) -> S::F {
    let two = s.splat(2.0);
    let q = s.quotient(s.sub(x, two), s.add(x, two));
    let p = polynomial(s, &ERFC, q);
    s.quotient(p, s.mul_add(two, x, s.splat(1.0)))
}

/// `exp(factor * x * x)`, where `factor` is a power of 2 with a sign.
#[inline(always)]
pub(super) fn exp_of_square<S: Simd>(s: S, x: S::F, factor: f32) -> S::F {
    let part = s.mul(s.splat(factor), x);
    if S::FUSED {
        let high = s.mul(part, x);
        let low = s.mul_add(part, x, s.neg(high));
        return exp_of_sum(s, high, Some(low));
    }
    // Twelve bits, whose square is exact.
    let few = s.from_bits(s.and_i(s.to_bits(x), s.splat_i(!0xFFF)));
    let high = s.mul(s.mul(s.splat(factor), few), few);
    let low = s.mul(s.mul(s.splat(factor), s.sub(x, few)), s.add(x, few));
    exp_of_sum(s, high, Some(low))
}

/// `1 - erf(x)`; 4 ulp.
#[inline(always)]
pub(crate) fn erfc<S: Simd>(s: S, x: S::F) -> S::F {
    let far = at_most(s, s.abs(x), 10.1);
    let value = s.mul(exp_of_square(s, far, -1.0), erfc_scaled(s, far));
    s.select(s.lt(x, s.zero()), s.sub(s.splat(2.0), value), value)
}

/// The error function; 2 ulp.
#[inline(always)]
pub(crate) fn erf<S: Simd>(s: S, x: S::F) -> S::F {
    let size = s.abs(x);
    if S::LOOKS_UP {
        return with_sign(s, tables::erf_of_size(s, size), x);
    }
    let near = s.mul_add(size, polynomial(s, &ERF, s.mul(size, size)), size);
    // The result is 1 from 4 on.
    let root = polynomial(s, &ERFC_ROOT, s.sub(at_most(s, size, 4.0), s.splat(2.0)));
    let square = s.mul(root, root);
    let fourth = s.mul(square, square);
    let far = s.sub(s.splat(1.0), s.mul(fourth, fourth));
    with_sign(s, s.select(s.lt(size, s.splat(ERF_NEAR)), near, far), x)
}

/// The distribution function of the standard normal distribution for `-x`, which is in -14.28..=0,
/// in two factors.
#[inline(always)]
fn normal_tail<S: Simd>(s: S, x: S::F) -> (S::F, S::F) {
    let gauss = exp_of_square(s, x, -0.5);
    let y = s.mul(x, s.splat(core::f32::consts::FRAC_1_SQRT_2));
    (s.mul(s.splat(0.5), gauss), erfc_scaled(s, y))
}

/// The distribution function of the standard normal distribution; 4 ulp.
#[inline(always)]
pub(crate) fn normal_cdf<S: Simd>(s: S, x: S::F) -> S::F {
    let (gauss, scaled) = normal_tail(s, at_most(s, s.abs(x), 14.28));
    let value = s.mul(gauss, scaled);
    s.select(s.lt(s.zero(), x), s.sub(s.splat(1.0), value), value)
}

/// `x` times [`normal_cdf`] of `x`; 5 ulp. Minus infinity times 0 is NaN.
#[inline(always)]
pub(crate) fn gelu<S: Simd>(s: S, x: S::F) -> S::F {
    if S::LOOKS_UP {
        return tables::gelu(s, x);
    }
    let size = at_most(s, s.abs(x), 14.28);
    let (gauss, scaled) = normal_tail(s, size);
    // `x - x tail` above 0, `x tail` below.
    let part = s.mul(s.neg(size), gauss);
    // No `x - min(x, 0)`: rustc 1.95 makes that 0 for -0 on 64-bit Arm.
    let above = s.select(s.le(s.zero(), x), x, s.sub(x, x));
    s.mul_add(part, scaled, above)
}

/// `1 / sqrt(2 pi)`.
const GAUSS: f32 = 0.398_942_3;

/// The density of the standard normal distribution; 2 ulp.
#[inline(always)]
pub(crate) fn normal_density<S: Simd>(s: S, x: S::F) -> S::F {
    let e = exp_of_square(s, at_most(s, s.abs(x), 14.5), -0.5);
    s.mul(e, s.splat(GAUSS))
}
