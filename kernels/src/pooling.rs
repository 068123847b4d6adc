//! Max and average pooling and their gradients, channels last.

use crate::blocks::for_each_chunk;
use crate::conv::Window;
use crate::conv::depthwise::{each_tap, lines_per_task};
use crate::conv::geometry::check_len;
use crate::error::Result;
use crate::level::{Level, level};
use crate::parallel::{Parallel, Serial};
use crate::shape::Shape;
use crate::simd::{Body, Simd, dispatch};

/// Elements that are looked at below which another thread costs more than it saves.
const PARALLEL_ELEMENTS: usize = 1 << 17;

/// What becomes of the elements of a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The largest; NaN if there is one; -infinity if the window lies in the padding.
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
    /// [`crate::error::Error::Overflow`].
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
        if self.output_len().saturating_mul(taps) < PARALLEL_ELEMENTS {
            &Serial
        } else {
            parallel
        }
    }

    /// Computes the output.
    ///
    /// # Errors
    /// [`crate::error::Error::Length`] if a slice has not the length that the sizes say.
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
    /// to the first element of the window that equals it, so `input` is needed for [`Kind::Max`];
    /// for [`Kind::Average`] it may be empty.
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
        let lines = self.output.chunks_exact_mut(x.output * channels);
        for (i, output) in lines.enumerate() {
            let (image, out_y) = ((self.first + i) / y.output, (self.first + i) % y.output);
            let (taps_y, first_y) = y.taps(out_y);
            for (out_x, output) in output.chunks_exact_mut(channels).enumerate() {
                let (taps_x, first_x) = x.taps(out_x);
                let count = taps_y.len() * taps_x.len();
                let scale = s.splat(1.0 / count.max(1) as f32);
                let mut channel = 0;
                while channel < channels {
                    let width = S::LANES.min(channels - channel);
                    let mut sum = match kind {
                        Kind::Max => s.splat(f32::NEG_INFINITY),
                        Kind::Average => s.zero(),
                    };
                    for tap_y in 0..taps_y.len() {
                        let line = (image * y.input + first_y + tap_y * y.dilation) * x.input;
                        for tap_x in 0..taps_x.len() {
                            let pixel = line + first_x + tap_x * x.dilation;
                            let from = &self.input[pixel * channels + channel..][..width];
                            let value = s.load_up_to(from);
                            sum = match kind {
                                Kind::Max => larger(s, sum, value),
                                Kind::Average => s.add(sum, value),
                            };
                        }
                    }
                    if *kind == Kind::Average {
                        sum = s.mul(sum, scale);
                    }
                    s.store_up_to(&mut output[channel..channel + width], sum);
                    channel += width;
                }
            }
        }
    }
}

/// The larger one; NaN if either is.
#[inline(always)]
fn larger<S: Simd>(s: S, a: S::F, b: S::F) -> S::F {
    // `max` gives its second operand for a NaN in either.
    s.select(s.eq(a, a), s.max(a, b), a)
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
                let mut top = s.splat(f32::NEG_INFINITY);
                if *kind == Kind::Average {
                    rest = s.mul(rest, scale);
                } else {
                    each_tap(y, x, (out_y, out_x), |_, in_y, in_x| {
                        let pixel = in_y * x.input + in_x;
                        let value = &self.input[pixel * channels + channel..][..width];
                        top = larger(s, top, s.load_up_to(value));
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
                            let hit = s.eq(value, top);
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
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conv::Padding;
    use crate::simd::available;
    use crate::testing::{Interleaved, numbers};

    fn pooling() -> impl Strategy<Value = Pooling> {
        let padding = prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..3_usize, 0..3_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ];
        let axis = (1..12_usize, 1..5_usize, 1..4_usize, padding)
            .prop_filter_map("fits", |(input, size, stride, padding)| {
                Window::new(input, size, stride, 1, padding).ok()
            });
        let kind = prop_oneof![Just(Kind::Max), Just(Kind::Average)];
        (kind, 0..3_usize, 1..40_usize, axis.clone(), axis).prop_map(
            |(kind, batch, channels, y, x)| Pooling::new(kind, batch, channels, y, x).unwrap(),
        )
    }

    proptest! {
        #[test]
        fn both_directions_match_their_definition(pooling in pooling(), seed in any::<u64>()) {
            let Pooling { kind, batch, channels, y, x, .. } = pooling;
            // Few distinct values, so that maxima repeat.
            let input: Vec<f32> =
                numbers(pooling.input_len(), seed).iter().map(|x| (x * 3.0).round()).collect();
            let slope = numbers(pooling.output_len(), seed + 1);
            let mut output = vec![0.0; pooling.output_len()];
            let mut gradient = vec![0.0_f64; input.len()];
            for (index, output) in output.iter_mut().enumerate() {
                let (pixel, channel) = (index / channels, index % channels);
                let (line, out_x) = (pixel / x.output, pixel % x.output);
                let (image, out_y) = (line / y.output, line % y.output);
                let mut seen = Vec::new();
                each_tap(&y, &x, (out_y, out_x), |_, in_y, in_x| {
                    seen.push(((image * y.input + in_y) * x.input + in_x) * channels + channel);
                });
                let values = seen.iter().map(|&i| input[i]);
                if kind == Kind::Max {
                    *output = values.fold(f32::NEG_INFINITY, f32::max);
                    if let Some(&i) = seen.iter().find(|&&i| input[i] == *output) {
                        gradient[i] += f64::from(slope[index]);
                    }
                } else {
                    let count = seen.len().max(1) as f32;
                    *output = values.sum::<f32>() / count;
                    for &i in &seen {
                        gradient[i] += f64::from(slope[index]) / f64::from(count);
                    }
                }
            }
            for level in available() {
                let pooling = Pooling { level, ..pooling };
                let mut found = vec![f32::NAN; output.len()];
                pooling.run(&input, &mut found, &Interleaved).unwrap();
                for (found, expected) in found.iter().zip(&output) {
                    let same = found == expected || (found - expected).abs() < 1e-6;
                    prop_assert!(same, "{} {}", found, expected);
                }
                let mut found = vec![f32::NAN; input.len()];
                pooling.backward(&input, &slope, &mut found, &Interleaved).unwrap();
                for (found, expected) in found.iter().zip(&gradient) {
                    prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
                }
            }
            prop_assert!(batch > 0 || output.is_empty());
        }
    }

    #[test]
    fn nan_is_the_maximum() {
        let y = Window::new(3, 3, 1, 1, Padding::Valid).unwrap();
        for level in available() {
            for place in 0..3 {
                let pooling = Pooling {
                    level,
                    ..Pooling::new(Kind::Max, 1, 1, y, Window::UNIT).unwrap()
                };
                let mut input = [1.0, 2.0, 1.5];
                input[place] = f32::NAN;
                let mut output = [0.0];
                pooling.run(&input, &mut output, &Serial).unwrap();
                assert!(output[0].is_nan());
            }
        }
    }
}
