//! Channels of the result, a lane each.

use crate::simd::Simd;
use crate::simd::taps::Lanes;

/// Some channels of the result.
#[derive(Clone, Copy)]
pub(super) struct Channels<S: Simd> {
    /// The first of them.
    pub(super) to: usize,
    /// The first that they see.
    pub(super) from: usize,
    pub(super) lanes: Lanes<S>,
}

impl<S: Simd> Channels<S> {
    /// All channels of some groups, each of which sees `depth` and has `columns`.
    #[inline(always)]
    pub(super) fn spread(
        s: S,
        (depth, columns): (usize, usize),
        group: usize,
        count: usize,
    ) -> Self {
        let mut first = [0.0; 16];
        for (lane, first) in first.iter_mut().enumerate().take(count * columns) {
            *first = f32::from_bits((lane / columns * depth) as u32);
        }
        Self {
            to: group * columns,
            from: group * depth,
            lanes: Lanes {
                first: s.to_bits(s.load(&first)),
                read: count * depth,
                count: count * columns,
            },
        }
    }

    /// Channels of one group from `column` on, as many as a vector has.
    #[inline(always)]
    pub(super) fn single(
        s: S,
        (depth, columns): (usize, usize),
        group: usize,
        column: usize,
    ) -> Self {
        Self {
            to: group * columns + column,
            from: group * depth,
            lanes: Lanes {
                first: s.splat_i(0),
                read: depth,
                count: S::LANES.min(columns - column),
            },
        }
    }

    /// Whether a vector has more elements than there are.
    #[inline(always)]
    pub(super) fn is_partial(&self, spread: bool) -> bool {
        self.lanes.count < S::LANES || spread && self.lanes.read < S::LANES
    }
}

/// How many of some groups a vector spans, of which each sees `depth` channels and has `columns`.
#[inline(always)]
pub(super) fn together(lanes: usize, (depth, columns): (usize, usize), groups: usize) -> usize {
    (lanes / depth.max(columns).max(1)).clamp(1, groups.max(1))
}
