//! Element-wise operations on `i32` that TensorFlow keeps in host memory, and converted models not.

use crate::binary::{Add, AddV2, Maximum, Minimum, Mul, SquaredDifference, Sub};
use crate::compare::{Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual};
use crate::division::{Div, FloorDiv, FloorMod, TruncateMod, floor_quotient_i32, floor_rest_i32};
use crate::map::Map;
use crate::unary::{Abs, Neg, Relu, Sign, Square};
use crate::zip::Zip;

macro_rules! zips {
    ($($op:ident $out:ident |$x:ident, $y:ident| $body:expr;)*) => {$(
        impl Zip<i32> for $op {
            type Out = $out;

            #[inline(always)]
            fn apply(self, $x: i32, $y: i32) -> $out {
                $body
            }
        }
    )*};
}

zips! {
    Add i32 |x, y| x.wrapping_add(y);
    AddV2 i32 |x, y| x.wrapping_add(y);
    Div i32 |x, y| if y == 0 { 0 } else { x.wrapping_div(y) };
    FloorDiv i32 |x, y| floor_quotient_i32(x, y);
    FloorMod i32 |x, y| floor_rest_i32(x, y);
    Maximum i32 |x, y| x.max(y);
    Minimum i32 |x, y| x.min(y);
    Mul i32 |x, y| x.wrapping_mul(y);
    SquaredDifference i32 |x, y| x.wrapping_sub(y).wrapping_mul(x.wrapping_sub(y));
    Sub i32 |x, y| x.wrapping_sub(y);
    Equal u8 |x, y| u8::from(x == y);
    Greater u8 |x, y| u8::from(x > y);
    GreaterEqual u8 |x, y| u8::from(x >= y);
    Less u8 |x, y| u8::from(x < y);
    LessEqual u8 |x, y| u8::from(x <= y);
    NotEqual u8 |x, y| u8::from(x != y);
    TruncateMod i32 |x, y| if y == 0 { 0 } else { x.wrapping_rem(y) };
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
        assert_eq!(Map::<i32>::apply(Abs, i32::MIN), i32::MIN);
        assert_eq!([-3, 0, 3].map(|x| Map::<i32>::apply(Sign, x)), [-1, 0, 1]);
    }
}
