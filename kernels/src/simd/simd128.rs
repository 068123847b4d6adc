//! WebAssembly's vectors with `relaxed-simd`: 8 lanes in pairs of registers. A product and a sum are
//! one instruction, which may round once or twice. Without it, what the compiler makes of the
//! portable level multiplies matrices faster than these vectors do.

use core::arch::wasm32::*;

use super::pair::{Pair, halves, parts_of_slices};
use super::{Body, Simd};
use crate::base::level::Level;

/// Runs `body` with the vectors that the target has.
// Out of line, as the bodies of other levels are.
#[inline(never)]
pub fn run<B: Body>(body: B) -> B::Out {
    body.run(Simd128)
}

/// Pairs of four lanes.
#[derive(Clone, Copy, Debug)]
pub struct Simd128;

const LANES: usize = 8;
const HALF: usize = LANES / 2;

/// The four elements of a slice.
#[inline(always)]
fn load_four(from: &[f32]) -> v128 {
    let from = &from[..HALF];
    // SAFETY: 4 elements, checked above; the instruction needs no alignment.
    unsafe { v128_load(from.as_ptr().cast()) }
}

/// The elements of a slice of at most 4, and `nothing` in the other lanes.
#[inline(always)]
fn load_few(from: &[f32], nothing: v128) -> v128 {
    match *from {
        [] => nothing,
        [a] => f32x4_replace_lane::<0>(nothing, a),
        [_, _] => load_two(from, nothing),
        [_, _, c] => load_two(from, f32x4_replace_lane::<2>(nothing, c)),
        _ => load_four(from),
    }
}

/// `rest` with the first two elements of a slice in front.
#[inline(always)]
fn load_two(from: &[f32], rest: v128) -> v128 {
    let from = &from[..2];
    // SAFETY: 2 elements, checked above; the instruction needs no alignment.
    unsafe { v128_load64_lane::<0>(rest, from.as_ptr().cast()) }
}

/// Writes the four elements of a slice.
#[inline(always)]
fn store_four(to: &mut [f32], x: v128) {
    let to = &mut to[..HALF];
    // SAFETY: 4 elements, checked above; the instruction needs no alignment.
    unsafe { v128_store(to.as_mut_ptr().cast(), x) }
}

/// Writes the elements of a slice of at most 4.
#[inline(always)]
fn store_few(to: &mut [f32], x: v128) {
    match to {
        [] => {}
        [a] => *a = f32x4_extract_lane::<0>(x),
        [_, _] => store_two(to, x),
        [_, _, c] => {
            *c = f32x4_extract_lane::<2>(x);
            store_two(to, x);
        }
        _ => store_four(to, x),
    }
}

/// Writes the first two elements of a slice.
#[inline(always)]
fn store_two(to: &mut [f32], x: v128) {
    let to = &mut to[..2];
    // SAFETY: 2 elements, checked above; the instruction needs no alignment.
    unsafe { v128_store64_lane::<0>(x, to.as_mut_ptr().cast()) }
}

/// [`Simd::to_int`]: the instruction cuts, and gives 0 for NaN.
#[inline(always)]
fn to_int(a: v128) -> v128 {
    let held = f32x4_lt(a, f32x4_splat(2_147_483_648.0));
    let whole = i32x4_trunc_sat_f32x4(f32x4_nearest(a));
    v128_bitselect(whole, i32x4_splat(i32::MIN), held)
}

impl Simd for Simd128 {
    type F = Pair<v128>;
    type I = Pair<v128>;
    type M = Pair<v128>;

    const LANES: usize = LANES;
    // An x86-64 host has 16 of four lanes.
    const REGISTERS: usize = 8;
    const LEVEL: Level = Level::Simd128;

    #[inline(always)]
    fn apart<B: Body>(self, body: B) -> B::Out {
        run(body)
    }

    #[inline(always)]
    fn splat(self, x: f32) -> Self::F {
        let x = f32x4_splat(x);
        Pair(x, x)
    }

    #[inline(always)]
    fn splat_i(self, x: i32) -> Self::I {
        let x = i32x4_splat(x);
        Pair(x, x)
    }

    parts_of_slices!(v128);

    halves! {
        add(a: F, b: F) -> F = f32x4_add(a, b);
        sub(a: F, b: F) -> F = f32x4_sub(a, b);
        mul(a: F, b: F) -> F = f32x4_mul(a, b);
        div(a: F, b: F) -> F = f32x4_div(a, b);
        mul_add(a: F, b: F, c: F) -> F = f32x4_relaxed_madd(a, b, c);
        // The second operand where it is the smaller or the larger one, else the first.
        min(a: F, b: F) -> F = f32x4_pmin(b, a);
        max(a: F, b: F) -> F = f32x4_pmax(b, a);
        sqrt(a: F) -> F = f32x4_sqrt(a);
        abs(a: F) -> F = f32x4_abs(a);
        neg(a: F) -> F = f32x4_neg(a);
        lt(a: F, b: F) -> M = f32x4_lt(a, b);
        le(a: F, b: F) -> M = f32x4_le(a, b);
        eq(a: F, b: F) -> M = f32x4_eq(a, b);
        select(mask: M, a: F, b: F) -> F = v128_bitselect(a, b, mask);
        to_bits(a: F) -> I = a;
        from_bits(a: I) -> F = a;
        to_int(a: F) -> I = to_int(a);
        from_int(a: I) -> F = f32x4_convert_i32x4(a);
        add_i(a: I, b: I) -> I = i32x4_add(a, b);
        sub_i(a: I, b: I) -> I = i32x4_sub(a, b);
        and_i(a: I, b: I) -> I = v128_and(a, b);
        or_i(a: I, b: I) -> I = v128_or(a, b);
        xor_i(a: I, b: I) -> I = v128_xor(a, b);
        zero_below(a: F, x: F, least: F) -> F = v128_andnot(a, f32x4_lt(x, least));
    }

    #[inline(always)]
    fn shl_i<const BITS: i32>(self, a: Self::I) -> Self::I {
        Pair(i32x4_shl(a.0, BITS as u32), i32x4_shl(a.1, BITS as u32))
    }

    #[inline(always)]
    fn shr_i<const BITS: i32>(self, a: Self::I) -> Self::I {
        Pair(i32x4_shr(a.0, BITS as u32), i32x4_shr(a.1, BITS as u32))
    }

    #[inline(always)]
    fn permute(self, a: Self::F, index: Self::I) -> Self::F {
        let of = |index: v128| {
            let lane = v128_and(index, i32x4_splat(LANES as i32 - 1));
            // The four bytes of that lane; what is in the other half is 0.
            let bytes = i32x4_mul(lane, i32x4_splat(0x0404_0404));
            let bytes = i32x4_add(bytes, i32x4_splat(0x0302_0100));
            let low = i8x16_swizzle(a.0, bytes);
            let high = i8x16_swizzle(a.1, i8x16_sub(bytes, i8x16_splat(16)));
            v128_or(low, high)
        };
        Pair(of(index.0), of(index.1))
    }

    #[inline(always)]
    fn zip(self, a: Self::F, b: Self::F) -> (Self::F, Self::F) {
        let both = |a, b| {
            let low = i32x4_shuffle::<0, 4, 1, 5>(a, b);
            Pair(low, i32x4_shuffle::<2, 6, 3, 7>(a, b))
        };
        (both(a.0, b.0), both(a.1, b.1))
    }

    #[inline(always)]
    fn any(self, mask: Self::M) -> bool {
        v128_any_true(v128_or(mask.0, mask.1))
    }

    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        let four = f32x4_add(a.0, a.1);
        let two = f32x4_add(four, i32x4_shuffle::<2, 3, 2, 3>(four, four));
        f32x4_extract_lane::<0>(two) + f32x4_extract_lane::<1>(two)
    }
}
