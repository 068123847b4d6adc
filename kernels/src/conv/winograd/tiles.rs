//! The tiles that suit a convolution, and the memory that they take.

use super::form::{Form, Shape, with_form};
use super::grid::Grid;
use crate::base::error::{Error, Result};
use crate::base::level::Level;
use crate::conv::geometry::{Conv, Window};
use crate::gemm::pack::packed_len;

/// Channels on either side from which on tiles save time, ...
pub(super) const CHANNELS: usize = 16;
/// ... pixels of the output, of which 4 x 4 tiles need more, because they have more to read: their
/// filters come from far away, ...
const PIXELS: usize = 100;
const PIXELS_OF_FOUR: usize = 256;
/// ... and channels of the input times those of the output: up to the first number, the points of
/// 4 x 4 tiles stay in the second cache; up to the second, they may come from further away ...
const NEAR: usize = 1 << 14;
const FAR: usize = 1 << 16;
/// ... if no pixel of the output has more of them than this, with either kind of tiles.
const REUSED: usize = 32;
const REUSED_BY_TWO: usize = 512;
/// Channels on either side from which on tiles of lines save time, and outputs; ...
const LINE_CHANNELS: usize = 32;
const LINE_PIXELS: usize = 12;
/// ... channels of the input times those of the output that any image repays, and that each pixel
/// of the output does.
const LINE_NEAR: usize = 1 << 18;
const LINE_REUSED: usize = 1 << 14;
/// Elements of points that all threads have room for, at least, ...
pub(super) const KEPT: usize = 512 * 1024;
/// ... which is more for an image that has more than so many times that.
const PART: usize = 4;

/// The tiles of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {
    /// 2 x 2 outputs of 3 x 3 taps.
    Two,
    /// 4 x 4 outputs of 3 x 3 taps.
    Four,
    /// 4 outputs of 3 taps along a line.
    LineOfThree,
    /// 4 outputs of up to 5 taps along a line.
    LineOfFive,
}

impl Tiles {
    /// The tiles that suit a convolution, if any do; the number of images does not count.
    ///
    /// Without `std` none do: filters are packed at every call there, and the transform takes
    /// longer than it saves.
    #[must_use]
    pub fn of(conv: &Conv) -> Option<Self> {
        if !cfg!(feature = "std") || conv.groups != 1 {
            return None;
        }
        let (y, x) = (&conv.y, &conv.x);
        let window = |w: &Window| (w.size, w.stride, w.dilation);
        let tiles = if window(y) == (3, 1, 1) && window(x) == (3, 1, 1) {
            Self::of_images(conv)?
        } else if window(y) == (1, 1, 1) && y.before == 0 && y.input == y.output && x.stride == 1 {
            Self::of_lines(conv)?
        } else {
            return None;
        };
        let image = Conv { batch: 1, ..*conv };
        image.check().ok()?;
        // The other levels have the sizes of one of these.
        [Level::Portable, Level::Avx2, Level::Avx512]
            .into_iter()
            .all(|level| tiles.scratch_len(level, &image) <= most_scratch(&image))
            .then_some(tiles)
    }

    /// The tiles that suit 3 x 3 taps.
    fn of_images(conv: &Conv) -> Option<Self> {
        let (depth, columns) = (conv.in_channels, conv.out_channels);
        let pixels = conv.y.output.saturating_mul(conv.x.output);
        let weights = depth.saturating_mul(columns);
        if depth.min(columns) < CHANNELS || pixels < PIXELS {
            None
        } else if pixels >= PIXELS_OF_FOUR
            && (weights <= NEAR || weights <= FAR.min(pixels.saturating_mul(REUSED)))
        {
            Some(Self::Four)
        } else if weights <= FAR.min(pixels.saturating_mul(REUSED_BY_TWO)) {
            Some(Self::Two)
        } else {
            None
        }
    }

    /// The tiles that suit taps along a line.
    fn of_lines(conv: &Conv) -> Option<Self> {
        let (depth, columns) = (conv.in_channels, conv.out_channels);
        let pixels = conv.y.output.saturating_mul(conv.x.output);
        let weights = depth.saturating_mul(columns);
        // Taps further apart than the input is long do not meet in a tile.
        let meet = (1..=conv.x.input).contains(&conv.x.dilation);
        if !meet
            || depth.min(columns) < LINE_CHANNELS
            || pixels < LINE_PIXELS
            || weights > LINE_NEAR.max(pixels.saturating_mul(LINE_REUSED))
        {
            return None;
        }
        match conv.x.size {
            3 => Some(Self::LineOfThree),
            4 | 5 => Some(Self::LineOfFive),
            _ => None,
        }
    }

    pub(super) const fn shape(self) -> Shape {
        with_form!(self, F, M, N => <F as Form<M, N>>::SHAPE)
    }

    pub(super) const fn points(self) -> usize {
        let (lines, columns) = self.shape().points;
        lines * columns
    }

    /// Whether tiles have as many lines as columns.
    pub(super) const fn are_square(self) -> bool {
        self.shape().points.0 > 1
    }

    /// Elements of a packed filter.
    ///
    /// # Errors
    /// [`Error::Overflow`]; [`Error::Value`] for a level that the processor does not have.
    pub fn packed_len(self, level: Level, conv: &Conv) -> Result<usize> {
        packed_len(level, conv.in_channels, conv.out_channels)?
            .checked_mul(self.points())
            .ok_or(Error::Overflow { argument: "filter" })
    }

    /// Elements of scratch memory: for several images as much as for each of them, but no more
    /// than half as much again as input, filter and output have, unless a line of tiles needs
    /// them. `conv` has been checked.
    pub fn scratch_len(self, level: Level, conv: &Conv) -> usize {
        let grid = Grid::new(level, conv, self);
        let all = grid.tiles.0 * grid.tiles.1;
        if all == 0 || conv.batch == 0 {
            return 0;
        }
        let one = Conv { batch: 1, ..*conv };
        let data = one.input_len() + one.output_len();
        let kept = KEPT.max(data / PART).min(most_scratch(&one));
        let line = grid.points_len(level, grid.tiles.1);
        let image = grid.points_len(level, all).min(kept.max(line));
        let most = most_scratch(conv).max(image);
        image.saturating_mul(conv.batch).min(most)
    }
}

/// Elements of scratch memory that a convolution may have: half as many again as input, filter and
/// output.
pub(super) fn most_scratch(conv: &Conv) -> usize {
    let data = conv.input_len() + conv.filter_len() + conv.output_len();
    data.saturating_add(data / 2)
}
