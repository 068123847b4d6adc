//! Gated recurrent units.

use super::cells::{self, GruAfter, GruBefore, GruReset};
use super::team::{self, Part, Plan, Sequences, Whole, take};
use super::{Factor, SET, Walk, check_bias, project};
use crate::base::error::Result;
use crate::base::parallel::{Parallel, Serial};
use crate::simd::blocks::{Block, Board};

/// A GRU; gates in the order update, reset, candidate.
#[derive(Clone, Copy, Debug)]
pub struct GruLayer<'a> {
    /// Sizes and order.
    pub walk: Walk<'a>,
    /// `[inputs, 3 * units]`
    pub kernel: Factor<'a>,
    /// The recurrent matrix.
    pub recurrent: Reset<'a>,
    /// `3 * units`, added to the projected inputs.
    pub bias: Option<&'a [f32]>,
}

/// How the reset gate of a [`GruLayer`] acts.
#[derive(Clone, Copy, Debug)]
pub enum Reset<'a> {
    /// On the projected state (Keras: `reset_after=True`).
    After {
        /// `[units, 3 * units]`
        matrix: Factor<'a>,
        /// `3 * units`, added to the projected state.
        bias: Option<&'a [f32]>,
    },
    /// On the state, before its projection for the candidate (Keras: `reset_after=False`).
    Before {
        /// Update and reset, `[units, 2 * units]`.
        gates: Factor<'a>,
        /// Candidate, `[units, units]`.
        candidate: Factor<'a>,
    },
}

impl GruLayer<'_> {
    /// Elements of scratch memory that [`GruLayer::run`] needs: the gates of some steps, those of
    /// the state, a state, and what products with plain matrices need.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::base::error::Error::Overflow).
    pub fn scratch_len(&self) -> Result<usize> {
        let Walk {
            batch,
            steps,
            units,
            ..
        } = self.walk;
        let all = self.kernel.gemm(batch * steps, &[]).scratch_len()?;
        let one = match &self.recurrent {
            Reset::After { matrix, .. } => matrix.gemm(batch, &[]).scratch_len()?,
            Reset::Before { gates, candidate } => {
                let gates = gates.gemm(batch, &[]).scratch_len()?;
                gates.max(candidate.gemm(batch, &[]).scratch_len()?)
            }
        };
        Ok(self.walk.gates_len(3, self.kernel.rows)? + batch * 4 * units + all.max(one))
    }

    /// Reads `x`, `[batch, steps, inputs]`; advances `hidden`, `[batch, units]`; writes every
    /// output into `sequence`, `[batch, steps, units]`, unless that is empty.
    ///
    /// # Errors
    /// [`Error::Length`](crate::base::error::Error::Length) if a slice or matrix has not the size that
    /// the others say.
    pub fn run(
        &self,
        x: &[f32],
        hidden: &mut [f32],
        sequence: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let Self { walk, kernel, .. } = self;
        let (units, columns) = (walk.units, 3 * walk.units);
        walk.check(x.len(), kernel.rows, sequence.len(), &[hidden.len()])?;
        kernel.check("kernel", (kernel.rows, columns))?;
        check_bias("bias", self.bias, columns)?;
        match &self.recurrent {
            Reset::After { matrix, bias } => {
                matrix.check("recurrent", (units, columns))?;
                check_bias("recurrent bias", *bias, columns)?;
            }
            Reset::Before { gates, candidate } => {
                gates.check("recurrent gates", (units, 2 * units))?;
                candidate.check("recurrent candidate", (units, units))?;
            }
        }
        let (scratch, _) = take(scratch, self.scratch_len()?)?;
        if walk.is_empty() {
            return Ok(());
        }
        let own = Sequences {
            walk: *walk,
            x,
            hidden,
            cell: &mut [],
            sequence,
            scratch,
        };
        let plan = match &self.recurrent {
            Reset::After { matrix, .. } => Plan::new(walk, kernel, &[*matrix], true, parallel),
            Reset::Before { gates, candidate } => {
                Plan::new(walk, kernel, &[*gates, *candidate], false, parallel)
            }
        };
        self.run_as(plan, own, parallel)
    }

    /// Does what the plan says.
    pub(super) fn run_as(
        &self,
        plan: Plan,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let at_once = self.walk.at_once(3, self.kernel.rows)?;
        match plan {
            Plan::Rows(count) => own.share(count, parallel, |own| {
                let layer = GruLayer {
                    walk: own.walk,
                    ..*self
                };
                layer.by_units(Plan::Alone, at_once, own, &Serial)
            }),
            Plan::Panels(count) => self.by_panels(count, at_once, own, parallel),
            plan => self.by_units(plan, at_once, own, parallel),
        }
    }

    /// Each task has some units and their gates; all meet once in a step, or twice if the reset
    /// gate acts on the state.
    fn by_units(
        &self,
        plan: Plan,
        at_once: usize,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let walk = &self.walk;
        let (len, units) = (walk.batch * walk.units, walk.units);
        let (gates, rest) = take(own.scratch, 3 * len * at_once)?;
        let (state, rest) = take(rest, 3 * len)?;
        let (next, scratch) = take(rest, len)?;
        let (count, inner) = plan.tasks(parallel);
        let bounds = team::unit_bounds(plan, &self.kernel, units);
        let whole = Whole {
            gates,
            state,
            cell: &mut [],
            sequence: own.sequence,
            scratch,
        };
        let mut parts = whole.parts(units, &bounds, count);
        let boards = Board::pair((&mut *next, &mut *own.hidden), units, bounds);
        let (parts, x) = (&mut parts[..count], own.x);
        match &self.recurrent {
            Reset::After { matrix, bias } => {
                team::go(
                    parallel,
                    walk.steps,
                    parts,
                    boards,
                    &|place, part, hidden, mut out| {
                        walk.begin(&self.kernel, (place, at_once), x, self.bias, part, inner)?;
                        part.copy_state(units, hidden, &mut out);
                        self.project(matrix, (place, 3), (hidden, *bias), part, inner)?;
                        self.after(place, part, out);
                        Ok(())
                    },
                )?;
                if walk.steps % 2 == 1 {
                    own.hidden.copy_from_slice(next);
                }
                Ok(())
            }
            Reset::Before { gates, candidate } => team::go(
                parallel,
                2 * walk.steps,
                parts,
                boards,
                &|round, part, read, mut out| {
                    let place = round / 2;
                    if round.is_multiple_of(2) {
                        walk.begin(&self.kernel, (place, at_once), x, self.bias, part, inner)?;
                        part.prepare(units, read, &mut out);
                        self.project(gates, (place, 2), (read, None), part, inner)?;
                        self.reset(place, part, read, out);
                    } else {
                        self.project(candidate, (place, 1), (read, None), part, inner)?;
                        self.before(place, part, out);
                    }
                    Ok(())
                },
            ),
        }
    }

    /// Projects what `state` holds of all units for those of a part: `[batch, gates, units]`, for
    /// one gate behind the place of two.
    fn project(
        &self,
        matrix: &Factor<'_>,
        (place, gates): (usize, usize),
        (state, bias): (&[f32], Option<&[f32]>),
        part: &mut Part<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let walk = &self.walk;
        let columns = gates * part.units;
        let behind = if gates == 1 {
            2 * walk.batch * part.units
        } else {
            0
        };
        for piece in walk.in_turn(place, part.pieces(walk.units, gates)) {
            let (range, at) = part.piece(piece, walk.units, gates);
            project(
                &matrix.part(range.clone()),
                walk.batch,
                state,
                bias.map(|bias| &bias[range]),
                SET,
                (&mut part.state[behind + at..], columns),
                place % 2 == 1,
                part.scratch,
                parallel,
            )?;
        }
        Ok(())
    }

    /// Where the projected inputs of a part are for a sequence at a place.
    fn gates_at(&self, place: usize, row: usize, part: &Part<'_>) -> usize {
        let (first, count) = part.block;
        (row * count + self.walk.step(place) - first) * 3 * part.units
    }

    /// The end of a step if the reset gate acts on the projected state; the new state goes where a
    /// copy of the old one is.
    fn after(&self, place: usize, part: &mut Part<'_>, mut out: Block<'_, f32>) {
        let walk = &self.walk;
        let (n, columns) = (part.units, 3 * part.units);
        for row in 0..walk.batch {
            let to = out.row(row);
            if walk.is_masked(row, walk.step(place)) {
                walk.emit(row, place, None, &mut part.sequence);
                continue;
            }
            let x = &part.gates[self.gates_at(place, row, part)..][..columns];
            cells::run(GruAfter {
                x: cells::gates(x, n, 0..n),
                state: cells::gates(&part.state[row * columns..][..columns], n, 0..n),
                hidden: to,
            });
            walk.emit(row, place, Some(to), &mut part.sequence);
        }
    }

    /// What is projected for the candidate if the reset gate acts on the state.
    fn reset(&self, place: usize, part: &Part<'_>, hidden: &[f32], mut out: Block<'_, f32>) {
        let (walk, n) = (&self.walk, part.units);
        for row in 0..walk.batch {
            let x = self.gates_at(place, row, part);
            cells::run(GruReset {
                x: &part.gates[x + n..][..n],
                state: &part.state[row * 2 * n + n..][..n],
                before: &hidden[row * walk.units + part.first..][..n],
                kept: out.row(row),
            });
        }
    }

    /// The end of a step if the reset gate acts on the state; the new one goes where the old one is.
    fn before(&self, place: usize, part: &mut Part<'_>, mut out: Block<'_, f32>) {
        let (walk, n) = (&self.walk, part.units);
        for row in 0..walk.batch {
            if walk.is_masked(row, walk.step(place)) {
                walk.emit(row, place, None, &mut part.sequence);
                continue;
            }
            let x = &part.gates[self.gates_at(place, row, part)..][..3 * n];
            let (gates, candidates) = part.state.split_at(2 * walk.batch * n);
            let to = out.row(row);
            cells::run(GruBefore {
                x: [&x[..n], &x[2 * n..]],
                state: [&gates[row * 2 * n..][..n], &candidates[row * n..][..n]],
                hidden: to,
            });
            walk.emit(row, place, Some(to), &mut part.sequence);
        }
    }

    /// For one sequence, if the reset gate acts on the projected state: each task has some panels
    /// of the gates, and then some units; all meet after each.
    fn by_panels(
        &self,
        count: usize,
        at_once: usize,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let Reset::After { matrix, bias } = &self.recurrent else {
            return self.by_units(Plan::Alone, at_once, own, parallel);
        };
        let walk = &self.walk;
        let (units, columns) = (walk.units, 3 * walk.units);
        let (gates, rest) = take(own.scratch, columns * at_once)?;
        let (state, _) = take(rest, columns)?;
        let bounds = team::unit_bounds(Plan::Panels(count), &self.kernel, units);
        let panels = team::panel_bounds(matrix, count);
        let mut parts = Whole::outputs(&mut [], own.sequence).parts(units, &bounds, count);
        for start in (0..walk.steps).step_by(at_once) {
            let block = walk.block(start, at_once);
            walk.project_all(
                &self.kernel,
                block,
                own.x,
                self.bias,
                (&mut *gates, &mut []),
                parallel,
            )?;
            let gates = &*gates;
            let boards = [
                Board {
                    data: &mut *state,
                    columns,
                    bounds: panels,
                },
                Board {
                    data: &mut *own.hidden,
                    columns: units,
                    bounds,
                },
            ];
            let task =
                |round: usize, part: &mut Part<'_>, read: &[f32], mut out: Block<'_, f32>| {
                    let place = start + round / 2;
                    if round.is_multiple_of(2) {
                        let range = out.column..out.column + out.columns;
                        let bias = bias.map(|bias| &bias[range.clone()]);
                        let ld = out.columns;
                        let (to, back) = ((out.row(0), ld), place % 2 == 1);
                        let matrix = matrix.part(range);
                        return project(&matrix, 1, read, bias, SET, to, back, &mut [], &Serial);
                    }
                    let step = walk.step(place);
                    if walk.is_masked(0, step) {
                        walk.emit(0, place, None, &mut part.sequence);
                        return Ok(());
                    }
                    let own = part.first..part.first + part.units;
                    let x = &gates[(step - block.0) * columns..][..columns];
                    let to = out.row(0);
                    cells::run(GruAfter {
                        x: cells::gates(x, units, own.clone()),
                        state: cells::gates(read, units, own),
                        hidden: to,
                    });
                    walk.emit(0, place, Some(to), &mut part.sequence);
                    Ok(())
                };
            let parts = &mut parts[..count];
            team::go(parallel, 2 * block.1, parts, boards, &task)?;
        }
        Ok(())
    }
}
