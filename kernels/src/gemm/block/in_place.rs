//! Products of rows of a matrix where they lie in memory, without a copy of them.

use super::{Columns, MAX_ROWS, Panel, Piece, map_strip, most_rows, tiles};
use crate::gemm::source::{Position, Source};
use crate::gemm::tile::Store;
use crate::level::{Level, indexes_freely};
use crate::simd::Simd;
use crate::simd::blocks::Block;
use crate::simd::patch::Rows;

/// Panels that rows are multiplied by where they lie, at most: a copy serves more of them better.
const FEW_PANELS: usize = 2;

/// Elements of rows that are multiplied where they lie by any number of panels, and those of all
/// panels where that takes more instructions: to copy rows takes as long as to multiply a few.
const SHORT: usize = 128;

/// Multiplies the rows of whole strips by some panels of B where they lie in memory, if that takes
/// less time than with a copy of them, and returns how many strips it has multiplied.
#[inline(always)]
pub(super) fn matrix_columns<S: Simd>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    (from, to): (Piece, Piece),
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) -> usize {
    // Only the largest level has tiles for it.
    let apart = source.pixel;
    let (panels, k) = (b.panels.len(), from.run(to, source.depth));
    let pays = match indexes_freely() {
        true => panels <= FEW_PANELS || apart <= SHORT,
        false => panels * k <= SHORT,
    };
    // Long rows may fall on the same lines of a cache; a copy does not.
    if const { !matches!(S::LEVEL, Level::Avx512) } || !pays || apart.is_multiple_of(512) {
        return 0;
    }
    let Some(data) = source.matrix(block.row, from.element) else {
        return 0;
    };
    let most = const { most_rows(S::REGISTERS)[1] };
    let first = from.rows_before(source);
    for strip in 0..block.rows / most {
        let row = strip * most;
        for panel in b.panels.clone() {
            let ahead = b.ahead(panel, strip, k);
            let b = Panel::new(b.b, b.n, b.level, panel);
            let b_row = b.row_on(first);
            let columns = b.first - block.column..b.first - block.column + b.columns;
            let finish = store.finish((columns.start, b.columns));
            let fetch = store.accumulate || block.shared;
            let mut done = 0;
            tiles!(S, b.width / S::LANES, exact, most - done, |MR, NV| {
                let seen = Rows {
                    data: &data[(row + done) * apart..],
                    lines: 1,
                    pitch: apart,
                    k,
                };
                let rows = row + done..row + done + MR;
                let mut to = block.patch(rows, columns.clone());
                if fetch {
                    to.fetch();
                }
                let whole = s.tile::<MR, NV, 0>(&seen, b_row, ahead, &mut to, &finish);
                assert!(whole, "the rows of a strip are those of whole tiles");
                done += MR;
            });
        }
        if store.map.is_some() {
            let mut positions = source.positions(block.row + row, block.row + row + most);
            let mut strip = [Position::default(); MAX_ROWS];
            let filled = positions.fill(&mut strip[..most]);
            map_strip(b, &strip[..filled], block, store);
        }
    }
    block.rows / most
}
