//! Activation functions that TensorFlow has no op of its own for, and their gradients.
//!
//! Each is a type for [`map`](crate::map::map); [`Gradient`] of it is one for
//! [`zip`](crate::zip::zip) over the incoming gradient and the argument. Results are within 1 ulp
//! of exact arithmetic, or within 1e-9 of it next to a zero other than the one at 0.

use crate::map::Map;
use crate::math;
use crate::zip::Zip;

/// The gradient of an activation: `gradient * slope(x)`.
#[derive(Clone, Copy, Debug)]
pub struct Gradient<A>(pub A);

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
                let $x = f64::from(x);
                $(let $field = f64::from(self.$field);)*
                ($value) as f32
            }
        }

        impl Zip<f32> for Gradient<$name> {
            type Out = f32;

            const COST: usize = $cost;

            #[inline(always)]
            fn apply(self, gradient: f32, x: f32) -> f32 {
                let $x = f64::from(x);
                $(
                    #[allow(unused_variables)]
                    let $field = f64::from(self.0.$field);
                )*
                (f64::from(gradient) * ($slope)) as f32
            }
        }
    )*};
}

/// `sqrt(2 / pi)`.
const SQRT_2_OVER_PI: f64 = 0.797_884_560_802_865_4;
/// `1 / sqrt(2 pi)`.
const GAUSS: f64 = 0.398_942_280_401_432_7;
/// The cubic term of the tanh approximation.
const GELU_CUBIC: f64 = 0.044_715;

/// The standard normal distribution function.
#[inline(always)]
fn normal_cdf(x: f64) -> f64 {
    0.5 * math::erfc(-x * core::f64::consts::FRAC_1_SQRT_2)
}

/// Twice the argument of the hyperbolic tangent in the approximation of GELU.
#[inline(always)]
fn gelu_argument(x: f64) -> f64 {
    2.0 * SQRT_2_OVER_PI * (x + GELU_CUBIC * x * x * x)
}

/// `1` where the condition holds.
#[inline(always)]
fn indicator(condition: bool) -> f64 {
    if condition { 1.0 } else { 0.0 }
}

/// `x / 6 + 1 / 2`, cut to 0 and 1.
#[inline(always)]
fn hard_sigmoid(x: f64) -> f64 {
    cut(x / 6.0 + 0.5, 0.0, 1.0)
}

/// `x` cut to a range; NaN stays.
#[inline(always)]
fn cut(x: f64, low: f64, high: f64) -> f64 {
    let x = if x < low { low } else { x };
    if x > high { high } else { x }
}

activations! {
    /// `x` above 0, `alpha * (exp(x / alpha) - 1)` elsewhere.
    Celu {
        /// Limit of the negative side.
        alpha,
    } 8 |x|
        if x > 0.0 { x } else { alpha * math::exp_m1(x / alpha) },
        if x > 0.0 { 1.0 } else { math::exp(x / alpha) };
    /// `x` above 0, `alpha * (exp(x) - 1)` elsewhere.
    Elu {
        /// Limit of the negative side.
        alpha,
    } 8 |x|
        if x > 0.0 { x } else { alpha * math::exp_m1(x) },
        if x > 0.0 { 1.0 } else { alpha * math::exp(x) };
    /// `x` times the standard normal distribution function of `x`.
    Gelu {} 16 |x|
        x * normal_cdf(x),
        normal_cdf(x) + x * GAUSS * math::exp(-0.5 * x * x);
    /// `0.5 x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3)))`, the approximation of [`Gelu`].
    GeluTanh {} 16 |x|
        x * math::sigmoid(gelu_argument(x)),
        {
            let s = math::sigmoid(gelu_argument(x));
            let inner = 2.0 * SQRT_2_OVER_PI * (1.0 + 3.0 * GELU_CUBIC * x * x);
            s + x * s * (1.0 - s) * inner
        };
    /// `x` outside `-threshold..=threshold`, 0 inside.
    HardShrink {
        /// Half width of the gap.
        threshold,
    } 1 |x|
        if x.abs() <= threshold { 0.0 } else { x },
        indicator(x.abs() > threshold);
    /// `x / 6 + 1 / 2`, cut to 0 and 1.
    HardSigmoid {} 2 |x|
        hard_sigmoid(x),
        indicator(x > -3.0 && x < 3.0) / 6.0;
    /// `x` times [`HardSigmoid`].
    HardSilu {} 2 |x|
        x * hard_sigmoid(x),
        hard_sigmoid(x) + x * indicator(x > -3.0 && x < 3.0) / 6.0;
    /// `x` cut to -1 and 1.
    HardTanh {} 1 |x|
        cut(x, -1.0, 1.0),
        indicator(x.abs() <= 1.0);
    /// `-log(1 + exp(-x))`.
    LogSigmoid {} 16 |x|
        -math::softplus(-x),
        math::sigmoid(-x);
    /// `x * tanh(log(1 + exp(x)))`.
    Mish {} 32 |x|
        x * math::tanh(math::softplus(x)),
        {
            let t = math::tanh(math::softplus(x));
            t + x * (1.0 - t * t) * math::sigmoid(x)
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
    /// `x / (1 + exp(-x))`.
    Silu {} 8 |x|
        x * math::sigmoid(x),
        {
            let s = math::sigmoid(x);
            s * (1.0 + x * (1.0 - s))
        };
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
        0.5 * (x + math::sqrt(x * x + b)),
        0.5 * (1.0 + x / math::sqrt(x * x + b));
    /// `x - tanh(x)`.
    TanhShrink {} 8 |x|
        x - math::tanh(x),
        {
            let t = math::tanh(x);
            t * t
        };
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
        assert_eq!([-1.0, 0.25, 2.0].map(|x| hard.apply(x)), [-1.0, 0.0, 2.0]);
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
