//! Convolutions, and with one tap matmuls.

use super::{Scaling, expect};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::conv::geometry::Conv as Sizes;
use crate::simd::body::{self, Body, dispatch};
use crate::simd::dots::{BLOCKS, CHANNELS, Dots, Factors, GROUP, ROWS, Rounding, Spaced, Sums};

/// What makes an int8 number one that is not negative.
pub const OFFSET: i32 = 128;

/// Bytes of windows that are gathered at a time: the least that is enough, else parts of windows.
/// Without std, stacks are short.
const FEW: usize = 512;
const SOME: usize = if cfg!(feature = "std") {
    8 << 10
} else {
    1 << 10
};
/// Sums that are made together, at most.
const TILE: usize = ROWS * BLOCKS;
/// Eight windows of 3 x 3 and 512 channels.
const MANY: usize = if cfg!(feature = "std") {
    36 << 10
} else {
    SOME
};

/// A convolution of `[batch, y.input, x.input, in_channels]` to
/// `[batch, y.output, x.output, out_channels]`, without groups.
#[derive(Clone, Copy, Debug)]
pub struct Conv<'a> {
    /// Its sizes; padding is of `zero`.
    pub sizes: Sizes,
    /// The filter: for each block of 16 output channels, for each four neighbours of a window,
    /// four weights of each channel. What lacks at the end of a window or block is 0.
    pub filter: &'a [i8],
    /// What is added to sums of `filter * (x + OFFSET)`, for whole blocks: the bias less
    /// `zero + OFFSET` times the sum of the channel's weights.
    pub bias: &'a [i32],
    /// What stands for 0 in the input.
    pub zero: i8,
    /// How sums become int8, for whole blocks.
    pub scaling: Scaling<'a>,
}

impl Conv<'_> {
    /// Bytes of a window.
    const fn window(&self) -> usize {
        self.sizes.y.size * self.sizes.x.size * self.sizes.in_channels
    }

    /// Elements of the filter.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn filter_len(&self) -> Result<usize> {
        let overflow = Error::Overflow { argument: "filter" };
        let row = self
            .window()
            .div_ceil(GROUP)
            .checked_mul(GROUP * CHANNELS)
            .ok_or(overflow)?;
        row.checked_mul(self.sizes.out_channels.div_ceil(CHANNELS))
            .ok_or(overflow)
    }

    /// Computes the convolution.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice does not fit the sizes, [`Error::Value`] for groups or a shift
    /// that is too large.
    pub fn run(&self, x: &[i8], out: &mut [i8], parallel: &dyn Parallel) -> Result<()> {
        let sizes = &self.sizes;
        sizes.check()?;
        if sizes.groups != 1 {
            return Err(Error::Value {
                argument: "groups",
                expected: "one group",
            });
        }
        let channels = sizes.out_channels.next_multiple_of(CHANNELS);
        expect("input", x.len(), sizes.input_len())?;
        expect("output", out.len(), sizes.output_len())?;
        expect("filter", self.filter.len(), self.filter_len()?)?;
        expect("bias", self.bias.len(), channels)?;
        self.scaling.check(channels)?;
        if out.is_empty() {
            return Ok(());
        }
        let dots = Dots::at(body::level());
        let outputs = sizes.out_channels;
        let rounding = self.scaling.rounding(self.bias, self.window(), outputs);
        let unit = ROWS * sizes.out_channels;
        let cost = self.window() / 32 + 4;
        let chunk = chunk_len(parallel, out.len(), unit, cost);
        for_each_chunk(parallel, out, chunk, &|start, out| {
            let pixels = out.len() / sizes.out_channels;
            let bytes = pixels.min(ROWS) * self.window().next_multiple_of(GROUP);
            let run = if bytes <= FEW {
                if pixels == 1 {
                    Self::pixels::<FEW, BLOCKS>
                } else {
                    Self::pixels::<FEW, TILE>
                }
            } else if bytes <= SOME {
                Self::pixels::<SOME, TILE>
            } else {
                Self::pixels::<MANY, TILE>
            };
            run(self, (dots, rounding), x, start / sizes.out_channels, out);
        });
        Ok(())
    }

    /// Computes neighbouring pixels from `first` on.
    fn pixels<const BYTES: usize, const SUMS: usize>(
        &self,
        how: (Dots, Rounding),
        x: &[i8],
        first: usize,
        out: &mut [i8],
    ) {
        let dots = how.0;
        let (outputs, window) = (self.sizes.out_channels, self.window());
        let blocks = outputs.div_ceil(CHANNELS);
        let pace = window.div_ceil(GROUP) * GROUP * CHANNELS;
        let (rows, together) = dots.tile();
        let rows = rows.min(out.len() / outputs);
        let mut gathered = [0_u8; BYTES];
        let mut sums: [Sums; SUMS] = [[0; CHANNELS]; SUMS];
        // Of whole groups.
        let piece = window.clamp(1, BYTES / rows / GROUP * GROUP);
        let piece = piece.next_multiple_of(GROUP);
        let whole = window <= piece;
        // Windows that are beside each other in the image, too, are copied at once.
        let beside = whole && self.beside();
        for (tile, out) in out.chunks_mut(rows * outputs).enumerate() {
            let first = first + tile * rows;
            let rows = out.len() / outputs;
            if beside {
                let from = &x[first * window..][..rows * window];
                let to = &mut gathered[..rows * window];
                dispatch(Shifted { from, to });
            } else if whole {
                self.gather(x, first, 0..window, (&mut gathered[..rows * piece], piece));
            }
            for block in (0..blocks).step_by(together) {
                let together = together.min(blocks - block);
                let sums = &mut sums[..rows * together];
                let bias = &self.bias[block * CHANNELS..][..together * CHANNELS];
                for sums in sums.chunks_mut(together) {
                    for (sums, bias) in sums.iter_mut().zip(bias.as_chunks().0) {
                        *sums = *bias;
                    }
                }
                for from in (0..window).step_by(piece) {
                    let part = from..window.min(from + piece);
                    let groups = part.len().div_ceil(GROUP);
                    if !whole {
                        self.gather(x, first, part, (&mut gathered[..rows * piece], piece));
                    }
                    let weights = &self.filter[block * pace + from * CHANNELS..];
                    let x = Spaced {
                        data: &gathered,
                        pitch: piece,
                        count: rows,
                    };
                    let weights = Spaced {
                        data: weights,
                        pitch: pace,
                        count: together,
                    };
                    dots.add(sums, x, weights, groups);
                }
                let channel = block * CHANNELS;
                if self.narrow(how, sums, together, channel, out) {
                    continue;
                }
                dispatch(Finish {
                    of: &self.scaling,
                    sums,
                    together,
                    channel,
                    count: (together * CHANNELS).min(outputs - channel),
                    pitch: outputs,
                    out,
                });
            }
        }
    }

    /// Whether windows are of one tap each, of whole groups, and follow each other.
    const fn beside(&self) -> bool {
        let (y, x) = (&self.sizes.y, &self.sizes.x);
        y.size * x.size * y.stride * x.stride == 1
            && y.before + x.before == 0
            && y.input == y.output
            && x.input == x.output
            && self.sizes.in_channels.is_multiple_of(GROUP)
    }

    /// Makes the sums of a tile int8 from `channel` on, if there is a body for it.
    fn narrow(
        &self,
        (dots, rounding): (Dots, Rounding),
        sums: &[Sums],
        together: usize,
        channel: usize,
        out: &mut [i8],
    ) -> bool {
        let (outputs, scaling) = (self.sizes.out_channels, &self.scaling);
        let channels = channel..channel + together * CHANNELS;
        let multiplier = scaling.multiplier[channels.clone()].as_chunks().0;
        let shift = scaling.shift[channels].as_chunks().0;
        let blocks = multiplier.iter().zip(shift).enumerate();
        blocks.into_iter().all(|(block, (multiplier, shift))| {
            let channel = channel + block * CHANNELS;
            let count = CHANNELS.min(outputs - channel);
            dots.narrow(
                &sums[block..],
                together,
                (Factors { multiplier, shift }, rounding),
                scaling.ends(),
                (&mut out[channel..], outputs, count),
            )
        })
    }

    /// Writes a part of the windows of neighbouring pixels, each number with `OFFSET` added and
    /// zeros up to a whole group; `pitch` bytes of each pixel.
    fn gather(
        &self,
        x: &[i8],
        first: usize,
        part: core::ops::Range<usize>,
        (rows, pitch): (&mut [u8], usize),
    ) {
        let sizes = &self.sizes;
        let (height, width) = (sizes.y.output, sizes.x.output);
        let point = self.window() == sizes.in_channels && sizes.y.before + sizes.x.before == 0;
        for (i, row) in rows.chunks_exact_mut(pitch).enumerate() {
            let pixel = first + i;
            let (line, column) = (pixel / width, pixel % width);
            let (image, line) = (line / height, line % height);
            let row = &mut row[..part.len().next_multiple_of(GROUP)];
            row[part.len()..].fill(0);
            let row = &mut row[..part.len()];
            let image = image * sizes.y.input;
            if point {
                let (y, x_) = (line * sizes.y.stride, column * sizes.x.stride);
                let at = ((image + y) * sizes.x.input + x_) * sizes.in_channels + part.start;
                dispatch(Shifted {
                    from: &x[at..at + part.len()],
                    to: row,
                });
                continue;
            }
            let image = &x[image * sizes.x.input * sizes.in_channels..]
                [..sizes.y.input * sizes.x.input * sizes.in_channels];
            self.window_of(image, (line, column), part.start, row);
        }
    }

    /// Writes a part of one window.
    fn window_of(
        &self,
        image: &[i8],
        (line, column): (usize, usize),
        start: usize,
        row: &mut [u8],
    ) {
        let (y, x) = (&self.sizes.y, &self.sizes.x);
        let channels = self.sizes.in_channels;
        let zero = unsigned(self.zero);
        let (mut at, mut row) = (start, row);
        while !row.is_empty() {
            let (tap, channel) = (at / channels, at % channels);
            let (tap_y, tap_x) = (tap / x.size, tap % x.size);
            let source_y = (line * y.stride + tap_y * y.dilation).wrapping_sub(y.before);
            let source_x = (column * x.stride + tap_x * x.dilation).wrapping_sub(x.before);
            // Taps that are neighbours in the image are copied together.
            let inside = source_y < y.input && source_x < x.input;
            let taps = if inside && x.dilation == 1 {
                (x.size - tap_x).min(x.input - source_x)
            } else {
                1
            };
            let count = (taps * channels - channel).min(row.len());
            let (part, rest) = row.split_at_mut(count);
            if inside {
                let from = (source_y * x.input + source_x) * channels + channel;
                dispatch(Shifted {
                    from: &image[from..from + count],
                    to: part,
                });
            } else {
                part.fill(zero);
            }
            at += count;
            row = rest;
        }
    }
}

#[inline(always)]
const fn unsigned(x: i8) -> u8 {
    x.cast_unsigned() ^ 0x80
}

/// Copies numbers with `OFFSET` added.
struct Shifted<'a> {
    from: &'a [i8],
    to: &'a mut [u8],
}

impl Body for Shifted<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (to, &from) in self.to.iter_mut().zip(self.from) {
            *to = unsigned(from);
        }
    }
}

/// Makes the sums of a tile int8.
struct Finish<'a> {
    of: &'a Scaling<'a>,
    sums: &'a [Sums],
    together: usize,
    channel: usize,
    count: usize,
    pitch: usize,
    out: &'a mut [i8],
}

impl Body for Finish<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let rows = self.sums.chunks(self.together);
        for (sums, out) in rows.zip(self.out.chunks_mut(self.pitch)) {
            let out = &mut out[self.channel..][..self.count];
            self.of.store(sums.as_flattened(), self.channel, out);
        }
    }
}
