//! Products at the points, and sums over the taps where points do not do: what no transform is
//! part of, once for all of them.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use super::form::{MOST_OUT, MOST_TAPS};
use super::grid::{BLOCK, Grid, Place};
use crate::gemm::block::tiles;
use crate::gemm::pack::panel_at;
use crate::gemm::tile;
use crate::simd::{Body, Simd};

/// Most vectors of sums of a strip at a point: 14 lines of a panel of 3.
const SUMS: usize = 42;

/// A vector in memory, in a line of the cache.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Lanes(pub [f32; 16]);

impl Lanes {
    pub const ZERO: Self = Self([0.0; 16]);
}

/// The sums of a strip at a point for one panel: of each tile those of each vector of columns.
pub type Sums = [Lanes; SUMS];

/// No sums yet.
pub const NO_SUMS: Sums = [Lanes::ZERO; SUMS];

/// A panel of the filter.
#[derive(Clone, Copy, Debug)]
pub struct Panel {
    /// First column.
    pub first: usize,
    /// Columns in memory.
    pub width: usize,
    /// Columns that count.
    pub columns: usize,
}

/// Multiplies the points of some tiles by those of a panel of the filter.
pub struct Products<'a> {
    /// Sizes.
    pub grid: &'a Grid,
    /// The points of the strip, of which each has so many elements, ...
    pub points: (&'a [f32], usize),
    /// ... tiles, and lines of memory.
    pub tiles: (usize, usize),
    /// The packed filter.
    pub filter: &'a [f32],
    /// Which of its panels.
    pub panel: Panel,
    /// Where the part of the next panel begins that is asked for, if any is.
    pub ahead: Option<usize>,
    /// Where the products of each point go.
    pub sums: &'a mut [Sums],
}

impl Body for Products<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (depth, count) = (self.grid.conv.in_channels, self.grid.kind.points());
        let (each, width) = (self.filter.len() / count, self.panel.width);
        let ((points, length), (height, lines)) = (self.points, self.tiles);
        let next = (self.panel.first + width) * depth;
        let mut done = 0;
        tiles!(
            S,
            width / S::LANES,
            padded,
            height.saturating_sub(done),
            |MR, NV| {
                for point in 0..count {
                    let a = points[point * length..][..length].as_chunks::<BLOCK>().0;
                    let filter = &self.filter[point * each..];
                    let mut b = &filter[self.panel.first * depth..][..width * depth];
                    let (mut now, mut left) = ([[s.zero(); NV]; MR], depth);
                    let mut row = done;
                    let mut ahead = match self.ahead {
                        Some(part) => &filter[next + part..],
                        None => &[],
                    };
                    while left > 0 {
                        let Some(a) = a[row..].first_chunk::<MR>() else {
                            break;
                        };
                        let k = left.min(BLOCK);
                        now = tile::strip::<S, MR, NV, BLOCK>(s, now, a, k, b, ahead);
                        b = &b[k * width..];
                        ahead = ahead.get(tile::AHEAD * k..).unwrap_or(&[]);
                        left -= k;
                        row += lines;
                    }
                    let sums = &mut self.sums[point];
                    for i in 0..MR {
                        for v in 0..NV {
                            s.store(&mut sums[(done + i) * NV + v].0, now[i][v]);
                        }
                    }
                }
                done += MR;
            }
        );
    }
}

/// The outputs of a tile, summed over the taps: what is not finite meets only those outputs that
/// see it.
pub struct Direct<'a> {
    /// Sizes.
    pub grid: &'a Grid,
    /// The image.
    pub input: &'a [f32],
    /// The packed filter.
    pub filter: &'a [f32],
    /// Which of its panels, ...
    pub panel: Panel,
    /// ... and which of its columns is the first one.
    pub column: usize,
    /// Which tile.
    pub place: Place,
    /// The outputs, a vector of columns each.
    pub outputs: &'a mut [[Lanes; MOST_OUT]; MOST_OUT],
}

impl Body for Direct<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (grid, panel) = (self.grid, self.panel);
        let (shape, sizes) = (grid.kind.shape(), (grid.conv.y.size, grid.conv.x.size));
        let depth = grid.conv.in_channels;
        let each = self.filter.len() / grid.kind.points();
        let mut outputs = [[s.zero(); MOST_OUT]; MOST_OUT];
        for channel in 0..depth {
            let mut taps = [[s.zero(); MOST_TAPS]; MOST_TAPS];
            for i in 0..shape.points.0 {
                for j in 0..shape.points.1 {
                    let at = (i * shape.points.1 + j) * each + panel.first * depth;
                    let x = s.load(&self.filter[at + channel * panel.width + self.column..]);
                    for a in 0..sizes.0 {
                        let line = if shape.points.0 > 1 {
                            shape.back[a][i]
                        } else {
                            1.0
                        };
                        for b in 0..sizes.1 {
                            let weight = line * shape.back[b][j];
                            if weight != 0.0 {
                                taps[a][b] = s.mul_add(s.splat(weight), x, taps[a][b]);
                            }
                        }
                    }
                }
            }
            for i in 0..shape.out.0 {
                for j in 0..shape.out.1 {
                    for a in 0..sizes.0 {
                        for b in 0..sizes.1 {
                            let pixel = grid.pixel(&self.place, i + a, j + b);
                            let x = pixel.map_or(0.0, |pixel| self.input[pixel * depth + channel]);
                            outputs[i][j] = s.mul_add(s.splat(x), taps[a][b], outputs[i][j]);
                        }
                    }
                }
            }
        }
        for (to, from) in self
            .outputs
            .as_flattened_mut()
            .iter_mut()
            .zip(outputs.as_flattened())
        {
            s.store(&mut to.0, *from);
        }
    }
}

impl Panel {
    /// Panel number `index` of so many columns.
    #[inline(always)]
    pub fn new<S: Simd>(columns: usize, index: usize) -> Self {
        let (first, width) = panel_at(S::LEVEL, columns, index);
        Self {
            first,
            width,
            columns: width.min(columns - first),
        }
    }
}
