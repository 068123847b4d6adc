//! Exponentials, logarithms and what is made of them, in `f32`.
//!
//! Errors are stated in ulp of the exact result, and hold for subnormal results too. NaN gives NaN;
//! zeros keep their sign where the function has one.

/// 1.5 * 2^23: adding it leaves the nearest integer in the low bits of the sum.
pub(crate) const ROUNDER: f32 = 12_582_912.0;
/// The logarithm of 2 in two parts, the first of 9 bits.
pub(crate) const LN_2_HIGH: f32 = 0.693_359_4;
pub(crate) const LN_2_LOW: f32 = -2.121_944_4e-4;
/// Coefficients of `(exp(r) - 1 - r) / r^2` for |r| up to half the logarithm of 2, fitted; relative
/// error 2e-9 of `exp(r) - 1`.
pub(crate) const EXP: [f32; 6] = [
    0.5,
    0.166_666_67,
    0.041_666_35,
    0.008_333_273,
    0.001_394_131_7,
    0.000_199_139_5,
];

#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[f32; N], x: f32) -> f32 {
    let mut value = coefficients[N - 1];
    for &coefficient in coefficients.iter().rev().skip(1) {
        value = value * x + coefficient;
    }
    value
}

/// `x`, but not above `high`; NaN stays.
#[inline(always)]
fn at_most(x: f32, high: f32) -> f32 {
    if x > high { high } else { x }
}

/// `x`, but not below `low`; NaN stays.
#[inline(always)]
fn at_least(x: f32, low: f32) -> f32 {
    if x < low { low } else { x }
}

/// `2^n` for -126 to 127.
#[inline(always)]
fn power_of_2(n: i32) -> f32 {
    f32::from_bits((n.wrapping_add(127) as u32) << 23)
}

/// `n` and `exp(r) - 1` for `x = n ln 2 + r`.
#[inline(always)]
fn exp_parts(x: f32) -> (i32, f32) {
    let (n, whole) = multiple_of_ln_2(x);
    (n, exp_rest((x - whole * LN_2_HIGH) - whole * LN_2_LOW))
}

/// `n` and `exp(r) - 1` for `high + low = n ln 2 + r`, where `low` is small.
#[inline(always)]
fn exp_parts_of_sum(high: f32, low: f32) -> (i32, f32) {
    let (n, whole) = multiple_of_ln_2(high + low);
    (
        n,
        exp_rest(((high - whole * LN_2_HIGH) - whole * LN_2_LOW) + low),
    )
}

/// The integer next to `x / ln 2`, twice.
#[inline(always)]
fn multiple_of_ln_2(x: f32) -> (i32, f32) {
    let shifted = x * core::f32::consts::LOG2_E + ROUNDER;
    let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()) as i32;
    (n, shifted - ROUNDER)
}

/// `exp(r) - 1` for |r| up to half the logarithm of 2.
#[inline(always)]
fn exp_rest(r: f32) -> f32 {
    polynomial(&EXP, r) * (r * r) + r
}

/// `(1 + fraction) * 2^n`, where `2^n` itself may lie outside the normal numbers.
#[inline(always)]
fn scaled(n: i32, fraction: f32) -> f32 {
    let half = n >> 1;
    (fraction + 1.0) * power_of_2(half) * power_of_2(n.wrapping_sub(half))
}

/// Exponential; 1 ulp.
#[inline(always)]
pub(crate) fn exp(x: f32) -> f32 {
    let (n, fraction) = exp_parts(at_least(at_most(x, 89.0), -104.0));
    scaled(n, fraction)
}

/// `exp(x) - 1`; 2 ulp.
#[inline(always)]
pub(crate) fn exp_m1(x: f32) -> f32 {
    let (n, fraction) = exp_parts(at_least(at_most(x, 89.0), -20.0));
    // Half of the result, because 2^n may be infinity.
    let scale = power_of_2(n.wrapping_sub(1));
    let value = (scale * fraction + (scale - 0.5)) * 2.0;
    value.copysign(x)
}

/// Hyperbolic tangent; 3 ulp.
#[inline(always)]
pub(crate) fn tanh(x: f32) -> f32 {
    let (n, fraction) = exp_parts(2.0 * at_most(x.abs(), 10.0));
    let scale = power_of_2(n);
    let e = scale * fraction + (scale - 1.0);
    (e / (e + 2.0)).copysign(x)
}

/// `1 / (1 + exp(-x))`; 3 ulp.
#[inline(always)]
pub(crate) fn sigmoid(x: f32) -> f32 {
    let e = exp(-x.abs());
    let value = 1.0 / (1.0 + e);
    if x < 0.0 { e * value } else { value }
}

/// Coefficients of `(log((1 + s) / (1 - s)) / s - 2) / s^2` in `s^2` for |s| up to 0.172, fitted;
/// relative error of the logarithm 1e-9.
const LOG: [f32; 3] = [0.666_667_8, 0.399_770_8, 0.298_851_9];

/// `log(x * 2^exponent) + tail` for a positive normal `x` and a small `tail`.
#[inline(always)]
fn log_of_normal(x: f32, tail: f32, exponent: f32) -> f32 {
    /// The logarithm of 2 in two parts, the first of 16 bits.
    const HIGH: f32 = 0.693_138_1;
    const LOW: f32 = 9.058_001e-6;
    /// The square root of 1/2.
    const ROOT: u32 = 0x3F35_04F3;
    // The mantissa in [sqrt(1/2), sqrt(2)) and the exponent that belongs to it.
    let shifted = x.to_bits().wrapping_sub(ROOT);
    let n = ((shifted as i32) >> 23) as f32 + exponent;
    let f = f32::from_bits((shifted & 0x007F_FFFF).wrapping_add(ROOT)) - 1.0;
    let s = f / (2.0 + f);
    let z = s * s;
    let half_square = 0.5 * f * f;
    let rest = s * (half_square + z * polynomial(&LOG, z)) + (n * LOW + tail);
    n * HIGH + (f - (half_square - rest))
}

/// Natural logarithm; 1 ulp. Infinity for infinity, minus infinity for 0, NaN for negative numbers.
#[inline(always)]
pub(crate) fn log(x: f32) -> f32 {
    let small = x < f32::MIN_POSITIVE;
    let exponent = if small { -25.0 } else { 0.0 };
    let normal = if small { x * 33_554_432.0 } else { x };
    let value = log_of_normal(normal, 0.0, exponent);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x >= 0.0 { value } else { f32::NAN };
    if x == 0.0 { f32::NEG_INFINITY } else { value }
}

/// `log(1 + x)`; 2 ulp.
#[inline(always)]
pub(crate) fn log_1p(x: f32) -> f32 {
    let sum = 1.0 + x;
    // What the sum has lost of `x`.
    let value = log_of_normal(sum, (x - (sum - 1.0)) / sum, 0.0);
    let value = if x == f32::INFINITY { x } else { value };
    let value = if x >= -1.0 { value } else { f32::NAN };
    let value = if x == -1.0 { f32::NEG_INFINITY } else { value };
    if x == 0.0 { x } else { value }
}

/// `log(1 + exp(x))`; 3 ulp.
#[inline(always)]
pub(crate) fn softplus(x: f32) -> f32 {
    let e = exp(-x.abs());
    // `e` is in 0..=1, so that the logarithm needs none of its special cases.
    let sum = 1.0 + e;
    let log = log_of_normal(sum, (e - (sum - 1.0)) / sum, 0.0);
    if x > 0.0 { x + log } else { log }
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
pub(crate) const ERFC: [f32; 10] = [
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

/// `erfc(x)` for `x` in 0..10.1, of which `-(high + low)` is the square.
#[inline(always)]
fn erfc_tail(x: f32, high: f32, low: f32) -> f32 {
    let (n, fraction) = exp_parts_of_sum(high, low);
    let p = polynomial(&ERFC, (x - 2.0) / (x + 2.0));
    scaled(n, fraction) * (p / (1.0 + 2.0 * x))
}

/// `-x * x` in two parts.
#[inline(always)]
fn minus_square(x: f32) -> (f32, f32) {
    // Twelve bits, whose square is exact.
    let high = f32::from_bits(x.to_bits() & 0xFFFF_F000);
    (-high * high, -(x - high) * (x + high))
}

/// `1 - erf(x)`; 4 ulp.
#[inline(always)]
pub(crate) fn erfc(x: f32) -> f32 {
    let far = at_most(x.abs(), 10.1);
    let (high, low) = minus_square(far);
    let value = erfc_tail(far, high, low);
    if x < 0.0 { 2.0 - value } else { value }
}

/// The error function; 2 ulp.
#[inline(always)]
pub(crate) fn erf(x: f32) -> f32 {
    let size = x.abs();
    let near = size * polynomial(&ERF, size * size) + size;
    // The result is 1 from 4 on.
    let root = polynomial(&ERFC_ROOT, at_most(size, 4.0) - 2.0);
    let fourth = (root * root) * (root * root);
    let far = 1.0 - fourth * fourth;
    (if size < ERF_NEAR { near } else { far }).copysign(x)
}

/// The distribution function of the standard normal distribution; 4 ulp.
#[inline(always)]
pub(crate) fn normal_cdf(x: f32) -> f32 {
    let far = at_most(x.abs(), 14.28);
    let (high, low) = minus_square(far);
    let y = far * core::f32::consts::FRAC_1_SQRT_2;
    let value = 0.5 * erfc_tail(y, 0.5 * high, 0.5 * low);
    if x > 0.0 { 1.0 - value } else { value }
}

/// `1 / sqrt(2 pi)`.
const GAUSS: f32 = 0.398_942_3;

/// The density of the standard normal distribution; 2 ulp.
#[inline(always)]
pub(crate) fn normal_density(x: f32) -> f32 {
    let (high, low) = minus_square(at_most(x.abs(), 14.5));
    let (n, fraction) = exp_parts_of_sum(0.5 * high, 0.5 * low);
    scaled(n, fraction) * GAUSS
}
