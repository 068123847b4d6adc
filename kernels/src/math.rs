//! Elementary functions without a library call, in a form that loops over them vectorise.
//!
//! The functions of `f64` are meant for arguments and results that are `f32`: their relative error
//! is below 1e-9 (see each), so that the rounded result is within 0.51 ulp of the exact one, except
//! where a result is subnormal. Ranges are cut where an `f32` result has long become 0 or infinity.

/// 1.5 * 2^52: adding it leaves the nearest integer in the low bits of the sum.
const ROUNDER: f64 = 6_755_399_441_055_744.0;

/// Largest integer not above `x`.
#[inline(always)]
pub(crate) fn floor(x: f32) -> f32 {
    #[cfg(feature = "std")]
    {
        x.floor()
    }
    #[cfg(not(feature = "std"))]
    {
        let cut = truncate(x);
        let down = if cut > x { cut - 1.0 } else { cut };
        down.copysign(x)
    }
}

/// Smallest integer not below `x`.
#[inline(always)]
pub(crate) fn ceil(x: f32) -> f32 {
    -floor(-x)
}

/// Nearest integer, halves to the even one.
#[inline(always)]
pub(crate) fn round_half_even(x: f32) -> f32 {
    #[cfg(feature = "std")]
    {
        x.round_ties_even()
    }
    #[cfg(not(feature = "std"))]
    {
        const STEP: f32 = 8_388_608.0;
        if x.abs() < STEP {
            ((x.abs() + STEP) - STEP).copysign(x)
        } else {
            x
        }
    }
}

/// `x` without its fraction.
#[inline(always)]
#[cfg_attr(feature = "std", allow(dead_code))]
pub(crate) fn truncate(x: f32) -> f32 {
    if x.abs() < 8_388_608.0 {
        (x as i32 as f32).copysign(x)
    } else {
        x
    }
}

/// Square root, correctly rounded.
#[inline(always)]
pub(crate) fn sqrt(x: f64) -> f64 {
    #[cfg(feature = "std")]
    {
        x.sqrt()
    }
    #[cfg(all(not(feature = "std"), target_arch = "x86_64"))]
    {
        use core::arch::x86_64::{_mm_cvtsd_f64, _mm_set_sd, _mm_sqrt_sd};
        // SAFETY: SSE2 is part of this architecture.
        unsafe { _mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(x), _mm_set_sd(x))) }
    }
    #[cfg(all(not(feature = "std"), not(target_arch = "x86_64")))]
    {
        if x == 0.0 || x == f64::INFINITY || x.is_nan() {
            return x;
        }
        if x < 0.0 {
            return f64::NAN;
        }
        // Heron's iteration from an estimate with half the exponent; four steps suffice for any
        // normal number.
        let mut root = f64::from_bits((x.to_bits() >> 1) + (1023 << 51));
        for _ in 0..5 {
            root = 0.5 * (root + x / root);
        }
        root
    }
}

/// Square root of an `f32`, correctly rounded.
#[inline(always)]
pub(crate) fn sqrt_f32(x: f32) -> f32 {
    #[cfg(feature = "std")]
    {
        x.sqrt()
    }
    #[cfg(not(feature = "std"))]
    {
        sqrt(f64::from(x)) as f32
    }
}

/// Exponential of an `f32` in single precision; 1 ulp, also where the result is subnormal.
#[inline(always)]
pub(crate) fn exp_f32(x: f32) -> f32 {
    /// 1.5 * 2^23.
    const ROUNDER: f32 = 12_582_912.0;
    /// The logarithm of 2 in two parts, the first of 9 bits.
    const HIGH: f32 = 0.693_359_4;
    const LOW: f32 = -2.121_944_4e-4;
    let x = if x > 89.0 { 89.0 } else { x };
    let x = if x < -104.0 { -104.0 } else { x };
    let shifted = x * core::f32::consts::LOG2_E + ROUNDER;
    let n = shifted - ROUNDER;
    let r = (x - n * HIGH) - n * LOW;
    let p = 1.985_780_7e-4;
    let p = p * r + 1.393_363e-3;
    let p = p * r + 8.333_361e-3;
    let p = p * r + 4.166_646_5e-2;
    let p = p * r + 0.166_666_67;
    let p = p * r + 0.5;
    let value = (p * (r * r) + r) + 1.0;
    // In two steps, because 2^n itself may lie outside the normal numbers.
    let n = shifted.to_bits().wrapping_sub(ROUNDER.to_bits()) as i32;
    let half = n >> 1;
    let power = |n: i32| f32::from_bits((n.wrapping_add(127) as u32) << 23);
    value * power(half) * power(n.wrapping_sub(half))
}

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

/// Hyperbolic tangent; relative error below 1e-10.
#[inline(always)]
pub(crate) fn tanh(x: f64) -> f64 {
    let e = exp_m1(2.0 * x.abs().min(40.0));
    let value = (e / (e + 2.0)).copysign(x);
    if x.is_nan() { x } else { value }
}

/// `1 / (1 + exp(-x))`; relative error below 1e-10.
#[inline(always)]
pub(crate) fn sigmoid(x: f64) -> f64 {
    1.0 / (1.0 + exp(-x))
}

/// `log(1 + exp(x))`; relative error below 1e-10.
#[inline(always)]
pub(crate) fn softplus(x: f64) -> f64 {
    let value = log_1p(exp(x));
    if x > 40.0 { x } else { value }
}

/// Coefficients of `erf(x) / x` in `x * x` for |x| <= 1, fitted; relative error 1e-12.
const ERF: [f64; 9] = [
    1.128_379_167_094_586_4,
    -0.376_126_388_885_109_24,
    0.112_837_912_854_924_19,
    -0.026_866_131_418_048_27,
    0.005_223_776_439_692_156,
    -0.000_854_248_963_253_611_1,
    0.000_119_548_226_769_943_2,
    -1.389_874_930_431_835_5e-5,
    1.056_310_151_061_176_3e-6,
];

/// Coefficients of `exp(x * x) * erfc(x)` in `(x - 2.5) / (x + 2.5)` for x in 0..10.3, fitted;
/// relative error 9e-10.
const ERFC: [f64; 12] = [
    0.210_806_364_054_285_04,
    -0.371_736_731_199_443_06,
    0.251_713_189_837_997_2,
    -0.125_033_162_162_127_15,
    0.039_922_642_790_238_29,
    -0.003_992_448_570_333_291,
    -0.002_643_056_151_913_955_4,
    0.000_869_739_705_162_610_1,
    0.000_229_239_023_564_324_43,
    -0.000_114_464_986_500_389_93,
    -3.077_125_101_752_677e-5,
    4.676_346_514_330_242_5e-6,
];

#[inline(always)]
fn polynomial<const N: usize>(coefficients: &[f64; N], x: f64) -> f64 {
    let mut value = 0.0;
    for &coefficient in coefficients.iter().rev() {
        value = value * x + coefficient;
    }
    value
}

/// `1 - erf(x)`; relative error below 1e-9.
#[inline(always)]
pub(crate) fn erfc(x: f64) -> f64 {
    let far = x.abs().min(10.3);
    let value = exp(-far * far) * polynomial(&ERFC, (far - 2.5) / (far + 2.5));
    let value = if x < 0.0 { 2.0 - value } else { value };
    if x.is_nan() { x } else { value }
}

/// The error function; relative error below 1e-9.
#[inline(always)]
pub(crate) fn erf(x: f64) -> f64 {
    let far = 1.0 - erfc(x.abs());
    let near = x.abs() * polynomial(&ERF, x * x);
    let value = if x.abs() < 1.0 { near } else { far };
    value.copysign(x)
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

/// The angle less a whole number of quarter turns, at most pi / 4 in size, and that number.
#[inline(always)]
fn quarter_turns(x: f64) -> (f64, u64) {
    /// pi / 2 in two parts, the first of 33 bits.
    const HIGH: f64 = 1.570_796_326_734_125_6;
    const LOW: f64 = 6.077_100_506_506_192e-11;
    if x.abs() > LARGE_ANGLE {
        return quarter_turns_of_large(x as f32);
    }
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
    let (r, turns) = quarter_turns(x);
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

/// The C library's single-precision functions, bit by bit, where the standard library has them.
pub(crate) mod libm {
    /// Natural logarithm.
    #[inline(always)]
    pub(crate) fn log(x: f32) -> f32 {
        #[cfg(feature = "std")]
        {
            x.ln()
        }
        #[cfg(not(feature = "std"))]
        {
            super::log(f64::from(x)) as f32
        }
    }

    /// Sine and cosine.
    #[inline(always)]
    pub(crate) fn sin_cos(x: f32) -> (f32, f32) {
        #[cfg(feature = "std")]
        {
            x.sin_cos()
        }
        #[cfg(not(feature = "std"))]
        {
            let (sin, cos) = super::sin_cos(f64::from(x));
            (sin as f32, cos as f32)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The f32 that a function of f64 gives is within 0.52 ulp of the exact one.
    fn check(x: f32, found: f64, exact: f64) {
        let (found, nearest) = (found as f32, exact as f32);
        if found == nearest || (found.is_nan() && nearest.is_nan()) {
            return;
        }
        let ulp = f64::from(f32::from_bits(
            (nearest.abs().to_bits() + 1).min(0x7F80_0000),
        )) - f64::from(nearest.abs());
        let error = (f64::from(found) - exact).abs() / ulp;
        assert!(error <= 0.52, "{x}: {found} instead of {exact}");
    }

    fn check_all(x: f32) {
        let wide = f64::from(x);
        check(x, exp(wide), wide.exp());
        check(x, exp_m1(wide), wide.exp_m1());
        check(x, log(wide), wide.ln());
        check(x, log_1p(wide), wide.ln_1p());
        check(x, tanh(wide), wide.tanh());
        check(x, sigmoid(wide), 1.0 / (1.0 + (-wide).exp()));
        check(x, atan(wide), wide.atan());
        check(x, asin(wide), wide.asin());
        check(x, acos(wide), wide.acos());
        check(x, sinh(wide), wide.sinh());
        check(x, cosh(wide), wide.cosh());
        check(x, asinh(wide), wide.asinh());
        check(x, acosh(wide), wide.acosh());
        check(x, atanh(wide), wide.atanh());
        let (sin, cos) = sin_cos(wide);
        check(x, sin, wide.sin());
        check(x, cos, wide.cos());
        assert_eq!(floor(x).to_bits(), x.floor().to_bits());
        assert_eq!(truncate(x).to_bits(), x.trunc().to_bits());
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3000) })]

        #[test]
        fn any_bits(bits: u32) {
            let x = f32::from_bits(bits);
            if !x.is_nan() {
                check_all(x);
            }
        }

        #[test]
        fn common_values(x in -20.0_f32..20.0, small in -1.5_f32..1.5) {
            check_all(x);
            check_all(small);
        }

        #[test]
        fn powers(a in 0.0_f32..50.0, b in -30.0_f32..30.0, n in -9_i32..10) {
            check(a, pow(f64::from(a), f64::from(b)), f64::from(a).powf(f64::from(b)));
            check(-a, pow(f64::from(-a), f64::from(n)), f64::from(-a).powi(n));
        }

        #[test]
        fn angles(y in -9.0_f32..9.0, x in -9.0_f32..9.0) {
            check(y, atan2(f64::from(y), f64::from(x)), f64::from(y).atan2(f64::from(x)));
        }

        #[test]
        fn single_precision_exponential(x in -103.0_f32..88.7) {
            let exact = f64::from(x).exp();
            let ulp = (exact * 2.0_f64.powi(-23)).max(f64::from(f32::from_bits(1)));
            prop_assert!((f64::from(exp_f32(x)) - exact).abs() <= ulp);
        }
    }

    #[test]
    fn special_values() {
        for x in [
            0.0,
            -0.0,
            1.0,
            -1.0,
            f32::INFINITY,
            f32::NEG_INFINITY,
            1e-40,
            3.4e38,
            8_388_609.0,
        ] {
            check_all(x);
        }
        for function in [
            exp, exp_m1, log, log_1p, tanh, sigmoid, softplus, erf, erfc, atan, asin,
        ] {
            assert!(function(f64::NAN).is_nan());
        }
        assert!(exp_f32(f32::NAN).is_nan());
        assert_eq!(exp_f32(f32::NEG_INFINITY), 0.0);
        assert_eq!(exp_f32(f32::INFINITY), f32::INFINITY);
        let specials = [
            0.0,
            -0.0,
            1.0,
            -1.0,
            2.0,
            3.0,
            -3.0,
            0.5,
            -0.5,
            f64::INFINITY,
            f64::NEG_INFINITY,
        ];
        for a in specials {
            for b in specials {
                let (found, exact) = (pow(a, b) as f32, a.powf(b) as f32);
                assert!(
                    found == exact || (found.is_nan() && exact.is_nan()),
                    "{a} {b}: {found}"
                );
                check(a as f32, atan2(a, b), a.atan2(b));
            }
        }
    }

    /// Values from tables of the error function.
    #[test]
    fn error_function() {
        let table = [
            (0.1, 0.112_462_916_018_284_89),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (1.5, 0.966_105_146_475_310_8),
            (2.5, 0.999_593_047_982_555),
        ];
        for (x, exact) in table {
            assert!((erf(x) - exact).abs() <= 1e-9 * exact);
            assert!((erf(-x) + exact).abs() <= 1e-9 * exact);
            assert!((erfc(x) - (1.0 - exact)).abs() <= 1e-9);
        }
        assert!((erfc(5.0) / 1.537_459_794_428_034_7e-12 - 1.0).abs() <= 1e-9);
        assert_eq!(erf(0.0), 0.0);
    }
}
