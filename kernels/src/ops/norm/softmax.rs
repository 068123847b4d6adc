//! Softmax and its logarithm over the last axis.

mod short;

use crate::base::adapt::{check_count, variants};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, Inputs, KernelDef, OutputSink};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::frame::map::outputs_like_first;
use crate::frame::rows::passes::{self, Passes};
use crate::frame::rows::{self, KeptWeights, Largest, Pairs};
use crate::math;
use crate::simd::body::dispatch_simd;
use crate::simd::stream::{self, Fence};
use crate::simd::{Body, Simd};

struct Rows<'a, const LOG: bool> {
    x: &'a [f32],
    width: usize,
    out: &'a mut [f32],
    #[cfg(not(without = "passes"))]
    /// No cache holds the rows.
    far: bool,
}

impl<const LOG: bool> Body for Rows<'_, LOG> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self { x, width, out, .. } = self;
        #[cfg(not(without = "passes"))]
        if passes::are_many(out.len() / width, width) {
            match Fence::new(s, self.far) {
                Some(fence) => Self::many(s, x, out, width, Some(&fence)),
                None => Self::many(s, x, out, width, None),
            }
            return;
        }
        let mut rows = Pairs::new(x, out, width);
        while let Some((x, out)) = rows.pair() {
            let largest = finite(rows::largest(s, x));
            #[cfg(not(without = "logarithms"))]
            if LOG {
                let log = logarithm(rows::weights_sum(s, x, largest));
                passes::write(s, Distances, (x, out), [largest, log], 0..width);
                continue;
            }
            let sum = rows::weights(s, x, largest, out);
            rows::scale(s, out, reciprocal(sum));
        }
    }
}

impl<const LOG: bool> Rows<'_, LOG> {
    #[inline(always)]
    fn many<S: Simd>(s: S, x: &[f32], out: &mut [f32], width: usize, far: Option<&Fence<S>>) {
        #[cfg(not(without = "logarithms"))]
        if LOG {
            return passes::run(s, Distances, (x, out), width, far);
        }
        passes::run(s, Weights, (x, out), width, far);
    }
}

/// Softmax.
#[derive(Clone, Copy)]
struct Weights;

impl Passes for Weights {
    type First = Largest;
    type Second = KeptWeights;

    #[inline(always)]
    fn first(self) -> Option<Largest> {
        Some(Largest)
    }

    #[inline(always)]
    fn found(self, lanes: [f32; 16], _: usize) -> f32 {
        finite(rows::top(lanes))
    }

    #[inline(always)]
    fn second(self, found: f32) -> KeptWeights {
        KeptWeights(found)
    }

    #[inline(always)]
    fn factor(self, lanes: [f32; 16], _: usize) -> f32 {
        reciprocal(rows::total(lanes) as f32)
    }

    #[inline(always)]
    fn value<S: Simd>(self, s: S, x: S::F, [_, factor]: [S::F; 2], _: [S::F; 2]) -> S::F {
        s.mul(x, factor)
    }
}

/// The logarithm of softmax.
#[derive(Clone, Copy)]
struct Distances;

impl Passes for Distances {
    type First = Largest;
    type Second = rows::Weights;

    #[inline(always)]
    fn first(self) -> Option<Largest> {
        Some(Largest)
    }

    #[inline(always)]
    fn found(self, lanes: [f32; 16], _: usize) -> f32 {
        finite(rows::top(lanes))
    }

    #[inline(always)]
    fn second(self, found: f32) -> rows::Weights {
        rows::Weights(found)
    }

    #[inline(always)]
    fn factor(self, lanes: [f32; 16], _: usize) -> f32 {
        logarithm(rows::total(lanes) as f32)
    }

    #[inline(always)]
    fn value<S: Simd>(self, s: S, x: S::F, [largest, log]: [S::F; 2], _: [S::F; 2]) -> S::F {
        s.sub(s.sub(x, largest), log)
    }
}

/// The largest of a row, from which NaN keeps its distance even if all else is minus infinity.
#[inline(always)]
fn finite(largest: f32) -> f32 {
    largest.max(f32::MIN)
}

/// What weights are multiplied with; 0 leaves a weight that is NaN, and nothing of others.
#[inline(always)]
fn reciprocal(sum: f32) -> f32 {
    if sum.is_nan() { 0.0 } else { 1.0 / sum }
}

#[inline(always)]
fn logarithm(sum: f32) -> f32 {
    math::log(f64::from(sum)) as f32
}

fn each_row<const LOG: bool>(
    x: &[f32],
    width: usize,
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("softmax", out.len(), x.len())?;
    if x.is_empty() {
        return Ok(());
    }
    // A division takes longer than a row of a few elements.
    if x.len() != width && (width == 0 || !x.len().is_multiple_of(width)) {
        return Err(Error::Length {
            argument: "logits",
            found: x.len(),
            expected: width,
        });
    }
    #[cfg(without = "long rows")]
    if width > short::WIDTH {
        return Err(Error::Length {
            argument: "logits",
            found: width,
            expected: short::WIDTH,
        });
    }
    #[cfg(not(without = "short rows"))]
    if width <= short::WIDTH && out.len() <= short::FEW {
        dispatch_simd(short::Rows::<LOG> { x, width, out });
        return Ok(());
    }
    in_chunks::<LOG>(x, width, out, parallel);
    Ok(())
}

#[inline(never)]
fn in_chunks<const LOG: bool>(x: &[f32], width: usize, out: &mut [f32], parallel: &dyn Parallel) {
    let short = width <= short::WIDTH;
    let cost = if short { 8 } else { 4 };
    let chunk = chunk_len(parallel, out.len(), width, cost);
    #[cfg(not(without = "passes"))]
    let far = stream::is_far::<f32>(out.len());
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let x = &x[start..start + out.len()];
        #[cfg(not(without = "short rows"))]
        if short {
            dispatch_simd(short::Rows::<LOG> { x, width, out });
            return;
        }
        #[cfg(not(without = "long rows"))]
        dispatch_simd(Rows::<LOG> {
            x,
            width,
            out,
            #[cfg(not(without = "passes"))]
            far,
        });
    });
}

/// `exp(x) / sum(exp(x))` of each row of `width` elements; the relative error is below 4 roundings
/// plus one per unit that `x` lies below the largest of the row. An element that lies more than 87
/// below it gives 0. As in TensorFlow, an element that is NaN or positive infinity is NaN and leaves
/// 0 for all others of its row, and a row of nothing but negative infinity is NaN.
///
/// # Errors
/// [`Error::Length`] unless `out` is as long as `x` and both are whole rows.
pub fn softmax(x: &[f32], width: usize, out: &mut [f32], parallel: &dyn Parallel) -> Result<()> {
    each_row::<false>(x, width, out, parallel)
}

/// `x - log(sum(exp(x)))` of each row of `width` elements, within 2 ulp of the larger of `x` and
/// the result. A row with NaN or positive infinity, or of nothing but negative infinity, is NaN.
///
/// # Errors
/// As [`softmax`].
pub fn log_softmax(
    x: &[f32],
    width: usize,
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    each_row::<true>(x, width, out, parallel)
}

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    if inputs.shape(0, "logits")?.rank() == 0 {
        return Err(Error::Rank {
            argument: "logits",
            found: 0,
            expected: "at least 1",
        });
    }
    outputs_like_first(inputs, sink)
}

/// `Softmax` of TensorFlow.
pub static SOFTMAX: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    outputs,
    run: |call| run::<false>(call),
    ..KernelDef::of("Softmax")
};

/// `LogSoftmax` of TensorFlow.
pub static LOG_SOFTMAX: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    outputs,
    run: |call| run::<true>(call),
    ..KernelDef::of("LogSoftmax")
};

fn run<const LOG: bool>(call: &mut Call<'_>) -> Result<()> {
    let x = call.inputs.get(0, "logits")?;
    let width = x.shape().last().copied().unwrap_or(1);
    let parallel = call.parallel;
    let out = call.output(0)?.f32_mut("softmax")?;
    each_row::<LOG>(x.f32("logits")?, width, out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::simd::body::forced::each_level;
    use crate::testing::{Interleaved, numbers};

    #[test]
    fn rows_match_double_precision() {
        for (rows, width) in [
            (1, 1),
            (1, 4),
            (1, 9),
            (2, 16),
            (3, 3),
            (2, 5),
            (2, 7),
            (8, 8),
            (9, 8),
            (1, 17),
            (4, 1),
            (4, 2),
            (4, 10),
            (4, 31),
            (4, 32),
            (4, 33),
            (4, 1000),
            (4, 20_000),
            // Several passes at a time.
            (130, 64),
            (129, 65),
            (41, 300),
            (9, 1000),
            (23, 1024),
            (7, 1999),
            (5, 4096),
        ] {
            let x: Vec<f32> = numbers(rows * width, width as u64)
                .iter()
                .map(|x| x * 20.0)
                .collect();
            for parallel in [&Interleaved as &dyn Parallel, &Serial] {
                let values = each_level(|| {
                    let mut out = vec![f32::NAN; x.len()];
                    softmax(&x, width, &mut out, parallel).unwrap();
                    out
                });
                let logs = each_level(|| {
                    let mut out = vec![f32::NAN; x.len()];
                    log_softmax(&x, width, &mut out, parallel).unwrap();
                    out
                });
                for (values, logs) in values.iter().zip(&logs) {
                    check(&x, width, values, logs);
                }
            }
        }
    }

    fn check(x: &[f32], width: usize, values: &[f32], logs: &[f32]) {
        for (row, x) in x.chunks(width).enumerate() {
            let total: f64 = x.iter().map(|&x| f64::from(x).exp()).sum();
            let largest = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
            for (column, &x) in x.iter().enumerate() {
                let (value, log) = (values[row * width + column], logs[row * width + column]);
                let exact = f64::from(x).exp() / total;
                // The difference to the largest logit is rounded once.
                let tolerance = 3e-7 + 1.2e-7 * f64::from(largest - x);
                let error = (f64::from(value) - exact).abs();
                assert!(error <= tolerance * exact, "{value} {exact}");
                let exact = exact.ln();
                assert!(
                    (f64::from(log) - exact).abs() <= 3e-7 * (1.0 - exact),
                    "{log} {exact}"
                );
            }
        }
    }

    /// Rows that are done beside others have the bits of those that are done alone.
    #[test]
    fn rows_depend_on_no_other() {
        for width in [64, 100, 1000, 2000] {
            let mut x = numbers(150 * width, 5);
            x[3 * width + 7] = f32::NAN;
            x[5 * width] = f32::INFINITY;
            x[8 * width..9 * width].fill(f32::NEG_INFINITY);
            x[11 * width + 1] = -1e30;
            for function in [softmax, log_softmax] {
                let all = each_level(|| {
                    let mut out = vec![1.5; x.len()];
                    function(&x, width, &mut out, &Serial).unwrap();
                    out
                });
                let alone = each_level(|| {
                    let mut out = vec![2.5; x.len()];
                    for (x, out) in x.chunks(width).zip(out.chunks_mut(width)) {
                        function(x, width, out, &Serial).unwrap();
                    }
                    out
                });
                for (all, alone) in all.iter().zip(&alone) {
                    for (i, (a, b)) in all.iter().zip(alone).enumerate() {
                        let same = a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan());
                        assert!(same, "{width}, {i}: {a} {b}");
                        let infinite = [3, 5, 8].contains(&(i / width));
                        assert!(infinite || !a.is_nan(), "{width}, {i}: {a}");
                    }
                }
            }
        }
    }

    /// What TensorFlow's CPU gives for rows with NaN and infinities: an element that is infinitely
    /// far above the others takes all.
    #[test]
    fn what_is_no_number_leaves_nothing_of_its_row() {
        const UP: f32 = f32::INFINITY;
        const DOWN: f32 = f32::NEG_INFINITY;
        let ends: [&[f32]; 8] = [
            &[f32::NAN],
            &[UP],
            &[f32::NAN, UP],
            &[UP, UP],
            &[f32::NAN, f32::NAN],
            &[f32::NAN, DOWN],
            &[DOWN, UP],
            &[DOWN],
        ];
        for (rows, width) in [
            (1, 2),
            (1, 3),
            (1, 4),
            (2, 7),
            (1, 8),
            (3, 10),
            (1, 16),
            (9, 16),
        ]
        .into_iter()
        .chain([
            (1, 17),
            (2, 64),
            (1, 300),
            (1, 5000),
            (130, 64),
            (11, 1000),
            (3, 5000),
        ]) {
            for (end, rest) in ends.iter().flat_map(|end| [(end, 0.5), (end, DOWN)]) {
                let mut x = numbers(rows * width, 3);
                let row = (rows - 1) / 2 * width;
                x[row..row + width].fill(rest);
                x[row + width - end.len()..row + width].copy_from_slice(end);
                let unusual = |x: f32| x.is_nan() || x == UP;
                let whole = x[row..row + width].iter().all(|&x| x == DOWN);
                let any = x[row..row + width].iter().any(|&x| unusual(x));
                for log in [false, true] {
                    let function = if log { log_softmax } else { softmax };
                    for out in each_level(|| {
                        let mut out = vec![1.5; x.len()];
                        function(&x, width, &mut out, &Serial).unwrap();
                        out
                    }) {
                        for (i, (&x, &y)) in x.iter().zip(&out).enumerate() {
                            let here = (row..row + width).contains(&i);
                            let nan = here && (whole || any && (log || unusual(x)));
                            let case = format!("{rows} x {width}, {end:?}, {rest}, {i}: {y}");
                            assert_eq!(y.is_nan(), nan, "{case}");
                            assert!(!here || !any || nan || y == 0.0, "{case}");
                        }
                    }
                }
            }
        }
    }

    #[test]
    fn extreme_rows() {
        let x = [f32::NEG_INFINITY, 0.0, 3e38, 3e38, f32::NAN, 1.0];
        let mut out = [0.0; 6];
        softmax(&x, 2, &mut out, &Interleaved).unwrap();
        assert_eq!(out[..4], [0.0, 1.0, 0.5, 0.5]);
        assert!(out[4].is_nan() && out[5] == 0.0);
        assert!(softmax(&x, 4, &mut out, &Interleaved).is_err());
        assert!(softmax(&[], 0, &mut [], &Interleaved).is_ok());
    }
}
