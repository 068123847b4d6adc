//! The gradient of a filter by tiles of 4 x 4 outputs: the points of the image's tiles times those
//! of the output's gradient, summed over all tiles, transformed back.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use super::form::{Form, Four};
use super::grid::{Grid, Place};
use super::tiles::{Tiles, most_scratch};
use crate::base::error::Result;
use crate::base::level::Level;
use crate::base::parallel::{Parallel, Serial};
use crate::conv::Conv;
use crate::gemm::pack::lanes;
use crate::gemm::source::ZEROS;
use crate::gemm::tile::MAX_RUN;
use crate::gemm::{Gemm, Matrix};
use crate::simd::blocks::{Block, Cut, for_each_block, for_each_chunk};
use crate::simd::{Body, Simd, body, dispatch};

/// Points of a tile along each axis, ...
const SIDE: usize = Four::SHAPE.points.1;
/// ... and outputs.
const OUT: usize = Four::SHAPE.out.1;
/// Pixels of the output, over all images, that repay the transforms of the sums.
const REPAID: usize = 1000;
/// Tiles whose points are multiplied at a time.
const AT_ONCE: usize = 96;
/// Columns that are transformed back at a time.
const WIDTH: usize = 32;
/// Threads for each line of points from which on all have more to do without tiles.
const CROWD: usize = 2;

/// The gradient of a filter by tiles. Each thread has some lines of points.
#[derive(Clone, Copy, Debug)]
pub struct FilterGradient {
    level: Level,
    conv: Conv,
    room: Room,
}

/// Elements of memory for a line of points.
#[derive(Clone, Copy, Debug)]
struct Room {
    /// Channels of the input and of the output, padded to whole vectors.
    channels: [usize; 2],
    /// The points of tiles of the input and of the output's gradient, the sums, and what their
    /// products need.
    parts: [usize; 4],
}

impl FilterGradient {
    /// The way to compute the gradient of the filter of a convolution that has been checked, if
    /// tiles suit it, its pixels repay the transforms and the memory for points is at most half as
    /// much again as input, filter and output.
    pub fn of(level: Level, conv: &Conv) -> Option<Self> {
        Tiles::of(conv).filter(|tiles| tiles.are_square())?;
        let gradient = Self::new(level, conv)?;
        let pixels = conv.batch * conv.y.output * conv.x.output;
        (pixels >= REPAID && gradient.scratch_len() <= most_scratch(conv)).then_some(gradient)
    }

    /// As [`FilterGradient::of`], whatever it costs.
    pub fn new(level: Level, conv: &Conv) -> Option<Self> {
        let side = SIDE;
        let channels =
            [conv.in_channels, conv.out_channels].map(|c| c.next_multiple_of(lanes(level)));
        let [input, output] = channels.map(|channels| side * AT_ONCE * channels);
        let sums = side * conv.in_channels * channels[1];
        let sizes = (conv.in_channels, conv.out_channels, AT_ONCE);
        let [a, b] = [
            Matrix::columns(&[], channels[0]),
            Matrix::rows(&[], channels[1]),
        ];
        let product = Gemm {
            level,
            ..Gemm::new(sizes, a, b)
        };
        Some(Self {
            level,
            conv: *conv,
            room: Room {
                channels,
                parts: [input, output, sums, product.scratch_len().ok()?],
            },
        })
    }

    /// Elements of scratch memory that [`FilterGradient::run`] needs.
    pub fn scratch_len(&self) -> usize {
        SIDE.saturating_mul(self.room.len())
    }

    /// Computes the gradient, unless there are too many threads for it or it is not finite:
    /// transforms would spread that to all taps. Returns whether it did. All lengths have been
    /// checked.
    pub fn run(
        &self,
        images: (&[f32], &[f32]),
        filter: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> bool {
        if parallel.threads() > CROWD * SIDE {
            return false;
        }
        let grid = Grid::new(self.level, &self.conv, Tiles::Four);
        let room = self.room;
        let each = SIDE.div_ceil(parallel.threads()) * room.len();
        let done = AtomicBool::new(true);
        for_each_chunk(parallel, scratch, each, |start, memory| {
            let mut lines = Lines {
                grid: &grid,
                room,
                level: self.level,
                images,
                first: start / room.len(),
                memory,
            };
            if lines.run().is_err() {
                done.store(false, Ordering::Relaxed);
            }
        });
        if !done.into_inner() {
            return false;
        }
        let scratch = &*scratch;
        let (depth, columns) = (self.conv.in_channels, self.conv.out_channels);
        let all = depth * columns;
        let cut = Cut {
            rows: 9,
            columns: depth.div_ceil(parallel.threads()) * columns,
            rest: 0,
        };
        for_each_block(parallel, filter, all, (9, all), cut, |block| {
            body::dispatch(Back {
                room,
                columns,
                scratch,
                block,
            });
        });
        filter.iter().fold(0.0, |sum, x| sum + x * 0.0) == 0.0
    }
}

impl Room {
    fn len(&self) -> usize {
        self.parts.iter().sum()
    }
}

/// Some lines of points: their sums over all tiles.
struct Lines<'a> {
    grid: &'a Grid,
    room: Room,
    level: Level,
    /// The input and the gradient of the output.
    images: (&'a [f32], &'a [f32]),
    /// The first line.
    first: usize,
    /// The memory of the lines.
    memory: &'a mut [f32],
}

impl Lines<'_> {
    /// Computes the sums.
    fn run(&mut self) -> Result<()> {
        let all = self.grid.tiles.0 * self.grid.tiles.1 * self.grid.conv.batch;
        let mut from = 0;
        while from < all {
            let to = all.min(from + AT_ONCE);
            dispatch(self.level, Spread::<false>(self, from..to));
            dispatch(self.level, Spread::<true>(self, from..to));
            self.multiply(to - from, from > 0)?;
            from = to;
        }
        if all == 0 {
            self.memory.fill(0.0);
        }
        Ok(())
    }

    /// Multiplies the points of so many tiles.
    fn multiply(&mut self, k: usize, accumulate: bool) -> Result<()> {
        let (conv, [lda, ldb]) = (&self.grid.conv, self.room.channels);
        let [input, output, sums, _] = self.room.parts;
        for memory in self.memory.chunks_exact_mut(self.room.len()) {
            let (a, rest) = memory.split_at_mut(input);
            let (b, rest) = rest.split_at_mut(output);
            let (sums, packed) = rest.split_at_mut(sums);
            for (j, sums) in sums.chunks_exact_mut(conv.in_channels * ldb).enumerate() {
                let a = Matrix::columns(&a[j * AT_ONCE * lda..], lda);
                let b = Matrix::rows(&b[j * AT_ONCE * ldb..], ldb);
                let product = Gemm {
                    accumulate,
                    level: self.level,
                    ..Gemm::new((conv.in_channels, conv.out_channels, k), a, b)
                };
                product.run(sums, ldb, packed, &Serial)?;
            }
        }
        Ok(())
    }

    /// The pixel of the input, or of the output, that a tile has at (`i`, `j`), if there is one.
    #[inline(always)]
    fn pixel<const OUTPUT: bool>(&self, place: &Place, i: usize, j: usize) -> Option<usize> {
        if OUTPUT {
            let (first, count) = self.grid.line(place, i)?;
            (j < count).then_some(first + j)
        } else {
            self.grid.pixel(place, i, j)
        }
    }
}

/// Transforms what some tiles see of the input, or the gradients of their outputs.
struct Spread<'a, 'b, const OUTPUT: bool>(&'a mut Lines<'b>, Range<usize>);

impl<const OUTPUT: bool> Body for Spread<'_, '_, OUTPUT> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self(lines, tiles) = self;
        let (conv, room) = (&lines.grid.conv, lines.room);
        let (data, depth, side, skip) = if OUTPUT {
            (lines.images.1, conv.out_channels, OUT, room.parts[0])
        } else {
            (lines.images.0, conv.in_channels, SIDE, 0)
        };
        let width = room.channels[usize::from(OUTPUT)];
        let transform = |x| {
            if OUTPUT {
                Four::gradient(s, x)
            } else {
                Four::input(s, x)
            }
        };
        let first = lines.first;
        for (index, tile) in tiles.enumerate() {
            let place = lines.grid.place(tile);
            let mut from = 0;
            while from < depth {
                let run = MAX_RUN.min(depth - from);
                let mut pixels = [[&ZEROS[..run]; SIDE]; SIDE];
                for i in 0..side {
                    for j in 0..side {
                        if let Some(pixel) = lines.pixel::<OUTPUT>(&place, i, j) {
                            pixels[i][j] = &data[pixel * depth + from..][..run];
                        }
                    }
                }
                let mut at = 0;
                while at < run {
                    let mut x = [[s.zero(); SIDE]; SIDE];
                    for j in 0..side {
                        let mut column = [s.zero(); SIDE];
                        for i in 0..side {
                            column[i] = s.load_up_to(&pixels[i][j][at..]);
                        }
                        let column = transform(column);
                        for i in 0..SIDE {
                            x[i][j] = column[i];
                        }
                    }
                    for (i, memory) in lines.memory.chunks_exact_mut(room.len()).enumerate() {
                        let row = transform(x[first + i]);
                        for j in 0..SIDE {
                            let to = (j * AT_ONCE + index) * width + from + at;
                            s.store(&mut memory[skip + to..], row[j]);
                        }
                    }
                    at += S::LANES;
                }
                from += run;
            }
        }
    }
}

/// Transforms the sums of some channels back to taps.
struct Back<'a, 'b> {
    room: Room,
    /// Channels of the output.
    columns: usize,
    scratch: &'a [f32],
    /// A row per tap.
    block: Block<'b, f32>,
}

impl body::Body for Back<'_, '_> {
    type Output = ();

    #[inline(always)]
    fn run(mut self) {
        let (columns, ld) = (self.columns, self.room.channels[1]);
        let [input, output, sums, _] = self.room.parts;
        let channels =
            self.block.column / columns..(self.block.column + self.block.columns) / columns;
        let mut lines = [[[0.0_f64; WIDTH]; 3]; SIDE];
        for (row, channel) in channels.enumerate() {
            for first in (0..columns).step_by(WIDTH) {
                let count = WIDTH.min(columns - first);
                for (i, line) in lines.iter_mut().enumerate() {
                    *line = [[0.0; WIDTH]; 3];
                    let from = i * self.room.len() + input + output + channel * ld + first;
                    for j in 0..SIDE {
                        let from = &self.scratch[from + j * (sums / SIDE)..][..count];
                        for (line, weight) in line.iter_mut().zip(Four::SHAPE.filter[j]) {
                            for (line, &from) in line.iter_mut().zip(from) {
                                *line += weight * f64::from(from);
                            }
                        }
                    }
                }
                for tap in 0..9 {
                    let mut sum = [0.0; WIDTH];
                    for (line, weights) in lines.iter().zip(Four::SHAPE.filter) {
                        for (sum, x) in sum.iter_mut().zip(&line[tap % 3]) {
                            *sum += weights[tap / 3] * x;
                        }
                    }
                    let to = &mut self.block.row(tap)[row * columns + first..][..count];
                    for (to, sum) in to.iter_mut().zip(sum) {
                        *to = sum as f32;
                    }
                }
            }
        }
    }
}
