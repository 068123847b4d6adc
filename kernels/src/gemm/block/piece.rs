//! Places in the walk over the rows of B.

use super::ROWS_OF_B;
use crate::gemm::source::{Position, Source};
use crate::gemm::tile::MAX_RUN;

/// A place in the walk over the rows of B: tap line, tap, first element.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub y: usize,
    pub x: usize,
    pub element: usize,
}

impl Piece {
    /// Rows of B before this place, if all taps are walked.
    #[inline(always)]
    pub fn rows_before(self, source: &Source<'_>) -> usize {
        (self.y * source.x.taps.count + self.x) * source.depth + self.element
    }

    /// Whether the walk to `to` goes through whole lines of taps.
    #[inline(always)]
    pub fn whole_lines(self, to: Self) -> bool {
        (self.x, self.element, to.x, to.element) == (0, 0, 0, 0)
    }

    /// Elements from here to the end of the tap or of the walk to `to`.
    #[inline(always)]
    pub fn run(self, to: Self, depth: usize) -> usize {
        if (self.y, self.x) == (to.y, to.x) {
            to.element - self.element
        } else {
            depth - self.element
        }
    }

    /// The place after a run, or after a line of taps if runs are merged to lines.
    #[inline(always)]
    pub fn after(mut self, run: usize, merged: bool, source: &Source<'_>) -> Self {
        if merged {
            self.y += 1;
            return self;
        }
        self.element += run;
        if self.element >= source.depth {
            self.element = 0;
            self.x += 1;
        }
        if self.x >= source.x.taps.count {
            self.x = 0;
            self.y += 1;
        }
        self
    }

    /// As [`Piece::run`], or the elements of a line of taps if runs are merged to lines.
    #[inline(always)]
    pub fn run_to(self, to: Self, merged: bool, source: &Source<'_>) -> usize {
        if merged {
            source.depth * source.x.taps.count
        } else {
            self.run(to, source.depth)
        }
    }

    /// Whether runs are merged to lines of taps, for all of these positions.
    #[inline(always)]
    pub fn merges(self, to: Self, source: &Source<'_>, positions: &[Position]) -> bool {
        self.whole_lines(to) && source.lines_are_runs(positions)
    }

    /// Whether a walk to `to` is not over yet.
    #[inline(always)]
    pub fn is_before(self, to: Self, source: &Source<'_>) -> bool {
        self != to && self.y < source.y.taps.count
    }

    /// What a position sees from here on.
    #[inline(always)]
    pub fn seen<'a>(self, source: &Source<'a>, position: &Position, run: usize) -> &'a [f32] {
        source.run(position, self.offsets(source), self.element, run)
    }

    /// The row of B for this place.
    #[inline(always)]
    pub fn row_of_b(self, source: &Source<'_>) -> usize {
        let (y, x) = (&source.y.taps, &source.x.taps);
        let line = y.line + self.y * y.line_step;
        let tap = line * source.filter_width + x.line + self.x * x.line_step;
        tap * source.depth + self.element
    }

    /// The vertical and horizontal offset of the tap.
    #[inline(always)]
    pub fn offsets(self, source: &Source<'_>) -> (isize, isize) {
        let (y, x) = (&source.y.taps, &source.x.taps);
        (
            y.offset + self.y.cast_signed() * y.offset_step,
            x.offset + self.x.cast_signed() * x.offset_step,
        )
    }

    /// The place at most about [`ROWS_OF_B`] rows on, and whether it is the end.
    #[inline(always)]
    pub fn advance(self, source: &Source<'_>) -> (Self, bool) {
        let (lines, taps) = (source.y.taps.count, source.x.taps.count);
        let depth = source.depth;
        let mut to = self;
        if depth > MAX_RUN {
            // One run of one tap.
            let runs = depth.div_ceil(MAX_RUN);
            to.element += depth.div_ceil(runs).next_multiple_of(16).min(MAX_RUN);
            if to.element >= depth {
                to.element = 0;
                to.x += 1;
            }
        } else if source.leaves_out {
            // One tap.
            to.x += 1;
        } else if depth * taps > ROWS_OF_B {
            // Some taps of one line.
            to.x += (ROWS_OF_B / depth.max(1)).max(1);
        } else {
            // Whole lines.
            to.y += (ROWS_OF_B / (depth * taps).max(1)).max(1);
        }
        if to.x >= taps {
            to.x = 0;
            to.y += 1;
        }
        (to, to.y >= lines)
    }
}
