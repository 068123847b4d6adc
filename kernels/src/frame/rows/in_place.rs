//! Softmax of rows in place, some of them together: what ends a pass over one, a few operations
//! that wait for each other, is done while the pass over the next one goes on.

// Indices keep vectors in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use super::{BLOCK, LANES, Lanes, Sum, exp_of_negative, folded, largest, padded, scale, total};
use crate::simd::Simd;

/// Most rows that go together, ...
const TOGETHER: usize = 8;
/// ... and most of their elements, which the first cache holds.
const NEAR: usize = 4096;

/// Rows that go together where each has `width` elements.
pub(crate) fn together(width: usize) -> usize {
    (NEAR / width.max(1)).clamp(1, TOGETHER)
}

/// Turns `rows`, at most [`together`] of any lengths, into the weights of the softmax of `factor`
/// times their elements; the factor is positive.
#[inline(always)]
pub(crate) fn softmax<'a, S: Simd>(s: S, rows: impl Iterator<Item = &'a mut [f32]>, factor: f32) {
    let mut kept: [&mut [f32]; TOGETHER] = Default::default();
    let (mut tops, mut sums) = ([0.0; TOGETHER], [0.0; TOGETHER]);
    let mut count = 0;
    for (to, row) in kept.iter_mut().zip(rows) {
        *to = row;
        count += 1;
    }
    for i in 0..count {
        tops[i] = largest(s, kept[i]);
    }
    for i in 0..count {
        sums[i] = weigh(s, kept[i], tops[i], factor);
    }
    for i in 0..count {
        scale(s, kept[i], 1.0 / sums[i]);
    }
}

/// Turns elements into `exp((x - top) * factor)`, and returns the sum.
#[inline(always)]
fn weigh<S: Simd>(s: S, row: &mut [f32], top: f32, factor: f32) -> f32 {
    /// Vectors side by side.
    const SIDE: usize = 4;
    let (top, factor) = (s.splat(top), s.splat(factor));
    let mut sum = 0.0;
    for block in row.chunks_mut(BLOCK) {
        let mut lanes: Lanes<S> = [s.zero(); 8];
        let (chunks, rest) = block.as_chunks_mut::<LANES>();
        for chunk in chunks {
            for first in (0..const { LANES / S::LANES }).step_by(SIDE) {
                let mut distances = [s.zero(); SIDE];
                for v in 0..SIDE {
                    let x = s.load(&chunk[(first + v) * S::LANES..]);
                    distances[v] = s.mul(s.sub(x, top), factor);
                }
                let weights = exp_of_negative(s, distances);
                for v in 0..SIDE {
                    lanes[first + v] = s.add(lanes[first + v], weights[v]);
                    s.store(&mut chunk[(first + v) * S::LANES..], weights[v]);
                }
            }
        }
        for v in 0..const { LANES / S::LANES } {
            let at = v * S::LANES;
            if at < rest.len() {
                let x = padded(s, rest, at, f32::NEG_INFINITY);
                let [weight] = exp_of_negative(s, [s.mul(s.sub(x, top), factor)]);
                lanes[v] = s.add(lanes[v], weight);
                s.store_up_to(&mut rest[at..], weight);
            }
        }
        sum += total(folded(s, lanes, Sum));
    }
    sum as f32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Body, available, dispatch};
    use crate::testing::numbers;

    struct All<'a>(&'a mut [f32], usize, f32);

    impl Body for All<'_> {
        type Out = ();

        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let Self(x, width, factor) = self;
            for x in x.chunks_mut(together(width) * width) {
                softmax(s, x.chunks_mut(width), factor);
            }
        }
    }

    #[test]
    fn weights_are_those_of_double_precision_and_of_a_row_alone() {
        for width in (1..70).chain([127, 128, 129, 1000, 4096, 4097, 9000]) {
            let x: Vec<f32> = numbers(11 * width, 3).iter().map(|x| x * 40.0).collect();
            for level in available() {
                let mut found = x.clone();
                dispatch(level, All(&mut found, width, 0.6));
                for (x, found) in x.chunks(width).zip(found.chunks(width)) {
                    let mut alone = x.to_vec();
                    dispatch(level, All(&mut alone, width, 0.6));
                    assert_eq!(found, alone, "{level:?} {width}");
                    let top = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
                    let distance = |x: f32| (f64::from(x) - f64::from(top)) * f64::from(0.6_f32);
                    let sum: f64 = x.iter().map(|&x| distance(x).exp()).sum();
                    for (&x, &found) in x.iter().zip(found) {
                        let exact = distance(x).exp() / sum;
                        // A rounding of the distance and one of its product, and four others.
                        let bound = exact * (4.0 - 2.0 * distance(x)) * 2f64.powi(-23);
                        let error = (f64::from(found) - exact).abs();
                        assert!(error <= bound, "{level:?} {width}: {found} {exact}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_is_kept() {
        for level in available() {
            let run = |x: &[f32]| {
                let mut x = x.to_vec();
                let width = x.len();
                dispatch(level, All(&mut x, width, 0.5));
                x
            };
            let hidden = f32::NEG_INFINITY;
            assert_eq!(run(&[3.0, hidden, hidden]), [1.0, 0.0, 0.0]);
            assert_eq!(run(&[3.0, -200.0]), [1.0, 0.0]);
            for x in [
                [f32::NAN, 1.0, 2.0],
                [f32::INFINITY, 1.0, f32::INFINITY],
                [hidden; 3],
            ] {
                assert!(run(&x).iter().any(|x| x.is_nan()), "{x:?}");
            }
        }
    }
}
