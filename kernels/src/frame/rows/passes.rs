//! Rows that take three passes, each of which is on another row: while one is written, the second
//! pass is on a later one, and the first on one later still. What ends a pass, a few operations
//! that wait for each other, is done meanwhile, and reading and writing are spread evenly.

use core::ops::Range;

use super::{LANES, Lanes, Step, Sum, folded, padded};
use crate::base::level::Level;
use crate::simd::stream::{self, Fence};
use crate::simd::{One, Simd, fetch_far, fetch_near};

/// Elements of the longest row.
const WIDEST: usize = 4096;
/// Fewest elements for which the passes are worth their preparation.
const FEWEST: usize = 8192;
/// Elements of a page of memory, within which a processor looks ahead.
const PAGE: usize = 1024;
/// Elements between two rows that are kept, so that they do not lie a multiple of 4096 bytes from
/// each other: a processor takes one for the other then.
const GAP: usize = 48;
/// Elements of all rows that are kept.
const ROOM: usize = 8 * (PAGE + GAP);
/// Bytes that are asked for before they are read.
const AHEAD: usize = 16_384;
/// As [`AHEAD`], into the first cache.
const NEAR: usize = 512;

/// Rows that are kept, whose vectors lie in one line each.
#[repr(align(64))]
struct Room([f32; ROOM]);

/// The passes over a row.
pub(crate) trait Passes: Copy {
    /// The step of the first pass.
    type First: Step;
    /// The second pass.
    type Second: Weigh;

    /// The first pass, unless there is none.
    fn first(self) -> Option<Self::First>;

    /// What the lanes of the first pass over a row of so many elements come down to.
    fn found(self, lanes: [f32; 16], width: usize) -> f32;

    /// The second pass, after what the first one found; 0 if there is none.
    fn second(self, found: f32) -> Self::Second;

    /// What the lanes of the second pass come down to.
    fn factor(self, lanes: [f32; 16], width: usize) -> f32;

    /// What the third pass reads of these columns, at most 64; as many numbers each.
    #[inline(always)]
    fn parameters(&self, columns: Range<usize>) -> [&[f32]; 2] {
        static NONE: [f32; LANES] = [0.0; LANES];
        [&NONE[..columns.len()]; 2]
    }

    /// The third pass: results from elements, or from what was kept of them, from what the two
    /// passes before came down to, and from the parameters of the columns.
    fn value<S: Simd>(self, s: S, x: S::F, found: [S::F; 2], parameters: [S::F; 2]) -> S::F;
}

/// A sum over a row, perhaps with something kept of each element.
pub(crate) trait Weigh: Copy {
    /// Whether something is kept.
    const KEEPS: bool;

    /// Adds 64 elements; `kept` has as many, if any.
    fn chunk<S: Simd>(self, s: S, x: &[f32; LANES], lanes: &mut Lanes<S>, kept: &mut [f32]);

    /// Adds fewer.
    fn rest<S: Simd>(self, s: S, x: &[f32], lanes: &mut Lanes<S>, kept: &mut [f32]);
}

impl<T: Step> Weigh for T {
    const KEEPS: bool = false;

    #[inline(always)]
    fn chunk<S: Simd>(self, s: S, x: &[f32; LANES], lanes: &mut Lanes<S>, _: &mut [f32]) {
        for v in 0..const { LANES / S::LANES } {
            lanes[v] = self.step(s, lanes[v], s.load(&x[v * S::LANES..]));
        }
    }

    #[inline(always)]
    fn rest<S: Simd>(self, s: S, x: &[f32], lanes: &mut Lanes<S>, _: &mut [f32]) {
        for v in 0..const { LANES / S::LANES } {
            // What has no element changes no lane.
            if v * S::LANES < x.len() {
                let x = padded(s, x, v * S::LANES, self.nothing());
                lanes[v] = self.step(s, lanes[v], x);
            }
        }
    }
}

/// Whether [`run`] can do so many rows of so many elements, and is of use.
///
/// It never is without std: the rows that it keeps are 34 kB of stack in each function that it is
/// inlined into, whether they are used or not.
#[inline(always)]
pub(crate) fn are_many(rows: usize, width: usize) -> bool {
    cfg!(feature = "std")
        && (LANES..=WIDEST).contains(&width)
        && rows >= 4
        && rows * width >= FEWEST
}

/// Writes the rows of `out` from those of `x`, past the caches if `far` is there.
#[inline(always)]
pub(crate) fn run<S: Simd, P: Passes>(
    s: S,
    passes: P,
    (x, out): (&[f32], &mut [f32]),
    width: usize,
    far: Option<&Fence<S>>,
) {
    let fits = |log: u32| !P::Second::KEEPS || (2 * apart(width)) << log <= ROOM;
    let log = if far.is_none() {
        0
    } else if fits(2) {
        2
    } else {
        u32::from(fits(1))
    };
    groups(s, passes, (x, out), (width, log), far);
}

/// Elements from one row that is kept to the next.
#[inline(always)]
fn apart(width: usize) -> usize {
    width.next_multiple_of(16) + GAP
}

/// Rows in groups of `1 << log`, whose rows are `step` apart.
struct Order {
    rows: usize,
    width: usize,
    step: usize,
    log: u32,
}

impl Order {
    /// Groups; some rows of the last ones may be missing.
    #[inline(always)]
    fn groups(&self) -> usize {
        self.rows.div_ceil(self.step << self.log) * self.step
    }

    /// Where a row of a group starts.
    #[inline(always)]
    fn start(&self, group: usize, i: usize) -> Option<usize> {
        let first = ((group / self.step * self.step) << self.log) + group % self.step;
        let row = first + i * self.step;
        (row < self.rows).then_some(row * self.width)
    }

    /// A row of a group of the tensor `x`; none of a group that there is not.
    #[inline(always)]
    fn row<'a>(&self, x: &'a [f32], group: usize, i: usize) -> &'a [f32] {
        let start = self.start(group, i);
        start.map_or(&[], |start| &x[start..][..self.width])
    }
}

/// A row in its third pass; none by default.
#[derive(Clone, Copy, Default)]
struct Third {
    /// Where its values start, in the tensor or among what was kept.
    from: usize,
    /// Where its results start.
    to: usize,
    /// Where its blocks of 64 columns start and end.
    head: usize,
    tail: usize,
    /// Its columns.
    width: usize,
    found: [f32; 2],
}

impl Third {
    /// Writes a block, if there are so many, from the values in `x`.
    #[inline(always)]
    fn block<S: Simd, P: Passes>(
        &self,
        s: S,
        passes: P,
        (x, out): (&[f32], &mut [f32]),
        block: usize,
        far: Option<&Fence<S>>,
    ) {
        let column = self.head + block * LANES;
        if column >= self.tail {
            return;
        }
        let x = &x[self.from + column..][..LANES];
        let out = &mut out[self.to + column..][..LANES];
        let found = [s.splat(self.found[0]), s.splat(self.found[1])];
        let [scale, shift] = passes.parameters(column..column + LANES);
        for at in (0..LANES).step_by(S::LANES) {
            let parameters = [s.load(&scale[at..]), s.load(&shift[at..])];
            let value = passes.value(s, s.load(&x[at..]), found, parameters);
            match far {
                Some(fence) => fence.store_vector(&mut out[at..], value),
                None => s.store(&mut out[at..], value),
            }
        }
    }
}

/// Most rows of a group; a power of two.
const MOST: usize = 4;

/// As [`run`], in groups of `1 << log` rows. The rows of a group are written in turn: where memory
/// is waited for, it is of use to work on several pages.
// The number of rows is no constant: a loop per number would be the largest part of a softmax.
#[inline(always)]
fn groups<S: Simd, P: Passes>(
    s: S,
    passes: P,
    (x, out): (&[f32], &mut [f32]),
    (width, log): (usize, u32),
    far: Option<&Fence<S>>,
) {
    let n = 1 << log.min(MOST.ilog2());
    let mut room = Room([0.0; ROOM]);
    let room = &mut room.0;
    let order = Order {
        rows: x.len() / width,
        width,
        step: if n > 1 { PAGE.div_ceil(width) } else { 1 },
        log,
    };
    let (chunks, count) = (width / LANES, order.groups());
    let ahead = AHEAD.div_ceil(n * width * size_of::<f32>());
    // What the passes over a group came down to, until its rows are written.
    let (mut found, mut factors) = ([[0.0; MOST]; 3], [[0.0; MOST]; 2]);
    for time in 0..count + 2 {
        // Where what is kept of a row is, of this and every other group.
        let slot = |i: usize, age: usize| ((time + age) % 2 * n + i) * apart(width);
        let mut third = [Third::default(); MOST];
        let mut fetched: [&[f32]; MOST] = [&[]; MOST];
        for i in 0..n {
            fetched[i] = order.row(x, time + ahead, i);
            let group = time.checked_sub(2);
            if let Some(to) = group.and_then(|group| order.start(group, i)) {
                let head = stream::head(&out[to..][..width]);
                third[i] = Third {
                    from: if P::Second::KEEPS { slot(i, 0) } else { to },
                    to,
                    head,
                    tail: head + (width - head) / LANES * LANES,
                    width,
                    found: [found[(time + 1) % 3][i], factors[time % 2][i]],
                };
            }
        }
        if far.is_some() {
            // What does not go past the caches needs its lines, and all else waits for it.
            for row in &third[..n] {
                fetch_near(&out[row.to..][..row.head], 0);
                fetch_near(&out[row.to + row.tail..row.to + row.width], 0);
            }
        }
        for i in 0..n {
            let first = order.row(x, time, i);
            let second = match time.checked_sub(1) {
                Some(group) => order.row(x, group, i),
                None => &[],
            };
            let (first_chunks, first_rest) = first.as_chunks::<LANES>();
            let (second_chunks, second_rest) = second.as_chunks::<LANES>();
            let find = passes.first();
            let weigh = passes.second(found[(time + 2) % 3][i]);
            let kept = if P::Second::KEEPS { slot(i, 1) } else { 0 };
            let mut first_lanes: Lanes<S> = [s.splat(P::First::START); 8];
            let mut second_lanes: Lanes<S> = [s.zero(); 8];
            for chunk in 0..chunks {
                let place = i * chunks + chunk;
                let (turn, block) = (place % n % MOST, place >> log);
                let values = if P::Second::KEEPS { &room[..] } else { x };
                third[turn].block(s, passes, (values, out), block, far);
                if far.is_some()
                    && let Some(x) = fetched[turn].get(block * LANES..)
                    && let Some(x) = x.first_chunk::<LANES>()
                {
                    fetch_far(x, 0);
                }
                if let Some(x) = second_chunks.get(chunk) {
                    let kept = &mut room[kept + chunk * LANES..][..LANES];
                    weigh.chunk(s, x, &mut second_lanes, kept);
                }
                if let Some(x) = first_chunks.get(chunk) {
                    if far.is_some() {
                        fetch_near(x, NEAR);
                    }
                    if let Some(find) = find {
                        find.chunk(s, x, &mut first_lanes, &mut []);
                    }
                }
            }
            if !second.is_empty() {
                let kept = &mut room[kept + chunks * LANES..][..second_rest.len()];
                weigh.rest(s, second_rest, &mut second_lanes, kept);
                let lanes = folded(s, second_lanes, Sum);
                factors[(time + 1) % 2][i] = passes.factor(lanes, width);
            }
            if let Some(find) = find
                && !first.is_empty()
            {
                find.rest(s, first_rest, &mut first_lanes, &mut []);
                found[time % 3][i] = passes.found(folded(s, first_lanes, find), width);
            }
        }
        // Nothing here may copy one of these arrays: a load of what several stores wrote waits
        // until all of them are in the cache, in turn with those that go past it to memory.
        for i in 0..n {
            let row = &third[i];
            if far.is_some()
                && let Some(x) = fetched[i].get(chunks * LANES..)
            {
                fetch_far(x, 0);
            }
            let values = if P::Second::KEEPS { &room[..] } else { x };
            if row.head > 0 {
                let to = (&values[row.from..], &mut out[row.to..]);
                write(s, passes, to, row.found, 0..row.head);
            }
            if row.tail < row.width {
                let to = (&values[row.from..], &mut out[row.to..]);
                write(s, passes, to, row.found, row.tail..row.width);
            }
        }
    }
}

/// The third pass over some columns of a row.
#[inline(always)]
pub(crate) fn write<S: Simd, P: Passes>(
    s: S,
    passes: P,
    (x, out): (&[f32], &mut [f32]),
    found: [f32; 2],
    columns: Range<usize>,
) {
    let whole = columns.start + columns.len() / S::LANES * S::LANES;
    let lanes = [s.splat(found[0]), s.splat(found[1])];
    for at in (columns.start..whole).step_by(S::LANES) {
        let [scale, shift] = passes.parameters(at..at + S::LANES);
        let parameters = [s.load(scale), s.load(shift)];
        let value = passes.value(s, s.load(&x[at..]), lanes, parameters);
        s.store(&mut out[at..], value);
    }
    let rest = whole..columns.end;
    let [scale, shift] = passes.parameters(rest.clone());
    let (x, out) = (&x[rest.clone()], &mut out[rest]);
    if const { matches!(S::LEVEL, Level::Avx512) } {
        let parameters = [s.load_partial(scale), s.load_partial(shift)];
        s.store_partial(out, passes.value(s, s.load_partial(x), lanes, parameters));
        return;
    }
    // Where a part of a vector is dear, one by one.
    for (i, (&x, out)) in x.iter().zip(out).enumerate() {
        *out = passes.value(One, x, found, [scale[i], shift[i]]);
    }
}
