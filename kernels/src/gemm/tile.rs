//! Micro-kernels: a tile of the product that lives in registers.
//!
//! A tile has `MR` rows and `NV` vectors of columns. Both forms read B row by row and broadcast
//! elements of A; they differ in how A lies in memory.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use super::scale::Scale;
use crate::simd::blocks::Block;
use crate::simd::patch::Finish;
use crate::simd::{Simd, fetch_far};

/// The sums of a tile.
pub type Sums<S, const MR: usize, const NV: usize> = [[<S as Simd>::F; NV]; MR];

/// Adds `a * b` to `sums`, where row `i` of A is `a[i]`, all as long as `a[0]`, and row `p` of B
/// starts at `b[p * ldb]` and has `NV` vectors, or, if `PARTIAL`, `width` elements in as many.
///
/// Panics if a row or `b` is too short.
#[inline(always)]
pub fn rows<S: Simd, const MR: usize, const NV: usize, const PARTIAL: bool>(
    s: S,
    mut sums: Sums<S, MR, NV>,
    mut a: [&[f32]; MR],
    mut b: &[f32],
    ldb: usize,
    width: usize,
) -> Sums<S, MR, NV> {
    let k = a[0].len();
    for row in &mut a {
        *row = &row[..k];
    }
    for p in 0..k {
        let row = load_b::<S, NV, PARTIAL>(s, b, width);
        b = b.get(ldb..).unwrap_or(&[]);
        for i in 0..MR {
            let x = s.splat(a[i][p]);
            for v in 0..NV {
                sums[i][v] = s.mul_add(x, row[v], sums[i][v]);
            }
        }
    }
    sums
}

/// Longest run of consecutive elements of a row of A.
pub const MAX_RUN: usize = 512;

/// Elements from one row of a [`Strip`] to the next: no two rows fall on the same lines of a cache.
pub const STRIP: usize = MAX_RUN + 16;

/// Elements that can be asked for ahead for each column of a strip: a line each 30 cycles or so,
/// which costs next to nothing.
pub const AHEAD: usize = 8;

/// Some rows of A, copied from where they are.
pub type Strip<const MR: usize> = [[f32; STRIP]; MR];

/// Adds `a * b` to `sums` for the first `k` columns of a strip of rows of `LD` elements; B has rows
/// of `NV` vectors. Meanwhile the elements of `ahead` may be asked for, [`AHEAD`] for each of these
/// columns at most.
///
/// Panics if the strip or `b` is too short.
#[inline(always)]
pub fn strip<S: Simd, const MR: usize, const NV: usize, const LD: usize>(
    s: S,
    mut sums: Sums<S, MR, NV>,
    a: &[[f32; LD]; MR],
    k: usize,
    mut b: &[f32],
    ahead: &[f32],
) -> Sums<S, MR, NV> {
    assert!(k <= LD, "a strip is too short");
    #[cfg(not(without = "images"))]
    let done = s.add_products(&mut sums, a, k, b, ahead);
    // Levels that have a better loop for it come here with the rows of images alone.
    #[cfg(without = "images")]
    let (done, _) = (0, ahead);
    b = b.get(done * NV * S::LANES..).unwrap_or(&[]);
    for p in done..k {
        let row = load_b::<S, NV, false>(s, b, 0);
        b = b.get(NV * S::LANES..).unwrap_or(&[]);
        for i in 0..MR {
            let x = s.splat(a[i][p]);
            for v in 0..NV {
                sums[i][v] = s.mul_add(x, row[v], sums[i][v]);
            }
        }
    }
    sums
}

/// Copies a slice.
#[inline(always)]
pub fn copy<S: Simd>(s: S, from: &[f32], to: &mut [f32]) {
    let to = &mut to[..from.len()];
    let mut at = 0;
    while at + S::LANES <= from.len() {
        s.store(&mut to[at..], s.load(&from[at..]));
        at += S::LANES;
    }
    if at < from.len() {
        s.store_partial(&mut to[at..], s.load_partial(&from[at..]));
    }
}

/// Copies a slice, scaled; the scale is as long.
#[inline(always)]
pub fn copy_scaled<S: Simd>(s: S, from: &[f32], scale: &Scale<'_>, to: &mut [f32]) {
    let to = &mut to[..from.len()];
    let factors = &scale.scale[..from.len()];
    let terms = scale.shift.map(|terms| &terms[..from.len()]);
    let clamp = scale.clamp.map(|(low, high)| (s.splat(low), s.splat(high)));
    let of = |x: S::F, factor: S::F, term: Option<S::F>| {
        let x = match term {
            Some(term) => s.mul_add(x, factor, term),
            None => s.mul(x, factor),
        };
        match clamp {
            Some((low, high)) => s.min(high, s.max(low, x)),
            None => x,
        }
    };
    let mut at = 0;
    while at + S::LANES <= from.len() {
        let term = terms.map(|terms| s.load(&terms[at..]));
        let x = of(s.load(&from[at..]), s.load(&factors[at..]), term);
        s.store(&mut to[at..], x);
        at += S::LANES;
    }
    if at < from.len() {
        let term = terms.map(|terms| s.load_partial(&terms[at..]));
        let x = of(
            s.load_partial(&from[at..]),
            s.load_partial(&factors[at..]),
            term,
        );
        s.store_partial(&mut to[at..], x);
    }
}

/// Adds `a * b` to `sums`, where element (`i`, `p`) of A is `a[p * lda + i]`; B as for [`rows`].
/// If `FETCH`, it asks meanwhile for an element of each of `k` lines, which are so far apart.
///
/// Panics if `a` or `b` is too short for `k` steps.
#[inline(always)]
#[allow(clippy::too_many_arguments)]
pub fn columns<
    S: Simd,
    const MR: usize,
    const NV: usize,
    const PARTIAL: bool,
    const FETCH: bool,
>(
    s: S,
    mut sums: Sums<S, MR, NV>,
    k: usize,
    mut a: &[f32],
    lda: usize,
    mut b: &[f32],
    ldb: usize,
    width: usize,
    (ahead, apart): (&[f32], usize),
) -> Sums<S, MR, NV> {
    // Without anything to ask for it asks for what is there.
    let (ahead, apart) = match ahead.first_chunk::<1>() {
        Some(ahead) => (ahead.as_slice(), apart * size_of::<f32>()),
        None => (b.get(..1).unwrap_or(&[]), 0),
    };
    for p in 0..k {
        if FETCH {
            fetch_far(ahead, p * apart);
        }
        let row = load_b::<S, NV, PARTIAL>(s, b, width);
        b = b.get(ldb..).unwrap_or(&[]);
        let column = &a[..MR];
        for i in 0..MR {
            let x = s.splat(column[i]);
            for v in 0..NV {
                sums[i][v] = s.mul_add(x, row[v], sums[i][v]);
            }
        }
        a = a.get(lda..).unwrap_or(&[]);
    }
    sums
}

#[inline(always)]
fn load_b<S: Simd, const NV: usize, const PARTIAL: bool>(
    s: S,
    b: &[f32],
    width: usize,
) -> [S::F; NV] {
    let mut row = [s.zero(); NV];
    if PARTIAL {
        // Only the last vector may be cut.
        let (whole, rest) = b[..width].split_at((NV - 1) * S::LANES);
        for (v, x) in row.iter_mut().take(NV - 1).enumerate() {
            *x = s.load(&whole[v * S::LANES..]);
        }
        row[NV - 1] = s.load_up_to(rest);
    } else {
        let b = &b[..NV * S::LANES];
        for (v, x) in row.iter_mut().enumerate() {
            *x = s.load(&b[v * S::LANES..]);
        }
    }
    row
}

/// What happens to the sums on their way to memory.
#[derive(Clone, Copy)]
pub struct Store<'a> {
    /// Add to what the output holds, instead of overwriting it.
    pub accumulate: bool,
    /// Added to every row: one element per column of the block.
    pub bias: Option<&'a [f32]>,
    /// Bounds of the values; NaN passes.
    pub clamp: Option<(f32, f32)>,
    /// Applied last, by who knows when rows are complete.
    pub map: Option<fn(&mut [f32])>,
}

impl<'a> Store<'a> {
    /// What happens to the sums of some columns.
    #[inline(always)]
    pub fn finish(&self, (column, width): (usize, usize)) -> Finish<'a> {
        Finish {
            bias: self.bias.map(|bias| &bias[column..column + width]),
            accumulate: self.accumulate,
            clamp: self.clamp,
        }
    }
}

/// Writes the first `width` columns of the first `rows.len()` rows of the tile to the rows of
/// `block` that `rows` names, from column `column` on.
#[inline(always)]
pub fn store<S: Simd, const MR: usize, const NV: usize>(
    s: S,
    sums: &Sums<S, MR, NV>,
    block: &mut Block<'_, f32>,
    rows: &[usize],
    (column, width): (usize, usize),
    how: &Store<'_>,
) {
    let mut bias = [s.zero(); NV];
    if let Some(all) = how.bias {
        let all = &all[column..column + width];
        for (v, x) in bias.iter_mut().enumerate() {
            *x = s.load_up_to(all.get(v * S::LANES..).unwrap_or(&[]));
        }
    }
    let clamp = how.clamp.map(|(low, high)| (s.splat(low), s.splat(high)));
    let whole = width == NV * S::LANES;
    for i in 0..MR {
        let Some(&row) = rows.get(i) else { return };
        let to = &mut block.row(row)[column..column + width];
        for v in 0..NV {
            let Some(to) = to.get_mut(v * S::LANES..) else {
                break;
            };
            let mut x = s.add(sums[i][v], bias[v]);
            if how.accumulate {
                let old = if whole { s.load(to) } else { s.load_up_to(to) };
                x = s.add(x, old);
            }
            if let Some((low, high)) = clamp {
                x = s.min(high, s.max(low, x));
            }
            if whole {
                s.store(to, x);
            } else {
                s.store_up_to(to, x);
            }
        }
    }
}
