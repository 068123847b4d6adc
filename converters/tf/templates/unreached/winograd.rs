//! Minimal filtering, which no convolution of this model takes: no value of its types exists.

use crate::base::error::Result;
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::conv::filter::Direction;
use crate::conv::geometry::Conv;
use crate::gemm::tile::Store;

/// The tiles of a convolution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tiles {}

impl Tiles {
    pub fn of(_: &Conv) -> Option<Self> {
        None
    }

    pub fn packed_len(self, _: Level, _: &Conv) -> Result<usize> {
        match self {}
    }

    pub fn scratch_len(self, _: Level, _: &Conv) -> usize {
        match self {}
    }

    pub fn pack(self, _: Level, _: Taps<'_>, _: &mut [f32], _: &dyn Parallel) -> bool {
        match self {}
    }
}

/// A filter of taps that tiles suit.
#[derive(Clone, Copy, Debug)]
pub struct Taps<'a> {
    pub conv: &'a Conv,
    pub direction: Direction,
    pub filter: &'a [f32],
}

/// A convolution by tiles with a plain filter.
#[derive(Clone, Copy, Debug)]
pub enum Once {}

impl Once {
    pub fn of(_: Level, _: Direction, _: &Conv) -> Option<Self> {
        None
    }

    pub const fn scratch_len(&self) -> usize {
        match *self {}
    }

    pub fn run(
        &self,
        _: &[f32],
        _: (&[f32], &mut [f32]),
        _: Store<'_>,
        _: &mut [f32],
        _: &dyn Parallel,
    ) -> bool {
        match *self {}
    }
}

/// A convolution with a filter that is packed for tiles.
pub(super) struct Winograd<'a> {
    pub conv: &'a Conv,
    pub tiles: Tiles,
    pub level: Level,
    pub filter: &'a [f32],
    pub store: Store<'a>,
}

impl Winograd<'_> {
    pub fn run(&self, _: &[f32], _: &mut [f32], _: &mut [f32], _: &dyn Parallel) {
        match self.tiles {}
    }
}
