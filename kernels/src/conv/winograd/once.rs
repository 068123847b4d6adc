//! Convolutions whose filter is transformed for one call.

#[cfg(test)]
mod tests;

use super::Winograd;
use super::filter::{Taps, mirrored};
use super::tiles::{KEPT, Tiles, most_scratch};
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::conv::{Conv, Direction};
use crate::gemm::tile::Store;

/// Pixels of the output, over all images, that repay the transform of a filter.
const REPAID: usize = 400;
/// Elements of points beyond which more do not help.
const MOST_POINTS: usize = 16 * KEPT;

/// A convolution by tiles with a plain filter.
#[derive(Clone, Copy, Debug)]
pub struct Once {
    level: Level,
    direction: Direction,
    /// The convolution that is computed, as a forward one.
    conv: Conv,
    tiles: Tiles,
    /// Elements of the packed filter.
    packed: usize,
    /// Elements of the points of tiles.
    points: usize,
}

impl Once {
    /// The way to compute one direction of a convolution that has been checked, if tiles suit it,
    /// its pixels repay the transform and the memory for both is at most half as much again as
    /// input, filter and output.
    pub fn of(level: Level, direction: Direction, conv: &Conv) -> Option<Self> {
        let computed = computed(direction, conv)?;
        let tiles = Tiles::of(&computed)?;
        if computed.batch * computed.y.output * computed.x.output < REPAID {
            return None;
        }
        let once = Self::with_tiles(level, direction, conv, tiles)?;
        let room = most_scratch(&computed).checked_sub(once.packed)?;
        let one = tiles.scratch_len(
            level,
            &Conv {
                batch: 1,
                ..computed
            },
        );
        (one <= room).then_some(Self {
            points: once.points.min(room),
            ..once
        })
    }

    /// As [`Once::of`], for given tiles and as much memory as they take.
    pub fn with_tiles(
        level: Level,
        direction: Direction,
        conv: &Conv,
        tiles: Tiles,
    ) -> Option<Self> {
        let conv = computed(direction, conv)?;
        let one = tiles.scratch_len(level, &Conv { batch: 1, ..conv });
        let all = tiles.scratch_len(level, &conv);
        Some(Self {
            level,
            direction,
            conv,
            tiles,
            packed: tiles.packed_len(level, &conv).ok()?,
            points: all.min(MOST_POINTS.max(one)),
        })
    }

    /// Elements of scratch memory that [`Once::run`] needs.
    pub const fn scratch_len(&self) -> usize {
        self.packed + self.points
    }

    /// Computes the output, unless the filter is not finite: transforms would spread that to all
    /// outputs of a tile. Returns whether it did. All lengths have been checked.
    pub fn run(
        &self,
        filter: &[f32],
        (input, output): (&[f32], &mut [f32]),
        store: Store<'_>,
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> bool {
        let (packed, points) = scratch.split_at_mut(self.packed);
        let taps = Taps {
            conv: &self.conv,
            direction: self.direction,
            filter,
        };
        if !self.tiles.pack(self.level, taps, packed, parallel) {
            return false;
        }
        let winograd = Winograd {
            conv: &self.conv,
            tiles: self.tiles,
            level: self.level,
            filter: packed,
            store,
        };
        if !output.is_empty() {
            winograd.run(input, output, points, parallel);
        }
        true
    }
}

/// One direction of a convolution as a forward one.
fn computed(direction: Direction, conv: &Conv) -> Option<Conv> {
    match direction {
        Direction::Forward => Some(*conv),
        Direction::Backward => mirrored(conv),
    }
}
