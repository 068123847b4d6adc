//! What one instruction does to a number, where `core` has no name for it or one that does more.

/// Square root, correctly rounded.
#[cfg(all(not(feature = "std"), target_arch = "x86_64"))]
#[inline(always)]
pub(crate) fn sqrt(x: f64) -> f64 {
    use core::arch::x86_64::{_mm_cvtsd_f64, _mm_set_sd, _mm_sqrt_sd};
    // SAFETY: SSE2 is part of this architecture.
    unsafe { _mm_cvtsd_f64(_mm_sqrt_sd(_mm_set_sd(x), _mm_set_sd(x))) }
}

/// A float whose whole part an integer may hold.
pub(crate) trait Truncate<T> {
    /// The whole part; the smallest integer if the type does not hold it, or for NaN.
    fn truncate(self) -> T;
}

macro_rules! truncate {
    ($($from:ident => $to:ident |$x:ident| $holds:expr;)*) => {$(
        impl Truncate<$to> for $from {
            #[inline(always)]
            fn truncate(self) -> $to {
                let $x = self;
                if $holds {
                    // SAFETY: the integer type holds the whole part of a number in this range.
                    unsafe { $x.to_int_unchecked::<$to>() }
                } else {
                    $to::MIN
                }
            }
        }
    )*};
}

truncate! {
    f32 => i32 |x| (-2_147_483_648.0..2_147_483_648.0).contains(&x);
    f32 => i64 |x| (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x);
    f64 => i32 |x| x > -2_147_483_649.0 && x < 2_147_483_648.0;
    f64 => i64 |x| (-9_223_372_036_854_775_808.0..9_223_372_036_854_775_808.0).contains(&x);
}
