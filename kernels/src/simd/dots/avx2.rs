//! Depthwise convolutions and rescaling with AVX2.

use core::arch::x86_64::*;

use super::lines::{self, Channels};
use super::{CHANNELS, Deep, Ends, Factors, ONCE, PLAIN, REAL, Sums, TWICE};

/// The sums of channels 0 to 3 and 8 to 11, and those of the others: so are neighbours of 16 bits
/// joined in both halves of a vector, and packed again.
type Two = [__m256i; 2];

/// Its value is the proof that the processor has AVX2; `SAFETY: AVX2` refers to it.
#[derive(Clone, Copy)]
struct Avx2(());

/// As [`super::Dots::narrow`].
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn narrow<const HOW: u8>(
    sums: &[Sums],
    stride: usize,
    factors: Factors<'_>,
    ends: Ends,
    out: (&mut [i8], usize, usize),
) {
    lines::narrow::<_, HOW>(Avx2(()), sums, stride, factors, ends, out);
}

/// As [`lines::lines`].
///
/// # Safety
/// The processor has AVX2.
#[target_feature(enable = "avx2")]
pub unsafe fn lines<const PAIRS: usize, const HOW: u8>(
    of: &Deep<'_>,
    first: usize,
    out: &mut [i8],
) {
    lines::lines::<_, PAIRS, HOW>(Avx2(()), of, first, out);
}

/// Factors of a vector: of lanes with even numbers, and of those with odd ones.
#[derive(Clone, Copy)]
struct Factor {
    even: __m256i,
    odd: __m256i,
    /// What is added to products; if [`PLAIN`], also half of what is shifted out, and `zero`.
    more: Two,
    left: __m256i,
    right: __m256i,
    /// If [`ONCE`], the shifts of products.
    shifts: Two,
    zero: __m256i,
}

/// Factors of sixteen channels.
#[derive(Clone, Copy)]
pub struct Scale {
    factors: [Factor; 2],
    low: __m128i,
    high: __m128i,
}

impl Avx2 {
    #[inline(always)]
    fn factor<const HOW: u8>(self, multiplier: __m256i, shift: __m256i, zero: i32) -> Factor {
        // SAFETY: AVX2; registers only.
        unsafe {
            let none = _mm256_setzero_si256();
            let right = _mm256_max_epi32(_mm256_sub_epi32(none, shift), none);
            let zero = _mm256_set1_epi32(zero);
            let mut more = [_mm256_set1_epi64x(1 << 30); 2];
            let mut shifts = [none; 2];
            if HOW == PLAIN {
                let half = _mm256_srli_epi32::<1>(_mm256_sllv_epi32(_mm256_set1_epi32(1), right));
                let before = _mm256_add_epi32(half, _mm256_sllv_epi32(zero, right));
                // Above the 31 bits of a factor; the highest bit does not matter.
                let above = [before, _mm256_srli_epi64::<32>(before)];
                for (more, above) in more.iter_mut().zip(above) {
                    let above = _mm256_srli_epi64::<1>(_mm256_slli_epi64::<32>(above));
                    *more = _mm256_add_epi64(*more, above);
                }
            } else if HOW == ONCE {
                let by = _mm256_sub_epi32(_mm256_set1_epi32(31), shift);
                let low = _mm256_set1_epi64x(0xffff_ffff);
                shifts = [_mm256_and_si256(by, low), _mm256_srli_epi64::<32>(by)];
                let one = _mm256_set1_epi64x(1);
                for (more, by) in more.iter_mut().zip(shifts) {
                    *more = _mm256_srli_epi64::<1>(_mm256_sllv_epi64(one, by));
                }
            }
            Factor {
                even: multiplier,
                odd: _mm256_srli_epi64::<32>(multiplier),
                more,
                left: _mm256_max_epi32(shift, none),
                right,
                shifts,
                zero,
            }
        }
    }

    /// `zero`, and what `scaled`, `scaled_once` or `scaled_real` of `crate::quantized` makes of sums.
    #[inline(always)]
    fn scaled<const HOW: u8>(self, by: &Factor, x: __m256i) -> __m256i {
        // SAFETY: AVX2; registers only.
        unsafe {
            if HOW == REAL {
                // Far beyond int8, so that `zero` does not overflow.
                let (least, most) = (_mm256_set1_ps(-1e6), _mm256_set1_ps(1e6));
                let factor = _mm256_castsi256_ps(by.even);
                let product = _mm256_mul_ps(_mm256_cvtepi32_ps(x), factor);
                let held = _mm256_min_ps(_mm256_max_ps(product, least), most);
                return _mm256_add_epi32(_mm256_cvtps_epi32(held), by.zero);
            }
            let x = if HOW == TWICE {
                _mm256_sllv_epi32(x, by.left)
            } else {
                x
            };
            let odd = _mm256_srli_epi64::<32>(x);
            let even = _mm256_add_epi64(_mm256_mul_epi32(x, by.even), by.more[0]);
            let odd = _mm256_add_epi64(_mm256_mul_epi32(odd, by.odd), by.more[1]);
            if HOW == ONCE {
                // There is no shift of 64 bits with a sign: it is taken off before, and put back.
                let sign = _mm256_set1_epi64x(i64::MIN);
                let shifted = |x, by| {
                    let x = _mm256_srlv_epi64(_mm256_xor_si256(x, sign), by);
                    _mm256_sub_epi64(x, _mm256_srlv_epi64(sign, by))
                };
                let (even, odd) = (shifted(even, by.shifts[0]), shifted(odd, by.shifts[1]));
                let both = _mm256_blend_epi32::<0xaa>(even, _mm256_slli_epi64::<32>(odd));
                return _mm256_add_epi32(both, by.zero);
            }
            let (even, odd) = (_mm256_srli_epi64::<31>(even), _mm256_slli_epi64::<1>(odd));
            let high = _mm256_blend_epi32::<0xaa>(even, odd);
            if HOW == PLAIN {
                let high = _mm256_add_epi32(high, _mm256_srai_epi32::<31>(x));
                return _mm256_srav_epi32(high, by.right);
            }
            let all = _mm256_set1_epi32(-1);
            let mask = _mm256_xor_si256(_mm256_sllv_epi32(all, by.right), all);
            let below = _mm256_srai_epi32::<31>(high);
            let threshold = _mm256_sub_epi32(_mm256_srli_epi32::<1>(mask), below);
            let more = _mm256_cmpgt_epi32(_mm256_and_si256(high, mask), threshold);
            let rounded = _mm256_sub_epi32(_mm256_srav_epi32(high, by.right), more);
            _mm256_add_epi32(rounded, by.zero)
        }
    }

    /// Sixteen numbers of 32 bits.
    #[inline(always)]
    fn two(self, of: &Sums) -> Two {
        // SAFETY: AVX2; sixteen numbers.
        unsafe {
            let (a, b) = (
                _mm256_loadu_si256(of.as_ptr().cast()),
                _mm256_loadu_si256(of.as_ptr().add(8).cast()),
            );
            [
                _mm256_permute2x128_si256::<0x20>(a, b),
                _mm256_permute2x128_si256::<0x31>(a, b),
            ]
        }
    }
}

impl Channels for Avx2 {
    type Sums = Two;
    type Pair = Two;
    type Scale = Scale;

    #[inline(always)]
    fn sums(self, of: &Sums) -> Two {
        self.two(of)
    }

    #[inline(always)]
    fn pair(self, of: [&[i8; CHANNELS]; 2]) -> Two {
        // SAFETY: AVX2; sixteen weights each.
        unsafe { joined(of.map(|of| of.as_ptr())) }
    }

    #[inline(always)]
    unsafe fn add(self, sums: Two, x: [*const i8; 2], weights: Two) -> Two {
        // SAFETY: AVX2; by the caller, sixteen numbers each.
        unsafe {
            let [low, high] = joined(x);
            [
                _mm256_add_epi32(sums[0], _mm256_madd_epi16(low, weights[0])),
                _mm256_add_epi32(sums[1], _mm256_madd_epi16(high, weights[1])),
            ]
        }
    }

    #[inline(always)]
    fn scale<const HOW: u8>(self, factors: Factors<'_>, ends: Ends) -> Scale {
        let (multiplier, shift) = (self.two(factors.multiplier), self.two(factors.shift));
        let factor = |i: usize| self.factor::<HOW>(multiplier[i], shift[i], ends.zero);
        Scale {
            factors: [factor(0), factor(1)],
            // SAFETY: AVX2; registers only.
            low: unsafe { _mm_set1_epi8(ends.low) },
            // SAFETY: as above.
            high: unsafe { _mm_set1_epi8(ends.high) },
        }
    }

    #[inline(always)]
    fn store<const HOW: u8>(self, scale: &Scale, sums: Two, to: &mut [i8; CHANNELS]) {
        let low = self.scaled::<HOW>(&scale.factors[0], sums[0]);
        let high = self.scaled::<HOW>(&scale.factors[1], sums[1]);
        // SAFETY: AVX2; sixteen elements.
        unsafe {
            // Packing saturates to int8, and the ends are inside of that.
            let words = _mm256_packs_epi32(low, high);
            let (a, b) = (
                _mm256_castsi256_si128(words),
                _mm256_extracti128_si256::<1>(words),
            );
            let x = _mm_packs_epi16(a, b);
            let x = _mm_min_epi8(_mm_max_epi8(x, scale.low), scale.high);
            _mm_storeu_si128(to.as_mut_ptr().cast(), x);
        }
    }
}

/// Numbers of two taps beside each other, of 16 bits, in the order of [`Two`].
///
/// # Safety
/// The processor has AVX2; sixteen numbers can be read from both places on.
#[inline(always)]
unsafe fn joined(of: [*const i8; 2]) -> Two {
    // SAFETY: by the caller.
    unsafe {
        let [a, b] = of.map(|of| _mm256_cvtepi8_epi16(_mm_loadu_si128(of.cast())));
        [_mm256_unpacklo_epi16(a, b), _mm256_unpackhi_epi16(a, b)]
    }
}
