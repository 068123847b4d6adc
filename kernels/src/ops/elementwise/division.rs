//! Element-wise division, remainder and power, which integers can refuse.
//!
//! One row per op. Division of integers by 0 and negative powers of integers are errors; otherwise
//! integers wrap.

use crate::base::error::{Error, Result};
use crate::frame::zip::call::zip_kernels;
use crate::math;

/// Accepts divisors that are not 0.
pub(crate) fn not_zero<T: Default + PartialEq>(divisors: &[T]) -> Result<()> {
    if divisors.contains(&T::default()) {
        return Err(Error::Value {
            argument: "y",
            expected: "no zero: integer division by zero",
        });
    }
    Ok(())
}

/// Accepts exponents that are not negative.
pub(crate) fn not_negative<T: Default + PartialOrd>(exponents: &[T]) -> Result<()> {
    if exponents.iter().any(|exponent| *exponent < T::default()) {
        return Err(Error::Value {
            argument: "y",
            expected: "no negative value: integers have no negative integer powers",
        });
    }
    Ok(())
}

/// The remainder that has the divisor's sign.
macro_rules! floor_remainder {
    ($x:ident, $y:ident) => {{
        let rest = $x % $y;
        if rest != 0.0 && (rest < 0.0) != ($y < 0.0) {
            rest + $y
        } else {
            rest
        }
    }};
}

/// Functions of two integers of a type.
macro_rules! whole {
    ($($type:ident $quotient:ident $rest:ident $power:ident;)*) => {$(
        /// The quotient rounded down.
        #[inline(always)]
        pub(crate) fn $quotient(x: $type, y: $type) -> $type {
            if y == 0 {
                return 0;
            }
            let quotient = x.wrapping_div(y);
            if x.wrapping_rem(y) != 0 && (x < 0) != (y < 0) {
                quotient - 1
            } else {
                quotient
            }
        }

        /// The remainder that has the divisor's sign.
        #[inline(always)]
        pub(crate) fn $rest(x: $type, y: $type) -> $type {
            if y == 0 {
                return 0;
            }
            let rest = x.wrapping_rem(y);
            if rest != 0 && (rest < 0) != (y < 0) {
                rest + y
            } else {
                rest
            }
        }

        /// `x` to the power of `y`, of which the low bits stay.
        #[inline(always)]
        pub(crate) fn $power(mut x: $type, mut y: $type) -> $type {
            let mut product = 1;
            while y > 0 {
                if y & 1 == 1 {
                    product = x.wrapping_mul(product);
                }
                x = x.wrapping_mul(x);
                y >>= 1;
            }
            product
        }
    )*};
}

whole! {
    i32 floor_quotient_i32 floor_rest_i32 power_i32;
    i64 floor_quotient floor_rest power;
}

zip_kernels! {
    forward &[];
    outputs outputs_broadcast;
    /// Quotient; of integers, rounded towards 0.
    DIV Div div 2 {
        f32 F32 => |x, y| x / y;
        f64 F64 => |x, y| x / y;
        i64 I64 if not_zero => |x, y| if y == 0 { 0 } else { x.wrapping_div(y) };
    }
    /// Quotient rounded down.
    FLOOR_DIV FloorDiv floor_div 2 {
        f32 F32 => |x, y| math::floor(x / y);
        i64 I64 if not_zero => |x, y| floor_quotient(x, y);
    }
    /// Remainder that has the divisor's sign.
    FLOOR_MOD FloorMod floor_mod 8 {
        f32 F32 => |x, y| floor_remainder!(x, y);
        f64 F64 => |x, y| floor_remainder!(x, y);
        i64 I64 if not_zero => |x, y| floor_rest(x, y);
    }
    /// Remainder that has the dividend's sign.
    MOD Mod modulo 8 {
        f32 F32 => |x, y| x % y;
        f64 F64 => |x, y| x % y;
        i64 I64 if not_zero => |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) };
    }
    /// `x` to the power of `y`; 1 ulp.
    POW Pow pow 16 {
        f32 F32 => |x, y| math::pow(f64::from(x), f64::from(y)) as f32;
        i64 I64 if not_negative => |x, y| power(x, y);
    }
    /// Quotient of integers, rounded towards 0.
    TRUNCATE_DIV TruncateDiv truncate_div 2 {
        i64 I64 if not_zero => |x, y| if y == 0 { 0 } else { x.wrapping_div(y) };
    }
    /// Remainder that has the dividend's sign.
    TRUNCATE_MOD TruncateMod truncate_mod 8 {
        f32 F32 => |x, y| x % y;
        f64 F64 => |x, y| x % y;
        i64 I64 if not_zero => |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::zip::Zip;
    use crate::trial::{Tensor, run};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floor_division_recovers_the_dividend(x: i64, y: i64) {
            prop_assume!(y != 0);
            let (quotient, rest) = (FloorDiv.apply(x, y), FloorMod.apply(x, y));
            prop_assert_eq!(quotient.wrapping_mul(y).wrapping_add(rest), x);
            prop_assert!(rest == 0 || (rest < 0) == (y < 0));
            prop_assert!(rest.unsigned_abs() < y.unsigned_abs());
        }

        #[test]
        fn integer_powers_wrap(x: i64, y in 0_u32..70) {
            prop_assert_eq!(Pow.apply(x, i64::from(y)), x.wrapping_pow(y));
            let x = x as i32;
            prop_assert_eq!(Pow.apply(x, y as i32), x.wrapping_pow(y));
        }
    }

    #[test]
    fn what_integers_refuse_is_an_error() {
        let x = Tensor::i64(&[2], &[7, 8]);
        for def in [
            &DIV,
            &FLOOR_DIV,
            &FLOOR_MOD,
            &MOD,
            &TRUNCATE_DIV,
            &TRUNCATE_MOD,
        ] {
            let zero = Tensor::i64(&[2], &[1, 0]);
            assert!(
                run(def, &[], &[x.clone(), zero], false).is_err(),
                "{}",
                def.op
            );
            let fine = Tensor::i64(&[2], &[2, -3]);
            assert!(
                run(def, &[], &[x.clone(), fine], false).is_ok(),
                "{}",
                def.op
            );
        }
        assert!(run(&POW, &[], &[x.clone(), Tensor::i64(&[1], &[-1])], false).is_err());
        assert_eq!(FloorMod.apply(-7.0_f32, 3.0), 2.0);
        assert_eq!(FloorDiv.apply(-7.0_f32, 2.0), -4.0);
    }
}
