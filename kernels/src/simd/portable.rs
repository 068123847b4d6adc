//! Vectors as arrays: what the compilation target gives, without any assumption.

use super::{Body, Simd};
use crate::base::level::Level;

/// Runs `body` without any assumption about the processor.
// Out of line, as the other levels' bodies are: its registers would be saved on the way to theirs.
#[inline(never)]
pub fn run<B: Body>(body: B) -> B::Out {
    body.run(Portable)
}

const LANES: usize = 8;

/// Arrays of 8 lanes that the compiler maps to the registers of its target.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

macro_rules! lanewise {
    ($($name:ident($($arg:ident: $in:ident),*) -> $out:ident = $value:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: Self::$in),*) -> Self::$out {
                let mut out = [Default::default(); LANES];
                for i in 0..LANES {
                    $(let $arg = $arg[i];)*
                    out[i] = $value;
                }
                out
            }
        )*
    };
}

impl Simd for Portable {
    type F = [f32; LANES];
    type I = [i32; LANES];
    type M = [bool; LANES];

    const LANES: usize = LANES;
    const REGISTERS: usize = 8;
    const LEVEL: Level = Level::Portable;

    #[inline(always)]
    fn apart<B: Body>(self, body: B) -> B::Out {
        run(body)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        [x; LANES]
    }

    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        [x; LANES]
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> Self::F {
        let mut out = [0.0; LANES];
        out.copy_from_slice(&from[..LANES]);
        out
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> Self::F {
        let mut out = [0.0; LANES];
        out[..from.len()].copy_from_slice(from);
        out
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], x: Self::F) {
        to[..LANES].copy_from_slice(&x);
    }

    #[inline(always)]
    fn store_partial(self, to: &mut [f32], x: Self::F) {
        to.copy_from_slice(&x[..to.len()]);
    }

    lanewise! {
        add(a: F, b: F) -> F = a + b;
        sub(a: F, b: F) -> F = a - b;
        mul(a: F, b: F) -> F = a * b;
        div(a: F, b: F) -> F = a / b;
        mul_add(a: F, b: F, c: F) -> F = a * b + c;
        min(a: F, b: F) -> F = if a < b { a } else { b };
        max(a: F, b: F) -> F = if a > b { a } else { b };
        sqrt(a: F) -> F = sqrt(a);
        lt(a: F, b: F) -> M = a < b;
        le(a: F, b: F) -> M = a <= b;
        eq(a: F, b: F) -> M = a == b;
        select(mask: M, a: F, b: F) -> F = if mask { a } else { b };
        to_bits(a: F) -> I = a.to_bits().cast_signed();
        from_bits(a: I) -> F = f32::from_bits(a.cast_unsigned());
        to_int(a: F) -> I = round_to_int(a);
        from_int(a: I) -> F = a as f32;
        add_i(a: I, b: I) -> I = a.wrapping_add(b);
        sub_i(a: I, b: I) -> I = a.wrapping_sub(b);
        and_i(a: I, b: I) -> I = a & b;
        or_i(a: I, b: I) -> I = a | b;
        xor_i(a: I, b: I) -> I = a ^ b;
    }

    #[inline(always)]
    fn shl_i<const BITS: i32>(self, mut a: Self::I) -> Self::I {
        for x in &mut a {
            *x <<= BITS;
        }
        a
    }

    #[inline(always)]
    fn shr_i<const BITS: i32>(self, mut a: Self::I) -> Self::I {
        for x in &mut a {
            *x >>= BITS;
        }
        a
    }

    #[inline(always)]
    fn to_array(self, a: Self::F) -> [f32; 16] {
        let mut out = [0.0; 16];
        out[..LANES].copy_from_slice(&a);
        out
    }
}

/// Nearest integer, ties to even; `i32::MIN` for NaN and what does not fit.
#[inline(always)]
pub(super) fn round_to_int(x: f32) -> i32 {
    // 1.5 * 2^23: adding it leaves the rounded integer in the mantissa. Exact below 2^22.
    const MAGIC: f32 = 12_582_912.0;
    if (-4_194_304.0..4_194_304.0).contains(&x) {
        (x + MAGIC).to_bits().cast_signed() - MAGIC.to_bits().cast_signed()
    } else if (-2_147_483_648.0..2_147_483_648.0).contains(&x) {
        // From 2^22 on there is at most one fractional bit.
        let floor = x as i32 - i32::from((x as i32) as f32 > x);
        let rest = x - floor as f32;
        floor + i32::from(rest > 0.5 || (rest == 0.5 && floor & 1 == 1))
    } else {
        i32::MIN
    }
}

#[cfg(feature = "std")]
#[inline(always)]
fn sqrt(x: f32) -> f32 {
    x.sqrt()
}

/// Without `std` there is no square root in safe code: Newton's iteration in f64, which rounds
/// to the correct f32.
#[cfg(not(feature = "std"))]
#[inline(always)]
fn sqrt(x: f32) -> f32 {
    if x < 0.0 {
        return f32::NAN;
    }
    if !(x > 0.0 && x < f32::INFINITY) {
        return x;
    }
    let x = f64::from(x);
    let mut y = f64::from_bits((x.to_bits() >> 1) + 0x1ff8_0000_0000_0000);
    for _ in 0..5 {
        y = 0.5 * (y + x / y);
    }
    y as f32
}
