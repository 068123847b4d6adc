//! One element as a vector: the form of a function in which loops are vectorised by the compiler.

use super::Simd;
use crate::base::level::Level;

/// A vector of one lane, without any assumption about the processor.
#[derive(Clone, Copy, Debug)]
pub(crate) struct One;

macro_rules! operations {
    ($($name:ident($($arg:ident: $in:ident),*) -> $out:ident = $value:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: Self::$in),*) -> Self::$out {
                $value
            }
        )*
    };
}

impl Simd for One {
    type F = f32;
    type I = i32;
    type M = bool;

    const LANES: usize = 1;
    const REGISTERS: usize = 8;
    const LEVEL: Level = Level::Portable;

    #[inline(always)]
    fn splat(self, x: f32) -> f32 {
        x
    }

    #[inline(always)]
    fn splat_i(self, x: i32) -> i32 {
        x
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> f32 {
        from[0]
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> f32 {
        from.first().copied().unwrap_or(0.0)
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], x: f32) {
        to[0] = x;
    }

    #[inline(always)]
    fn store_partial(self, to: &mut [f32], x: f32) {
        to.fill(x);
    }

    operations! {
        add(a: F, b: F) -> F = a + b;
        sub(a: F, b: F) -> F = a - b;
        mul(a: F, b: F) -> F = a * b;
        div(a: F, b: F) -> F = a / b;
        mul_add(a: F, b: F, c: F) -> F = a * b + c;
        min(a: F, b: F) -> F = if a < b { a } else { b };
        max(a: F, b: F) -> F = if a > b { a } else { b };
        sqrt(a: F) -> F = crate::math::sqrt_f32(a);
        lt(a: F, b: F) -> M = a < b;
        le(a: F, b: F) -> M = a <= b;
        eq(a: F, b: F) -> M = a == b;
        select(mask: M, a: F, b: F) -> F = if mask { a } else { b };
        to_bits(a: F) -> I = a.to_bits().cast_signed();
        from_bits(a: I) -> F = f32::from_bits(a.cast_unsigned());
        to_int(a: F) -> I = super::portable::round_to_int(a);
        from_int(a: I) -> F = a as f32;
        add_i(a: I, b: I) -> I = a.wrapping_add(b);
        sub_i(a: I, b: I) -> I = a.wrapping_sub(b);
        and_i(a: I, b: I) -> I = a & b;
        or_i(a: I, b: I) -> I = a | b;
        xor_i(a: I, b: I) -> I = a ^ b;
        abs(a: F) -> F = a.abs();
        neg(a: F) -> F = -a;
    }

    #[inline(always)]
    fn shl_i<const BITS: i32>(self, a: i32) -> i32 {
        a << BITS
    }

    #[inline(always)]
    fn shr_i<const BITS: i32>(self, a: i32) -> i32 {
        a >> BITS
    }

    #[inline(always)]
    fn to_array(self, a: f32) -> [f32; 16] {
        let mut out = [0.0; 16];
        out[0] = a;
        out
    }
}
