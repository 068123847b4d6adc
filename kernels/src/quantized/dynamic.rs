//! Real numbers that become int8 by the range of each example, and products of them.
//!
//! Levels are those of ONNX's `DynamicQuantizeLinear` less 128: a range from the least to the most
//! number of an example, and with 0 in it, has 255 steps. Two numbers say what levels stand for: a
//! scale, and what stands for 0.

#[cfg(test)]
mod tests;

use super::conv::OFFSET;
use super::expect;
use super::tiles::{Epilogue, Products, Tile, unsigned};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::conv::geometry::Conv as Sizes;
use crate::gemm::Activation;
use crate::simd::body::{Body, dispatch};
use crate::simd::dots::{CHANNELS, Dots, Sums};

/// Numbers that say what levels of an example stand for.
pub const ENDS: usize = 2;

/// Steps from the least to the most level.
const STEPS: f32 = 255.0;

/// The levels of examples of `each` numbers, and what they stand for: [`ENDS`] numbers of each.
///
/// Ties are rounded to even. An example with a number that is not finite has levels of 0 and the
/// scale NaN.
///
/// # Errors
/// [`Error::Length`] if the lengths differ, [`Error::Value`] if `each` is 0.
pub fn levels(
    x: &[f32],
    each: usize,
    (levels, ends): (&mut [i8], &mut [f32]),
    parallel: &dyn Parallel,
) -> Result<()> {
    expect("levels", levels.len(), x.len())?;
    if each == 0 && !ends.is_empty() {
        return Err(Error::Value {
            argument: "each",
            expected: "examples of one number or more",
        });
    }
    expect(
        "ends",
        ends.len(),
        x.len().checked_div(each).unwrap_or(0) * ENDS,
    )?;
    expect("x", x.len(), ends.len() / ENDS * each)?;
    let chunk = chunk_len(parallel, ends.len(), ENDS, each);
    for_each_chunk(parallel, ends, chunk, &|start, ends| {
        let examples = x[start / ENDS * each..].chunks_exact(each);
        for (ends, x) in ends.as_chunks_mut().0.iter_mut().zip(examples) {
            *ends = dispatch(Ranged { x });
        }
    });
    let ends = &*ends;
    let chunk = chunk_len(parallel, levels.len(), 64, 2);
    for_each_chunk(parallel, levels, chunk, &|start, levels| {
        let (mut at, mut rest) = (start, levels);
        while !rest.is_empty() {
            let example = at / each;
            let count = ((example + 1) * each - at).min(rest.len());
            let (part, after) = rest.split_at_mut(count);
            dispatch(Leveled {
                x: &x[at..at + count],
                scale: ends[example * ENDS],
                zero: ends[example * ENDS + 1],
                levels: part,
            });
            at += count;
            rest = after;
        }
    });
    Ok(())
}

/// Scale and what stands for 0 of an example.
struct Ranged<'a> {
    x: &'a [f32],
}

impl Body for Ranged<'_> {
    type Output = [f32; ENDS];

    #[inline(always)]
    fn run(self) -> [f32; ENDS] {
        const LANES: usize = 32;
        let (mut low, mut high) = ([0.0_f32; LANES], [0.0_f32; LANES]);
        // 0 times a number that is not finite is NaN, which stays in a sum.
        let mut finite = [0.0_f32; LANES];
        let (wide, rest) = self.x.as_chunks::<LANES>();
        for x in wide {
            for i in 0..LANES {
                low[i] = if x[i] < low[i] { x[i] } else { low[i] };
                high[i] = if x[i] > high[i] { x[i] } else { high[i] };
                finite[i] += x[i] * 0.0;
            }
        }
        for &x in rest {
            low[0] = if x < low[0] { x } else { low[0] };
            high[0] = if x > high[0] { x } else { high[0] };
            finite[0] += x * 0.0;
        }
        let least = low.iter().fold(0.0_f32, |a, &b| a.min(b));
        let most = high.iter().fold(0.0_f32, |a, &b| a.max(b));
        if finite.iter().any(|x| x.is_nan()) {
            return [f32::NAN, 0.0];
        }
        let width = most - least;
        let scale = if width.is_finite() {
            width / STEPS
        } else {
            most / STEPS - least / STEPS
        };
        // Nothing but zeros, or numbers next to it.
        let scale = if scale > 0.0 { scale } else { 1.0 };
        let zero = whole((-least / scale).clamp(0.0, STEPS));
        [scale, (zero - OFFSET) as f32]
    }
}

/// A number of at most 2^22 rounded to the nearest, ties to even.
#[inline(always)]
fn whole(x: f32) -> i32 {
    // 1.5 * 2^23, of whose last bits the sum with a small number has that number rounded.
    const ROUNDER: f32 = 12_582_912.0;
    (x + ROUNDER).to_bits().cast_signed() - ROUNDER.to_bits().cast_signed()
}

/// Levels of numbers of one example.
struct Leveled<'a> {
    x: &'a [f32],
    scale: f32,
    zero: f32,
    levels: &'a mut [i8],
}

impl Body for Leveled<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        if self.scale.is_nan() {
            self.levels.fill(0);
            return;
        }
        let zero = self.zero as i32;
        let (low, high) = (-128.0 - self.zero, 127.0 - self.zero);
        for (level, x) in self.levels.iter_mut().zip(self.x) {
            let quotient = (x / self.scale).max(low).min(high);
            *level = (whole(quotient) + zero) as i8;
        }
    }
}

/// A convolution, or with one tap a matmul, of levels with int8 weights.
#[derive(Clone, Copy, Debug)]
pub struct Conv<'a> {
    /// Its sizes, without groups; padding is of what stands for 0.
    pub sizes: Sizes,
    /// As [`super::conv::Conv::filter`].
    pub filter: &'a [i8],
    /// Sums of the weights of each channel, for whole blocks.
    pub totals: &'a [i32],
}

/// What makes sums of products real numbers.
#[derive(Clone, Copy, Debug)]
pub struct Real<'a> {
    /// What the weights of each channel are multiplied by, for whole blocks.
    pub factors: &'a [f32],
    /// Is added: one number for each channel.
    pub bias: Option<&'a [f32]>,
    /// Is added: as many as results.
    pub residual: Option<&'a [f32]>,
    /// Comes last.
    pub activation: Activation,
}

/// Levels, and what they stand for: [`ENDS`] numbers of each example, or the same for all.
pub type Levels<'a> = (&'a [i8], &'a [f32]);

impl Conv<'_> {
    const fn products(&self) -> Products<'_> {
        Products {
            sizes: self.sizes,
            filter: self.filter,
        }
    }

    fn check(&self, (x, ends): Levels<'_>, out: usize) -> Result<usize> {
        let channels = self.products().check(x.len(), out)?;
        expect("totals", self.totals.len(), channels)?;
        if ends.len() != ENDS {
            expect("ends", ends.len(), self.sizes.batch * ENDS)?;
        }
        Ok(channels)
    }

    const fn begin<'a>(&'a self, ends: &'a [f32]) -> Begin<'a> {
        Begin {
            totals: self.totals,
            ends,
            pixels: self.sizes.y.output * self.sizes.x.output,
        }
    }

    /// Computes sums of `weight * (level - zero)`.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice does not fit the sizes, [`Error::Value`] for groups.
    pub fn sums(&self, x: Levels<'_>, out: &mut [i32], parallel: &dyn Parallel) -> Result<()> {
        self.check(x, out.len())?;
        let epilogue = Kept(self.begin(x.1));
        self.products().run(&epilogue, x.0, out, parallel);
        Ok(())
    }

    /// Computes `activation(sums * scale * factors + bias + residual)`.
    ///
    /// # Errors
    /// As [`Self::sums`].
    pub fn run(
        &self,
        x: Levels<'_>,
        real: Real<'_>,
        out: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let channels = self.check(x, out.len())?;
        expect("factors", real.factors.len(), channels)?;
        if let Some(bias) = real.bias {
            expect("bias", bias.len(), self.sizes.out_channels)?;
        }
        if let Some(residual) = real.residual {
            expect("residual", residual.len(), out.len())?;
        }
        let begin = self.begin(x.1);
        let epilogue = Scaled { begin, real };
        self.products().run(&epilogue, x.0, out, parallel);
        Ok(())
    }
}

/// What sums begin with: products of an example's level of 0.
#[derive(Clone, Copy)]
struct Begin<'a> {
    totals: &'a [i32],
    ends: &'a [f32],
    pixels: usize,
}

impl Begin<'_> {
    /// Scale and level of 0 of an example.
    #[inline(always)]
    fn of(&self, image: usize) -> (f32, i32) {
        let at = if self.ends.len() == ENDS {
            0
        } else {
            image * ENDS
        };
        (self.ends[at], self.ends[at + 1] as i32)
    }

    #[inline(always)]
    fn zero(&self, image: usize) -> u8 {
        unsigned(self.of(image).1 as i8)
    }

    #[inline(always)]
    fn begin(&self, sums: &mut [Sums], together: usize, first: usize, channel: usize) {
        let totals = &self.totals[channel..][..together * CHANNELS];
        for (row, sums) in sums.chunks_mut(together).enumerate() {
            let weight = -(self.of((first + row) / self.pixels).1 + OFFSET);
            for (sums, totals) in sums.iter_mut().zip(totals.as_chunks::<CHANNELS>().0) {
                for (sum, total) in sums.iter_mut().zip(totals) {
                    *sum = total.wrapping_mul(weight);
                }
            }
        }
    }
}

/// Sums that stay as they are.
struct Kept<'a>(Begin<'a>);

impl Epilogue for Kept<'_> {
    type Out = i32;

    #[inline(always)]
    fn zero(&self, image: usize) -> u8 {
        self.0.zero(image)
    }

    #[inline(always)]
    fn begin(&self, sums: &mut [Sums], together: usize, first: usize, channel: usize) {
        self.0.begin(sums, together, first, channel);
    }

    #[inline(always)]
    fn end(&self, _: Dots, sums: &[Sums], of: Tile, out: &mut [i32]) {
        let rows = sums.chunks(of.together);
        for (sums, out) in rows.zip(out.chunks_mut(of.outputs)) {
            let out = &mut out[of.channel..][..of.count()];
            out.copy_from_slice(&sums.as_flattened()[..of.count()]);
        }
    }
}

/// Sums that become real numbers.
struct Scaled<'a> {
    begin: Begin<'a>,
    real: Real<'a>,
}

impl Epilogue for Scaled<'_> {
    type Out = f32;

    #[inline(always)]
    fn zero(&self, image: usize) -> u8 {
        self.begin.zero(image)
    }

    #[inline(always)]
    fn begin(&self, sums: &mut [Sums], together: usize, first: usize, channel: usize) {
        self.begin.begin(sums, together, first, channel);
    }

    #[inline(always)]
    fn end(&self, _: Dots, sums: &[Sums], of: Tile, out: &mut [f32]) {
        dispatch(Scale {
            scaled: self,
            sums,
            of,
            out,
        });
    }

    #[inline(always)]
    fn finish(&self, out: &mut [f32]) {
        if let Some(function) = self.real.activation.map() {
            function(out);
        }
    }
}

/// Makes the sums of a tile real numbers.
struct Scale<'a> {
    scaled: &'a Scaled<'a>,
    sums: &'a [Sums],
    of: Tile,
    out: &'a mut [f32],
}

impl Body for Scale<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (Scaled { begin, real }, of) = (self.scaled, self.of);
        let count = of.count();
        let factors = &real.factors[of.channel..][..count];
        let rows = self.sums.chunks(of.together);
        for (row, (sums, out)) in rows.zip(self.out.chunks_mut(of.outputs)).enumerate() {
            let pixel = of.first + row;
            let scale = begin.of(pixel / begin.pixels).0;
            let out = &mut out[of.channel..][..count];
            let sums = &sums.as_flattened()[..count];
            for ((out, sum), factor) in out.iter_mut().zip(sums).zip(factors) {
                *out = *sum as f32 * (scale * factor);
            }
            if let Some(bias) = real.bias {
                add(out, &bias[of.channel..][..count]);
            }
            if let Some(residual) = real.residual {
                add(out, &residual[pixel * of.outputs + of.channel..][..count]);
            }
            if let Some((low, high)) = real.activation.clamp() {
                for out in out {
                    let x = if *out < low { low } else { *out };
                    *out = if x > high { high } else { x };
                }
            }
        }
    }
}

#[inline(always)]
fn add(out: &mut [f32], x: &[f32]) {
    for (out, x) in out.iter_mut().zip(x) {
        *out += x;
    }
}
