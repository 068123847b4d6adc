//! Strips over images of few channels.
//!
//! There the runs that a row of A consists of are a few elements each, and copying them one by one
//! takes longer than multiplying them. But rows that follow each other see almost the same
//! elements, each row some elements further on: so what all rows of a strip see of a line of the
//! image is copied as one run.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use super::{Columns, MAX_ROWS, Panel, Piece, has_tile, most_rows};
use crate::gemm::source::{MAX_RUN, Position, Source};
use crate::gemm::tile::{self, Store, Strip, Sums};
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
    (fits && matches!(step, 1 | 2 | 3 | 6)).then_some(step)
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

/// Multiplies the rows of a whole strip, which are neighbours `STEP` elements apart, by some panels
/// of B.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub(super) fn columns<S: Simd, const STEP: usize>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    (from, to): (Piece, Piece),
    strip: &[Position],
    memory: &mut Strip<MAX_ROWS>,
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let memory = memory.as_flattened_mut();
    let run = source.depth * source.x.taps.count;
    let pitch = pitch::<S>(STEP, run);
    let lines = from.y..to.y.min(source.y.taps.count);
    for (line, to) in lines.clone().zip(memory.chunks_exact_mut(pitch)) {
        source.line(s, &strip[0], line, to);
    }
    let mut names = [0; MAX_ROWS];
    for (name, position) in names.iter_mut().zip(strip) {
        *name = position.row - block.row;
    }
    let follow = names[..strip.len()]
        .windows(2)
        .all(|pair| pair[0] + 1 == pair[1]);
    let first = from.rows_before(source);
    for panel in b.panels.clone() {
        let b = Panel::new(b.b, b.n, b.level, panel);
        let place = (b.first - block.column, b.columns);
        tallest!(S, b.width / S::LANES, |MR, NV| {
            for (i, names) in names[..strip.len()].chunks(MR).enumerate() {
                let mut b_row = b.row_on(first);
                let seen = Rows {
                    data: &memory[i * MR * STEP..],
                    lines: lines.len(),
                    pitch,
                    k: run,
                };
                if follow && names.len() == MR {
                    let columns = place.0..place.0 + place.1;
                    let fetch = block.shared;
                    let mut to = block.patch(names[0]..names[0] + MR, columns);
                    if fetch {
                        to.fetch();
                    }
                    let finish = store.finish(place);
                    if s.tile::<MR, NV, STEP>(&seen, b_row, &[], &mut to, &finish) {
                        continue;
                    }
                }
                let mut sums = [[s.zero(); NV]; MR];
                for line in 0..lines.len() {
                    let a = &memory[line * pitch + i * MR * STEP..];
                    sums = overlapping::<S, MR, NV, STEP>(s, sums, a, run, b_row);
                    b_row = b_row.get(run * NV * S::LANES..).unwrap_or(&[]);
                }
                tile::store(s, &sums, block, names, place, store);
            }
        });
    }
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
