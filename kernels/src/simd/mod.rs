//! Vectors of f32 behind one trait, and the place where a body meets an instruction set.
//!
//! A body is written once, generic over [`Simd`], as a [`Body`]; [`dispatch`] instantiates it for
//! every [`Level`] and runs the one asked for. Everything that a body calls with a vector in its
//! arguments must be `#[inline(always)]`, and so must `Body::run`: only then is it compiled with
//! the instruction set of its level. Closures that touch vectors are best avoided.
//!
//! Loads and stores take slices and check their length, so that a body needs no `unsafe`.
//!
//! What else of this crate meets a pointer is here, too, behind checks of its own: disjoint
//! [`blocks`] of an output, one per task, and bytes that are [`numbers`]. Only the pool of threads,
//! which lends a caller's closure to its workers, has `unsafe` outside of this folder.

pub(crate) mod amx;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
pub mod blocks;
pub(crate) mod body;
pub(crate) mod dots;
#[cfg(all(feature = "std", target_arch = "x86_64"))]
pub(crate) mod f16;
pub(crate) mod grid;
#[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
mod neon;
pub(crate) mod numbers;
mod one;
#[cfg(any(target_feature = "neon", target_feature = "relaxed-simd"))]
mod pair;
mod parts;
// Elsewhere no level has loops of its own.
#[cfg_attr(not(target_arch = "x86_64"), allow(dead_code))]
pub(crate) mod patch;
mod portable;
pub(crate) mod scalar;
#[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
mod simd128;
pub(crate) mod stream;
pub(crate) mod taps;
#[cfg(test)]
mod tests;

pub(crate) use one::One;
pub use portable::Portable;

use crate::base::level::{Level, best};
use patch::{Finish, Patch, Rows};

/// An instruction set: operations on vectors of `LANES` f32 (`F`), the same number of 32-bit
/// integers (`I`), and lane masks (`M`). A value of an implementing type is the proof that the
/// processor has the instructions.
// `self` is the instruction set here, not the operand.
#[allow(clippy::wrong_self_convention)]
pub trait Simd: Copy + Send + Sync + 'static {
    /// A vector of f32.
    type F: Copy + Send + Sync;
    /// A vector of i32.
    type I: Copy + Send + Sync;
    /// One truth value per lane.
    type M: Copy + Send + Sync;

    /// Number of lanes; a power of two, at most 16.
    const LANES: usize;
    /// Vector registers that the micro-kernels may count on.
    const REGISTERS: usize;
    /// The level that this is.
    const LEVEL: Level;
    /// Whether [`Simd::mul_add`] rounds once.
    const FUSED: bool = false;
    /// Whether [`Simd::look_up`] and [`Simd::parts`] take about as long as an addition.
    const LOOKS_UP: bool = false;

    /// Does work in a function of its own, compiled for this level. A compiler takes much longer
    /// over one large function than over its parts.
    #[inline(always)]
    fn apart<B: Body>(self, body: B) -> B::Out {
        body.run(self)
    }

    /// `x` in all lanes.
    fn splat(self, x: f32) -> Self::F;
    /// The first `LANES` elements. Panics if there are fewer.
    fn load(self, from: &[f32]) -> Self::F;
    /// All elements of a slice of at most `LANES`; 0 in the other lanes. Panics on a longer slice.
    fn load_partial(self, from: &[f32]) -> Self::F;
    /// As [`Simd::load_partial`], with `nothing` in the other lanes.
    #[inline(always)]
    fn load_filled(self, from: &[f32], nothing: f32) -> Self::F {
        let mut lanes = [nothing; 16];
        lanes[..from.len()].copy_from_slice(from);
        self.load(&lanes)
    }
    /// Writes the first `LANES` elements. Panics if there are fewer.
    fn store(self, to: &mut [f32], x: Self::F);
    /// Writes all elements of a slice of at most `LANES`. Panics on a longer slice.
    fn store_partial(self, to: &mut [f32], x: Self::F);

    /// `LANES` elements from an address on.
    ///
    /// # Safety
    /// They are elements of one slice.
    #[inline(always)]
    unsafe fn load_from(self, from: *const f32) -> Self::F {
        // SAFETY: by the caller.
        self.load(unsafe { core::slice::from_raw_parts(from, Self::LANES) })
    }
    /// Writes `LANES` elements from an address on.
    ///
    /// # Safety
    /// They are elements of one slice, which nobody else sees.
    #[inline(always)]
    unsafe fn store_to(self, to: *mut f32, x: Self::F) {
        // SAFETY: by the caller.
        self.store(
            unsafe { core::slice::from_raw_parts_mut(to, Self::LANES) },
            x,
        );
    }

    /// `a + b`
    fn add(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a - b`
    fn sub(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b`
    fn mul(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a / b`, correctly rounded.
    fn div(self, a: Self::F, b: Self::F) -> Self::F;
    /// `a * b + c`; rounded once where the level has the instruction, else twice.
    fn mul_add(self, a: Self::F, b: Self::F, c: Self::F) -> Self::F;
    /// `if a < b { a } else { b }`: `b` if either is NaN.
    fn min(self, a: Self::F, b: Self::F) -> Self::F;
    /// `if a > b { a } else { b }`: `b` if either is NaN.
    fn max(self, a: Self::F, b: Self::F) -> Self::F;
    /// Square root, correctly rounded.
    fn sqrt(self, a: Self::F) -> Self::F;

    /// `a < b`, false for NaN.
    fn lt(self, a: Self::F, b: Self::F) -> Self::M;
    /// `a <= b`, false for NaN.
    fn le(self, a: Self::F, b: Self::F) -> Self::M;
    /// `a == b`, false for NaN.
    fn eq(self, a: Self::F, b: Self::F) -> Self::M;
    /// Lane-wise `if mask { a } else { b }`.
    fn select(self, mask: Self::M, a: Self::F, b: Self::F) -> Self::F;

    /// `a`, but 0 where `x < least`.
    #[inline(always)]
    fn zero_below(self, a: Self::F, x: Self::F, least: Self::F) -> Self::F {
        self.select(self.lt(x, least), self.zero(), a)
    }

    /// The bits of each lane as an integer.
    fn to_bits(self, a: Self::F) -> Self::I;
    /// The f32 with these bits.
    fn from_bits(self, a: Self::I) -> Self::F;
    /// Rounds to the nearest integer, ties to even; `i32::MIN` for NaN and what does not fit.
    fn to_int(self, a: Self::F) -> Self::I;
    /// The nearest f32.
    fn from_int(self, a: Self::I) -> Self::F;
    /// `x` in all lanes.
    fn splat_i(self, x: i32) -> Self::I;
    /// `a + b`, wrapping.
    fn add_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// `a - b`, wrapping.
    fn sub_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// `a & b`
    fn and_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// `a | b`
    fn or_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// `a ^ b`
    fn xor_i(self, a: Self::I, b: Self::I) -> Self::I;
    /// `a << BITS`; `BITS` below 32.
    fn shl_i<const BITS: i32>(self, a: Self::I) -> Self::I;
    /// Arithmetic `a >> BITS`; `BITS` below 32.
    fn shr_i<const BITS: i32>(self, a: Self::I) -> Self::I;

    /// The lanes, in order; those from `LANES` on are 0.
    fn to_array(self, a: Self::F) -> [f32; 16];

    /// Adds to `sums` the product of the first columns of `a` and the first rows of `b`, each of
    /// `NV` vectors, and returns how many it took of the `k` that there are, perhaps none. For
    /// tiles that the level has a better loop for than [`Simd::mul_add`] makes. Meanwhile it may
    /// ask for the elements of `ahead`, a part of them with each column.
    #[cfg(not(without = "images"))]
    #[inline(always)]
    fn add_products<const MR: usize, const NV: usize, const ROW: usize>(
        self,
        _sums: &mut [[Self::F; NV]; MR],
        _a: &[[f32; ROW]; MR],
        _k: usize,
        _b: &[f32],
        _ahead: &[f32],
    ) -> usize {
        0
    }

    /// Computes and writes a tile of `MR` rows and `NV` vectors, the last of which may be cut, and
    /// returns whether it did: only if the level has a loop for such a tile that beats that of
    /// [`Simd::mul_add`]. Row `i` of A begins `i * ROW` elements after the first one, or where `ROW`
    /// is 0 and A has one line, `i` times its pitch; B has rows of `NV` vectors, as many as A has
    /// columns. Meanwhile it may ask for the elements of `ahead`.
    ///
    /// Panics if a matrix is too short, or if the output is not such a tile.
    #[inline(always)]
    fn tile<const MR: usize, const NV: usize, const ROW: usize>(
        self,
        _a: &Rows<'_>,
        _b: &[f32],
        _ahead: &[f32],
        _to: &mut Patch<'_>,
        _finish: &Finish<'_>,
    ) -> bool {
        false
    }

    /// `1 / a`, with an error of 2 ulp, where that is a normal number. NaN gives NaN.
    #[inline(always)]
    fn reciprocal(self, a: Self::F) -> Self::F {
        self.div(self.splat(1.0), a)
    }

    /// `a / b`, with an error of 1 ulp, where that, `b` and its reciprocal are normal numbers. NaN
    /// gives NaN.
    #[inline(always)]
    fn quotient(self, a: Self::F, b: Self::F) -> Self::F {
        self.div(a, b)
    }

    /// `a * 2^n` for a normal `a` and a whole `n` in -252 to 254, rounded at most twice.
    #[inline(always)]
    fn scale(self, a: Self::F, n: Self::F) -> Self::F {
        // 1.5 * 2^23, whose low bits are 0.
        let rounder = self.splat(12_582_912.0);
        let n = self.sub_i(self.to_bits(self.add(n, rounder)), self.to_bits(rounder));
        // Each half is the exponent of a normal number.
        let half = self.shr_i::<1>(n);
        let bias = self.splat_i(127);
        let first = self.from_bits(self.shl_i::<23>(self.add_i(half, bias)));
        let rest = self.add_i(self.sub_i(n, half), bias);
        let second = self.from_bits(self.shl_i::<23>(rest));
        self.mul(self.mul(a, first), second)
    }

    /// `m` in 0.75..1.5 and a whole `n` whose `m * 2^n` is `a`. For 0 and infinity `n` is infinite,
    /// and `m` is 1 or, for -0, -1; NaN for negative numbers and NaN.
    #[inline(always)]
    fn parts(self, a: Self::F) -> (Self::F, Self::F) {
        parts::parts(self, a)
    }

    /// The element of a table of 16 or 32 that the last bits of each lane say.
    #[inline(always)]
    fn look_up<const N: usize>(self, table: &[f32; N], index: Self::I) -> Self::F {
        let mut found = self.to_array(self.from_bits(index));
        for x in &mut found {
            *x = table[x.to_bits() as usize % N];
        }
        self.load(&found)
    }

    /// In each lane the lane of `a` that the last bits of the lane of `index` say.
    #[inline(always)]
    fn permute(self, a: Self::F, index: Self::I) -> Self::F {
        let (from, mut found) = (self.to_array(a), self.to_array(self.from_bits(index)));
        for x in &mut found[..Self::LANES] {
            *x = from[x.to_bits() as usize % Self::LANES];
        }
        self.load(&found)
    }

    /// The lanes of `a` and `b` in turn: those of the first halves, then those of the second ones.
    #[inline(always)]
    fn zip(self, a: Self::F, b: Self::F) -> (Self::F, Self::F) {
        let (a, b) = (self.to_array(a), self.to_array(b));
        let mut pairs = [[0.0; 2]; 16];
        for (i, pair) in pairs.iter_mut().enumerate() {
            *pair = [a[i], b[i]];
        }
        let pairs = pairs.as_flattened();
        (self.load(pairs), self.load(&pairs[Self::LANES..]))
    }

    /// Whether any lane is true.
    #[inline(always)]
    fn any(self, mask: Self::M) -> bool {
        let lanes = self.select(mask, self.splat(1.0), self.zero());
        self.to_array(lanes).contains(&1.0)
    }

    /// All lanes 0.
    #[inline(always)]
    fn zero(self) -> Self::F {
        self.splat(0.0)
    }

    /// Clears the sign.
    #[inline(always)]
    fn abs(self, a: Self::F) -> Self::F {
        self.from_bits(self.and_i(self.to_bits(a), self.splat_i(0x7fff_ffff)))
    }

    /// Flips the sign.
    #[inline(always)]
    fn neg(self, a: Self::F) -> Self::F {
        self.from_bits(self.xor_i(self.to_bits(a), self.splat_i(i32::MIN)))
    }

    /// The sum of all lanes, pairwise.
    #[inline(always)]
    fn sum(self, a: Self::F) -> f32 {
        let mut lanes = self.to_array(a);
        let mut half = Self::LANES / 2;
        while half > 0 {
            for i in 0..half {
                lanes[i] += lanes[i + half];
            }
            half /= 2;
        }
        lanes[0]
    }

    /// The first `LANES` elements, or all of a shorter slice with 0 in the other lanes.
    #[inline(always)]
    fn load_up_to(self, from: &[f32]) -> Self::F {
        if from.len() >= Self::LANES {
            self.load(from)
        } else {
            self.load_partial(from)
        }
    }

    /// Writes the first `LANES` elements, or all of a shorter slice.
    #[inline(always)]
    fn store_up_to(self, to: &mut [f32], x: Self::F) {
        if to.len() >= Self::LANES {
            self.store(to, x);
        } else {
            self.store_partial(to, x);
        }
    }

    /// As [`Simd::store_up_to`], for what is read again immediately. Processors forward what was stored
    /// to such loads, but not what was stored under a mask: it goes through the cache.
    #[inline(always)]
    fn store_forwarded(self, to: &mut [f32], x: Self::F) {
        self.store_up_to(to, x);
    }

    /// As [`Simd::load_filled`], for what [`Simd::store_forwarded`] has just stored.
    #[inline(always)]
    fn load_forwarded(self, from: &[f32], nothing: f32) -> Self::F {
        self.load_filled(from, nothing)
    }
}

/// Work that is written once for all instruction sets.
pub trait Body {
    /// What the work returns.
    type Out;
    /// Does the work with the vectors of `simd`. Must be `#[inline(always)]`.
    fn run<S: Simd>(self, simd: S) -> Self::Out;
}

/// Runs `body` with the instruction set of `level`, or the best one below it that the processor
/// has.
// Inlined, so that the body is made where the level's copy finds it: moving what has just been
// written would wait for it.
#[inline(always)]
pub fn dispatch<B: Body>(level: Level, body: B) -> B::Out {
    let level = if level == Level::Portable {
        level
    } else {
        level.min(best())
    };
    match level {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `best` found the instructions of this level.
        Level::Avx512 => unsafe { avx512::run(body) },
        #[cfg(target_arch = "x86_64")]
        // SAFETY: as above.
        Level::Avx2 => unsafe { avx2::run(body) },
        #[cfg(all(target_arch = "aarch64", target_feature = "neon"))]
        Level::Neon => neon::run(body),
        #[cfg(all(target_arch = "wasm32", target_feature = "relaxed-simd"))]
        Level::Simd128 => simd128::run(body),
        // Of two levels that a target has, a program would carry both: only tests compare them.
        #[cfg(all(not(test), target_arch = "aarch64", target_feature = "neon"))]
        _ => neon::run(body),
        #[cfg(all(not(test), target_arch = "wasm32", target_feature = "relaxed-simd"))]
        _ => simd128::run(body),
        // Those of other processors are not here: `best` is one of this one.
        #[cfg(any(
            test,
            not(any(target_feature = "neon", target_feature = "relaxed-simd"))
        ))]
        _ => portable::run(body),
    }
}

/// Asks for what lies `ahead` bytes behind a block, as far as the second of the caches: there is
/// more room for what is under way than at the first one.
#[inline(always)]
pub(crate) fn fetch_far<T>(block: &[T], ahead: usize) {
    fetch::<T, false>(block, ahead);
}

/// As [`fetch_far`], into the first cache: of use for what the second one has, or soon will.
#[inline(always)]
pub(crate) fn fetch_near<T>(block: &[T], ahead: usize) {
    fetch::<T, true>(block, ahead);
}

#[inline(always)]
fn fetch<T, const NEAR: bool>(block: &[T], ahead: usize) {
    #[cfg(target_arch = "x86_64")]
    for at in (0..size_of_val(block)).step_by(64) {
        use core::arch::x86_64::{_MM_HINT_T0, _MM_HINT_T1, _mm_prefetch};
        let to = block
            .as_ptr()
            .cast::<i8>()
            .wrapping_add(ahead)
            .wrapping_add(at);
        #[allow(unused_unsafe)]
        // SAFETY: a hint has no effect that a program can see, wherever it points; SSE is part of
        // this architecture.
        unsafe {
            if NEAR {
                _mm_prefetch::<_MM_HINT_T0>(to);
            } else {
                _mm_prefetch::<_MM_HINT_T1>(to);
            }
        }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (block, ahead);
}

/// The levels that this processor can run, for tests and benchmarks.
pub fn available() -> impl Iterator<Item = Level> {
    Level::ALL.into_iter().filter(|level| level.is_here())
}
