//! Filters, plain and packed.

use super::direct;
use super::geometry::{Conv, check_len};
use super::winograd::{self, Tiles};
use crate::base::error::{Error, Result};
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::gemm::pack::{self, Matrix, Packed, Stack};
use crate::gemm::{cut, cut_packing};
use crate::simd::blocks::Cut;

/// Which way a packed filter is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the input to the output.
    Forward,
    /// From the output to the input: transposed convolution and the gradient of the input.
    Backward,
}

/// A filter `[height, width, in_channels / groups, out_channels]`.
#[derive(Clone, Copy, Debug)]
pub enum Filter<'a> {
    #[cfg(not(without = "plain"))]
    /// As it lies in memory.
    Plain(&'a [f32]),
    /// Packed before.
    Packed(PackedFilter<'a>),
}

impl Filter<'_> {
    /// How the product of a group is cut into blocks: a plain filter is packed for it alone.
    pub(super) fn cut(
        &self,
        level: Level,
        direction: Direction,
        conv: &Conv,
        threads: usize,
    ) -> Cut {
        let sizes = sizes(direction, conv);
        match self {
            #[cfg(not(without = "plain"))]
            Filter::Plain(_) => cut_packing(level, sizes, threads),
            Filter::Packed(_) => cut(level, sizes, threads),
        }
    }
}

/// A filter in the order in which the micro-kernels read it.
#[derive(Clone, Copy, Debug)]
pub struct PackedFilter<'a> {
    pub(crate) level: Level,
    pub(crate) direction: Direction,
    /// The tiles that the filter is transformed for, if it is.
    pub(crate) tiles: Option<Tiles>,
    pub(crate) data: &'a [f32],
}

impl<'a> PackedFilter<'a> {
    /// Elements of memory that [`PackedFilter::pack`] fills for the level in use. Whatever the
    /// batch, the number is the same: filters of 3 x 3 taps, or 3 to 5 along a line, that go over
    /// the image in steps of one may be transformed and then have up to four times as many elements.
    ///
    /// # Errors
    /// [`Error::Overflow`], or [`Error::Value`] if the sizes do not fit together.
    pub fn len(direction: Direction, conv: &Conv) -> Result<usize> {
        Self::tiled_len(level(), direction, conv, tiles(direction, conv))
    }

    fn tiled_len(
        level: Level,
        direction: Direction,
        conv: &Conv,
        tiles: Option<Tiles>,
    ) -> Result<usize> {
        match tiles {
            Some(tiles) => {
                conv.check()?;
                tiles.packed_len(level, conv)
            }
            None => Self::len_for(level, direction, conv),
        }
    }

    /// Elements of a filter that is not transformed.
    pub(crate) fn len_for(level: Level, direction: Direction, conv: &Conv) -> Result<usize> {
        conv.check()?;
        if direct::fits(level, conv) {
            pack::check_level(level)?;
            return Ok(conv.filter_len());
        }
        let (rows, columns) = size(direction, conv);
        pack::packed_len(level, rows, columns)?
            .checked_mul(conv.groups)
            .ok_or(Error::Overflow { argument: "filter" })
    }

    /// Packs `filter` into the front of `out`.
    ///
    /// # Errors
    /// [`Error::Length`] if `filter` has not the length that `conv` says or `out` is too short.
    pub fn pack(
        direction: Direction,
        conv: &Conv,
        filter: &[f32],
        out: &'a mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        Self::pack_for(level(), direction, conv, filter, out, parallel)
    }

    /// As [`PackedFilter::pack`], for a given level.
    ///
    /// # Errors
    /// As [`PackedFilter::pack`].
    pub fn pack_for(
        level: Level,
        direction: Direction,
        conv: &Conv,
        filter: &[f32],
        out: &'a mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        Self::tiled(
            level,
            direction,
            conv,
            tiles(direction, conv),
            (filter, out),
            parallel,
        )
    }

    pub(super) fn tiled(
        level: Level,
        direction: Direction,
        conv: &Conv,
        tiles: Option<Tiles>,
        (filter, out): (&[f32], &'a mut [f32]),
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        let expected = Self::tiled_len(level, direction, conv, tiles)?;
        check_len("filter", filter.len(), conv.filter_len())?;
        let found = out.len();
        let data = out.get_mut(..expected).ok_or(Error::Length {
            argument: "packed",
            found,
            expected,
        })?;
        let ld = conv.out_channels;
        if let Some(tiles) = tiles {
            let taps = winograd::Taps {
                conv,
                direction,
                filter,
            };
            tiles.pack(level, taps, data, parallel);
        } else if direct::fits(level, conv) {
            direct::pack(direction, conv, filter, data);
        } else if !data.is_empty() {
            let each = expected / conv.groups;
            for (group, data) in data.chunks_exact_mut(each).enumerate() {
                let filter = &filter[group * conv.group_out()..];
                let stack = match direction {
                    Direction::Forward => Stack::one(Matrix::rows(filter, ld)),
                    #[cfg(not(without = "transposed"))]
                    Direction::Backward => Stack {
                        matrix: Matrix::columns(filter, ld),
                        count: conv.y.size * conv.x.size,
                        distance: conv.group_in() * ld,
                    },
                    #[cfg(without = "transposed")]
                    Direction::Backward => {
                        let (argument, expected) = ("direction", "forward");
                        return Err(Error::Value { argument, expected });
                    }
                };
                let cut = cut_packing(level, sizes(direction, conv), parallel.threads());
                pack::pack_blocks(level, &stack, size(direction, conv), cut, data, parallel);
            }
        }
        Ok(Self {
            level,
            direction,
            tiles,
            data,
        })
    }

    /// A filter that [`PackedFilter::pack`] has packed before, on this processor, with the same
    /// level.
    ///
    /// # Errors
    /// [`Error::Length`] if `data` is shorter than [`PackedFilter::len`].
    pub fn from_packed(direction: Direction, conv: &Conv, data: &'a [f32]) -> Result<Self> {
        let expected = Self::len(direction, conv)?;
        let found = data.len();
        let data = data.get(..expected).ok_or(Error::Length {
            argument: "packed",
            found,
            expected,
        })?;
        Ok(Self {
            level: level(),
            direction,
            tiles: tiles(direction, conv),
            data,
        })
    }

    /// The matrix that the filter of a single group is.
    pub(crate) fn matrix(&self, conv: &Conv) -> Packed<'a> {
        let (k, n) = size(self.direction, conv);
        Packed {
            level: self.level,
            k,
            n,
            data: self.data,
        }
    }

    /// The filter itself if it is packed and fits, else packs it into `scratch`.
    pub(crate) fn of(
        filter: &Filter<'a>,
        level: Level,
        direction: Direction,
        conv: &Conv,
        scratch: &'a mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        #[cfg(without = "plain")]
        let _ = (scratch, parallel);
        match filter {
            #[cfg(not(without = "plain"))]
            Filter::Plain(filter) => {
                let expected = Self::len_for(level, direction, conv)?;
                if scratch.len() < expected {
                    return Err(Error::Length {
                        argument: "scratch",
                        found: scratch.len(),
                        expected,
                    });
                }
                let memory = (*filter, scratch);
                Self::tiled(level, direction, conv, None, memory, parallel)
            }
            Filter::Packed(packed) => {
                let expected = Self::tiled_len(level, direction, conv, packed.tiles)?;
                check_len("packed", packed.data.len(), expected)?;
                if packed.direction == direction && packed.level == level {
                    Ok(*packed)
                } else {
                    Err(Error::Value {
                        argument: "packed",
                        expected: "a filter packed for this direction and level",
                    })
                }
            }
        }
    }
}

/// The tiles that a filter is transformed for, if it is.
fn tiles(direction: Direction, conv: &Conv) -> Option<Tiles> {
    match direction {
        Direction::Forward => Tiles::of(conv),
        Direction::Backward => None,
    }
}

/// Rows of the output, its columns and the rows of the filter's matrix, in the product of a group.
fn sizes(direction: Direction, conv: &Conv) -> (usize, usize, usize) {
    let (y, x) = match direction {
        Direction::Forward => (conv.y.output, conv.x.output),
        Direction::Backward => (conv.y.input, conv.x.input),
    };
    let (k, columns) = size(direction, conv);
    (conv.batch * y * x, columns, k)
}

/// Rows and columns of the matrix that the filter of one group is.
pub(crate) fn size(direction: Direction, conv: &Conv) -> (usize, usize) {
    let taps = conv.y.size * conv.x.size;
    match direction {
        Direction::Forward => (taps * conv.group_in(), conv.group_out()),
        Direction::Backward => (taps * conv.group_out(), conv.group_in()),
    }
}
