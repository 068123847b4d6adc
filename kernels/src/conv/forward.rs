//! The forward convolution.

use super::filter::{Direction, Filter, PackedFilter};
use super::geometry::{Conv, Window, check_len};
use crate::blocks::for_each_block;
use crate::error::Result;
use crate::gemm::block::{A, B, Multiply};
use crate::gemm::source::{Axis, Source, Taps};
use crate::gemm::tile::Store;
use crate::gemm::{Activation, PARALLEL_FLOPS, cut};
use crate::level::{Level, level};
use crate::parallel::{Parallel, Serial};
use crate::simd::dispatch;
use crate::thin::Thin;

/// A forward convolution: `activation(conv(input, filter) + bias)`.
#[derive(Clone, Copy, Debug)]
pub struct Forward<'a> {
    /// Sizes.
    pub conv: Conv,
    /// Weights.
    pub filter: Filter<'a>,
    /// One element per output channel.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
    /// Instruction set; that of a packed filter wins.
    pub level: Level,
}

impl<'a> Forward<'a> {
    /// A convolution without bias and activation.
    #[must_use]
    pub fn new(conv: Conv, filter: Filter<'a>) -> Self {
        let level = match filter {
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

    /// Elements of scratch memory that [`Forward::run`] needs: none for a packed filter, else
    /// those of the filter, its output channels padded to whole vectors.
    ///
    /// # Errors
    /// As [`PackedFilter::len`].
    pub fn scratch_len(&self) -> Result<usize> {
        match self.filter {
            Filter::Plain(_) => PackedFilter::len_for(self.level, Direction::Forward, &self.conv),
            Filter::Packed(_) => Ok(0),
        }
    }

    /// Computes the output; `input` and `output` are dense, channels last.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the sizes say or the scratch is too
    /// short; [`Error::Value`] and [`Error::Overflow`] for sizes that do not fit together.
    pub fn run(
        &self,
        input: &[f32],
        output: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let conv = &self.conv;
        conv.check()?;
        check_len("input", input.len(), conv.input_len())?;
        check_len("output", output.len(), conv.output_len())?;
        if let Some(bias) = self.bias {
            check_len("bias", bias.len(), conv.out_channels)?;
        }
        let direction = Direction::Forward;
        let packed =
            PackedFilter::of(&self.filter, self.level, direction, conv, scratch, parallel)?;
        if output.is_empty() {
            return Ok(());
        }
        if conv.is_pointwise() && conv.groups == 1 && output.len() == conv.out_channels {
            let thin = Thin {
                bias: self.bias,
                activation: self.activation,
                accumulate: false,
            };
            return thin.run(input, &packed.matrix(conv), output, parallel);
        }
        let parallel: &dyn Parallel = if conv.flops() < PARALLEL_FLOPS {
            &Serial
        } else {
            parallel
        };
        for group in 0..conv.groups {
            self.group(group, input, &packed, output, parallel);
        }
        Ok(())
    }

    fn group(
        &self,
        group: usize,
        input: &[f32],
        packed: &PackedFilter<'_>,
        output: &mut [f32],
        parallel: &dyn Parallel,
    ) {
        let conv = &self.conv;
        let (depth, columns) = (conv.group_in(), conv.group_out());
        let each = packed.data.len() / conv.groups;
        let k = conv.y.size * conv.x.size * depth;
        let rows = conv.batch * conv.y.output * conv.x.output;
        let a = A::Rows(if conv.is_pointwise() {
            Source::plain(input, rows, conv.in_channels, group * depth, depth)
        } else {
            Source {
                data: input,
                pixel: conv.in_channels,
                channel: group * depth,
                depth,
                y: axis(&conv.y),
                x: axis(&conv.x),
                filter_width: conv.x.size,
            }
        });
        let b = B::Packed {
            data: &packed.data[group * each..][..each],
            k,
        };
        let store = Store {
            accumulate: false,
            bias: self.bias.map(|bias| &bias[group * columns..][..columns]),
            clamp: self.activation.clamp(),
            map: self.activation.map(),
        };
        let cut = cut(packed.level, (rows, columns), parallel.threads());
        let (output, ld) = (&mut output[group * columns..], conv.out_channels);
        for_each_block(parallel, output, ld, (rows, columns), cut, |mut block| {
            dispatch(
                packed.level,
                Multiply {
                    a: &a,
                    b: &b,
                    n: columns,
                    level: packed.level,
                    block: &mut block,
                    store,
                },
            );
        });
    }
}

/// The walk of a forward convolution along one axis.
fn axis(window: &Window) -> Axis {
    Axis {
        size: window.input,
        out: window.output,
        phase: 0,
        step: 1,
        stride: window.stride,
        taps: Taps {
            count: window.size,
            offset: -window.before.cast_signed(),
            offset_step: window.dilation.cast_signed(),
            line: 0,
            line_step: 1,
        },
    }
}
