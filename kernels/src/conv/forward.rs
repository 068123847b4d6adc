//! The forward convolution.

use core::ops::Range;

use super::direct::{self, Direct};
use super::filter::{Direction, Filter, PackedFilter};
use super::geometry::{Conv, Window, check_len};
use super::outside::Parts;
use super::winograd::{Once, Tiles, Winograd};
use crate::base::error::Result;
use crate::base::level::{Level, indexes_freely, level};
use crate::base::parallel::Parallel;
use crate::base::scratch::take;
use crate::base::worth::Work;
use crate::gemm::Activation;
use crate::gemm::block::{A, B, Multiply};
use crate::gemm::pack::check_level;
use crate::gemm::source::{Axis, Source, Taps};
use crate::gemm::thin::Thin;
use crate::gemm::tile::Store;
use crate::simd::blocks::for_each_block;
use crate::simd::dispatch;

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
    /// Add the convolution to what the output holds.
    pub accumulate: bool,
    /// Instruction set; that of a packed filter wins.
    pub level: Level,
}

impl<'a> Forward<'a> {
    /// A convolution without bias and activation.
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
            accumulate: false,
            level,
        }
    }

    /// Elements of scratch memory that [`Forward::run`] needs. For a filter that was transformed,
    /// points of the image: for one image 2 MiB or a quarter of input and output, if it has as
    /// many. None for other packed filters. For a plain one that is transformed for this call, its
    /// points and those of the image, at most half as much again as input, filter and output have;
    /// for others the elements of the filter, its output channels padded to whole vectors; none
    /// where that would be more than that, and where groups have few channels.
    ///
    /// # Errors
    /// As [`PackedFilter::len`].
    pub fn scratch_len(&self) -> Result<usize> {
        self.conv.check()?;
        if let Some(once) = self.once() {
            return Ok(once.scratch_len());
        }
        match self.filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(_) if direct::fits(self.level, &self.conv) => Ok(0),
            #[cfg(not(without = "plain"))]
            Filter::Plain(filter) if self.unpacked(filter)?.is_none() => {
                PackedFilter::len_for(self.level, Direction::Forward, &self.conv)
            }
            Filter::Packed(packed) => match packed.tiles {
                Some(tiles) => Ok(tiles.scratch_len(packed.level, &self.conv)),
                None => Ok(0),
            },
            #[cfg(not(without = "plain"))]
            Filter::Plain(_) => Ok(0),
        }
    }

    /// How a plain filter is transformed for this call, if it is. The sizes have been checked.
    fn once(&self) -> Option<Once> {
        match self.filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(_) => Once::of(self.level, Direction::Forward, &self.conv),
            Filter::Packed(_) => None,
        }
    }

    /// The filter, if it is used as it lies because it would grow too much.
    fn unpacked(&self, filter: &'a [f32]) -> Result<Option<B<'a>>> {
        let conv = &self.conv;
        conv.check()?;
        let packed = PackedFilter::len_for(self.level, Direction::Forward, conv)?;
        let all = conv.input_len() + conv.filter_len() + conv.output_len();
        Ok((packed > all + all / 2).then_some(B::Rows {
            data: filter,
            ld: conv.out_channels,
        }))
    }

    /// Computes the output; `input` and `output` are dense, channels last.
    ///
    /// # Errors
    /// [`Length`](crate::base::error::Error::Length) if a slice has not the length that the sizes say or
    /// the scratch is too short; [`Value`](crate::base::error::Error::Value) and
    /// [`Overflow`](crate::base::error::Error::Overflow) for sizes that do not fit together.
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
        if let Filter::Packed(PackedFilter {
            tiles: Some(tiles), ..
        }) = self.filter
            && cfg!(feature = "std")
        {
            return self.winograd(tiles, (input, output, scratch), parallel);
        }
        let threads = self.threads(parallel);
        #[cfg(not(without = "plain"))]
        if let (Filter::Plain(filter), Some(once)) = (self.filter, self.once()) {
            check_level(self.level)?;
            check_len("filter", filter.len(), conv.filter_len())?;
            let scratch = take(scratch, once.scratch_len())?;
            let store = self.store(0..conv.out_channels);
            if once.run(filter, (input, output), store, scratch, threads) {
                return Ok(());
            }
        }
        if direct::fits(self.level, conv) {
            return self.direct((input, output), parallel);
        }
        let unpacked = match self.filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(filter) => {
                check_len("filter", filter.len(), conv.filter_len())?;
                self.unpacked(filter)?
            }
            Filter::Packed(_) => None,
        };
        let filter = match unpacked {
            Some(rows) => rows,
            None => {
                let (filter, direction) = (&self.filter, Direction::Forward);
                let packed =
                    PackedFilter::of(filter, self.level, direction, conv, scratch, threads)?;
                let one = conv.groups == 1 && output.len() == conv.out_channels;
                if one && conv.is_pointwise() && !output.is_empty() {
                    let thin = Thin {
                        bias: self.bias,
                        activation: self.activation,
                        accumulate: self.accumulate,
                        backwards: false,
                    };
                    return thin.run(input, &packed.matrix(conv), output, parallel);
                }
                B::Packed {
                    data: packed.data,
                    k: conv.y.size * conv.x.size * conv.group_in(),
                    near: false,
                }
            }
        };
        if output.is_empty() {
            return Ok(());
        }
        for group in 0..conv.groups {
            self.group(group, input, &filter, output, threads);
        }
        Ok(())
    }

    fn direct(&self, (input, output): (&[f32], &mut [f32]), parallel: &dyn Parallel) -> Result<()> {
        let filter = match self.filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(filter) => {
                check_level(self.level)?;
                check_len("filter", filter.len(), self.conv.filter_len())?;
                filter
            }
            Filter::Packed(_) => {
                let (filter, direction) = (&self.filter, Direction::Forward);
                let conv = &self.conv;
                PackedFilter::of(filter, self.level, direction, conv, &mut [], parallel)?.data
            }
        };
        let direct = Direct {
            direction: Direction::Forward,
            conv: &self.conv,
            level: self.level,
            filter,
            bias: self.bias,
            activation: self.activation,
            accumulate: self.accumulate,
        };
        direct.run(input, output, self.threads(parallel));
        Ok(())
    }

    fn winograd(
        &self,
        tiles: Tiles,
        (input, output, scratch): (&[f32], &mut [f32], &mut [f32]),
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (filter, direction) = (&self.filter, Direction::Forward);
        let packed =
            PackedFilter::of(filter, self.level, direction, &self.conv, &mut [], parallel)?;
        let scratch = take(scratch, self.scratch_len()?)?;
        let winograd = Winograd {
            conv: &self.conv,
            tiles,
            level: self.level,
            filter: packed.data,
            store: self.store(0..self.conv.out_channels),
        };
        if !output.is_empty() {
            winograd.run(input, output, scratch, self.threads(parallel));
        }
        Ok(())
    }

    /// What happens to the sums of some output channels.
    fn store(&self, channels: Range<usize>) -> Store<'_> {
        Store {
            accumulate: self.accumulate,
            bias: self.bias.map(|bias| &bias[channels]),
            clamp: self.activation.clamp(),
            map: self.activation.map(),
        }
    }

    /// The threads that the work is worth.
    fn threads<'p>(&self, parallel: &'p dyn Parallel) -> &'p dyn Parallel {
        Work::Product(self.conv.flops(), self.conv.output_len()).threads(parallel)
    }

    fn group(
        &self,
        group: usize,
        input: &[f32],
        filter: &B<'_>,
        output: &mut [f32],
        parallel: &dyn Parallel,
    ) {
        let conv = &self.conv;
        let (depth, columns) = (conv.group_in(), conv.group_out());
        let rows = conv.batch * conv.y.output * conv.x.output;
        let source = if conv.is_pointwise() {
            Source::plain(input, rows, conv.in_channels, group * depth, depth)
        } else if indexes_freely() && conv.is_one_line() {
            // Rows that are multiplied where they lie.
            let (pixel, depth) = (conv.x.stride * depth, conv.x.size * depth);
            Source::plain(input, rows, pixel, 0, depth)
        } else {
            Source {
                data: input,
                pixel: conv.in_channels,
                channel: group * depth,
                depth,
                y: axis(&conv.y),
                x: axis(&conv.x),
                filter_width: conv.x.size,
                #[cfg(not(without = "scaled"))]
                scale: None,
                leaves_out: false,
            }
        };
        let b = match *filter {
            B::Packed { data, k, near } => {
                let each = data.len() / conv.groups;
                B::Packed {
                    data: &data[group * each..][..each],
                    k,
                    near,
                }
            }
            #[cfg(not(without = "plain"))]
            B::Rows { data, ld } => B::Rows {
                data: &data[group * columns..],
                ld,
            },
        };
        let store = self.store(group * columns..(group + 1) * columns);
        let (direction, threads) = (Direction::Forward, parallel.threads());
        let cut = self.filter.cut(self.level, direction, conv, threads);
        let (output, ld) = (&mut output[group * columns..], conv.out_channels);
        let parts = Parts::new(&source, &b);
        for_each_block(parallel, output, ld, (rows, columns), cut, |mut block| {
            for source in parts.of(&source) {
                dispatch(
                    self.level,
                    Multiply {
                        a: &A::Rows(source),
                        b: &b,
                        n: columns,
                        level: self.level,
                        block: &mut block,
                        store,
                    },
                );
            }
        });
    }
}

/// The walk of a forward convolution along one axis.
pub(super) fn axis(window: &Window) -> Axis {
    Axis {
        size: window.input,
        out: window.output,
        phase: 0,
        end: window.output,
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
