//! Strips of rows: some tiles over each other, by some panels of B.

use super::panels::{Columns, Panel};
use super::piece::Piece;
use super::tiling::{MAX_ROWS, in_copy, in_rest, tiles};
use crate::gemm::pack::panel_at;
use crate::gemm::source::{Position, Source};
use crate::gemm::tile::{self, Store, Strip};
use crate::simd::Simd;
use crate::simd::blocks::Block;
use crate::simd::patch::Rows;

/// Multiplies the rows of a strip where they lie by some panels of B, `PARTIAL` if these are not
/// packed.
#[inline(always)]
pub(super) fn rest_columns<S: Simd, const PARTIAL: bool>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    pieces: (Piece, Piece),
    strip: &[Position],
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    for panel in b.panels.clone() {
        let b = Panel::new(b.b, b.n, b.level, panel);
        let mut rest = strip;
        tiles!(S, b.width / S::LANES, padded, rest.len(), |MR, NV| {
            if const { !in_rest(MR) } {
                break;
            }
            let (now, later) = rest.split_at(MR.min(rest.len()));
            rows_tile::<S, MR, NV, PARTIAL>(s, source, &b, pieces, now, block, store);
            rest = later;
        });
    }
}

/// Whether a tap lies outside of the image for all rows of a strip, which then are what they would
/// be if it had been multiplied.
#[inline(always)]
pub(super) fn leave_out(
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    piece: Piece,
    strip: &[Position],
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) -> bool {
    let finished = store.bias.is_some() || store.clamp.is_some() || store.map.is_some();
    if finished || b.panels.is_empty() || !source.outside(strip, piece.offsets(source)) {
        return false;
    }
    if !store.accumulate {
        let first = panel_at(b.level, b.n, b.panels.start).0;
        let (last, width) = panel_at(b.level, b.n, b.panels.end - 1);
        let columns = first - block.column..(last + width).min(b.n) - block.column;
        for position in strip {
            let row = position.row - block.row;
            block.row(row)[columns.clone()].fill(0.0);
        }
    }
    true
}

/// Applies what comes last to the rows of a strip, while they are in the first cache.
#[inline(always)]
pub(super) fn map_strip(
    b: &Columns<'_, '_>,
    strip: &[Position],
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let Some(function) = store.map else { return };
    let Some(columns) = b.columns_in(block) else {
        return;
    };
    let mut rows = [0; MAX_ROWS];
    for (row, position) in rows.iter_mut().zip(strip) {
        *row = position.row - block.row;
    }
    block.apply(&rows[..strip.len()], columns, function);
}

/// A strip whose turn it is.
pub(super) struct Turn<'a> {
    pub(super) strip: &'a [Position],
    /// Which one of the block it is.
    pub(super) number: usize,
    /// The rows of the next one, as far as they are asked for.
    pub(super) next: &'a [Position],
}

/// Multiplies the rows of a whole strip, which it copies, by some panels of B. Meanwhile it asks
/// for the rows `next`, or, where there are none, for a part of B.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn strip_columns<S: Simd>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    (from, to): (Piece, Piece),
    turn: Turn<'_>,
    memory: &mut Strip<MAX_ROWS>,
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let Turn {
        strip,
        number,
        next,
    } = turn;
    let merged = from.merges(to, source, strip);
    let (mut piece, mut k) = (from, 0);
    while piece.is_before(to, source) {
        let run = piece.run_to(to, merged, source);
        for (position, row) in strip.iter().zip(&mut *memory) {
            let from = piece.seen(source, position, run);
            #[cfg(not(without = "scaled"))]
            if let Some(scale) = source.scale {
                let scale = scale.columns_on(piece.element);
                tile::copy_scaled(s, from, &scale, &mut row[k..]);
                continue;
            }
            tile::copy(s, from, &mut row[k..]);
        }
        k += run;
        piece = piece.after(run, merged, source);
    }
    let mut names = [0; MAX_ROWS];
    for (name, position) in names.iter_mut().zip(strip) {
        *name = position.row - block.row;
    }
    let first = from.rows_before(source);
    let one = from.run(to, source.depth) == k;
    for panel in b.panels.clone() {
        let ahead = match next.get(panel - b.panels.start).filter(|_| one) {
            Some(position) => from.seen(source, position, k),
            None => b.ahead(panel, number, k),
        };
        let b = Panel::new(b.b, b.n, b.level, panel);
        let b_row = b.row_on(first);
        let place = (b.first - block.column, b.columns);
        let mut done = 0;
        tiles!(
            S,
            b.width / S::LANES,
            exact,
            strip.len() - done,
            |MR, NV| {
                if const { in_copy(S::REGISTERS, MR, NV) }
                    && let Some(rows) = memory[done..].first_chunk::<MR>()
                {
                    let names = &names[done..done + MR];
                    copied_tile::<S, MR, NV>(
                        s,
                        &CopiedRows { rows, at: 0, k },
                        b_row,
                        ahead,
                        (names, place),
                        block,
                        store,
                    );
                }
                done += MR;
            }
        );
    }
}

/// Rows of a strip: `k` elements from `at` on. Only the largest level, and rows that follow each
/// other, may have them anywhere else than at 0.
pub(super) struct CopiedRows<'a, const MR: usize> {
    pub(super) rows: &'a Strip<MR>,
    pub(super) at: usize,
    pub(super) k: usize,
}

/// Multiplies rows of a strip by a panel of B, and writes the products to the rows of the block that
/// `names` has.
#[inline(always)]
pub(super) fn copied_tile<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    copied: &CopiedRows<'_, MR>,
    b_row: &[f32],
    ahead: &[f32],
    (names, place): (&[usize], (usize, usize)),
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let &CopiedRows { rows, at, k } = copied;
    let seen = Rows {
        data: &rows.as_flattened()[at..],
        lines: 1,
        pitch: 0,
        k,
    };
    let follow = names.windows(2).all(|pair| pair[0] + 1 == pair[1]);
    let whole = follow && {
        let columns = place.0..place.0 + place.1;
        let fetch = store.accumulate || block.shared;
        let mut to = block.patch(names[0]..names[0] + MR, columns);
        if fetch {
            to.fetch();
        }
        let finish = store.finish(place);
        s.tile::<MR, NV, { tile::STRIP }>(&seen, b_row, ahead, &mut to, &finish)
    };
    // Rows follow each other unless they are those of an image.
    #[cfg(without = "images")]
    if const { super::tiling::is_whole(S::LEVEL, S::REGISTERS, MR, NV) } {
        assert!(whole, "rows that follow each other");
        return;
    }
    if !whole {
        assert_eq!(at, 0, "rows that do not start where a strip does");
        let zero = [[s.zero(); NV]; MR];
        let sums = tile::strip::<S, MR, NV, { tile::STRIP }>(s, zero, rows, k, b_row, ahead);
        tile::store(s, &sums, block, names, place, store);
    }
}

#[inline(always)]
pub(super) fn rows_tile<S: Simd, const MR: usize, const NV: usize, const PARTIAL: bool>(
    s: S,
    source: &Source<'_>,
    b: &Panel<'_>,
    (from, to): (Piece, Piece),
    strip: &[Position],
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    // Rows that the strip lacks repeat its last one; they are not stored.
    let mut at = [strip[strip.len() - 1]; MR];
    at[..strip.len()].copy_from_slice(strip);
    let merged = from.merges(to, source, &at);
    let mut sums = [[s.zero(); NV]; MR];
    let mut piece = from;
    while piece.is_before(to, source) {
        let run = piece.run_to(to, merged, source);
        let mut a: [&[f32]; MR] = [&[]; MR];
        for i in 0..MR {
            a[i] = piece.seen(source, &at[i], run);
        }
        let b_row = b.row_on(piece.row_of_b(source));
        sums = tile::rows::<S, MR, NV, PARTIAL>(s, sums, a, b_row, b.ld, b.columns);
        piece = piece.after(run, merged, source);
    }
    let mut rows = [0; MR];
    for (row, position) in rows.iter_mut().zip(strip) {
        *row = position.row - block.row;
    }
    let place = (b.first - block.column, b.columns);
    tile::store(s, &sums, block, &rows[..strip.len()], place, store);
}
