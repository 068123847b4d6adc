//! Where the rows of A are: in a matrix, as no layer of this model sees an image through a filter.

use super::scale::Scale;

/// The rows of A.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    data: &'a [f32],
    rows: usize,
    /// Elements from one row to the next.
    pub pixel: usize,
    /// First element of a row that is used.
    channel: usize,
    /// Elements of a row that are used.
    pub depth: usize,
    /// What becomes of the elements of a row.
    #[cfg(not(without = "scaled"))]
    pub scale: Option<&'a Scale<'a>>,
}

/// A row of A and of the output.
#[derive(Clone, Copy, Default)]
pub struct Position {
    /// Its number.
    pub row: usize,
}

impl<'a> Source<'a> {
    /// The rows of a matrix, `ld` apart, columns `first .. first + depth`.
    pub fn plain(data: &'a [f32], rows: usize, ld: usize, first: usize, depth: usize) -> Self {
        Self {
            data,
            rows,
            pixel: ld,
            channel: first,
            depth,
            #[cfg(not(without = "scaled"))]
            scale: None,
        }
    }

    #[cfg(not(without = "scaled"))]
    /// The same rows, scaled.
    pub fn scaled_by(mut self, scale: Option<&'a Scale<'a>>) -> Self {
        self.scale = scale;
        self
    }

    /// Whether elements are scaled.
    #[inline(always)]
    pub const fn is_scaled(&self) -> bool {
        #[cfg(not(without = "scaled"))]
        if self.scale.is_some() {
            return true;
        }
        false
    }

    /// From element `from` on, row `row` and those behind it before they are scaled,
    /// [`Source::pixel`] elements apart.
    #[inline(always)]
    pub fn matrix(&self, row: usize, from: usize) -> Option<&'a [f32]> {
        self.data.get(row * self.pixel + self.channel + from..)
    }

    /// The rows `from..to`.
    #[inline(always)]
    pub fn positions(&self, from: usize, to: usize) -> Positions {
        Positions {
            next: from,
            to: to.min(self.rows),
        }
    }

    /// Elements `from .. from + run` of a row.
    #[inline(always)]
    pub fn run(&self, position: &Position, from: usize, run: usize) -> &'a [f32] {
        &self.data[position.row * self.pixel + self.channel + from..][..run]
    }

    /// Whether the rows of B that belong to any part of a walk follow each other.
    #[inline(always)]
    pub const fn taps_follow(&self) -> bool {
        true
    }
}

/// Iterates over rows.
#[derive(Clone)]
pub struct Positions {
    next: usize,
    to: usize,
}

impl Positions {
    /// Rows from the next one to the last.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.to.saturating_sub(self.next)
    }

    /// Fills the front of `strip` with the next rows and returns how many there were.
    #[inline(always)]
    pub fn fill(&mut self, strip: &mut [Position]) -> usize {
        let count = self.left().min(strip.len());
        for slot in &mut strip[..count] {
            slot.row = self.next;
            self.next += 1;
        }
        count
    }
}
