//! Where tiles lie: in images, in lines, and in strips of memory.

use core::ops::Range;

use super::Tiles;
use crate::base::level::Level;
use crate::conv::Conv;
use crate::gemm::block::strip_rows;

/// Channels of a tile that lie side by side.
pub const BLOCK: usize = 32;
/// Elements between the points of a strip, so that no two fall on the same lines of a cache.
const GAP: usize = 16;

/// The tiles of all images, line by line.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    pub conv: Conv,
    pub kind: Tiles,
    /// Outputs of a tile along each axis.
    out: (usize, usize),
    /// Tiles of an image: lines, and those of a line. An image of one line may be cut into several.
    pub tiles: (usize, usize),
    /// Tiles of an image that the last line has no outputs for.
    missing: usize,
    /// Columns from one output of a tile to the next, and from one input to the next.
    step: usize,
}

/// Where a tile is.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub image: usize,
    /// The first output, vertical and horizontal.
    pub output: (usize, usize),
}

impl Grid {
    pub fn new(level: Level, conv: &Conv, kind: Tiles) -> Self {
        let out = kind.shape().out;
        let step = conv.x.dilation;
        // Outputs that are a step apart have tiles of their own.
        let across = step.min(conv.x.output) * conv.x.output.div_ceil(step).div_ceil(out.1);
        let lines = conv.y.output.div_ceil(out.0);
        let cut = !kind.are_square() && conv.y.output == 1 && step == 1;
        let tiles = if cut {
            let each = strip_rows(level).min(across).max(1);
            (across.div_ceil(each), each)
        } else {
            (lines, across)
        };
        Self {
            conv: *conv,
            kind,
            out,
            tiles,
            missing: tiles.0 * tiles.1 - lines * across,
            step,
        }
    }

    /// The tiles of some lines, counted over all images.
    pub fn tiles(&self, lines: Range<usize>) -> Range<usize> {
        let missing = if lines.end.is_multiple_of(self.tiles.0) {
            self.missing
        } else {
            0
        };
        lines.start * self.tiles.1..lines.end * self.tiles.1 - missing
    }

    /// Where a tile is, counted over all images.
    #[inline(always)]
    pub fn place(&self, tile: usize) -> Place {
        let (line, x) = (tile / self.tiles.1, tile % self.tiles.1);
        let (image, line) = (line / self.tiles.0, line % self.tiles.0);
        let output = if self.is_cut() {
            (0, (line * self.tiles.1 + x) * self.out.1)
        } else if self.step > 1 {
            let step = self.step.min(self.conv.x.output);
            let (first, x) = (x % step, x / step);
            (line, first + x * self.step * self.out.1)
        } else {
            (line * self.out.0, x * self.out.1)
        };
        Place { image, output }
    }

    /// Columns from one output of a tile of `M` lines to the next: 1 if there are several.
    #[inline(always)]
    pub const fn step<const M: usize>(&self) -> usize {
        if M > 1 { 1 } else { self.step }
    }

    /// Whether a line of an image is cut into lines of tiles.
    #[inline(always)]
    fn is_cut(&self) -> bool {
        self.tiles.0 > self.conv.y.output
    }

    /// The first pixel of the line that a tile reads at `i`, if it lies in the image.
    #[inline(always)]
    pub fn input_line(&self, place: &Place, i: usize) -> Option<usize> {
        let (y, x) = (&self.conv.y, &self.conv.x);
        let line = (place.output.0 + i).checked_sub(y.before)?;
        (line < y.input).then_some((place.image * y.input + line) * x.input)
    }

    /// The pixel of a line that a tile reads so many columns behind its first one, if it lies in
    /// the image.
    #[inline(always)]
    pub fn input_pixel(&self, place: &Place, line: usize, column: usize) -> Option<usize> {
        let x = &self.conv.x;
        let at = (place.output.1 + column).checked_sub(x.before)?;
        (at < x.input).then_some(line + at)
    }

    /// The pixel that a tile reads at (`i`, `j`), if it lies in the image.
    #[inline(always)]
    pub fn pixel(&self, place: &Place, i: usize, j: usize) -> Option<usize> {
        self.input_pixel(place, self.input_line(place, i)?, j * self.step)
    }

    /// The first pixel of line `i` of the outputs of a tile, and how many there are.
    #[inline(always)]
    pub fn line(&self, place: &Place, i: usize) -> Option<(usize, usize)> {
        let (y, x) = (self.conv.y.output, self.conv.x.output);
        let line = place.output.0 + i;
        (line < y && place.output.1 < x).then(|| {
            let first = (place.image * y + line) * x + place.output.1;
            let left = x - place.output.1;
            // A division takes as long as many outputs.
            let count = if self.step > 1 {
                left.div_ceil(self.step)
            } else {
                left
            };
            (first, self.out.1.min(count))
        })
    }

    /// The first pixel of the output of a line of tiles, counted over all images.
    pub fn first_pixel(&self, line: usize) -> usize {
        let (image, line) = (line / self.tiles.0, line % self.tiles.0);
        let (y, x) = (self.conv.y.output, self.conv.x.output);
        let before = if self.is_cut() {
            (line * self.tiles.1 * self.out.1).min(x)
        } else {
            (line * self.out.0).min(y) * x
        };
        image * y * x + before
    }

    /// Whether so many lines of tiles have as many pixels each, but perhaps the last.
    pub fn has_equal_lines(&self, lines: usize) -> bool {
        let whole = if self.is_cut() {
            self.conv.x.output.is_multiple_of(self.tiles.1 * self.out.1)
        } else {
            self.conv.y.output.is_multiple_of(self.out.0)
        };
        whole || lines <= self.tiles.0
    }

    /// Elements of a point of a strip of so many lines.
    #[inline(always)]
    pub fn point_len(&self, lines: usize) -> usize {
        self.conv.in_channels.div_ceil(BLOCK) * BLOCK * lines + GAP
    }

    /// Elements of a strip of so many tiles.
    #[inline(always)]
    pub fn strip_len(&self, level: Level, tiles: usize) -> usize {
        self.kind.points() * self.point_len(Strips::lines(level, tiles))
    }

    /// Elements of the points of so many tiles.
    pub fn points_len(&self, level: Level, tiles: usize) -> usize {
        let strips = Strips::new(level, tiles);
        let last = strips.tiles(strips.count - 1).len();
        (strips.count - 1) * self.strip_len(level, strips.each) + self.strip_len(level, last)
    }
}

/// Tiles cut into strips, each as many as the micro-kernels take in a call.
#[derive(Clone, Copy, Debug)]
pub struct Strips {
    tiles: usize,
    /// Tiles of a strip; the last one may have fewer.
    pub each: usize,
    pub count: usize,
}

impl Strips {
    #[inline(always)]
    pub fn new(level: Level, tiles: usize) -> Self {
        let each = strip_rows(level);
        Self {
            tiles,
            each,
            count: tiles.div_ceil(each).max(1),
        }
    }

    /// The tiles of a strip.
    #[inline(always)]
    pub fn tiles(&self, strip: usize) -> Range<usize> {
        let first = strip * self.each;
        first.min(self.tiles)..(first + self.each).min(self.tiles)
    }

    /// Lines of memory for so many tiles of a strip: the micro-kernels may read more than count.
    #[inline(always)]
    pub fn lines(level: Level, tiles: usize) -> usize {
        match (level, tiles) {
            (Level::Avx512, 9..) => strip_rows(level),
            (Level::Avx512, 5..=7) => 7,
            _ => tiles.next_multiple_of(4),
        }
    }

    /// What so many tiles cost: the lines that the micro-kernels multiply.
    pub fn cost(level: Level, tiles: usize) -> usize {
        let strips = Self::new(level, tiles);
        let last = Self::lines(level, strips.tiles(strips.count - 1).len());
        (strips.count - 1) * strips.each + last.min(strips.each)
    }
}
