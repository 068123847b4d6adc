//! Element-wise operations on `i32` that TensorFlow keeps in host memory, and converted models not.

use crate::base::error::Result;
use crate::frame::map::Map;
use crate::frame::zip::Zip;
use crate::ops::elementwise::binary::{Add, AddV2, Maximum, Minimum, Mul, SquaredDifference, Sub};
use crate::ops::elementwise::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use crate::ops::elementwise::division::{Div, FloorDiv, FloorMod, Pow, TruncateMod};
use crate::ops::elementwise::division::{
    floor_quotient_i32, floor_rest_i32, not_negative, not_zero, power_i32,
};
use crate::ops::elementwise::unary::{Abs, Neg, Relu, Sign, Square};

macro_rules! zips {
    ($($op:ident $out:ident $(if $check:ident)? |$x:ident, $y:ident| $body:expr;)*) => {$(
        impl Zip<i32> for $op {
            type Out = $out;

            #[inline(always)]
            fn apply(self, $x: i32, $y: i32) -> $out {
                $body
            }
            $(
                #[inline(always)]
                fn accept(second: &[i32]) -> Result<()> {
                    $check(second)
                }
            )?
        }
    )*};
}

zips! {
    Add i32 |x, y| x.wrapping_add(y);
    AddV2 i32 |x, y| x.wrapping_add(y);
    Div i32 if not_zero |x, y| if y == 0 { 0 } else { x.wrapping_div(y) };
    FloorDiv i32 if not_zero |x, y| floor_quotient_i32(x, y);
    FloorMod i32 if not_zero |x, y| floor_rest_i32(x, y);
    Maximum i32 |x, y| x.max(y);
    Minimum i32 |x, y| x.min(y);
    Mul i32 |x, y| x.wrapping_mul(y);
    Pow i32 if not_negative |x, y| power_i32(x, y);
    SquaredDifference i32 |x, y| x.wrapping_sub(y).wrapping_mul(x.wrapping_sub(y));
    Sub i32 |x, y| x.wrapping_sub(y);
    Equal u8 |x, y| u8::from(x == y);
    Greater u8 |x, y| u8::from(x > y);
    GreaterEqual u8 |x, y| u8::from(x >= y);
    Less u8 |x, y| u8::from(x < y);
    LessEqual u8 |x, y| u8::from(x <= y);
    NotEqual u8 |x, y| u8::from(x != y);
    TruncateMod i32 if not_zero |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) };
}

macro_rules! maps {
    ($($op:ident |$x:ident| $body:expr;)*) => {$(
        impl Map<i32> for $op {
            type Out = i32;

            #[inline(always)]
            fn apply(self, $x: i32) -> i32 {
                $body
            }
        }
    )*};
}

maps! {
    Abs |x| x.wrapping_abs();
    Neg |x| x.wrapping_neg();
    Relu |x| x.max(0);
    Sign |x| x.signum();
    Square |x| x.wrapping_mul(x);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::Error;
    use crate::base::parallel::Serial;
    use crate::base::shape::Shape;
    use crate::frame::zip::{zip, zip_in_place};

    #[test]
    fn values() {
        assert_eq!(Zip::<i32>::apply(Add, i32::MAX, 1), i32::MIN);
        assert_eq!(Zip::<i32>::apply(SquaredDifference, 2, 5), 9);
        assert_eq!(Zip::<i32>::apply(Less, -1, 0), 1);
        assert_eq!(Zip::<i32>::apply(NotEqual, 4, 4), 0);
        for (x, y) in [
            (7, 2),
            (-7, 2),
            (7, -2),
            (-7, -2),
            (6, 3),
            (i32::MIN, -1),
            (5, 0),
        ] {
            let wide = |op: fn(i64, i64) -> i64| op(i64::from(x), i64::from(y)) as i32;
            let cases = [
                (Div.apply(x, y), wide(|x, y| Div.apply(x, y))),
                (FloorDiv.apply(x, y), wide(|x, y| FloorDiv.apply(x, y))),
                (FloorMod.apply(x, y), wide(|x, y| FloorMod.apply(x, y))),
                (
                    TruncateMod.apply(x, y),
                    wide(|x, y| TruncateMod.apply(x, y)),
                ),
            ];
            for (found, expected) in cases {
                assert_eq!(found, expected, "{x} and {y}");
            }
        }
        for (x, y, power) in [
            (-2, 3, -8),
            (0, 0, 1),
            (2, 31, i32::MIN),
            (3, 40, 689_956_897),
        ] {
            assert_eq!(Zip::<i32>::apply(Pow, x, y), power);
        }
        assert_eq!(Map::<i32>::apply(Abs, i32::MIN), i32::MIN);
        assert_eq!([-3, 0, 3].map(|x| Map::<i32>::apply(Sign, x)), [-1, 0, 1]);
    }

    #[test]
    fn what_has_no_result_is_an_error() {
        fn refused<O: Zip<i32, Out = i32>>(op: O, second: i32) {
            let (shape, one) = (Shape::new(&[3]).unwrap(), Shape::new(&[1]).unwrap());
            let none = Shape::new(&[0]).unwrap();
            let (x, y, mut out) = ([7, 8, 9], [2, second, 3], [5; 3]);
            let found = [
                zip(op, (&x, &shape), (&y, &shape), &mut out, &Serial),
                zip_in_place::<_, _, true>(op, (&mut out, &shape), (&[second], &one), &Serial),
                zip_in_place::<_, _, false>(op, (&mut [second], &one), (&[4], &one), &Serial),
            ];
            for error in found {
                assert!(matches!(error, Err(Error::Value { argument: "y", .. })));
            }
            assert_eq!(out, [5; 3]);
            zip(op, (&x, &shape), (&[2; 3], &shape), &mut out, &Serial).unwrap();
            let mut values = [second; 3];
            let twos = (&[2_i32; 3][..], &shape);
            zip_in_place::<_, _, true>(op, (&mut values, &shape), twos, &Serial).unwrap();
            zip(op, (&[], &none), (&[second], &one), &mut [], &Serial).unwrap();
        }
        refused(Div, 0);
        refused(FloorDiv, 0);
        refused(FloorMod, 0);
        refused(TruncateMod, 0);
        refused(Pow, -1);
    }
}
