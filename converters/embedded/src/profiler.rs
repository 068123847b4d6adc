//! Who is told how long calls took.

/// Name of the [`Call`] that is a whole run.
pub const RUN: &str = "run";

/// A call of an operator, or a whole run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call<'a> {
    /// The operator's name as its source has it; [`RUN`] for a whole run.
    pub name: &'a str,
    /// Number of the call in its run, from 0; `None` for a whole run.
    pub index: Option<usize>,
    /// Ticks of the [`Clock`](crate::Clock).
    pub ticks: u64,
}

/// Who is told.
///
/// A closure that takes a [`Call`] is a profiler. It is called between the operators, so that its own
/// time is in that of the run and in none of the calls.
pub trait Profiler {
    /// Takes a call that has just ended.
    fn ended(&mut self, call: Call<'_>);
}

impl<F: FnMut(Call<'_>)> Profiler for F {
    fn ended(&mut self, call: Call<'_>) {
        self(call);
    }
}

/// The sum of the calls at one place of the runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// How many calls.
    pub calls: u64,
    /// Ticks of all of them.
    pub ticks: u64,
}

/// Adds up calls over any number of runs, in memory for the first `N` operators of a run.
///
/// ```
/// use tfp_embedded::{Call, Profiler, RUN, Totals};
///
/// let mut totals = Totals::<8>::new();
/// for ticks in [40, 44] {
///     totals.ended(Call { name: "dense", index: Some(0), ticks });
///     totals.ended(Call { name: RUN, index: None, ticks: ticks + 5 });
/// }
/// assert_eq!(totals.calls()[0].ticks, 84);
/// assert_eq!((totals.run().calls, totals.run().ticks), (2, 94));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Totals<const N: usize> {
    calls: [Row; N],
    used: usize,
    run: Row,
    lost: u64,
}

impl<const N: usize> Totals<N> {
    /// Nothing yet.
    #[must_use]
    pub const fn new() -> Self {
        const NONE: Row = Row { calls: 0, ticks: 0 };
        Self {
            calls: [NONE; N],
            used: 0,
            run: NONE,
            lost: 0,
        }
    }

    /// The operators, by their number in a run.
    #[must_use]
    pub fn calls(&self) -> &[Row] {
        &self.calls[..self.used]
    }

    /// The whole runs.
    #[must_use]
    pub const fn run(&self) -> Row {
        self.run
    }

    /// Calls for which there was no memory.
    #[must_use]
    pub const fn lost(&self) -> u64 {
        self.lost
    }
}

impl<const N: usize> Default for Totals<N> {
    fn default() -> Self {
        Self::new()
    }
}

impl<const N: usize> Profiler for Totals<N> {
    fn ended(&mut self, call: Call<'_>) {
        let row = match call.index {
            None => &mut self.run,
            Some(index) => match self.calls.get_mut(index) {
                None => {
                    self.lost = self.lost.saturating_add(1);
                    return;
                }
                Some(row) => {
                    self.used = self.used.max(index + 1);
                    row
                }
            },
        };
        row.calls = row.calls.saturating_add(1);
        row.ticks = row.ticks.saturating_add(call.ticks);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(index: Option<usize>, ticks: u64) -> Call<'static> {
        Call {
            name: "x",
            index,
            ticks,
        }
    }

    #[test]
    fn totals_are_by_place() {
        let mut totals = Totals::<2>::new();
        for (index, ticks) in [(Some(0), 1), (Some(1), 2), (None, 9), (Some(0), 3)] {
            totals.ended(call(index, ticks));
        }
        let row = |calls, ticks| Row { calls, ticks };
        assert_eq!(totals.calls(), [row(2, 4), row(1, 2)]);
        assert_eq!(totals.run(), row(1, 9));
        assert_eq!(totals.lost(), 0);
    }

    #[test]
    fn what_has_no_memory_is_counted() {
        let mut totals = Totals::<1>::new();
        totals.ended(call(Some(1), 5));
        totals.ended(call(Some(usize::MAX), 5));
        assert_eq!((totals.calls().len(), totals.lost()), (0, 2));
    }

    #[test]
    fn sums_stay_at_the_greatest_number() {
        let mut totals = Totals::<1>::new();
        totals.ended(call(None, u64::MAX));
        totals.ended(call(None, 1));
        assert_eq!(totals.run().ticks, u64::MAX);
    }

    #[test]
    fn a_closure_is_a_profiler() {
        let mut sum = 0;
        let mut profiler = |call: Call<'_>| sum += call.ticks;
        profiler.ended(call(None, 3));
        profiler.ended(call(Some(0), 4));
        assert_eq!(sum, 7);
    }
}
