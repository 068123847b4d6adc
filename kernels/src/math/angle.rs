//! Functions of angles, in `f64`; see [`super::double`].

use super::double::ROUNDER;
use super::{polynomial, sqrt};
use crate::simd::Simd;

/// Arc tangent of `y / x` for `x >= 0`; relative error below 1e-10.
#[inline(always)]
fn atan_ratio(y: f64, x: f64) -> f64 {
    const TAN_3_PI_8: f64 = core::f64::consts::SQRT_2 + 1.0;
    const TAN_PI_8: f64 = core::f64::consts::SQRT_2 - 1.0;
    let size = y.abs();
    let (up, down, base) = if size > TAN_3_PI_8 * x {
        (-x, size, core::f64::consts::FRAC_PI_2)
    } else if size > TAN_PI_8 * x {
        (size - x, size + x, core::f64::consts::FRAC_PI_4)
    } else {
        (size, x, 0.0)
    };
    let u = up / down;
    (base + u * polynomial(&ATAN, u * u)).copysign(y)
}

/// Arc tangent.
#[inline(always)]
pub(crate) fn atan(x: f64) -> f64 {
    atan_ratio(x, 1.0)
}

/// Angle of the point `(x, y)`.
#[inline(always)]
pub(crate) fn atan2(y: f64, x: f64) -> f64 {
    let both = y.is_infinite() && x.is_infinite();
    let (py, px) = if both {
        (1.0_f64.copysign(y), 1.0)
    } else {
        (y, x.abs())
    };
    let zero = py == 0.0 && px == 0.0;
    let angle = if zero { y } else { atan_ratio(py, px) };
    let turned = (core::f64::consts::PI - angle.abs()).copysign(y);
    let value = if x.is_sign_negative() { turned } else { angle };
    if x.is_nan() || y.is_nan() {
        f64::NAN
    } else {
        value
    }
}

/// Arc sine.
#[inline(always)]
pub(crate) fn asin(x: f64) -> f64 {
    atan_ratio(x, sqrt((1.0 - x) * (1.0 + x)))
}

/// Arc cosine.
#[inline(always)]
pub(crate) fn acos(x: f64) -> f64 {
    2.0 * atan_ratio(sqrt(1.0 - x), sqrt(1.0 + x))
}

/// Coefficients of `atan(x) / x` in `x * x` for |x| <= tan(pi / 8), fitted; relative error 1e-12.
const ATAN: [f64; 8] = [
    0.999_999_999_999_274_8,
    -0.333_333_332_787_249_86,
    0.199_999_932_217_864_16,
    -0.142_853_924_298_435_74,
    0.111_035_546_039_445_76,
    -0.089_933_865_935_025_11,
    0.069_777_255_823_549_27,
    -0.037_713_762_159_786_83,
];

/// 2 / pi in binary, first the digits next to the point.
const TWO_OVER_PI: [u64; 4] = [
    0xA2F9_836E_4E44_1529,
    0xFC27_57D1_F534_DDC0,
    0xDB62_9599_3C43_9041,
    0xFE51_63AB_DEBB_C561,
];

/// Above this, an `f32` is reduced by integer arithmetic.
const LARGE_ANGLE: f64 = 1.0e6;

/// The angle less an integer number of quarter turns, at most pi / 4 in size, and that number.
#[inline(always)]
fn quarter_turns(x: f64) -> (f64, u64) {
    if x.abs() > LARGE_ANGLE {
        return quarter_turns_of_large(x as f32);
    }
    quarter_turns_of_small(x)
}

/// As [`quarter_turns`] up to [`LARGE_ANGLE`], without a branch.
#[inline(always)]
fn quarter_turns_of_small(x: f64) -> (f64, u64) {
    /// pi / 2 in two parts, the first of 33 bits.
    const HIGH: f64 = 1.570_796_326_734_125_6;
    const LOW: f64 = 6.077_100_506_506_192e-11;
    let shifted = x * core::f64::consts::FRAC_2_PI + ROUNDER;
    let turns = shifted - ROUNDER;
    (x - turns * HIGH - turns * LOW, shifted.to_bits())
}

/// As [`quarter_turns`] for any `f32` above [`LARGE_ANGLE`]: the product with 2 / pi modulo 4, of
/// which only the digits around the point are computed.
#[cold]
fn quarter_turns_of_large(x: f32) -> (f64, u64) {
    let bits = x.abs().to_bits();
    if bits >= f32::INFINITY.to_bits() {
        return (f64::NAN, 0);
    }
    let mantissa = u128::from(bits & 0x7F_FFFF | 0x80_0000);
    let exponent = (bits >> 23) as i32 - 150;
    // The first digits make whole turns; the window starts with the weight of two quarter turns.
    let start = exponent - 2;
    let window = if start < 0 {
        (u128::from(TWO_OVER_PI[0]) << 64 | u128::from(TWO_OVER_PI[1])) >> -start
    } else {
        let (word, shift) = (start as usize / 64, start as u32 % 64);
        let digits = |index: usize| u128::from(TWO_OVER_PI.get(index).copied().unwrap_or(0));
        let high = digits(word) << 64 | digits(word + 1);
        let next = digits(word + 2) << shift >> 64;
        high << shift | next
    };
    let product = mantissa.wrapping_mul(window);
    let turns = product.wrapping_add(1 << 125) >> 126;
    let rest = product.wrapping_sub(turns << 126) as i128;
    // 2^-126 quarter turns.
    let unit = f64::from_bits((1023 - 126) << 52) * core::f64::consts::FRAC_PI_2;
    let angle = rest as f64 * unit;
    if x < 0.0 {
        (-angle, (turns as u64).wrapping_neg())
    } else {
        (angle, turns as u64)
    }
}

/// Sine and cosine of an `f32`; relative error below 1e-10.
#[inline(always)]
pub(crate) fn sin_cos(x: f64) -> (f64, f64) {
    after_turns(quarter_turns(x))
}

/// A function of the sine and the cosine of each lane: as that of [`sin_cos`], bit for bit.
#[inline(always)]
pub(crate) fn of_angles<S: Simd>(s: S, x: S::F, function: impl Fn((f64, f64)) -> f64) -> S::F {
    let large = s.lt(s.splat(LARGE_ANGLE as f32), s.abs(x));
    let mut values = s.to_array(x);
    // Without fused operations vectors of f64 gain nothing.
    if !S::FUSED || s.any(large) {
        one_by_one(&mut values[..S::LANES], function);
    } else {
        for value in &mut values[..S::LANES] {
            let turned = quarter_turns_of_small(f64::from(*value));
            *value = function(after_turns(turned)) as f32;
        }
    }
    s.load(&values)
}

#[cold]
#[inline(never)]
fn one_by_one(values: &mut [f32], function: impl Fn((f64, f64)) -> f64) {
    for value in values {
        *value = function(sin_cos(f64::from(*value))) as f32;
    }
}

/// Sine and cosine of an angle after a number of quarter turns.
#[inline(always)]
fn after_turns((r, turns): (f64, u64)) -> (f64, f64) {
    let z = r * r;
    let p = -1.0 / 39_916_800.0;
    let p = p * z + 1.0 / 362_880.0;
    let p = p * z - 1.0 / 5_040.0;
    let p = p * z + 1.0 / 120.0;
    let p = p * z - 1.0 / 6.0;
    let sin = p * z * r + r;
    let p = 1.0 / 479_001_600.0;
    let p = p * z - 1.0 / 3_628_800.0;
    let p = p * z + 1.0 / 40_320.0;
    let p = p * z - 1.0 / 720.0;
    let p = p * z + 1.0 / 24.0;
    let p = p * z - 0.5;
    let cos = p * z + 1.0;
    let (a, b) = if turns & 1 == 0 {
        (sin, cos)
    } else {
        (cos, sin)
    };
    let a = if turns & 2 == 0 { a } else { -a };
    let b = if turns.wrapping_add(1) & 2 == 0 {
        b
    } else {
        -b
    };
    (a, b)
}
