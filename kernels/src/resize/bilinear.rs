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
        dispatch(Resize(lines, out));
    });
    Ok(())
}

/// Channels from which on those of a pixel are worth a loop of their own.
const WIDE: usize = 16;
/// Elements of a line that are worked on at a time.
const BLOCK: usize = 512;
/// Parts of pixels that they belong to, at most, where those are wide.
const PARTS: usize = BLOCK / WIDE + 1;

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

/// Elements of a block between the same two pixels.
#[derive(Clone, Copy, Default)]
struct Part {
    /// Where they begin in a line of the input.
    places: [usize; 2],
    /// The weight of the second.
    across: f32,
    len: usize,
}

/// What a block of each line lies between.
struct Block {
    /// Of each element, where pixels are narrow: its places in a line of the input.
    places: [[usize; 2]; BLOCK],
    weights: [f32; BLOCK],
    /// Where they are wide; those beyond are empty.
    parts: [Part; PARTS],
}

impl Block {
    /// The block of `count` elements from `begin` on.
    #[inline(always)]
    fn fill(&mut self, lines: &Lines<'_>, begin: usize, count: usize) {
        let channels = lines.channels;
        let (mut column, mut channel) = (begin / channels, begin % channels);
        let (mut at, mut parts) = (0, self.parts.iter_mut());
        while at < count {
            let (left, right, across) = lines.horizontal.between(column);
            let len = (channels - channel).min(count - at);
            let places = [left, right].map(|pixel| pixel * channels + channel);
            if channels < WIDE {
                for i in 0..len {
                    self.places[at + i] = places.map(|place| place + i);
                    self.weights[at + i] = across;
                }
            } else if let Some(part) = parts.next() {
                *part = Part {
                    places,
                    across,
                    len,
                };
            }
            (column, channel) = (column + 1, 0);
            at += len;
        }
        parts.for_each(|part| part.len = 0);
    }

    /// Interpolates between left and right pixels of a line of the input.
    #[inline(always)]
    fn interpolate(&self, channels: usize, x: &[f32], to: &mut [f32]) {
        if channels < WIDE {
            let elements = to.iter_mut().zip(&self.places).zip(&self.weights);
            for ((to, &[left, right]), &across) in elements {
                *to = between(x[left], x[right], across);
            }
            return;
        }
        let mut rest = to;
        for &Part {
            places,
            across,
            len,
        } in &self.parts
        {
            let (to, after) = rest.split_at_mut(len);
            rest = after;
            let [a, b] = places.map(|place| &x[place..place + len]);
            // Vectors of a length that is known: a loop over as few as a pixel has would not use any.
            let ((a, a_rest), (b, b_rest)) = (a.as_chunks::<WIDE>(), b.as_chunks::<WIDE>());
            let (to, to_rest) = to.as_chunks_mut::<WIDE>();
            for (to, (a, b)) in to.iter_mut().zip(a.iter().zip(b)) {
                for (to, (&a, &b)) in to.iter_mut().zip(a.iter().zip(b)) {
                    *to = between(a, b, across);
                }
            }
            for (to, (&a, &b)) in to_rest.iter_mut().zip(a_rest.iter().zip(b_rest)) {
                *to = between(a, b, across);
            }
        }
    }
}

#[inline(always)]
fn between(a: f32, b: f32, weight: f32) -> f32 {
    a + (b - a) * weight
}

/// Lines block by block: first between left and right, once for each line of the input, then between
/// top and bottom.
struct Resize<'a>(Lines<'a>, &'a mut [f32]);

impl Body for Resize<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Self(lines, out) = self;
        let line = lines.widths[1] * lines.channels;
        let mut block = Block {
            places: [[0; 2]; BLOCK],
            weights: [0.0; BLOCK],
            parts: [Part::default(); PARTS],
        };
        let mut buffers = [[0.0; BLOCK]; 2];
        for begin in (0..line).step_by(BLOCK) {
            let count = BLOCK.min(line - begin);
            block.fill(&lines, begin, count);
            let [upper, lower] = &mut buffers;
            let (mut upper, mut lower) = (&mut upper[..count], &mut lower[..count]);
            // Lines of the input that these are.
            let mut kept = [usize::MAX; 2];
            for (index, out) in out.chunks_exact_mut(line).enumerate() {
                let (wanted, down) = lines.around(index);
                if kept[1] == wanted[0] {
                    core::mem::swap(&mut upper, &mut lower);
                    kept.swap(0, 1);
                }
                if kept[0] != wanted[0] {
                    block.interpolate(lines.channels, lines.line(wanted[0]), upper);
                }
                if kept[1] != wanted[1] {
                    block.interpolate(lines.channels, lines.line(wanted[1]), lower);
                }
                kept = wanted;
                let pairs = upper.iter().zip(lower.iter());
                for (out, (&top, &bottom)) in out[begin..][..count].iter_mut().zip(pairs) {
                    *out = between(top, bottom, down);
                }
            }
        }
    }
}
