//! The transposed convolution, which is also the gradient of a convolution by its input.

use core::ops::Range;

use super::depthwise::each_tap;
use super::direct::{self, Direct};
use super::filter::{Direction, Filter, PackedFilter, size};
use super::geometry::{Conv, Window, check_len};
use super::outside::Parts;
use super::winograd::Once;
use crate::base::error::Result;
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::base::scratch::take;
use crate::gemm::Activation;
use crate::gemm::block::{A, B, Multiply};
use crate::gemm::pack::check_level;
use crate::gemm::source::{Axis, Source, Taps};
use crate::gemm::tile::Store;
use crate::simd::blocks::for_each_block;
use crate::simd::{self, Simd, dispatch};

/// A transposed convolution: from the output's side of `conv` to the input's,
/// `activation(conv^T(output, filter) + bias)`.
#[derive(Clone, Copy, Debug)]
pub struct BackwardInput<'a> {
    /// Sizes of the forward convolution.
    pub conv: Conv,
    /// Weights.
    pub filter: Filter<'a>,
    /// One element per input channel of `conv`.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
    /// Instruction set; that of a packed filter wins.
    pub level: Level,
}

impl<'a> BackwardInput<'a> {
    /// A transposed convolution without bias and activation.
    #[must_use]
    pub fn new(conv: Conv, filter: Filter<'a>) -> Self {
        let level = match filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(_) => level(),
            Filter::Packed(packed) => packed.level,
        };
        Self {
            conv,
            filter,
            bias: None,
            activation: Activation::None,
            level,
        }
    }

    /// Elements of scratch memory that [`BackwardInput::run`] needs: none for a packed filter. For
    /// a plain one that is transformed for this call, its points and those of the image, at most
    /// half as much again as input, filter and output have; for others those of the filter, its
    /// input channels padded to whole vectors unless groups have few of them; none where that would
    /// be more than that.
    ///
    /// # Errors
    /// As [`PackedFilter::len`].
    pub fn scratch_len(&self) -> Result<usize> {
        let conv = &self.conv;
        conv.check()?;
        #[cfg(not(without = "plain"))]
        if let Some(once) = self.once() {
            return Ok(once.scratch_len());
        }
        match self.filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(_) => {
                let packed = PackedFilter::len_for(self.level, Direction::Backward, conv)?;
                let all = conv.input_len() + conv.filter_len() + conv.output_len();
                Ok(if packed <= all + all / 2 { packed } else { 0 })
            }
            Filter::Packed(_) => Ok(0),
        }
    }

    /// How a plain filter is transformed for this call, if it is. The sizes have been checked.
    fn once(&self) -> Option<Once> {
        match self.filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(_) => Once::of(self.level, Direction::Backward, &self.conv),
            Filter::Packed(_) => None,
        }
    }

    /// Computes `input` from `output`, both in the sense of the forward convolution; dense,
    /// channels last.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Length`] if a slice has not the length that the sizes say or the
    /// scratch is too short; [`crate::base::error::Error::Value`] and
    /// [`crate::base::error::Error::Overflow`] for sizes that do not fit together.
    pub fn run(
        &self,
        output: &[f32],
        input: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let conv = &self.conv;
        conv.check()?;
        check_len("input", input.len(), conv.input_len())?;
        check_len("output", output.len(), conv.output_len())?;
        if let Some(bias) = self.bias {
            check_len("bias", bias.len(), conv.in_channels)?;
        }
        let parallel = conv.gradient_work(conv.input_len()).threads(parallel);
        #[cfg(not(without = "plain"))]
        if let (Filter::Plain(filter), Some(once)) = (self.filter, self.once()) {
            check_level(self.level)?;
            check_len("filter", filter.len(), conv.filter_len())?;
            let (scratch, store) = (
                take(scratch, once.scratch_len())?,
                self.store(0..conv.in_channels),
            );
            if once.run(filter, (output, input), store, scratch, parallel) {
                return Ok(());
            }
        }
        #[cfg(not(without = "plain"))]
        if let Filter::Plain(filter) = self.filter
            && self.scratch_len()? == 0
        {
            check_len("filter", filter.len(), conv.filter_len())?;
            let body = Unpacked {
                of: self,
                filter,
                output,
                input,
            };
            dispatch(self.level, body);
            return Ok(());
        }
        let direction = Direction::Backward;
        let packed =
            PackedFilter::of(&self.filter, self.level, direction, conv, scratch, parallel)?;
        if input.is_empty() {
            return Ok(());
        }
        if direct::fits(self.level, conv) {
            let direct = Direct {
                direction,
                conv,
                level: self.level,
                filter: packed.data,
                bias: self.bias,
                activation: self.activation,
                accumulate: false,
            };
            direct.run(output, input, parallel);
            return Ok(());
        }
        for group in 0..conv.groups {
            self.group(group, output, &packed, input, parallel);
        }
        Ok(())
    }

    /// What happens to the sums of some input channels.
    fn store(&self, channels: Range<usize>) -> Store<'_> {
        Store {
            accumulate: false,
            bias: self.bias.map(|bias| &bias[channels]),
            clamp: self.activation.clamp(),
            map: self.activation.map(),
        }
    }

    fn group(
        &self,
        group: usize,
        output: &[f32],
        packed: &PackedFilter<'_>,
        input: &mut [f32],
        parallel: &dyn Parallel,
    ) {
        let conv = &self.conv;
        let (k, columns) = size(Direction::Backward, conv);
        let each = packed.data.len() / conv.groups;
        let rows = conv.batch * conv.y.input * conv.x.input;
        let b = B::Packed {
            data: &packed.data[group * each..][..each],
            k,
            near: false,
        };
        let store = self.store(group * columns..(group + 1) * columns);
        let (direction, threads) = (Direction::Backward, parallel.threads());
        let cut = self.filter.cut(packed.level, direction, conv, threads);
        let (input, ld) = (&mut input[group * columns..], conv.in_channels);
        let source = |phase_y: usize, phase_x: usize| {
            let (mut y, x) = (axis(&conv.y, phase_y), axis(&conv.x, phase_x));
            if x.taps.count == 0 {
                y.taps.count = 0;
            }
            Source {
                data: output,
                pixel: conv.out_channels,
                channel: group * conv.group_out(),
                depth: conv.group_out(),
                y,
                x,
                filter_width: conv.x.size,
                #[cfg(not(without = "scaled"))]
                scale: None,
                leaves_out: false,
            }
        };
        let parts = Parts::new(&source(0, 0), &b);
        for_each_block(parallel, input, ld, (rows, columns), cut, |mut block| {
            // Inputs that are a stride apart see the same taps.
            for phase_y in 0..conv.y.stride.min(conv.y.input) {
                for phase_x in 0..conv.x.stride.min(conv.x.input) {
                    let source = source(phase_y, phase_x);
                    for source in parts.of(&source) {
                        dispatch(
                            packed.level,
                            Multiply {
                                a: &A::Rows(source),
                                b: &b,
                                n: columns,
                                level: packed.level,
                                block: &mut block,
                                store,
                            },
                        );
                    }
                }
            }
        });
    }
}

/// All of it with the filter as it lies: what few input channels and few pixels take.
struct Unpacked<'a, 'b> {
    of: &'b BackwardInput<'a>,
    filter: &'b [f32],
    output: &'b [f32],
    input: &'b mut [f32],
}

impl simd::Body for Unpacked<'_, '_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self {
            of,
            filter,
            output,
            input,
        } = self;
        let conv = &of.conv;
        let (in_channels, out_channels) = (conv.in_channels, conv.out_channels);
        let (group_in, group_out) = (conv.group_in(), conv.group_out());
        if in_channels == 0 {
            return;
        }
        for pixel in input.chunks_exact_mut(in_channels) {
            match of.bias {
                Some(bias) => pixel.copy_from_slice(bias),
                None => pixel.fill(0.0),
            }
        }
        let pixels = conv.y.output * conv.x.output;
        for stop in 0..conv.batch * pixels {
            let (image, within) = (stop / pixels, stop % pixels);
            let place = (within / conv.x.output, within % conv.x.output);
            let from = &output[stop * out_channels..][..out_channels];
            each_tap(&conv.y, &conv.x, place, |tap, y, x| {
                let pixel = (image * conv.y.input + y) * conv.x.input + x;
                let to = &mut input[pixel * in_channels..][..in_channels];
                for (channel, to) in to.iter_mut().enumerate() {
                    let (group, line) = (channel / group_in, channel % group_in);
                    let from = &from[group * group_out..][..group_out];
                    let row = (tap * group_in + line) * out_channels + group * group_out;
                    *to += dot(s, from, &filter[row..][..group_out]);
                }
            });
        }
        match of.activation {
            Activation::None => {}
            Activation::Clamp(low, high) => {
                let (low, high) = (s.splat(low), s.splat(high));
                for x in input.chunks_mut(S::LANES) {
                    s.store_up_to(x, s.min(high, s.max(low, s.load_up_to(x))));
                }
            }
            Activation::Map(function) => input.chunks_exact_mut(in_channels).for_each(function),
        }
    }
}

/// The sum of the products of two slices of one length.
#[inline(always)]
fn dot<S: Simd>(s: S, a: &[f32], b: &[f32]) -> f32 {
    let mut sum = s.zero();
    for (a, b) in a.chunks(S::LANES).zip(b.chunks(S::LANES)) {
        sum = s.mul_add(s.load_up_to(a), s.load_up_to(b), sum);
    }
    s.sum(sum)
}

/// The walk along one axis over the inputs `phase`, `phase + stride`, ...: input `i` meets output
/// `o` at tap `t` if `i + before == o * stride + t * dilation`.
pub(super) fn axis(window: &Window, phase: usize) -> Axis {
    let (stride, dilation) = (window.stride, window.dilation);
    let line_step = stride / gcd(stride, dilation);
    let reaches = |tap: usize| {
        let distance = (phase + window.before).cast_signed() - (tap * dilation).cast_signed();
        (distance % stride.cast_signed() == 0).then(|| distance / stride.cast_signed())
    };
    // Taps repeat their remainder after `line_step`.
    let first = (0..window.size.min(line_step)).find_map(|tap| Some((tap, reaches(tap)?)));
    let taps = match first {
        Some((line, offset)) => Taps {
            count: (window.size - line).div_ceil(line_step),
            offset,
            offset_step: -(line_step * dilation / stride).cast_signed(),
            line,
            line_step,
        },
        None => Taps {
            count: 0,
            ..Taps::ONE
        },
    };
    Axis {
        size: window.output,
        out: window.input,
        phase,
        end: window.input,
        step: stride,
        stride: 1,
        taps,
    }
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}
