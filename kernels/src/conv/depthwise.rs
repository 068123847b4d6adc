//! Depthwise convolutions: every channel has filters of its own.
//!
//! With one filter per channel the lanes run over channels; with several the loops are scalar.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

mod backward;
#[cfg(test)]
mod tests;
mod tile;

use core::ops::Range;

use self::backward::{FilterBlock, InputLine};
use super::geometry::{Conv, Window, check_len};
use crate::base::error::{Error, Result};
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::base::worth::Work;
use crate::gemm::Activation;
use crate::simd::blocks::{Cut, for_each_block, for_each_chunk};
use crate::simd::{Body, Simd, dispatch};

/// Elements of the output that are computed before what comes last is applied to them: they stay in
/// the second cache.
const NEAR: usize = 1 << 15;
/// Lines of the output that are computed channel by channel: what they see of the input in some
/// channels stays in the first cache.
const MAX_LINES: usize = 8;
/// Lines of the output that a task computes, at least, unless all threads have fewer.
const LEAST_LINES: usize = 4;
/// Stops of a tile.
const STOPS: usize = 4;

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
        let parallel = Work::Depthwise(conv.flops()).threads(parallel);
        let chunk = line * lines_per_task(conv.batch * conv.y.output, parallel);
        for_each_chunk(parallel, output, chunk, |start, output| {
            let lines = match self.activation {
                Activation::Map(_) => (NEAR / line.max(1)).clamp(1, MAX_LINES),
                Activation::None | Activation::Clamp(..) => MAX_LINES,
            };
            for (i, output) in output.chunks_mut(lines * line).enumerate() {
                let body = Lines {
                    of: self,
                    input,
                    filter,
                    first: start / line + i * lines,
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
        let parallel = Work::DepthwiseGradient(conv.flops()).threads(parallel);
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
        let parallel = Work::DepthwiseGradient(conv.flops()).threads(parallel);
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
/// all, if that leaves all with the same work. Not fewer than [`LEAST_LINES`], though, of which
/// neighbours see the same lines of the input.
pub(crate) fn lines_per_task(lines: usize, parallel: &dyn Parallel) -> usize {
    let threads = parallel.threads().max(1);
    let share = lines.div_ceil(threads).max(1);
    if threads == 1 {
        return share;
    }
    (2..=4)
        .rev()
        .map(|rounds| lines.div_ceil(threads * rounds).max(1))
        .filter(|&each| each >= LEAST_LINES.min(share))
        .find(|each| lines.div_ceil(*each).div_ceil(threads) * each <= share + share / 16)
        .unwrap_or(share)
}

/// Some lines of the output.
struct Lines<'a, 'b> {
    of: &'b Depthwise<'a>,
    input: &'b [f32],
    filter: &'b [f32],
    /// The first of them.
    first: usize,
    output: &'b mut [f32],
}

impl Body for Lines<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let of = self.of;
        let conv = &of.conv;
        let line = conv.x.output * conv.out_channels;
        if conv.in_channels != conv.out_channels {
            let (first, output) = (self.first, core::mem::take(&mut self.output));
            for (i, output) in output.chunks_exact_mut(line).enumerate() {
                self.scalar(first + i, output);
            }
            return;
        }
        if self.constant_taps(s) {
            return;
        }
        let channels = conv.out_channels;
        let mut channel = 0;
        while channel < channels {
            let left = channels - channel;
            // Four vectors of four stops leave the registers of a small level no room.
            if const { S::REGISTERS >= 32 } && left >= 4 * S::LANES {
                self.channels::<S, 4, false>(s, channel);
                channel += 4 * S::LANES;
            } else if left >= 2 * S::LANES {
                self.channels::<S, 2, false>(s, channel);
                channel += 2 * S::LANES;
            } else if left >= S::LANES {
                self.channels::<S, 1, false>(s, channel);
                channel += S::LANES;
            } else {
                self.channels::<S, 1, true>(s, channel);
                channel = channels;
            }
        }
    }
}

/// What a line of the output sees.
struct See {
    /// Its number among the lines that are computed.
    index: usize,
    /// Vertical taps that fall on the input.
    taps: Range<usize>,
    /// The line of the input that the first of them sees.
    first: usize,
}

impl Lines<'_, '_> {
    /// What one of the lines sees.
    #[inline(always)]
    fn see(&self, index: usize) -> See {
        let y = &self.of.conv.y;
        let line = self.first + index;
        let (image, out_y) = (line / y.output, line % y.output);
        let (taps, first) = y.taps(out_y);
        See {
            index,
            taps,
            first: image * y.input + first,
        }
    }

    /// `NV` vectors of channels of all lines.
    #[inline(always)]
    fn channels<S: Simd, const NV: usize, const PARTIAL: bool>(&mut self, s: S, channel: usize) {
        let of = self.of;
        let conv = &of.conv;
        let inner = conv.x.inner();
        let line = conv.x.output * conv.out_channels;
        for index in 0..self.output.len() / line {
            let see = self.see(index);
            let mut stop = 0;
            while stop < conv.x.output {
                if inner.start <= stop && stop + STOPS <= inner.end {
                    self.tile::<S, NV, PARTIAL, false>(s, &see, channel, stop);
                } else {
                    self.tile::<S, NV, PARTIAL, true>(s, &see, channel, stop);
                }
                stop += STOPS;
            }
        }
    }

    /// [`STOPS`] stops of a line; all of them are there and all their horizontal taps fall on
    /// the input, unless `EDGE`.
    #[inline(always)]
    fn tile<S: Simd, const NV: usize, const PARTIAL: bool, const EDGE: bool>(
        &mut self,
        s: S,
        see: &See,
        channel: usize,
        stop: usize,
    ) {
        let of = self.of;
        let (channels, y, x) = (of.conv.out_channels, &of.conv.y, &of.conv.x);
        let width = if PARTIAL {
            channels - channel
        } else {
            NV * S::LANES
        };
        let mut sums = [[s.zero(); NV]; STOPS];
        if let Some(bias) = of.bias {
            for v in 0..NV {
                let bias = load::<S, PARTIAL>(s, &bias[channel..][..width], v);
                for sums in &mut sums {
                    sums[v] = bias;
                }
            }
        }
        // The input of tap 0 of each stop; what lies before the input wraps around.
        let mut first = [usize::MAX / 2; STOPS];
        for (px, first) in first.iter_mut().enumerate() {
            if !EDGE || stop + px < x.output {
                *first = ((stop + px) * x.stride).wrapping_sub(x.before);
            }
        }
        let step = x.stride * channels;
        for (i, tap_y) in see.taps.clone().enumerate() {
            let line = see.first + i * y.dilation;
            let from = &self.input[line * x.input * channels..];
            let from = &from[..x.input * channels];
            let weights = &self.filter[tap_y * x.size * channels..][..x.size * channels];
            for tap_x in 0..x.size {
                let weights = &weights[tap_x * channels + channel..][..width];
                let mut w = [s.zero(); NV];
                for v in 0..NV {
                    w[v] = load::<S, PARTIAL>(s, weights, v);
                }
                let offset = tap_x * x.dilation;
                if EDGE {
                    for px in 0..STOPS {
                        let in_x = first[px].wrapping_add(offset);
                        if in_x < x.input {
                            let from = &from[in_x * channels + channel..][..width];
                            for v in 0..NV {
                                let pixel = load::<S, PARTIAL>(s, from, v);
                                sums[px][v] = s.mul_add(pixel, w[v], sums[px][v]);
                            }
                        }
                    }
                } else {
                    let from = &from[first[0].wrapping_add(offset) * channels + channel..];
                    for px in 0..STOPS {
                        let from = &from[px * step..][..width];
                        for v in 0..NV {
                            let pixel = load::<S, PARTIAL>(s, from, v);
                            sums[px][v] = s.mul_add(pixel, w[v], sums[px][v]);
                        }
                    }
                }
            }
        }
        let clamp = of.activation.clamp();
        let first = see.index * x.output + stop;
        for px in 0..STOPS {
            if EDGE && stop + px >= x.output {
                return;
            }
            let to = &mut self.output[(first + px) * channels + channel..][..width];
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
    fn scalar(&self, line: usize, output: &mut [f32]) {
        let conv = &self.of.conv;
        let (y, x) = (&conv.y, &conv.x);
        let many = conv.out_channels / conv.in_channels;
        let (image, out_y) = (line / y.output, line % y.output);
        for (stop, output) in output.chunks_exact_mut(conv.out_channels).enumerate() {
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
