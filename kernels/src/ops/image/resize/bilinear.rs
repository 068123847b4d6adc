//! Bilinear interpolation of images.

use super::{Corners, Scaling};
use crate::base::adapt::check_len;
use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
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
    let scaling = Scaling::new(shape, out_shape, corners)?;
    check_len("images", x.len(), shape)?;
    check_len("resized_images", out.len(), out_shape)?;
    if out.is_empty() {
        return Ok(());
    }
    let line = scaling.widths[1] * scaling.channels;
    let chunk = chunk_len(parallel, out.len(), line, 4);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        let lines = Lines {
            x,
            scaling: &scaling,
            first: start / line,
        };
        match scaling.channels {
            ..NARROW => dispatch(Elements(lines, out)),
            NARROW..WIDE => dispatch(Blocks(lines, out)),
            WIDE.. => dispatch(Pixels(lines, out)),
        }
    });
    Ok(())
}

/// Channels from which on those of a pixel are worth vectors of their own, ...
const NARROW: usize = 6;
/// ... and from which on lines are not worth being kept.
const WIDE: usize = 32;
/// Elements of a line that are worked on at a time.
const BLOCK: usize = 512;
/// Elements of a pixel that are worked on at a time.
const STEP: usize = 16;

/// What some lines of the output of [`resize_bilinear`] lie between.
struct Lines<'a> {
    x: &'a [f32],
    scaling: &'a Scaling,
    /// The first of the lines of the output.
    first: usize,
}

impl Lines<'_> {
    /// The lines of the input above and below line `index` of these, and the weight of the second.
    #[inline(always)]
    fn around(&self, index: usize) -> ([usize; 2], f32) {
        self.scaling.around(self.first + index)
    }

    /// The place of line `row` of the input.
    #[inline(always)]
    fn place(&self, row: usize) -> usize {
        row * self.scaling.widths[0] * self.scaling.channels
    }

    /// Line `row` of the input.
    #[inline(always)]
    fn line(&self, row: usize) -> &[f32] {
        &self.x[self.place(row)..][..self.place(1)]
    }

    /// Fills elements `begin..begin + count` of the lines of `out`: interpolates between lines of
    /// the input, which `between` writes.
    #[inline(always)]
    fn keep(
        &self,
        out: &mut [f32],
        (begin, count): (usize, usize),
        [mut upper, mut lower]: [&mut Kept; 2],
        between: impl Fn(usize, &mut Kept),
    ) {
        let line = self.scaling.widths[1] * self.scaling.channels;
        // Lines of the input that these are.
        let mut kept = [usize::MAX; 2];
        for (index, out) in out.chunks_exact_mut(line).enumerate() {
            let (wanted, down) = self.around(index);
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

/// Elements of a line of the input between left and right, and room for a step beyond.
type Kept = [f32; BLOCK + STEP];

/// Lines pixel by pixel.
struct Pixels<'a>(Lines<'a>, &'a mut [f32]);

impl Body for Pixels<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(lines, out) = self;
        let channels = lines.scaling.channels;
        for (index, out) in out
            .chunks_mut(lines.scaling.widths[1] * channels)
            .enumerate()
        {
            let (around, down) = lines.around(index);
            let [upper, lower] = around.map(|row| lines.line(row));
            for (column, out) in out.chunks_exact_mut(channels).enumerate() {
                let (left, right, across) = lines.scaling.horizontal.between(column);
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
struct Elements<'a>(Lines<'a>, &'a mut [f32]);

impl Body for Elements<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(lines, out) = self;
        let Scaling {
            channels,
            widths,
            horizontal,
            ..
        } = lines.scaling;
        let line = widths[1] * channels;
        let mut places = [[0; 2]; BLOCK];
        let mut weights = [0.0; BLOCK];
        let [mut upper, mut lower] = [[0.0; BLOCK + STEP]; 2];
        for begin in (0..line).step_by(BLOCK) {
            let count = BLOCK.min(line - begin);
            let (mut column, mut channel) = (begin / channels, begin % channels);
            let (mut left, mut right, mut across) = horizontal.between(column);
            for (place, weight) in places.iter_mut().zip(&mut weights).take(count) {
                if channel == *channels {
                    (column, channel) = (column + 1, 0);
                    (left, right, across) = horizontal.between(column);
                }
                *place = [left, right].map(|pixel| pixel * channels + channel);
                *weight = across;
                channel += 1;
            }
            let between = |row: usize, to: &mut Kept| {
                let x = lines.line(row);
                let elements = to.iter_mut().zip(&places).zip(&weights).take(count);
                for ((to, &[left, right]), &across) in elements {
                    let (a, b) = (x[left], x[right]);
                    *to = a + (b - a) * across;
                }
            };
            lines.keep(out, (begin, count), [&mut upper, &mut lower], between);
        }
    }
}

/// As [`Elements`], in steps of vectors from each pixel on: what goes beyond the pixel is written
/// again with the next one.
struct Blocks<'a>(Lines<'a>, &'a mut [f32]);

impl Body for Blocks<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(lines, out) = self;
        let Scaling {
            channels,
            widths,
            horizontal,
            ..
        } = *lines.scaling;
        let mut pixels = [(0, 0, 0.0); BLOCK / NARROW];
        let [mut upper, mut lower] = [[0.0; BLOCK + STEP]; 2];
        let at_once = (BLOCK / channels).clamp(1, pixels.len());
        for first in (0..widths[1]).step_by(at_once) {
            let pixels = &mut pixels[..at_once.min(widths[1] - first)];
            for (i, pixel) in pixels.iter_mut().enumerate() {
                let (left, right, across) = horizontal.between(first + i);
                *pixel = (left * channels, right * channels, across);
            }
            let between = |row: usize, to: &mut Kept| {
                let line = lines.place(row);
                for (i, &(left, right, across)) in pixels.iter().enumerate() {
                    for channel in (0..channels).step_by(STEP) {
                        let [a, b] = [left, right]
                            .map(|pixel| step(lines.x, line + pixel + channel, channels - channel));
                        let to = &mut to[i * channels + channel..][..STEP];
                        for (to, (a, b)) in to.iter_mut().zip(a.into_iter().zip(b)) {
                            *to = a + (b - a) * across;
                        }
                    }
                }
            };
            let range = (first * channels, pixels.len() * channels);
            lines.keep(out, range, [&mut upper, &mut lower], between);
        }
    }
}

/// The elements of `x` from place `at` on, of which `wanted` must be there.
#[inline(always)]
fn step(x: &[f32], at: usize, wanted: usize) -> [f32; STEP] {
    if let Some(&found) = x[at..].first_chunk() {
        return found;
    }
    let mut last = [0.0; STEP];
    let wanted = wanted.min(STEP);
    last[..wanted].copy_from_slice(&x[at..][..wanted]);
    last
}
