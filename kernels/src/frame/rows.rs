//! What softmax and normalisations do with a row, in vectors.
//!
//! Sums have 64 lanes whatever the instruction set, and no operation of theirs is fused, so that
//! every level gives the same bits. Exponentials are fused where the instruction set can: there,
//! levels differ within the tolerance.

// Indices keep lanes in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use crate::simd::Simd;

mod exp;
pub(crate) mod in_place;
pub(crate) mod passes;

pub(crate) use exp::exp_of_negative;
use passes::Weigh;

/// Elements that are added to the lanes at a time.
const LANES: usize = 64;
/// The most elements of a row that is too short for 64 lanes to be worth their while.
const SHORT: usize = 16;
/// Elements whose sum stays in `f32`.
const BLOCK: usize = 64 * LANES;

/// The rows of a tensor and of its result, one after the other.
pub(crate) struct Pairs<'a> {
    x: &'a [f32],
    out: &'a mut [f32],
    width: usize,
}

impl<'a> Pairs<'a> {
    /// Rows of `width` elements.
    #[inline(always)]
    pub(crate) fn new(x: &'a [f32], out: &'a mut [f32], width: usize) -> Self {
        Self { x, out, width }
    }

    /// The next pair.
    #[inline(always)]
    pub(crate) fn pair(&mut self) -> Option<(&'a [f32], &'a mut [f32])> {
        let width = self.width.min(self.x.len());
        if width == 0 {
            return None;
        }
        let (row, x) = self.x.split_at(width);
        let (to, out) = core::mem::take(&mut self.out).split_at_mut(width);
        (self.x, self.out) = (x, out);
        Some((row, to))
    }
}

/// Takes an element into a lane.
pub(crate) trait Step: Copy {
    /// The lane before any element.
    const START: f32;

    /// The element that changes nothing.
    fn nothing(self) -> f32;

    /// The lane after the element `x`.
    fn step<S: Simd>(self, s: S, lane: S::F, x: S::F) -> S::F;
}

/// The largest; NaN counts as smaller than all.
#[derive(Clone, Copy)]
pub(crate) struct Largest;

impl Step for Largest {
    const START: f32 = f32::NEG_INFINITY;

    #[inline(always)]
    fn nothing(self) -> f32 {
        f32::NEG_INFINITY
    }

    #[inline(always)]
    fn step<S: Simd>(self, s: S, lane: S::F, x: S::F) -> S::F {
        s.max(x, lane)
    }
}

/// The sum.
#[derive(Clone, Copy)]
pub(crate) struct Sum;

impl Step for Sum {
    const START: f32 = 0.0;

    #[inline(always)]
    fn nothing(self) -> f32 {
        0.0
    }

    #[inline(always)]
    fn step<S: Simd>(self, s: S, lane: S::F, x: S::F) -> S::F {
        s.add(lane, x)
    }
}

/// The sum of the squared distances from a number.
#[derive(Clone, Copy)]
pub(crate) struct Squares(pub(crate) f32);

impl Step for Squares {
    const START: f32 = 0.0;

    #[inline(always)]
    fn nothing(self) -> f32 {
        self.0
    }

    #[inline(always)]
    fn step<S: Simd>(self, s: S, lane: S::F, x: S::F) -> S::F {
        let distance = s.sub(x, s.splat(self.0));
        s.add(lane, s.mul(distance, distance))
    }
}

/// The sum of the weights of a softmax whose largest element this is.
#[derive(Clone, Copy)]
pub(crate) struct Weights(pub(crate) f32);

impl Step for Weights {
    const START: f32 = 0.0;

    #[inline(always)]
    fn nothing(self) -> f32 {
        f32::NEG_INFINITY
    }

    #[inline(always)]
    fn step<S: Simd>(self, s: S, lane: S::F, x: S::F) -> S::F {
        let [weight] = exp_of_negative(s, [s.sub(x, s.splat(self.0))]);
        s.add(lane, weight)
    }
}

/// Vectors that have 64 lanes together; those beyond are not used.
type Lanes<S> = [<S as Simd>::F; 8];

/// The vector of `rest` that starts at `at`, whose lanes without an element are `nothing`.
#[inline(always)]
fn padded<S: Simd>(s: S, rest: &[f32], at: usize, nothing: f32) -> S::F {
    let rest = &rest[at..];
    if rest.len() >= S::LANES {
        s.load(rest)
    } else {
        s.load_filled(rest, nothing)
    }
}

/// 16 lanes out of 64.
#[inline(always)]
fn folded<S: Simd, T: Step>(s: S, mut lanes: Lanes<S>, join: T) -> [f32; 16] {
    let vectors = const { LANES / S::LANES };
    for v in 0..vectors / 2 {
        lanes[v] = join.step(s, lanes[v], lanes[v + vectors / 2]);
    }
    for v in 0..vectors / 4 {
        lanes[v] = join.step(s, lanes[v], lanes[v + vectors / 4]);
    }
    let mut out = [0.0; 16];
    for v in 0..vectors / 4 {
        s.store(&mut out[v * S::LANES..], lanes[v]);
    }
    out
}

/// All elements of a row in 16 lanes; `join` joins lanes.
#[inline(always)]
fn lanes<S: Simd, T: Step, J: Step>(s: S, x: &[f32], step: T, join: J) -> [f32; 16] {
    let mut lanes: Lanes<S> = [s.splat(T::START); 8];
    let (chunks, rest) = x.as_chunks::<LANES>();
    for chunk in chunks {
        step.chunk(s, chunk, &mut lanes, &mut []);
    }
    step.rest(s, rest, &mut lanes, &mut []);
    folded(s, lanes, join)
}

/// The sum of 16 lanes, in pairs.
#[inline(always)]
pub(crate) fn total(lanes: [f32; 16]) -> f64 {
    let mut wide = [0.0; 8];
    for i in 0..8 {
        wide[i] = f64::from(lanes[i]) + f64::from(lanes[i + 8]);
    }
    for i in 0..4 {
        wide[i] += wide[i + 4];
    }
    (wide[0] + wide[2]) + (wide[1] + wide[3])
}

/// The largest element; minus infinity of none. NaN counts as smaller than all.
#[inline(always)]
pub(crate) fn largest<S: Simd>(s: S, x: &[f32]) -> f32 {
    if x.len() <= SHORT {
        let larger = |top: f32, x: f32| if x > top { x } else { top };
        return x.iter().copied().fold(f32::NEG_INFINITY, larger);
    }
    top(lanes(s, x, Largest, Largest))
}

/// The largest of 16 lanes, none of which is NaN.
#[inline(always)]
pub(crate) fn top(lanes: [f32; 16]) -> f32 {
    // A comparison would become a branch.
    let mut tops = [0.0; 8];
    for i in 0..8 {
        tops[i] = lanes[i].max(lanes[i + 8]);
    }
    for i in 0..4 {
        tops[i] = tops[i].max(tops[i + 4]);
    }
    tops[0].max(tops[2]).max(tops[1].max(tops[3]))
}

/// The sum of what `step` makes of the elements; in `f32` within blocks of 4096.
#[inline(always)]
pub(crate) fn sum<S: Simd, T: Step>(s: S, x: &[f32], step: T) -> f64 {
    let mut sum = 0.0;
    for block in x.chunks(BLOCK) {
        sum += total(lanes(s, block, step, Sum));
    }
    sum
}

/// The sum of `exp(x - largest)`, without those below 1.7e-38.
#[inline(always)]
pub(crate) fn weights_sum<S: Simd>(s: S, x: &[f32], largest: f32) -> f32 {
    if x.len() <= SHORT {
        return short_weights(s, x, largest).1;
    }
    sum(s, x, Weights(largest)) as f32
}

/// Writes `exp(x - largest)`, or 0 where that is below 1.7e-38, and returns the sum.
#[inline(always)]
pub(crate) fn weights<S: Simd>(s: S, x: &[f32], largest: f32, out: &mut [f32]) -> f32 {
    if x.len() <= SHORT {
        let (weights, sum) = short_weights(s, x, largest);
        for (out, weights) in out.chunks_mut(S::LANES).zip(weights.chunks(S::LANES)) {
            s.store_up_to(out, s.load(weights));
        }
        return sum;
    }
    let mut sum = 0.0;
    for (x, out) in x.chunks(BLOCK).zip(out.chunks_mut(BLOCK)) {
        sum += total(block_weights(s, x, largest, out));
    }
    sum as f32
}

/// The weights of a row of at most 16 elements, and their sum.
#[inline(always)]
fn short_weights<S: Simd>(s: S, x: &[f32], largest: f32) -> ([f32; SHORT], f32) {
    let mut weights = [0.0; SHORT];
    for (x, out) in x.chunks(S::LANES).zip(weights.chunks_exact_mut(S::LANES)) {
        let distance = s.sub(s.load_up_to(x), s.splat(largest));
        let [weight] = exp_of_negative(s, [distance]);
        s.store(out, weight);
    }
    let sum: f64 = weights.iter().take(x.len()).map(|&x| f64::from(x)).sum();
    (weights, sum as f32)
}

#[inline(always)]
fn block_weights<S: Simd>(s: S, x: &[f32], largest: f32, out: &mut [f32]) -> [f32; 16] {
    let weights = KeptWeights(largest);
    let mut lanes: Lanes<S> = [s.zero(); 8];
    let (chunks, rest) = x.as_chunks::<LANES>();
    let (to, to_rest) = out.as_chunks_mut::<LANES>();
    for (x, out) in chunks.iter().zip(to) {
        weights.chunk(s, x, &mut lanes, out);
    }
    weights.rest(s, rest, &mut lanes, to_rest);
    folded(s, lanes, Sum)
}

/// [`Weights`], which are kept.
#[derive(Clone, Copy)]
pub(crate) struct KeptWeights(pub(crate) f32);

impl Weigh for KeptWeights {
    const KEEPS: bool = true;

    #[inline(always)]
    fn chunk<S: Simd>(self, s: S, x: &[f32; LANES], lanes: &mut Lanes<S>, kept: &mut [f32]) {
        /// Vectors side by side.
        const SIDE: usize = 4;
        let top = s.splat(self.0);
        for first in (0..const { LANES / S::LANES }).step_by(SIDE) {
            let mut distances = [s.zero(); SIDE];
            for v in 0..SIDE {
                distances[v] = s.sub(s.load(&x[(first + v) * S::LANES..]), top);
            }
            let weights = exp_of_negative(s, distances);
            for v in 0..SIDE {
                lanes[first + v] = s.add(lanes[first + v], weights[v]);
                s.store(&mut kept[(first + v) * S::LANES..], weights[v]);
            }
        }
    }

    #[inline(always)]
    fn rest<S: Simd>(self, s: S, x: &[f32], lanes: &mut Lanes<S>, kept: &mut [f32]) {
        for v in 0..const { LANES / S::LANES } {
            let at = v * S::LANES;
            if at < x.len() {
                let x = padded(s, x, at, f32::NEG_INFINITY);
                let [weight] = exp_of_negative(s, [s.sub(x, s.splat(self.0))]);
                lanes[v] = s.add(lanes[v], weight);
                s.store_up_to(&mut kept[at..], weight);
            }
        }
    }
}

/// Multiplies all elements.
#[inline(always)]
pub(crate) fn scale<S: Simd>(s: S, row: &mut [f32], factor: f32) {
    let factor = s.splat(factor);
    let (chunks, rest) = row.as_chunks_mut::<LANES>();
    for chunk in chunks {
        for v in 0..const { LANES / S::LANES } {
            let x = &mut chunk[v * S::LANES..];
            s.store(x, s.mul(s.load(x), factor));
        }
    }
    for x in rest.chunks_mut(S::LANES) {
        s.store_up_to(x, s.mul(s.load_up_to(x), factor));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Body, available, dispatch};
    use crate::testing::numbers;

    struct All<'a>(&'a [f32], f32);

    impl Body for All<'_> {
        type Out = (f32, f64, f64, f32, Vec<f32>);

        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Self::Out {
            let top = largest(s, self.0);
            let mut out = vec![f32::NAN; self.0.len()];
            let weighed = weights(s, self.0, top, &mut out);
            assert_eq!(weighed.to_bits(), weights_sum(s, self.0, top).to_bits());
            let squares = sum(s, self.0, Squares(self.1));
            (top, sum(s, self.0, Sum), squares, weighed, out)
        }
    }

    #[test]
    fn every_level_is_right_and_sums_are_the_same() {
        for len in (0..70).chain([127, 128, 129, 1000, 4096, 4097, 9000]) {
            let x: Vec<f32> = numbers(len, 3).iter().map(|x| x * 50.0 - 7.0).collect();
            let results: Vec<_> = available()
                .map(|level| dispatch(level, All(&x, 0.5)))
                .collect();
            let (top, sum, squares, ..) = &results[0];
            for found in &results {
                assert_eq!((found.0, found.1, found.2), (*top, *sum, *squares), "{len}");
            }
            let exact = |f: &dyn Fn(f64) -> f64| x.iter().map(|&x| f(f64::from(x))).sum::<f64>();
            assert_eq!(*top, x.iter().copied().fold(f32::NEG_INFINITY, f32::max));
            assert!((sum - exact(&|x| x)).abs() <= 1e-6 * exact(&f64::abs));
            let square = |x: f64| (x - 0.5) * (x - 0.5);
            assert!((squares - exact(&square)).abs() <= 1e-6 * exact(&square));
            let total = exact(&|x| (x - f64::from(*top)).exp());
            for (.., weighed, weights) in &results {
                assert!((f64::from(*weighed) - total).abs() <= 1e-5 * total);
                for (&x, &weight) in x.iter().zip(weights) {
                    let exact = f64::from(x - top).exp();
                    let exact = if x - top < -87.0 { 0.0 } else { exact };
                    assert!(
                        (f64::from(weight) - exact).abs() <= 1e-7 * exact,
                        "{x} {weight}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_is_no_number_is_kept() {
        for level in available() {
            let run = |x: &[f32]| dispatch(level, All(x, 0.0));
            let (top, sum, _, weighed, weights) = run(&[1.0, f32::NAN, -3.0]);
            assert!(top == 1.0 && sum.is_nan() && weighed.is_nan() && weights[1].is_nan());
            let (top, _, _, weighed, weights) = run(&[0.0, f32::NEG_INFINITY, -100.0]);
            assert!(top == 0.0 && weighed == 1.0 && weights == [1.0, 0.0, 0.0]);
            assert!(run(&[f32::INFINITY, 0.0]).3.is_nan());
            assert!(run(&[f32::NEG_INFINITY; 2]).3.is_nan());
            assert_eq!(run(&[]).0, f32::NEG_INFINITY);
        }
    }
}
