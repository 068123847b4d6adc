//! Shifts of the bits of integers by amounts that are cut to what the type has, as TensorFlow's
//! `LeftShift` and `RightShift` cut them on the CPU.

use crate::frame::zip::Zip;

/// Bits moved up; zeros follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShiftLeft;

/// Bits moved down; copies of the sign follow.
#[derive(Clone, Copy, Debug, Default)]
pub struct ShiftRight;

macro_rules! shifts {
    ($($type:ty)*) => {$(
        impl Zip<$type> for ShiftLeft {
            type Out = $type;

            #[inline(always)]
            fn apply(self, x: $type, amount: $type) -> $type {
                x << amount.clamp(0, <$type>::BITS as $type - 1)
            }
        }

        impl Zip<$type> for ShiftRight {
            type Out = $type;

            #[inline(always)]
            fn apply(self, x: $type, amount: $type) -> $type {
                x >> amount.clamp(0, <$type>::BITS as $type - 1)
            }
        }
    )*};
}

shifts! { i32 i64 }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts_are_cut() {
        assert_eq!(
            [-1, 0, 3, 99].map(|n| ShiftLeft.apply(5_i32, n)),
            [5, 5, 40, i32::MIN]
        );
        assert_eq!(
            [-1, 0, 3, 99].map(|n| ShiftRight.apply(-40_i64, n)),
            [-40, -40, -5, -1]
        );
        assert_eq!(ShiftLeft.apply(5_i64, 63), i64::MIN);
        assert_eq!(ShiftRight.apply(i32::MAX, 31), 0);
    }
}
