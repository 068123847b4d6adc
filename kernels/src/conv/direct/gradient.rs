//! The gradient of such a convolution by its filter.

use core::ops::Range;

use super::channels::{Channels, together};
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::conv::geometry::Conv;
use crate::gemm::pack::lanes;
use crate::simd::blocks::{Block, Cut, for_each_block};
use crate::simd::taps::{Every, add_stops};
use crate::simd::{Body, Simd, dispatch};

/// Elements of the output gradient's channels that are gone through for every tap: they stay in the
/// second cache.
const AT_ONCE: usize = 64 * 1024;

/// Computes the gradient of the filter from the input and the gradient of the output, all of the
/// lengths that the sizes say.
pub(in crate::conv) fn filter_gradient(
    level: Level,
    conv: &Conv,
    (input, output): (&[f32], &[f32]),
    filter: &mut [f32],
    parallel: &dyn Parallel,
) {
    let sizes = (conv.group_in(), conv.group_out());
    let unit = together(lanes(level), sizes, conv.groups) * sizes.1;
    let units = conv.out_channels.div_ceil(unit.max(1));
    let line = conv.x.size * conv.group_in();
    let cut = if parallel.threads() > 1 {
        Cut {
            rows: line,
            columns: units.div_ceil(parallel.threads() * 2) * unit,
            rest: 0,
        }
    } else {
        Cut {
            rows: conv.y.size * line,
            columns: units * unit,
            rest: 0,
        }
    };
    let (ld, size) = (conv.out_channels, (conv.y.size * line, conv.out_channels));
    for_each_block(parallel, filter, ld, size, cut, |block| {
        let body = Gradient {
            conv,
            input,
            output,
            block,
        };
        dispatch(level, body);
    });
}

/// A block of the gradient: whole lines of taps, and whole groups.
struct Gradient<'a> {
    conv: &'a Conv,
    input: &'a [f32],
    output: &'a [f32],
    block: Block<'a, f32>,
}

/// Stops at which a tap falls on the input.
#[derive(Clone, Copy)]
struct Met {
    first: usize,
    count: usize,
}

impl Body for Gradient<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let conv = self.conv;
        let lines = conv.batch * conv.y.output;
        let at_once = (AT_ONCE / (S::LANES * conv.x.output).max(1)).max(1);
        let mut from = 0;
        loop {
            let to = lines.min(from + at_once);
            self.lines(s, from..to);
            if to == lines {
                break;
            }
            from = to;
        }
    }
}

impl Gradient<'_> {
    /// Adds what these lines of the output contribute.
    #[inline(always)]
    fn lines<S: Simd>(&mut self, s: S, lines: Range<usize>) {
        let conv = self.conv;
        let sizes = (conv.group_in(), conv.group_out());
        let together = together(S::LANES, sizes, conv.groups);
        let end = self.block.column + self.block.columns;
        let mut column = self.block.column;
        while column < end {
            let group = column / sizes.1;
            if const { S::REGISTERS >= 32 } && together == 1 {
                let channels = Channels::single(s, sizes, group, column % sizes.1);
                self.channels::<S, false>(s, &lines, &channels);
                column += channels.lanes.count;
            } else {
                let count = together.min((end - column) / sizes.1);
                let channels = Channels::spread(s, sizes, group, count);
                self.channels::<S, true>(s, &lines, &channels);
                column += channels.lanes.count;
            }
        }
    }

    #[inline(always)]
    fn channels<S: Simd, const SPREAD: bool>(
        &mut self,
        s: S,
        lines: &Range<usize>,
        channels: &Channels<S>,
    ) {
        // Four channels of three taps leave the registers of a small level no room.
        let few = const { S::REGISTERS < 32 };
        // Without fused operations whole vectors are not worth code of their own.
        match (!S::FUSED || channels.is_partial(SPREAD), few) {
            (true, _) => self.taps::<S, 2, SPREAD, true>(s, lines, channels),
            (false, true) => self.taps::<S, 2, SPREAD, false>(s, lines, channels),
            (false, false) => self.taps::<S, 4, SPREAD, false>(s, lines, channels),
        }
    }

    /// All taps of the block, of some channels.
    #[inline(always)]
    fn taps<S: Simd, const CHANNELS: usize, const SPREAD: bool, const PARTIAL: bool>(
        &mut self,
        s: S,
        lines: &Range<usize>,
        channels: &Channels<S>,
    ) {
        let (conv, depth) = (self.conv, self.conv.group_in());
        let x = &conv.x;
        let line = x.size * depth;
        let (first, end) = (
            self.block.row / line,
            (self.block.row + self.block.rows) / line,
        );
        for tap_y in first..end {
            for channel in (0..depth).step_by(CHANNELS) {
                let mut done = [Met { first: 0, count: 0 }; 3];
                if (x.size, x.stride, x.dilation) == (3, 1, 1) {
                    // Columns that all three taps fall on.
                    let start = 2_usize.saturating_sub(x.before);
                    let end = x.input.min(x.output.saturating_sub(x.before));
                    let count = end.saturating_sub(start);
                    for (tap, done) in done.iter_mut().enumerate() {
                        if count > 0 {
                            *done = Met {
                                first: start + x.before - tap,
                                count,
                            };
                        }
                    }
                    self.sum::<S, 3, CHANNELS, SPREAD, PARTIAL>(
                        s,
                        lines,
                        lines.start > 0,
                        channels,
                        (tap_y, 0, channel),
                        done[2],
                    );
                }
                for tap in 0..x.size {
                    let stops = x.stops(tap);
                    let done = done.get(tap).filter(|met| met.count > 0);
                    let (before, after) = match done {
                        None => (stops.clone(), stops.end..stops.end),
                        Some(met) => (stops.start..met.first, met.first + met.count..stops.end),
                    };
                    let summed = (x.size, x.stride, x.dilation) == (3, 1, 1);
                    for (number, stops) in [before, after].into_iter().enumerate() {
                        let first_of_all = number == 0 && !summed;
                        if stops.is_empty() && !first_of_all {
                            continue;
                        }
                        let add = lines.start > 0 || !first_of_all;
                        let met = Met {
                            first: stops.start,
                            count: stops.len(),
                        };
                        self.sum::<S, 1, CHANNELS, SPREAD, PARTIAL>(
                            s,
                            lines,
                            add,
                            channels,
                            (tap_y, tap, channel),
                            met,
                        );
                    }
                }
            }
        }
    }

    /// Some taps of a line and some channels: the sums over the stops `met`, which are those of the
    /// last tap.
    #[inline(always)]
    fn sum<
        S: Simd,
        const TAPS: usize,
        const CHANNELS: usize,
        const SPREAD: bool,
        const PARTIAL: bool,
    >(
        &mut self,
        s: S,
        lines: &Range<usize>,
        add: bool,
        channels: &Channels<S>,
        (tap_y, tap_x, channel): (usize, usize, usize),
        met: Met,
    ) {
        let (conv, depth) = (self.conv, self.conv.group_in());
        let (y, x) = (&conv.y, &conv.x);
        let stops_y = y.stops(tap_y);
        let mut sums = [[s.zero(); CHANNELS]; TAPS];
        if met.count > 0 {
            let column = met.first * x.stride + (tap_x + TAPS - 1) * x.dilation - x.before;
            for line in lines.clone() {
                let (image, out_y) = (line / y.output, line % y.output);
                if !stops_y.contains(&out_y) {
                    continue;
                }
                let in_y = image * y.input + out_y * y.stride + tap_y * y.dilation - y.before;
                let width = x.input * conv.in_channels;
                let columns = Every {
                    data: &self.input[in_y * width..][..width],
                    first: column * conv.in_channels + channels.from,
                    step: x.stride * conv.in_channels,
                };
                let width = x.output * conv.out_channels;
                let stops = Every {
                    data: &self.output[line * width..][..width],
                    first: met.first * conv.out_channels + channels.to,
                    step: conv.out_channels,
                };
                let (lanes, of) = (&channels.lanes, (channel, depth));
                sums = add_stops::<S, TAPS, CHANNELS, SPREAD, PARTIAL>(
                    s, sums, met.count, columns, stops, lanes, of,
                );
            }
        }
        let place = channels.to - self.block.column;
        for (tap, sums) in sums.iter().enumerate() {
            for (i, &sum) in sums.iter().enumerate().take(depth - channel) {
                let row = ((tap_y * x.size + tap_x + tap) * depth + channel + i) - self.block.row;
                let to = &mut self.block.row(row)[place..][..channels.lanes.count];
                let sum = if add {
                    s.add(sum, s.load_up_to(to))
                } else {
                    sum
                };
                s.store_up_to(to, sum);
            }
        }
    }
}
