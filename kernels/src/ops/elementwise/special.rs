//! Functions of the gamma and Bessel families, and what turns the error function and the normal
//! distribution around.
//!
//! They compute in `f64` and round once: results are within 2e-7 of exact arithmetic, relative to
//! it, next to the zeros of a function too. Where one has a pole or is not defined, the value is
//! that of TensorFlow's op of its name.

use crate::frame::map::Map;
use crate::math::double::exp;
use crate::math::{round_half_even, sqrt};

macro_rules! special {
    ($($(#[$doc:meta])* $op:ident $cost:literal $function:ident;)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        impl Map<f32> for $op {
            type Out = f32;

            const COST: usize = $cost;

            #[inline(always)]
            fn apply(self, x: f32) -> f32 {
                $function(x)
            }
        }
    )*};
}

special! {
    /// Logarithm of the magnitude of the gamma function; infinite at its poles.
    Lgamma 64 log_gamma;
    /// Slope of the logarithm of the gamma function; NaN at its poles.
    Digamma 64 digamma;
    /// The number whose error function the value is; NaN beside -1 to 1.
    Erfinv 48 inverse_erf;
    /// The quantile of the normal distribution; NaN beside 0 to 1.
    Ndtri 48 quantile;
    /// Modified Bessel function of order 0; NaN for infinity.
    BesselI0 64 bessel_i0;
    /// Modified Bessel function of order 0 times `exp(-|x|)`.
    BesselI0e 48 scaled_bessel_i0;
    /// Modified Bessel function of order 1; NaN for infinity.
    BesselI1 64 bessel_i1;
    /// Modified Bessel function of order 1 times `exp(-|x|)`.
    BesselI1e 48 scaled_bessel_i1;
}

/// From here on a few terms of the series in `1 / x` do.
const LARGE: f64 = 8.0;
/// Half the logarithm of a turn: `ln(2 pi) / 2`.
const HALF_LOG_TURN: f64 = 0.918_938_533_204_672_7;
const PI: f64 = core::f64::consts::PI;

fn log_gamma(x: f32) -> f32 {
    if x.is_infinite() || x.is_nan() {
        return x.abs();
    }
    if x > 0.0 {
        return log_gamma_above(f64::from(x)) as f32;
    }
    let place = from_nearest(x);
    if place == 0.0 {
        return f32::INFINITY;
    }
    let (sin, _) = of_half_turns(place);
    (log(PI / sin.abs()) - log_gamma_above(1.0 - f64::from(x))) as f32
}

/// How far a finite number is from the nearest whole one.
fn from_nearest(x: f32) -> f64 {
    f64::from(x) - f64::from(round_half_even(x))
}

/// Sine and cosine of at most a quarter turn, given in half turns.
fn of_half_turns(place: f64) -> (f64, f64) {
    let angle = PI * place;
    let square = angle * angle;
    let (mut sin, mut cos) = (1.0, 1.0);
    for term in (1..=11).rev() {
        let even = f64::from(2 * term);
        sin = 1.0 - square / (even * (even + 1.0)) * sin;
        cos = 1.0 - square / (even * (even - 1.0)) * cos;
    }
    (angle * sin, cos)
}

/// Natural logarithm of a finite number above 0 that is not subnormal: nearly the nearest `f64`,
/// which the difference of two needs.
fn log(x: f64) -> f64 {
    // The mantissa in [sqrt(1/2), sqrt(2)) and the exponent that belongs to it.
    const LEAST: u64 = 0x3FE6_A09E_667F_3BCD;
    let shifted = x.to_bits().wrapping_sub(LEAST);
    let exponent = ((shifted as i64) >> 52) as f64;
    let mantissa = f64::from_bits((shifted & 0x000F_FFFF_FFFF_FFFF) + LEAST);
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let mut sum = 0.0;
    for term in (0..12).rev() {
        sum = sum * s * s + 1.0 / f64::from(2 * term + 1);
    }
    2.0 * s * sum + exponent * core::f64::consts::LN_2
}

fn log_gamma_above(x: f64) -> f64 {
    let (mut large, mut steps) = (x, 1.0);
    while large < LARGE {
        steps *= large;
        large += 1.0;
    }
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 360.0,
        1.0 / 1260.0,
        -1.0 / 1680.0,
        1.0 / 1188.0,
        -691.0 / 360_360.0,
        1.0 / 156.0,
    ];
    let inverse = 1.0 / large;
    let rest = power_series(&SERIES, inverse * inverse) * inverse;
    (large - 0.5) * log(large) - large + HALF_LOG_TURN + rest - log(steps)
}

fn digamma(x: f32) -> f32 {
    if x > 0.0 {
        return digamma_above(f64::from(x)) as f32;
    }
    let place = from_nearest(x);
    if place == 0.0 || place.is_nan() {
        return f32::NAN;
    }
    let (sin, cos) = of_half_turns(place);
    (digamma_above(1.0 - f64::from(x)) - PI * cos / sin) as f32
}

fn digamma_above(x: f64) -> f64 {
    if x == f64::INFINITY {
        return x;
    }
    let (mut large, mut steps) = (x, 0.0);
    while large < LARGE {
        steps += 1.0 / large;
        large += 1.0;
    }
    const SERIES: [f64; 7] = [
        1.0 / 12.0,
        -1.0 / 120.0,
        1.0 / 252.0,
        -1.0 / 240.0,
        1.0 / 132.0,
        -691.0 / 32_760.0,
        1.0 / 12.0,
    ];
    let inverse = 1.0 / large;
    let square = inverse * inverse;
    log(large) - 0.5 * inverse - power_series(&SERIES, square) * square - steps
}

fn power_series(coefficients: &[f64], x: f64) -> f64 {
    let terms = coefficients.iter().rev();
    terms.fold(0.0, |sum, &coefficient| sum * x + coefficient)
}

/// A sum of Chebyshev polynomials over the numbers from `low` to `high`.
fn chebyshev(coefficients: &[f64], x: f64, (low, high): (f64, f64)) -> f64 {
    let twice = 2.0 * (2.0 * x - low - high) / (high - low);
    let (mut one, mut two) = (0.0, 0.0);
    for &coefficient in coefficients.iter().skip(1).rev() {
        (one, two) = (coefficient + twice * one - two, one);
    }
    coefficients.first().copied().unwrap_or_default() + 0.5 * twice * one - two
}

fn inverse_erf(x: f32) -> f32 {
    if x.abs() < 1.0 {
        inverse_erf_inside(f64::from(x)) as f32
    } else if x.abs() == 1.0 {
        f32::INFINITY.copysign(x)
    } else {
        f32::NAN
    }
}

fn inverse_erf_inside(x: f64) -> f64 {
    let depth = -log((1.0 - x) * (1.0 + x));
    let slope = if depth < 4.5 {
        chebyshev(&ERF_NEAR, depth, (0.0, 4.5))
    } else {
        chebyshev(&ERF_FAR, sqrt(depth), (2.1, 4.2))
    };
    x * slope
}

fn quantile(x: f32) -> f32 {
    let p = f64::from(x);
    let least = if p < 0.5 { p } else { 1.0 - p };
    if least > 0.05 {
        return (core::f64::consts::SQRT_2 * inverse_erf_inside(2.0 * p - 1.0)) as f32;
    }
    let tail = if least > 0.0 {
        let depth = sqrt(-2.0 * log(least));
        depth * chebyshev(&TAIL, 1.0 / depth, (0.068, 0.4))
    } else if least == 0.0 {
        f64::INFINITY
    } else {
        f64::NAN
    };
    (if p < 0.5 { -tail } else { tail }) as f32
}

fn scaled_i0(x: f64) -> f64 {
    if x < LARGE {
        chebyshev(&I0_NEAR, x, (0.0, LARGE))
    } else {
        chebyshev(&I0_FAR, 1.0 / x, (0.0, 1.0 / LARGE)) / sqrt(x)
    }
}

/// Of a number that is not negative.
fn scaled_i1(x: f64) -> f64 {
    if x < LARGE {
        chebyshev(&I1_NEAR, x, (0.0, LARGE)) * x
    } else {
        chebyshev(&I1_FAR, 1.0 / x, (0.0, 1.0 / LARGE)) / sqrt(x)
    }
}

/// What scales a Bessel function to that size.
fn growth(x: f64) -> f64 {
    // Where results have long left f32, which is where `exp` ends.
    if x > 100.0 { f64::INFINITY } else { exp(x) }
}

fn bessel_i0(x: f32) -> f32 {
    let x = f64::from(x.abs());
    (growth(x) * scaled_i0(x)) as f32
}

fn scaled_bessel_i0(x: f32) -> f32 {
    scaled_i0(f64::from(x.abs())) as f32
}

fn bessel_i1(x: f32) -> f32 {
    let size = f64::from(x.abs());
    ((growth(size) * scaled_i1(size)) as f32).copysign(x)
}

fn scaled_bessel_i1(x: f32) -> f32 {
    (scaled_i1(f64::from(x.abs())) as f32).copysign(x)
}

/// `erfinv(x) / x` of `-log(1 - x^2)` in 0 to 4.5; 2e-9.
const ERF_NEAR: [f64; 11] = [
    1.4334824460211073,
    0.546583591035152,
    -0.005399055126327859,
    -0.004145936814319336,
    0.0006115415186794311,
    1.3892973271932941e-05,
    -1.5367043497128595e-05,
    1.3692976084818524e-06,
    2.206848131912732e-07,
    -5.6795152944291966e-08,
    7.104170383278395e-10,
];

/// `erfinv(x) / x` of `sqrt(-log(1 - x^2))` in 2.1 to 4.2; 6e-10.
const ERF_FAR: [f64; 13] = [
    2.9891420578573147,
    1.0479437200662163,
    0.006479477475941465,
    -0.0024570947829629748,
    0.0007951422768704677,
    -0.00021287916518904432,
    3.8419656629667346e-05,
    -1.1029409082169442e-06,
    -1.946744745521127e-06,
    6.609932894122626e-07,
    -7.593345622375698e-08,
    -1.7226076742496293e-08,
    8.902450574936984e-09,
];

/// `ndtri(p) / t` of `1 / t` in 0.068 to 0.4, where `t = -sqrt(-2 log(p))`; 2e-9.
const TAIL: [f64; 13] = [
    0.8494327518515637,
    -0.1516339708700238,
    -0.01629986972045977,
    0.0013314140702061913,
    -0.00016455332052262427,
    2.7303300478200348e-05,
    -5.613135721875665e-06,
    1.3237486028477483e-06,
    -3.405685090155261e-07,
    9.317804811878944e-08,
    -2.6736392625251837e-08,
    7.915377334203198e-09,
    -2.2163486468244165e-09,
];

/// `exp(-x) I0(x)` of `x` in 0 to 8; 9e-11.
const I0_NEAR: [f64; 21] = [
    0.3383976372047381,
    -0.3046826723431984,
    0.17162090152220874,
    -0.09490109704804763,
    0.04930528423967068,
    -0.023737414805899387,
    0.01054646039459486,
    -0.004324309995050443,
    0.0016394756169411575,
    -0.0005763755745384698,
    0.0001885028850956477,
    -5.754195010067848e-05,
    1.6448448070541488e-05,
    -4.416738358312465e-06,
    1.117387538921602e-06,
    -2.670793850136317e-07,
    6.046994833941368e-08,
    -1.300023813549155e-08,
    2.6597465096649828e-09,
    -5.184934454938354e-10,
    9.380227154632627e-11,
];

/// `exp(-x) I0(x) sqrt(x)` of `1 / x` in 0 to 1 / 8; 2e-10.
const I0_FAR: [f64; 9] = [
    0.40224520550707854,
    0.0033691164782273654,
    6.889758347788142e-05,
    2.8913705622627103e-06,
    2.0489184341693761e-07,
    2.2666304620171322e-08,
    3.395513905693035e-09,
    4.958544146563345e-10,
    2.5104702240405084e-11,
];

/// `exp(-x) I1(x) / x` of `x` in 0 to 8; 9e-11.
const I1_NEAR: [f64; 21] = [
    0.12629359322181685,
    -0.1764165183578341,
    0.10264365868984712,
    -0.052945981208095017,
    0.024726449030626513,
    -0.010564084894626166,
    0.004156422944312833,
    -0.0015135724506312011,
    0.0005122859561685003,
    -0.00016176081582583684,
    4.7815651075434155e-05,
    -1.3273163655956737e-05,
    3.4702513080633738e-06,
    -8.568720264152511e-07,
    2.0032947530941973e-07,
    -4.445059122440268e-08,
    9.38153715875819e-09,
    -1.8872485275443286e-09,
    3.625512518116334e-10,
    -6.658422274404148e-11,
    1.1413485224298165e-11,
];

/// `exp(-x) I1(x) sqrt(x)` of `1 / x` in 0 to 1 / 8; 2e-10.
const I1_FAR: [f64; 9] = [
    0.38928811750906556,
    -0.009761097491283262,
    -0.0001105889387718441,
    -3.882564851488676e-06,
    -2.5122360284965593e-07,
    -2.6314280131137733e-08,
    -3.834660670373517e-09,
    -5.610100115929016e-10,
    -3.3101032268344437e-11,
];

#[cfg(test)]
mod tests;
