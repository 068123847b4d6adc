//! AVX-512 F, BW, DQ and VL: 16 lanes, 32 registers.

use core::arch::x86_64::*;

use super::avx2::store_parts;
use super::patch::{Finish, Patch, Rows, checked};
use super::{Body, Simd};
use crate::base::level::Level;

mod strip;

/// Exists only where [`run`] has been entered.
#[derive(Clone, Copy)]
pub struct Avx512(());

/// Runs `body` with AVX-512 F, BW, DQ and VL.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ and VL.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
pub unsafe fn run<B: Body>(body: B) -> B::Out {
    body.run(Avx512(()))
}

/// As [`run`], never a part of its caller.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ and VL.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")]
unsafe fn run_apart<B: Body>(body: B) -> B::Out {
    body.run(Avx512(()))
}

const LANES: usize = 16;

/// A mask of the first `count` lanes.
#[inline(always)]
fn mask(count: usize) -> __mmask16 {
    assert!(count <= LANES, "a partial vector has at most 16 elements");
    ((1_u32 << count) - 1) as __mmask16
}

macro_rules! intrinsics {
    ($($name:ident($($arg:ident: $in:ident),*) -> $out:ident = $value:expr;)*) => {
        $(
            #[inline(always)]
            fn $name(self, $($arg: Self::$in),*) -> Self::$out {
                // SAFETY: `self` proves that the processor has AVX-512 F, BW, DQ and VL; registers
                // only.
                unsafe { $value }
            }
        )*
    };
}

impl Simd for Avx512 {
    type F = __m512;
    type I = __m512i;
    type M = __mmask16;

    const LANES: usize = LANES;
    const REGISTERS: usize = 32;
    const LEVEL: Level = Level::Avx512;
    const FUSED: bool = true;
    const LOOKS_UP: bool = true;

    #[inline(always)]
    fn apart<B: Body>(self, body: B) -> B::Out {
        // SAFETY: `self` proves that the processor has the instructions.
        unsafe { run_apart(body) }
    }

    #[inline(always)]
    fn splat(self, x: f32) -> __m512 {
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe { _mm512_set1_ps(x) }
    }

    #[inline(always)]
    fn splat_i(self, x: i32) -> __m512i {
        // SAFETY: as for `splat`.
        unsafe { _mm512_set1_epi32(x) }
    }

    #[inline(always)]
    fn load(self, from: &[f32]) -> __m512 {
        let from = &from[..LANES];
        // SAFETY: 16 elements, checked above; AVX-512 as for `splat`.
        unsafe { _mm512_loadu_ps(from.as_ptr()) }
    }

    #[inline(always)]
    fn load_partial(self, from: &[f32]) -> __m512 {
        // SAFETY: only the lanes of the slice are read, `mask` panics beyond 16; AVX-512 as for
        // `splat`.
        unsafe { _mm512_maskz_loadu_ps(mask(from.len()), from.as_ptr()) }
    }

    #[inline(always)]
    fn load_filled(self, from: &[f32], nothing: f32) -> __m512 {
        let nothing = self.splat(nothing);
        // SAFETY: as for `load_partial`.
        unsafe { _mm512_mask_loadu_ps(nothing, mask(from.len()), from.as_ptr()) }
    }

    #[inline(always)]
    fn store(self, to: &mut [f32], x: __m512) {
        let to = &mut to[..LANES];
        // SAFETY: 16 elements, checked above; AVX-512 as for `splat`.
        unsafe { _mm512_storeu_ps(to.as_mut_ptr(), x) }
    }

    #[inline(always)]
    fn store_forwarded(self, to: &mut [f32], x: __m512) {
        if to.len() >= LANES {
            return self.store(to, x);
        }
        // SAFETY: 8 elements where there are as many; AVX-512 as for `splat`.
        unsafe {
            match to.split_at_mut_checked(8) {
                Some((first, rest)) => {
                    _mm256_storeu_ps(first.as_mut_ptr(), _mm512_castps512_ps256(x));
                    store_parts(rest, _mm512_extractf32x8_ps::<1>(x));
                }
                None => store_parts(to, _mm512_castps512_ps256(x)),
            }
        }
    }

    #[inline(always)]
    fn load_forwarded(self, from: &[f32], nothing: f32) -> __m512 {
        // SAFETY: as many elements as are read; AVX-512 as for `splat`.
        let part = unsafe {
            match from.len() {
                4 => _mm512_castps128_ps512(_mm_loadu_ps(from.as_ptr())),
                8 => _mm512_castps256_ps512(_mm256_loadu_ps(from.as_ptr())),
                _ => return self.load_filled(from, nothing),
            }
        };
        self.select(mask(from.len()), part, self.splat(nothing))
    }

    #[inline(always)]
    fn store_partial(self, to: &mut [f32], x: __m512) {
        // SAFETY: only the lanes of the slice are written, `mask` panics beyond 16; AVX-512 as for
        // `splat`.
        unsafe { _mm512_mask_storeu_ps(to.as_mut_ptr(), mask(to.len()), x) }
    }

    intrinsics! {
        add(a: F, b: F) -> F = _mm512_add_ps(a, b);
        sub(a: F, b: F) -> F = _mm512_sub_ps(a, b);
        mul(a: F, b: F) -> F = _mm512_mul_ps(a, b);
        div(a: F, b: F) -> F = _mm512_div_ps(a, b);
        mul_add(a: F, b: F, c: F) -> F = _mm512_fmadd_ps(a, b, c);
        min(a: F, b: F) -> F = _mm512_min_ps(a, b);
        max(a: F, b: F) -> F = _mm512_max_ps(a, b);
        sqrt(a: F) -> F = _mm512_sqrt_ps(a);
        lt(a: F, b: F) -> M = _mm512_cmp_ps_mask::<_CMP_LT_OQ>(a, b);
        le(a: F, b: F) -> M = _mm512_cmp_ps_mask::<_CMP_LE_OQ>(a, b);
        eq(a: F, b: F) -> M = _mm512_cmp_ps_mask::<_CMP_EQ_OQ>(a, b);
        select(mask: M, a: F, b: F) -> F = _mm512_mask_blend_ps(mask, b, a);
        zero_below(a: F, x: F, least: F) -> F =
            _mm512_maskz_mov_ps(_mm512_cmp_ps_mask::<_CMP_NLT_UQ>(x, least), a);
        to_bits(a: F) -> I = _mm512_castps_si512(a);
        from_bits(a: I) -> F = _mm512_castsi512_ps(a);
        to_int(a: F) -> I = _mm512_cvtps_epi32(a);
        from_int(a: I) -> F = _mm512_cvtepi32_ps(a);
        add_i(a: I, b: I) -> I = _mm512_add_epi32(a, b);
        sub_i(a: I, b: I) -> I = _mm512_sub_epi32(a, b);
        and_i(a: I, b: I) -> I = _mm512_and_si512(a, b);
        or_i(a: I, b: I) -> I = _mm512_or_si512(a, b);
        xor_i(a: I, b: I) -> I = _mm512_xor_si512(a, b);
        scale(a: F, n: F) -> F = _mm512_scalef_ps(a, n);
    }

    #[inline(always)]
    fn shl_i<const BITS: i32>(self, a: __m512i) -> __m512i {
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe { _mm512_sllv_epi32(a, _mm512_set1_epi32(BITS)) }
    }

    #[inline(always)]
    fn shr_i<const BITS: i32>(self, a: __m512i) -> __m512i {
        // SAFETY: as for `shl_i`.
        unsafe { _mm512_srav_epi32(a, _mm512_set1_epi32(BITS)) }
    }

    /// An estimate and a step of Newton's: a division keeps a port busy for longer than both.
    #[inline(always)]
    fn reciprocal(self, a: __m512) -> __m512 {
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe {
            let estimate = _mm512_rcp14_ps(a);
            let error = _mm512_fnmadd_ps(a, estimate, _mm512_set1_ps(1.0));
            _mm512_fmadd_ps(estimate, error, estimate)
        }
    }

    /// As [`Simd::reciprocal`], with the step on the quotient.
    #[inline(always)]
    fn quotient(self, a: __m512, b: __m512) -> __m512 {
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe {
            let estimate = _mm512_rcp14_ps(b);
            let quotient = _mm512_mul_ps(a, estimate);
            let rest = _mm512_fnmadd_ps(quotient, b, a);
            _mm512_fmadd_ps(rest, estimate, quotient)
        }
    }

    #[inline(always)]
    fn parts(self, a: __m512) -> (__m512, __m512) {
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe {
            let mantissa = _mm512_getmant_ps::<_MM_MANT_NORM_P75_1P5, _MM_MANT_SIGN_NAN>(a);
            // The instruction's own exponent is that of a mantissa in 1..2.
            let exponent = _mm512_sub_ps(_mm512_getexp_ps(a), _mm512_getexp_ps(mantissa));
            (mantissa, exponent)
        }
    }

    #[inline(always)]
    fn look_up<const N: usize>(self, table: &[f32; N], index: __m512i) -> __m512 {
        const { assert!(N == LANES || N == 2 * LANES) };
        let (first, second) = (self.load(table), self.load(&table[N - LANES..]));
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe {
            if N == LANES {
                _mm512_permutexvar_ps(index, first)
            } else {
                _mm512_permutex2var_ps(first, index, second)
            }
        }
    }

    #[inline(always)]
    fn permute(self, a: __m512, index: __m512i) -> __m512 {
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe { _mm512_permutexvar_ps(index, a) }
    }

    #[inline(always)]
    fn zip(self, a: __m512, b: __m512) -> (__m512, __m512) {
        // SAFETY: `self` proves that the processor has AVX-512; registers only.
        unsafe {
            let low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
            let high =
                _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
            let pick = |index| _mm512_permutex2var_ps(a, index, b);
            (pick(low), pick(high))
        }
    }

    #[inline(always)]
    fn any(self, mask: __mmask16) -> bool {
        mask != 0
    }

    // Only rows of an image do not follow each other.
    #[cfg(not(without = "images"))]
    #[inline(always)]
    fn add_products<const MR: usize, const NV: usize, const ROW: usize>(
        self,
        sums: &mut [[__m512; NV]; MR],
        a: &[[f32; ROW]; MR],
        k: usize,
        b: &[f32],
        ahead: &[f32],
    ) -> usize {
        let steps = k.min(ROW).min(b.len() / (NV * LANES)) / strip::STEP;
        let (sums, a, b) = (sums.as_flattened_mut(), a.as_ptr().cast(), b.as_ptr());
        // Where nothing is wanted, what is near anyway.
        let ahead = if ahead.is_empty() {
            (b, 0)
        } else {
            (ahead.as_ptr(), size_of_val(ahead) / steps.max(1))
        };
        // SAFETY: a row of A and B have so many columns and rows, by the minimum above; `a` has as
        // many rows as the tile of that name; `self` proves that the processor has AVX-512.
        unsafe {
            match (MR, NV) {
                (14, 2) => strip::tile_14x2::<ROW>(sums, a, b, steps, ahead),
                (14, 1) => strip::tile_14x1::<ROW>(sums, a, b, steps, ahead),
                (7, 3) => strip::tile_7x3::<ROW>(sums, a, b, steps, ahead),
                _ => return 0,
            }
        }
        steps * strip::STEP
    }

    #[inline(always)]
    fn tile<const MR: usize, const NV: usize, const ROW: usize>(
        self,
        a: &Rows<'_>,
        b: &[f32],
        ahead: &[f32],
        to: &mut Patch<'_>,
        finish: &Finish<'_>,
    ) -> bool {
        if !matches!((MR, NV), (14, 1 | 2) | (7, 3)) {
            return false;
        }
        let (apart, rest) = checked::<MR, NV, ROW>(LANES, a, b, to, finish);
        let ahead = if ahead.is_empty() {
            (b.as_ptr(), 0)
        } else {
            let steps = (a.k / strip::STEP).max(1);
            (ahead.as_ptr(), size_of_val(ahead) / steps)
        };
        let of = strip::Lines {
            row: apart,
            lines: a.lines,
            pitch: a.pitch,
            k: a.k,
        };
        let (a, b) = (a.data.as_ptr(), b.as_ptr());
        let to = (to.start(), to.ld(), mask(rest));
        // SAFETY: what is read and written was found in its slices above; a patch is nobody
        // else's; `self` proves that the processor has AVX-512.
        unsafe {
            match (NV, rest <= LANES / 2) {
                (1, _) => strip::whole_14x1::<ROW>((a, b), of, ahead, to, finish),
                (2, false) => strip::whole_14x2::<ROW>((a, b), of, ahead, to, finish),
                (2, true) => strip::whole_14x2_half::<ROW>((a, b), of, ahead, to, finish),
                (_, false) => strip::whole_7x3::<ROW>((a, b), of, ahead, to, finish),
                (_, true) => strip::whole_7x3_half::<ROW>((a, b), of, ahead, to, finish),
            }
        }
        true
    }

    #[inline(always)]
    fn to_array(self, a: __m512) -> [f32; 16] {
        let mut out = [0.0; 16];
        self.store(&mut out, a);
        out
    }
}
