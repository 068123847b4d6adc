//! Who computes what of a layer.

use core::ops::Range;

use super::{Factor, Walk};
use crate::base::error::{Error, Result};
use crate::base::level::second_cache;
use crate::base::parallel::{Parallel, Serial};
use crate::base::rounds::MOST;
use crate::base::worth::Work;
use crate::gemm::pack::{lanes, panel, panels};
use crate::gemm::{Packed, Right};
use crate::simd::blocks::{Block, Board, for_each_chunk, relay};

/// Multiplications of all steps that repay another thread.
const PARALLEL: usize = 1 << 17;
/// Sequences whose products are those of one row each: a tile of a product of two rows takes as long
/// as one of four.
pub(super) const FEW: usize = 2;

/// Elements of weights that each of several threads reads in every step: half of the second cache.
fn near() -> usize {
    second_cache() / size_of::<f32>() / 2
}

/// The tasks that have sequences, for so many threads. Either all or none of them have as few as
/// [`FEW`], so that the number of threads does not change how sums are made.
fn shares(batch: usize, threads: usize) -> usize {
    threads.min(if batch <= FEW {
        batch
    } else {
        batch / (FEW + 1)
    })
}

/// How the work is shared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// One thread goes through all steps; others may help with a large product.
    Alone,
    /// Threads have whole panels of units, the same ones of each gate.
    Units(usize),
    /// Threads have panels of the gates, and then units.
    Panels(usize),
    /// Threads have sequences.
    Rows(usize),
}

/// The packed matrix of a factor.
fn packed<'a>(factor: &Factor<'a>) -> Option<Packed<'a>> {
    match factor.right {
        Right::Packed(matrix) => Some(matrix),
        Right::Plain(_) => None,
    }
}

impl Plan {
    /// The best plan for a layer whose steps multiply by `recurrent`, and whose units may meet
    /// twice in a step or not.
    pub(super) fn new(
        walk: &Walk<'_>,
        kernel: &Factor<'_>,
        recurrent: &[Factor<'_>],
        panels_may: bool,
        parallel: &dyn Parallel,
    ) -> Self {
        let threads = parallel.threads().min(MOST);
        let (Some(matrix), true) = (packed(kernel), threads > 1) else {
            return Self::Alone;
        };
        if !recurrent.iter().all(|factor| packed(factor).is_some()) {
            return Self::Alone;
        }
        let weights = recurrent
            .iter()
            .map(|factor| factor.rows * factor.columns)
            .sum::<usize>();
        let step = walk.batch.saturating_mul(weights);
        let inputs = kernel.rows.saturating_mul(kernel.columns);
        let all = step.saturating_add(walk.batch.saturating_mul(inputs));
        if all.saturating_mul(walk.steps) < PARALLEL {
            return Self::Alone;
        }
        let rows = shares(walk.batch, threads);
        let panel = panel(matrix.level);
        let units = threads.min(walk.units / panel);
        let whole = walk.units.is_multiple_of(panel);
        let few = (2..=FEW).contains(&walk.batch);
        if few || rows == threads && (weights <= near() || !whole) {
            return Self::Rows(rows);
        }
        let work = Work::Product(step.saturating_mul(2), 0);
        if whole && units > 1 && work.repays_meeting(recurrent.len() > 1) {
            return Self::Units(units);
        }
        if walk.batch > 1 {
            return if rows > 1 {
                Self::Rows(rows)
            } else {
                Self::Alone
            };
        }
        let gates = recurrent.iter().map(|factor| factor.columns).sum();
        let products = threads.min(panels(matrix.level, gates));
        if panels_may && products > 1 && work.repays_meeting(true) {
            return Self::Panels(products);
        }
        Self::Alone
    }
}

impl Plan {
    /// The tasks that have a part of the units, and what runs the products of each.
    pub(super) fn tasks(self, parallel: &dyn Parallel) -> (usize, &dyn Parallel) {
        match self {
            Self::Units(count) => (count, &Serial),
            _ => (1, parallel),
        }
    }
}

/// Where the parts of `count` tasks begin and end: whole pieces of `piece` of `len`, as equal as
/// may be.
pub(super) fn bounds(len: usize, piece: usize, count: usize) -> [usize; MOST + 1] {
    let pieces = len.div_ceil(piece.max(1));
    core::array::from_fn(|task| (pieces * task.min(count) / count.max(1) * piece).min(len))
}

/// Where the panels of the columns of a product begin and end for each task.
pub(super) fn panel_bounds(factor: &Factor<'_>, count: usize) -> [usize; MOST + 1] {
    let (width, panels) = packed(factor).map_or((factor.columns, 1), |matrix| {
        (panel(matrix.level), panels(matrix.level, matrix.n))
    });
    core::array::from_fn(|task| {
        if task >= count {
            factor.columns
        } else {
            panels * task / count * width
        }
    })
}

/// Where the units of each task begin and end.
pub(super) fn unit_bounds(plan: Plan, kernel: &Factor<'_>, units: usize) -> [usize; MOST + 1] {
    let level = packed(kernel).map(|matrix| matrix.level);
    match (plan, level) {
        (Plan::Units(count), Some(level)) => bounds(units, panel(level), count),
        (Plan::Panels(count), Some(level)) => bounds(units, lanes(level), count),
        _ => bounds(units, units, 1),
    }
}

/// What a task computes: some units of all sequences.
pub(super) struct Part<'a> {
    /// The first of the units.
    pub first: usize,
    /// How many they are.
    pub units: usize,
    /// The gates of a block of steps, `[batch, steps, gates, units]`.
    pub gates: &'a mut [f32],
    /// The gates of the state.
    pub state: &'a mut [f32],
    /// The cell state, `[batch, units]`.
    pub cell: Block<'a, f32>,
    /// Every output, `[batch * steps, units]`, or no row.
    pub sequence: Block<'a, f32>,
    /// What products with plain matrices need.
    pub scratch: &'a mut [f32],
    /// The first step and the number of steps whose gates there are, ...
    pub block: (usize, usize),
    /// ... and the place of the walk after them.
    pub end: usize,
    /// What went wrong.
    pub result: Result<()>,
}

impl Part<'_> {
    /// Writes the `state` of the part's units where the next one will be: other threads have read
    /// what was there, and it takes a while until they have given it back.
    pub(super) fn prepare(&self, units: usize, state: &[f32], to: &mut Block<'_, f32>) {
        if self.units < units {
            self.copy_state(units, state, to);
        }
    }

    /// Copies the `state` of the part's units.
    pub(super) fn copy_state(&self, units: usize, state: &[f32], to: &mut Block<'_, f32>) {
        for row in 0..to.rows {
            let from = &state[row * units + self.first..];
            to.row(row).copy_from_slice(&from[..self.units]);
        }
    }

    /// Pieces of a product whose columns are `gates` times all `units`: one if the part is all.
    pub(super) fn pieces(&self, units: usize, gates: usize) -> usize {
        if self.units == units { 1 } else { gates }
    }

    /// The columns of a piece, and where they are in a row of the part's gates.
    pub(super) fn piece(&self, piece: usize, units: usize, gates: usize) -> (Range<usize>, usize) {
        if self.units == units {
            return (0..gates * units, 0);
        }
        let first = piece * units + self.first;
        (first..first + self.units, piece * self.units)
    }
}

/// Memory of all parts.
pub(super) struct Whole<'a> {
    pub gates: &'a mut [f32],
    pub state: &'a mut [f32],
    pub cell: &'a mut [f32],
    pub sequence: &'a mut [f32],
    pub scratch: &'a mut [f32],
}

impl<'a> Whole<'a> {
    /// Without memory for gates.
    pub(super) fn outputs(cell: &'a mut [f32], sequence: &'a mut [f32]) -> Self {
        Self {
            gates: &mut [],
            state: &mut [],
            cell,
            sequence,
            scratch: &mut [],
        }
    }

    /// The parts of `count` tasks whose units have these bounds. Scratch memory is that of the
    /// first.
    pub(super) fn parts(
        self,
        units: usize,
        bounds: &[usize; MOST + 1],
        count: usize,
    ) -> [Option<Part<'a>>; MOST] {
        let mut parts = [const { None }; MOST];
        let rows = |len: usize| len.checked_div(units).unwrap_or(0);
        let (gates_each, state_each) = (rows(self.gates.len()), rows(self.state.len()));
        let (mut gates, mut state, mut scratch) = (self.gates, self.state, self.scratch);
        let cells = rows(self.cell.len());
        let outputs = rows(self.sequence.len());
        let mut cell = Block::new(self.cell, units, cells, units);
        let mut sequence = Block::new(self.sequence, units, outputs, units);
        for (task, part) in parts[..count].iter_mut().enumerate() {
            let first = bounds[task];
            let own = bounds[task + 1] - first;
            let (own_gates, own_state, own_cell, own_sequence);
            (own_gates, gates) = gates.split_at_mut(own * gates_each);
            (own_state, state) = state.split_at_mut(own * state_each);
            (own_cell, cell) = cell.split_columns(own);
            (own_sequence, sequence) = sequence.split_columns(own);
            *part = Some(Part {
                first,
                units: own,
                gates: own_gates,
                state: own_state,
                cell: own_cell,
                sequence: own_sequence,
                scratch: core::mem::take(&mut scratch),
                block: (0, 0),
                end: 0,
                result: Ok(()),
            });
        }
        parts
    }
}

/// What a task does in a round with its part, what it reads of all parts, and what it writes.
pub(super) type Turn<'a> =
    dyn Fn(usize, &mut Part<'_>, &[f32], Block<'_, f32>) -> Result<()> + Sync + 'a;

/// Goes through some rounds, as [`relay`] does; a part that fails takes no part in those after.
pub(super) fn go(
    parallel: &dyn Parallel,
    rounds: usize,
    parts: &mut [Option<Part<'_>>],
    boards: [Board<'_>; 2],
    turn: &Turn<'_>,
) -> Result<()> {
    if let [Some(part)] = parts {
        // Without a detour: small steps are over soon.
        let [mut first, mut second] = boards;
        for round in 0..rounds {
            let (columns, rows) = (first.columns, first.data.len() / first.columns);
            let to = Block::new(first.data, columns, rows, columns);
            turn(round, part, second.data, to)?;
            core::mem::swap(&mut first, &mut second);
        }
        return Ok(());
    }
    relay(parallel, rounds, parts, boards, &|round, part, read, to| {
        if let Some(part) = part
            && part.result.is_ok()
        {
            part.result = turn(round, part, read, to);
        }
    });
    parts.iter().flatten().try_for_each(|part| part.result)
}

/// What a task computes: some of the sequences.
pub(super) struct Sequences<'a> {
    pub walk: Walk<'a>,
    pub x: &'a [f32],
    pub hidden: &'a mut [f32],
    pub cell: &'a mut [f32],
    pub sequence: &'a mut [f32],
    pub scratch: &'a mut [f32],
}

impl<'a> Sequences<'a> {
    /// The first `batch` sequences, and the others; each has a slice's part.
    fn split(self, batch: usize) -> (Self, Self) {
        let all = self.walk.batch.max(1);
        let at = |len: usize| len / all * batch;
        let (x, x_rest) = self.x.split_at(at(self.x.len()));
        let (hidden, hidden_rest) = self.hidden.split_at_mut(at(self.hidden.len()));
        let (cell, cell_rest) = self.cell.split_at_mut(at(self.cell.len()));
        let (sequence, sequence_rest) = self.sequence.split_at_mut(at(self.sequence.len()));
        let (scratch, scratch_rest) = self.scratch.split_at_mut(at(self.scratch.len()));
        let mask = self.walk.mask.map(|mask| mask.split_at(at(mask.len())));
        let walk = |batch, mask: Option<&'a [u8]>| Walk {
            batch,
            mask,
            ..self.walk
        };
        let first = Self {
            walk: walk(batch, mask.map(|mask| mask.0)),
            x,
            hidden,
            cell,
            sequence,
            scratch,
        };
        let rest = Self {
            walk: walk(self.walk.batch - batch, mask.map(|mask| mask.1)),
            x: x_rest,
            hidden: hidden_rest,
            cell: cell_rest,
            sequence: sequence_rest,
            scratch: scratch_rest,
        };
        (first, rest)
    }

    /// Calls `layer` with the sequences of each of `count` tasks, spread over `parallel`.
    pub(super) fn share(
        self,
        count: usize,
        parallel: &dyn Parallel,
        layer: impl Fn(Sequences<'_>) -> Result<()> + Sync,
    ) -> Result<()> {
        let mut tasks = [const { (None, Ok(())) }; MOST];
        let (batch, mut rest) = (self.walk.batch, self);
        for (task, (to, _)) in tasks[..count].iter_mut().enumerate() {
            let own = batch * (task + 1) / count - batch * task / count;
            let first;
            (first, rest) = rest.split(own);
            *to = Some(first);
        }
        for_each_chunk(parallel, &mut tasks[..count], 1, |_, tasks| {
            for (own, result) in tasks {
                if let Some(own) = own.take() {
                    *result = layer(own);
                }
            }
        });
        tasks.into_iter().try_for_each(|(_, result)| result)
    }
}

/// Scratch memory in two.
pub(super) fn take(scratch: &mut [f32], expected: usize) -> Result<(&mut [f32], &mut [f32])> {
    let found = scratch.len();
    scratch.split_at_mut_checked(expected).ok_or(Error::Length {
        argument: "scratch",
        found,
        expected,
    })
}
