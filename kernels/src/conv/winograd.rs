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
mod tiles;

use core::marker::PhantomData;
use core::ops::Range;

use self::body::{Gather, Spread};
pub use self::filter::Taps;
use self::form::with_form;
pub use self::gradient::FilterGradient;
use self::grid::{Grid, Strips};
pub use self::once::Once;
pub use self::tiles::Tiles;
use super::geometry::Conv;
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::gemm::block::strip_rows;
use crate::gemm::pack::{panel, panels};
use crate::gemm::tile::Store;
use crate::simd::blocks::{Block, Cut, for_each_block, for_each_chunk, for_each_pair};
use crate::simd::dispatch;

/// Elements of points that a thread works on at a time: they stay in the second cache.
const AT_ONCE: usize = 128 * 1024;
/// The part of the time that threads lose which wait for each other's points.
const MEETING: usize = 16;

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
