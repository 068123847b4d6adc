//! Convolutions of each channel by itself.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use super::{Scaling, expect};
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::conv::geometry::{Conv as Sizes, Window};
use crate::simd::body::{self, Body, dispatch};
use crate::simd::dots::{Axis, Deep, Dots};

/// Channels whose sums are made together.
const LANES: usize = 32;

/// A convolution of each channel of `[batch, y.input, x.input, channels]`.
#[derive(Clone, Copy, Debug)]
pub struct Depthwise<'a> {
    /// Its sizes: as many groups, inputs and outputs as channels.
    pub sizes: Sizes,
    /// The filter `[y.size, x.size, channels]`.
    pub filter: &'a [i8],
    /// The bias of each channel.
    pub bias: &'a [i32],
    /// What stands for 0 in the input.
    pub zero: i8,
    /// What stands for 0 in the filter, less which weights are multiplied.
    pub filter_zero: i8,
    /// How sums become int8.
    pub scaling: Scaling<'a>,
}

impl Depthwise<'_> {
    /// Computes the convolution.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice does not fit the sizes, [`Error::Value`] for other groups or a
    /// shift that is too large.
    pub fn run(&self, x: &[i8], out: &mut [i8], parallel: &dyn Parallel) -> Result<()> {
        let sizes = &self.sizes;
        sizes.check()?;
        let channels = sizes.out_channels;
        if sizes.groups != channels || sizes.in_channels != channels {
            return Err(Error::Value {
                argument: "groups",
                expected: "as many groups as channels",
            });
        }
        expect("input", x.len(), sizes.input_len())?;
        expect("output", out.len(), sizes.output_len())?;
        expect(
            "filter",
            self.filter.len(),
            sizes.y.size * sizes.x.size * channels,
        )?;
        expect("bias", self.bias.len(), channels)?;
        self.scaling.check(channels)?;
        if out.is_empty() {
            return Ok(());
        }
        let line = sizes.x.output * channels;
        let chunk = chunk_len(parallel, out.len(), line, sizes.y.size * sizes.x.size);
        let dots = Dots::at(body::level());
        let deep = self.deep(x);
        for_each_chunk(parallel, out, chunk, &|start, out| {
            let first = start / line;
            if self.filter_zero != 0 {
                dispatch(Lines::<true> {
                    of: self,
                    x,
                    first,
                    out,
                });
            } else if !dots.deep(&deep, first, out) {
                dispatch(Lines::<false> {
                    of: self,
                    x,
                    first,
                    out,
                });
            }
        });
        Ok(())
    }

    fn deep<'b>(&'b self, input: &'b [i8]) -> Deep<'b> {
        let axis = |window: Window| Axis {
            input: window.input,
            output: window.output,
            size: window.size,
            stride: window.stride,
            dilation: window.dilation,
            before: window.before,
        };
        let (taps, channels) = (
            self.sizes.y.size * self.sizes.x.size,
            self.sizes.out_channels,
        );
        Deep {
            y: axis(self.sizes.y),
            x: axis(self.sizes.x),
            channels,
            input,
            filter: self.filter,
            bias: self.bias,
            multiplier: self.scaling.multiplier,
            shift: self.scaling.shift,
            zero: self.zero,
            ends: self.scaling.ends(),
            rounding: self.scaling.rounding(self.bias, 2 * taps, channels),
        }
    }
}

/// Neighbouring lines of the output. Products of `WIDE` ones need more than 16 bits.
struct Lines<'a, const WIDE: bool> {
    of: &'a Depthwise<'a>,
    x: &'a [i8],
    first: usize,
    out: &'a mut [i8],
}

impl<const WIDE: bool> Body for Lines<'_, WIDE> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let sizes = &self.of.sizes;
        let channels = sizes.out_channels;
        let image = sizes.y.input * sizes.x.input * channels;
        let line = sizes.x.output * channels;
        for (i, out) in self.out.chunks_mut(line).enumerate() {
            let number = self.first + i;
            let (batch, y) = (number / sizes.y.output, number % sizes.y.output);
            let x = &self.x[batch * image..][..image];
            for (column, out) in out.chunks_mut(channels).enumerate() {
                self.of.pixel::<WIDE>(x, (y, column), out);
            }
        }
    }
}

impl Depthwise<'_> {
    /// Computes the channels of one pixel.
    #[inline(always)]
    fn pixel<const WIDE: bool>(
        &self,
        image: &[i8],
        (line, column): (usize, usize),
        out: &mut [i8],
    ) {
        let (channels, width) = (out.len(), self.sizes.x.input);
        let (taps_y, first_y) = self.sizes.y.taps(line);
        let (taps_x, first_x) = self.sizes.x.taps(column);
        let (step_y, step_x) = (self.sizes.y.dilation, self.sizes.x.dilation);
        let zero = i16::from(self.zero);
        let filter_zero = i16::from(self.filter_zero);
        let multiply = |x: i8, w: i8| {
            let x = i16::from(x) - zero;
            if WIDE {
                i32::from(x) * i32::from(i16::from(w) - filter_zero)
            } else {
                // A product is at most 255 * 128, which 16 bits hold.
                i32::from(x * i16::from(w))
            }
        };
        let mut from = 0;
        while from < channels {
            let count = LANES.min(channels - from);
            let mut sums = [0_i32; LANES];
            sums[..count].copy_from_slice(&self.bias[from..from + count]);
            for (i, tap_y) in taps_y.clone().enumerate() {
                let row = (first_y + i * step_y) * width;
                for (j, tap_x) in taps_x.clone().enumerate() {
                    let at = (row + first_x + j * step_x) * channels + from;
                    let tap = (tap_y * self.sizes.x.size + tap_x) * channels + from;
                    let (x, w) = (&image[at..at + count], &self.filter[tap..tap + count]);
                    match (x.first_chunk::<LANES>(), w.first_chunk::<LANES>()) {
                        (Some(x), Some(w)) => {
                            for c in 0..LANES {
                                sums[c] = sums[c].wrapping_add(multiply(x[c], w[c]));
                            }
                        }
                        _ => {
                            for (c, sum) in sums[..count].iter_mut().enumerate() {
                                *sum = sum.wrapping_add(multiply(x[c], w[c]));
                            }
                        }
                    }
                }
            }
            self.scaling
                .store(&sums, from, &mut out[from..from + count]);
            from += count;
        }
    }
}
