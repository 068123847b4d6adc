//! Sums over the taps of a line of a filter, where each lane is a channel of the output.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use super::Simd;

/// Some columns of a line of an image, of which a lane of the sums needs some channels.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Columns<'a> {
    /// Elements of the line.
    pub data: &'a [f32],
    /// The first channel of column `inside.0`.
    pub first: usize,
    /// Elements from one column to the next.
    pub step: usize,
    /// The columns that are there; the others count as 0.
    pub inside: (usize, usize),
}

/// Elements of a slice that are a step apart, and what follows each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Every<'a> {
    pub data: &'a [f32],
    /// The first element.
    pub first: usize,
    /// Elements from one to the next.
    pub step: usize,
}

/// The weights of taps: of each and each channel that a lane needs, a vector.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Weights<'a, const TAPS: usize> {
    /// Those of each tap, from the first on that is needed.
    pub taps: [&'a [f32]; TAPS],
    /// Elements from one channel to the next.
    pub ld: usize,
    /// Channels.
    pub depth: usize,
}

/// Which elements of a column the lanes need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lanes<S: Simd> {
    /// The place of the first channel of each lane.
    pub first: S::I,
    /// Elements that are read of each column.
    pub read: usize,
    /// Lanes that there are.
    pub count: usize,
}

/// Most channels that a lane may need, and what it sees where no column is.
pub(crate) const MAX_DEPTH: usize = 64;
static ZEROS: [f32; MAX_DEPTH] = [0.0; MAX_DEPTH];

/// A block for each of 16 columns, whose number is a constant in it: the sums of a loop that the
/// compiler keeps would lie in memory.
macro_rules! each_column {
    ($at:ident, $block:block) => {
        each_column!($at, $block, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15)
    };
    ($at:ident, $block:block, $($number:literal),*) => {
        $({
            const $at: usize = $number;
            $block
        })*
    };
}

/// Adds to the sums of `STOPS` stops, which are a column apart, what `TAPS` taps see, times their
/// weights. So all together see `SEEN` columns. Channel `i` of a lane is element `i` of a column;
/// or if `SPREAD`, element `first + i`, which is below [`Simd::LANES`]. There are as many lanes as a
/// vector has, and if `SPREAD` as many elements are read, unless `PARTIAL`.
///
/// Panics if the columns that are there, or the weights, are not in their slices.
#[inline(always)]
pub(crate) fn add_line<
    S: Simd,
    const STOPS: usize,
    const TAPS: usize,
    const SEEN: usize,
    const SPREAD: bool,
    const PARTIAL: bool,
>(
    s: S,
    mut sums: [S::F; STOPS],
    columns: &Columns<'_>,
    weights: &Weights<'_, TAPS>,
    lanes: &Lanes<S>,
) -> [S::F; STOPS] {
    const { assert!(SEEN == STOPS + TAPS - 1 && SEEN <= 16 && (TAPS == 1 || TAPS == 3)) };
    let (start, end) = (columns.inside.0, columns.inside.1.min(SEEN));
    let (read, count) = match (PARTIAL, SPREAD) {
        (true, true) => (lanes.read.min(S::LANES), lanes.count.min(S::LANES)),
        (true, false) => (weights.depth, lanes.count.min(S::LANES)),
        (false, true) => (S::LANES, S::LANES),
        (false, false) => (weights.depth, S::LANES),
    };
    if start < end {
        check(
            columns.data,
            (columns.first, columns.step, end - start),
            read,
        );
    }
    assert!(read <= ZEROS.len(), "more channels than there are zeros");
    for of in weights.taps {
        check(of, (0, weights.ld, weights.depth), count);
    }
    let pixels = columns.data.as_ptr().wrapping_add(columns.first);
    let pixels = pixels.wrapping_sub(start.wrapping_mul(columns.step));
    let mut places = [ZEROS.as_ptr(); SEEN];
    for at in 0..SEEN {
        if (start..end).contains(&at) {
            places[at] = pixels.wrapping_add(at.wrapping_mul(columns.step));
        }
    }
    for i in 0..weights.depth {
        let mut w = [s.zero(); TAPS];
        for tap in 0..TAPS {
            let from = weights.taps[tap].as_ptr().wrapping_add(i * weights.ld);
            // SAFETY: the line of a channel, `count` elements of it: `check` found them.
            w[tap] = unsafe { load::<S, PARTIAL>(s, from, count) };
        }
        let index = s.add_i(lanes.first, s.splat_i(i as i32));
        each_column!(AT, {
            if AT < SEEN {
                let x = if SPREAD {
                    // SAFETY: a column that is there, or zeros: `read` elements, which `check` found.
                    s.permute(unsafe { load::<S, PARTIAL>(s, places[AT], read) }, index)
                } else {
                    // SAFETY: as above; `i` is one of them.
                    s.splat(unsafe { *places[AT].wrapping_add(i) })
                };
                if AT < STOPS {
                    sums[AT] = s.mul_add(x, w[0], sums[AT]);
                }
                if TAPS == 3 && (1..=STOPS).contains(&AT) {
                    sums[AT.wrapping_sub(1)] = s.mul_add(x, w[1], sums[AT.wrapping_sub(1)]);
                }
                if TAPS == 3 && (2..=STOPS + 1).contains(&AT) {
                    sums[AT.wrapping_sub(2)] = s.mul_add(x, w[2], sums[AT.wrapping_sub(2)]);
                }
            }
        });
    }
    sums
}

/// Adds to `sums[tap][i]` the products of channel `channel + i` of each lane of some columns with
/// what lies in the lanes of some stops: column `n` meets stop `n + TAPS - 1 - tap`. Channels are as for [`add_line`], of which there
/// are `depth`; those that there are not are as the last one.
///
/// Panics if columns or stops are not in their slices.
#[inline(always)]
pub(crate) fn add_stops<
    S: Simd,
    const TAPS: usize,
    const CHANNELS: usize,
    const SPREAD: bool,
    const PARTIAL: bool,
>(
    s: S,
    mut sums: [[S::F; CHANNELS]; TAPS],
    count: usize,
    columns: Every<'_>,
    stops: Every<'_>,
    lanes: &Lanes<S>,
    (channel, depth): (usize, usize),
) -> [[S::F; CHANNELS]; TAPS] {
    if count == 0 || depth == 0 {
        return sums;
    }
    let (read, width) = match (PARTIAL, SPREAD) {
        (true, true) => (lanes.read.min(S::LANES), lanes.count.min(S::LANES)),
        (true, false) => (depth, lanes.count.min(S::LANES)),
        (false, true) => (S::LANES, S::LANES),
        (false, false) => (depth, S::LANES),
    };
    check(columns.data, (columns.first, columns.step, count), read);
    check(
        stops.data,
        (stops.first, stops.step, count + TAPS - 1),
        width,
    );
    let mut column = columns.data.as_ptr().wrapping_add(columns.first);
    let mut stop = stops.data.as_ptr().wrapping_add(stops.first);
    // Stop `n + TAPS - 1 - tap` in the place of tap `tap`, but for tap 0 that of the column before.
    let mut seen = [s.zero(); TAPS];
    for tap in (0..TAPS - 1).rev() {
        // SAFETY: one of the first `TAPS - 1` stops, `width` elements of it: `check` found them.
        seen[tap] = unsafe { load::<S, PARTIAL>(s, stop, width) };
        stop = stop.wrapping_add(stops.step);
    }
    for _ in 0..count {
        for tap in (1..TAPS).rev() {
            seen[tap] = seen[tap - 1];
        }
        // SAFETY: stop `n + TAPS - 1`, `width` elements of it: `check` found them.
        seen[0] = unsafe { load::<S, PARTIAL>(s, stop, width) };
        let mut x = s.zero();
        if SPREAD {
            // SAFETY: column `n`, `read` elements of it: `check` found them.
            x = unsafe { load::<S, PARTIAL>(s, column, read) };
        }
        for i in 0..CHANNELS {
            let of = (channel + i).min(depth - 1);
            let x = if SPREAD {
                s.permute(x, s.add_i(lanes.first, s.splat_i(of as i32)))
            } else {
                // SAFETY: as above; `of` is below `read`.
                s.splat(unsafe { *column.wrapping_add(of) })
            };
            for tap in 0..TAPS {
                sums[tap][i] = s.mul_add(x, seen[tap], sums[tap][i]);
            }
        }
        column = column.wrapping_add(columns.step);
        stop = stop.wrapping_add(stops.step);
    }
    sums
}

/// Panics unless a slice has `read` elements from each of `count` places on.
#[inline(always)]
fn check(data: &[f32], (first, step, count): (usize, usize, usize), read: usize) {
    let end = step
        .checked_mul(count.saturating_sub(1))
        .and_then(|last| last.checked_add(first)?.checked_add(read));
    assert!(
        count == 0 || end.is_some_and(|end| end <= data.len()),
        "a place outside of its slice"
    );
}

/// A vector, or if `PARTIAL` so many elements of one.
///
/// # Safety
/// They are elements of one slice.
#[inline(always)]
unsafe fn load<S: Simd, const PARTIAL: bool>(s: S, from: *const f32, count: usize) -> S::F {
    if PARTIAL {
        // SAFETY: by the caller.
        s.load_up_to(unsafe { core::slice::from_raw_parts(from, count) })
    } else {
        // SAFETY: by the caller.
        unsafe { s.load_from(from) }
    }
}
