//! Places in the walk over the rows of B.

use crate::gemm::source::{Position, Source};
use crate::gemm::tile::MAX_RUN;

/// A place in the walk over the rows of B.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Piece {
    pub element: usize,
}

impl Piece {
    /// Rows of B before this place.
    #[inline(always)]
    pub fn rows_before(self, _: &Source<'_>) -> usize {
        self.element
    }

    /// Elements from here to the end of the walk to `to`.
    #[inline(always)]
    pub fn run(self, to: Self, _: usize) -> usize {
        to.element - self.element
    }

    /// As [`Piece::run`].
    #[inline(always)]
    pub fn run_to(self, to: Self, _: bool, _: &Source<'_>) -> usize {
        to.element - self.element
    }

    /// Whether runs are merged: a row has only one.
    #[inline(always)]
    pub fn merges(self, _: Self, _: &Source<'_>, _: &[Position]) -> bool {
        false
    }

    /// Whether a walk to `to` is not over yet.
    #[inline(always)]
    pub fn is_before(self, to: Self, _: &Source<'_>) -> bool {
        self != to
    }

    /// What a row has from here on.
    #[inline(always)]
    pub fn seen<'a>(self, source: &Source<'a>, position: &Position, run: usize) -> &'a [f32] {
        source.run(position, self.element, run)
    }

    /// The row of B for this place.
    #[inline(always)]
    pub fn row_of_b(self, _: &Source<'_>) -> usize {
        self.element
    }

    /// The place after a run.
    #[inline(always)]
    pub fn after(mut self, run: usize, _: bool, _: &Source<'_>) -> Self {
        self.element += run;
        self
    }

    /// The place after the next rows of B, and whether they are the last ones.
    #[inline(always)]
    pub fn advance(self, source: &Source<'_>) -> (Self, bool) {
        let depth = source.depth;
        let runs = depth.div_ceil(MAX_RUN).max(1);
        let run = depth.div_ceil(runs).next_multiple_of(16).min(MAX_RUN);
        let element = depth.min(self.element + run);
        (Self { element }, element == depth)
    }
}
