//! The 16-bit floats: from and to `f32`.
//!
//! Rounding is to the nearest, ties to even, on the integers of the representation: no step meets a
//! denormal `f32`, which the threads of an adapter may flush to 0.

use crate::base::dtype::DType;
use crate::simd::body::{Body, dispatch};

/// A float of 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Half {
    /// IEEE 754 binary16.
    F16,
    /// The upper half of a binary32.
    BF16,
}

/// Numbers that [`Half::keep`] works on at a time.
const KEPT: usize = 256;

impl Half {
    /// The format of an element type; `None` unless it is a float of 16 bits.
    #[must_use]
    pub const fn of(dtype: DType) -> Option<Self> {
        match dtype {
            DType::F16 => Some(Self::F16),
            DType::BF16 => Some(Self::BF16),
            _ => None,
        }
    }

    /// `out[i] = x[i]` of as many elements as both have.
    pub fn widen(self, x: &[u16], out: &mut [f32]) {
        match self {
            Self::F16 => {
                let done = vectors::widen(x, out);
                dispatch(Each(&x[done..], &mut out[done..], f16_to_f32));
            }
            Self::BF16 => dispatch(Each(x, out, bf16_to_f32)),
        }
    }

    /// `out[i] = x[i]`, rounded, of as many elements as both have. Beyond the largest number is
    /// infinity; NaN stays NaN.
    pub fn round(self, x: &[f32], out: &mut [u16]) {
        match self {
            Self::F16 => {
                let done = vectors::round(x, out);
                dispatch(Each(&x[done..], &mut out[done..], f32_to_f16));
            }
            Self::BF16 => dispatch(Each(x, out, f32_to_bf16)),
        }
    }

    /// Rounds numbers to those that the format has, as [`Half::round`] and [`Half::widen`] do.
    pub fn keep(self, x: &mut [f32]) {
        let mut bits = [0; KEPT];
        for part in x.chunks_mut(KEPT) {
            let bits = &mut bits[..part.len()];
            self.round(part, bits);
            self.widen(bits, part);
        }
    }

    /// As [`Half::round`], but towards 0.
    pub fn truncate(self, x: &[f32], out: &mut [u16]) {
        match self {
            Self::F16 => dispatch(Each(x, out, |x: f32| f32_to_f16(cut(x, 13)))),
            Self::BF16 => dispatch(Each(x, out, f32_to_bf16_down)),
        }
    }
}

/// What the processor's own instructions do of a slice: so many of its first elements.
mod vectors {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    pub(super) fn widen(x: &[u16], out: &mut [f32]) -> usize {
        crate::simd::f16::widen(crate::simd::body::level(), x, out)
    }

    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    pub(super) fn round(x: &[f32], out: &mut [u16]) -> usize {
        crate::simd::f16::round(crate::simd::body::level(), x, out)
    }

    #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
    pub(super) fn widen(_: &[u16], _: &mut [f32]) -> usize {
        0
    }

    #[cfg(not(all(feature = "std", target_arch = "x86_64")))]
    pub(super) fn round(_: &[f32], _: &mut [u16]) -> usize {
        0
    }
}

/// A function of each element.
struct Each<'a, T, U, F>(&'a [T], &'a mut [U], F);

impl<T: Copy, U, F: Fn(T) -> U> Body for Each<'_, T, U, F> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(x, out, function) = self;
        for (out, &x) in out.iter_mut().zip(x) {
            *out = function(x);
        }
    }
}

/// Without the last bits of the mantissa; NaN as it is.
#[inline(always)]
fn cut(x: f32, bits: u32) -> f32 {
    let kept = f32::from_bits(x.to_bits() & (u32::MAX << bits));
    if x.is_nan() { x } else { kept }
}

#[inline(always)]
fn bf16_to_f32(x: u16) -> f32 {
    f32::from_bits(u32::from(x) << 16)
}

#[inline(always)]
fn f32_to_bf16(x: f32) -> u16 {
    let bits = x.to_bits();
    let rounded = bits.wrapping_add(0x7FFF + (bits >> 16 & 1)) >> 16;
    (if x.is_nan() { 0x7FC0 } else { rounded }) as u16
}

#[inline(always)]
fn f32_to_bf16_down(x: f32) -> u16 {
    let upper = (x.to_bits() >> 16) as u16;
    if x.is_nan() {
        upper & 0x8000 | 0x7FC0
    } else {
        upper
    }
}

/// The bits of 2^-14, the smallest normal number of binary16.
const LEAST: u32 = 113 << 23;

#[inline(always)]
fn f16_to_f32(x: u16) -> f32 {
    let x = u32::from(x);
    let magnitude = (x & 0x7FFF) << 13;
    let normal = magnitude + (112 << 23);
    // The mantissa behind the exponent of the smallest normal number, less that number.
    let small = f32::from_bits(magnitude + LEAST) - f32::from_bits(LEAST);
    // The exponent of infinity and NaN; NaN becomes quiet.
    let quiet = if magnitude > 0x1F << 23 { 1 << 22 } else { 0 };
    let huge = (normal + (112 << 23)) | quiet;
    let bits = if magnitude >= 0x1F << 23 {
        huge
    } else if magnitude < 1 << 23 {
        small.to_bits()
    } else {
        normal
    };
    f32::from_bits(bits | (x & 0x8000) << 16)
}

#[inline(always)]
fn f32_to_f16(x: f32) -> u16 {
    let bits = x.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    let normal = magnitude
        .wrapping_sub(112 << 23)
        .wrapping_add(0xFFF + (magnitude >> 13 & 1))
        >> 13;
    // The last bit of 0.5 is the last one of a denormal binary16: the addition rounds.
    let small = (f32::from_bits(magnitude) + 0.5).to_bits() - 0.5_f32.to_bits();
    let nan = 0x7E00 | magnitude >> 13 & 0x3FF;
    let narrow = if magnitude > 0x7F80_0000 {
        nan
    } else if magnitude >= 143 << 23 {
        0x7C00
    } else if magnitude < LEAST {
        small
    } else {
        normal
    };
    (narrow | bits >> 16 & 0x8000) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::body::forced::results;

    const FORMATS: [(Half, u32, i32); 2] = [(Half::F16, 10, -14), (Half::BF16, 7, -126)];

    /// The value of a finite pattern, by its definition.
    fn value(bits: u16, mantissa: u32, least: i32) -> f64 {
        let exponent = i32::from(bits & 0x7FFF) >> mantissa;
        let fraction = f64::from(bits & ((1 << mantissa) - 1)) / f64::from(1 << mantissa);
        let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
        let power = |exponent: i32| 2.0_f64.powi(exponent);
        sign * match exponent {
            0 => fraction * power(least),
            _ => (1.0 + fraction) * power(exponent - 1 + least),
        }
    }

    fn rounded(format: Half, x: f32) -> u16 {
        let all = results(|| {
            let mut out = [0xAAAA; 19];
            format.round(&[x; 19], &mut out);
            assert!(out.iter().all(|&bits| bits == out[0]));
            out[0]
        });
        assert!(all.iter().all(|&bits| bits == all[0]));
        all[0]
    }

    #[test]
    fn every_pattern_is_its_value_and_comes_back() {
        for (format, mantissa, least) in FORMATS {
            let patterns: Vec<u16> = (0..=u16::MAX).collect();
            for wide in results(|| {
                let mut wide = vec![0.0; patterns.len()];
                format.widen(&patterns, &mut wide);
                wide
            }) {
                let mut back = vec![0; wide.len()];
                format.round(&wide, &mut back);
                let infinite = (1 << 15) - (1 << mantissa);
                for (&bits, (&wide, &back)) in patterns.iter().zip(wide.iter().zip(&back)) {
                    let magnitude = bits & 0x7FFF;
                    if magnitude > infinite {
                        assert!(wide.is_nan());
                        assert!(back & 0x7FFF > infinite);
                        continue;
                    }
                    assert_eq!(back, bits);
                    if magnitude == infinite {
                        assert_eq!(wide.abs(), f32::INFINITY);
                    } else {
                        assert_eq!(f64::from(wide), value(bits, mantissa, least));
                    }
                    assert_eq!(wide.is_sign_negative(), bits >> 15 == 1);
                }
            }
        }
    }

    #[test]
    fn what_lies_between_goes_to_the_nearer_and_ties_to_even() {
        for (format, mantissa, least) in FORMATS {
            let largest = (1_u16 << 15) - (1 << mantissa) - 1;
            // All pairs of neighbours of binary16; of the other format those around each power.
            for bits in (0..largest).filter(|bits| mantissa == 10 || (bits + 1) % 64 < 3) {
                let low = value(bits, mantissa, least);
                let high = value(bits + 1, mantissa, least);
                let middle = low + (high - low) / 2.0;
                let even = bits + bits % 2;
                // Below the normal f32, its own steps are not fine enough.
                if middle < f64::from(f32::MIN_POSITIVE) {
                    continue;
                }
                let middle = middle as f32;
                let below = f32::from_bits(middle.to_bits() - 1);
                let above = f32::from_bits(middle.to_bits() + 1);
                for (x, expected) in [(below, bits), (middle, even), (above, bits + 1)] {
                    assert_eq!(rounded(format, x), expected, "{format:?} {x:e}");
                    assert_eq!(rounded(format, -x), expected | 0x8000);
                    let mut cut = [0];
                    format.truncate(&[x], &mut cut);
                    // Towards 0, whatever is nearer.
                    let exact = bits >= 1 << mantissa;
                    assert!(!exact || cut[0] == bits, "{format:?} {x:e}");
                }
            }
            assert_eq!(rounded(format, f32::MAX), largest + 1);
            assert_eq!(rounded(format, f32::INFINITY), largest + 1);
        }
        // Half a step beyond the largest number is infinity, and less is not.
        assert_eq!(rounded(Half::F16, 65_519.996), 0x7BFF);
        assert_eq!(rounded(Half::F16, 65_520.0), 0x7C00);
        assert_eq!(rounded(Half::F16, f32::from_bits(1)), 0);
        assert_eq!(rounded(Half::F16, -f32::from_bits(1)), 0x8000);
    }

    #[test]
    fn nan_is_that_of_tensorflow() {
        let nans = [0x7FC0_0000, 0xFFC0_0000, 0x7F80_0001, 0x7FC1_2345].map(f32::from_bits);
        let of = |format| nans.map(|x| rounded(format, x));
        assert_eq!(of(Half::F16), [0x7E00, 0xFE00, 0x7E00, 0x7E09]);
        assert_eq!(of(Half::BF16), [0x7FC0; 4]);
    }
}
