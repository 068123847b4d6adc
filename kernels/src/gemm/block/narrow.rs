//! Strips over images of few channels.
//!
//! There the runs that a row of A consists of are a few elements each, and copying them one by one
//! takes longer than multiplying them. But rows that follow each other see almost the same
//! elements, each row some elements further on: so they are multiplied where they lie, and at the
//! edges of the image, what all rows of a strip see of a line is copied as one run.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use core::ops::Range;

use super::panels::{Columns, Panel};
use super::piece::Piece;
use super::tiling::{MAX_ROWS, has_tile, most_rows};
use crate::gemm::source::{Position, Source};
use crate::gemm::tile::{self, MAX_RUN, Store, Strip, Sums};
use crate::simd::Simd;
use crate::simd::blocks::Block;
use crate::simd::patch::Rows;

/// Runs a block of code with the rows (`$mr`) and vectors (`$nv`) of the tallest tile as constants.
macro_rules! tallest {
    ($simd:ident, $vectors:expr, |$mr:ident, $nv:ident| $body:block) => {
        match $vectors {
            1 => tallest!(@all $simd, 1, $mr, $nv, $body),
            2 => tallest!(@all $simd, 2, $mr, $nv, $body),
            _ => tallest!(@all $simd, 3, $mr, $nv, $body),
        }
    };
    (@all $simd:ident, $v:literal, $mr:ident, $nv:ident, $body:block) => {{
        tallest!(@one $simd, 14, $v, $mr, $nv, $body);
        tallest!(@one $simd, 7, $v, $mr, $nv, $body);
        tallest!(@one $simd, 6, $v, $mr, $nv, $body);
        tallest!(@one $simd, 4, $v, $mr, $nv, $body);
        tallest!(@one $simd, 3, $v, $mr, $nv, $body);
    }};
    (@one $simd:ident, $r:literal, $v:literal, $mr:ident, $nv:ident, $body:block) => {
        if const { has_tile($simd::REGISTERS, $r, $v) && most_rows($simd::REGISTERS)[$v] == $r } {
            const $mr: usize = $r;
            const $nv: usize = $v;
            $body
        }
    };
}

/// The elements from what one row sees to what the next one sees, if there are tiles for it.
#[inline(always)]
pub(super) fn step<S: Simd>(source: &Source<'_>, (from, to): (Piece, Piece)) -> Option<usize> {
    let step = source.depth * source.x.stride;
    let run = source.depth * source.x.taps.count;
    let fits = run <= MAX_RUN
        && source.y.taps.count * pitch::<S>(step, run) <= MAX_ROWS * tile::STRIP
        && from.whole_lines(to)
        && source.neighbours_overlap();
    let has_tiles = match step {
        #[cfg(not(without = "step 1"))]
        1 => true,
        #[cfg(not(without = "step 2"))]
        2 => true,
        #[cfg(not(without = "step 3"))]
        3 => true,
        #[cfg(not(without = "step 6"))]
        6 => true,
        _ => false,
    };
    (fits && has_tiles).then_some(step)
}

/// Elements that a strip sees of a line, rounded up to what the last tile reads if its rows do not
/// divide those of the strip.
#[inline(always)]
fn pitch<S: Simd>(step: usize, run: usize) -> usize {
    let [_, one, two, three] = const { most_rows(S::REGISTERS) };
    let whole = |rows: usize| {
        if rows == 0 {
            0
        } else {
            one.next_multiple_of(rows)
        }
    };
    let rows = whole(one).max(whole(two)).max(whole(three));
    ((rows - 1) * step + run).next_multiple_of(S::LANES)
}

/// Multiplies the rows of whole strips of a line, which are neighbours `STEP` elements apart, by
/// some panels of B: where they lie in the image, if they see nothing else.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn strips<S: Simd, const STEP: usize>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    (from, to): (Piece, Piece),
    (first, strips): (&Position, usize),
    memory: &mut Strip<MAX_ROWS>,
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let memory = memory.as_flattened_mut();
    let most = const { most_rows(S::REGISTERS)[1] };
    let run = source.depth * source.x.taps.count;
    let pitch = pitch::<S>(STEP, run);
    let lines = from.y..to.y.min(source.y.taps.count);
    let rows_before = from.rows_before(source);
    let mapped = store.map.map(|map| (map, b.columns_in(block)));
    for strip in 0..strips {
        let position = first.on(strip * most, &source.x);
        let there = source.lines(&position, &lines, ((most - 1) * STEP + run, pitch));
        if there.is_none() {
            for (line, to) in lines.clone().zip(memory.chunks_exact_mut(pitch)) {
                source.line(s, &position, line, to);
            }
        }
        let (seen, pitch) = there.unwrap_or((&*memory, pitch));
        let row = position.row - block.row;
        for panel in b.panels.clone() {
            let b = Panel::new(b.b, b.n, b.level, panel);
            let place = (b.first - block.column, b.columns);
            tallest!(S, b.width / S::LANES, |MR, NV| {
                for done in (0..most).step_by(MR) {
                    let rows = row + done..row + most.min(done + MR);
                    let a = Rows {
                        data: &seen[done * STEP..],
                        lines: lines.len(),
                        pitch,
                        k: run,
                    };
                    let b_row = b.row_on(rows_before);
                    strip_tile::<S, MR, NV, STEP>(s, &a, b_row, (rows, place), block, store);
                }
            });
        }
        if let Some((function, Some(columns))) = &mapped {
            let rows: [_; MAX_ROWS] = core::array::from_fn(|i| row + i);
            block.apply(&rows[..most], columns.clone(), *function);
        }
    }
}

/// Some rows, at most `MR`, by one panel of B.
#[inline(always)]
fn strip_tile<S: Simd, const MR: usize, const NV: usize, const STEP: usize>(
    s: S,
    a: &Rows<'_>,
    mut b: &[f32],
    (rows, place): (Range<usize>, (usize, usize)),
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    if rows.len() == MR {
        let columns = place.0..place.0 + place.1;
        let fetch = block.shared;
        let mut to = block.patch(rows.clone(), columns);
        if fetch {
            to.fetch();
        }
        if s.tile::<MR, NV, STEP>(a, b, &[], &mut to, &store.finish(place)) {
            return;
        }
    }
    let mut sums = [[s.zero(); NV]; MR];
    for line in 0..a.lines {
        sums = overlapping::<S, MR, NV, STEP>(s, sums, &a.data[line * a.pitch..], a.k, b);
        b = b.get(a.k * NV * S::LANES..).unwrap_or(&[]);
    }
    let names: [_; MR] = core::array::from_fn(|i| rows.start + i);
    tile::store(s, &sums, block, &names[..rows.len()], place, store);
}

/// Adds `a * b` to `sums` for `k` columns, where element (`i`, `p`) of A is `a[i * STEP + p]`, and
/// B has rows of `NV` vectors.
///
/// Panics if `a` or `b` is too short.
#[inline(always)]
fn overlapping<S: Simd, const MR: usize, const NV: usize, const STEP: usize>(
    s: S,
    mut sums: Sums<S, MR, NV>,
    a: &[f32],
    k: usize,
    b: &[f32],
) -> Sums<S, MR, NV> {
    let rows = b[..k * NV * S::LANES].chunks_exact(NV * S::LANES);
    let columns = a[..k + (MR - 1) * STEP].windows((MR - 1) * STEP + 1);
    for (row, column) in rows.zip(columns) {
        let mut b = [s.zero(); NV];
        for v in 0..NV {
            b[v] = s.load(&row[v * S::LANES..]);
        }
        for i in 0..MR {
            let x = s.splat(column[i * STEP]);
            for v in 0..NV {
                sums[i][v] = s.mul_add(x, b[v], sums[i][v]);
            }
        }
    }
    sums
}
