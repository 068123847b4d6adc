//! Where the rows of A are: an image seen through the taps of a filter.
//!
//! A plain matrix is an image of one line with one pixel per row and a filter of one tap.

use core::ops::Range;

use super::scale::Scale;
use super::tile::{self, MAX_RUN};
use crate::simd::Simd;

/// As many zeros as the longest run that a tile takes in a step: what lies outside an image.
pub static ZEROS: [f32; MAX_RUN] = [0.0; MAX_RUN];

/// Taps of a filter along one axis: tap `i` reads `offset + i * offset_step` pixels away from the
/// position and uses filter line `line + i * line_step`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taps {
    /// Number of taps.
    pub count: usize,
    /// Offset of tap 0 in pixels.
    pub offset: isize,
    /// Offset between taps.
    pub offset_step: isize,
    /// Filter line of tap 0.
    pub line: usize,
    /// Filter lines between taps.
    pub line_step: usize,
}

impl Taps {
    /// A single tap at the position itself.
    pub const ONE: Self = Self {
        count: 1,
        offset: 0,
        offset_step: 1,
        line: 0,
        line_step: 1,
    };
}

/// One axis (vertical or horizontal) of the walk from positions of the output to the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Axis {
    /// Pixels of the image.
    pub size: usize,
    /// Positions of the output.
    pub out: usize,
    /// The first position that is visited.
    pub phase: usize,
    /// Where the positions that are visited end.
    pub end: usize,
    /// Positions from one visit to the next.
    pub step: usize,
    /// Pixels from one visit to the next.
    pub stride: usize,
    /// Taps at every visit.
    pub taps: Taps,
}

impl Axis {
    /// An axis that visits every pixel once.
    pub const fn plain(size: usize) -> Self {
        Self {
            size,
            out: size,
            phase: 0,
            end: size,
            step: 1,
            stride: 1,
            taps: Taps::ONE,
        }
    }
}

/// The rows of A: images of `y.size` x `x.size` pixels, and the positions that see them.
#[derive(Clone, Copy)]
pub struct Source<'a> {
    /// All images, one after the other.
    pub data: &'a [f32],
    /// Elements from one pixel to the next.
    pub pixel: usize,
    /// First element of a pixel that is used.
    pub channel: usize,
    /// Elements of a pixel that are used.
    pub depth: usize,
    /// Vertical axis.
    pub y: Axis,
    /// Horizontal axis.
    pub x: Axis,
    /// Taps of a line of the filter, including those that this walk leaves out.
    pub filter_width: usize,
    /// What becomes of the elements of a pixel; only where no tap lies outside the image.
    #[cfg(not(without = "scaled"))]
    pub scale: Option<&'a Scale<'a>>,
    /// Whether taps may be left out where they lie outside the image: all of B is finite.
    pub leaves_out: bool,
}

/// A visited position: the row of the output, and the pixel that offset 0 reads.
#[derive(Clone, Copy, Default)]
pub struct Position {
    /// Row of the output.
    pub row: usize,
    /// Pixels before this image.
    image: usize,
    y: isize,
    x: isize,
}

impl Position {
    /// The position that is `count` further on in the same line.
    #[inline(always)]
    pub fn on(&self, count: usize, axis: &Axis) -> Self {
        Self {
            row: self.row + count * axis.step,
            x: self.x + (count * axis.stride).cast_signed(),
            ..*self
        }
    }
}

impl<'a> Source<'a> {
    /// The rows of a matrix, `ld` apart, columns `first .. first + depth`.
    pub fn plain(data: &'a [f32], rows: usize, ld: usize, first: usize, depth: usize) -> Self {
        Self {
            data,
            pixel: ld,
            channel: first,
            depth,
            y: Axis::plain(1),
            x: Axis::plain(rows),
            filter_width: 1,
            #[cfg(not(without = "scaled"))]
            scale: None,
            leaves_out: false,
        }
    }

    #[cfg(not(without = "scaled"))]
    /// The same rows, scaled.
    pub fn scaled_by(mut self, scale: Option<&'a Scale<'a>>) -> Self {
        self.scale = scale;
        self
    }

    /// Whether elements are scaled.
    #[inline(always)]
    pub const fn is_scaled(&self) -> bool {
        #[cfg(not(without = "scaled"))]
        if self.scale.is_some() {
            return true;
        }
        false
    }

    /// From element `from` on what output row `row` and those behind it see before it is scaled,
    /// [`Source::pixel`] elements apart, if every row sees a pixel of its own and there are no
    /// images.
    #[inline(always)]
    pub fn matrix(&self, row: usize, from: usize) -> Option<&'a [f32]> {
        let (y, x) = (&self.y, &self.x);
        let one = (y.size, y.out, y.taps.count, y.taps.offset) == (1, 1, 1, 0);
        let all = (x.step, x.stride, x.phase) == (1, 1, 0) && x.size == x.out;
        (one && all && (x.taps.count, x.taps.offset) == (1, 0))
            .then(|| self.data.get(row * self.pixel + self.channel + from..))
            .flatten()
    }

    /// The visited positions among the output rows `from..to`, in order.
    #[inline(always)]
    pub fn positions(&self, from: usize, to: usize) -> Positions {
        let line = from / self.x.out;
        let (image, out_y, out_x) = (
            line / self.y.out,
            line % self.y.out,
            from - line * self.x.out,
        );
        let mut next = Positions {
            to,
            y: self.y,
            x: self.x,
            image,
            out: (first_visit(out_y, &self.y), first_visit(out_x, &self.x)),
            pixel: (0, 0),
        };
        if next.out.0 != out_y {
            next.out.1 = self.x.phase;
        }
        next.pixel = (
            visit(next.out.0, &self.y) * self.y.stride,
            visit(next.out.1, &self.x) * self.x.stride,
        );
        next.wrap();
        next
    }

    /// Elements `from .. from + run` of the pixel that a position sees through a tap with these
    /// offsets; zeros outside the image. `run` is at most [`MAX_RUN`].
    #[inline(always)]
    pub fn run(
        &self,
        position: &Position,
        (offset_y, offset_x): (isize, isize),
        from: usize,
        run: usize,
    ) -> &'a [f32] {
        let y = position.y.wrapping_add(offset_y).cast_unsigned();
        let x = position.x.wrapping_add(offset_x).cast_unsigned();
        if y < self.y.size && x < self.x.size {
            let pixel = position.image + y * self.x.size + x;
            &self.data[pixel * self.pixel + self.channel + from..][..run]
        } else {
            &ZEROS[..run]
        }
    }

    /// Whether a tap with these offsets lies outside the image for all of these positions.
    #[inline(always)]
    pub fn outside(&self, positions: &[Position], (offset_y, offset_x): (isize, isize)) -> bool {
        positions.iter().all(|position| {
            let y = position.y.wrapping_add(offset_y).cast_unsigned();
            let x = position.x.wrapping_add(offset_x).cast_unsigned();
            y >= self.y.size || x >= self.x.size
        })
    }

    /// Writes to `to` what a position and those after it in its line see through line `tap` of the
    /// taps, pixel after pixel; zeros outside the image. Only with [`Source::neighbours_overlap`].
    #[inline(always)]
    pub fn line<S: Simd>(&self, s: S, position: &Position, tap: usize, to: &mut [f32]) {
        let taps = &self.y.taps;
        let y = position
            .y
            .wrapping_add(taps.offset + tap.cast_signed() * taps.offset_step);
        let y = y.cast_unsigned();
        let x = position.x.wrapping_add(self.x.taps.offset);
        let before = to.len().min((-x).max(0).cast_unsigned() * self.depth);
        let x = x.max(0).cast_unsigned();
        if y >= self.y.size || x >= self.x.size {
            to.fill(0.0);
            return;
        }
        let (outside, to) = to.split_at_mut(before);
        outside.fill(0.0);
        let pixels = position.image + y * self.x.size;
        let line = &self.data[(pixels + x) * self.depth..(pixels + self.x.size) * self.depth];
        let (to, outside) = to.split_at_mut(to.len().min(line.len()));
        tile::copy(s, &line[..to.len()], to);
        outside.fill(0.0);
    }

    /// The image from the first element on that a position sees through some lines of the taps, and
    /// the elements from one of these lines to the next, if all lines have `len` elements inside
    /// the image and `read` from there on in memory. Only with [`Source::neighbours_overlap`].
    #[inline(always)]
    pub fn lines(
        &self,
        position: &Position,
        lines: &Range<usize>,
        (len, read): (usize, usize),
    ) -> Option<(&'a [f32], usize)> {
        let taps = &self.y.taps;
        let apart = taps.offset_step.cast_unsigned();
        let y = position
            .y
            .wrapping_add(taps.offset + lines.start.cast_signed() * taps.offset_step)
            .cast_unsigned();
        let x = position.x.wrapping_add(self.x.taps.offset).cast_unsigned();
        let width = self.x.size * self.depth;
        // What lies before the image wraps around.
        let (y_left, x_left) = (self.y.size.checked_sub(y)?, self.x.size.checked_sub(x)?);
        let last = lines.len().checked_sub(1)?.checked_mul(apart)?;
        if last >= y_left || len > x_left * self.depth {
            return None;
        }
        let first = (position.image + y * self.x.size + x) * self.depth;
        let data = self.data.get(first..)?;
        let pitch = apart.checked_mul(width)?;
        (last * width + read <= data.len()).then_some((data, pitch))
    }

    /// Whether neighbours see all pixels of a line, as they lie in memory, each some pixels further
    /// on than the one before.
    #[inline(always)]
    pub fn neighbours_overlap(&self) -> bool {
        self.pixel == self.depth
            && self.channel == 0
            && (self.x.taps.offset_step, self.x.step, self.x.phase) == (1, 1, 0)
    }

    /// Whether all horizontal taps of these positions lie inside the image and follow each other
    /// in memory, so that a line of taps is one run.
    #[inline(always)]
    pub fn lines_are_runs(&self, positions: &[Position]) -> bool {
        let taps = &self.x.taps;
        let last = taps.offset.wrapping_add(taps.count.cast_signed() - 1);
        taps.count > 1
            && self.pixel == self.depth
            && (taps.offset_step, taps.line_step) == (1, 1)
            && taps.count * self.depth <= MAX_RUN
            && positions
                .iter()
                .all(|p| p.x + taps.offset >= 0 && p.x + last < self.x.size.cast_signed())
    }
}

impl Source<'_> {
    /// Whether the taps that are walked are all taps of the filter in its own order, so that the
    /// rows of B that belong to any part of the walk follow each other.
    #[inline(always)]
    pub fn taps_follow(&self) -> bool {
        let (y, x) = (&self.y.taps, &self.x.taps);
        (y.line_step, x.line_step, x.line) == (1, 1, 0) && x.count == self.filter_width
    }
}

/// The first visited position at or after `from`.
#[inline(always)]
fn first_visit(from: usize, axis: &Axis) -> usize {
    if axis.step == 1 {
        return from.max(axis.phase);
    }
    if from <= axis.phase {
        axis.phase
    } else {
        axis.phase + (from - axis.phase).div_ceil(axis.step) * axis.step
    }
}

/// The number of visits before a visited position.
#[inline(always)]
fn visit(position: usize, axis: &Axis) -> usize {
    if axis.step == 1 {
        position - axis.phase
    } else {
        (position - axis.phase) / axis.step
    }
}

/// Iterates over visited positions.
#[derive(Clone)]
pub struct Positions {
    to: usize,
    y: Axis,
    x: Axis,
    image: usize,
    /// The next position, (y, x).
    out: (usize, usize),
    /// The pixel that offset 0 reads there.
    pixel: (usize, usize),
}

impl Positions {
    #[inline(always)]
    fn wrap(&mut self) {
        if self.out.1 >= self.x.end {
            self.out = (self.out.0 + self.y.step, self.x.phase);
            self.pixel = (self.pixel.0 + self.y.stride, 0);
        }
        if self.out.0 >= self.y.end {
            self.out.0 = self.y.phase;
            self.pixel.0 = 0;
            self.image += 1;
        }
    }

    /// Positions from the next one to the last, if there is one line and the walk visits all.
    #[inline(always)]
    pub fn left(&self) -> usize {
        self.to.min(self.x.end).saturating_sub(self.out.1)
    }

    /// Positions from the next one to the end of its line, if the walk visits all.
    #[inline(always)]
    pub fn left_in_line(&self) -> usize {
        self.x.end - self.out.1.min(self.x.end)
    }

    /// The next position and how many times so many positions follow in its line, it among them.
    /// These are visited. Only if the walk visits all positions of a line.
    #[inline(always)]
    pub fn strips(&mut self, rows: usize) -> (Position, usize) {
        let next = self.next_position();
        let there = if self.out.0 < self.y.end { self.to } else { 0 };
        let left = self.left_in_line().min(there.saturating_sub(next.row));
        let strips = left / rows;
        self.out.1 += strips * rows;
        self.pixel.1 += strips * rows * self.x.stride;
        self.wrap();
        (next, strips)
    }

    #[inline(always)]
    fn next_position(&self) -> Position {
        Position {
            row: (self.image * self.y.out + self.out.0) * self.x.out + self.out.1,
            image: self.image * self.y.size * self.x.size,
            y: self.pixel.0.cast_signed(),
            x: self.pixel.1.cast_signed(),
        }
    }

    /// Fills the front of `strip` with the next positions and returns how many there were.
    #[inline(always)]
    pub fn fill(&mut self, strip: &mut [Position]) -> usize {
        for (count, slot) in strip.iter_mut().enumerate() {
            let next = self.next_position();
            if next.row >= self.to || self.out.1 >= self.x.end || self.out.0 >= self.y.end {
                return count;
            }
            *slot = next;
            self.out.1 += self.x.step;
            self.pixel.1 += self.x.stride;
            self.wrap();
        }
        strip.len()
    }
}
