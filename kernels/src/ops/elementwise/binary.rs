//! Element-wise operations of two arguments whose result has the arguments' type.
//!
//! One row per op: its function broadcasts over slices, its `KernelDef` works in place where it
//! may. Results are those of one rounding unless the row says otherwise; integers wrap.

use crate::frame::zip::call::zip_kernels;
use crate::math;

/// `body` unless `when`, which makes 0.
macro_rules! zero_if {
    ($when:expr, $body:expr) => {
        if $when { 0.0 } else { $body }
    };
}

zip_kernels! {
    forward &[(0, 0), (1, 0)];
    outputs outputs_broadcast;
    /// Sum.
    ADD Add add 1 {
        f32 F32 => |x, y| x + y;
        f64 F64 => |x, y| x + y;
        i64 I64 => |x, y| x.wrapping_add(y);
    }
    /// Sum.
    ADD_V2 AddV2 add_v2 1 {
        f32 F32 => |x, y| x + y;
        f64 F64 => |x, y| x + y;
        i64 I64 => |x, y| x.wrapping_add(y);
    }
    /// Angle of the point with these ordinate and abscissa; 1 ulp.
    ATAN2 Atan2 atan2 16 {
        f32 F32 => |x, y| math::atan2(f64::from(x), f64::from(y)) as f32;
    }
    /// Quotient, 0 where the divisor is 0.
    DIV_NO_NAN DivNoNan div_no_nan 2 {
        f32 F32 => |x, y| zero_if!(y == 0.0, x / y);
        f64 F64 => |x, y| zero_if!(y == 0.0, x / y);
    }
    /// The larger; NaN if one is.
    MAXIMUM Maximum maximum 1 {
        f32 F32 => |x, y| if x > y || x.is_nan() { x } else { y };
        f64 F64 => |x, y| if x > y || x.is_nan() { x } else { y };
        i64 I64 => |x, y| x.max(y);
    }
    /// The smaller; NaN if one is.
    MINIMUM Minimum minimum 1 {
        f32 F32 => |x, y| if x < y || x.is_nan() { x } else { y };
        f64 F64 => |x, y| if x < y || x.is_nan() { x } else { y };
        i64 I64 => |x, y| x.min(y);
    }
    /// Product.
    MUL Mul mul 1 {
        f32 F32 => |x, y| x * y;
        f64 F64 => |x, y| x * y;
        i64 I64 => |x, y| x.wrapping_mul(y);
    }
    /// Product, 0 where the second factor is 0.
    MUL_NO_NAN MulNoNan mul_no_nan 1 {
        f32 F32 => |x, y| zero_if!(y == 0.0, x * y);
        f64 F64 => |x, y| zero_if!(y == 0.0, x * y);
    }
    /// Quotient.
    REAL_DIV RealDiv real_div 2 {
        f32 F32 => |x, y| x / y;
        f64 F64 => |x, y| x / y;
    }
    /// Square of the difference.
    SQUARED_DIFFERENCE SquaredDifference squared_difference 1 {
        f32 F32 => |x, y| (x - y) * (x - y);
        f64 F64 => |x, y| (x - y) * (x - y);
        i64 I64 => |x, y| x.wrapping_sub(y).wrapping_mul(x.wrapping_sub(y));
    }
    /// Difference.
    SUB Sub sub 1 {
        f32 F32 => |x, y| x - y;
        f64 F64 => |x, y| x - y;
        i64 I64 => |x, y| x.wrapping_sub(y);
    }
    /// Quotient, 0 where the dividend is 0.
    XDIVY Xdivy xdivy 2 { f32 F32 => |x, y| zero_if!(x == 0.0, x / y); }
    /// `x * log(1 + y)`, 0 where `x` is 0; 1 ulp.
    XLOG1PY Xlog1py xlog1py 8 {
        f32 F32 => |x, y| {
            let value = f64::from(x) * math::log_1p(f64::from(y));
            zero_if!(x == 0.0, value as f32)
        };
    }
    /// `x * log(y)`, 0 where `x` is 0; 1 ulp.
    XLOGY Xlogy xlogy 8 {
        f32 F32 => |x, y| {
            let value = f64::from(x) * math::log(f64::from(y));
            zero_if!(x == 0.0, value as f32)
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::zip::Zip;
    use crate::trial::{Tensor, run};

    #[test]
    fn values() {
        let nan = f32::NAN;
        assert_eq!(DivNoNan.apply(3.0_f32, 0.0), 0.0);
        assert_eq!(MulNoNan.apply(f32::INFINITY, 0.0), 0.0);
        assert_eq!(Xdivy.apply(0.0_f32, 0.0), 0.0);
        assert_eq!(Xlogy.apply(0.0_f32, 0.0), 0.0);
        assert_eq!(Xlog1py.apply(0.0_f32, -1.0), 0.0);
        assert_eq!(SquaredDifference.apply(2.0_f32, 5.0), 9.0);
        assert!(Maximum.apply(nan, 1.0).is_nan() && Maximum.apply(1.0, nan).is_nan());
        assert!(Minimum.apply(nan, 1.0).is_nan() && Minimum.apply(1.0, nan).is_nan());
        assert_eq!(AddV2.apply(i64::MAX, 1), i64::MIN);
    }

    #[test]
    fn definitions_work_in_place_of_either_input() {
        let a = Tensor::f32(&[2, 2], &[1.0, 2.0, 3.0, 4.0]);
        let b = Tensor::f32(&[2], &[10.0, 20.0]);
        for forward in [false, true] {
            let out = run(&SUB, &[], &[a.clone(), b.clone()], forward).unwrap();
            assert_eq!(out[0].to_f32(), [-9.0, -18.0, -7.0, -16.0]);
            let out = run(&SUB, &[], &[b.clone(), a.clone()], forward).unwrap();
            assert_eq!(out[0].to_f32(), [9.0, 18.0, 7.0, 16.0]);
        }
        let c = Tensor::f32(&[3], &[0.0; 3]);
        assert!(run(&ADD_V2, &[], &[a, c], false).is_err());
    }
}
