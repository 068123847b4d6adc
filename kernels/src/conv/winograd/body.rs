//! The two bodies: tiles of the image to points, and points to tiles of the output.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use core::marker::PhantomData;
use core::ops::Range;

use super::form::{Form, MOST_OUT};
use super::grid::{BLOCK, Grid, Place, Strips};
use super::products::{Direct, Lanes, NO_SUMS, Panel, Products, Sums};
use crate::gemm::pack::{panel, panels};
use crate::gemm::source::ZEROS;
use crate::gemm::tile::{self, MAX_RUN, Store};
use crate::simd::blocks::Block;
use crate::simd::{Body, Simd};

/// Transforms the inputs of the tiles of one strip.
pub struct Spread<'a, F, const M: usize, const N: usize> {
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

impl<F: Form<M, N>, const M: usize, const N: usize> Body for Spread<'_, F, M, N> {
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
                let mut pixels = [[&ZEROS[..run]; N]; M];
                for i in 0..M {
                    let Some(line) = grid.input_line(&place, i) else {
                        continue;
                    };
                    for j in 0..N {
                        if let Some(pixel) = grid.input_pixel(&place, line, j * grid.step::<M>()) {
                            pixels[i][j] = &self.input[pixel * depth + from..][..run];
                        }
                    }
                }
                let mut at = 0;
                while at < run {
                    let mut x = [[s.zero(); N]; M];
                    for j in 0..N {
                        let mut column = [s.zero(); M];
                        for i in 0..M {
                            column[i] = s.load_up_to(&pixels[i][j][at..]);
                        }
                        let column = F::input_column(s, column);
                        for i in 0..M {
                            x[i][j] = column[i];
                        }
                    }
                    let channel = from + at;
                    let to = (channel / BLOCK * lines + line) * BLOCK + channel % BLOCK;
                    for i in 0..M {
                        let row = F::input(s, x[i]);
                        for j in 0..N {
                            let to = (i * N + j) * point + to;
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
pub struct Gather<'a, 'b, F, const M: usize, const N: usize> {
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

impl<F: Form<M, N>, const M: usize, const N: usize> Body for Gather<'_, '_, F, M, N> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        let columns = self.grid.conv.out_channels;
        let width = panel(S::LEVEL);
        let from = self.block.column / width;
        let to = (self.block.column + self.block.columns).div_ceil(width);
        self.store.bias = self.store.bias.map(|bias| &bias[self.block.column..]);
        let mut sums = [[NO_SUMS; N]; M];
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

impl<F: Form<M, N>, const M: usize, const N: usize> Gather<'_, '_, F, M, N> {
    /// Computes the outputs of a strip for one panel.
    #[inline(always)]
    fn strip<S: Simd>(
        &mut self,
        s: S,
        index: usize,
        strips: &Strips,
        strip: usize,
        sums: &mut [[Sums; N]; M],
    ) {
        let (depth, columns) = (self.grid.conv.in_channels, self.grid.conv.out_channels);
        let panel = Panel::new::<S>(columns, index);
        let tiles = strips.tiles(strip);
        let (count, lines) = (tiles.len(), Strips::lines(S::LEVEL, tiles.len()));
        // The next panel's points, of which each strip asks for a part.
        let (next, part) = (panel.first + panel.width, tile::AHEAD * depth * strip);
        let more = next < self.block.column + self.block.columns;
        let ahead = more && part < Panel::new::<S>(columns, index + 1).width * depth;
        s.apart(Products {
            grid: self.grid,
            points: (
                &self.points[strip * self.grid.strip_len(S::LEVEL, strips.each)..],
                self.grid.point_len(lines),
            ),
            tiles: (count, lines),
            filter: self.filter,
            panel,
            ahead: ahead.then_some(part),
            sums: sums.as_flattened_mut(),
        });
        let vectors = panel.width / S::LANES;
        for line in 0..count {
            let place = self.grid.place(self.tiles.start + tiles.start + line);
            for v in 0..vectors {
                self.tile(s, &place, panel, v * S::LANES, sums, line * vectors + v);
            }
        }
    }

    /// Writes one vector of channels of the outputs of a tile, from column `column` of a panel on,
    /// from the products `sums[..][at]`.
    #[inline(always)]
    fn tile<S: Simd>(
        &mut self,
        s: S,
        place: &Place,
        panel: Panel,
        column: usize,
        sums: &[[Sums; N]; M],
        at: usize,
    ) {
        let Some(left) = panel.columns.checked_sub(column).filter(|&left| left > 0) else {
            return;
        };
        let mut x = [[s.zero(); N]; MOST_OUT];
        for j in 0..N {
            let mut column = [s.zero(); M];
            for i in 0..M {
                column[i] = s.load(&sums[i][j][at].0);
            }
            let column = F::output_column(s, column);
            for i in 0..F::SHAPE.out.0 {
                x[i][j] = column[i];
            }
        }
        let mut outputs = [[s.zero(); MOST_OUT]; MOST_OUT];
        let mut sound = [s.zero(); MOST_OUT];
        for i in 0..F::SHAPE.out.0 {
            outputs[i] = F::output(s, x[i]);
            for j in 0..F::SHAPE.out.1 {
                sound[j] = s.mul_add(outputs[i][j], s.zero(), sound[j]);
            }
        }
        let sound = s.add(s.add(sound[0], sound[1]), s.add(sound[2], sound[3]));
        if s.sum(sound) != 0.0 {
            let mut summed = [[Lanes::ZERO; MOST_OUT]; MOST_OUT];
            s.apart(Direct {
                grid: self.grid,
                input: self.input,
                filter: self.filter,
                panel,
                column,
                place: *place,
                outputs: &mut summed,
            });
            for i in 0..F::SHAPE.out.0 {
                for j in 0..F::SHAPE.out.1 {
                    outputs[i][j] = s.load(&summed[i][j].0);
                }
            }
        }
        let columns = (panel.first - self.block.column + column, left.min(S::LANES));
        for i in 0..F::SHAPE.out.0 {
            let mut rows = [0; MOST_OUT];
            let Some((first, count)) = self.grid.line(place, i) else {
                return;
            };
            for (j, row) in rows.iter_mut().enumerate() {
                *row = first + j * self.grid.step::<M>() - self.first_pixel - self.block.row;
            }
            let mut sums = [[s.zero()]; MOST_OUT];
            for j in 0..F::SHAPE.out.1 {
                sums[j][0] = outputs[i][j];
            }
            tile::store::<S, MOST_OUT, 1>(
                s,
                &sums,
                self.block,
                &rows[..count],
                columns,
                &self.store,
            );
        }
    }
}
