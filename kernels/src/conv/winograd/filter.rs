//! Filters to points.

use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use super::Tiles;
use super::form::{MOST_TAPS, Shape};
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::conv::{Conv, Direction, Window};
use crate::gemm::pack::panel;
use crate::simd::blocks::{Block, Cut, for_each_block};
use crate::simd::body::{Body, dispatch};

/// Most columns of a panel.
const WIDTH: usize = 48;

/// One element of each column of a panel.
type Columns = [f64; WIDTH];

/// A filter of taps that tiles suit, `[height, width, in_channels, out_channels]` of a forward
/// convolution.
#[derive(Clone, Copy, Debug)]
pub struct Taps<'a> {
    /// The sizes of the convolution that is computed: that of [`mirrored`] for the backward one.
    pub conv: &'a Conv,
    /// Which convolution of the filter that is.
    pub direction: Direction,
    /// The filter.
    pub filter: &'a [f32],
}

/// The forward convolution that the backward one of `conv` is, if its taps go over the image at
/// steps of one: that of the output with the taps in reverse order.
pub fn mirrored(conv: &Conv) -> Option<Conv> {
    let window = |w: &Window| {
        let reach = w.size.checked_sub(1)?.checked_mul(w.dilation)?;
        let before = reach.checked_sub(w.before)?;
        (w.stride == 1).then_some(Window {
            input: w.output,
            output: w.input,
            before,
            ..*w
        })
    };
    Some(Conv {
        y: window(&conv.y)?,
        x: window(&conv.x)?,
        in_channels: conv.out_channels,
        out_channels: conv.in_channels,
        ..*conv
    })
}

impl Tiles {
    /// Transforms and packs a filter into memory that is as long as [`Tiles::packed_len`] says: a
    /// matrix for each point, in panels. Returns whether all of it is finite.
    pub fn pack(
        self,
        level: Level,
        taps: Taps<'_>,
        out: &mut [f32],
        parallel: &dyn Parallel,
    ) -> bool {
        let (points, depth) = (self.points(), taps.conv.in_channels);
        let each = out.len() / points;
        let cut = Cut {
            rows: points,
            columns: panel(level) * depth,
            // The last panel may be half as wide again.
            rest: panel(level) / 2 * depth,
        };
        let finite = AtomicBool::new(true);
        for_each_block(parallel, out, each, (points, each), cut, |block| {
            let panel = Panel {
                taps,
                block,
                shape: self.shape(),
            };
            if !dispatch(panel) {
                finite.store(false, Ordering::Relaxed);
            }
        });
        finite.into_inner()
    }
}

/// The points of the columns of a panel.
struct Panel<'a, 'b> {
    taps: Taps<'a>,
    /// A row per point.
    block: Block<'b, f32>,
    shape: Shape,
}

impl Body for Panel<'_, '_> {
    type Output = bool;

    #[inline(always)]
    fn run(mut self) -> bool {
        let (depth, columns) = (self.taps.conv.in_channels, self.taps.conv.out_channels);
        let (first, width) = (self.block.column / depth, self.block.columns / depth);
        let count = width.min(columns - first);
        let sizes = (self.taps.conv.y.size, self.taps.conv.x.size);
        let mut taps = [[[0.0; WIDTH]; MOST_TAPS]; MOST_TAPS];
        let mut zeros = [0.0; WIDTH];
        for channel in 0..depth {
            for (y, line) in taps.iter_mut().enumerate().take(sizes.0) {
                for (x, taps) in line.iter_mut().enumerate().take(sizes.1) {
                    let tap = y * sizes.1 + x;
                    self.taps.read(tap, channel, first, &mut taps[..count]);
                    for (zero, tap) in zeros.iter_mut().zip(&*taps) {
                        *zero += tap * 0.0;
                    }
                }
            }
            let to = channel * width..(channel + 1) * width;
            let [first @ .., _, _] = &taps[0];
            match self.shape.taps {
                (1, 5) => self.line(to, 0, &taps[0]),
                (1, _) => self.line(to, 0, first),
                _ => {
                    let [a, b, c, ..] = &taps;
                    for i in 0..self.shape.points.0 {
                        let weights = &self.shape.filter[i];
                        let column = |x: usize| combine(weights, [&a[x], &b[x], &c[x]]);
                        self.line(to.clone(), i, &[column(0), column(1), column(2)]);
                    }
                }
            }
        }
        zeros == [0.0; WIDTH]
    }
}

impl Panel<'_, '_> {
    /// Writes the points of line `i`, made of the taps along it.
    #[inline(always)]
    fn line<const N: usize>(&mut self, to: Range<usize>, i: usize, taps: &[Columns; N]) {
        let side = self.shape.points.1;
        for (j, weights) in self.shape.filter.iter().enumerate().take(side) {
            let point = combine(weights, taps.each_ref());
            let out = &mut self.block.row(i * side + j)[to.clone()];
            for (out, point) in out.iter_mut().zip(point) {
                *out = point as f32;
            }
        }
    }
}

/// The sum of some taps, each multiplied by its weight.
#[inline(always)]
fn combine<const N: usize>(weights: &[f64; MOST_TAPS], taps: [&Columns; N]) -> Columns {
    let mut sum = [0.0; WIDTH];
    for (column, sum) in sum.iter_mut().enumerate() {
        let mut all = weights[0] * taps[0][column];
        for tap in 1..N {
            all += weights[tap] * taps[tap][column];
        }
        *sum = all;
    }
    sum
}

impl Taps<'_> {
    /// Reads one tap of some columns.
    #[inline(always)]
    fn read(&self, tap: usize, channel: usize, first: usize, to: &mut [f64]) {
        let (depth, columns) = (self.conv.in_channels, self.conv.out_channels);
        match self.direction {
            Direction::Forward => {
                let from = &self.filter[(tap * depth + channel) * columns + first..];
                for (to, &from) in to.iter_mut().zip(from) {
                    *to = f64::from(from);
                }
            }
            Direction::Backward => {
                let last = self.conv.y.size * self.conv.x.size - 1;
                let from = &self.filter[((last - tap) * columns + first) * depth + channel..];
                for (to, &from) in to.iter_mut().zip(from.iter().step_by(depth)) {
                    *to = f64::from(from);
                }
            }
        }
    }
}
