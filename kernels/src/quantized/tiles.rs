//! Sums of products of windows and a filter, a tile of pixels and output channels at a time.

use super::expect;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::conv::geometry::Conv as Sizes;
use crate::simd::body::{self, Body, dispatch};
use crate::simd::dots::{BLOCKS, CHANNELS, Dots, GROUP, ROWS, Spaced, Sums};

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

/// What sums begin with, and what becomes of them.
pub(super) trait Epilogue: Sync {
    /// An element of the result.
    type Out: Send;

    /// What is outside of an image, with `OFFSET` added.
    fn zero(&self, image: usize) -> u8;

    /// Writes what the sums of a tile begin with: those of a row beside each other, `together`
    /// blocks of each, from a pixel and a channel on.
    fn begin(&self, sums: &mut [Sums], together: usize, first: usize, channel: usize);

    /// Writes what becomes of them to rows of all channels, from a channel on.
    fn end(&self, dots: Dots, sums: &[Sums], of: Tile, out: &mut [Self::Out]);

    /// What stands for 0 in the filter, less which weights are multiplied.
    #[inline(always)]
    fn filter_zero(&self) -> i32 {
        0
    }

    /// Changes whole rows, after all of their channels were written.
    #[inline(always)]
    fn finish(&self, out: &mut [Self::Out]) {
        let _ = out;
    }
}

/// A piece of the result: blocks of channels of neighbouring pixels.
#[derive(Clone, Copy)]
pub(super) struct Tile {
    /// The first pixel.
    pub(super) first: usize,
    /// The first channel.
    pub(super) channel: usize,
    /// How many blocks.
    pub(super) together: usize,
    /// Channels of the result.
    pub(super) outputs: usize,
}

impl Tile {
    /// Channels of the tile that the result has.
    #[inline(always)]
    pub(super) fn count(&self) -> usize {
        (self.together * CHANNELS).min(self.outputs - self.channel)
    }
}

/// The products of a convolution without groups.
#[derive(Clone, Copy)]
pub(super) struct Products<'a> {
    /// Its sizes. Not a reference: what that points to would be read again after each write.
    pub(super) sizes: Sizes,
    /// As `super::conv::Conv::filter`.
    pub(super) filter: &'a [i8],
}

impl Products<'_> {
    /// Bytes of a window.
    pub(super) const fn window(&self) -> usize {
        self.sizes.y.size * self.sizes.x.size * self.sizes.in_channels
    }

    /// Elements of the filter.
    pub(super) fn filter_len(&self) -> Result<usize> {
        let overflow = Error::Overflow { argument: "filter" };
        let row = self
            .window()
            .div_ceil(GROUP)
            .checked_mul(GROUP * CHANNELS)
            .ok_or(overflow)?;
        row.checked_mul(self.sizes.out_channels.div_ceil(CHANNELS))
            .ok_or(overflow)
    }

    /// Fails if a slice does not fit the sizes, or there are groups; returns the channels of whole
    /// blocks.
    pub(super) fn check(&self, x: usize, out: usize) -> Result<usize> {
        let sizes = &self.sizes;
        sizes.check()?;
        if sizes.groups != 1 {
            return Err(Error::Value {
                argument: "groups",
                expected: "one group",
            });
        }
        expect("input", x, sizes.input_len())?;
        expect("output", out, sizes.output_len())?;
        expect("filter", self.filter.len(), self.filter_len()?)?;
        Ok(sizes.out_channels.next_multiple_of(CHANNELS))
    }

    /// Computes the result of what [`Self::check`] has accepted.
    pub(super) fn run<E: Epilogue>(
        &self,
        epilogue: &E,
        x: &[i8],
        out: &mut [E::Out],
        parallel: &dyn Parallel,
    ) {
        if out.is_empty() {
            return;
        }
        let outputs = self.sizes.out_channels;
        let dots = Dots::at(body::level());
        let cost = self.window() / 32 + 4;
        let chunk = chunk_len(parallel, out.len(), ROWS * outputs, cost);
        for_each_chunk(parallel, out, chunk, &|start, out| {
            let pixels = out.len() / outputs;
            let bytes = pixels.min(ROWS) * self.window().next_multiple_of(GROUP);
            let run = if bytes <= FEW {
                if pixels == 1 {
                    Self::pixels::<E, FEW, BLOCKS>
                } else {
                    Self::pixels::<E, FEW, TILE>
                }
            } else if bytes <= SOME {
                Self::pixels::<E, SOME, TILE>
            } else {
                Self::pixels::<E, MANY, TILE>
            };
            run(self, epilogue, dots, x, start / outputs, out);
        });
    }

    /// Computes neighbouring pixels from `first` on.
    fn pixels<E: Epilogue, const BYTES: usize, const SUMS: usize>(
        &self,
        epilogue: &E,
        dots: Dots,
        x: &[i8],
        first: usize,
        out: &mut [E::Out],
    ) {
        let (outputs, window) = (self.sizes.out_channels, self.window());
        let blocks = outputs.div_ceil(CHANNELS);
        let pace = window.div_ceil(GROUP) * GROUP * CHANNELS;
        let (rows, together) = dots.tile();
        let rows = rows.min(out.len() / outputs);
        let mut gathered = [0_u8; BYTES];
        let mut sums: [Sums; SUMS] = [[0; CHANNELS]; SUMS];
        let image = (x, &|image| epilogue.zero(image));
        let filter_zero = epilogue.filter_zero();
        // Of the numbers of each row, that the sums of all blocks need.
        let mut totals = [0_i32; ROWS];
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
                let to = &mut gathered[..rows * piece];
                self.gather(image, first, 0..window, (to, piece));
            }
            for block in (0..blocks).step_by(together) {
                let together = together.min(blocks - block);
                let sums = &mut sums[..rows * together];
                let channel = block * CHANNELS;
                epilogue.begin(sums, together, first, channel);
                for from in (0..window).step_by(piece) {
                    let part = from..window.min(from + piece);
                    let groups = part.len().div_ceil(GROUP);
                    if !whole {
                        let to = &mut gathered[..rows * piece];
                        self.gather(image, first, part, (to, piece));
                    }
                    if filter_zero != 0 && block == 0 {
                        let pieces = gathered.chunks(piece).zip(&mut totals);
                        for (x, total) in pieces.take(rows) {
                            let sum = x[..groups * GROUP].iter().map(|&x| i32::from(x)).sum();
                            *total = if from == 0 { sum } else { *total + sum };
                        }
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
                if filter_zero != 0 {
                    for (sums, total) in sums.chunks_mut(together).zip(&totals) {
                        let product = total.wrapping_mul(filter_zero);
                        for sum in sums.as_flattened_mut() {
                            *sum = sum.wrapping_sub(product);
                        }
                    }
                }
                let of = Tile {
                    first,
                    channel,
                    together,
                    outputs,
                };
                epilogue.end(dots, sums, of, out);
            }
            epilogue.finish(out);
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

    /// Writes a part of the windows of neighbouring pixels, each number with `OFFSET` added and
    /// zeros up to a whole group; `pitch` bytes of each pixel.
    fn gather(
        &self,
        (x, zero): (&[i8], &impl Fn(usize) -> u8),
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
            let (number, line) = (line / height, line % height);
            let row = &mut row[..part.len().next_multiple_of(GROUP)];
            row[part.len()..].fill(0);
            let row = &mut row[..part.len()];
            let image = number * sizes.y.input;
            if point {
                let (y, x_) = (line * sizes.y.stride, column * sizes.x.stride);
                let at = ((image + y) * sizes.x.input + x_) * sizes.in_channels + part.start;
                dispatch(Shifted {
                    from: &x[at..at + part.len()],
                    to: row,
                });
                continue;
            }
            let zero = zero(number);
            let image = &x[image * sizes.x.input * sizes.in_channels..]
                [..sizes.y.input * sizes.x.input * sizes.in_channels];
            self.window_of(image, (line, column), (part.start, zero), row);
        }
    }

    /// Writes a part of one window.
    fn window_of(
        &self,
        image: &[i8],
        (line, column): (usize, usize),
        (start, zero): (usize, u8),
        row: &mut [u8],
    ) {
        let (y, x) = (&self.sizes.y, &self.sizes.x);
        let channels = self.sizes.in_channels;
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
pub(super) const fn unsigned(x: i8) -> u8 {
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
