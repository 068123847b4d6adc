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
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f32, exact: f64) {
        let error = (f64::from(found) - exact).abs();
        assert!(error <= 2e-7 * exact.abs(), "{found} instead of {exact}");
    }

    #[test]
    fn gamma_family() {
        for (x, exact) in [
            (1e-30, 69.07755278665029),
            (0.3, 1.095797953064734),
            (1.0000001, -6.880945764253302e-08),
            (0.99999994, 3.440473750337958e-08),
            (2.0000002, 1.0079965877070312e-07),
            (1.5, -0.12078223763524526),
            (7.9, 8.324266058957152),
            (8.1, 8.727389037383563),
            (171.5, 709.1431630309283),
            (1e+10, 220258509288.81058),
            (-0.5, 1.2655121234846454),
            (-1e-20, 46.051701891615394),
            (-2.4570248, -1.128784253290327e-07),
            (-7.25, -7.541883443475751),
            (-100.5, -364.9009683094273),
            (1e+36, 8.189306017217861e+37),
        ] {
            near(Lgamma.apply(x), exact);
        }
        for (x, exact) in [
            (1e-30, -9.999999968289232e+29),
            (0.3, -3.5025240762240175),
            (1.4616321, -1.2036052549106669e-08),
            (1.5, 0.03648997397857652),
            (7.9, 2.0022385004315733),
            (8.1, 2.0288675072019817),
            (1e+10, 23.025850929890456),
            (-0.5, 0.03648997397857651),
            (-1e-20, 1.0000000317344784e+20),
            (-0.50408304, -2.6025495502993583e-07),
            (-7.25, 5.189977214956288),
            (-100.5, 4.615124601338064),
        ] {
            near(Digamma.apply(x), exact);
        }
        for pole in [0.0, -0.0, -1.0, -2.0, -3e9] {
            assert_eq!(Lgamma.apply(pole), f32::INFINITY);
            assert!(Digamma.apply(pole).is_nan());
        }
        assert_eq!([1.0, 2.0].map(|x| Lgamma.apply(x).abs() < 1e-14), [true; 2]);
        assert_eq!(Lgamma.apply(f32::NEG_INFINITY), f32::INFINITY);
        assert_eq!(Lgamma.apply(3e38), f32::INFINITY);
        assert!(Digamma.apply(f32::NEG_INFINITY).is_nan());
        assert_eq!(Digamma.apply(f32::INFINITY), f32::INFINITY);
    }

    /// Sums of Gauss' and Legendre's kind: what the functions at `x`, `x + 1` and `2 x` have to do
    /// with each other, which no coefficient knows.
    #[test]
    fn gamma_recurrences() {
        let ln_2 = core::f64::consts::LN_2;
        for i in 1..4000 {
            let x = f64::from(i) / 64.0;
            let twice = log_gamma_above(x) + log_gamma_above(x + 0.5);
            let sum = log_gamma_above(2.0 * x) + (1.0 - 2.0 * x) * ln_2 + 0.5 * PI.ln();
            assert!((twice - sum).abs() <= 1e-13 * sum.abs().max(1.0), "{x}");
            let next = digamma_above(x + 1.0) - digamma_above(x);
            assert!((next - 1.0 / x).abs() <= 1e-13 * (1.0 / x).max(1.0), "{x}");
            assert!(
                (log(x) - x.ln()).abs() <= 2e-15 * x.ln().abs().max(1.0),
                "{x}"
            );
        }
    }

    #[test]
    fn inverses() {
        for (x, exact) in [
            (1e-38, 8.862268678884556e-39),
            (1e-05, 8.862269030879841e-06),
            (0.3, 0.2724627261055238),
            (0.9, 1.1630870719457722),
            (0.994, 1.942975532647011),
            (0.995, 1.984872829842413),
            (0.99999, 3.123205771165071),
            (0.99999994, 3.8325068569007104),
        ] {
            near(Erfinv.apply(x), exact);
            near(Erfinv.apply(-x), -exact);
        }
        for (x, exact) in [
            (1e-45, -14.121426613350497),
            (1e-38, -12.962359339778555),
            (1e-10, -6.361340900353645),
            (0.049, -1.6546279149784446),
            (0.051, -1.6352340244907086),
            (0.3, -0.5244004784222137),
            (0.4999999, -2.2411003183999852e-07),
            (0.7, 0.5244004784222137),
            (0.97, 1.880794028630679),
            (0.99999994, 5.294704084854597),
        ] {
            near(Ndtri.apply(x), exact);
        }
        assert_eq!(
            [-1.0, 1.0].map(|x| Erfinv.apply(x)),
            [f32::NEG_INFINITY, f32::INFINITY]
        );
        assert_eq!(
            [0.0, 1.0].map(|x| Ndtri.apply(x)),
            [f32::NEG_INFINITY, f32::INFINITY]
        );
        assert!(
            [-1.5, 1.5, f32::INFINITY]
                .iter()
                .all(|&x| Erfinv.apply(x).is_nan())
        );
        assert!(
            [-0.5, 1.5, f32::INFINITY]
                .iter()
                .all(|&x| Ndtri.apply(x).is_nan())
        );
    }

    #[test]
    fn bessel_functions() {
        for (x, i0, i1) in [
            (1e-30, 1.0, 5.000000015855385e-31),
            (0.1, 0.9071009244981154, 0.04529844741799564),
            (1.0, 0.46575960759364043, 0.2079104153497085),
            (5.0, 0.18354081260932834, 0.16397226694454234),
            (7.99, 0.1435247675096356, 0.13421734129277516),
            (8.01, 0.1433389772891269, 0.1340677673009355),
            (50.0, 0.056561626647454184, 0.055993123892895395),
            (87.5, 0.0427100468910196, 0.04246528405831043),
            (10000.0, 0.0039894726746047314, 0.003989273195983662),
            (1e+30, 3.9894227739989746e-16, 3.9894227739989746e-16),
        ] {
            near(BesselI0e.apply(x), i0);
            near(BesselI1e.apply(x), i1);
            near(BesselI1e.apply(-x), -i1);
            if x < 88.0 {
                near(BesselI0.apply(-x), i0 * f64::from(x).exp());
                near(BesselI1.apply(-x), -i1 * f64::from(x).exp());
            }
        }
        assert_eq!(BesselI1.apply(-3e38), f32::NEG_INFINITY);
        assert_eq!(BesselI0e.apply(f32::NEG_INFINITY), 0.0);
        assert!(BesselI0.apply(f32::INFINITY).is_nan());
    }

    #[test]
    fn nan_stays() {
        macro_rules! nan {
            ($($op:ident)*) => { $(assert!($op.apply(f32::NAN).is_nan(), stringify!($op));)* };
        }
        nan!(Lgamma Digamma Erfinv Ndtri BesselI0 BesselI0e BesselI1 BesselI1e);
    }
}
