//! Depthwise convolutions: every channel has filters of its own.
//!
//! With one filter per channel the lanes run over channels; with several the loops are scalar.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

mod backward;
#[cfg(test)]
mod tests;

use core::ops::Range;

use self::backward::{FilterBlock, InputLine};
use super::geometry::{Conv, Window, check_len};
use crate::blocks::{Cut, for_each_block, for_each_chunk};
use crate::error::{Error, Result};
use crate::gemm::Activation;
use crate::level::{Level, level};
use crate::parallel::{Parallel, Serial};
use crate::simd::{Body, Simd, dispatch};

/// Multiplications and additions below which another thread costs more than it saves.
const PARALLEL_FLOPS: usize = 400_000;

/// A depthwise convolution. In `conv`, `groups` is the number of input channels; the filter is
/// `[height, width, in_channels, out_channels / in_channels]`, and output channel `o` sees input
/// channel `o / (out_channels / in_channels)`.
#[derive(Clone, Copy, Debug)]
pub struct Depthwise<'a> {
    /// Sizes.
    pub conv: Conv,
    /// One element per output channel, for the forward direction.
    pub bias: Option<&'a [f32]>,
    /// Applied last, in the forward direction.
    pub activation: Activation,
    /// Instruction set.
    pub level: Level,
}

impl<'a> Depthwise<'a> {
    /// A convolution without bias and activation.
    #[must_use]
    pub fn new(conv: Conv) -> Self {
        Self {
            conv,
            bias: None,
            activation: Activation::None,
            level: level(),
        }
    }

    fn check(&self, input: usize, filter: usize, output: usize) -> Result<()> {
        let conv = &self.conv;
        conv.check()?;
        if conv.groups != conv.in_channels.max(1) {
            return Err(Error::Value {
                argument: "groups",
                expected: "as many groups as input channels",
            });
        }
        check_len("input", input, conv.input_len())?;
        check_len("filter", filter, conv.filter_len())?;
        check_len("output", output, conv.output_len())
    }

    fn threads<'p>(&self, parallel: &'p dyn Parallel) -> &'p dyn Parallel {
        if self.conv.flops() < PARALLEL_FLOPS {
            &Serial
        } else {
            parallel
        }
    }

    /// Computes the output.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the sizes say, [`Error::Value`] and
    /// [`Error::Overflow`] for sizes that do not fit together.
    pub fn run(
        &self,
        input: &[f32],
        filter: &[f32],
        output: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        self.check(input.len(), filter.len(), output.len())?;
        let conv = &self.conv;
        if let Some(bias) = self.bias {
            check_len("bias", bias.len(), conv.out_channels)?;
        }
        let line = conv.x.output * conv.out_channels;
        let parallel = self.threads(parallel);
        let chunk = line * lines_per_task(conv.batch * conv.y.output, parallel);
        for_each_chunk(parallel, output, chunk, |start, output| {
            for (i, output) in output.chunks_exact_mut(line).enumerate() {
                let body = Line {
                    of: self,
                    input,
                    filter,
                    line: start / line + i,
                    output,
                };
                dispatch(self.level, body);
                if let Activation::Map(function) = self.activation {
                    function(output);
                }
            }
        });
        Ok(())
    }

    /// Computes the gradient of the input from that of the output.
    ///
    /// # Errors
    /// As [`Depthwise::run`].
    pub fn backward_input(
        &self,
        output: &[f32],
        filter: &[f32],
        input: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        self.check(input.len(), filter.len(), output.len())?;
        let conv = &self.conv;
        let line = conv.x.input * conv.in_channels;
        let parallel = self.threads(parallel);
        let chunk = line * lines_per_task(conv.batch * conv.y.input, parallel);
        for_each_chunk(parallel, input, chunk, |start, input| {
            for (i, input) in input.chunks_exact_mut(line).enumerate() {
                let body = InputLine {
                    conv,
                    output,
                    filter,
                    line: start / line + i,
                    input,
                };
                dispatch(self.level, body);
            }
        });
        Ok(())
    }

    /// Computes the gradient of the filter from the input and the gradient of the output.
    ///
    /// # Errors
    /// As [`Depthwise::run`].
    pub fn backward_filter(
        &self,
        input: &[f32],
        output: &[f32],
        filter: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        self.check(input.len(), filter.len(), output.len())?;
        let conv = &self.conv;
        let (taps, columns) = (conv.y.size * conv.x.size, conv.out_channels);
        let cut = Cut {
            rows: 1,
            columns: 64,
            rest: 0,
        };
        let parallel = self.threads(parallel);
        for_each_block(parallel, filter, columns, (taps, columns), cut, |block| {
            let body = FilterBlock {
                conv,
                input,
                output,
                block,
            };
            dispatch(self.level, body);
        });
        Ok(())
    }
}

/// Lines of an image that one task computes: so few that a thread that is held up does not hold up
/// all, if that leaves all with the same work.
pub(crate) fn lines_per_task(lines: usize, parallel: &dyn Parallel) -> usize {
    let threads = parallel.threads().max(1);
    let share = lines.div_ceil(threads).max(1);
    if threads == 1 {
        return share;
    }
    (2..=4)
        .rev()
        .map(|rounds| lines.div_ceil(threads * rounds).max(1))
        .find(|each| lines.div_ceil(*each).div_ceil(threads) * each <= share + share / 16)
        .unwrap_or(share)
}

/// One line of the output.
struct Line<'a, 'b> {
    of: &'b Depthwise<'a>,
    input: &'b [f32],
    filter: &'b [f32],
    line: usize,
    output: &'b mut [f32],
}

impl Body for Line<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let conv = &self.of.conv;
        if conv.in_channels != conv.out_channels {
            return self.scalar();
        }
        let channels = conv.out_channels;
        let inner = conv.x.inner();
        let mut channel = 0;
        while channel < channels {
            let left = channels - channel;
            if left >= 2 * S::LANES {
                self.columns::<S, 2, false>(s, channel, &inner);
                channel += 2 * S::LANES;
            } else if left >= S::LANES {
                self.columns::<S, 1, false>(s, channel, &inner);
                channel += S::LANES;
            } else {
                self.columns::<S, 1, true>(s, channel, &inner);
                channel = channels;
            }
        }
    }
}

impl Line<'_, '_> {
    #[inline(always)]
    fn columns<S: Simd, const NV: usize, const PARTIAL: bool>(
        &mut self,
        s: S,
        channel: usize,
        inner: &Range<usize>,
    ) {
        let x = &self.of.conv.x;
        let mut stop = 0;
        while stop < x.output {
            if inner.contains(&stop) {
                if inner.end - stop >= 4 {
                    self.tile::<S, 4, NV, PARTIAL>(s, channel, stop, 0..x.size);
                    stop += 4;
                    continue;
                }
                self.tile::<S, 1, NV, PARTIAL>(s, channel, stop, 0..x.size);
            } else {
                self.tile::<S, 1, NV, PARTIAL>(s, channel, stop, x.taps(stop).0);
            }
            stop += 1;
        }
    }

    /// `PX` stops that all see the horizontal taps `taps`.
    #[inline(always)]
    fn tile<S: Simd, const PX: usize, const NV: usize, const PARTIAL: bool>(
        &mut self,
        s: S,
        channel: usize,
        stop: usize,
        taps: Range<usize>,
    ) {
        let conv = &self.of.conv;
        let (channels, y, x) = (conv.out_channels, &conv.y, &conv.x);
        let width = if PARTIAL {
            channels - channel
        } else {
            NV * S::LANES
        };
        let (image, out_y) = (self.line / y.output, self.line % y.output);
        let (taps_y, first_y) = y.taps(out_y);
        let mut sums = [[s.zero(); NV]; PX];
        if let Some(bias) = self.of.bias {
            for v in 0..NV {
                let bias = load::<S, PARTIAL>(s, &bias[channel..][..width], v);
                for sums in &mut sums {
                    sums[v] = bias;
                }
            }
        }
        let step = x.stride * channels;
        for (i, tap_y) in taps_y.enumerate() {
            let in_y = first_y + i * y.dilation;
            let line = (image * y.input + in_y) * x.input;
            for tap_x in taps.clone() {
                let in_x = stop * x.stride + tap_x * x.dilation - x.before;
                let weights = (tap_y * x.size + tap_x) * channels + channel;
                let weights = &self.filter[weights..][..width];
                let from = &self.input[(line + in_x) * channels + channel..];
                let from = &from[..(PX - 1) * step + width];
                let mut w = [s.zero(); NV];
                for v in 0..NV {
                    w[v] = load::<S, PARTIAL>(s, weights, v);
                }
                for px in 0..PX {
                    let from = &from[px * step..][..width];
                    for v in 0..NV {
                        let pixel = load::<S, PARTIAL>(s, from, v);
                        sums[px][v] = s.mul_add(pixel, w[v], sums[px][v]);
                    }
                }
            }
        }
        let clamp = self.of.activation.clamp();
        for px in 0..PX {
            let to = &mut self.output[(stop + px) * channels + channel..][..width];
            for v in 0..NV {
                let mut sum = sums[px][v];
                if let Some((low, high)) = clamp {
                    sum = s.min(s.splat(high), s.max(s.splat(low), sum));
                }
                if PARTIAL {
                    s.store_partial(to, sum);
                } else {
                    s.store(&mut to[v * S::LANES..], sum);
                }
            }
        }
    }

    /// Several filters per channel.
    #[inline(always)]
    fn scalar(&mut self) {
        let conv = &self.of.conv;
        let (y, x) = (&conv.y, &conv.x);
        let many = conv.out_channels / conv.in_channels;
        let (image, out_y) = (self.line / y.output, self.line % y.output);
        for (stop, output) in self.output.chunks_exact_mut(conv.out_channels).enumerate() {
            match self.of.bias {
                Some(bias) => output.copy_from_slice(bias),
                None => output.fill(0.0),
            }
            each_tap(y, x, (out_y, stop), |tap, in_y, in_x| {
                let pixel = (image * y.input + in_y) * x.input + in_x;
                let from = &self.input[pixel * conv.in_channels..][..conv.in_channels];
                let weights = &self.filter[tap * conv.out_channels..][..conv.out_channels];
                let groups = output
                    .chunks_exact_mut(many)
                    .zip(weights.chunks_exact(many));
                for ((output, weights), &x) in groups.zip(from) {
                    for (output, &w) in output.iter_mut().zip(weights) {
                        *output += x * w;
                    }
                }
            });
            if let Some((low, high)) = self.of.activation.clamp() {
                for x in output {
                    *x = if *x < low { low } else { *x };
                    *x = if *x > high { high } else { *x };
                }
            }
        }
    }
}

#[inline(always)]
fn load<S: Simd, const PARTIAL: bool>(s: S, from: &[f32], v: usize) -> S::F {
    if PARTIAL {
        s.load_partial(from)
    } else {
        s.load(&from[v * S::LANES..])
    }
}

/// Calls `visit(tap, y, x)` for the taps that fall on the input at a stop.
#[inline(always)]
pub(crate) fn each_tap(
    y: &Window,
    x: &Window,
    (out_y, out_x): (usize, usize),
    mut visit: impl FnMut(usize, usize, usize),
) {
    let (taps_y, first_y) = y.taps(out_y);
    let (taps_x, first_x) = x.taps(out_x);
    for (i, tap_y) in taps_y.enumerate() {
        for (j, tap_x) in taps_x.clone().enumerate() {
            visit(
                tap_y * x.size + tap_x,
                first_y + i * y.dilation,
                first_x + j * x.dilation,
            );
        }
    }
}
