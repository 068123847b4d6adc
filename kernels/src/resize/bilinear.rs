//! Bilinear interpolation of images.

use super::{Axis, Corners, check};
use crate::adapt::check_len;
use crate::chunks::{chunk_len, for_each_chunk};
use crate::error::Result;
use crate::parallel::Parallel;
use crate::shape::Shape;
use crate::simd::body::{Body, dispatch};

/// Interpolates between the four pixels of `x` around each of `out`.
///
/// # Errors
/// As [`resize_nearest`](super::resize_nearest).
pub fn resize_bilinear(
    (x, shape): (&[f32], &Shape),
    (out, out_shape): (&mut [f32], &Shape),
    corners: Corners,
    parallel: &dyn Parallel,
) -> Result<()> {
    let ([_, height, width, channels], [_, rows, columns, _]) = check(shape, out_shape)?;
    check_len("images", x.len(), shape)?;
    check_len("resized_images", out.len(), out_shape)?;
    if out.is_empty() {
        return Ok(());
    }
    let (vertical, horizontal) = (
        Axis::new(height, rows, corners),
        Axis::new(width, columns, corners),
    );
    let line = columns * channels;
    let chunk = chunk_len(parallel, out.len(), line, 4);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let lines = Lines {
            x,
            channels,
            heights: [height, rows],
            widths: [width, columns],
            vertical: &vertical,
            horizontal: &horizontal,
            first: start / line,
        };
        if channels < WIDE {
            dispatch(Narrow(lines, out));
        } else {
            dispatch(Wide(lines, out));
        }
    });
    Ok(())
}

/// Channels from which on those of a pixel are worth a loop of their own.
const WIDE: usize = 32;
/// Elements of a line that are worked on at a time.
const BLOCK: usize = 512;

/// What some lines of the output of [`resize_bilinear`] lie between.
struct Lines<'a> {
    x: &'a [f32],
    channels: usize,
    /// Of an image of the input, and of the output.
    heights: [usize; 2],
    widths: [usize; 2],
    vertical: &'a Axis,
    horizontal: &'a Axis,
    /// The first of the lines of the output.
    first: usize,
}

impl Lines<'_> {
    /// The lines of the input above and below line `index` of these, and the weight of the second.
    #[inline(always)]
    fn around(&self, index: usize) -> ([usize; 2], f32) {
        let ([height, rows], row) = (self.heights, self.first + index);
        let (top, bottom, down) = self.vertical.between(row % rows);
        let base = row / rows * height;
        ([base + top, base + bottom], down)
    }

    /// Line `row` of the input.
    #[inline(always)]
    fn line(&self, row: usize) -> &[f32] {
        let len = self.widths[0] * self.channels;
        &self.x[row * len..][..len]
    }
}

/// Lines pixel by pixel.
struct Wide<'a>(Lines<'a>, &'a mut [f32]);

impl Body for Wide<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(lines, out) = self;
        let channels = lines.channels;
        for (index, out) in out.chunks_mut(lines.widths[1] * channels).enumerate() {
            let (around, down) = lines.around(index);
            let [upper, lower] = around.map(|row| lines.line(row));
            for (column, out) in out.chunks_exact_mut(channels).enumerate() {
                let (left, right, across) = lines.horizontal.between(column);
                let pixels = |line| {
                    let [a, b] = [left, right].map(|pixel| pixel_of(line, pixel, channels));
                    a.iter().zip(b)
                };
                let pairs = pixels(upper).zip(pixels(lower));
                for (out, ((&a, &b), (&c, &d))) in out.iter_mut().zip(pairs) {
                    let top = a + (b - a) * across;
                    let bottom = c + (d - c) * across;
                    *out = top + (bottom - top) * down;
                }
            }
        }
    }
}

/// Pixel `column` of a line.
#[inline(always)]
fn pixel_of(line: &[f32], column: usize, channels: usize) -> &[f32] {
    &line[column * channels..][..channels]
}

/// Lines element by element: first between left and right, once for each line of the input, then
/// between top and bottom.
struct Narrow<'a>(Lines<'a>, &'a mut [f32]);

impl Body for Narrow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(lines, out) = self;
        let channels = lines.channels;
        let line = lines.widths[1] * channels;
        let mut places = [[0; 2]; BLOCK];
        let mut weights = [0.0; BLOCK];
        let mut buffers = [[0.0; BLOCK]; 2];
        for begin in (0..line).step_by(BLOCK) {
            let count = BLOCK.min(line - begin);
            let (mut column, mut channel) = (begin / channels, begin % channels);
            let (mut left, mut right, mut across) = lines.horizontal.between(column);
            for (place, weight) in places.iter_mut().zip(&mut weights).take(count) {
                if channel == channels {
                    (column, channel) = (column + 1, 0);
                    (left, right, across) = lines.horizontal.between(column);
                }
                *place = [left, right].map(|pixel| pixel * channels + channel);
                *weight = across;
                channel += 1;
            }
            let between = |row: usize, to: &mut [f32; BLOCK]| {
                let x = lines.line(row);
                let elements = to.iter_mut().zip(&places).zip(&weights).take(count);
                for ((to, &[left, right]), &across) in elements {
                    let (a, b) = (x[left], x[right]);
                    *to = a + (b - a) * across;
                }
            };
            let [upper, lower] = &mut buffers;
            let (mut upper, mut lower) = (upper, lower);
            // Lines of the input that these are.
            let mut kept = [usize::MAX; 2];
            for (index, out) in out.chunks_exact_mut(line).enumerate() {
                let (wanted, down) = lines.around(index);
                if kept[1] == wanted[0] {
                    core::mem::swap(&mut upper, &mut lower);
                    kept.swap(0, 1);
                }
                if kept[0] != wanted[0] {
                    between(wanted[0], upper);
                }
                if kept[1] != wanted[1] {
                    between(wanted[1], lower);
                }
                kept = wanted;
                let pairs = upper.iter().zip(lower.iter());
                for (out, (&top, &bottom)) in out[begin..][..count].iter_mut().zip(pairs) {
                    *out = top + (bottom - top) * down;
                }
            }
        }
    }
}
