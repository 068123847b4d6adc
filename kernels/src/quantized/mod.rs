//! Compute between int8 numbers that stand for real ones, bit for bit as TFLite's reference kernels.
//!
//! A number `q` stands for `scale * (q - zero)`. Sums are of `i32` and wrap. A sum becomes int8 by a
//! factor that is an integer of 31 bits and a power of two: [`scaled`] and [`scaled_once`].

pub mod cast;
pub mod conv;
pub mod depthwise;
pub mod pair;
pub mod pool;
pub mod softmax;
#[cfg(test)]
mod tests;

use crate::base::error::{Error, Result};
use crate::simd::dots::Ends;

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
    /// Factors.
    pub multiplier: &'a [i32],
    /// Their powers of two, at most 30 to the left and 31 to the right.
    pub shift: &'a [i32],
    /// Where the results lie.
    pub range: Range,
    /// Whether a sum is rounded once ([`scaled_once`]) or twice ([`scaled`]).
    pub once: bool,
}

impl Scaling<'_> {
    fn check(&self, channels: usize) -> Result<()> {
        expect("multiplier", self.multiplier.len(), channels)?;
        expect("shift", self.shift.len(), channels)?;
        if self.shift.iter().all(|shift| SHIFTS.contains(shift)) {
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
        let channels = first..first + out.len();
        let (multiplier, shift) = (&self.multiplier[channels.clone()], &self.shift[channels]);
        let (sums, range, once) = (&sums[..out.len()], self.range, self.once);
        let (wide, out) = out.as_chunks_mut::<LANES>();
        let (wide_sums, sums) = sums.as_chunks::<LANES>();
        let (wide_multiplier, multiplier) = multiplier.as_chunks::<LANES>();
        let (wide_shift, shift) = shift.as_chunks::<LANES>();
        let factors = wide_multiplier.iter().zip(wide_shift);
        for ((out, sums), (multiplier, shift)) in wide.iter_mut().zip(wide_sums).zip(factors) {
            *out =
                core::array::from_fn(|i| range.hold(one(once, sums[i], multiplier[i], shift[i])));
        }
        for (i, out) in out.iter_mut().enumerate() {
            *out = range.hold(one(once, sums[i], multiplier[i], shift[i]));
        }
    }

    fn ends(&self) -> Ends {
        let Range { zero, low, high } = self.range;
        Ends { zero, low, high }
    }
}

/// [`scaled`], or [`scaled_once`].
#[inline(always)]
const fn one(once: bool, x: i32, multiplier: i32, shift: i32) -> i32 {
    if once {
        scaled_once(x, multiplier, shift)
    } else {
        scaled(x, multiplier, shift)
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
