//! Panels of B, as a block of C sees them.

use core::ops::Range;

use super::B;
use crate::base::level::Level;
use crate::gemm::pack::{self, panel_at};
use crate::gemm::tile;
use crate::simd::blocks::Block;

/// The panels of B that a block covers.
#[inline(always)]
pub(super) fn panels_of(level: Level, n: usize, block: &Block<'_, f32>) -> Range<usize> {
    let width = pack::panel(level);
    let start = block.column / width;
    let end = (block.column + block.columns).div_ceil(width);
    start..end.min(pack::panels(level, n))
}

/// Some panels of B.
pub(super) struct Columns<'a, 'b> {
    pub(super) b: &'b B<'a>,
    /// Columns of all of B.
    pub(super) n: usize,
    pub(super) level: Level,
    pub(super) panels: Range<usize>,
    /// Rows of A are what comes from far away, and those of the next strip are asked for.
    pub(super) fetches_a: bool,
    /// The panel and the row of B that come next.
    pub(super) next: Option<(usize, usize)>,
    /// The end of the panels that the block covers.
    pub(super) end: usize,
}

impl<'a> Columns<'a, '_> {
    /// What comes in the place of a panel next: the part of it that strip number `strip` asks for,
    /// of `k` columns.
    #[inline(always)]
    pub(super) fn ahead(&self, panel: usize, strip: usize, k: usize) -> &'a [f32] {
        let Some((start, row)) = self.next else {
            return &[];
        };
        let index = start + panel - self.panels.start;
        let part = tile::AHEAD * k;
        if index >= self.end || strip * part >= k * pack::panel(self.level) {
            return &[];
        }
        let rows = Panel::new(self.b, self.n, self.level, index).row_on(row);
        let rows = rows.get(strip * part..).unwrap_or(&[]);
        &rows[..part.min(rows.len())]
    }

    /// The columns of a block that the panels have, if there are panels.
    #[inline(always)]
    pub(super) fn columns_in(&self, block: &Block<'_, f32>) -> Option<Range<usize>> {
        let last = self.panels.end.checked_sub(1)?;
        if self.panels.is_empty() {
            return None;
        }
        let first = panel_at(self.level, self.n, self.panels.start).0;
        let (last, width) = panel_at(self.level, self.n, last);
        Some(first - block.column..(last + width).min(self.n) - block.column)
    }
}

/// One panel of B.
pub(super) struct Panel<'a> {
    pub(super) data: &'a [f32],
    pub(super) ld: usize,
    /// First column in C.
    pub(super) first: usize,
    /// Columns that count.
    pub(super) columns: usize,
    /// Columns in memory.
    pub(super) width: usize,
}

impl<'a> Panel<'a> {
    #[inline(always)]
    pub(super) fn new(b: &B<'a>, n: usize, level: Level, index: usize) -> Self {
        let (first, width) = panel_at(level, n, index);
        let columns = width.min(n - first);
        match *b {
            B::Packed { data, k, .. } => Self {
                data: &data[first * k..][..width * k],
                ld: width,
                first,
                columns,
                width,
            },
            #[cfg(not(without = "plain"))]
            B::Rows { data, ld } => Self {
                data: &data[first.min(data.len())..],
                ld,
                first,
                columns,
                width,
            },
        }
    }

    #[inline(always)]
    pub(super) fn row_on(&self, row: usize) -> &'a [f32] {
        self.data.get(row * self.ld..).unwrap_or(&[])
    }
}
