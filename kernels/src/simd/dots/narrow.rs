//! Sums of 32 bits become int8 by factors, in vectors of 512 bits.

use core::arch::x86_64::*;

use super::{CHANNELS, Ends, Factors, ONCE, PLAIN, REAL, Sums, TWICE};

/// The factors of sixteen sums, as vectors: of lanes with even numbers, and of those with odd ones.
///
/// If [`PLAIN`], for sums and factors as [`super::plain`] says, one addition does both roundings and
/// adds `zero`: a sum below 0 may lose one before the shift also where the product rounds to 0, as
/// half of what is shifted out is at least one.
#[derive(Clone, Copy)]
pub struct Scale<const HOW: u8> {
    even: __m512i,
    odd: __m512i,
    /// What is added to products.
    more: [__m512i; 2],
    left: __m512i,
    right: __m512i,
    /// If [`ONCE`], the shifts of products.
    shifts: [__m512i; 2],
    mask: __m512i,
    half: __m512i,
    zero: __m512i,
}

impl<const HOW: u8> Scale<HOW> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn new(multiplier: __m512i, shift: __m512i, zero: i32) -> Self {
        let none = _mm512_setzero_si512();
        let right = _mm512_max_epi32(_mm512_sub_epi32(none, shift), none);
        let all = _mm512_set1_epi32(-1);
        let mask = _mm512_xor_si512(_mm512_sllv_epi32(all, right), all);
        let zero = _mm512_set1_epi32(zero);
        // Half of what is shifted out, and `zero` before the shift: above the 31 bits of a factor.
        let half = _mm512_sub_epi32(mask, _mm512_srli_epi32::<1>(mask));
        let before = _mm512_add_epi32(half, _mm512_sllv_epi32(zero, right));
        let round = _mm512_set1_epi64(1 << 30);
        let above = |x| _mm512_srai_epi64::<1>(_mm512_slli_epi64::<32>(x));
        let mut more = [round; 2];
        let mut shifts = [none; 2];
        if HOW == PLAIN {
            more = [
                _mm512_add_epi64(above(before), round),
                _mm512_add_epi64(above(_mm512_srli_epi64::<32>(before)), round),
            ];
        } else if HOW == ONCE {
            let by = _mm512_sub_epi32(_mm512_set1_epi32(31), shift);
            let low = _mm512_set1_epi64(0xffff_ffff);
            shifts = [_mm512_and_si512(by, low), _mm512_srli_epi64::<32>(by)];
            for (more, by) in more.iter_mut().zip(shifts) {
                *more = _mm512_srli_epi64::<1>(_mm512_sllv_epi64(_mm512_set1_epi64(1), by));
            }
        }
        Self {
            even: multiplier,
            odd: _mm512_srli_epi64::<32>(multiplier),
            more,
            left: _mm512_max_epi32(shift, none),
            right,
            shifts,
            mask,
            half: _mm512_srli_epi32::<1>(mask),
            zero,
        }
    }

    /// `zero`, and what `scaled`, `scaled_once` or `scaled_real` of `crate::quantized` makes of a sum.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn of(&self, x: __m512i) -> __m512i {
        if HOW == REAL {
            // Far beyond int8, so that `zero` does not overflow.
            let (least, most) = (_mm512_set1_ps(-1e6), _mm512_set1_ps(1e6));
            let product = _mm512_mul_ps(_mm512_cvtepi32_ps(x), _mm512_castsi512_ps(self.even));
            let held = _mm512_min_ps(_mm512_max_ps(product, least), most);
            return _mm512_add_epi32(_mm512_cvtps_epi32(held), self.zero);
        }
        let x = if HOW == TWICE {
            _mm512_sllv_epi32(x, self.left)
        } else {
            x
        };
        let even = _mm512_add_epi64(_mm512_mul_epi32(x, self.even), self.more[0]);
        let next = _mm512_srli_epi64::<32>(x);
        let odd = _mm512_add_epi64(_mm512_mul_epi32(next, self.odd), self.more[1]);
        if HOW == ONCE {
            let even = _mm512_srav_epi64(even, self.shifts[0]);
            let odd = _mm512_slli_epi64::<32>(_mm512_srav_epi64(odd, self.shifts[1]));
            return _mm512_add_epi32(_mm512_mask_blend_epi32(0xaaaa, even, odd), self.zero);
        }
        let (even, odd) = (_mm512_srli_epi64::<31>(even), _mm512_slli_epi64::<1>(odd));
        let high = _mm512_mask_blend_epi32(0xaaaa, even, odd);
        if HOW == PLAIN {
            let high = _mm512_add_epi32(high, _mm512_srai_epi32::<31>(x));
            return _mm512_srav_epi32(high, self.right);
        }
        let rest = _mm512_and_si512(high, self.mask);
        let threshold = _mm512_sub_epi32(self.half, _mm512_srai_epi32::<31>(high));
        let more = _mm512_cmpgt_epi32_mask(rest, threshold);
        let shifted = _mm512_srav_epi32(high, self.right);
        let rounded = _mm512_mask_sub_epi32(shifted, more, shifted, _mm512_set1_epi32(-1));
        _mm512_add_epi32(rounded, self.zero)
    }
}

/// Makes the sums of rows and one block int8, as [`super::Dots::narrow`] says.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ and VL; `count`, at most 16, elements of each row of `out`
/// can be written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub unsafe fn narrow<const HOW: u8>(
    sums: &[Sums],
    stride: usize,
    factors: Factors<'_>,
    ends: Ends,
    (out, pitch, count): (&mut [i8], usize, usize),
) {
    // SAFETY: sixteen of each.
    let (multiplier, shift) = unsafe {
        (
            _mm512_loadu_si512(factors.multiplier.as_ptr().cast()),
            _mm512_loadu_si512(factors.shift.as_ptr().cast()),
        )
    };
    let scale = Scale::<HOW>::new(multiplier, shift, ends.zero);
    let low = _mm512_set1_epi8(ends.low);
    let high = _mm512_set1_epi8(ends.high);
    let mask = (u32::MAX >> (32 - count.min(CHANNELS))) as u16;
    let order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    let rows = sums.len().div_ceil(stride);
    for first in (0..rows).step_by(4) {
        let together = (rows - first).min(4);
        let mut x = [_mm512_setzero_si512(); 4];
        for (row, x) in x.iter_mut().take(together).enumerate() {
            let sums = &sums[(first + row) * stride];
            // SAFETY: sixteen sums.
            *x = scale.of(unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) });
        }
        // Packing saturates to int8, and the ends are inside of that.
        let (one, two) = (
            _mm512_packs_epi32(x[0], x[1]),
            _mm512_packs_epi32(x[2], x[3]),
        );
        let all = _mm512_packs_epi16(one, two);
        let all = _mm512_min_epi8(_mm512_max_epi8(all, low), high);
        // Each lane has four channels of each row: those of a row go beside each other.
        let all = _mm512_permutexvar_epi32(order, all);
        let parts = [
            _mm512_castsi512_si128(all),
            _mm512_extracti32x4_epi32::<1>(all),
            _mm512_extracti32x4_epi32::<2>(all),
            _mm512_extracti32x4_epi32::<3>(all),
        ];
        for (row, part) in parts.into_iter().take(together).enumerate() {
            let to = out.as_mut_ptr().wrapping_add((first + row) * pitch);
            // SAFETY: `count` elements of the row, as many as the mask has bits.
            unsafe {
                if count == CHANNELS {
                    _mm_storeu_si128(to.cast(), part);
                } else {
                    _mm_mask_storeu_epi8(to, mask, part);
                }
            }
        }
    }
}
