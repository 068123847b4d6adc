//! Softmax and its logarithm over the last axis.

mod short;

use core::mem::{swap, take};

use crate::adapt::{check_count, variants};
use crate::body::dispatch_simd;
use crate::chunks::{chunk_len, for_each_chunk};
use crate::def::{Call, Inputs, KernelDef, OutputSink, no_scratch};
use crate::error::{Error, Result};
use crate::map::outputs_like_first;
use crate::math;
use crate::parallel::Parallel;
use crate::rows::{self, KEPT, Pairs};
use crate::simd::stream::{self, Behind, Columns, Fence};
use crate::simd::{Body, Simd};

/// Elements between two rows that are kept, so that they do not lie a multiple of 4096 bytes from each
/// other: a processor takes one for the other then.
const GAP: usize = 528;

/// Two rows, whose vectors lie in one line each.
#[repr(align(64))]
struct Room([f32; 2 * KEPT + GAP]);

struct Rows<'a, const LOG: bool> {
    x: &'a [f32],
    width: usize,
    out: &'a mut [f32],
    /// No cache holds the rows.
    far: bool,
}

impl<const LOG: bool> Body for Rows<'_, LOG> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match Fence::new(s, self.far && self.width <= KEPT) {
            Some(fence) => self.far_rows(s, &fence),
            None => self.near_rows(s),
        }
    }
}

impl<const LOG: bool> Rows<'_, LOG> {
    #[inline(always)]
    fn near_rows<S: Simd>(self, s: S) {
        let mut rows = Pairs::new(self.x, self.out, self.width);
        while let Some((x, out)) = rows.pair() {
            let largest = rows::largest(s, x);
            if LOG {
                let log = logarithm(rows::weights_sum(s, x, largest, &mut ()));
                Distance { x, largest, log }.write(0, out);
            } else {
                let sum = rows::weights(s, x, largest, out, &mut ());
                rows::scale(s, out, 1.0 / sum);
            }
        }
    }

    /// Each row is written past the caches beside the exponentials of the next one.
    #[inline(always)]
    fn far_rows<S: Simd>(self, s: S, fence: &Fence<S>) {
        let mut room = Room([0.0; 2 * KEPT + GAP]);
        let (kept, before) = room.0.split_at_mut(KEPT + GAP);
        let (mut kept, mut before) = (&mut kept[..self.width], &mut before[..self.width]);
        let mut distance = Distance {
            x: &[],
            largest: 0.0,
            log: 0.0,
        };
        let (mut factor, mut to): (f32, &mut [f32]) = (1.0, &mut []);
        let mut rows = Pairs::new(self.x, self.out, self.width);
        loop {
            let next = rows.pair();
            let x = next.as_ref().map_or(&[][..], |(x, _)| x);
            let largest = rows::largest(s, x);
            if LOG {
                let mut behind = Behind::new(fence, distance, take(&mut to));
                let sum = rows::weights_sum(s, x, largest, &mut behind);
                behind.rest();
                let log = logarithm(sum);
                distance = Distance { x, largest, log };
            } else {
                let scaled = Scaled { x: before, factor };
                let mut behind = Behind::new(fence, scaled, take(&mut to));
                let sum = rows::weights(s, x, largest, &mut kept[..x.len()], &mut behind);
                behind.rest();
                factor = 1.0 / sum;
            }
            let Some((_, out)) = next else {
                break;
            };
            to = out;
            swap(&mut kept, &mut before);
        }
    }
}

#[inline(always)]
fn logarithm(sum: f32) -> f32 {
    math::log(f64::from(sum)) as f32
}

/// A row of weights times a factor.
struct Scaled<'a> {
    x: &'a [f32],
    factor: f32,
}

impl Columns for Scaled<'_> {
    #[inline(always)]
    fn write(&self, first: usize, out: &mut [f32]) {
        for (out, &x) in out.iter_mut().zip(&self.x[first..]) {
            *out = x * self.factor;
        }
    }
}

/// A row less its largest element and a logarithm.
struct Distance<'a> {
    x: &'a [f32],
    largest: f32,
    log: f32,
}

impl Columns for Distance<'_> {
    #[inline(always)]
    fn write(&self, first: usize, out: &mut [f32]) {
        for (out, &x) in out.iter_mut().zip(&self.x[first..]) {
            *out = (x - self.largest) - self.log;
        }
    }
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
    if width == 0 || !x.len().is_multiple_of(width) {
        return Err(Error::Length {
            argument: "logits",
            found: x.len(),
            expected: width,
        });
    }
    let short = width <= short::WIDTH;
    if short && out.len() <= short::FEW {
        dispatch_simd(short::Rows::<LOG> { x, width, out });
        return Ok(());
    }
    let chunk = chunk_len(parallel, out.len(), width, 8);
    let far = stream::is_far::<f32>(out.len());
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let x = &x[start..start + out.len()];
        if short {
            dispatch_simd(short::Rows::<LOG> { x, width, out });
        } else {
            dispatch_simd(Rows::<LOG> { x, width, out, far });
        }
    });
    Ok(())
}

/// `exp(x) / sum(exp(x))` of each row of `width` elements; the relative error is below 4 roundings
/// plus one per unit that `x` lies below the largest of the row. An element that lies more than 87
/// below it gives 0. A row with NaN or positive infinity is NaN.
///
/// # Errors
/// [`Error::Length`] unless `out` is as long as `x` and both are whole rows.
pub fn softmax(x: &[f32], width: usize, out: &mut [f32], parallel: &dyn Parallel) -> Result<()> {
    each_row::<false>(x, width, out, parallel)
}

/// `x - log(sum(exp(x)))` of each row of `width` elements, within 2 ulp of the larger of `x` and
/// the result.
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
    op: "Softmax",
    variants: variants!("T": [F32] host &[];),
    attrs: &[],
    forward: &[],
    outputs,
    scratch: no_scratch,
    run: |call| run::<false>(call),
};

/// `LogSoftmax` of TensorFlow.
pub static LOG_SOFTMAX: KernelDef = KernelDef {
    op: "LogSoftmax",
    variants: variants!("T": [F32] host &[];),
    attrs: &[],
    forward: &[],
    outputs,
    scratch: no_scratch,
    run: |call| run::<true>(call),
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
    use crate::body::forced::each_level;
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
        ] {
            let x: Vec<f32> = numbers(rows * width, width as u64)
                .iter()
                .map(|x| x * 20.0)
                .collect();
            let values = each_level(|| {
                let mut out = vec![f32::NAN; x.len()];
                softmax(&x, width, &mut out, &Interleaved).unwrap();
                out
            });
            let logs = each_level(|| {
                let mut out = vec![f32::NAN; x.len()];
                log_softmax(&x, width, &mut out, &Interleaved).unwrap();
                out
            });
            for (values, logs) in values.iter().zip(&logs) {
                check(&x, width, values, logs);
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

    #[test]
    fn extreme_rows() {
        let x = [f32::NEG_INFINITY, 0.0, 3e38, 3e38, f32::NAN, 1.0];
        let mut out = [0.0; 6];
        softmax(&x, 2, &mut out, &Interleaved).unwrap();
        assert_eq!(out[..4], [0.0, 1.0, 0.5, 0.5]);
        assert!(out[4].is_nan() && out[5].is_nan());
        assert!(softmax(&x, 4, &mut out, &Interleaved).is_err());
        assert!(softmax(&[], 0, &mut [], &Interleaved).is_ok());
    }
}
