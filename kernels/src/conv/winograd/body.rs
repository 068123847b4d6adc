//! The two bodies: tiles of the image to points, and points to tiles of the output.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use core::marker::PhantomData;
use core::ops::Range;

use super::form::{Form, MOST};
use super::{BLOCK, Grid, Place, Strips};
use crate::gemm::block::tiles;
use crate::gemm::pack::{panel, panel_at, panels};
use crate::gemm::source::{MAX_RUN, ZEROS};
use crate::gemm::tile::{self, Store};
use crate::simd::blocks::Block;
use crate::simd::{Body, Simd};

/// Most vectors of sums of a strip: 14 lines of a panel of 3.
const SUMS: usize = 42;

/// Transforms the inputs of the tiles of one strip.
pub struct Spread<'a, F> {
    /// Sizes.
    pub grid: &'a Grid,
    /// The image.
    pub input: &'a [f32],
    /// The tiles, counted over all images.
    pub tiles: Range<usize>,
    /// The memory of the strip.
    pub strip: &'a mut [f32],
    /// Which transform.
    pub form: PhantomData<F>,
}

impl<F: Form> Body for Spread<'_, F> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let (grid, depth) = (self.grid, self.grid.conv.in_channels);
        let lines = Strips::lines(S::LEVEL, self.tiles.len());
        let point = grid.point_len(lines);
        for (line, tile) in self.tiles.enumerate() {
            let place = grid.place(tile);
            let mut from = 0;
            while from < depth {
                let run = MAX_RUN.min(depth - from);
                let mut pixels = [[&ZEROS[..run]; MOST]; MOST];
                for i in 0..F::SIDE {
                    let Some(line) = grid.input_line(&place, i) else {
                        continue;
                    };
                    for j in 0..F::SIDE {
                        if let Some(pixel) = grid.input_pixel(&place, line, j) {
                            pixels[i][j] = &self.input[pixel * depth + from..][..run];
                        }
                    }
                }
                let mut at = 0;
                while at < run {
                    let mut x = [[s.zero(); MOST]; MOST];
                    for j in 0..F::SIDE {
                        let mut column = [s.zero(); MOST];
                        for i in 0..F::SIDE {
                            column[i] = s.load_up_to(&pixels[i][j][at..]);
                        }
                        let column = F::input(s, column);
                        for i in 0..F::SIDE {
                            x[i][j] = column[i];
                        }
                    }
                    let channel = from + at;
                    let to = (channel / BLOCK * lines + line) * BLOCK + channel % BLOCK;
                    for i in 0..F::SIDE {
                        let row = F::input(s, x[i]);
                        for j in 0..F::SIDE {
                            let to = (i * F::SIDE + j) * point + to;
                            s.store(&mut self.strip[to..], row[j]);
                        }
                    }
                    at += S::LANES;
                }
                from += run;
            }
        }
    }
}

/// Multiplies the points of some tiles by those of the filter, and makes outputs of them.
pub struct Gather<'a, 'b, F> {
    /// Sizes.
    pub grid: &'a Grid,
    /// The image: what is not finite is multiplied without transforms.
    pub input: &'a [f32],
    /// The strips of the tiles.
    pub points: &'a [f32],
    /// The tiles, counted over all images.
    pub tiles: Range<usize>,
    /// The packed filter.
    pub filter: &'a [f32],
    /// The pixels of the output of these tiles, and some of its channels.
    pub block: &'a mut Block<'b, f32>,
    /// The pixel of the output that row 0 of all blocks is.
    pub first_pixel: usize,
    /// What happens to the sums; the bias has an element per output channel.
    pub store: Store<'a>,
    /// Which transform.
    pub form: PhantomData<F>,
}

impl<F: Form> Body for Gather<'_, '_, F> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let columns = self.grid.conv.out_channels;
        let width = panel(S::LEVEL);
        let from = self.block.column / width;
        let to = (self.block.column + self.block.columns).div_ceil(width);
        self.store.bias = self.store.bias.map(|bias| &bias[self.block.column..]);
        let mut sums = [[s.zero(); SUMS]; MOST * MOST];
        for index in from..to.min(panels(S::LEVEL, columns)) {
            let strips = Strips::new(S::LEVEL, self.tiles.len());
            for strip in 0..strips.count {
                self.strip(s, index, &strips, strip, &mut sums);
            }
        }
        if let Some(function) = self.store.map {
            let columns = self.block.columns;
            for row in 0..self.block.rows {
                self.block.apply(&[row], 0..columns, function);
            }
        }
    }
}

/// A panel of the filter.
#[derive(Clone, Copy)]
struct Panel {
    /// First column.
    first: usize,
    /// Columns in memory.
    width: usize,
    /// Columns that count.
    columns: usize,
}

impl<F: Form> Gather<'_, '_, F> {
    /// Computes the outputs of a strip for one panel.
    #[inline(always)]
    fn strip<S: Simd>(
        &mut self,
        s: S,
        index: usize,
        strips: &Strips,
        strip: usize,
        sums: &mut [[S::F; SUMS]; MOST * MOST],
    ) {
        let (depth, columns) = (self.grid.conv.in_channels, self.grid.conv.out_channels);
        let (first, width) = panel_at(S::LEVEL, columns, index);
        let panel = Panel {
            first,
            width,
            columns: width.min(columns - first),
        };
        let each = self.filter.len() / (F::SIDE * F::SIDE);
        let tiles = strips.tiles(strip);
        let lines = Strips::lines(S::LEVEL, tiles.len());
        let length = self.grid.point_len(lines);
        let points = &self.points[strip * self.grid.strip_len(S::LEVEL, strips.each)..];
        let (count, mut done) = (tiles.len(), 0);
        // The next panel's points, of which each strip asks for a part.
        let (next, part) = (first + width, tile::AHEAD * depth * strip);
        let more = next < self.block.column + self.block.columns;
        let ahead = more && part < panel_at(S::LEVEL, columns, index + 1).1 * depth;
        tiles!(
            S,
            width / S::LANES,
            padded,
            count.saturating_sub(done),
            |MR, NV| {
                for point in 0..F::SIDE * F::SIDE {
                    let a = points[point * length..][..length].as_chunks::<BLOCK>().0;
                    let mut b = &self.filter[point * each + first * depth..][..width * depth];
                    let (mut now, mut left) = ([[s.zero(); NV]; MR], depth);
                    let mut row = done;
                    let mut ahead = if ahead {
                        &self.filter[point * each + next * depth + part..]
                    } else {
                        &[]
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
                    for i in 0..MR {
                        for v in 0..NV {
                            sums[point][(done + i) * NV + v] = now[i][v];
                        }
                    }
                }
                done += MR;
            }
        );
        for line in 0..count {
            let place = self.grid.place(self.tiles.start + tiles.start + line);
            for v in 0..width / S::LANES {
                self.tile(s, &place, panel, v, sums, line * (width / S::LANES) + v);
            }
        }
    }

    /// Writes one vector of channels of the outputs of a tile, from the products `sums[..][at]`.
    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        s: S,
        place: &Place,
        panel: Panel,
        vector: usize,
        sums: &[[S::F; SUMS]; MOST * MOST],
        at: usize,
    ) {
        let column = vector * S::LANES;
        let Some(left) = panel.columns.checked_sub(column).filter(|&left| left > 0) else {
            return;
        };
        let mut x = [[s.zero(); MOST]; 4];
        for j in 0..F::SIDE {
            let mut line = [s.zero(); MOST];
            for i in 0..F::SIDE {
                line[i] = sums[i * F::SIDE + j][at];
            }
            let line = F::output(s, line);
            for i in 0..F::OUT {
                x[i][j] = line[i];
            }
        }
        let mut outputs = [[s.zero(); 4]; 4];
        let mut sound = [s.zero(); 4];
        for i in 0..F::OUT {
            outputs[i] = F::output(s, x[i]);
            for j in 0..F::OUT {
                sound[j] = s.mul_add(outputs[i][j], s.zero(), sound[j]);
            }
        }
        let sound = s.add(s.add(sound[0], sound[1]), s.add(sound[2], sound[3]));
        if s.sum(sound) != 0.0 {
            outputs = self.direct(s, place, panel, column);
        }
        let columns = (panel.first - self.block.column + column, left.min(S::LANES));
        for i in 0..F::OUT {
            let mut rows = [0; 4];
            let Some((first, count)) = self.grid.line(place, i) else {
                return;
            };
            for (j, row) in rows.iter_mut().enumerate() {
                *row = first + j - self.first_pixel - self.block.row;
            }
            let mut sums = [[s.zero()]; 4];
            for j in 0..F::OUT {
                sums[j][0] = outputs[i][j];
            }
            tile::store::<S, 4, 1>(s, &sums, self.block, &rows[..count], columns, &self.store);
        }
    }

    /// The outputs of a tile, summed over the taps: what is not finite meets only those outputs
    /// that see it.
    #[inline(always)]
    fn direct<S: Simd>(&self, s: S, place: &Place, panel: Panel, column: usize) -> [[S::F; 4]; 4] {
        let depth = self.grid.conv.in_channels;
        let each = self.filter.len() / (F::SIDE * F::SIDE);
        let mut outputs = [[s.zero(); 4]; 4];
        for channel in 0..depth {
            let mut taps = [[s.zero(); 3]; 3];
            for (i, j) in (0..F::SIDE).flat_map(|i| (0..F::SIDE).map(move |j| (i, j))) {
                let at = (i * F::SIDE + j) * each + panel.first * depth;
                let x = s.load(&self.filter[at + channel * panel.width + column..]);
                for (a, taps) in taps.iter_mut().enumerate() {
                    for (b, tap) in taps.iter_mut().enumerate() {
                        let weight = F::TAPS[a][i] * F::TAPS[b][j];
                        if weight != 0.0 {
                            *tap = s.mul_add(s.splat(weight), x, *tap);
                        }
                    }
                }
            }
            for (i, outputs) in outputs.iter_mut().enumerate().take(F::OUT) {
                for (j, output) in outputs.iter_mut().enumerate().take(F::OUT) {
                    for (a, taps) in taps.iter().enumerate() {
                        for (b, &tap) in taps.iter().enumerate() {
                            let pixel = self.grid.pixel(place, i + a, j + b);
                            let x = pixel.map_or(0.0, |pixel| self.input[pixel * depth + channel]);
                            *output = s.mul_add(s.splat(x), tap, *output);
                        }
                    }
                }
            }
        }
        outputs
    }
}
