//! Normalisations of inference and of a forward pass: layer, RMS, group and batch.
//!
//! Sums run in `f64` blocks, so that results are within 4 ulp of exact arithmetic, relative to the
//! larger of the result and the shift.

use core::ops::Range;

use crate::base::adapt::check_count;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::frame::rows::passes::{self, Passes};
use crate::frame::rows::{self, Pairs};
use crate::math;
use crate::simd::body::dispatch_simd;
use crate::simd::stream::{self, Fence};
use crate::simd::{self, Simd};

const LANES: usize = 32;

/// The sum of `term` over all elements.
#[inline(always)]
pub(crate) fn sum(x: &[f32], term: impl Fn(f32) -> f32) -> f64 {
    let mut total = 0.0_f64;
    for block in x.chunks(LANES * 64) {
        let (chunks, rest) = block.as_chunks::<LANES>();
        let mut lanes = [0.0_f32; LANES];
        for chunk in chunks {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane += term(x);
            }
        }
        for &value in &lanes {
            total += f64::from(value);
        }
        for &x in rest {
            total += f64::from(term(x));
        }
    }
    total
}

/// Which statistics a row is normalised with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Mean and variance.
    Layer,
    /// The mean of the squares.
    Rms,
}

struct Rows<'a> {
    kind: Kind,
    x: &'a [f32],
    width: usize,
    scale: Option<&'a [f32]>,
    shift: Option<&'a [f32]>,
    epsilon: f32,
    out: &'a mut [f32],
    #[cfg(not(without = "passes"))]
    /// No cache holds the rows.
    far: bool,
}

impl simd::Body for Rows<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let normal = Normal {
            kind: self.kind,
            epsilon: self.epsilon,
            parameters: (self.scale, self.shift),
        };
        let Self { x, out, width, .. } = self;
        #[cfg(not(without = "passes"))]
        if passes::are_many(out.len() / width, width) {
            match Fence::new(s, self.far) {
                Some(fence) => passes::run(s, normal, (x, out), width, Some(&fence)),
                None => passes::run(s, normal, (x, out), width, None),
            }
            return;
        }
        let mut rows = Pairs::new(x, out, width);
        while let Some((x, out)) = rows.pair() {
            let mean = match self.kind {
                Kind::Layer => normal.mean(rows::sum(s, x, rows::Sum), width),
                Kind::Rms => 0.0,
            };
            let factor = normal.inverse(rows::sum(s, x, rows::Squares(mean)), width);
            passes::write(s, normal, (x, out), [mean, factor], 0..width);
        }
    }
}

/// A factor and a shift per column.
type Parameters<'a> = (Option<&'a [f32]>, Option<&'a [f32]>);

/// What normalises a row.
#[derive(Clone, Copy)]
struct Normal<'a> {
    kind: Kind,
    epsilon: f32,
    parameters: Parameters<'a>,
}

impl Normal<'_> {
    #[inline(always)]
    fn mean(&self, sum: f64, width: usize) -> f32 {
        (sum / width as f64) as f32
    }

    /// One over the standard deviation.
    #[inline(always)]
    fn inverse(&self, squares: f64, width: usize) -> f32 {
        let variance = f64::from((squares / width as f64) as f32);
        (1.0 / math::sqrt(variance + f64::from(self.epsilon))) as f32
    }
}

impl Passes for Normal<'_> {
    type First = rows::Sum;
    type Second = rows::Squares;

    #[inline(always)]
    fn first(self) -> Option<rows::Sum> {
        (self.kind == Kind::Layer).then_some(rows::Sum)
    }

    #[inline(always)]
    fn found(self, lanes: [f32; 16], width: usize) -> f32 {
        self.mean(rows::total(lanes), width)
    }

    #[inline(always)]
    fn second(self, found: f32) -> rows::Squares {
        rows::Squares(found)
    }

    #[inline(always)]
    fn factor(self, lanes: [f32; 16], width: usize) -> f32 {
        self.inverse(rows::total(lanes), width)
    }

    #[inline(always)]
    fn parameters(&self, columns: Range<usize>) -> [&[f32]; 2] {
        let (scale, shift) = self.parameters;
        [
            scale.map_or(&ONES[..columns.len()], |scale| &scale[columns.clone()]),
            shift.map_or(&ZEROS[..columns.len()], |shift| &shift[columns.clone()]),
        ]
    }

    #[inline(always)]
    fn value<S: Simd>(
        self,
        s: S,
        x: S::F,
        [mean, factor]: [S::F; 2],
        [scale, shift]: [S::F; 2],
    ) -> S::F {
        let value = s.mul(s.sub(x, mean), factor);
        s.add(s.mul(value, scale), shift)
    }
}

/// The parameters that change nothing, not even the sign of a zero.
static ONES: [f32; 64] = [1.0; 64];
static ZEROS: [f32; 64] = [-0.0; 64];

/// Normalises each row of `width` elements, then multiplies by `scale` and adds `shift`, one
/// number per column each.
///
/// # Errors
/// [`Error::Length`] unless `x` and `out` are whole rows and equally long, and `scale` and `shift`
/// have a number per column.
pub fn normalize_rows(
    kind: Kind,
    x: &[f32],
    width: usize,
    (scale, shift): Parameters<'_>,
    epsilon: f32,
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("out", out.len(), x.len())?;
    for (argument, found) in [("scale", scale), ("shift", shift)] {
        if let Some(found) = found {
            check_count(argument, found.len(), width)?;
        }
    }
    if x.is_empty() {
        return Ok(());
    }
    check_rows("x", x.len(), width)?;
    let chunk = chunk_len(parallel, out.len(), width, 4);
    #[cfg(not(without = "passes"))]
    let far = stream::is_far::<f32>(out.len());
    for_each_chunk(parallel, out, chunk, &|start, out| {
        dispatch_simd(Rows {
            kind,
            x: &x[start..start + out.len()],
            width,
            scale,
            shift,
            epsilon,
            out,
            #[cfg(not(without = "passes"))]
            far,
        });
    });
    Ok(())
}

fn check_rows(argument: &'static str, found: usize, width: usize) -> Result<()> {
    if width == 0 || !found.is_multiple_of(width) {
        return Err(Error::Length {
            argument,
            found,
            expected: width,
        });
    }
    Ok(())
}

/// The statistics and parameters of a batch norm, a number per channel each.
#[derive(Clone, Copy, Debug)]
pub struct BatchNorm<'a> {
    /// Mean.
    pub mean: &'a [f32],
    /// Variance.
    pub variance: &'a [f32],
    /// Learned factor; 1 if missing.
    pub gamma: Option<&'a [f32]>,
    /// Learned shift; 0 if missing.
    pub beta: Option<&'a [f32]>,
    /// What is added to the variance.
    pub epsilon: f32,
}

/// The factor and the shift that a batch norm comes down to in inference.
///
/// # Errors
/// [`Error::Length`] unless all slices are equally long.
pub fn fold_batch_norm(norm: &BatchNorm<'_>, scale: &mut [f32], shift: &mut [f32]) -> Result<()> {
    let channels = scale.len();
    check_count("shift", shift.len(), channels)?;
    check_count("mean", norm.mean.len(), channels)?;
    check_count("variance", norm.variance.len(), channels)?;
    for (argument, found) in [("gamma", norm.gamma), ("beta", norm.beta)] {
        if let Some(found) = found {
            check_count(argument, found.len(), channels)?;
        }
    }
    for channel in 0..channels {
        let root = math::sqrt(f64::from(norm.variance[channel]) + f64::from(norm.epsilon));
        let factor = norm.gamma.map_or(1.0, |gamma| f64::from(gamma[channel])) / root;
        let base = norm.beta.map_or(0.0, |beta| f64::from(beta[channel]));
        scale[channel] = factor as f32;
        shift[channel] = (base - f64::from(norm.mean[channel]) * factor) as f32;
    }
    Ok(())
}

/// Normalises each sample in groups of channels: a sample is `positions` rows of `channels`, and
/// each group of `channels / groups` channels shares mean and variance over all positions. Then
/// multiplies by `scale` and adds `shift`, one number per channel each.
///
/// # Errors
/// [`Error::Length`] unless the slices fit, [`Error::Value`] if the groups do not divide the
/// channels.
pub fn group_norm(
    x: &[f32],
    (positions, channels, groups): (usize, usize, usize),
    (scale, shift): Parameters<'_>,
    epsilon: f32,
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_count("out", out.len(), x.len())?;
    if groups == 0 || !channels.is_multiple_of(groups) {
        return Err(Error::Value {
            argument: "groups",
            expected: "a number above 0 that divides the channels",
        });
    }
    for (argument, found) in [("scale", scale), ("shift", shift)] {
        if let Some(found) = found {
            check_count(argument, found.len(), channels)?;
        }
    }
    if x.is_empty() {
        return Ok(());
    }
    let sample = positions
        .checked_mul(channels)
        .ok_or(Error::Overflow { argument: "x" })?;
    check_rows("x", x.len(), sample)?;
    let width = channels / groups;
    let chunk = chunk_len(parallel, out.len(), sample, 4);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let samples = x[start..].chunks(sample);
        for (out, x) in out.chunks_mut(sample).zip(samples) {
            for group in 0..groups {
                let columns = group * width..(group + 1) * width;
                let rows = || x.chunks(channels).map(|row| &row[columns.clone()]);
                let count = (positions * width) as f64;
                let total = rows().map(|row| sum(row, |x| x)).sum::<f64>();
                let mean = (total / count) as f32;
                let squares = rows().map(|row| sum(row, |x| (x - mean) * (x - mean)));
                let variance = squares.sum::<f64>() / count;
                let factor = (1.0 / math::sqrt(variance + f64::from(epsilon))) as f32;
                for (out, x) in out.chunks_mut(channels).zip(x.chunks(channels)) {
                    for column in columns.clone() {
                        let value = (x[column] - mean) * factor;
                        let value = scale.map_or(value, |scale| value * scale[column]);
                        out[column] = shift.map_or(value, |shift| value + shift[column]);
                    }
                }
            }
        }
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::gemm::Activation;
    use crate::ops::elementwise::scale_shift::scale_shift;
    use crate::simd::body::forced::same_bits;
    use crate::testing::{Interleaved, numbers};

    /// The normalised value in double precision.
    fn exact(row: &[f32], x: f32, centred: bool, epsilon: f64) -> f64 {
        let count = row.len() as f64;
        let mean = if centred {
            row.iter().map(|&x| f64::from(x)).sum::<f64>() / count
        } else {
            0.0
        };
        let variance = row
            .iter()
            .map(|&x| (f64::from(x) - mean).powi(2))
            .sum::<f64>()
            / count;
        (f64::from(x) - mean) / (variance + epsilon).sqrt()
    }

    #[test]
    fn rows() {
        let sizes = [(3, 1), (3, 7), (3, 64), (3, 3000)];
        // Several passes at a time.
        let many = [(150, 64), (141, 65), (39, 300), (9, 1000), (5, 4096)];
        for (count, width) in sizes.into_iter().chain(many) {
            let x = numbers(count * width, 1);
            let parallel: &dyn Parallel = if count == 3 { &Interleaved } else { &Serial };
            let (scale, shift) = (numbers(width, 2), numbers(width, 3));
            for kind in [Kind::Layer, Kind::Rms] {
                let out = same_bits(|| {
                    let mut out = vec![f32::NAN; x.len()];
                    let factors = (Some(&*scale), Some(&*shift));
                    normalize_rows(kind, &x, width, factors, 1e-3, &mut out, parallel).unwrap();
                    out
                });
                for (i, &found) in out.iter().enumerate() {
                    let row = &x[i / width * width..][..width];
                    let value = exact(row, x[i], kind == Kind::Layer, f64::from(1e-3_f32));
                    let expected =
                        value * f64::from(scale[i % width]) + f64::from(shift[i % width]);
                    assert!(
                        (f64::from(found) - expected).abs() < 2e-6,
                        "{found} {expected}"
                    );
                }
            }
        }
        let none = (None, None);
        for width in [64, 1000] {
            let mut x = numbers(150 * width, 4);
            x[0] = -0.0;
            x[3 * width] = f32::NAN;
            let run = |x: &[f32]| {
                let mut out = vec![f32::NAN; x.len()];
                normalize_rows(Kind::Rms, x, width, none, 1e-3, &mut out, &Serial).unwrap();
                out
            };
            let out = same_bits(|| run(&x));
            let alone = same_bits(|| x.chunks(width).flat_map(run).collect());
            for (i, (out, alone)) in out.iter().zip(&alone).enumerate() {
                let missing = i / width == 3;
                assert!(missing || out.to_bits() == alone.to_bits(), "{i}: {out}");
                assert!(
                    out.is_nan() == missing && alone.is_nan() == missing,
                    "{i}: {out}"
                );
            }
            assert!(out[0].is_sign_negative());
        }
        let mut out = [0.0; 4];
        assert!(
            normalize_rows(Kind::Rms, &[0.0; 4], 3, none, 1.0, &mut out, &Interleaved).is_err()
        );
    }

    #[test]
    fn groups_and_batches() {
        let (positions, channels, groups) = (6, 8, 2);
        let x = numbers(2 * positions * channels, 5);
        let mut out = vec![f32::NAN; x.len()];
        let sizes = (positions, channels, groups);
        group_norm(&x, sizes, (None, None), 1e-3, &mut out, &Interleaved).unwrap();
        for (i, &found) in out.iter().enumerate() {
            let (sample, group) = (i / (positions * channels), i % channels / 4);
            let row: Vec<f32> = (0..positions)
                .flat_map(|p| (0..4).map(move |c| (p, c)))
                .map(|(p, c)| x[(sample * positions + p) * channels + group * 4 + c])
                .collect();
            let expected = exact(&row, x[i], true, f64::from(1e-3_f32));
            assert!((f64::from(found) - expected).abs() < 2e-6);
        }
        let parts: Vec<Vec<f32>> = (0..4).map(|seed| numbers(channels, seed)).collect();
        let variance: Vec<f32> = parts[1].iter().map(|x| x.abs()).collect();
        let norm = BatchNorm {
            mean: &parts[0],
            variance: &variance,
            gamma: Some(&parts[2]),
            beta: Some(&parts[3]),
            epsilon: 1e-3,
        };
        let (mut scale, mut shift) = (vec![0.0; channels], vec![0.0; channels]);
        fold_batch_norm(&norm, &mut scale, &mut shift).unwrap();
        let none = Activation::None;
        scale_shift(Some(&x), (&scale, &shift), &none, &mut out, &Interleaved).unwrap();
        for (i, &found) in out.iter().enumerate() {
            let c = i % channels;
            let root = (variance[c] + 1e-3).sqrt();
            let expected = (x[i] - parts[0][c]) / root * parts[2][c] + parts[3][c];
            assert!((found - expected).abs() <= 2e-5 * expected.abs().max(1.0));
        }
    }
}
