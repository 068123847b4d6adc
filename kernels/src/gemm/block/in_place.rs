//! Products of rows of a matrix: where they lie in memory, without a copy of them, or scaled.

use super::panels::{Columns, Panel};
use super::piece::Piece;
use super::strip::{CopiedRows, copied_tile, map_strip};
use super::tiling::{MAX_ROWS, in_strip, most_rows, tiles};
use crate::base::level::{Level, first_cache_is_wide, indexes_freely};
use crate::gemm::scale::Scale;
use crate::gemm::source::{Position, Source};
use crate::gemm::tile::{self, Store, Strip};
use crate::simd::Simd;
use crate::simd::blocks::Block;
use crate::simd::patch::Rows;

/// Panels that rows are multiplied by where they lie, at most: a copy serves more of them better.
const FEW_PANELS: usize = 2;

/// Elements of rows that are multiplied where they lie by any number of panels, and those of all
/// panels where that takes more instructions: to copy rows takes as long as to multiply a few.
/// Neither counts where the first cache is wide: a copy only keeps the multiplications waiting.
const SHORT: usize = 128;

/// Elements of half of a row of a strip.
const HALF: usize = tile::STRIP / 2;

/// Whether rows are multiplied where they lie even if B is near, so that a copy of them would serve
/// many panels. Those of AVX2 are six, fewer than a first cache has ways, and never push each other
/// out of it.
#[inline(always)]
pub(super) fn pays_near(level: Level) -> bool {
    level == Level::Avx2 || first_cache_is_wide()
}

/// Whether rows of `k` elements, `apart` from each other, are multiplied where they lie by some
/// panels of B.
#[inline(always)]
fn pays(level: Level, apart: usize, k: usize, panels: usize) -> bool {
    // Long rows may fall on the same lines of a cache; a copy does not.
    if pays_near(level) {
        level == Level::Avx2 || !apart.is_multiple_of(1024)
    } else if indexes_freely() {
        (panels <= FEW_PANELS || apart <= SHORT) && !apart.is_multiple_of(512)
    } else {
        panels * k <= SHORT && !apart.is_multiple_of(512)
    }
}

/// Multiplies the rows of whole strips by some panels of B where they lie in memory, if that takes
/// less time than with a copy of them, and returns how many strips it has multiplied. The source has
/// no scale.
#[inline(always)]
pub(super) fn matrix_columns<S: Simd>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    (from, to): (Piece, Piece),
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) -> usize {
    let apart = source.pixel;
    let (panels, k) = (b.panels.len(), from.run(to, source.depth));
    // Only these levels have tiles for it.
    let tiles = const { matches!(S::LEVEL, Level::Avx512 | Level::Avx2) };
    if !tiles || !pays(S::LEVEL, apart, k, panels) {
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
                if const { in_strip(S::REGISTERS, MR, NV) } {
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
                }
                done += MR;
            });
        }
        map_rows(source, b, (row, most), block, store);
    }
    block.rows / most
}

/// As [`matrix_columns`], with a copy of the rows that is scaled.
#[inline(always)]
pub(super) fn scaled_columns<S: Simd>(
    s: S,
    (source, scale): (&Source<'_>, &Scale<'_>),
    b: &Columns<'_, '_>,
    (from, to): (Piece, Piece),
    memory: &mut Strip<MAX_ROWS>,
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) -> usize {
    let (apart, k) = (source.pixel, from.run(to, source.depth));
    let Some(data) = source.matrix(block.row, from.element) else {
        return 0;
    };
    let scale = scale.columns_on(from.element);
    let most = const { most_rows(S::REGISTERS)[1] };
    let first = from.rows_before(source);
    let strips = block.rows / most;
    // What has just been stored as vectors can't be loaded element by element at once: where rows
    // are short enough, a strip is copied while the one before it is multiplied.
    let halves = const { matches!(S::LEVEL, Level::Avx512) } && k <= HALF;
    for step in 0..strips + usize::from(halves) {
        if step < strips {
            let at = step % 2 * if halves { HALF } else { 0 };
            for (i, to) in memory[..most].iter_mut().enumerate() {
                let row = &data[(step * most + i) * apart..][..k];
                tile::copy_scaled(s, row, &scale, &mut to[at..]);
            }
        }
        let Some(strip) = step.checked_sub(usize::from(halves)) else {
            continue;
        };
        let (row, at) = (strip * most, strip % 2 * if halves { HALF } else { 0 });
        for panel in b.panels.clone() {
            let index = panel - b.panels.start;
            let next = (strip + 1 + usize::from(halves)) * most + index;
            let ahead = if b.fetches_a && index < most && next < block.rows {
                &data[next * apart..][..k]
            } else {
                b.ahead(panel, strip, k)
            };
            let b = Panel::new(b.b, b.n, b.level, panel);
            let b_row = b.row_on(first);
            let place = (b.first - block.column, b.columns);
            let mut done = 0;
            tiles!(S, b.width / S::LANES, exact, most - done, |MR, NV| {
                if const { in_strip(S::REGISTERS, MR, NV) }
                    && let Some(rows) = memory[done..].first_chunk::<MR>()
                {
                    let names: [_; MR] = core::array::from_fn(|i| row + done + i);
                    copied_tile::<S, MR, NV>(
                        s,
                        &CopiedRows { rows, at, k },
                        b_row,
                        ahead,
                        (&names, place),
                        block,
                        store,
                    );
                }
                done += MR;
            });
        }
        map_rows(source, b, (row, most), block, store);
    }
    strips
}

/// Applies what comes last to `most` rows of a block from row `row` on.
#[inline(always)]
fn map_rows(
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    (row, most): (usize, usize),
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    if store.map.is_some() {
        let mut positions = source.positions(block.row + row, block.row + row + most);
        let mut strip = [Position::default(); MAX_ROWS];
        let filled = positions.fill(&mut strip[..most]);
        map_strip(b, &strip[..filled], block, store);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::{Parallel, Serial};
    use crate::gemm::{Activation, Gemm, Matrix, Packed, pack};
    use crate::simd::available;
    use crate::testing::{Interleaved, numbers};

    /// A product of scaled rows has the bits of that of rows that were scaled before: with rows
    /// that are copied in turn, as a whole and in parts, and with strips that are not whole.
    #[test]
    fn scaled_rows_have_the_bits_of_rows_that_were_scaled_before() {
        for (m, k, n, gap) in [
            (14, 16, 16, 0),
            (3 * 14 + 5, 1, 33, 2),
            (100, HALF - 1, 40, 0),
            (61, HALF, 8, 3),
            (61, HALF + 1, 70, 0),
            (45, 600, 48, 1),
            (1100, 240, 24, 0),
        ] {
            let (a, b) = (numbers(m * (k + gap), 1), numbers(k * n, 2));
            let (factors, bias) = (numbers(k, 3), numbers(n, 4));
            let (low, high) = (-0.5, 0.75);
            let mut before = a.clone();
            for row in before.chunks_mut(k + gap) {
                for (x, factor) in row.iter_mut().zip(&factors) {
                    *x = (*x * factor).clamp(low, high);
                }
            }
            let scale = Scale {
                scale: &factors,
                shift: None,
                clamp: Some((low, high)),
            };
            for level in available() {
                let mut memory = vec![f32::NAN; pack::packed_len(level, k, n).unwrap()];
                let b = Matrix::rows(&b, n);
                let b = Packed::pack_for(level, &b, (k, n), &mut memory, &Serial).unwrap();
                let run = |a: &[f32], scale: Option<Scale<'_>>, parallel: &dyn Parallel| {
                    let gemm = Gemm {
                        bias: Some(&bias),
                        scale,
                        activation: Activation::RELU,
                        ..Gemm::packed(m, Matrix::rows(a, k + gap), b)
                    };
                    let mut c = vec![f32::NAN; m * n];
                    gemm.run(&mut c, n, &mut [], parallel).unwrap();
                    c
                };
                let expected = run(&before, None, &Serial);
                for parallel in [&Serial as &dyn Parallel, &Interleaved] {
                    let found = run(&a, Some(scale), parallel);
                    for (i, (x, y)) in found.iter().zip(&expected).enumerate() {
                        let at = (i / n, i % n);
                        let same = x.to_bits() == y.to_bits();
                        assert!(same, "{level:?} {m}x{n}x{k} {at:?}: {x} {y}");
                    }
                }
            }
        }
    }
}
