//! Rows that fit into two vectors of any level: a few classes, which a model gives after its last
//! layer. They stay in registers, because each way through memory takes as long as all the rest.

use super::logarithm;
use crate::rows::{Pairs, exp_of_negative};
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
            if width <= S::LANES {
                row::<S, LOG, 1>(s, x, out);
            } else {
                row::<S, LOG, 2>(s, x, out);
            }
        }
    }
}

/// A row of at most `N` vectors.
#[inline(always)]
fn row<S: Simd, const LOG: bool, const N: usize>(s: S, x: &[f32], out: &mut [f32]) {
    let nothing = s.splat(f32::NEG_INFINITY);
    let (mut logits, mut top) = ([nothing; N], nothing);
    for (v, x) in x.chunks(S::LANES).take(N).enumerate() {
        logits[v] = s.load_filled(x, f32::NEG_INFINITY);
        // NaN counts as smaller than all.
        top = s.max(logits[v], top);
    }
    let largest = largest(s, top);
    let distances = logits.map(|x| s.sub(x, s.splat(largest)));
    let weights = exp_of_negative(s, distances);
    let sum = weights.into_iter().fold(s.zero(), |sum, w| s.add(sum, w));
    let sum = s.sum(sum);
    let log = if LOG { logarithm(sum) } else { 0.0 };
    let factor = 1.0 / sum;
    for (v, out) in out.chunks_mut(S::LANES).take(N).enumerate() {
        let value = if LOG {
            s.sub(distances[v], s.splat(log))
        } else {
            s.mul(weights[v], s.splat(factor))
        };
        s.store_up_to(out, value);
    }
}

/// The largest lane, none of which is NaN.
#[inline(always)]
fn largest<S: Simd>(s: S, x: S::F) -> f32 {
    let mut lanes = s.to_array(x);
    let mut half = S::LANES / 2;
    while half > 0 {
        for i in 0..half {
            let (a, b) = (lanes[i], lanes[i + half]);
            lanes[i] = if b > a { b } else { a };
        }
        half /= 2;
    }
    lanes[0]
}
