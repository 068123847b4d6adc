//! Depthwise convolutions: every channel has filters of its own.
//!
//! With one filter per channel the lanes run over channels; with several the loops are scalar.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use core::ops::Range;

use super::geometry::{Conv, Window, check_len};
use crate::blocks::{Block, Cut, for_each_block, for_each_chunk};
use crate::error::{Error, Result};
use crate::gemm::Activation;
use crate::level::{Level, level};
use crate::parallel::{Parallel, Serial};
use crate::simd::{Body, Simd, dispatch};

/// Multiplications and additions below which another thread costs more than it saves.
const PARALLEL_FLOPS: usize = 1_000_000;

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

/// Lines of an image that one task computes.
pub(crate) fn lines_per_task(lines: usize, parallel: &dyn Parallel) -> usize {
    let tasks = if parallel.threads() > 1 {
        parallel.threads() * 4
    } else {
        1
    };
    lines.div_ceil(tasks).max(1)
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

/// Calls `visit(tap, stop)` for the taps of an axis that fall on input `at`, and their stops.
#[inline(always)]
fn each_stop(window: &Window, at: usize, mut visit: impl FnMut(usize, usize)) {
    for tap in 0..window.size {
        let Some(distance) = (at + window.before).checked_sub(tap * window.dilation) else {
            return;
        };
        if distance.is_multiple_of(window.stride) && distance / window.stride < window.output {
            visit(tap, distance / window.stride);
        }
    }
}

/// One line of the gradient of the input.
struct InputLine<'a> {
    conv: &'a Conv,
    output: &'a [f32],
    filter: &'a [f32],
    line: usize,
    input: &'a mut [f32],
}

impl Body for InputLine<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let conv = self.conv;
        let (y, x) = (&conv.y, &conv.x);
        let (channels, outputs) = (conv.in_channels, conv.out_channels);
        let many = outputs / channels;
        let (image, in_y) = (self.line / y.input, self.line % y.input);
        for (in_x, input) in self.input.chunks_exact_mut(channels).enumerate() {
            input.fill(0.0);
            each_stop(y, in_y, |tap_y, out_y| {
                each_stop(x, in_x, |tap_x, out_x| {
                    let pixel = (image * y.output + out_y) * x.output + out_x;
                    let from = &self.output[pixel * outputs..][..outputs];
                    let tap = tap_y * x.size + tap_x;
                    let weights = &self.filter[tap * outputs..][..outputs];
                    if many == 1 {
                        let mut j = 0;
                        while j < channels {
                            let sum = s.mul_add(
                                s.load_up_to(&from[j..]),
                                s.load_up_to(&weights[j..]),
                                s.load_up_to(&input[j..]),
                            );
                            s.store_up_to(&mut input[j..], sum);
                            j += S::LANES;
                        }
                    } else {
                        let pairs = from.chunks_exact(many).zip(weights.chunks_exact(many));
                        for (to, (from, weights)) in input.iter_mut().zip(pairs) {
                            *to += from.iter().zip(weights).map(|(a, b)| a * b).sum::<f32>();
                        }
                    }
                });
            });
        }
    }
}

/// A block of the gradient of the filter: its rows are taps.
struct FilterBlock<'a> {
    conv: &'a Conv,
    input: &'a [f32],
    output: &'a [f32],
    block: Block<'a, f32>,
}

impl Body for FilterBlock<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let conv = self.conv;
        let (y, x) = (&conv.y, &conv.x);
        let many = conv.out_channels / conv.in_channels;
        let (column, columns) = (self.block.column, self.block.columns);
        for row in 0..self.block.rows {
            let tap = self.block.row + row;
            let (stops_y, stops_x) = (y.stops(tap / x.size), x.stops(tap % x.size));
            let to = self.block.row(row);
            to.fill(0.0);
            // A line is summed on its own, so that long sums stay exact.
            let lines = (0..conv.batch).flat_map(|i| stops_y.clone().map(move |y| (i, y)));
            for (image, out_y) in lines {
                let in_y = out_y * y.stride + tap / x.size * y.dilation - y.before;
                let from = (image * y.input + in_y) * x.input;
                let at = (image * y.output + out_y) * x.output;
                let pixel =
                    |stop: usize| from + stop * x.stride + tap % x.size * x.dilation - x.before;
                let mut j = 0;
                while j < columns {
                    let width = S::LANES.min(columns - j);
                    let mut sum = s.zero();
                    for stop in stops_x.clone() {
                        let b = &self.output[(at + stop) * conv.out_channels + column + j..];
                        let a = &self.input[pixel(stop) * conv.in_channels..];
                        let a = if many == 1 {
                            s.load_up_to(&a[column + j..][..width])
                        } else {
                            let mut lanes = [0.0; 16];
                            for (i, lane) in lanes.iter_mut().enumerate().take(width) {
                                *lane = a[(column + j + i) / many];
                            }
                            s.load(&lanes)
                        };
                        sum = s.mul_add(a, s.load_up_to(&b[..width]), sum);
                    }
                    let to = &mut to[j..];
                    s.store_up_to(to, s.add(sum, s.load_up_to(to)));
                    j += S::LANES;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conv::tests::{conv, each_product};
    use crate::simd::available;
    use crate::testing::{Interleaved, close, numbers};

    fn compare(found: &[f32], exact: &[(f64, f64)]) -> std::result::Result<(), TestCaseError> {
        for (i, (&found, exact)) in found.iter().zip(exact).enumerate() {
            let near = close(found, exact.0, exact.1 * 1e-6 + 1e-30);
            prop_assert!(near, "{}: {} instead of {}", i, found, exact.0);
        }
        Ok(())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(150))]
        #[test]
        fn all_three_match_f64(
            conv in conv(),
            many in prop_oneof![3 => Just(1_usize), 1 => 2..4_usize],
            seed in any::<u64>(),
        ) {
            let channels = conv.in_channels;
            let conv = Conv { groups: channels, out_channels: channels * many, ..conv };
            let input = numbers(conv.input_len(), seed);
            let filter = numbers(conv.filter_len(), seed + 1);
            let output = numbers(conv.output_len(), seed + 2);
            let mut forward = vec![(0.0, 0.0); output.len()];
            let mut backward_input = vec![(0.0, 0.0); input.len()];
            let mut backward_filter = vec![(0.0, 0.0); filter.len()];
            let add = |to: &mut (f64, f64), a: f32, b: f32| {
                let product = f64::from(a) * f64::from(b);
                *to = (to.0 + product, to.1 + product.abs());
            };
            // With one channel per group the filter's layout is the same as in a grouped one.
            each_product(&conv, |i, f, o| {
                add(&mut forward[o], input[i], filter[f]);
                add(&mut backward_input[i], output[o], filter[f]);
                add(&mut backward_filter[f], output[o], input[i]);
            });
            for level in available() {
                let depthwise = Depthwise { level, ..Depthwise::new(conv) };
                let mut found = vec![f32::NAN; output.len()];
                depthwise.run(&input, &filter, &mut found, &Interleaved).unwrap();
                compare(&found, &forward)?;
                let mut found = vec![f32::NAN; input.len()];
                depthwise.backward_input(&output, &filter, &mut found, &Interleaved).unwrap();
                compare(&found, &backward_input)?;
                let mut found = vec![f32::NAN; filter.len()];
                depthwise.backward_filter(&input, &output, &mut found, &Interleaved).unwrap();
                compare(&found, &backward_filter)?;
            }
        }
    }

    #[test]
    fn bias_and_activation() {
        let w = Window::new(7, 3, 1, 1, crate::conv::Padding::Same).unwrap();
        for many in [1, 2] {
            let conv = Conv {
                batch: 1,
                y: w,
                x: w,
                in_channels: 21,
                out_channels: 21 * many,
                groups: 21,
            };
            let (input, filter) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
            let bias = numbers(conv.out_channels, 3);
            let plain = Depthwise::new(conv);
            let full = Depthwise {
                bias: Some(&bias),
                activation: Activation::RELU6,
                ..plain
            };
            let (mut a, mut b) = (vec![0.0; conv.output_len()], vec![0.0; conv.output_len()]);
            plain.run(&input, &filter, &mut a, &Serial).unwrap();
            full.run(&input, &filter, &mut b, &Serial).unwrap();
            for (i, (a, b)) in a.iter().zip(&b).enumerate() {
                let expected = (a + bias[i % bias.len()]).clamp(0.0, 6.0);
                assert!((expected - b).abs() < 1e-5);
            }
        }
        assert!(
            Depthwise::new(Conv {
                groups: 1,
                ..Depthwise::new(Conv {
                    batch: 1,
                    y: w,
                    x: w,
                    in_channels: 2,
                    out_channels: 2,
                    groups: 2,
                })
                .conv
            })
            .run(&[0.0; 98], &[0.0; 36], &mut [0.0; 98], &Serial)
            .is_err()
        );
    }
}
