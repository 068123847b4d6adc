//! The gradient of a convolution by its filter.

use core::ops::Range;

use super::direct;
use super::geometry::{Conv, check_len};
use super::winograd::FilterGradient;
use crate::base::error::Result;
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::base::scratch::take;
use crate::gemm::block::tiles;
use crate::gemm::tile::{self, Store};
use crate::gemm::{Gemm, Matrix, pack};
use crate::simd::blocks::{Block, Cut, for_each_block};
use crate::simd::{Body, Simd, dispatch};

/// Elements of the output gradient's columns that are gone through for every tap: they stay in
/// the second cache.
const BLOCK_OF_OUTPUT: usize = 64 * 1024;

/// Channels of the input from which on it pays to pack the gradient of the output for them.
const PACKED_FOR: usize = 64;

/// The gradient of a convolution by its filter.
#[derive(Clone, Copy, Debug)]
pub struct BackwardFilter {
    /// Sizes.
    pub conv: Conv,
    /// Instruction set.
    pub level: Level,
}

impl BackwardFilter {
    /// A gradient for the level in use.
    #[must_use]
    pub fn new(conv: Conv) -> Self {
        Self {
            conv,
            level: level(),
        }
    }

    /// Elements of scratch memory that [`BackwardFilter::run`] needs: for 3 x 3 taps at steps of
    /// one, where tiles save time, their points, and for one tap that sees a pixel at each stop, what
    /// [`Gemm::scratch_len`] says; at most half as much again as input, filter and output have.
    /// None for others.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Value`] and [`crate::base::error::Error::Overflow`] for sizes that do not
    /// fit together.
    pub fn scratch_len(&self) -> Result<usize> {
        self.conv.check()?;
        if let Some(product) = self.product(&[], &[]) {
            return product.scratch_len();
        }
        let tiles = FilterGradient::of(self.level, &self.conv);
        Ok(tiles.map_or(0, |tiles| tiles.scratch_len()))
    }

    /// Computes the gradient of the filter, `[height, width, in_channels / groups,
    /// out_channels]`, from the input and the gradient of the output.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Length`] if a slice has not the length that the sizes say or the
    /// scratch is too short, [`crate::base::error::Error::Value`] and [`crate::base::error::Error::Overflow`] for sizes that do
    /// not fit together.
    pub fn run(
        &self,
        input: &[f32],
        output: &[f32],
        filter: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let conv = &self.conv;
        conv.check()?;
        check_len("input", input.len(), conv.input_len())?;
        check_len("output", output.len(), conv.output_len())?;
        check_len("filter", filter.len(), conv.filter_len())?;
        pack::check_level(self.level)?;
        if filter.is_empty() {
            return Ok(());
        }
        let parallel = conv.gradient_work(conv.filter_len()).threads(parallel);
        if let Some(product) = self.product(input, output) {
            return product.run(filter, conv.out_channels, scratch, parallel);
        }
        if let Some(tiles) = FilterGradient::of(self.level, conv) {
            let scratch = take(scratch, tiles.scratch_len())?;
            if tiles.run((input, output), filter, scratch, parallel) {
                return Ok(());
            }
        }
        if direct::fits_gradient(self.level, conv) {
            let images = (input, output);
            direct::filter_gradient(self.level, conv, images, filter, parallel);
            return Ok(());
        }
        let rows = conv.y.size * conv.x.size * conv.group_in();
        let columns = conv.group_out();
        let panels = pack::panels(self.level, columns);
        let tasks = if parallel.threads() > 1 {
            parallel.threads() * 4
        } else {
            1
        };
        let down = tasks.div_ceil(panels);
        let cut = Cut {
            rows: rows.div_ceil(down).max(14),
            columns: panels.div_ceil(tasks.min(panels)) * pack::panel(self.level),
            rest: pack::lanes(self.level),
        };
        for group in 0..conv.groups {
            let (filter, ld) = (&mut filter[group * columns..], conv.out_channels);
            for_each_block(parallel, filter, ld, (rows, columns), cut, |block| {
                dispatch(
                    self.level,
                    Gradient {
                        conv,
                        level: self.level,
                        group,
                        input,
                        output,
                        block,
                    },
                );
            });
        }
        Ok(())
    }

    /// The product of the transposed input and the gradient of the output, if there is one tap, which
    /// sees a pixel at each stop, and enough channels for the product to pack that gradient.
    fn product<'a>(&self, input: &'a [f32], output: &'a [f32]) -> Option<Gemm<'a>> {
        let Conv { y, x, .. } = &self.conv;
        let (rows, columns) = (self.conv.in_channels, self.conv.out_channels);
        let fits = self.conv.groups == 1 && rows >= PACKED_FOR;
        (fits && self.conv.is_pointwise()).then(|| Gemm {
            level: self.level,
            ..Gemm::new(
                (rows, columns, self.conv.batch * y.output * x.output),
                Matrix::columns(input, rows),
                Matrix::rows(output, columns),
            )
        })
    }
}

/// A block of the gradient: its rows are (tap, input channel), its columns output channels.
struct Gradient<'a> {
    conv: &'a Conv,
    level: Level,
    group: usize,
    input: &'a [f32],
    output: &'a [f32],
    block: Block<'a, f32>,
}

impl Body for Gradient<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let conv = self.conv;
        let lines = conv.batch * conv.y.output;
        let width = pack::panel(self.level) * conv.x.output;
        let at_once = (BLOCK_OF_OUTPUT / width.max(1)).max(1);
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
        let depth = self.conv.group_in();
        let end = self.block.column + self.block.columns;
        let mut panel = self.block.column / pack::panel(self.level);
        loop {
            let (first, width) = pack::panel_at(self.level, self.conv.group_out(), panel);
            let vectors = width / S::LANES;
            let columns = width.min(self.conv.group_out() - first);
            let mut row = 0;
            while row < self.block.rows {
                let (tap, channel) = (
                    (self.block.row + row) / depth,
                    (self.block.row + row) % depth,
                );
                let end = self.block.rows.min(row + depth - channel);
                let start = row;
                tiles!(S, vectors, exact, end - row, |MR, NV| {
                    let channel = channel + row - start;
                    self.tile::<S, MR, NV>(s, &lines, row, tap, channel, first, columns);
                    row += MR;
                });
            }
            panel += 1;
            if first + columns >= end {
                return;
            }
        }
    }

    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn tile<S: Simd, const MR: usize, const NV: usize>(
        &mut self,
        s: S,
        lines: &Range<usize>,
        row: usize,
        tap: usize,
        channel: usize,
        first: usize,
        columns: usize,
    ) {
        let conv = self.conv;
        let (tap_y, tap_x) = (tap / conv.x.size, tap % conv.x.size);
        let stops_y = conv.y.stops(tap_y);
        let stops_x = conv.x.stops(tap_x);
        let lda = conv.x.stride * conv.in_channels;
        let ldb = conv.out_channels;
        let mut sums = [[s.zero(); NV]; MR];
        for line in lines.clone() {
            let (image, out_y) = (line / conv.y.output, line % conv.y.output);
            if !stops_y.contains(&out_y) || stops_x.is_empty() {
                continue;
            }
            let in_y = out_y * conv.y.stride + tap_y * conv.y.dilation - conv.y.before;
            let in_x = stops_x.start * conv.x.stride + tap_x * conv.x.dilation - conv.x.before;
            let pixel = (image * conv.y.input + in_y) * conv.x.input + in_x;
            let a =
                &self.input[pixel * conv.in_channels + self.group * conv.group_in() + channel..];
            let b = &self.output[(line * conv.x.output + stops_x.start) * ldb
                + self.group * conv.group_out()
                + first..];
            let k = stops_x.len();
            sums = tile::columns::<S, MR, NV, true, false>(
                s,
                sums,
                k,
                a,
                lda,
                b,
                ldb,
                columns,
                (&[], 0),
            );
        }
        let mut names = [0; MR];
        for (i, name) in names.iter_mut().enumerate() {
            *name = row + i;
        }
        let store = Store {
            accumulate: lines.start > 0,
            bias: None,
            clamp: None,
            map: None,
        };
        let place = (first - self.block.column, columns);
        tile::store(s, &sums, &mut self.block, &names, place, &store);
    }
}
