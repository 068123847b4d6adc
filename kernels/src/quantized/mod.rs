//! Compute between int8 numbers that stand for real ones, bit for bit as TFLite's reference kernels.
//!
//! A number `q` stands for `scale * (q - zero)`. Sums are of `i32` and wrap. A sum becomes int8 by a
//! factor that is an integer of 31 bits and a power of two: [`scaled`] and [`scaled_once`].

pub mod cast;
pub mod conv;
pub mod depthwise;
pub mod dynamic;
pub mod pair;
pub mod pool;
pub mod softmax;
#[cfg(test)]
mod tests;
mod tiles;

use crate::base::error::{Error, Result};
use crate::simd::dots::{Ends, Rounding};

/// Powers of two that a factor may have: more to the left leave nothing, more to the right neither.
const SHIFTS: core::ops::RangeInclusive<i32> = -31..=30;

/// `x * multiplier * 2^(shift - 31)`: the product is rounded to the nearest, ties up, and then the
/// shift to the right to the nearest, ties away from zero.
#[inline(always)]
#[must_use]
pub const fn scaled(x: i32, multiplier: i32, shift: i32) -> i32 {
    let (left, right) = if shift > 0 { (shift, 0) } else { (0, -shift) };
    let x = x.wrapping_shl(left.cast_unsigned());
    let high = ((x as i64 * multiplier as i64 + (1 << 30)) >> 31) as i32;
    // Of 32 bits, so that a vector holds as many as of `x`.
    let mask = !(u32::MAX << right).cast_signed();
    let rest = high & mask;
    let threshold = (mask >> 1) + (high < 0) as i32;
    (high >> right) + (rest > threshold) as i32
}

/// As [`scaled`], rounded once to the nearest, ties up: so TFLite does it after a matmul.
#[inline(always)]
#[must_use]
pub const fn scaled_once(x: i32, multiplier: i32, shift: i32) -> i32 {
    let shift = 31 - shift;
    ((x as i64 * multiplier as i64 + (1_i64 << (shift - 1))) >> shift) as i32
}

/// `x / count`, rounded to the nearest, ties away from zero; `count` is positive.
#[inline(always)]
const fn divided(x: i32, count: i32) -> i32 {
    let half = count / 2;
    (if x > 0 { x + half } else { x - half }) / count
}

/// `x` rounded to the nearest integer, ties away from zero; 0 for NaN.
#[inline(always)]
fn rounded(x: f32) -> i32 {
    // The largest number below a half: with a half, what lies just below one would reach it.
    const HALF: f32 = 0.499_999_97;
    (x + HALF.copysign(x)) as i32
}

/// `x * factor` in f32, rounded to the nearest, ties to even, and held between two numbers that are
/// less than 2^20 from 0: so onnxruntime does it.
#[inline(always)]
#[must_use]
pub fn scaled_real(x: i32, factor: f32, (low, high): (i32, i32)) -> i32 {
    // 1.5 * 2^23, of whose last bits the sum with a small number has that number rounded.
    const ROUNDER: f32 = 12_582_912.0;
    let product = (x as f32 * factor).max(low as f32).min(high as f32);
    (product + ROUNDER).to_bits().cast_signed() - ROUNDER.to_bits().cast_signed()
}

/// How sums become int8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rescaling {
    /// By [`scaled_once`].
    Once,
    /// By [`scaled`].
    Twice,
    /// By [`scaled_real`].
    Real,
}

/// Sums that become int8 together.
const LANES: usize = 16;

/// Where results lie: what stands for 0 in them, and their ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// What stands for 0.
    pub zero: i32,
    /// The least.
    pub low: i8,
    /// The most.
    pub high: i8,
}

impl Range {
    /// All of int8, with what stands for 0.
    #[must_use]
    pub const fn all(zero: i32) -> Self {
        Self {
            zero,
            low: i8::MIN,
            high: i8::MAX,
        }
    }

    #[inline(always)]
    fn hold(self, x: i32) -> i8 {
        // One of both comes first where `low` is more than `high`, as in TFLite.
        x.wrapping_add(self.zero)
            .max(i32::from(self.low))
            .min(i32::from(self.high)) as i8
    }
}

/// How sums of products of each output channel become int8.
#[derive(Clone, Copy, Debug)]
pub struct Scaling<'a> {
    /// Factors, from 0 to 2^31 - 1; if [`Rescaling::Real`], the bits of those of f32.
    pub multiplier: &'a [i32],
    /// Their powers of two, at most 30 to the left and 31 to the right; those of f32 have none.
    pub shift: &'a [i32],
    /// Where the results lie.
    pub range: Range,
    /// How they are rounded.
    pub rescaling: Rescaling,
}

impl Scaling<'_> {
    fn check(&self, channels: usize) -> Result<()> {
        expect("multiplier", self.multiplier.len(), channels)?;
        expect("shift", self.shift.len(), channels)?;
        let real = self.rescaling == Rescaling::Real;
        // The ends of all, as a loop without a way out is one over vectors.
        let ends = (0, 0);
        let widen = |(low, high): (i32, i32), &x: &i32| (low.min(x), high.max(x));
        let (low, high) = self.shift.iter().fold(ends, widen);
        if real || (SHIFTS.contains(&low) && SHIFTS.contains(&high)) {
            return Ok(());
        }
        Err(Error::Value {
            argument: "shift",
            expected: "shifts from -31 to 30",
        })
    }

    /// Makes sums of channels from `first` on int8.
    #[inline(always)]
    fn store(&self, sums: &[i32], first: usize, out: &mut [i8]) {
        let range = self.range;
        match self.rescaling {
            Rescaling::Once => {
                self.store_by(sums, first, out, |x, m, s| range.hold(scaled_once(x, m, s)));
            }
            Rescaling::Twice => {
                self.store_by(sums, first, out, |x, m, s| range.hold(scaled(x, m, s)));
            }
            Rescaling::Real => {
                let Range { zero, low, high } = range;
                let ends = (i32::from(low) - zero, i32::from(high) - zero);
                self.store_by(sums, first, out, |x, factor, _| {
                    let factor = f32::from_bits(factor.cast_unsigned());
                    (scaled_real(x, factor, ends) + zero) as i8
                });
            }
        }
    }

    #[inline(always)]
    fn store_by(
        &self,
        sums: &[i32],
        first: usize,
        out: &mut [i8],
        one: impl Fn(i32, i32, i32) -> i8,
    ) {
        let channels = first..first + out.len();
        let (multiplier, shift) = (&self.multiplier[channels.clone()], &self.shift[channels]);
        let sums = &sums[..out.len()];
        let (wide, out) = out.as_chunks_mut::<LANES>();
        let (wide_sums, sums) = sums.as_chunks::<LANES>();
        let (wide_multiplier, multiplier) = multiplier.as_chunks::<LANES>();
        let (wide_shift, shift) = shift.as_chunks::<LANES>();
        let factors = wide_multiplier.iter().zip(wide_shift);
        for ((out, sums), (multiplier, shift)) in wide.iter_mut().zip(wide_sums).zip(factors) {
            *out = core::array::from_fn(|i| one(sums[i], multiplier[i], shift[i]));
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = one(sums[i], multiplier[i], shift[i]);
        }
    }

    fn ends(&self) -> Ends {
        let Range { zero, low, high } = self.range;
        Ends { zero, low, high }
    }

    /// The rounding of bodies, of sums of at most `products` products and a bias, and of the first
    /// channels.
    fn rounding(&self, bias: &[i32], products: usize, channels: usize) -> Rounding {
        match self.rescaling {
            Rescaling::Once => Rounding::Once,
            Rescaling::Real => Rounding::Real,
            Rescaling::Twice => Rounding::of(
                &bias[..channels],
                (&self.multiplier[..channels], &self.shift[..channels]),
                products,
                self.ends(),
            ),
        }
    }
}

fn expect(argument: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(Error::Length {
        argument,
        found,
        expected,
    })
}
