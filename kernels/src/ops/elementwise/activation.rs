//! Activation functions that TensorFlow has no op of its own for, and their gradients.
//!
//! Each is a type for [`map`](crate::frame::map::map); [`Gradient`] of it is one for
//! [`zip`](crate::frame::zip::zip) over the incoming gradient and the argument. Results are within 5 ulp
//! of exact arithmetic; where terms cancel, within 3e-7 of it, relative to the larger of 1 and the
//! largest term.

pub mod in_place;

use crate::frame::map::{Function, Map, map_in_vectors};
use crate::frame::zip::Zip;
use crate::math::single as math;
use crate::math::sqrt_f32;
use crate::simd::{One, Simd};

/// The gradient of an activation: `gradient * slope(x)`.
#[derive(Clone, Copy, Debug)]
pub struct Gradient<A>(pub A);

/// The [`Zip`] of an activation's gradient.
macro_rules! gradient {
    ($name:ident { $($field:ident)* } $cost:literal |$x:ident| $slope:expr) => {
        impl Zip<f32> for Gradient<$name> {
            type Out = f32;

            const COST: usize = $cost;

            #[inline(always)]
            fn apply(self, gradient: f32, x: f32) -> f32 {
                let $x = x;
                $(
                    #[allow(unused_variables)]
                    let $field = self.0.$field;
                )*
                gradient * ($slope)
            }
        }
    };
}

/// Activations in steps of one element.
macro_rules! activations {
    ($(
        $(#[$doc:meta])*
        $name:ident { $($(#[$field_doc:meta])* $field:ident,)* } $cost:literal
            |$x:ident| $value:expr, $slope:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: f32,)*
        }

        impl Map<f32> for $name {
            type Out = f32;

            const COST: usize = $cost;

            #[inline(always)]
            fn apply(self, x: f32) -> f32 {
                let $x = x;
                $(let $field = self.$field;)*
                $value
            }
        }

        gradient! { $name { $($field)* } $cost |$x| $slope }
    )*};
}

/// Activations in vectors.
macro_rules! vector_activations {
    ($(
        $(#[$doc:meta])*
        $name:ident {} $cost:literal |$s:ident, $lanes:ident| $value:expr, |$x:ident| $slope:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {}

        impl Function for $name {
            #[inline(always)]
            fn of<S: Simd>(self, $s: S, $lanes: S::F) -> S::F {
                $value
            }
        }

        map_in_vectors! { $name, $cost; }
        gradient! { $name {} $cost |$x| $slope }
    )*};
}

/// `sqrt(2 / pi)`.
const SQRT_2_OVER_PI: f32 = 0.797_884_6;
/// The cubic term of the tanh approximation.
const GELU_CUBIC: f32 = 0.044_715;

/// Twice the argument of the hyperbolic tangent in the approximation of GELU.
#[inline(always)]
fn gelu_argument<S: Simd>(s: S, x: S::F) -> S::F {
    let factor = s.splat(2.0 * SQRT_2_OVER_PI);
    let cubic = s.mul(s.splat(GELU_CUBIC), s.mul(x, x));
    s.mul(factor, s.mul_add(cubic, x, x))
}

/// The sigmoid and its slope; both terms of the slope are exact next to its zeros.
#[inline(always)]
fn sigmoid_and_slope(x: f32) -> (f32, f32) {
    let e = math::exp(One, -x.abs());
    let small = 1.0 / (1.0 + e);
    let sigmoid = if x < 0.0 { e * small } else { small };
    (sigmoid, e * small * small)
}

/// `tanh(softplus(x))` and its slope for `e = exp(x)`.
#[inline(always)]
fn mish_parts(x: f32) -> (f32, f32) {
    // The tangent is 1 from there on, and its slope 0.
    let e = math::exp(One, if x > 20.0 { 20.0 } else { x });
    let w = e * (e + 2.0);
    let factor = 1.0 / (w + 2.0);
    let slope = 4.0 * (e * factor) * ((1.0 + e) * factor);
    (w * factor, if x > 20.0 { 0.0 } else { slope })
}

/// `1` where the condition holds.
#[inline(always)]
fn indicator(condition: bool) -> f32 {
    if condition { 1.0 } else { 0.0 }
}

/// `x / 6 + 1 / 2`, cut to 0 and 1; NaN stays.
#[inline(always)]
fn hard_sigmoid<S: Simd>(s: S, x: S::F) -> S::F {
    let x = s.mul(s.add(x, s.splat(3.0)), s.splat(1.0 / 6.0));
    s.min(s.splat(1.0), s.max(s.zero(), x))
}

/// `x` cut to a range; NaN stays.
#[inline(always)]
fn cut(x: f32, low: f32, high: f32) -> f32 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

activations! {
    /// `x` above 0, `alpha * (exp(x / alpha) - 1)` elsewhere.
    Celu {
        /// Limit of the negative side.
        alpha,
    } 4 |x|
        if x > 0.0 { x } else { alpha * math::exp_m1(One, x / alpha) },
        if x > 0.0 { 1.0 } else { math::exp(One, x / alpha) };
    /// `x` above 0, `alpha * (exp(x) - 1)` elsewhere.
    Elu {
        /// Limit of the negative side.
        alpha,
    } 4 |x|
        if x > 0.0 { x } else { alpha * math::exp_m1(One, x) },
        if x > 0.0 { 1.0 } else { alpha * math::exp(One, x) };
    /// `x` outside `-threshold..=threshold`, 0 inside and for NaN, as a selection by `abs(x) >
    /// threshold` has it.
    HardShrink {
        /// Half width of the gap.
        threshold,
    } 1 |x|
        if x.abs() > threshold { x } else { 0.0 },
        indicator(x.abs() > threshold);
    /// `x` cut to -1 and 1.
    HardTanh {} 1 |x|
        cut(x, -1.0, 1.0),
        indicator(x.abs() <= 1.0);
    /// `x * tanh(log(1 + exp(x)))`.
    Mish {} 8 |x|
        x * mish_parts(x).0,
        {
            let (t, slope) = mish_parts(x);
            t + x * slope
        };
    /// `x` from `threshold` on, cut to `max_value`; `negative_slope * (x - threshold)` below.
    Relu {
        /// Slope below the threshold.
        negative_slope,
        /// Largest result; infinity for none.
        max_value,
        /// Where the positive side starts.
        threshold,
    } 2 |x|
        if x < threshold {
            negative_slope * (x - threshold)
        } else if x > max_value {
            max_value
        } else {
            x
        },
        if x < threshold { negative_slope } else { indicator(x < max_value) };
    /// `x` moved towards 0 by `threshold`, 0 where that would cross.
    SoftShrink {
        /// Half width of the gap.
        threshold,
    } 2 |x|
        if x > threshold {
            x - threshold
        } else if x < -threshold {
            x + threshold
        } else {
            x * 0.0
        },
        indicator(x.abs() > threshold);
    /// 0 up to -1, `x` from 1 on, and a parabola between.
    SparsePlus {} 2 |x|
        if x <= -1.0 { 0.0 } else if x < 1.0 { 0.25 * (x + 1.0) * (x + 1.0) } else { x },
        if x <= -1.0 { 0.0 } else if x < 1.0 { 0.5 * (x + 1.0) } else { 1.0 };
    /// `(x + sqrt(x^2 + b)) / 2`.
    SquarePlus {
        /// Smoothness.
        b,
    } 4 |x|
        0.5 * (x + sqrt_f32(x * x + b)),
        0.5 * (1.0 + x / sqrt_f32(x * x + b));
    /// `x` above `threshold`, `default` elsewhere.
    Threshold {
        /// Where the identity starts.
        threshold,
        /// The value below.
        default,
    } 1 |x|
        if x > threshold { x } else { default },
        indicator(x > threshold);
}

vector_activations! {
    /// `x` times the standard normal distribution function of `x`.
    Gelu {} 8 |s, x|
        math::gelu(s, x),
        |x| math::normal_cdf(One, x) + x * math::normal_density(One, x);
    /// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, the approximation of [`Gelu`].
    GeluTanh {} 8 |s, x|
        s.mul(x, math::sigmoid(s, gelu_argument(s, x))),
        |x| {
            let (sigmoid, slope) = sigmoid_and_slope(gelu_argument(One, x));
            let inner = 2.0 * SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBIC * x * x);
            sigmoid + x * slope * inner
        };
    /// `x / 6 + 1 / 2`, cut to 0 and 1.
    HardSigmoid {} 2 |s, x|
        hard_sigmoid(s, x),
        |x| indicator(x > -3.0 && x < 3.0) / 6.0;
    /// `x` times [`HardSigmoid`].
    HardSilu {} 2 |s, x|
        s.mul(x, hard_sigmoid(s, x)),
        |x| hard_sigmoid(One, x) + x * indicator(x > -3.0 && x < 3.0) / 6.0;
    /// `-log(1 + exp(-x))`.
    LogSigmoid {} 8 |s, x|
        s.neg(math::softplus(s, s.neg(x))),
        |x| math::sigmoid(One, -x);
    /// `x / (1 + exp(-x))`.
    Silu {} 4 |s, x|
        s.mul(x, math::sigmoid(s, x)),
        |x| {
            let (sigmoid, slope) = sigmoid_and_slope(x);
            sigmoid + x * slope
        };
    /// `x - tanh(x)`.
    TanhShrink {} 4 |s, x|
        s.sub(x, math::tanh(s, x)),
        |x| {
            let tangent = math::tanh(One, x);
            tangent * tangent
        };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check<A: Map<f32, Out = f32>>(activation: A, expected: [f32; 3])
    where
        Gradient<A>: Zip<f32, Out = f32>,
    {
        for (x, expected) in [-2.0_f32, 0.25, 4.5].into_iter().zip(expected) {
            let found = activation.apply(x);
            assert!(
                (found - expected).abs() <= 1e-6 * expected.abs().max(1.0),
                "{found} {expected}"
            );
            let step = 1.0 / 256.0;
            let slope = (activation.apply(x + step) - activation.apply(x - step)) / (2.0 * step);
            let found = Gradient(activation).apply(2.0, x);
            assert!((found - 2.0 * slope).abs() < 1e-3, "{found} {slope}");
        }
        assert!(activation.apply(f32::NAN).is_nan());
    }

    /// Expected values computed in double precision from the definitions.
    #[test]
    fn values_and_slopes() {
        check(Gelu {}, [-0.045_500_26, 0.149_676_6, 4.499_985]);
        check(GeluTanh {}, [-0.045_402_31, 0.149_675_4, 4.499_995]);
        check(Silu {}, [-0.238_405_8, 0.140_544_1, 4.450_559]);
        check(Mish {}, [-0.252_501_5, 0.169_572_4, 4.498_914]);
        check(HardSigmoid {}, [1.0 / 6.0, 0.541_666_7, 1.0]);
        check(HardSilu {}, [-1.0 / 3.0, 0.135_416_67, 4.5]);
        check(LogSigmoid {}, [-2.126_928, -0.575_939_4, -0.011_047_74]);
        check(Elu { alpha: 2.0 }, [-1.729_329, 0.25, 4.5]);
        check(Celu { alpha: 2.0 }, [-1.264_241, 0.25, 4.5]);
        check(TanhShrink {}, [-1.035_972, 0.005_081_338, 3.500_247]);
        check(
            SquarePlus { b: 4.0 },
            [0.414_213_57, 1.132_782_2, 4.712_214_3],
        );
    }

    /// Along the axis: values against double precision, slopes against central differences of it.
    #[test]
    fn smooth_ones_in_double_precision() {
        fn check<A: Map<f32, Out = f32>>(name: &str, activation: A, exact: fn(f64) -> f64)
        where
            Gradient<A>: Zip<f32, Out = f32>,
        {
            for i in -4000..=4000 {
                let x = i as f32 / 128.0;
                let expected = exact(f64::from(x));
                let error = (f64::from(activation.apply(x)) - expected).abs();
                let limit = 5.0 * f64::from(f32::EPSILON) * expected.abs();
                assert!(error <= limit.max(3e-7), "{name} at {x}: {error:e}");
                let step = 1e-5;
                let slope = exact(f64::from(x) + step) - exact(f64::from(x) - step);
                let slope = slope / (2.0 * step);
                let found = f64::from(Gradient(activation).apply(1.0, x));
                let near_kink = x.abs() < 1e-4;
                assert!(
                    near_kink || (found - slope).abs() < 1e-6,
                    "{name} at {x}: {found}"
                );
            }
        }
        check("silu", Silu {}, |x| x / (1.0 + (-x).exp()));
        check("gelu_tanh", GeluTanh {}, |x| {
            0.5 * x * (1.0 + (0.797_884_560_802_865_4 * (x + 0.044_715 * x * x * x)).tanh())
        });
        check("mish", Mish {}, |x| x * x.exp().ln_1p().tanh());
        check("log_sigmoid", LogSigmoid {}, |x| -(-x).exp().ln_1p());
        check("celu", Celu { alpha: 2.0 }, |x| {
            if x > 0.0 { x } else { 2.0 * (x / 2.0).exp_m1() }
        });
        check("elu", Elu { alpha: 0.5 }, |x| {
            if x > 0.0 { x } else { 0.5 * x.exp_m1() }
        });
        check("tanh_shrink", TanhShrink {}, |x| x - x.tanh());
        check("gelu", Gelu {}, |x| x * crate::math::tests::normal_cdf(x));
    }

    #[test]
    fn pieces() {
        let relu = Relu {
            negative_slope: 0.5,
            max_value: 6.0,
            threshold: 1.0,
        };
        assert_eq!(
            [-1.0, 1.0, 3.0, 7.0].map(|x| relu.apply(x)),
            [-1.0, 1.0, 3.0, 6.0]
        );
        let shrink = SoftShrink { threshold: 0.5 };
        assert_eq!([-1.0, 0.25, 2.0].map(|x| shrink.apply(x)), [-0.5, 0.0, 1.5]);
        let hard = HardShrink { threshold: 0.5 };
        assert_eq!(
            [-1.0, 0.25, 2.0, f32::NAN].map(|x| hard.apply(x)),
            [-1.0, 0.0, 2.0, 0.0]
        );
        assert_eq!(
            [-2.0, 0.5, 2.0].map(|x| HardTanh {}.apply(x)),
            [-1.0, 0.5, 1.0]
        );
        assert_eq!(
            [-2.0, 0.0, 2.0].map(|x| SparsePlus {}.apply(x)),
            [0.0, 0.25, 2.0]
        );
        let threshold = Threshold {
            threshold: 1.0,
            default: -9.0,
        };
        assert_eq!([1.0, 1.5].map(|x| threshold.apply(x)), [-9.0, 1.5]);
    }
}
