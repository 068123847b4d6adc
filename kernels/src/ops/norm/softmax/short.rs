//! Rows that fit into two vectors of any level: a few classes, which a model gives after its last
//! layer. They stay in registers, because each way through memory takes as long as all the rest.

use super::{logarithm, reciprocal};
use crate::frame::rows::{Pairs, exp_of_negative};
use crate::simd::{Body, Simd};

/// Elements of the longest row.
pub(super) const WIDTH: usize = 16;
/// Elements of so few rows that the thought of threads would take longer.
pub(super) const FEW: usize = 64;

/// Softmax, or its logarithm, of rows of `width` elements, at most [`WIDTH`].
pub(super) struct Rows<'a, const LOG: bool> {
    pub(super) x: &'a [f32],
    pub(super) width: usize,
    pub(super) out: &'a mut [f32],
}

impl<const LOG: bool> Body for Rows<'_, LOG> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let width = self.width;
        let mut rows = Pairs::new(self.x, self.out, width);
        while let Some((x, out)) = rows.pair() {
            if width <= 4 {
                row::<S, LOG, 1, 4>(s, x, out);
            } else if width <= 8 {
                row::<S, LOG, 1, 8>(s, x, out);
            } else if width <= S::LANES {
                row::<S, LOG, 1, 16>(s, x, out);
            } else {
                row::<S, LOG, 2, 16>(s, x, out);
            }
        }
    }
}

/// A row of at most `N` vectors, whose elements are in the first `LANES` lanes.
#[inline(always)]
fn row<S: Simd, const LOG: bool, const N: usize, const LANES: usize>(
    s: S,
    x: &[f32],
    out: &mut [f32],
) {
    let nothing = s.splat(f32::NEG_INFINITY);
    let (mut logits, mut top) = ([nothing; N], s.splat(f32::MIN));
    for (v, x) in x.chunks(S::LANES).take(N).enumerate() {
        logits[v] = s.load_forwarded(x, f32::NEG_INFINITY);
        // NaN counts as smaller than all.
        top = s.max(logits[v], top);
    }
    let largest = fold::<S, LANES>(s, top, |a, b| if b > a { b } else { a });
    let mut distances = logits;
    for x in &mut distances {
        *x = s.sub(*x, s.splat(largest));
    }
    let weights = exp_of_negative(s, distances);
    let sum = weights.into_iter().fold(s.zero(), |sum, w| s.add(sum, w));
    let sum = fold::<S, LANES>(s, sum, |a, b| a + b);
    #[cfg(not(without = "logarithms"))]
    if LOG {
        let log = s.splat(logarithm(sum));
        for (v, out) in out.chunks_mut(S::LANES).take(N).enumerate() {
            s.store_forwarded(out, s.sub(distances[v], log));
        }
        return;
    }
    let factor = s.splat(reciprocal(sum));
    for (v, out) in out.chunks_mut(S::LANES).take(N).enumerate() {
        s.store_forwarded(out, s.mul(weights[v], factor));
    }
}

/// All of the first `LANES` lanes, in pairs: each step waits for the one before, so that lanes
/// without an element would cost as much as the others.
#[inline(always)]
fn fold<S: Simd, const LANES: usize>(s: S, x: S::F, join: impl Fn(f32, f32) -> f32) -> f32 {
    let mut lanes = s.to_array(x);
    let mut half = const {
        if LANES < S::LANES {
            LANES / 2
        } else {
            S::LANES / 2
        }
    };
    while half > 0 {
        for i in 0..half {
            lanes[i] = join(lanes[i], lanes[i + half]);
        }
        half /= 2;
    }
    lanes[0]
}
