//! Convolutions of 3 x 3 taps by minimal filtering (S. Winograd 1980; A. Lavin and S. Gray, Fast
//! Algorithms for Convolutional Neural Networks, 2016).
//!
//! The image is cut into tiles of 4 x 4 or 2 x 2 outputs. Inputs of a tile and filters are
//! transformed to 36 or 16 points; at each point the tiles are a matrix of as many rows, multiplied
//! by the filter's matrix of that point; and what comes out is transformed back. So an output takes
//! 2.25 or 4 products instead of 9.
//!
//! The error is relative to the largest elements that a tile sees, not to those of each output. A
//! tile whose outputs are not all finite is summed over the taps instead, so that an infinity, a
//! NaN or an overflow reaches those outputs that see it and no other.

mod body;
mod filter;
mod form;
mod gradient;
mod once;
#[cfg(test)]
mod tests;

use core::marker::PhantomData;
use core::ops::Range;

use self::body::{Gather, Spread};
pub use self::filter::Taps;
use self::form::{Form, Four, Two};
pub use self::gradient::FilterGradient;
pub use self::once::Once;
use super::geometry::{Conv, Window};
use crate::error::{Error, Result};
use crate::gemm::block::strip_rows;
use crate::gemm::pack::{packed_len, panel, panels};
use crate::gemm::tile::Store;
use crate::level::Level;
use crate::parallel::Parallel;
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
/// Channels of a tile that lie side by side.
const BLOCK: usize = 32;
/// Elements between the points of a strip, so that no two fall on the same lines of a cache.
const GAP: usize = 16;
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
    /// 2 x 2 outputs.
    Two,
    /// 4 x 4 outputs.
    Four,
}

impl Tiles {
    /// The tiles that suit a convolution, if any do; the number of images does not count.
    ///
    /// Without `std` none do: filters are packed at every call there, and the transform takes
    /// longer than it saves.
    #[must_use]
    pub fn of(conv: &Conv) -> Option<Self> {
        let taps = |w: &Window| (w.size, w.stride, w.dilation) == (3, 1, 1);
        let (depth, columns) = (conv.in_channels, conv.out_channels);
        if !cfg!(feature = "std")
            || !taps(&conv.y)
            || !taps(&conv.x)
            || conv.groups != 1
            || depth.min(columns) < CHANNELS
        {
            return None;
        }
        let image = Conv { batch: 1, ..*conv };
        let pixels = conv.y.output.saturating_mul(conv.x.output);
        let weights = depth.saturating_mul(columns);
        let tiles = if pixels < PIXELS {
            return None;
        } else if pixels >= PIXELS_OF_FOUR
            && (weights <= NEAR || weights <= FAR.min(pixels.saturating_mul(REUSED)))
        {
            Self::Four
        } else if weights <= FAR.min(pixels.saturating_mul(REUSED_BY_TWO)) {
            Self::Two
        } else {
            return None;
        };
        image.check().ok()?;
        [Level::Portable, Level::Avx2, Level::Avx512]
            .into_iter()
            .all(|level| tiles.scratch_len(level, &image) <= most_scratch(&image))
            .then_some(tiles)
    }

    const fn out(self) -> usize {
        match self {
            Self::Two => Two::OUT,
            Self::Four => Four::OUT,
        }
    }

    const fn points(self) -> usize {
        match self {
            Self::Two => Two::SIDE * Two::SIDE,
            Self::Four => Four::SIDE * Four::SIDE,
        }
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
        let grid = Grid::new(conv, self);
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

/// The tiles of all images, line by line.
#[derive(Clone, Copy, Debug)]
struct Grid {
    conv: Conv,
    /// Outputs of a tile along an axis.
    out: usize,
    /// Tiles of an image: lines, and those of a line.
    tiles: (usize, usize),
}

/// Where a tile is.
#[derive(Clone, Copy, Debug)]
struct Place {
    image: usize,
    /// The first output, vertical and horizontal.
    output: (usize, usize),
}

impl Grid {
    fn new(conv: &Conv, tiles: Tiles) -> Self {
        let out = tiles.out();
        Self {
            conv: *conv,
            out,
            tiles: (conv.y.output.div_ceil(out), conv.x.output.div_ceil(out)),
        }
    }

    /// Where a tile is, counted over all images.
    #[inline(always)]
    fn place(&self, tile: usize) -> Place {
        let (line, x) = (tile / self.tiles.1, tile % self.tiles.1);
        Place {
            image: line / self.tiles.0,
            output: (line % self.tiles.0 * self.out, x * self.out),
        }
    }

    /// The first pixel of the line that a tile reads at `i`, if it lies in the image.
    #[inline(always)]
    fn input_line(&self, place: &Place, i: usize) -> Option<usize> {
        let (y, x) = (&self.conv.y, &self.conv.x);
        let line = (place.output.0 + i).checked_sub(y.before)?;
        (line < y.input).then_some((place.image * y.input + line) * x.input)
    }

    /// The pixel of a line that a tile reads at `j`, if it lies in the image.
    #[inline(always)]
    fn input_pixel(&self, place: &Place, line: usize, j: usize) -> Option<usize> {
        let x = &self.conv.x;
        let at = (place.output.1 + j).checked_sub(x.before)?;
        (at < x.input).then_some(line + at)
    }

    /// The pixel that a tile reads at (`i`, `j`), if it lies in the image.
    #[inline(always)]
    fn pixel(&self, place: &Place, i: usize, j: usize) -> Option<usize> {
        self.input_pixel(place, self.input_line(place, i)?, j)
    }

    /// The first pixel of line `i` of the outputs of a tile, and how many there are.
    #[inline(always)]
    fn line(&self, place: &Place, i: usize) -> Option<(usize, usize)> {
        let (y, x) = (self.conv.y.output, self.conv.x.output);
        let line = place.output.0 + i;
        (line < y).then(|| {
            let first = (place.image * y + line) * x + place.output.1;
            (first, self.out.min(x - place.output.1))
        })
    }

    /// The first pixel of the output of a line of tiles, counted over all images.
    fn first_pixel(&self, line: usize) -> usize {
        let (image, line) = (line / self.tiles.0, line % self.tiles.0);
        let y = self.conv.y.output;
        (image * y + (line * self.out).min(y)) * self.conv.x.output
    }

    /// Elements of a point of a strip of so many lines.
    #[inline(always)]
    fn point_len(&self, lines: usize) -> usize {
        self.conv.in_channels.div_ceil(BLOCK) * BLOCK * lines + GAP
    }

    /// Elements of a strip of so many tiles.
    #[inline(always)]
    fn strip_len(&self, level: Level, tiles: usize) -> usize {
        let side = self.out + 2;
        side * side * self.point_len(Strips::lines(level, tiles))
    }

    /// Elements of the points of so many tiles.
    fn points_len(&self, level: Level, tiles: usize) -> usize {
        let strips = Strips::new(level, tiles);
        let last = strips.tiles(strips.count - 1).len();
        (strips.count - 1) * self.strip_len(level, strips.each) + self.strip_len(level, last)
    }
}

/// Tiles cut into strips, each as many as the micro-kernels take at once.
#[derive(Clone, Copy, Debug)]
struct Strips {
    tiles: usize,
    /// Tiles of a strip; the last one may have fewer.
    each: usize,
    count: usize,
}

impl Strips {
    #[inline(always)]
    fn new(level: Level, tiles: usize) -> Self {
        let each = strip_rows(level);
        Self {
            tiles,
            each,
            count: tiles.div_ceil(each).max(1),
        }
    }

    /// The tiles of a strip.
    #[inline(always)]
    fn tiles(&self, strip: usize) -> Range<usize> {
        let first = strip * self.each;
        first.min(self.tiles)..(first + self.each).min(self.tiles)
    }

    /// Lines of memory for so many tiles of a strip: the micro-kernels may read more than count.
    #[inline(always)]
    fn lines(level: Level, tiles: usize) -> usize {
        match (level, tiles) {
            (Level::Avx512, 9..) => strip_rows(level),
            (Level::Avx512, 5..=7) => 7,
            _ => tiles.next_multiple_of(4),
        }
    }

    /// What so many tiles cost: the lines that the micro-kernels multiply.
    fn cost(level: Level, tiles: usize) -> usize {
        let strips = Self::new(level, tiles);
        let last = Self::lines(level, strips.tiles(strips.count - 1).len());
        (strips.count - 1) * strips.each + last.min(strips.each)
    }
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
        let grid = Grid::new(self.conv, self.tiles);
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
                first * grid.tiles.1..(first + share.lines).min(to) * grid.tiles.1
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
        let step = if self.has_equal_lines(grid, all) {
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
                    let tiles = from * grid.tiles.1..to * grid.tiles.1;
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

    /// Whether so many lines of tiles have as many pixels each, but perhaps the last.
    fn has_equal_lines(&self, grid: &Grid, lines: usize) -> bool {
        self.conv.y.output.is_multiple_of(grid.out) || lines <= grid.tiles.0
    }

    fn spread(&self, grid: &Grid, input: &[f32], tiles: Range<usize>, strip: &mut [f32]) {
        match self.tiles {
            Tiles::Two => dispatch(
                self.level,
                Spread {
                    grid,
                    input,
                    tiles,
                    strip,
                    form: PhantomData::<Two>,
                },
            ),
            Tiles::Four => dispatch(
                self.level,
                Spread {
                    grid,
                    input,
                    tiles,
                    strip,
                    form: PhantomData::<Four>,
                },
            ),
        }
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
        match self.tiles {
            Tiles::Two => dispatch(
                self.level,
                self.gathered::<Two>(grid, input, points, tiles, block, first_pixel),
            ),
            Tiles::Four => dispatch(
                self.level,
                self.gathered::<Four>(grid, input, points, tiles, block, first_pixel),
            ),
        }
    }

    fn gathered<'b, 'c, F: Form>(
        &'b self,
        grid: &'b Grid,
        input: &'b [f32],
        points: &'b [f32],
        tiles: Range<usize>,
        block: &'b mut Block<'c, f32>,
        first_pixel: usize,
    ) -> Gather<'b, 'c, F> {
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
        let step = if self.has_equal_lines(grid, lines) {
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
