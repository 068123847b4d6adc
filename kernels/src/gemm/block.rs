//! One task's share of a product: a block of C, tile by tile.

mod apart;
mod columns;
mod in_place;
mod narrow;
mod piece;
pub(super) mod turns;

use core::ops::Range;

use super::pack::{panel_at, panels};
use super::source::{MAX_RUN, Position, Source};
use super::tile::{self, Store, Strip};
use crate::base::level::{Level, first_cache_is_wide};
use crate::simd::blocks::Block;
use crate::simd::patch::Rows;
use crate::simd::{Body, Simd};
pub(super) use columns::are_far;
use piece::Piece;

/// Runs a block of code with the rows (`$mr`) and vectors (`$nv`) of a tile as constants, again
/// and again while there are rows left, from the tallest tile that the level has to those of one
/// row. The block takes rows away; `$enough` says how many must be left for a tile.
macro_rules! tiles {
    ($simd:ident, $vectors:expr, $enough:ident, $left:expr, |$mr:ident, $nv:ident| $body:block) => {
        // A panel has 1 to 3 vectors, or 1 where the level has no wider tile.
        match $vectors {
            1 => $crate::gemm::block::tiles!(@all $simd, 1, $enough, $left, $mr, $nv, $body),
            2 => $crate::gemm::block::tiles!(@all $simd, 2, $enough, $left, $mr, $nv, $body),
            _ => $crate::gemm::block::tiles!(@all $simd, 3, $enough, $left, $mr, $nv, $body),
        }
    };
    (@all $simd:ident, $v:literal, $enough:ident, $left:expr, $mr:ident, $nv:ident, $body:block) => {{
        $crate::gemm::block::tiles!(@one $simd, 14, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiles!(@one $simd, 7, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiles!(@one $simd, 6, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiles!(@one $simd, 4, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiles!(@one $simd, 1, $v, $enough, $left, $mr, $nv, $body);
    }};
    (@one $simd:ident, $r:literal, $v:literal, $enough:ident, $left:expr, $mr:ident, $nv:ident, $body:block) => {
        if const { $crate::gemm::block::has_tile($simd::REGISTERS, $r, $v) } {
            const $mr: usize = $r;
            const $nv: usize = $v;
            while $left >= const { $crate::gemm::block::$enough($r) } $body
        }
    };
}

pub(crate) use tiles;

/// Whether a level with so many registers has a tile of so many rows and vectors.
pub(crate) const fn has_tile(registers: usize, rows: usize, vectors: usize) -> bool {
    let tall = match registers {
        32 => matches!(rows, 14 | 7 | 4 | 1),
        16 => matches!(rows, 6 | 4 | 1),
        _ => matches!(rows, 4 | 1),
    };
    tall && rows <= most_rows(registers)[vectors]
}

/// Rows that must be left for a tile that stores only those that are there.
pub(crate) const fn padded(rows: usize) -> usize {
    match rows {
        7 | 6 => 5,
        4 => 2,
        _ => rows,
    }
}

/// Rows that must be left for a tile that needs all its rows.
pub(crate) const fn exact(rows: usize) -> usize {
    rows
}

/// Most rows of a tile.
pub const MAX_ROWS: usize = 14;

/// Most rows that are multiplied by a matrix that is not packed: one tile.
pub const DIRECT_ROWS: usize = MAX_ROWS;

/// Rows of B that are multiplied before the next ones' turn.
const ROWS_OF_B: usize = MAX_RUN;

/// The right-hand side.
#[derive(Clone, Copy)]
pub enum B<'a> {
    /// Packed for the level of the job: all `k` rows, `n` columns.
    Packed {
        /// Panels.
        data: &'a [f32],
        /// Rows.
        k: usize,
        /// They have been packed just now, and no more of them than the second cache holds.
        near: bool,
    },
    /// Rows of `n` elements, `ld` apart; only with [`A::Rows`], and best with at most
    /// [`DIRECT_ROWS`] rows.
    Rows {
        /// Elements.
        data: &'a [f32],
        /// Distance of rows.
        ld: usize,
    },
}

/// The left-hand side.
// There is one for a product, and kernels have no allocator to box it.
#[allow(clippy::large_enum_variant)]
#[derive(Clone, Copy)]
pub enum A<'a> {
    /// Rows that are runs of memory.
    Rows(Source<'a>),
    /// Columns that are runs of memory, `ld` apart, `k` of them.
    Columns {
        /// Elements.
        data: &'a [f32],
        /// Distance of columns.
        ld: usize,
        /// Columns.
        k: usize,
        /// They come from behind the second cache, and few of them find a place in it.
        far: bool,
    },
}

/// Multiplies a block of C. Its first column is the first of a panel.
pub struct Multiply<'a, 'b, 'c> {
    /// Left-hand side.
    pub a: &'b A<'a>,
    /// Right-hand side.
    pub b: &'b B<'a>,
    /// Columns of all of B.
    pub n: usize,
    /// The level that B is packed for.
    pub level: Level,
    /// The block of C; its rows and columns are counted in all of C, from row 0 and column 0 of B.
    pub block: &'b mut Block<'c, f32>,
    /// What happens to the sums; the bias has `n` elements.
    pub store: Store<'b>,
}

impl Body for Multiply<'_, '_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self {
            a,
            b,
            n,
            level,
            block,
            mut store,
        } = self;
        store.bias = store.bias.map(|bias| &bias[block.column..]);
        match a {
            A::Rows(source) => {
                let mut at = Piece::default();
                loop {
                    let (to, last) = at.advance(source);
                    let store = Store {
                        accumulate: store.accumulate || at != Piece::default(),
                        bias: store.bias.filter(|_| last),
                        clamp: store.clamp.filter(|_| last),
                        map: store.map.filter(|_| last),
                    };
                    let k = to.rows_before(source) - at.rows_before(source);
                    let near = matches!(b, B::Packed { near: true, .. });
                    let tall = turns::is_tall(block.rows, k);
                    let at_once = if near {
                        usize::MAX
                    } else {
                        turns::panels(k * super::pack::panel(level), tall)
                    };
                    let all = panels_of(level, n, block);
                    let mut start = all.start;
                    while start < all.end {
                        let panels = start..all.end.min(start.saturating_add(at_once));
                        start = panels.end;
                        let next = if start < all.end {
                            Some((start, at.rows_before(source)))
                        } else {
                            Some((all.start, to.rows_before(source))).filter(|_| !last && !near)
                        };
                        let b = Columns {
                            b,
                            n,
                            level,
                            panels,
                            fetches_a: near || tall,
                            next,
                            end: all.end,
                        };
                        rows_columns(s, source, &b, (at, to), block, &store);
                    }
                    if last {
                        break;
                    }
                    at = to;
                }
            }
            A::Columns { data, ld, k, far } => {
                let mut from = 0;
                loop {
                    let to = (*k).min(from + ROWS_OF_B);
                    let last = to == *k;
                    let store = Store {
                        accumulate: store.accumulate || from > 0,
                        bias: store.bias.filter(|_| last),
                        clamp: store.clamp.filter(|_| last),
                        map: None,
                    };
                    let panels = panels_of(level, n, block);
                    let a = &data[(from * ld).min(data.len())..];
                    let left = columns::Left {
                        data: a,
                        ld: *ld,
                        far: *far,
                    };
                    let b = Columns {
                        b,
                        n,
                        level,
                        end: panels.end,
                        panels,
                        fetches_a: false,
                        next: None,
                    };
                    columns::panels(s, left, &b, (from, to), block, &store);
                    if last {
                        break;
                    }
                    from = to;
                }
                if let Some(function) = store.map {
                    let columns = block.columns;
                    (0..block.rows).for_each(|row| block.apply(&[row], 0..columns, function));
                }
            }
        }
    }
}

/// The panels of B that a block covers.
#[inline(always)]
fn panels_of(level: Level, n: usize, block: &Block<'_, f32>) -> Range<usize> {
    let width = super::pack::panel(level);
    let start = block.column / width;
    let end = (block.column + block.columns).div_ceil(width);
    start..end.min(panels(level, n))
}

/// Some panels of B.
struct Columns<'a, 'b> {
    b: &'b B<'a>,
    /// Columns of all of B.
    n: usize,
    level: Level,
    panels: Range<usize>,
    /// Rows of A are what comes from far away, and those of the next strip are asked for.
    fetches_a: bool,
    /// The panel and the row of B that come next.
    next: Option<(usize, usize)>,
    /// The end of the panels that the block covers.
    end: usize,
}

impl<'a> Columns<'a, '_> {
    /// What comes in the place of a panel next: the part of it that strip number `strip` asks for,
    /// of `k` columns.
    #[inline(always)]
    fn ahead(&self, panel: usize, strip: usize, k: usize) -> &'a [f32] {
        let Some((start, row)) = self.next else {
            return &[];
        };
        let index = start + panel - self.panels.start;
        let part = tile::AHEAD * k;
        if index >= self.end || strip * part >= k * super::pack::panel(self.level) {
            return &[];
        }
        let rows = Panel::new(self.b, self.n, self.level, index).row_on(row);
        let rows = rows.get(strip * part..).unwrap_or(&[]);
        &rows[..part.min(rows.len())]
    }

    /// The columns of a block that the panels have, if there are panels.
    #[inline(always)]
    fn columns_in(&self, block: &Block<'_, f32>) -> Option<Range<usize>> {
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
struct Panel<'a> {
    data: &'a [f32],
    ld: usize,
    /// First column in C.
    first: usize,
    /// Columns that count.
    columns: usize,
    /// Columns in memory.
    width: usize,
}

impl<'a> Panel<'a> {
    #[inline(always)]
    fn new(b: &B<'a>, n: usize, level: Level, index: usize) -> Self {
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
    fn row_on(&self, row: usize) -> &'a [f32] {
        self.data.get(row * self.ld..).unwrap_or(&[])
    }
}

/// Multiplies all rows of a block by some panels of B.
#[inline(always)]
fn rows_columns<S: Simd>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    pieces: (Piece, Piece),
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let most = const { most_rows(S::REGISTERS)[1] };
    let packed = matches!(b.b, B::Packed { .. });
    let copied = packed && source.taps_follow();
    let mut memory: Strip<MAX_ROWS> = [[0.0; tile::STRIP]; MAX_ROWS];
    let mut positions = source.positions(block.row, block.row + block.rows);
    let mut strip = [Position::default(); MAX_ROWS];
    let near = matches!(b.b, B::Packed { near: true, .. });
    let scaled = source.scale.is_some();
    let narrow =
        narrow::step::<S>(source, pieces).filter(|_| copied && !scaled && !source.leaves_out);
    let mut number = 0;
    if copied && (!near || !scaled && first_cache_is_wide()) {
        number = match source.scale {
            Some(scale) => s.apart(apart::Scaled {
                of: apart::Task::new(source, b, pieces, block, store),
                scale,
                memory: &mut memory,
            }),
            None => s.apart(apart::InPlace(apart::Task::new(
                source, b, pieces, block, store,
            ))),
        };
        positions = source.positions(block.row + number * most, block.row + block.rows);
    }
    loop {
        let mut room = most;
        if let Some(step) = narrow {
            let (first, strips) = positions.strips(most);
            let (line, memory) = ((&first, strips), &mut memory);
            let of = apart::Task::new(source, b, pieces, block, store);
            match step {
                1 => s.apart(apart::Narrow::<1> { of, line, memory }),
                2 => s.apart(apart::Narrow::<2> { of, line, memory }),
                3 => s.apart(apart::Narrow::<3> { of, line, memory }),
                _ => s.apart(apart::Narrow::<6> { of, line, memory }),
            }
            if strips > 0 {
                continue;
            }
            room = most.min(positions.left_in_line());
        }
        let filled = positions.fill(&mut strip[..room]);
        if filled == 0 {
            return;
        }
        let strip = &strip[..filled];
        if source.leaves_out && leave_out(source, b, pieces.0, strip, block, store) {
            continue;
        }
        if copied && (filled == most || scaled) {
            let mut next = [Position::default(); MAX_ROWS];
            let next = if b.fetches_a {
                let filled = positions.clone().fill(&mut next);
                &next[..filled]
            } else {
                &[]
            };
            s.apart(apart::Copied {
                of: apart::Task::new(source, b, pieces, block, store),
                strip: Turn {
                    strip,
                    number,
                    next,
                },
                memory: &mut memory,
            });
            number += 1;
            map_strip(b, strip, block, store);
            continue;
        }
        let of = apart::Task::new(source, b, pieces, block, store);
        if packed {
            s.apart(apart::Rest::<false> { of, strip });
        } else {
            s.apart(apart::Rest::<true> { of, strip });
        }
        map_strip(b, strip, block, store);
    }
}

/// Multiplies the rows of a strip where they lie by some panels of B, `PARTIAL` if these are not
/// packed.
#[inline(always)]
fn rest_columns<S: Simd, const PARTIAL: bool>(
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
            let (now, later) = rest.split_at(MR.min(rest.len()));
            rows_tile::<S, MR, NV, PARTIAL>(s, source, &b, pieces, now, block, store);
            rest = later;
        });
    }
}

/// Whether a tap lies outside of the image for all rows of a strip, which then are what they would
/// be if it had been multiplied.
#[inline(always)]
fn leave_out(
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
fn map_strip(
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
struct Turn<'a> {
    strip: &'a [Position],
    /// Which one of the block it is.
    number: usize,
    /// The rows of the next one, as far as they are asked for.
    next: &'a [Position],
}

/// Multiplies the rows of a whole strip, which it copies, by some panels of B. Meanwhile it asks
/// for the rows `next`, or, where there are none, for a part of B.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
fn strip_columns<S: Simd>(
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
    let merged = from.whole_lines(to) && source.lines_are_runs(strip);
    let (mut piece, mut k) = (from, 0);
    while piece != to && piece.y < source.y.taps.count {
        let run = if merged {
            source.depth * source.x.taps.count
        } else {
            piece.run(to, source.depth)
        };
        for (position, row) in strip.iter().zip(&mut *memory) {
            let from = source.run(position, piece.offsets(source), piece.element, run);
            match source.scale {
                Some(scale) => {
                    let scale = scale.columns_on(piece.element);
                    tile::copy_scaled(s, from, &scale, &mut row[k..]);
                }
                None => tile::copy(s, from, &mut row[k..]),
            }
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
            Some(position) => source.run(position, from.offsets(source), from.element, k),
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
                if let Some(rows) = memory[done..].first_chunk::<MR>() {
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
struct CopiedRows<'a, const MR: usize> {
    rows: &'a Strip<MR>,
    at: usize,
    k: usize,
}

/// Multiplies rows of a strip by a panel of B, and writes the products to the rows of the block that
/// `names` has.
#[inline(always)]
fn copied_tile<S: Simd, const MR: usize, const NV: usize>(
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
    if !whole {
        assert_eq!(at, 0, "rows that do not start where a strip does");
        let zero = [[s.zero(); NV]; MR];
        let sums = tile::strip::<S, MR, NV, { tile::STRIP }>(s, zero, rows, k, b_row, ahead);
        tile::store(s, &sums, block, names, place, store);
    }
}

#[inline(always)]
fn rows_tile<S: Simd, const MR: usize, const NV: usize, const PARTIAL: bool>(
    s: S,
    source: &Source<'_>,
    b: &Panel<'_>,
    (from, to): (Piece, Piece),
    strip: &[Position],
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let (taps_y, taps_x) = (&source.y.taps, &source.x.taps);
    // Rows that the strip lacks repeat its last one; they are not stored.
    let mut at = [strip[strip.len() - 1]; MR];
    at[..strip.len()].copy_from_slice(strip);
    let merged = from.whole_lines(to) && source.lines_are_runs(&at);
    let mut sums = [[s.zero(); NV]; MR];
    let mut piece = from;
    while piece != to && piece.y < taps_y.count {
        let run = if merged {
            source.depth * taps_x.count
        } else {
            piece.run(to, source.depth)
        };
        let offsets = piece.offsets(source);
        let mut a: [&[f32]; MR] = [&[]; MR];
        for i in 0..MR {
            a[i] = source.run(&at[i], offsets, piece.element, run);
        }
        let line = taps_y.line + piece.y * taps_y.line_step;
        let tap = line * source.filter_width + taps_x.line + piece.x * taps_x.line_step;
        let b_row = b.row_on(tap * source.depth + piece.element);
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

/// Rows of a strip: the tallest tile of a level.
pub(crate) const fn strip_rows(level: Level) -> usize {
    match level {
        Level::Portable | Level::Simd128 => 4,
        Level::Neon | Level::Avx2 => 6,
        Level::Avx512 => 14,
    }
}

/// Most rows of a tile of 0 to 3 vectors, so that sums, a row of B and an element of A stay in
/// registers.
pub(crate) const fn most_rows(registers: usize) -> [usize; 4] {
    match registers {
        32 => [0, 14, 14, 7],
        16 => [0, 6, 6, 4],
        _ => [0, 4, 0, 0],
    }
}
