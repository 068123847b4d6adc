//! Products of a left-hand side whose columns are runs of memory.

use super::panels::{Columns, Panel};
use super::tiling::{MAX_ROWS, most_rows, tiles};
use super::{ROWS_OF_B, apart};
use crate::gemm::tile::{self, Store};
use crate::simd::Simd;
use crate::simd::blocks::Block;

/// Elements of a column that are copied, and from one column to the next: a line of the cache.
const LINE: usize = 16;
/// Elements of all columns from which on they are far, and of one: what the second cache holds, and
/// lines that share few places of it.
const FAR: (usize, usize) = (1 << 19, 256);

/// Columns that are copied: none without std, because the stack of firmware has no room for them.
const MOST_COPIED: usize = if cfg!(feature = "std") { ROWS_OF_B } else { 0 };

const _: () = assert!(MAX_ROWS <= LINE);

/// Whether `k` columns, `ld` apart, come from behind the second cache, line by line.
pub(in crate::gemm) fn are_far(ld: usize, k: usize) -> bool {
    ld >= FAR.1 && ld.saturating_mul(k) >= FAR.0
}

/// Columns that are runs of memory, `ld` apart.
pub(super) struct Left<'a> {
    pub data: &'a [f32],
    pub ld: usize,
    /// They come from behind the second cache.
    pub far: bool,
}

/// Multiplies all rows of a block by some panels of B, from row `from` on to row `to`, at most
/// [`ROWS_OF_B`]. Of columns that are `far`, as many rows as the tallest tile has are copied at a
/// time, to be read again for each panel.
#[inline(always)]
pub(super) fn panels<S: Simd>(
    s: S,
    left: Left<'_>,
    b: &Columns<'_, '_>,
    (from, to): (usize, usize),
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let most = const { most_rows(S::REGISTERS)[1] };
    let (a, lda) = (left.data, left.ld);
    let copied = cfg!(feature = "std") && left.far && b.panels.len() > 1;
    let mut copies = copied.then_some([[0.0; LINE]; MOST_COPIED]);
    let at_once = if copies.is_some() { most } else { block.rows };
    let a = &a[block.row.min(a.len())..];
    let mut row = 0;
    while row < block.rows {
        let rows = row..block.rows.min(row + at_once);
        let a_rows = &a[row.min(a.len())..];
        row = rows.end;
        let (a_rows, ld, mut ahead) = match &mut copies {
            Some(copies) => {
                let copies = &mut copies[..to - from];
                copy(a_rows, lda, rows.len(), copies);
                (copies.as_flattened(), LINE, a.get(row..).unwrap_or(&[]))
            }
            None => (a_rows, lda, &[][..]),
        };
        for index in b.panels.clone() {
            s.apart(apart::ColumnsPanel {
                a: (a_rows, ld),
                b: &Panel::new(b.b, b.n, b.level, index),
                rows_of_b: (from, to),
                rows: rows.clone(),
                ahead: (ahead, lda),
                block,
                store,
            });
            ahead = &[];
        }
    }
}

/// Copies the first `rows` elements of columns, which are `lda` apart, and maybe some behind them.
#[inline(always)]
fn copy(mut a: &[f32], lda: usize, rows: usize, memory: &mut [[f32; LINE]]) {
    for to in memory {
        match a.first_chunk::<LINE>() {
            Some(line) => *to = *line,
            None => to[..rows].copy_from_slice(&a[..rows]),
        }
        a = a.get(lda..).unwrap_or(&[]);
    }
}

/// Multiplies some rows of a block, of which A begins with the first, by one panel of B, from row
/// `from` on to row `to`. Meanwhile it asks for an element of each column of `ahead`.
#[inline(always)]
pub(super) fn rows_panel<S: Simd>(s: S, of: apart::ColumnsPanel<'_, '_, '_>) {
    let apart::ColumnsPanel {
        a: (a, lda),
        b,
        rows_of_b: (from, to),
        rows,
        ahead,
        block,
        store,
    } = of;
    let mut row = rows.start;
    tiles!(S, b.width / S::LANES, exact, rows.end - row, |MR, NV| {
        let a = &a[(row - rows.start).min(a.len())..];
        let zero = [[s.zero(); NV]; MR];
        let b_row = b.row_on(from);
        let sums = tile::columns::<S, MR, NV, false, true>(
            s,
            zero,
            to - from,
            a,
            lda,
            b_row,
            b.ld,
            0,
            ahead,
        );
        let mut names = [0; MR];
        for (i, name) in names.iter_mut().enumerate() {
            *name = row + i;
        }
        let place = (b.first - block.column, b.columns);
        tile::store(s, &sums, block, &names, place, store);
        row += MR;
    });
}
