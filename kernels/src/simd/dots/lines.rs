//! Depthwise convolutions and rescaling, for instruction sets that take sixteen channels at a time.

use super::{CHANNELS, Deep, Ends, Factors, Sums};

/// Pairs of taps of a filter of 3 x 3, and at most.
pub const FEW: usize = 5;
pub const PAIRS: usize = 13;

/// Sums of sixteen channels, in some order of lanes. A value of an implementing type is the proof
/// that the processor has the instructions.
pub trait Channels: Copy {
    /// The sums.
    type Sums: Copy;
    /// The weights of two taps.
    type Pair: Copy;
    /// How sums become int8.
    type Scale: Copy;

    /// Sums in the order of channels.
    fn sums(self, of: &Sums) -> Self::Sums;
    /// Weights in the order of channels.
    fn pair(self, of: [&[i8; CHANNELS]; 2]) -> Self::Pair;
    /// Adds the products of the weights with sixteen numbers from two places on.
    ///
    /// # Safety
    /// They can be read.
    unsafe fn add(self, sums: Self::Sums, x: [*const i8; 2], weights: Self::Pair) -> Self::Sums;
    /// Prepares factors; `HOW` is a [`super::Rounding`].
    fn scale<const HOW: u8>(self, factors: Factors<'_>, ends: Ends) -> Self::Scale;
    /// Writes the sums as int8, in the order of channels.
    fn store<const HOW: u8>(self, scale: &Self::Scale, sums: Self::Sums, to: &mut [i8; CHANNELS]);
}

/// Makes the sums of rows and one block int8, as [`super::Dots::narrow`] says.
#[inline(always)]
pub fn narrow<V: Channels, const HOW: u8>(
    v: V,
    sums: &[Sums],
    stride: usize,
    factors: Factors<'_>,
    ends: Ends,
    (out, pitch, count): (&mut [i8], usize, usize),
) {
    let scale = v.scale::<HOW>(factors, ends);
    for (row, sums) in sums.iter().step_by(stride).enumerate() {
        let sums = v.sums(sums);
        let out = &mut out[row * pitch..][..count];
        if let Some(out) = out.first_chunk_mut() {
            v.store::<HOW>(&scale, sums, out);
        } else {
            let mut all = [0; CHANNELS];
            v.store::<HOW>(&scale, sums, &mut all);
            out.copy_from_slice(&all[..count]);
        }
    }
}

/// Where the taps of a filter lie in an image, from a pixel on.
struct Places<const PAIRS: usize> {
    /// Of taps whose pixels are all there: elements after the first one.
    offsets: [[usize; 2]; PAIRS],
    /// Of the taps of a line in its column 0, and how many elements they move in each column.
    starts: [[*const i8; 2]; PAIRS],
    steps: [[usize; 2]; PAIRS],
}

/// Computes neighbouring lines, as [`super::Dots::deep`] says, of at most `2 * PAIRS` taps and of
/// at least sixteen channels.
#[inline(always)]
pub fn lines<V: Channels, const PAIRS: usize, const HOW: u8>(
    v: V,
    of: &Deep<'_>,
    first: usize,
    out: &mut [i8],
) {
    let (y, x, channels) = (of.y, of.x, of.channels);
    let taps = y.size * x.size;
    assert!(taps <= 2 * PAIRS && channels >= CHANNELS);
    let zeros = [of.zero; CHANNELS];
    let (image, line) = (y.input * x.input * channels, x.output * channels);
    // Of channels that are computed twice, both results are the same.
    let blocks = (0..channels)
        .step_by(CHANNELS)
        .map(|from| from.min(channels - CHANNELS));
    let mut places = Places::<PAIRS> {
        offsets: [[0; 2]; PAIRS],
        starts: [[zeros.as_ptr(); 2]; PAIRS],
        steps: [[0; 2]; PAIRS],
    };
    for tap in 0..taps {
        let (row, column) = (tap / x.size * y.dilation, tap % x.size * x.dilation);
        places.offsets[tap / 2][tap % 2] = (row * x.input + column) * channels;
    }
    for from in blocks {
        let (weights, bias) = prepared::<V, PAIRS>(v, of, from);
        let scale = v.scale::<HOW>(
            Factors {
                multiplier: sixteen(&of.multiplier[from..]),
                shift: sixteen(&of.shift[from..]),
            },
            of.ends,
        );
        for (i, out) in out.chunks_mut(line).enumerate() {
            let (batch, stop) = ((first + i) / y.output, (first + i) % y.output);
            let x_of = of.input[batch * image..][..image].as_ptr();
            let mut whole = true;
            for tap in 0..taps {
                let row = (stop * y.stride + tap / x.size * y.dilation).wrapping_sub(y.before);
                let column = (tap % x.size * x.dilation).wrapping_sub(x.before);
                let inside = row < y.input;
                whole &= inside;
                let at = row.wrapping_mul(x.input).wrapping_add(column);
                let at = x_of.wrapping_add(at.wrapping_mul(channels).wrapping_add(from));
                let step = x.stride * channels;
                (
                    places.starts[tap / 2][tap % 2],
                    places.steps[tap / 2][tap % 2],
                ) = if inside {
                    (at, step)
                } else {
                    (zeros.as_ptr(), 0)
                };
            }
            for (column, out) in out.chunks_mut(channels).enumerate() {
                let left = (column * x.stride).wrapping_sub(x.before);
                let right = left.wrapping_add((x.size - 1) * x.dilation);
                let beside = left < x.input && right < x.input;
                let mut sums = bias;
                if whole && beside {
                    let start = places.starts[0][0].wrapping_add(column * x.stride * channels);
                    for (&offset, &weights) in places.offsets.iter().zip(&weights) {
                        let at = offset.map(|offset| start.wrapping_add(offset));
                        // SAFETY: all rows and columns of the filter are inside of the image, and
                        // a tap that it lacks is at its first one; the channels are of one pixel.
                        sums = unsafe { v.add(sums, at, weights) };
                    }
                } else {
                    let mut at = places.starts;
                    for tap in 0..taps {
                        let place = left.wrapping_add(tap % x.size * x.dilation);
                        let step = places.steps[tap / 2][tap % 2];
                        let at = &mut at[tap / 2][tap % 2];
                        *at = if place < x.input {
                            at.wrapping_add(column * step)
                        } else {
                            zeros.as_ptr()
                        };
                    }
                    for (&at, &weights) in at.iter().zip(&weights) {
                        // SAFETY: the channels are of one pixel inside of the image, or `zeros`.
                        sums = unsafe { v.add(sums, at, weights) };
                    }
                }
                let out = &mut out[from..].as_chunks_mut().0[0];
                v.store::<HOW>(&scale, sums, out);
            }
        }
    }
}

/// The weights of sixteen channels, and their bias less what `zero` adds to sums.
#[inline(always)]
fn prepared<V: Channels, const PAIRS: usize>(
    v: V,
    of: &Deep<'_>,
    from: usize,
) -> ([V::Pair; PAIRS], V::Sums) {
    let taps = of.y.size * of.x.size;
    let none = [0; CHANNELS];
    let tap = |tap: usize| {
        if tap < taps {
            sixteen(&of.filter[tap * of.channels + from..])
        } else {
            &none
        }
    };
    let mut bias = *sixteen(&of.bias[from..]);
    for tap in (0..taps).map(tap) {
        for (bias, &weight) in bias.iter_mut().zip(tap) {
            *bias = bias.wrapping_sub(i32::from(weight) * i32::from(of.zero));
        }
    }
    let mut weights = [v.pair([&none; 2]); PAIRS];
    for (pair, weights) in weights.iter_mut().enumerate() {
        *weights = v.pair([tap(2 * pair), tap(2 * pair + 1)]);
    }
    (weights, v.sums(&bias))
}

/// The first sixteen elements.
#[inline(always)]
fn sixteen<T>(of: &[T]) -> &[T; CHANNELS] {
    &of.as_chunks().0[0]
}
