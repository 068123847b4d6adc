//! Against the standard library's functions of `f64`, or tables.

use proptest::prelude::*;

use super::double::{exp, exp_m1};
use super::*;
use crate::base::level::Level;
use crate::frame::map::Function;
use crate::simd::{Body, Simd, available, dispatch};

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
    for function in [exp, exp_m1, log, log_1p, atan, asin] {
        assert!(function(f64::NAN).is_nan());
    }
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

/// A function of `f32`: its values at a level, its exact values, and the error in ulp that it
/// states.
type Single = (
    &'static str,
    fn(Level, &[f32]) -> Vec<f32>,
    fn(f64) -> f64,
    f64,
);

/// Whole vectors first, and the rest one element at a time.
struct Values<'a, F>(F, &'a [f32]);

impl<F: Function> Body for Values<'_, F> {
    type Out = Vec<f32>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Vec<f32> {
        let mut out = vec![0.0; self.1.len()];
        self.0.of_each(s, self.1, &mut out);
        out
    }
}

macro_rules! singles {
    ($($name:ident $exact:expr, $limit:literal;)*) => {
        &[$((
            stringify!($name),
            |level, x| {
                #[derive(Clone, Copy)]
                struct Of;

                impl Function for Of {
                    #[inline(always)]
                    fn of<S: Simd>(self, s: S, x: S::F) -> S::F {
                        single::$name(s, x)
                    }
                }

                dispatch(level, Values(Of, x))
            },
            $exact,
            $limit,
        )),*]
    };
}

const SINGLE: &[Single] = singles! {
    exp f64::exp, 1.0;
    exp_m1 f64::exp_m1, 2.0;
    tanh f64::tanh, 3.0;
    sigmoid sigmoid, 3.0;
    log f64::ln, 1.0;
    log_1p f64::ln_1p, 2.0;
    softplus |x| x.max(0.0) + (-x.abs()).exp().ln_1p(), 3.0;
    erf erf, 2.0;
    erfc erfc, 4.0;
    normal_cdf normal_cdf, 4.0;
    normal_density |x| (-0.5 * x * x).exp() * 0.398_942_280_401_432_7, 2.0;
    gelu |x| if x == f64::NEG_INFINITY { f64::NAN } else if x < -14.3 { 0.0 } else { x * normal_cdf(x) }, 5.0;
};

fn sigmoid(x: f64) -> f64 {
    if x < 0.0 {
        x.exp() / (1.0 + x.exp())
    } else {
        1.0 / (1.0 + (-x).exp())
    }
}

/// The distribution function of the standard normal distribution; relative error below 1e-9.
pub(crate) fn normal_cdf(x: f64) -> f64 {
    0.5 * erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
}

/// The error of `found` in ulp of the exact value; 0 for NaN instead of NaN.
fn ulps(found: f32, exact: f64) -> f64 {
    let nearest = exact as f32;
    if found == nearest || (found.is_nan() && nearest.is_nan()) {
        return 0.0;
    }
    let below = f32::from_bits(nearest.abs().min(f32::MAX).to_bits().max(1) - 1);
    let ulp = f64::from(nearest.abs().min(f32::MAX)) - f64::from(below);
    let ulp = ulp.max(f64::from(f32::from_bits(1)));
    let error = (f64::from(found) - exact).abs() / ulp;
    if error.is_nan() { f64::INFINITY } else { error }
}

/// Every value with a multiple of a prime as its bits, and some that are special, at every level.
#[test]
fn single_precision() {
    let bits = (0..=u32::MAX).step_by(60_013);
    let near = (-60_000..=60_000).map(|i| (i as f32 / 2000.0).to_bits());
    // The binades of the mantissas next to 1, where logarithms vanish.
    let around_one = (0x3F00_0000..0x4000_0000).step_by(9_973);
    let edges = [
        0.0,
        0.75,
        1.0,
        1.15,
        1.5,
        3.625,
        3.95,
        4.0,
        5.432,
        9.02,
        10.1,
        14.28,
        17.335,
        20.0,
        87.0,
        88.0,
        88.72,
        88.73,
        89.0,
        103.9,
        104.0,
        1e-40,
        f32::MIN_POSITIVE,
        f32::MAX,
    ];
    let edges = edges.into_iter().flat_map(|x: f32| {
        let x = x.to_bits();
        [x, x + 1, x.wrapping_sub(1) & 0x7FFF_FFFF]
    });
    let infinities = [f32::INFINITY.to_bits(), f32::NAN.to_bits()];
    let all = bits
        .chain(near)
        .chain(around_one)
        .chain(edges)
        .chain(infinities);
    let x: Vec<f32> = all
        .flat_map(|bits| [bits, bits ^ 0x8000_0000])
        .map(f32::from_bits)
        .collect();
    for (name, function, exact, limit) in SINGLE {
        let exact: Vec<f64> = x.iter().map(|&x| exact(f64::from(x))).collect();
        for level in available() {
            let mut worst = (0.0, 0.0, 0.0);
            for ((&x, found), &exact) in x.iter().zip(function(level, &x)).zip(&exact) {
                let error = ulps(found, exact);
                if error > worst.0 {
                    worst = (error, x, found);
                }
            }
            println!("{name}, {level:?}: {:.2} ulp at {:e}", worst.0, worst.1);
            assert!(worst.0 <= *limit, "{name}, {level:?}: {worst:?}");
        }
    }
}

/// The place of an element is of no matter: neither whether it is in a whole vector, nor its lane.
#[test]
fn an_element_has_the_same_bits_everywhere() {
    let x: Vec<f32> = (0..300).map(|i| (i as f32 - 150.0) * 0.13).collect();
    for ((name, function, ..), level) in
        SINGLE.iter().flat_map(|f| available().map(move |l| (f, l)))
    {
        let whole = function(level, &x);
        for start in 0..40 {
            for len in [1, 15, 17, 33] {
                let part = function(level, &x[start..start + len]);
                for (found, whole) in part.iter().zip(&whole[start..]) {
                    assert_eq!(found.to_bits(), whole.to_bits(), "{name}, {level:?}");
                }
            }
        }
    }
}

#[test]
fn zeros_keep_their_sign() {
    for (name, function, ..) in SINGLE {
        if matches!(*name, "exp_m1" | "tanh" | "log_1p" | "erf" | "gelu") {
            for level in available() {
                let found = function(level, &[0.0, -0.0]);
                assert_eq!(found[0].to_bits(), 0, "{name}, {level:?}");
                assert_eq!(found[1].to_bits(), 1 << 31, "{name}, {level:?}");
            }
        }
    }
}

/// No value lies beyond the limit that it approaches.
#[test]
fn bounded_functions_stay_in_their_bounds() {
    let x: Vec<f32> = (0..200_000).map(|i| i as f32 * 1e-4).collect();
    for (name, function, ..) in SINGLE {
        if matches!(*name, "tanh" | "sigmoid" | "erf" | "normal_cdf") {
            for level in available() {
                let found = function(level, &x);
                assert!(found.iter().all(|&y| y <= 1.0), "{name}, {level:?}");
                assert!(
                    found[190_000..].iter().all(|&y| y == 1.0),
                    "{name}, {level:?}"
                );
            }
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

/// `1 - erf(x)`; relative error below 1e-9.
fn erfc(x: f64) -> f64 {
    let far = x.abs().min(10.3);
    let value = exp(-far * far) * polynomial(&ERFC, (far - 2.5) / (far + 2.5));
    let value = if x < 0.0 { 2.0 - value } else { value };
    if x.is_nan() { x } else { value }
}

/// The error function; relative error below 1e-9.
fn erf(x: f64) -> f64 {
    let far = 1.0 - erfc(x.abs());
    let near = x.abs() * polynomial(&ERF, x * x);
    let value = if x.abs() < 1.0 { near } else { far };
    value.copysign(x)
}

#[test]
fn lanes_of_angles_are_single_angles() {
    #[derive(Clone, Copy)]
    struct Sines;

    impl Function for Sines {
        #[inline(always)]
        fn of<S: Simd>(self, s: S, x: S::F) -> S::F {
            of_angles(s, x, |(sin, cos)| sin - 0.5 * cos)
        }
    }

    let mut x: Vec<f32> = (0..200_u32)
        .map(|i| (i as f32 - 100.0) * 1.37_f32.powi(i as i32 % 40))
        .collect();
    // Large angles and what is no angle, each among small ones.
    for (at, special) in [
        (3, 1e30),
        (37, f32::NAN),
        (70, f32::INFINITY),
        (101, -2e6),
        (150, -0.0),
    ] {
        x[at] = special;
    }
    for level in available() {
        for (&x, found) in x.iter().zip(dispatch(level, Values(Sines, &x))) {
            let (sin, cos) = sin_cos(f64::from(x));
            let exact = (sin - 0.5 * cos) as f32;
            let same = found.to_bits() == exact.to_bits() || (found.is_nan() && exact.is_nan());
            assert!(same, "{level:?}, {x}: {found} instead of {exact}");
        }
    }
}
