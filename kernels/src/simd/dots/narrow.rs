//! Sums of 32 bits become int8 by factors, in vectors of 512 bits.

use core::arch::x86_64::*;

use super::{CHANNELS, Ends, Factors, Sums};

/// The factors of sixteen sums, as vectors: of lanes with even numbers, and of those with odd ones.
#[derive(Clone, Copy)]
pub struct Scale {
    even: __m512i,
    odd: __m512i,
    left: __m512i,
    right: __m512i,
    mask: __m512i,
    half: __m512i,
}

impl Scale {
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn new(multiplier: __m512i, shift: __m512i) -> Self {
        let none = _mm512_setzero_si512();
        let right = _mm512_max_epi32(_mm512_sub_epi32(none, shift), none);
        let all = _mm512_set1_epi32(-1);
        let mask = _mm512_xor_si512(_mm512_sllv_epi32(all, right), all);
        Self {
            even: multiplier,
            odd: _mm512_srli_epi64::<32>(multiplier),
            left: _mm512_max_epi32(shift, none),
            right,
            mask,
            half: _mm512_srli_epi32::<1>(mask),
        }
    }

    /// As `scaled` of `crate::quantized`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    pub fn of(&self, x: __m512i) -> __m512i {
        let x = _mm512_sllv_epi32(x, self.left);
        let round = _mm512_set1_epi64(1 << 30);
        let even = _mm512_add_epi64(_mm512_mul_epi32(x, self.even), round);
        let x = _mm512_srli_epi64::<32>(x);
        let odd = _mm512_add_epi64(_mm512_mul_epi32(x, self.odd), round);
        let (even, odd) = (_mm512_srli_epi64::<31>(even), _mm512_slli_epi64::<1>(odd));
        let high = _mm512_mask_blend_epi32(0xaaaa, even, odd);
        let rest = _mm512_and_si512(high, self.mask);
        let threshold = _mm512_sub_epi32(self.half, _mm512_srai_epi32::<31>(high));
        let more = _mm512_cmpgt_epi32_mask(rest, threshold);
        let shifted = _mm512_srav_epi32(high, self.right);
        _mm512_mask_sub_epi32(shifted, more, shifted, _mm512_set1_epi32(-1))
    }
}

/// Makes the sums of rows and one block int8, as [`super::Dots::narrow`] says.
///
/// # Safety
/// The processor has AVX-512 F, BW, DQ and VL; `count`, at most 16, elements of each row of `out`
/// can be written.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub unsafe fn narrow(
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
    let scale = Scale::new(multiplier, shift);
    let zero = _mm512_set1_epi32(ends.zero);
    let low = _mm512_set1_epi32(i32::from(ends.low));
    let high = _mm512_set1_epi32(i32::from(ends.high));
    let mask = (u32::MAX >> (32 - count.min(CHANNELS))) as u16;
    let to = out.as_mut_ptr();
    for (row, sums) in sums.iter().step_by(stride).enumerate() {
        // SAFETY: sixteen sums.
        let sums = unsafe { _mm512_loadu_si512(sums.as_ptr().cast()) };
        let x = _mm512_add_epi32(scale.of(sums), zero);
        let x = _mm512_min_epi32(_mm512_max_epi32(x, low), high);
        // SAFETY: the mask has `count` bits, and so many elements of the row are there.
        unsafe {
            let to = to.add(row * pitch);
            if count == CHANNELS {
                _mm_storeu_si128(to.cast(), _mm512_cvtepi32_epi8(x));
            } else {
                _mm_mask_storeu_epi8(to, mask, _mm512_cvtepi32_epi8(x));
            }
        }
    }
}
