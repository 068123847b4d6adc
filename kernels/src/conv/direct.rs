//! Convolutions with few channels in a group: each lane is a channel of the output, and a vector
//! spans several groups. The sums of some neighbours stay in registers while the taps and the
//! channels of a group are gone through.

mod channels;
mod gradient;

use self::channels::{Channels, together};
pub(super) use gradient::filter_gradient;

use super::backward_input;
use super::depthwise::lines_per_task;
use super::filter::{Direction, size};
use super::forward;
use super::geometry::{Conv, Window};
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::gemm::Activation;
use crate::gemm::pack::lanes;
use crate::gemm::source::Axis;
use crate::simd::blocks::for_each_chunk;
use crate::simd::taps::{Columns, Weights, add_line};
use crate::simd::{Body, Simd, dispatch};

/// Lines of the result that are computed channel by channel: what they see of the image in some
/// channels stays in the first cache.
const MAX_LINES: usize = 8;
/// Stops of a tile: as many sums as a small level's registers hold beside what they see.
const STOPS: usize = 8;
/// Columns that three taps see from the stops of a tile.
const SEEN: usize = STOPS + 2;
/// Channels of a group on either side from which on one that is alone is computed here.
const LEAST: usize = 7;

/// Whether a convolution or a transposed one is computed here. It does not depend on the number of
/// images.
pub(super) fn fits(level: Level, conv: &Conv) -> bool {
    #[cfg(not(without = "groups"))]
    if spreads(level, conv) {
        return true;
    }
    cfg!(target_arch = "x86_64") && level == Level::Avx512 && slides(conv, 2 * lanes(level))
}

/// Whether the gradient of the filter is computed here: without permutations and masks of its own a
/// level takes longer for what does not slide or does not fill vectors.
pub(super) fn fits_gradient(level: Level, conv: &Conv) -> bool {
    let lanes = lanes(level);
    let sliding = conv.x.dilation == 1 && (conv.x.size, conv.x.stride) == (3, 1);
    match level {
        Level::Portable | Level::Simd128 => sliding && spreads(level, conv),
        Level::Neon | Level::Avx2 => spreads(level, conv),
        Level::Avx512 => {
            let fills = conv.group_out().is_multiple_of(lanes);
            spreads(level, conv) || sliding && fills && slides(conv, lanes)
        }
    }
}

/// Whether a vector spans several groups.
fn spreads(level: Level, conv: &Conv) -> bool {
    let sizes = (conv.group_in(), conv.group_out());
    sizes.0.min(sizes.1) > 0 && together(lanes(level), sizes, conv.groups) > 1
}

/// Whether the taps of a line see the same elements one after the other, in groups of at most
/// `most` channels.
fn slides(conv: &Conv, most: usize) -> bool {
    let sizes = (conv.group_in(), conv.group_out());
    let least = if conv.groups > 1 { 1 } else { LEAST };
    (conv.x.size, conv.x.stride) == (3, 1)
        && sizes.0.min(sizes.1) >= least
        && sizes.0.max(sizes.1) <= most
}

/// Writes a filter in the order in which it is read here: for each tap and each channel of a group
/// of the image one weight for each channel of the result. It has as many elements as the filter.
pub(super) fn pack(direction: Direction, conv: &Conv, filter: &[f32], to: &mut [f32]) {
    let (inputs, outputs) = (conv.group_in(), conv.group_out());
    let (channels, ld) = (conv.in_channels, conv.out_channels);
    if direction == Direction::Forward || filter.is_empty() {
        return to.copy_from_slice(filter);
    }
    let taps = filter.chunks_exact(inputs * ld);
    for (filter, to) in taps.zip(to.chunks_exact_mut(outputs * channels)) {
        for (input, filter) in filter.chunks_exact(ld).enumerate() {
            for (group, filter) in filter.chunks_exact(outputs).enumerate() {
                for (output, &weight) in filter.iter().enumerate() {
                    to[output * channels + group * inputs + input] = weight;
                }
            }
        }
    }
}

/// One side of a convolution.
#[derive(Clone, Copy)]
struct Side {
    lines: usize,
    columns: usize,
    channels: usize,
}

/// A convolution, or a transposed one, with a filter that [`pack`] has written.
#[derive(Clone, Copy)]
pub(super) struct Direct<'a> {
    pub direction: Direction,
    pub conv: &'a Conv,
    pub level: Level,
    pub filter: &'a [f32],
    pub bias: Option<&'a [f32]>,
    pub activation: Activation,
    pub accumulate: bool,
}

impl Direct<'_> {
    /// Computes `to` from `from`; both have the lengths that the sizes say.
    pub fn run(&self, from: &[f32], to: &mut [f32], parallel: &dyn Parallel) {
        let (_, result) = self.sides();
        let line = result.columns * result.channels;
        let lines = self.conv.batch * result.lines;
        if to.is_empty() {
            return;
        }
        let chunk = line * lines_per_task(lines, parallel);
        for_each_chunk(parallel, to, chunk, |start, to| {
            for (i, to) in to.chunks_mut(MAX_LINES * line).enumerate() {
                let body = Lines {
                    of: self,
                    from,
                    first: start / line + i * MAX_LINES,
                    to,
                };
                dispatch(self.level, body);
                if let Activation::Map(function) = self.activation {
                    function(to);
                }
            }
        });
    }

    /// The image and the result.
    #[inline(always)]
    fn sides(&self) -> (Side, Side) {
        let conv = self.conv;
        let input = Side {
            lines: conv.y.input,
            columns: conv.x.input,
            channels: conv.in_channels,
        };
        let output = Side {
            lines: conv.y.output,
            columns: conv.x.output,
            channels: conv.out_channels,
        };
        match self.direction {
            Direction::Forward => (input, output),
            Direction::Backward => (output, input),
        }
    }

    /// Positions of an axis of the result that see the same taps are so far apart.
    #[inline(always)]
    fn step(&self, window: &Window) -> usize {
        match self.direction {
            Direction::Forward => 1,
            Direction::Backward => window.stride,
        }
    }

    /// The walk along one axis over the positions `phase`, `phase + step`, ...
    fn axis(&self, window: &Window, phase: usize) -> Axis {
        match self.direction {
            Direction::Forward => forward::axis(window),
            Direction::Backward => backward_input::axis(window, phase),
        }
    }
}

/// Some lines of the result.
struct Lines<'a, 'b> {
    of: &'b Direct<'a>,
    from: &'b [f32],
    /// The first of them.
    first: usize,
    to: &'b mut [f32],
}

/// A line of the result.
#[derive(Clone, Copy)]
struct Line {
    /// Its number among the lines that are computed.
    index: usize,
    /// Lines of the image before those of its own image.
    image: usize,
    /// The line of the image that offset 0 sees.
    at: isize,
    axis: Axis,
}

/// Some stops of a line.
#[derive(Clone, Copy)]
struct Stops {
    axis: Axis,
    /// The number of the first among those of the axis.
    first: usize,
    /// As many as there are.
    count: usize,
    /// Their numbers are so far apart.
    every: usize,
}

impl Body for Lines<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let of = self.of;
        let mut lines = [const { None }; MAX_LINES];
        let (image, result) = of.sides();
        let line = result.columns * result.channels;
        for (index, slot) in lines.iter_mut().enumerate().take(self.to.len() / line) {
            let (number, y) = (
                (self.first + index) / result.lines,
                (self.first + index) % result.lines,
            );
            let step = of.step(&of.conv.y);
            let axis = of.axis(&of.conv.y, y % step);
            *slot = Some(Line {
                index,
                image: number * image.lines,
                at: (y / step * axis.stride).cast_signed(),
                axis,
            });
        }
        let (k, columns) = size(of.direction, of.conv);
        let depth = k / (of.conv.y.size * of.conv.x.size);
        let together = together(S::LANES, (depth, columns), of.conv.groups);
        let mut group = 0;
        while group < of.conv.groups {
            let count = together.min(of.conv.groups - group);
            // A level with fewer registers computes only what spreads.
            if const { S::REGISTERS >= 32 } && together == 1 {
                for column in (0..columns).step_by(S::LANES) {
                    let channels = Channels::single(s, (depth, columns), group, column);
                    self.channels::<S, false>(s, &lines, &channels);
                }
            } else {
                let channels = Channels::spread(s, (depth, columns), group, count);
                self.channels::<S, true>(s, &lines, &channels);
            }
            group += count;
        }
    }
}

impl Lines<'_, '_> {
    /// Some channels of all lines.
    #[inline(always)]
    fn channels<S: Simd, const SPREAD: bool>(
        &mut self,
        s: S,
        lines: &[Option<Line>; MAX_LINES],
        channels: &Channels<S>,
    ) {
        let of = self.of;
        let (_, result) = of.sides();
        let step = of.step(&of.conv.x);
        for phase in 0..step.min(result.columns) {
            let axis = of.axis(&of.conv.x, phase);
            let all = (result.columns - phase).div_ceil(step);
            // Stops that are as far apart as the taps see the same columns.
            let apart = axis.taps.offset_step.unsigned_abs();
            let every = match apart.is_multiple_of(axis.stride) {
                true => (apart / axis.stride).clamp(1, all),
                false => 1,
            };
            for first in 0..every {
                let stops = Stops {
                    axis,
                    first,
                    count: (all - first).div_ceil(every),
                    every,
                };
                self.stops::<S, SPREAD>(s, lines, channels, &stops);
            }
        }
    }

    /// Some stops of all lines.
    #[inline(always)]
    fn stops<S: Simd, const SPREAD: bool>(
        &mut self,
        s: S,
        lines: &[Option<Line>; MAX_LINES],
        channels: &Channels<S>,
        stops: &Stops,
    ) {
        let partial = channels.is_partial(SPREAD);
        for done in (0..stops.count).step_by(STOPS) {
            let stops = Stops {
                first: stops.first + done * stops.every,
                count: STOPS.min(stops.count - done),
                ..*stops
            };
            for line in lines.iter().flatten() {
                // Without fused operations whole vectors are not worth code of their own.
                if !S::FUSED || partial {
                    self.tile::<S, SPREAD, true>(s, line, channels, &stops);
                } else {
                    self.tile::<S, SPREAD, false>(s, line, channels, &stops);
                }
            }
        }
    }

    /// [`STOPS`] stops of a line, as far as they are there.
    #[inline(always)]
    fn tile<S: Simd, const SPREAD: bool, const PARTIAL: bool>(
        &mut self,
        s: S,
        line: &Line,
        channels: &Channels<S>,
        stops: &Stops,
    ) {
        let of = self.of;
        let (image, result) = of.sides();
        let lanes = &channels.lanes;
        let (y, x) = (&line.axis.taps, &stops.axis.taps);
        let (k, _) = size(of.direction, of.conv);
        let depth = k / (of.conv.y.size * of.conv.x.size);
        let mut sums = [s.zero(); STOPS];
        let stride = stops.axis.stride * stops.every;
        let slides = x.count == 3 && x.offset_step.unsigned_abs() == stride;
        for tap_y in 0..y.count {
            let at = line.at + y.offset + tap_y.cast_signed() * y.offset_step;
            let there = (0..image.lines.cast_signed()).contains(&at);
            let data = if there {
                let width = image.columns * image.channels;
                &self.from[(line.image + at.cast_unsigned()) * width..][..width]
            } else {
                &[]
            };
            let columns = if there { image.columns } else { 0 };
            let line_y = (y.line + tap_y * y.line_step) * of.conv.x.size;
            let weights = |tap_x: usize| {
                let tap = line_y + x.line + tap_x * x.line_step;
                &of.filter[tap * depth * result.channels + channels.to..]
            };
            let see = |offset: isize| {
                let at = (stops.first * stops.axis.stride).cast_signed() + offset;
                let missing = (-at).max(0).cast_unsigned().div_ceil(stride);
                let first = (at + (missing * stride).cast_signed()).cast_unsigned();
                let count = columns.saturating_sub(first).div_ceil(stride);
                Columns {
                    data,
                    first: first * image.channels + channels.from,
                    step: stride * image.channels,
                    inside: (missing, missing + count),
                }
            };
            if slides {
                // From the leftmost tap on.
                let order = if x.offset_step > 0 {
                    [0, 1, 2]
                } else {
                    [2, 1, 0]
                };
                let seen = see(x.offset + (2 * x.offset_step).min(0));
                let weights = Weights {
                    taps: order.map(weights),
                    ld: result.channels,
                    depth,
                };
                sums =
                    add_line::<S, STOPS, 3, SEEN, SPREAD, PARTIAL>(s, sums, &seen, &weights, lanes);
                continue;
            }
            for tap_x in 0..x.count {
                let seen = see(x.offset + tap_x.cast_signed() * x.offset_step);
                let weights = Weights {
                    taps: [weights(tap_x)],
                    ld: result.channels,
                    depth,
                };
                sums = add_line::<S, STOPS, 1, STOPS, SPREAD, PARTIAL>(
                    s, sums, &seen, &weights, lanes,
                );
            }
        }
        self.store::<S, PARTIAL>(s, &sums, (line, stops, channels));
    }

    /// Writes the sums of some stops.
    #[inline(always)]
    fn store<S: Simd, const PARTIAL: bool>(
        &mut self,
        s: S,
        sums: &[S::F; STOPS],
        (line, stops, channels): (&Line, &Stops, &Channels<S>),
    ) {
        let of = self.of;
        let (_, result) = of.sides();
        let clamp = of.activation.clamp();
        let width = if PARTIAL {
            channels.lanes.count
        } else {
            S::LANES
        };
        let bias = match of.bias {
            Some(bias) => s.load_up_to(&bias[channels.to..][..width]),
            None => s.zero(),
        };
        for (px, &sum) in sums.iter().enumerate().take(stops.count) {
            let column = stops.axis.phase + (stops.first + px * stops.every) * stops.axis.step;
            let place = (line.index * result.columns + column) * result.channels + channels.to;
            let to = &mut self.to[place..][..width];
            let mut sum = s.add(sum, bias);
            if of.accumulate {
                sum = s.add(sum, s.load_up_to(to));
            }
            if let Some((low, high)) = clamp {
                sum = s.min(s.splat(high), s.max(s.splat(low), sum));
            }
            s.store_up_to(to, sum);
        }
    }
}
