//! One task's share of the gradients of a depthwise convolution.

use crate::conv::geometry::{Conv, Window};
use crate::simd::blocks::Block;
use crate::simd::{Body, Simd};

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
pub(super) struct InputLine<'a> {
    pub conv: &'a Conv,
    pub output: &'a [f32],
    pub filter: &'a [f32],
    pub line: usize,
    pub input: &'a mut [f32],
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
pub(super) struct FilterBlock<'a> {
    pub conv: &'a Conv,
    pub input: &'a [f32],
    pub output: &'a [f32],
    pub block: Block<'a, f32>,
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
