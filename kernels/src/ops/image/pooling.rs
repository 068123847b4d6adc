//! Max and average pooling and their gradients, channels last.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use crate::base::error::Result;
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::base::worth::Work;
use crate::conv::Window;
use crate::conv::depthwise::{each_tap, lines_per_task};
use crate::conv::geometry::check_len;
use crate::simd::blocks::for_each_chunk;
use crate::simd::stream::{self, Fence};
use crate::simd::{Body, Simd, dispatch, fetch_far};

/// What becomes of the elements of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The largest that is above `f32::MIN`, or `f32::MIN` if there is none; NaN counts for
    /// nothing. So it is in TensorFlow.
    Max,
    /// The mean of those that are not padding; 0 if there are none.
    Average,
}

/// A pooling of `[batch, y.input, x.input, channels]` to `[batch, y.output, x.output, channels]`.
#[derive(Clone, Copy, Debug)]
pub struct Pooling {
    /// What it computes.
    pub kind: Kind,
    /// Images.
    pub batch: usize,
    /// Channels.
    pub channels: usize,
    /// Vertical axis.
    pub y: Window,
    /// Horizontal axis.
    pub x: Window,
    /// Instruction set.
    pub level: Level,
}

impl Pooling {
    /// A pooling for the level in use.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Overflow`].
    pub fn new(kind: Kind, batch: usize, channels: usize, y: Window, x: Window) -> Result<Self> {
        Shape::new(&[batch, y.input, x.input, channels, 4])?;
        Shape::new(&[batch, y.output, x.output, channels, 4])?;
        Ok(Self {
            kind,
            batch,
            channels,
            y,
            x,
            level: level(),
        })
    }

    /// Elements of the input.
    #[must_use]
    pub fn input_len(&self) -> usize {
        self.batch * self.y.input * self.x.input * self.channels
    }

    /// Elements of the output.
    #[must_use]
    pub fn output_len(&self) -> usize {
        self.batch * self.y.output * self.x.output * self.channels
    }

    fn threads<'p>(&self, parallel: &'p dyn Parallel) -> &'p dyn Parallel {
        let taps = self.y.size.saturating_mul(self.x.size);
        Work::Windows(self.output_len(), taps).threads(parallel)
    }

    /// Computes the output.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Length`] if a slice has not the length that the sizes say.
    pub fn run(&self, input: &[f32], output: &mut [f32], parallel: &dyn Parallel) -> Result<()> {
        check_len("input", input.len(), self.input_len())?;
        check_len("output", output.len(), self.output_len())?;
        let parallel = self.threads(parallel);
        let line = self.x.output * self.channels;
        let chunk = line * lines_per_task(self.batch * self.y.output, parallel);
        for_each_chunk(parallel, output, chunk, |start, output| {
            dispatch(
                self.level,
                Lines {
                    of: self,
                    input,
                    first: start / line,
                    output,
                },
            );
        });
        Ok(())
    }

    /// Computes the gradient of the input from that of the output. The maximum passes its gradient
    /// to the first element of the window that no other one is above, so `input` is needed for
    /// [`Kind::Max`]; for [`Kind::Average`] it may be empty. A NaN at the start of a window takes
    /// its gradient, others get none, as in TensorFlow.
    ///
    /// # Errors
    /// As [`Pooling::run`].
    pub fn backward(
        &self,
        input: &[f32],
        output: &[f32],
        gradient: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        check_len("gradient", gradient.len(), self.input_len())?;
        check_len("output gradient", output.len(), self.output_len())?;
        if self.kind == Kind::Max {
            check_len("input", input.len(), self.input_len())?;
        }
        // Windows overlap, so that an image is the smallest part that is nobody else's.
        let image = self.y.input * self.x.input * self.channels;
        for_each_chunk(
            self.threads(parallel),
            gradient,
            image,
            |start, gradient| {
                dispatch(
                    self.level,
                    Backward {
                        of: self,
                        input: input.get(start..start + image).unwrap_or(&[]),
                        output,
                        image: start / image,
                        gradient,
                    },
                );
            },
        );
        Ok(())
    }
}

/// Some lines of the output.
struct Lines<'a> {
    of: &'a Pooling,
    input: &'a [f32],
    first: usize,
    output: &'a mut [f32],
}

impl Body for Lines<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Pooling {
            kind,
            channels,
            y,
            x,
            ..
        } = self.of;
        let channels = *channels;
        let fence = Fence::new(s, stream::is_far::<f32>(self.input.len()));
        // A stride of a single stop may be of any size.
        let below = (4 * x.input * channels).wrapping_mul(y.stride);
        let lines = self.output.chunks_exact_mut(x.output * channels);
        for (i, output) in lines.enumerate() {
            let (image, out_y) = ((self.first + i) / y.output, (self.first + i) % y.output);
            let (taps_y, first_y) = y.taps(out_y);
            for (out_x, output) in output.chunks_exact_mut(channels).enumerate() {
                let (taps_x, first_x) = x.taps(out_x);
                let count = taps_y.len() * taps_x.len();
                let scale = s.splat(1.0 / count.max(1) as f32);
                let window = Taps {
                    channels,
                    first: ((image * y.input + first_y) * x.input + first_x) * channels,
                    y: (taps_y.len(), y.dilation * x.input * channels),
                    x: (taps_x.len(), x.dilation * channels),
                    fresh: (taps_y.len().saturating_sub(y.stride), x.stride),
                    below,
                    fence: fence.as_ref(),
                };
                match kind {
                    Kind::Max => window.all::<true>(s, self.input, scale, output),
                    Kind::Average => window.all::<false>(s, self.input, scale, output),
                }
            }
        }
    }
}

/// The window of one pixel of the output.
struct Taps<'a, S: Simd> {
    channels: usize,
    /// The first element of the input.
    first: usize,
    /// Vertical taps, and the elements from one to the next.
    y: (usize, usize),
    /// Horizontal taps, and the elements from one to the next.
    x: (usize, usize),
    /// The vertical taps from this on and the horizontal ones below that, which no other window has.
    fresh: (usize, usize),
    /// Bytes from an element to that which the next line needs instead.
    below: usize,
    /// No cache holds the input.
    fence: Option<&'a Fence<S>>,
}

impl<S: Simd> Taps<'_, S> {
    /// All channels: many vectors at a time, so that what is read of a pixel is one piece.
    #[inline(always)]
    fn all<const MAX: bool>(&self, s: S, input: &[f32], scale: S::F, output: &mut [f32]) {
        let mut channel = 0;
        // As many sums as registers hold beside what they are made of: a maximum of NEON takes a mask
        // for each.
        if const { S::REGISTERS > 8 && !matches!(S::LEVEL, Level::Neon) } {
            while channel + 8 * S::LANES <= self.channels {
                self.some::<8, MAX>(s, input, channel, scale, output);
                channel += 8 * S::LANES;
            }
        }
        while channel + 4 * S::LANES <= self.channels {
            self.some::<4, MAX>(s, input, channel, scale, output);
            channel += 4 * S::LANES;
        }
        while channel < self.channels {
            self.some::<1, MAX>(s, input, channel, scale, output);
            channel += S::LANES;
        }
    }

    /// `NV` vectors of channels from `channel` on; of a single one those that there are.
    #[inline(always)]
    fn some<const NV: usize, const MAX: bool>(
        &self,
        s: S,
        input: &[f32],
        channel: usize,
        scale: S::F,
        output: &mut [f32],
    ) {
        let width = (NV * S::LANES).min(self.channels - channel);
        let output = &mut output[channel..channel + width];
        let mut sums = [if MAX { s.splat(f32::MIN) } else { s.zero() }; NV];
        for tap_y in 0..self.y.0 {
            let line = self.first + tap_y * self.y.1 + channel;
            for tap_x in 0..self.x.0 {
                let from = &input[line + tap_x * self.x.1..][..width];
                if self.fence.is_some() && tap_y >= self.fresh.0 && tap_x < self.fresh.1 {
                    fetch_far(from, self.below);
                }
                for v in 0..NV {
                    let value = load::<S, NV>(s, from, v);
                    sums[v] = if MAX {
                        // The sum stays where the value is NaN.
                        s.max(value, sums[v])
                    } else {
                        s.add(sums[v], value)
                    };
                }
            }
        }
        for v in 0..NV {
            let sum = if MAX { sums[v] } else { s.mul(sums[v], scale) };
            if NV == 1 {
                s.store_up_to(output, sum);
            } else {
                let output = &mut output[v * S::LANES..];
                match self.fence {
                    Some(fence) => fence.store_vector(output, sum),
                    None => s.store(output, sum),
                }
            }
        }
    }
}

/// Vector `v` of `NV`; a single one may be cut.
#[inline(always)]
fn load<S: Simd, const NV: usize>(s: S, from: &[f32], v: usize) -> S::F {
    if NV == 1 {
        s.load_up_to(from)
    } else {
        s.load(&from[v * S::LANES..])
    }
}

/// The gradient of one image.
struct Backward<'a> {
    of: &'a Pooling,
    input: &'a [f32],
    output: &'a [f32],
    image: usize,
    gradient: &'a mut [f32],
}

impl Body for Backward<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Pooling {
            kind,
            channels,
            y,
            x,
            ..
        } = self.of;
        let channels = *channels;
        self.gradient.fill(0.0);
        for (out_y, out_x) in (0..y.output).flat_map(|y| (0..x.output).map(move |x| (y, x))) {
            let pixel = (self.image * y.output + out_y) * x.output + out_x;
            let from = &self.output[pixel * channels..][..channels];
            let count = y.taps(out_y).0.len() * x.taps(out_x).0.len();
            let scale = s.splat(1.0 / count.max(1) as f32);
            let mut channel = 0;
            while channel < channels {
                let width = S::LANES.min(channels - channel);
                let mut rest = s.load_up_to(&from[channel..channel + width]);
                let mut top = s.zero();
                let mut first = true;
                if *kind == Kind::Average {
                    rest = s.mul(rest, scale);
                } else {
                    each_tap(y, x, (out_y, out_x), |_, in_y, in_x| {
                        let pixel = in_y * x.input + in_x;
                        let value =
                            s.load_up_to(&self.input[pixel * channels + channel..][..width]);
                        // A NaN stays if it is the first.
                        top = if first {
                            value
                        } else {
                            s.select(s.lt(top, value), value, top)
                        };
                        first = false;
                    });
                }
                each_tap(y, x, (out_y, out_x), |_, in_y, in_x| {
                    let at = (in_y * x.input + in_x) * channels + channel;
                    let to = &mut self.gradient[at..at + width];
                    let add = match kind {
                        Kind::Average => rest,
                        Kind::Max => {
                            let value = s.load_up_to(&self.input[at..at + width]);
                            // What the first one took is 0 for those that follow.
                            // A NaN is hit by all elements, so by the first.
                            let far = s.select(s.eq(value, top), s.zero(), s.splat(1.0));
                            let hit = s.eq(s.select(s.eq(top, top), far, s.zero()), s.zero());
                            let add = s.select(hit, rest, s.zero());
                            rest = s.select(hit, s.zero(), rest);
                            add
                        }
                    };
                    s.store_up_to(to, s.add(s.load_up_to(to), add));
                });
                channel += width;
            }
        }
    }
}

#[cfg(test)]
mod tests;
