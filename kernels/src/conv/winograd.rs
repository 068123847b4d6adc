//! Convolutions of 3 x 3 taps, or of 3 to 5 taps along a line, by minimal filtering (S. Winograd
//! 1980; A. Lavin and S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016).
//!
//! The image is cut into tiles of 4 x 4, 2 x 2 or 1 x 4 outputs. Inputs of a tile and filters are
//! transformed to 36, 16, or, along a line, 6 or 8 points; at each point the tiles are a matrix of
//! as many rows, multiplied by the filter's matrix of that point; and what comes out is transformed
//! back. So an output takes 2.25 or 4 products instead of 9, or 1.5 instead of 3, or 2 instead of 5.
//!
//! The error is relative to the largest elements that a tile sees, not to those of each output. A
//! tile whose outputs are not all finite is summed over the taps instead, so that an infinity, a
//! NaN or an overflow reaches those outputs that see it and no other.

mod body;
mod filter;
mod form;
mod gradient;
mod grid;
mod once;
mod products;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;
use core::ops::Range;

use self::body::{Gather, Spread};
pub use self::filter::Taps;
use self::form::{Form, Shape, with_form};
pub use self::gradient::FilterGradient;
use self::grid::{Grid, Strips};
pub use self::once::Once;
use super::geometry::{Conv, Window};
use crate::base::error::{Error, Result};
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::gemm::block::strip_rows;
use crate::gemm::pack::{packed_len, panel, panels};
use crate::gemm::tile::Store;
use crate::simd::blocks::{Block, Cut, for_each_block, for_each_chunk, for_each_pair};
use crate::simd::dispatch;

/// Channels on either side from which on tiles save time, ...
const CHANNELS: usize = 16;
/// ... pixels of the output, of which 4 x 4 tiles need more, because they have more to read: their
/// filters come from far away, ...
const PIXELS: usize = 100;
const PIXELS_OF_FOUR: usize = 256;
/// ... and channels of the input times those of the output: up to the first number, the points of
/// 4 x 4 tiles stay in the second cache; up to the second, they may come from further away ...
const NEAR: usize = 1 << 14;
const FAR: usize = 1 << 16;
/// ... if no pixel of the output has more of them than this, with either kind of tiles.
const REUSED: usize = 32;
const REUSED_BY_TWO: usize = 512;
/// Channels on either side from which on tiles of lines save time, and outputs; ...
const LINE_CHANNELS: usize = 32;
const LINE_PIXELS: usize = 12;
/// ... channels of the input times those of the output that any image repays, and that each pixel
/// of the output does.
const LINE_NEAR: usize = 1 << 18;
const LINE_REUSED: usize = 1 << 14;
/// Elements of points that a thread works on at a time: they stay in the second cache.
const AT_ONCE: usize = 128 * 1024;
/// Elements of points that all threads have room for, at least, ...
const KEPT: usize = 512 * 1024;
/// ... which is more for an image that has more than so many times that.
const PART: usize = 4;
/// The part of the time that threads lose which wait for each other's points.
const MEETING: usize = 16;

/// The tiles of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {
    /// 2 x 2 outputs of 3 x 3 taps.
    Two,
    /// 4 x 4 outputs of 3 x 3 taps.
    Four,
    /// 4 outputs of 3 taps along a line.
    LineOfThree,
    /// 4 outputs of up to 5 taps along a line.
    LineOfFive,
}

impl Tiles {
    /// The tiles that suit a convolution, if any do; the number of images does not count.
    ///
    /// Without `std` none do: filters are packed at every call there, and the transform takes
    /// longer than it saves.
    #[must_use]
    pub fn of(conv: &Conv) -> Option<Self> {
        if !cfg!(feature = "std") || conv.groups != 1 {
            return None;
        }
        let (y, x) = (&conv.y, &conv.x);
        let window = |w: &Window| (w.size, w.stride, w.dilation);
        let tiles = if window(y) == (3, 1, 1) && window(x) == (3, 1, 1) {
            Self::of_images(conv)?
        } else if window(y) == (1, 1, 1) && y.before == 0 && y.input == y.output && x.stride == 1 {
            Self::of_lines(conv)?
        } else {
            return None;
        };
        let image = Conv { batch: 1, ..*conv };
        image.check().ok()?;
        // The other levels have the sizes of one of these.
        [Level::Portable, Level::Avx2, Level::Avx512]
            .into_iter()
            .all(|level| tiles.scratch_len(level, &image) <= most_scratch(&image))
            .then_some(tiles)
    }

    /// The tiles that suit 3 x 3 taps.
    fn of_images(conv: &Conv) -> Option<Self> {
        let (depth, columns) = (conv.in_channels, conv.out_channels);
        let pixels = conv.y.output.saturating_mul(conv.x.output);
        let weights = depth.saturating_mul(columns);
        if depth.min(columns) < CHANNELS || pixels < PIXELS {
            None
        } else if pixels >= PIXELS_OF_FOUR
            && (weights <= NEAR || weights <= FAR.min(pixels.saturating_mul(REUSED)))
        {
            Some(Self::Four)
        } else if weights <= FAR.min(pixels.saturating_mul(REUSED_BY_TWO)) {
            Some(Self::Two)
        } else {
            None
        }
    }

    /// The tiles that suit taps along a line.
    fn of_lines(conv: &Conv) -> Option<Self> {
        let (depth, columns) = (conv.in_channels, conv.out_channels);
        let pixels = conv.y.output.saturating_mul(conv.x.output);
        let weights = depth.saturating_mul(columns);
        // Taps further apart than the input is long do not meet in a tile.
        let meet = (1..=conv.x.input).contains(&conv.x.dilation);
        if !meet
            || depth.min(columns) < LINE_CHANNELS
            || pixels < LINE_PIXELS
            || weights > LINE_NEAR.max(pixels.saturating_mul(LINE_REUSED))
        {
            return None;
        }
        match conv.x.size {
            3 => Some(Self::LineOfThree),
            4 | 5 => Some(Self::LineOfFive),
            _ => None,
        }
    }

    const fn shape(self) -> Shape {
        with_form!(self, F, M, N => <F as Form<M, N>>::SHAPE)
    }

    const fn points(self) -> usize {
        let (lines, columns) = self.shape().points;
        lines * columns
    }

    /// Whether tiles have as many lines as columns.
    const fn are_square(self) -> bool {
        self.shape().points.0 > 1
    }

    /// Elements of a packed filter.
    ///
    /// # Errors
    /// [`Error::Overflow`]; [`Error::Value`] for a level that the processor does not have.
    pub fn packed_len(self, level: Level, conv: &Conv) -> Result<usize> {
        packed_len(level, conv.in_channels, conv.out_channels)?
            .checked_mul(self.points())
            .ok_or(Error::Overflow { argument: "filter" })
    }

    /// Elements of scratch memory: for several images as much as for each of them, but no more
    /// than half as much again as input, filter and output have, unless a line of tiles needs
    /// them. `conv` has been checked.
    pub fn scratch_len(self, level: Level, conv: &Conv) -> usize {
        let grid = Grid::new(level, conv, self);
        let all = grid.tiles.0 * grid.tiles.1;
        if all == 0 || conv.batch == 0 {
            return 0;
        }
        let one = Conv { batch: 1, ..*conv };
        let data = one.input_len() + one.output_len();
        let kept = KEPT.max(data / PART).min(most_scratch(&one));
        let line = grid.points_len(level, grid.tiles.1);
        let image = grid.points_len(level, all).min(kept.max(line));
        let most = most_scratch(conv).max(image);
        image.saturating_mul(conv.batch).min(most)
    }
}

/// Elements of scratch memory that a convolution may have: half as many again as input, filter and
/// output.
fn most_scratch(conv: &Conv) -> usize {
    let data = conv.input_len() + conv.filter_len() + conv.output_len();
    data.saturating_add(data / 2)
}

/// A convolution with a filter that is packed for tiles.
pub(super) struct Winograd<'a> {
    pub conv: &'a Conv,
    pub tiles: Tiles,
    pub level: Level,
    /// The packed filter.
    pub filter: &'a [f32],
    /// What happens to the sums; the bias has an element per output channel.
    pub store: Store<'a>,
}

/// How lines of tiles are shared out where each thread has its own.
#[derive(Clone, Copy, Debug)]
struct Own {
    /// Lines of a task.
    lines: usize,
    /// Lines whose points it has at a time.
    piece: usize,
    /// Elements of memory for them.
    room: usize,
}

/// How lines of tiles are shared out: `lines` of them and `panels` of the filter to a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Share {
    lines: usize,
    panels: usize,
}

impl Winograd<'_> {
    /// Computes the output. All lengths have been checked.
    pub fn run(
        &self,
        input: &[f32],
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) {
        let grid = Grid::new(self.level, self.conv, self.tiles);
        if let Some(own) = self.own(&grid, scratch.len(), parallel.threads()) {
            return self.run_own(&grid, own, (input, output, scratch), parallel);
        }
        let (level, columns) = (self.level, self.conv.out_channels);
        let all = grid.tiles.0 * self.conv.batch;
        let fits = |lines: usize| grid.points_len(level, lines * grid.tiles.1);
        let room = AT_ONCE.saturating_mul(parallel.threads());
        // An image that is not much larger is one piece: the filter is read once.
        let whole = fits(grid.tiles.0).div_ceil(room) <= 2;
        let kept = scratch
            .len()
            .min(if whole { room.saturating_mul(2) } else { room });
        let mut from = 0;
        while from < all {
            let to = self.piece(&grid, from, parallel.threads(), |lines| {
                fits(lines) <= kept || (lines == 1 && fits(1) <= scratch.len())
            });
            let lines = to - from;
            let share = self.share(&grid, from..to, scratch.len(), parallel.threads());
            let each = if share.lines < lines {
                fits(share.lines)
            } else {
                grid.strip_len(level, strip_rows(level))
            };
            let groups = lines.div_ceil(share.lines);
            let points = &mut scratch[..self.groups_len(&grid, lines, share.lines)];
            let tiles = |group: usize| {
                let first = from + group * share.lines;
                grid.tiles(first..(first + share.lines).min(to))
            };
            for_each_chunk(parallel, points, each, |start, chunk| {
                let (group, skip) = if groups > 1 {
                    (start / each, 0)
                } else {
                    (0, start / each)
                };
                self.spread_all(&grid, input, tiles(group), skip, chunk);
            });
            let points = &*points;
            let (first, end) = (grid.first_pixel(from), grid.first_pixel(to));
            let rows = grid.first_pixel(from + share.lines.min(lines)) - first;
            let cut = Cut {
                rows,
                columns: share.panels * panel(level),
                rest: panel(level) / 2,
            };
            let piece = &mut output[first * columns..end * columns];
            for_each_block(
                parallel,
                piece,
                columns,
                (end - first, columns),
                cut,
                |mut block| {
                    let group = block.row / rows.max(1);
                    let tiles = tiles(group);
                    let points = &points[group * fits(share.lines)..];
                    self.gather(&grid, input, points, tiles, &mut block, first);
                },
            );
            from = to;
        }
    }

    /// The lines of each thread, if no thread has much more work so than if all shared the points
    /// of the same lines and had some channels of the output each.
    fn own(&self, grid: &Grid, room: usize, threads: usize) -> Option<Own> {
        let all = grid.tiles.0 * self.conv.batch;
        let step = if grid.has_equal_lines(all) {
            1
        } else {
            grid.tiles.0
        };
        let lines = all.div_ceil(threads).next_multiple_of(step).min(all);
        let room = room / all.div_ceil(lines);
        let fits = |lines: usize| grid.points_len(self.level, lines * grid.tiles.1);
        if fits(1) > room {
            return None;
        }
        // What is not much larger is one piece: the filter is read once.
        let near = if fits(lines) <= room.min(2 * AT_ONCE) {
            room
        } else {
            room.min(AT_ONCE)
        };
        let mut piece = 1;
        while piece < lines && fits(piece + 1) <= near {
            piece += 1;
        }
        let piece = lines.div_ceil(lines.div_ceil(piece));
        let cost = |lines: usize| Strips::cost(self.level, lines * grid.tiles.1);
        let panels = panels(self.level, self.conv.out_channels);
        let whole = lines / piece;
        let rest = lines - whole * piece;
        let own = (whole * cost(piece) + if rest > 0 { cost(rest) } else { 0 }) * panels;
        let shared = cost(all) * panels.div_ceil(threads);
        (own <= shared + shared / MEETING).then_some(Own { lines, piece, room })
    }

    /// Computes the output, each thread its own lines.
    fn run_own(
        &self,
        grid: &Grid,
        own: Own,
        (input, output, scratch): (&[f32], &mut [f32], &mut [f32]),
        parallel: &dyn Parallel,
    ) {
        let columns = self.conv.out_channels;
        let all = grid.tiles.0 * self.conv.batch;
        let chunk = grid.first_pixel(own.lines.min(all)) * columns;
        let output = (output, chunk);
        for_each_pair(
            parallel,
            output,
            (scratch, own.room),
            |task, output, points| {
                let end = all.min((task + 1) * own.lines);
                let (mut from, mut rest) = (task * own.lines, output);
                while from < end {
                    let to = end.min(from + own.piece);
                    let (first, last) = (grid.first_pixel(from), grid.first_pixel(to));
                    let (output, later) = rest.split_at_mut((last - first) * columns);
                    rest = later;
                    let tiles = grid.tiles(from..to);
                    from = to;
                    self.spread_all(grid, input, tiles.clone(), 0, points);
                    let mut block = Block::new(output, columns, last - first, columns);
                    self.gather(grid, input, points, tiles, &mut block, first);
                }
            },
        );
    }

    /// Transforms the inputs of some tiles, from strip `skip` on, as far as the memory reaches.
    fn spread_all(
        &self,
        grid: &Grid,
        input: &[f32],
        tiles: Range<usize>,
        skip: usize,
        points: &mut [f32],
    ) {
        let strips = Strips::new(self.level, tiles.len());
        let mut rest = points;
        for strip in skip..strips.count {
            let part = strips.tiles(strip);
            let length = grid.strip_len(self.level, part.len());
            let Some((strip, later)) = rest.split_at_mut_checked(length) else {
                return;
            };
            rest = later;
            let part = tiles.start + part.start..tiles.start + part.end;
            self.spread(grid, input, part, strip);
        }
    }

    fn spread(&self, grid: &Grid, input: &[f32], tiles: Range<usize>, strip: &mut [f32]) {
        with_form!(self.tiles, F, M, N => dispatch(
            self.level,
            Spread::<F, M, N> {
                grid,
                input,
                tiles,
                strip,
                form: PhantomData,
            },
        ));
    }

    /// Computes a block of the output from the points of some tiles.
    fn gather(
        &self,
        grid: &Grid,
        input: &[f32],
        points: &[f32],
        tiles: Range<usize>,
        block: &mut Block<'_, f32>,
        first_pixel: usize,
    ) {
        with_form!(self.tiles, F, M, N => dispatch(
            self.level,
            self.gathered::<F, M, N>(grid, input, points, tiles, block, first_pixel),
        ));
    }

    fn gathered<'b, 'c, F, const M: usize, const N: usize>(
        &'b self,
        grid: &'b Grid,
        input: &'b [f32],
        points: &'b [f32],
        tiles: Range<usize>,
        block: &'b mut Block<'c, f32>,
        first_pixel: usize,
    ) -> Gather<'b, 'c, F, M, N> {
        Gather {
            grid,
            input,
            points,
            tiles,
            filter: self.filter,
            block,
            first_pixel,
            store: self.store,
            form: PhantomData,
        }
    }

    /// Where a piece of lines ends that begins at `from`: as many as fit, at least one, and no part
    /// of an image beside a whole one. A part of an image has as many lines for each thread.
    fn piece(
        &self,
        grid: &Grid,
        from: usize,
        threads: usize,
        fits: impl Fn(usize) -> bool,
    ) -> usize {
        let lines = grid.tiles.0;
        let left = lines * self.conv.batch - from;
        let most = |step: usize, most: usize| {
            let mut count = step;
            while count + step <= most && fits(count + step) {
                count += step;
            }
            count
        };
        if from.is_multiple_of(lines) && fits(lines) {
            return from + most(lines, left);
        }
        // As equal as may be.
        let left = lines - from % lines;
        let fitting = most(1, left);
        let unit = if fitting < threads { 1 } else { threads };
        let pieces = left.div_ceil(fitting - fitting % unit);
        from + left.div_ceil(pieces).next_multiple_of(unit).min(left)
    }

    /// Elements of the points of some lines in groups of `each`.
    fn groups_len(&self, grid: &Grid, lines: usize, each: usize) -> usize {
        let fits = |lines: usize| grid.points_len(self.level, lines * grid.tiles.1);
        let before = lines.div_ceil(each) - 1;
        before * fits(each) + fits(lines - before * each)
    }

    /// How a piece is shared out, so that no thread has much more work than it must. Lines come
    /// first: what follows mostly works on the same pixels.
    fn share(&self, grid: &Grid, piece: Range<usize>, room: usize, threads: usize) -> Share {
        let lines = piece.len();
        let panels = panels(self.level, self.conv.out_channels);
        let mut best = Share { lines, panels };
        let cost = |share: Share| {
            let tasks = lines.div_ceil(share.lines) * panels.div_ceil(share.panels);
            let each = Strips::cost(self.level, share.lines * grid.tiles.1) * share.panels;
            tasks.div_ceil(threads) * each
        };
        // Blocks must have as many pixels each.
        let step = if grid.has_equal_lines(lines) {
            1
        } else {
            grid.tiles.0
        };
        let mut across = 1;
        while across <= panels.min(threads) {
            let width = panels.div_ceil(across);
            for tasks in 1..=threads.div_ceil(across) {
                let height = lines.div_ceil(tasks).next_multiple_of(step).min(lines);
                let share = Share {
                    lines: height,
                    panels: width,
                };
                if self.groups_len(grid, lines, height) <= room && cost(share) < cost(best) {
                    best = share;
                }
            }
            across *= 2;
        }
        best
    }
}
