//! Gradients of element-wise operations, from the incoming gradient and the forward argument or
//! result, in the order of TensorFlow's ops.
//!
//! One row per op: its function works on slices, its `KernelDef` in place where it may. Results are
//! within 2 ulp unless the row says otherwise. As in TensorFlow, the gradients of reciprocals and roots
//! are 0 where the incoming one is, whatever the result; those of rectified units are NaN where an
//! incoming NaN or infinity meets a slope of 0.

use crate::frame::zip::call::zip_kernels;
use crate::math;
use crate::simd::One;

/// Slope of the negative side of the scaled exponential unit times its scale.
const SELU_SCALE_ALPHA: f32 = 1.758_099_3;
/// Slope of the positive side of the scaled exponential unit.
const SELU_SCALE: f32 = 1.050_701;

zip_kernels! {
    forward &[(0, 0), (1, 0)];
    outputs outputs_of_one_shape;
    /// Of the exponential linear unit: incoming gradient, result.
    ELU_GRAD EluGrad elu_grad 1 {
        f32 F32 => |g, y| if y < 0.0 { (y + 1.0) * g } else { g };
    }
    /// Of the unit cut to 0 and 6: incoming gradient, argument or result.
    RELU6_GRAD Relu6Grad relu6_grad 1 {
        f32 F32 => |g, x| g * if x > 0.0 && x < 6.0 { 1.0 } else { 0.0 };
    }
    /// Of the rectified linear unit: incoming gradient, argument or result.
    RELU_GRAD ReluGrad relu_grad 1 {
        f32 F32 => |g, x| g * if x > 0.0 { 1.0 } else { 0.0 };
        f64 F64 => |g, x| g * if x > 0.0 { 1.0 } else { 0.0 };
    }
    /// Of the scaled exponential linear unit: incoming gradient, result.
    SELU_GRAD SeluGrad selu_grad 1 {
        f32 F32 => |g, y| if y < 0.0 { g * (y + SELU_SCALE_ALPHA) } else { g * SELU_SCALE };
    }
    /// Of `log(1 + exp(x))`: incoming gradient, argument; 4 ulp.
    SOFTPLUS_GRAD SoftplusGrad softplus_grad 4 {
        f32 F32 => |g, x| g * math::single::sigmoid(One, x);
    }
    /// Of `x / (1 + |x|)`: incoming gradient, argument.
    SOFTSIGN_GRAD SoftsignGrad softsign_grad 2 {
        f32 F32 => |g, x| g / ((1.0 + x.abs()) * (1.0 + x.abs()));
    }
}

zip_kernels! {
    forward &[(0, 0), (1, 0)];
    outputs outputs_of_one_count;
    /// Of the reciprocal: result, incoming gradient.
    INV_GRAD InvGrad inv_grad 1 { f32 F32 => |y, g| if g == 0.0 { 0.0 } else { -g * y * y }; }
    /// Of the reciprocal: result, incoming gradient.
    RECIPROCAL_GRAD ReciprocalGrad reciprocal_grad 1 { f32 F32 => |y, g| if g == 0.0 { 0.0 } else { -g * y * y }; }
    /// Of the reciprocal square root: result, incoming gradient.
    RSQRT_GRAD RsqrtGrad rsqrt_grad 1 { f32 F32 => |y, g| if g == 0.0 { 0.0 } else { (-0.5 * g) * y * (y * y) }; }
    /// Of the sigmoid: result, incoming gradient.
    SIGMOID_GRAD SigmoidGrad sigmoid_grad 1 { f32 F32 => |y, g| g * y * (1.0 - y); }
    /// Of the square root: result, incoming gradient.
    SQRT_GRAD SqrtGrad sqrt_grad 2 { f32 F32 => |y, g| if g == 0.0 { 0.0 } else { 0.5 * g / y }; }
    /// Of the hyperbolic tangent: result, incoming gradient.
    TANH_GRAD TanhGrad tanh_grad 1 { f32 F32 => |y, g| g * (1.0 - y * y); }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::map::Map;
    use crate::frame::zip::Zip;
    use crate::ops::elementwise::unary::{Elu, Selu, Sigmoid, Softplus, Softsign, Sqrt, Tanh};
    use crate::trial::{Tensor, run};

    /// The slope of a function by central difference.
    fn slope(op: impl Map<f32, Out = f32>, x: f32) -> f32 {
        let step = 1.0 / 128.0;
        (op.apply(x + step) - op.apply(x - step)) / (2.0 * step)
    }

    fn check(found: f32, expected: f32) {
        assert!((found - expected).abs() < 2e-3, "{found} {expected}");
    }

    #[test]
    fn gradients_are_slopes() {
        for x in [-2.5_f32, -0.7, 0.3, 1.9] {
            check(TanhGrad.apply(Tanh.apply(x), 1.0), slope(Tanh, x));
            check(SigmoidGrad.apply(Sigmoid.apply(x), 1.0), slope(Sigmoid, x));
            check(EluGrad.apply(1.0, Elu.apply(x)), slope(Elu, x));
            check(SeluGrad.apply(1.0, Selu.apply(x)), slope(Selu, x));
            check(SoftplusGrad.apply(1.0, x), slope(Softplus, x));
            check(SoftsignGrad.apply(1.0, x), slope(Softsign, x));
        }
        check(SqrtGrad.apply(Sqrt.apply(2.0_f32), 1.0), slope(Sqrt, 2.0));
        check(RsqrtGrad.apply(0.5_f32, 1.0), -0.5 * 0.125);
        check(InvGrad.apply(0.5_f32, 2.0), -0.5);
        assert_eq!(ReluGrad.apply(3.0_f32, 0.0), 0.0);
        assert_eq!(Relu6Grad.apply(3.0_f32, 6.0), 0.0);
        assert_eq!(Relu6Grad.apply(3.0_f32, 5.0), 3.0);
    }

    #[test]
    fn where_nothing_comes_in_nothing_goes_out() {
        for y in [
            0.0_f32,
            -0.0,
            0.5,
            f32::INFINITY,
            f32::NEG_INFINITY,
            f32::NAN,
        ] {
            for g in [0.0, -0.0] {
                assert_eq!(SqrtGrad.apply(y, g).to_bits(), 0);
                assert_eq!(RsqrtGrad.apply(y, g).to_bits(), 0);
                assert_eq!(InvGrad.apply(y, g).to_bits(), 0);
                assert_eq!(ReciprocalGrad.apply(y, g).to_bits(), 0);
            }
        }
        // An incoming NaN is not lost where the slope is 0.
        for g in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            assert!(ReluGrad.apply(g, -1.0).is_nan() && Relu6Grad.apply(g, 7.0).is_nan());
        }
    }

    #[test]
    fn shapes_that_differ_are_refused() {
        let of = |dims: &[usize]| Tensor::f32(dims, &vec![1.0; dims.iter().product()]);
        for forward in [false, true] {
            let dims =
                |def, a, b| run(def, &[], &[of(a), of(b)], forward).map(|out| out[0].dims.clone());
            for def in [&ELU_GRAD, &TANH_GRAD] {
                assert_eq!(dims(def, &[2, 3], &[2, 3]), Ok(vec![2, 3]));
                assert!(dims(def, &[2, 3], &[3]).is_err());
                assert!(dims(def, &[2, 1], &[2]).is_ok() == (def.op == "TanhGrad"));
            }
            // TensorFlow counts the elements only.
            assert_eq!(dims(&TANH_GRAD, &[6], &[2, 3]), Ok(vec![6]));
            assert_eq!(dims(&TANH_GRAD, &[2, 3], &[6]), Ok(vec![2, 3]));
            assert!(dims(&ELU_GRAD, &[6], &[2, 3]).is_err());
        }
    }
}
