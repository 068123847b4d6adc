//! AVX2 and FMA: 8 lanes, 16 registers.

use core::arch::x86_64::*;

use super::patch::{Finish, Patch, Rows, checked};
use super::{Body, Simd};
use crate::base::level::Level;

mod strip;

/// Exists only where [`run`] has been entered.
#[derive(Clone, Copy)]
pub struct Avx2(());

/// Runs `body` with AVX2 and FMA.
///
/// # Safety
/// The processor has AVX2 and FMA.
#[target_feature(enable = "avx2,fma")]
pub unsafe fn run<B: Body>(body: B) -> B::Out {
    body.run(Avx2(()))
}

/// As [`run`], never a part of its caller.
///
/// # Safety
/// The processor has AVX2 and FMA.
#[inline(never)]
#[target_feature(enable = "avx2,fma")]
unsafe fn run_apart<B: Body>(body: B) -> B::Out {
    body.run(Avx2(()))
}

const LANES: usize = 8;

/// A window of 8 into it starts with as many ones as the slice has elements.
static MASKS: [i32; 16] = [-1, -1, -1, -1, -1, -1, -1, -1, 0, 0, 0, 0, 0, 0, 0, 0];

#[inline(always)]
fn mask(count: usize) -> __m256i {
    let window = &MASKS[LANES - count..][..LANES];
    // SAFETY: the window has 8 elements; AVX by the existence of an `Avx2`, which every caller has.
    unsafe { _mm256_loadu_si256(window.as_ptr().cast()) }
}

/// Writes the elements of a slice of less than 8, in parts of 4, 2 and 1 that need no mask.
///
/// # Safety
/// The processor has AVX.
#[inline(always)]
pub(super) unsafe fn store_parts(to: &mut [f32], x: __m256) {
    let (len, mut to) = (to.len(), to.as_mut_ptr());
    // SAFETY: the parts are the binary digits of a length below 8, so that they fill the slice; AVX
    // by the caller.
    unsafe {
        let mut part = _mm256_castps256_ps128(x);
        if len & 4 != 0 {
            _mm_storeu_ps(to, part);
            part = _mm256_extractf128_ps::<1>(x);
            to = to.add(4);
        }
        if len & 2 != 0 {
            _mm_storel_pd(to.cast(), _mm_castps_pd(part));
            part = _mm_movehl_ps(part, part);
            to = to.add(2);
        }
        if len & 1 != 0 {
            _mm_store_ss(to, part);
        }
    }
}

macro_rules! intrinsics {
    ($($name:ident($($arg:ident: $in:ident),*) -> $out:ident = $value:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: Self::$in),*) -> Self::$out {
                // SAFETY: `self` proves that the processor has AVX2 and FMA; registers only.
                unsafe { $value }
            }
        )*
    };
}

impl Simd for Avx2 {
    type F = __m256;
    type I = __m256i;
    type M = __m256;

    const LANES: usize = LANES;
    const REGISTERS: usize = 16;
    const LEVEL: Level = Level::Avx2;
    const FUSED: bool = true;

    #[inline(always)]
    fn apart<B: Body>(self, body: B) -> B::Out {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { run_apart(body) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m256 {
        // SAFETY: `self` proves that the processor has AVX; registers only.
        unsafe { _mm256_set1_ps(x) }
    }

    #[inline(always)]
    fn splat_i(self, x: i32) -> __m256i {
        // SAFETY: as for `splat`.
        unsafe { _mm256_set1_epi32(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m256 {
        let from = &from[..LANES];
        // SAFETY: 8 elements, checked above; AVX as for `splat`.
        unsafe { _mm256_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> __m256 {
        // SAFETY: only the lanes of the slice are read, `mask` panics beyond 8; AVX as for `splat`.
        unsafe { _mm256_maskload_ps(from.as_ptr(), mask(from.len())) }
    }

    #[inline(always)]
    fn load_filled(self, from: &[f32], nothing: f32) -> __m256 {
        let lanes = self.from_bits(mask(from.len()));
        self.select(lanes, self.load_partial(from), self.splat(nothing))
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], x: __m256) {
        let to = &mut to[..LANES];
        // SAFETY: 8 elements, checked above; AVX as for `splat`.
        unsafe { _mm256_storeu_ps(to.as_mut_ptr(), x) }
    }

    #[inline(always)]
    fn store_forwarded(self, to: &mut [f32], x: __m256) {
        if to.len() >= LANES {
            self.store(to, x);
        } else {
            // SAFETY: AVX as for `splat`.
            unsafe { store_parts(to, x) };
        }
    }

    #[inline(always)]
    fn load_forwarded(self, from: &[f32], nothing: f32) -> __m256 {
        match from.len() {
            // SAFETY: as many elements; AVX as for `splat`.
            4 => unsafe {
                _mm256_insertf128_ps::<0>(self.splat(nothing), _mm_loadu_ps(from.as_ptr()))
            },
            _ => self.load_filled(from, nothing),
        }
    }

    #[inline(always)]
    fn store_partial(self, to: &mut [f32], x: __m256) {
        // SAFETY: only the lanes of the slice are written, `mask` panics beyond 8; AVX as for
        // `splat`.
        unsafe { _mm256_maskstore_ps(to.as_mut_ptr(), mask(to.len()), x) }
    }

    intrinsics! {
        add(a: F, b: F) -> F = _mm256_add_ps(a, b);
        sub(a: F, b: F) -> F = _mm256_sub_ps(a, b);
        mul(a: F, b: F) -> F = _mm256_mul_ps(a, b);
        div(a: F, b: F) -> F = _mm256_div_ps(a, b);
        mul_add(a: F, b: F, c: F) -> F = _mm256_fmadd_ps(a, b, c);
        min(a: F, b: F) -> F = _mm256_min_ps(a, b);
        max(a: F, b: F) -> F = _mm256_max_ps(a, b);
        sqrt(a: F) -> F = _mm256_sqrt_ps(a);
        lt(a: F, b: F) -> M = _mm256_cmp_ps::<_CMP_LT_OQ>(a, b);
        le(a: F, b: F) -> M = _mm256_cmp_ps::<_CMP_LE_OQ>(a, b);
        eq(a: F, b: F) -> M = _mm256_cmp_ps::<_CMP_EQ_OQ>(a, b);
        select(mask: M, a: F, b: F) -> F = _mm256_blendv_ps(b, a, mask);
        to_bits(a: F) -> I = _mm256_castps_si256(a);
        from_bits(a: I) -> F = _mm256_castsi256_ps(a);
        to_int(a: F) -> I = _mm256_cvtps_epi32(a);
        from_int(a: I) -> F = _mm256_cvtepi32_ps(a);
        add_i(a: I, b: I) -> I = _mm256_add_epi32(a, b);
        sub_i(a: I, b: I) -> I = _mm256_sub_epi32(a, b);
        and_i(a: I, b: I) -> I = _mm256_and_si256(a, b);
        or_i(a: I, b: I) -> I = _mm256_or_si256(a, b);
        xor_i(a: I, b: I) -> I = _mm256_xor_si256(a, b);
        permute(a: F, index: I) -> F = _mm256_permutevar8x32_ps(a, index);
    }

    #[inline(always)]
    fn shl_i<const BITS: i32>(self, a: __m256i) -> __m256i {
        // SAFETY: `self` proves that the processor has AVX2; registers only.
        unsafe { _mm256_slli_epi32::<BITS>(a) }
    }

    #[inline(always)]
    fn shr_i<const BITS: i32>(self, a: __m256i) -> __m256i {
        // SAFETY: as for `shl_i`.
        unsafe { _mm256_srai_epi32::<BITS>(a) }
    }

    #[inline(always)]
    fn zip(self, a: __m256, b: __m256) -> (__m256, __m256) {
        // SAFETY: as for `shl_i`.
        unsafe {
            let (even, odd) = (_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
            (
                _mm256_permute2f128_ps::<0x20>(even, odd),
                _mm256_permute2f128_ps::<0x31>(even, odd),
            )
        }
    }

    #[inline(always)]
    fn to_array(self, a: __m256) -> [f32; 16] {
        let mut out = [0.0; 16];
        self.store(&mut out, a);
        out
    }

    // Only rows of an image do not follow each other.
    #[cfg(not(without = "images"))]
    #[inline(always)]
    fn add_products<const MR: usize, const NV: usize, const ROW: usize>(
        self,
        sums: &mut [[__m256; NV]; MR],
        a: &[[f32; ROW]; MR],
        k: usize,
        b: &[f32],
        _ahead: &[f32],
    ) -> usize {
        if !has_loop(MR, NV) {
            return 0;
        }
        let k = k.min(ROW).min(b.len() / (NV * LANES));
        let from = (a.as_ptr().cast(), b.as_ptr());
        let sums = sums.as_flattened_mut();
        let mut all = [self.zero(); 12];
        all[..MR * NV].copy_from_slice(sums);
        // SAFETY: a row of A and B have so many columns and rows, by the minimum above.
        unsafe { self.products::<MR, NV>(&mut all, from, (ROW, k)) };
        sums.copy_from_slice(&all[..MR * NV]);
        k
    }

    #[inline(always)]
    fn tile<const MR: usize, const NV: usize, const ROW: usize>(
        self,
        a: &Rows<'_>,
        b: &[f32],
        _ahead: &[f32],
        to: &mut Patch<'_>,
        finish: &Finish<'_>,
    ) -> bool {
        if !has_loop(MR, NV) {
            return false;
        }
        let (apart, rest) = checked::<MR, NV, ROW>(LANES, a, b, to, finish);
        let mut bias = [self.zero(); NV];
        if let Some(from) = finish.bias {
            for (v, bias) in bias.iter_mut().enumerate() {
                *bias = self.load_up_to(&from[v * LANES..to.columns()]);
            }
        }
        let mut sums = [self.zero(); 12];
        for line in 0..a.lines {
            let from = (
                a.data.as_ptr().wrapping_add(line * a.pitch),
                b.as_ptr().wrapping_add(line * a.k * NV * LANES),
            );
            // SAFETY: the rows of A and B were found in their slices above.
            unsafe { self.products::<MR, NV>(&mut sums, from, (apart, a.k)) };
        }
        // One step at a time, so that a compiler unrolls its loop and keeps the sums in registers.
        let sums = &mut sums[..MR * NV];
        for (i, x) in sums.iter_mut().enumerate() {
            *x = self.add(*x, bias[i % NV]);
        }
        if finish.accumulate {
            for (i, x) in sums.iter_mut().enumerate() {
                *x = self.add(*x, self.load_up_to(&to.row(i / NV)[i % NV * LANES..]));
            }
        }
        if let Some((low, high)) = finish.clamp {
            let (low, high) = (self.splat(low), self.splat(high));
            for x in &mut *sums {
                *x = self.min(high, self.max(low, *x));
            }
        }
        for (i, sums) in sums.chunks_exact(NV).enumerate() {
            let row = to.row(i);
            if rest == LANES {
                let row = &mut row[..NV * LANES];
                for v in 0..NV {
                    self.store(&mut row[v * LANES..], sums[v]);
                }
                continue;
            }
            for v in 0..NV {
                self.store_forwarded(&mut row[v * LANES..], sums[v]);
            }
        }
        true
    }
}

/// Whether there is a loop for tiles of so many rows and vectors.
const fn has_loop(rows: usize, vectors: usize) -> bool {
    matches!((rows, vectors), (6, 1 | 2) | (3, 3))
}

impl Avx2 {
    /// Adds the products of `k` columns to the sums of a tile.
    ///
    /// # Safety
    /// There is a loop for it. Row `i` of A has `k` elements from `a + i * apart` on, and B has as many rows of `NV` vectors,
    /// where `of` is `apart` and `k`.
    #[inline(always)]
    unsafe fn products<const MR: usize, const NV: usize>(
        self,
        sums: &mut [__m256; 12],
        from: (*const f32, *const f32),
        of: (usize, usize),
    ) {
        // SAFETY: by the caller; `self` proves that the processor has AVX2 and FMA.
        unsafe {
            match NV {
                1 => strip::tile_6x1(sums, from, of),
                2 => strip::tile_6x2(sums, from, of),
                _ => strip::tile_3x3(sums, from, of),
            }
        }
    }
}
