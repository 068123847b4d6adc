//! Which work repays another thread: the one place that decides.
//!
//! A pool hands work to a thread that is awake, and is told of its end, in one to two microseconds.
//! A kernel is therefore divided if it takes one thread about [`REPAYS`], into tasks that take about
//! [`TASK`] or more. How long work takes is a line through what was measured, by
//! `benches/threads.rs`, at the speed of a processor that is idle else: an estimate that is too
//! low costs a part of the gain, one that is too high costs the hand-over.

use crate::base::parallel::{Parallel, Serial};

#[cfg(test)]
mod tests;

/// Work that repays a second thread, in picoseconds of one.
const REPAYS: usize = 10_000_000;
/// Work of a task, at least.
const TASK: usize = REPAYS / 2;
/// Work between two meetings of threads that repays them if there is one in a step, or two.
const MEETINGS: [usize; 2] = [400_000, 655_360];
/// An addition to an element that comes from memory.
const ELEMENT: usize = 305;

/// What one thread has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    /// Multiplications and additions of matrices or dense convolutions, and the sums that they
    /// make. A sum costs something of its own, which shows where it has few terms.
    Product(usize, usize),
    /// Multiplications and additions of a convolution channel by channel.
    #[cfg(not(without = "Work::Depthwise"))]
    Depthwise(usize),
    /// As many of its gradients, which keep fewer sums in registers.
    #[cfg(not(without = "Work::DepthwiseGradient"))]
    DepthwiseGradient(usize),
    /// Elements of a matrix that is read for one row.
    Weights(usize),
    /// Windows, and the elements that each sees.
    #[cfg(not(without = "Work::Windows"))]
    Windows(usize, usize),
    /// Elements to which a bias is added, or which are summed for one.
    #[cfg(not(without = "Work::Moved"))]
    Moved(usize),
    /// Elements of a matrix that is packed.
    #[cfg(not(without = "Work::Packed"))]
    Packed(usize),
    /// Scores that become weights.
    #[cfg(not(without = "Work::Scores"))]
    Scores(usize),
    /// Elements, and what each takes in units of an addition from memory.
    Elements(usize, usize),
}

impl Work {
    /// How long it takes, in picoseconds.
    const fn time(self) -> usize {
        match self {
            Self::Product(flops, sums) => flops
                .saturating_mul(10)
                .saturating_add(sums.saturating_mul(500)),
            #[cfg(not(without = "Work::Depthwise"))]
            Self::Depthwise(flops) => flops.saturating_mul(25),
            #[cfg(not(without = "Work::DepthwiseGradient"))]
            Self::DepthwiseGradient(flops) => flops.saturating_mul(75),
            Self::Weights(count) => count.saturating_mul(122),
            // To begin and end a window takes as long as eight elements.
            #[cfg(not(without = "Work::Windows"))]
            Self::Windows(count, each) => count
                .saturating_mul(each.saturating_add(8))
                .saturating_mul(76),
            #[cfg(not(without = "Work::Moved"))]
            Self::Moved(count) => count.saturating_mul(76),
            #[cfg(not(without = "Work::Packed"))]
            Self::Packed(count) => count.saturating_mul(305),
            #[cfg(not(without = "Work::Scores"))]
            Self::Scores(count) => count.saturating_mul(610),
            Self::Elements(count, cost) => count.saturating_mul(cost).saturating_mul(ELEMENT),
        }
    }

    /// The one that takes longer.
    pub(crate) const fn or(self, other: Self) -> Self {
        if self.time() < other.time() {
            other
        } else {
            self
        }
    }

    /// Whether it repays a second thread.
    pub(crate) const fn repays(self) -> bool {
        self.time() >= REPAYS
    }

    /// Whether a step of this work repays threads that meet once in it, or twice.
    pub(crate) const fn repays_meeting(self, twice: bool) -> bool {
        self.time() >= MEETINGS[twice as usize]
    }

    /// The threads that have a part of it.
    pub(crate) fn threads(self, parallel: &dyn Parallel) -> &dyn Parallel {
        if self.repays() { parallel } else { &Serial }
    }

    /// Elements of a task, at least, of which each takes so many additions from memory.
    pub(crate) const fn least_elements(cost: usize) -> usize {
        let each = ELEMENT.saturating_mul(cost);
        TASK.div_ceil(if each == 0 { ELEMENT } else { each })
    }
}
