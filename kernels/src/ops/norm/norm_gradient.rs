//! Gradients of layer, group and RMS normalisation.
//!
//! One description serves all: a sample is `positions` rows of `channels`, and each group of
//! channels is normalised over all positions. Layer and RMS normalisation of rows have one position
//! and one group. Sums run in `f64`; results are within 1e-6 of exact arithmetic, relative to the
//! largest term.

use crate::base::adapt::check_count;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::math;
use crate::ops::norm::layer_norm::{Kind, sum};
use crate::simd::body::{Body, dispatch};

/// Channels whose sums are kept at a time.
const CHANNELS: usize = 32;

/// A normalisation whose gradients are wanted.
#[derive(Clone, Copy, Debug)]
pub struct NormGradient<'a> {
    /// The statistics.
    pub kind: Kind,
    /// Rows of a sample.
    pub positions: usize,
    /// Elements of a row.
    pub channels: usize,
    /// Groups of channels.
    pub groups: usize,
    /// A factor per channel; 1 if missing.
    pub scale: Option<&'a [f32]>,
    /// What is added to the variance or mean square.
    pub epsilon: f32,
}

impl<'a> NormGradient<'a> {
    /// Of the normalisation of rows of `width` elements.
    #[must_use]
    pub fn rows(kind: Kind, width: usize, scale: Option<&'a [f32]>, epsilon: f32) -> Self {
        Self {
            kind,
            positions: 1,
            channels: width,
            groups: 1,
            scale,
            epsilon,
        }
    }

    /// Elements of scratch memory that [`NormGradient::run`] needs for an input of `len` elements:
    /// mean and factor of every group.
    ///
    /// # Errors
    /// [`Error::Length`] unless `len` is a number of whole samples, [`Error::Value`] if the groups
    /// do not divide the channels, [`Error::Overflow`].
    pub fn scratch_len(&self, len: usize) -> Result<usize> {
        if self.groups == 0 || !self.channels.is_multiple_of(self.groups) {
            return Err(Error::Value {
                argument: "groups",
                expected: "a number above 0 that divides the channels",
            });
        }
        if len == 0 {
            return Ok(0);
        }
        let sample = self.positions.checked_mul(self.channels);
        let sample = sample.ok_or(Error::Overflow { argument: "x" })?;
        if sample == 0 || !len.is_multiple_of(sample) {
            return Err(Error::Length {
                argument: "x",
                found: len,
                expected: sample,
            });
        }
        Ok(len / sample * self.groups * 2)
    }

    /// Computes the gradient by `x` into `out`, and those by scale and shift into the slices of
    /// one number per channel that are given, from the input and the gradient of the result.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice does not fit; as [`NormGradient::scratch_len`].
    pub fn run(
        &self,
        (x, gradient): (&[f32], &[f32]),
        out: &mut [f32],
        (scale_out, shift_out): (Option<&mut [f32]>, Option<&mut [f32]>),
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        check_count("gradient", gradient.len(), x.len())?;
        check_count("out", out.len(), x.len())?;
        if let Some(scale) = self.scale {
            check_count("scale", scale.len(), self.channels)?;
        }
        let needed = self.scratch_len(x.len())?;
        let found = scratch.len();
        let statistics = scratch.get_mut(..needed).ok_or(Error::Length {
            argument: "scratch",
            found,
            expected: needed,
        })?;
        // What is wanted of the parameters, and whether the normalised value is a factor of it.
        let mut wanted = [(scale_out, true), (shift_out, false)];
        for (out, _) in wanted
            .iter()
            .filter_map(|(out, f)| Some((out.as_ref()?, f)))
        {
            check_count("parameters", out.len(), self.channels)?;
        }
        if x.is_empty() {
            for (out, _) in wanted
                .iter_mut()
                .filter_map(|(o, f)| Some((o.as_mut()?, f)))
            {
                out.fill(0.0);
            }
            return Ok(());
        }
        let sample = self.positions * self.channels;
        let each = 2 * self.groups;
        let samples = x.len() / sample;
        let chunk = each * chunk_len(parallel, samples, 1, 2 * sample);
        for_each_chunk(parallel, statistics, chunk, &|start, statistics| {
            let x = &x[start / each * sample..];
            dispatch(Statistics {
                of: self,
                x,
                statistics,
            });
        });
        let statistics = &*statistics;
        let chunk = chunk_len(parallel, out.len(), sample, 8);
        for_each_chunk(parallel, out, chunk, &|start, out| {
            let part = start..start + out.len();
            dispatch(Inputs {
                of: self,
                x: &x[part.clone()],
                gradient: &gradient[part],
                statistics: &statistics[start / sample * each..],
                out,
            });
        });
        for (out, normalised) in wanted {
            let Some(out) = out else { continue };
            let cost = 2 * x.len() / self.channels;
            let chunk = chunk_len(parallel, out.len(), CHANNELS, cost);
            for_each_chunk(parallel, out, chunk, &|first, out| {
                dispatch(Parameters {
                    of: self,
                    x,
                    gradient,
                    statistics,
                    first,
                    normalised,
                    out,
                });
            });
        }
        Ok(())
    }

    fn width(&self) -> usize {
        self.channels / self.groups
    }
}

/// Mean and factor of the groups of some samples.
struct Statistics<'a> {
    of: &'a NormGradient<'a>,
    x: &'a [f32],
    statistics: &'a mut [f32],
}

impl Body for Statistics<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let NormGradient {
            kind,
            positions,
            channels,
            groups,
            epsilon,
            ..
        } = *self.of;
        let width = self.of.width();
        let count = (positions * width) as f64;
        let samples = self.x.chunks(positions * channels);
        for (statistics, x) in self.statistics.chunks_exact_mut(2 * groups).zip(samples) {
            for (group, pair) in statistics.chunks_exact_mut(2).enumerate() {
                let total = |mean: f32, power: bool| {
                    let mut total = 0.0_f64;
                    for row in x.chunks_exact(channels) {
                        let row = &row[group * width..][..width];
                        total += sum(row, |x| {
                            let x = x - mean;
                            if power { x * x } else { x }
                        });
                    }
                    total / count
                };
                let mean = match kind {
                    Kind::Layer => total(0.0, false) as f32,
                    Kind::Rms => 0.0,
                };
                let square = total(mean, true) + f64::from(epsilon);
                pair.copy_from_slice(&[mean, (1.0 / math::sqrt(square)) as f32]);
            }
        }
    }
}

/// The gradient by the input of some samples.
struct Inputs<'a> {
    of: &'a NormGradient<'a>,
    x: &'a [f32],
    gradient: &'a [f32],
    statistics: &'a [f32],
    out: &'a mut [f32],
}

impl Body for Inputs<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let NormGradient {
            kind,
            positions,
            channels,
            groups,
            scale,
            ..
        } = *self.of;
        let width = self.of.width();
        let count = (positions * width) as f64;
        let sample = positions * channels;
        let parts = self
            .x
            .chunks_exact(sample)
            .zip(self.gradient.chunks_exact(sample));
        let parts = parts.zip(self.out.chunks_exact_mut(sample));
        for (((x, gradient), out), statistics) in
            parts.zip(self.statistics.chunks_exact(2 * groups))
        {
            for (group, pair) in statistics.chunks_exact(2).enumerate() {
                let (mean, factor) = (pair[0], pair[1]);
                let columns = group * width..(group + 1) * width;
                // The gradient of the normalised value goes into the output first.
                let (mut plain, mut along) = (0.0_f64, 0.0_f64);
                for (row, out) in out.chunks_exact_mut(channels).enumerate() {
                    let at = row * channels + columns.start;
                    let (x, gradient) = (&x[at..at + width], &gradient[at..at + width]);
                    let out = &mut out[columns.clone()];
                    out.copy_from_slice(gradient);
                    if let Some(scale) = scale {
                        for (out, &scale) in out.iter_mut().zip(&scale[columns.clone()]) {
                            *out *= scale;
                        }
                    }
                    plain += sum(out, |g| g);
                    along += sum_of_products(out, x, mean);
                }
                let plain = match kind {
                    Kind::Layer => (plain / count) as f32,
                    Kind::Rms => 0.0,
                };
                let square = f64::from(factor) * f64::from(factor);
                let along = (along * square / count) as f32;
                for (row, out) in out.chunks_exact_mut(channels).enumerate() {
                    let x = &x[row * channels..][columns.clone()];
                    for (out, &x) in out[columns.clone()].iter_mut().zip(x) {
                        *out = factor * ((*out - plain) - (x - mean) * along);
                    }
                }
            }
        }
    }
}

/// `sum(gradient * (x - mean))`
#[inline(always)]
fn sum_of_products(gradient: &[f32], x: &[f32], mean: f32) -> f64 {
    let mut total = 0.0_f64;
    for (gradient, x) in gradient.chunks(CHANNELS * 64).zip(x.chunks(CHANNELS * 64)) {
        let mut lanes = [0.0_f32; CHANNELS];
        let (all, rest) = gradient.as_chunks::<CHANNELS>();
        let (all_x, rest_x) = x.as_chunks::<CHANNELS>();
        for (gradient, x) in all.iter().zip(all_x) {
            for ((lane, &gradient), &x) in lanes.iter_mut().zip(gradient).zip(x) {
                *lane += gradient * (x - mean);
            }
        }
        for &lane in &lanes {
            total += f64::from(lane);
        }
        for (&gradient, &x) in rest.iter().zip(rest_x) {
            total += f64::from(gradient * (x - mean));
        }
    }
    total
}

/// The gradients by scale or shift of some channels.
struct Parameters<'a> {
    of: &'a NormGradient<'a>,
    x: &'a [f32],
    gradient: &'a [f32],
    statistics: &'a [f32],
    first: usize,
    /// Whether the normalised value is a factor: the scale.
    normalised: bool,
    out: &'a mut [f32],
}

impl Body for Parameters<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let NormGradient {
            positions,
            channels,
            groups,
            ..
        } = *self.of;
        let width = self.of.width();
        for (block, out) in self.out.chunks_mut(CHANNELS).enumerate() {
            let first = self.first + block * CHANNELS;
            let mut sums = [0.0_f64; CHANNELS];
            let rows = self.x.chunks_exact(channels);
            for (row, (x, gradient)) in rows.zip(self.gradient.chunks_exact(channels)).enumerate() {
                let columns = first..first + out.len();
                let (x, gradient) = (&x[columns.clone()], &gradient[columns]);
                if !self.normalised {
                    for (sum, &gradient) in sums.iter_mut().zip(gradient) {
                        *sum += f64::from(gradient);
                    }
                    continue;
                }
                let statistics = &self.statistics[row / positions * 2 * groups..][..2 * groups];
                if groups == 1 {
                    let (mean, factor) = (statistics[0], statistics[1]);
                    for ((sum, &x), &gradient) in sums.iter_mut().zip(x).zip(gradient) {
                        *sum += f64::from(gradient * ((x - mean) * factor));
                    }
                } else {
                    for (i, (&x, &gradient)) in x.iter().zip(gradient).enumerate() {
                        let pair = &statistics[(first + i) / width * 2..];
                        sums[i] += f64::from(gradient * ((x - pair[0]) * pair[1]));
                    }
                }
            }
            for (out, sum) in out.iter_mut().zip(sums) {
                *out = sum as f32;
            }
        }
    }
}

#[cfg(test)]
mod tests;
