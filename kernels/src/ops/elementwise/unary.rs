//! Element-wise operations of one argument whose result has the argument's type.
//!
//! One row per op: its function works on slices, its `KernelDef` in place where it may. Tolerances
//! against exact arithmetic are 1 ulp unless the row says otherwise.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::KernelDef;
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::frame::map::{Function, Map, map, map_in_vectors, outputs_like_first, run_map};
use crate::math::{self, single};
use crate::simd::Simd;

macro_rules! unary {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident $cost:literal {
            $([$single:ident $single_dtype:ident] => |$s:ident, $lanes:ident| $vector:expr;)?
            $($type:ident $dtype:ident => |$x:ident| $body:expr;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        $(
            impl Map<$type> for $op {
                type Out = $type;

                const COST: usize = $cost;

                #[inline(always)]
                fn apply(self, $x: $type) -> $type {
                    $body
                }
            }
        )*

        $(
            impl Function for $op {
                #[inline(always)]
                fn of<S: Simd>(self, $s: S, $lanes: S::F) -> S::F {
                    $vector
                }
            }

            map_in_vectors! { $op, $cost; }
        )?

        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
        pub fn $function<T: Element>(x: &[T], out: &mut [T], parallel: &dyn Parallel) -> Result<()>
        where
            $op: Map<T, Out = T>,
        {
            map($op, x, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: KernelDef = KernelDef {
            variants: variants!(["T": $($single_dtype)? $($dtype)*];),
            forward: &[(0, 0)],
            outputs: outputs_like_first,
            run: |call| by_type!(
                call.inputs.get(0, "x")?.dtype(),
                "x",
                T of [$($single)? $($type)*] => run_map::<$op, T>($op, call)
            ),
            ..KernelDef::of(stringify!($op))
        };
    )*};
}

/// A row's body that computes in `f64` and rounds once.
macro_rules! wide {
    ($function:ident $x:ident) => {
        math::$function(f64::from($x)) as f32
    };
}

/// Slope of the negative side of the scaled exponential unit times its scale.
const SELU_SCALE_ALPHA: f32 = 1.758_099_3;
/// Slope of the positive side of the scaled exponential unit.
const SELU_SCALE: f32 = 1.050_701;

unary! {
    /// Absolute value.
    ABS Abs abs 1 {
        f32 F32 => |x| x.abs();
        f64 F64 => |x| x.abs();
        i64 I64 => |x| x.wrapping_abs();
    }
    /// Arc cosine.
    ACOS Acos acos 16 { f32 F32 => |x| wide!(acos x); }
    /// Inverse hyperbolic cosine.
    ACOSH Acosh acosh 16 { f32 F32 => |x| wide!(acosh x); }
    /// Arc sine.
    ASIN Asin asin 16 { f32 F32 => |x| wide!(asin x); }
    /// Inverse hyperbolic sine.
    ASINH Asinh asinh 16 { f32 F32 => |x| wide!(asinh x); }
    /// Arc tangent.
    ATAN Atan atan 16 { f32 F32 => |x| wide!(atan x); }
    /// Inverse hyperbolic tangent.
    ATANH Atanh atanh 16 { f32 F32 => |x| wide!(atanh x); }
    /// Smallest integer not below.
    CEIL Ceil ceil 1 { f32 F32 => |x| math::ceil(x); }
    /// Cosine.
    COS Cos cos 16 { [f32 F32] => |s, x| math::of_angles(s, x, |(_, cos)| cos); }
    /// Hyperbolic cosine.
    COSH Cosh cosh 8 { f32 F32 => |x| wide!(cosh x); }
    /// `exp(x) - 1` for negative values, which approaches -1; others stay; 2 ulp.
    ELU Elu elu 4 { [f32 F32] => |s, x| s.select(s.lt(x, s.zero()), single::exp_m1(s, x), x); }
    /// Error function; 2 ulp.
    ERF Erf erf 8 { [f32 F32] => |s, x| single::erf(s, x); }
    /// One minus the error function; 4 ulp.
    ERFC Erfc erfc 8 { [f32 F32] => |s, x| single::erfc(s, x); }
    /// Exponential.
    EXP Exp exp 4 { [f32 F32] => |s, x| single::exp(s, x); }
    /// Exponential less one; 2 ulp.
    EXPM1 Expm1 expm1 4 { [f32 F32] => |s, x| single::exp_m1(s, x); }
    /// Largest integer not above.
    FLOOR Floor floor 1 { f32 F32 => |x| math::floor(x); }
    /// One divided by the value.
    INV Inv inv 2 { f32 F32 => |x| 1.0 / x; f64 F64 => |x| 1.0 / x; }
    /// Natural logarithm.
    LOG Log log 4 { [f32 F32] => |s, x| single::log(s, x); }
    /// Natural logarithm of one more; 2 ulp.
    LOG1P Log1p log1p 4 { [f32 F32] => |s, x| single::log_1p(s, x); }
    /// Negation.
    NEG Neg neg 1 {
        f32 F32 => |x| -x;
        f64 F64 => |x| -x;
        i64 I64 => |x| x.wrapping_neg();
    }
    /// One divided by the value.
    RECIPROCAL Reciprocal reciprocal 2 { f32 F32 => |x| 1.0 / x; f64 F64 => |x| 1.0 / x; }
    /// Zero for negative values; NaN stays.
    RELU Relu relu 1 {
        f32 F32 => |x| if x < 0.0 { 0.0 } else { x };
        f64 F64 => |x| if x < 0.0 { 0.0 } else { x };
        i64 I64 => |x| x.max(0);
    }
    /// The value cut to 0 and 6; NaN stays.
    RELU6 Relu6 relu6 1 {
        f32 F32 => |x| {
            let x = if x < 0.0 { 0.0 } else { x };
            if x > 6.0 { 6.0 } else { x }
        };
    }
    /// Nearest integer, halves to the even one.
    RINT Rint rint 1 { f32 F32 => |x| math::round_half_even(x); }
    /// Nearest integer, halves to the even one.
    ROUND Round round 1 { f32 F32 => |x| math::round_half_even(x); i64 I64 => |x| x; }
    /// One divided by the square root; 2 ulp.
    RSQRT Rsqrt rsqrt 2 { f32 F32 => |x| 1.0 / math::sqrt_f32(x); }
    /// Scaled exponential linear unit; 3 ulp.
    SELU Selu selu 4 {
        [f32 F32] => |s, x| {
            let below = s.mul(s.splat(SELU_SCALE_ALPHA), single::exp_m1(s, x));
            s.select(s.lt(x, s.zero()), below, s.mul(s.splat(SELU_SCALE), x))
        };
    }
    /// `1 / (1 + exp(-x))`; 3 ulp.
    SIGMOID Sigmoid sigmoid 4 { [f32 F32] => |s, x| single::sigmoid(s, x); }
    /// -1, 0 or 1 as the value is negative, zero or positive; NaN stays.
    SIGN Sign sign 1 {
        f32 F32 => |x| if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x };
        i64 I64 => |x| x.signum();
    }
    /// Sine.
    SIN Sin sin 16 { [f32 F32] => |s, x| math::of_angles(s, x, |(sin, _)| sin); }
    /// Hyperbolic sine.
    SINH Sinh sinh 8 { f32 F32 => |x| wide!(sinh x); }
    /// `log(1 + exp(x))`; 3 ulp.
    SOFTPLUS Softplus softplus 8 { [f32 F32] => |s, x| single::softplus(s, x); }
    /// `x / (1 + |x|)`; 2 ulp.
    SOFTSIGN Softsign softsign 2 { f32 F32 => |x| x / (1.0 + x.abs()); }
    /// Square root.
    SQRT Sqrt sqrt 2 { f32 F32 => |x| math::sqrt_f32(x); f64 F64 => |x| math::sqrt(x); }
    /// Square.
    SQUARE Square square 1 {
        f32 F32 => |x| x * x;
        f64 F64 => |x| x * x;
        i64 I64 => |x| x.wrapping_mul(x);
    }
    /// Tangent.
    TAN Tan tan 16 {
        f32 F32 => |x| {
            let (sin, cos) = math::sin_cos(f64::from(x));
            (sin / cos) as f32
        };
    }
    /// Hyperbolic tangent; 3 ulp.
    TANH Tanh tanh 4 { [f32 F32] => |s, x| single::tanh(s, x); }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::trial::{Tensor, run};

    fn one(op: impl Map<f32, Out = f32>, x: f32) -> f32 {
        let mut out = [0.0];
        map(op, &[x], &mut out, &Serial).unwrap();
        out[0]
    }

    #[test]
    fn nan_stays() {
        macro_rules! nan {
            ($($op:ident)*) => { $(assert!(one($op, f32::NAN).is_nan(), stringify!($op));)* };
        }
        nan!(Abs Acos Acosh Asin Asinh Atan Atanh Ceil Cos Cosh Elu Erf Erfc Exp Expm1 Floor Inv Log
            Log1p Neg Reciprocal Relu Relu6 Rint Round Rsqrt Selu Sigmoid Sign Sin Sinh Softplus
            Softsign Sqrt Square Tan Tanh);
    }

    #[test]
    fn values() {
        assert_eq!(one(Relu6, 7.5), 6.0);
        assert_eq!(one(Relu6, -1.0), 0.0);
        assert_eq!([2.5, 3.5, -0.5].map(|x| one(Round, x)), [2.0, 4.0, -0.0]);
        assert_eq!(one(Elu, -200.0), -1.0);
        assert_eq!(one(Selu, 1.0), 1.050_701);
        assert_eq!(one(Selu, -200.0), -1.758_099_3);
        assert_eq!(one(Softsign, -3.0), -0.75);
        assert_eq!(one(Rsqrt, 0.0), f32::INFINITY);
        assert_eq!(one(Sign, -3.0), -1.0);
        assert_eq!(one(Softplus, 100.0), 100.0);
        assert_eq!(one(Ceil, -0.5).to_bits(), (-0.0_f32).to_bits());
    }

    #[test]
    fn definitions_serve_integers_and_work_in_place() {
        let x = Tensor::i64(&[3], &[-2, 0, i64::MIN]);
        for forward in [false, true] {
            let out = run(&ABS, &[], std::slice::from_ref(&x), forward).unwrap();
            assert_eq!(out[0].to_i64(), [2, 0, i64::MIN]);
            let x = Tensor::f32(&[2, 2], &[-1.0, 2.0, -3.0, 4.0]);
            let out = run(&RELU, &[], &[x], forward).unwrap();
            assert_eq!(
                (out[0].to_f32(), &*out[0].dims),
                (vec![0.0, 2.0, 0.0, 4.0], &[2, 2][..])
            );
        }
        let wrong = Tensor::i32(&[1], &[1]);
        assert!(run(&EXP, &[], &[wrong], false).is_err());
    }
}
