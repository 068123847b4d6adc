//! One task's share of a product: a block of C, tile by tile.

mod apart;
mod columns;
mod in_place;
mod narrow;
mod panels;
mod piece;
mod strip;
pub(crate) mod tiling;
pub(super) mod turns;

use super::source::{Position, Source};
use super::tile::{self, MAX_RUN, Store, Strip};
use crate::base::level::Level;
use crate::simd::blocks::Block;
use crate::simd::{Body, Simd};
pub(super) use columns::are_far;
use panels::{Columns, panels_of};
use piece::Piece;
use strip::{Turn, leave_out, map_strip};
use tiling::{MAX_ROWS, most_rows};
pub(crate) use tiling::{strip_rows, tiles};

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
    #[cfg(not(without = "plain"))]
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
    #[cfg(not(without = "plain"))]
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
                let most = const { most_rows(S::REGISTERS)[1] };
                let walk = apart::Walk {
                    source,
                    b: (b, n, level),
                    block,
                    store,
                    memory: &mut [],
                };
                let few = walk.block.rows < most && !source.is_scaled();
                if !matches!(b, B::Packed { .. }) || few && source.matrix(0, 0).is_some() {
                    return s.apart(walk);
                }
                // Here, because what a function has on its stack is written anew for every call.
                let mut memory: Strip<MAX_ROWS> = [[0.0; tile::STRIP]; MAX_ROWS];
                s.apart(apart::Walk {
                    memory: &mut memory,
                    ..walk
                });
            }
            #[cfg(not(without = "plain"))]
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

/// Multiplies all rows of a block by B, some of its rows and panels at a time.
#[inline(always)]
fn rows<S: Simd>(s: S, walk: apart::Walk<'_, '_, '_>) {
    let apart::Walk {
        source,
        b: (b, n, level),
        block,
        store,
        memory,
    } = walk;
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
            rows_columns(s, source, &b, (at, to), memory, block, &store);
        }
        if last {
            break;
        }
        at = to;
    }
}

/// Multiplies all rows of a block by some panels of B; without memory for a strip, where they lie.
#[inline(always)]
fn rows_columns<S: Simd>(
    s: S,
    source: &Source<'_>,
    b: &Columns<'_, '_>,
    pieces: (Piece, Piece),
    memory: &mut [[f32; tile::STRIP]],
    block: &mut Block<'_, f32>,
    store: &Store<'_>,
) {
    let most = const { most_rows(S::REGISTERS)[1] };
    let packed = matches!(b.b, B::Packed { .. });
    let mut memory = match packed && source.taps_follow() {
        true => memory.first_chunk_mut::<MAX_ROWS>(),
        false => None,
    };
    let whole = source.matrix(0, 0).is_some();
    let mut positions = source.positions(block.row, block.row + block.rows);
    let mut strip = [Position::default(); MAX_ROWS];
    let near = matches!(b.b, B::Packed { near: true, .. });
    let scaled = source.is_scaled();
    #[cfg(not(without = "steps"))]
    let narrow = narrow::step::<S>(source, pieces).filter(|_| !scaled && !source.leaves_out);
    let mut number = 0;
    if memory.is_some() && (!near || !scaled && in_place::pays_near(S::LEVEL)) {
        let of = apart::Task::new(source, b, pieces, block, store);
        #[cfg(not(without = "scaled"))]
        if let (Some(scale), Some(memory)) = (source.scale, &mut memory) {
            number = s.apart(apart::Scaled { of, scale, memory });
        } else {
            number = s.apart(apart::InPlace(of));
        }
        #[cfg(without = "scaled")]
        {
            number = s.apart(apart::InPlace(of));
        }
        positions = source.positions(block.row + number * most, block.row + block.rows);
    }
    loop {
        let mut room = most;
        if whole && !scaled {
            room = tiling::next_strip(S::REGISTERS, positions.left());
        }
        #[cfg(not(without = "steps"))]
        if let (Some(step), Some(memory)) = (narrow, &mut memory) {
            let (first, strips) = positions.strips(most);
            let line = (&first, strips);
            let of = apart::Task::new(source, b, pieces, block, store);
            match step {
                #[cfg(not(without = "step 1"))]
                1 => s.apart(apart::Narrow::<1> { of, line, memory }),
                #[cfg(not(without = "step 2"))]
                2 => s.apart(apart::Narrow::<2> { of, line, memory }),
                #[cfg(not(without = "step 3"))]
                3 => s.apart(apart::Narrow::<3> { of, line, memory }),
                #[cfg(not(without = "step 6"))]
                6 => s.apart(apart::Narrow::<6> { of, line, memory }),
                _ => unreachable!("a step without tiles"),
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
        #[cfg(not(without = "images"))]
        if source.leaves_out && leave_out(source, b, pieces.0, strip, block, store) {
            continue;
        }
        if let Some(memory) = &mut memory
            && (filled == most || scaled)
        {
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
                memory,
            });
            number += 1;
            map_strip(b, strip, block, store);
            continue;
        }
        let of = apart::Task::new(source, b, pieces, block, store);
        #[cfg(not(without = "plain"))]
        if !packed {
            s.apart(apart::Rest::<true> { of, strip });
            map_strip(b, strip, block, store);
            continue;
        }
        s.apart(apart::Rest::<false> { of, strip });
        map_strip(b, strip, block, store);
    }
}
