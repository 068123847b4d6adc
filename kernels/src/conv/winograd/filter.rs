//! Filters to points.

use core::marker::PhantomData;
use core::sync::atomic::{AtomicBool, Ordering};

use super::Tiles;
use super::form::{Form, Four, MOST, Two};
use crate::conv::{Conv, Direction, Window};
use crate::gemm::pack::panel;
use crate::level::Level;
use crate::parallel::Parallel;
use crate::simd::blocks::{Block, Cut, for_each_block};
use crate::simd::body::{Body, dispatch};

/// Most columns of a panel.
const WIDTH: usize = 48;

/// One element of each column of a panel.
type Columns = [f64; WIDTH];

/// A filter of 3 x 3 taps, `[3, 3, in_channels, out_channels]` of a forward convolution.
#[derive(Clone, Copy, Debug)]
pub struct Taps<'a> {
    /// The sizes of the convolution that is computed: that of [`mirrored`] for the backward one.
    pub conv: &'a Conv,
    /// Which convolution of the filter that is.
    pub direction: Direction,
    /// The filter.
    pub filter: &'a [f32],
}

/// The forward convolution that the backward one of `conv` is, if it has 3 x 3 taps at steps of
/// one: that of the output with the taps in reverse order.
pub fn mirrored(conv: &Conv) -> Option<Conv> {
    let window = |w: &Window| {
        let before = 2_usize.checked_sub(w.before)?;
        ((w.size, w.stride, w.dilation) == (3, 1, 1)).then_some(Window {
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
        match self {
            Self::Two => pack::<Two>(level, taps, out, parallel),
            Self::Four => pack::<Four>(level, taps, out, parallel),
        }
    }
}

fn pack<F: Form>(level: Level, taps: Taps<'_>, out: &mut [f32], parallel: &dyn Parallel) -> bool {
    let (points, depth) = (F::SIDE * F::SIDE, taps.conv.in_channels);
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
            form: PhantomData::<F>,
        };
        if !dispatch(panel) {
            finite.store(false, Ordering::Relaxed);
        }
    });
    finite.into_inner()
}

/// The points of the columns of a panel.
struct Panel<'a, 'b, F> {
    taps: Taps<'a>,
    /// A row per point.
    block: Block<'b, f32>,
    form: PhantomData<F>,
}

impl<F: Form> Body for Panel<'_, '_, F> {
    type Output = bool;

    #[inline(always)]
    fn run(mut self) -> bool {
        let (depth, columns) = (self.taps.conv.in_channels, self.taps.conv.out_channels);
        let (first, width) = (self.block.column / depth, self.block.columns / depth);
        let count = width.min(columns - first);
        let mut taps = [[[0.0; WIDTH]; 3]; 3];
        let mut lines = [[[0.0; WIDTH]; 3]; MOST];
        let mut zeros = [0.0; WIDTH];
        for channel in 0..depth {
            for (tap, taps) in taps.as_flattened_mut().iter_mut().enumerate() {
                self.taps.read(tap, channel, first, &mut taps[..count]);
                for (zero, tap) in zeros.iter_mut().zip(&*taps) {
                    *zero += tap * 0.0;
                }
            }
            for (line, weights) in lines.iter_mut().zip(F::FILTER).take(F::SIDE) {
                for (b, line) in line.iter_mut().enumerate() {
                    *line = combine(weights, [&taps[0][b], &taps[1][b], &taps[2][b]]);
                }
            }
            for (i, [a, b, c]) in lines.iter().enumerate().take(F::SIDE) {
                for (j, weights) in F::FILTER.into_iter().enumerate().take(F::SIDE) {
                    let point = combine(weights, [a, b, c]);
                    let out = &mut self.block.row(i * F::SIDE + j)[channel * width..][..width];
                    for (out, point) in out.iter_mut().zip(point) {
                        *out = point as f32;
                    }
                }
            }
        }
        zeros == [0.0; WIDTH]
    }
}

/// The sum of some elements, each multiplied by its weight.
#[inline(always)]
fn combine(weights: [f64; 3], [a, b, c]: [&Columns; 3]) -> Columns {
    let mut sum = [0.0; WIDTH];
    for (((sum, a), b), c) in sum.iter_mut().zip(a).zip(b).zip(c) {
        *sum = weights[0] * a + weights[1] * b + weights[2] * c;
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
                let from = &self.filter[((8 - tap) * columns + first) * depth + channel..];
                for (to, &from) in to.iter_mut().zip(from.iter().step_by(depth)) {
                    *to = f64::from(from);
                }
            }
        }
    }
}
