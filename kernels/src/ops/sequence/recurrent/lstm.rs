//! Long short-term memory.

use super::cells::{self, LstmCell};
use super::team::{self, Part, Plan, Sequences, Whole, take};
use super::{ADD, Factor, Walk, check_bias, project};
use crate::base::error::Result;
use crate::base::parallel::{Parallel, Serial};
use crate::simd::blocks::{Block, Board};

/// An LSTM; gates in the order input, forget, candidate, output.
#[derive(Clone, Copy, Debug)]
pub struct LstmLayer<'a> {
    /// Sizes and order.
    pub walk: Walk<'a>,
    /// `[inputs, 4 * units]`
    pub kernel: Factor<'a>,
    /// `[units, 4 * units]`
    pub recurrent: Factor<'a>,
    /// `4 * units`
    pub bias: Option<&'a [f32]>,
}

impl LstmLayer<'_> {
    /// Elements of scratch memory that [`LstmLayer::run`] needs: the gates of some steps, a state,
    /// and what products with plain matrices need.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::base::error::Error::Overflow).
    pub fn scratch_len(&self) -> Result<usize> {
        let walk = &self.walk;
        let rows = walk.batch * walk.steps;
        let all = self.kernel.gemm(rows, &[]).scratch_len()?;
        let one = self.recurrent.gemm(walk.batch, &[]).scratch_len()?;
        Ok(walk.gates_len(4, self.kernel.rows)? + walk.batch * walk.units + all.max(one))
    }

    /// Reads `x`, `[batch, steps, inputs]`; advances `hidden` and `cell`, both `[batch, units]`;
    /// writes every output into `sequence`, `[batch, steps, units]`, unless that is empty.
    ///
    /// # Errors
    /// [`Error::Length`](crate::base::error::Error::Length) if a slice or matrix has not the size that
    /// the others say.
    pub fn run(
        &self,
        x: &[f32],
        hidden: &mut [f32],
        cell: &mut [f32],
        sequence: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let Self {
            walk,
            kernel,
            recurrent,
            bias,
        } = self;
        let (units, columns) = (walk.units, 4 * walk.units);
        let states = [hidden.len(), cell.len()];
        walk.check(x.len(), kernel.rows, sequence.len(), &states)?;
        kernel.check("kernel", (kernel.rows, columns))?;
        recurrent.check("recurrent", (units, columns))?;
        check_bias("bias", *bias, columns)?;
        let (scratch, _) = take(scratch, self.scratch_len()?)?;
        if walk.is_empty() {
            return Ok(());
        }
        let own = Sequences {
            walk: *walk,
            x,
            hidden,
            cell,
            sequence,
            scratch,
        };
        let plan = Plan::new(walk, kernel, &[*recurrent], true, parallel);
        self.run_as(plan, own, parallel)
    }

    /// Does what the plan says.
    pub(super) fn run_as(
        &self,
        plan: Plan,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let at_once = self.walk.at_once(4, self.kernel.rows)?;
        match plan {
            Plan::Rows(count) => own.share(count, parallel, |own| {
                let layer = LstmLayer {
                    walk: own.walk,
                    ..*self
                };
                layer.by_units(Plan::Alone, at_once, own, &Serial)
            }),
            Plan::Panels(count) => self.by_panels(count, at_once, own, parallel),
            plan => self.by_units(plan, at_once, own, parallel),
        }
    }

    /// Each task has some units and their gates; all meet once in a step.
    fn by_units(
        &self,
        plan: Plan,
        at_once: usize,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let walk = &self.walk;
        let (state, units) = (walk.batch * walk.units, walk.units);
        let (gates, rest) = take(own.scratch, 4 * state * at_once)?;
        let (next, scratch) = take(rest, state)?;
        let (count, inner) = plan.tasks(parallel);
        let bounds = team::unit_bounds(plan, &self.kernel, units);
        let whole = Whole {
            gates,
            state: &mut [],
            cell: own.cell,
            sequence: own.sequence,
            scratch,
        };
        let mut parts = whole.parts(units, &bounds, count);
        let boards = Board::pair((&mut *next, &mut *own.hidden), units, bounds);
        let parts = &mut parts[..count];
        team::go(
            parallel,
            walk.steps,
            parts,
            boards,
            &|place, part, hidden, out| {
                self.step((place, at_once), own.x, part, hidden, out, inner)
            },
        )?;
        if walk.steps % 2 == 1 {
            own.hidden.copy_from_slice(next);
        }
        Ok(())
    }

    /// A step of the units of a part, from the `hidden` state of all to that of the part.
    fn step(
        &self,
        at: (usize, usize),
        x: &[f32],
        part: &mut Part<'_>,
        hidden: &[f32],
        mut out: Block<'_, f32>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let walk = &self.walk;
        walk.begin(&self.kernel, at, x, self.bias, part, parallel)?;
        part.prepare(walk.units, hidden, &mut out);
        let ((first, count), place) = (part.block, at.0);
        let step = walk.step(place);
        let columns = 4 * part.units;
        let pieces = part.pieces(walk.units, 4);
        for piece in walk.in_turn(place, pieces) {
            let (range, at) = part.piece(piece, walk.units, 4);
            project(
                &self.recurrent.part(range),
                walk.batch,
                hidden,
                None,
                ADD,
                (
                    &mut part.gates[(step - first) * columns + at..],
                    count * columns,
                ),
                place % 2 == 1,
                part.scratch,
                parallel,
            )?;
        }
        for row in 0..walk.batch {
            let to = out.row(row);
            if walk.is_masked(row, step) {
                to.copy_from_slice(&hidden[row * walk.units + part.first..][..part.units]);
                walk.emit(row, place, None, &mut part.sequence);
                continue;
            }
            let gates = &part.gates[(row * count + step - first) * columns..][..columns];
            cells::run(LstmCell {
                gates: cells::gates(gates, part.units, 0..part.units),
                cell: part.cell.row(row),
                hidden: to,
            });
            walk.emit(row, place, Some(to), &mut part.sequence);
        }
        Ok(())
    }

    /// For one sequence: each task has some panels of the gates, and then some units; all meet
    /// after each.
    fn by_panels(
        &self,
        count: usize,
        at_once: usize,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let walk = &self.walk;
        let (units, columns) = (walk.units, 4 * walk.units);
        let (gates, _) = take(own.scratch, columns * at_once)?;
        let bounds = team::unit_bounds(Plan::Panels(count), &self.kernel, units);
        let panels = team::panel_bounds(&self.recurrent, count);
        let whole = Whole::outputs(own.cell, own.sequence);
        let mut parts = whole.parts(units, &bounds, count);
        for start in (0..walk.steps).step_by(at_once) {
            let (first, steps) = walk.block(start, at_once);
            let block = (first, steps);
            walk.project_all(
                &self.kernel,
                block,
                own.x,
                self.bias,
                (&mut *gates, &mut []),
                parallel,
            )?;
            let boards = [
                Board {
                    data: &mut gates[..steps * columns],
                    columns,
                    bounds: panels,
                },
                Board {
                    data: &mut *own.hidden,
                    columns: units,
                    bounds,
                },
            ];
            let task = |round: usize, part: &mut Part<'_>, read: &[f32], out: Block<'_, f32>| {
                let place = start + round / 2;
                let at = walk.step(place) - first;
                if round.is_multiple_of(2) {
                    return self.product(place, read, out, at);
                }
                self.update(place, part, &read[at * columns..][..columns], out);
                Ok(())
            };
            let parts = &mut parts[..count];
            team::go(parallel, 2 * steps, parts, boards, &task)?;
        }
        Ok(())
    }

    /// Adds the projected state to some columns of row `at` of the gates.
    fn product(
        &self,
        place: usize,
        hidden: &[f32],
        mut gates: Block<'_, f32>,
        at: usize,
    ) -> Result<()> {
        let columns = gates.columns;
        let range = gates.column..gates.column + columns;
        project(
            &self.recurrent.part(range),
            1,
            hidden,
            None,
            ADD,
            (gates.row(at), columns),
            place % 2 == 1,
            &mut [],
            &Serial,
        )
    }

    /// Updates the states of some units of the only sequence.
    fn update(&self, place: usize, part: &mut Part<'_>, gates: &[f32], mut out: Block<'_, f32>) {
        let walk = &self.walk;
        if walk.is_masked(0, walk.step(place)) {
            return walk.emit(0, place, None, &mut part.sequence);
        }
        let own = part.first..part.first + part.units;
        cells::run(LstmCell {
            gates: cells::gates(gates, walk.units, own),
            cell: part.cell.row(0),
            hidden: out.row(0),
        });
        walk.emit(0, place, Some(out.row(0)), &mut part.sequence);
    }
}
