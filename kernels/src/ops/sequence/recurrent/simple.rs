//! Fully connected recurrent layers.

use super::team::{self, Part, Plan, Sequences, Whole, take};
use super::{Factor, Walk, check_bias, project};
use crate::base::error::Result;
use crate::base::parallel::{Parallel, Serial};
use crate::gemm::Activation;
use crate::simd::blocks::{Block, Board};

/// `hidden = activation(x * kernel + hidden * recurrent + bias)`.
#[derive(Clone, Copy, Debug)]
pub struct SimpleRnnLayer<'a> {
    /// Sizes and order.
    pub walk: Walk<'a>,
    /// `[inputs, units]`
    pub kernel: Factor<'a>,
    /// `[units, units]`
    pub recurrent: Factor<'a>,
    /// `units`
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
}

impl SimpleRnnLayer<'_> {
    /// Elements of scratch memory that [`SimpleRnnLayer::run`] needs: the sums of some steps, a
    /// state, and what products with plain matrices need.
    ///
    /// # Errors
    /// [`Error::Overflow`](crate::base::error::Error::Overflow).
    pub fn scratch_len(&self) -> Result<usize> {
        let walk = &self.walk;
        let rows = walk.batch * walk.steps;
        let all = self.kernel.gemm(rows, &[]).scratch_len()?;
        let one = self.recurrent.gemm(walk.batch, &[]).scratch_len()?;
        Ok(walk.gates_len(1, self.kernel.rows)? + walk.batch * walk.units + all.max(one))
    }

    /// As [`GruLayer::run`](super::GruLayer::run).
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
        let units = walk.units;
        walk.check(x.len(), kernel.rows, sequence.len(), &[hidden.len()])?;
        kernel.check("kernel", (kernel.rows, units))?;
        self.recurrent.check("recurrent", (units, units))?;
        check_bias("bias", self.bias, units)?;
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
        let plan = Plan::new(walk, kernel, &[self.recurrent], false, parallel);
        self.run_as(plan, own, parallel)
    }

    /// Does what the plan says.
    pub(super) fn run_as(
        &self,
        plan: Plan,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let at_once = self.walk.at_once(1, self.kernel.rows)?;
        match plan {
            Plan::Rows(count) => own.share(count, parallel, |own| {
                let layer = SimpleRnnLayer {
                    walk: own.walk,
                    ..*self
                };
                layer.alone(at_once, own, &Serial)
            }),
            Plan::Units(count) => self.by_units(count, at_once, own, parallel),
            _ => self.alone(at_once, own, parallel),
        }
    }

    /// One thread goes through all steps.
    fn alone(&self, at_once: usize, own: Sequences<'_>, parallel: &dyn Parallel) -> Result<()> {
        let (walk, units, hidden) = (&self.walk, self.walk.units, own.hidden);
        let (sums, scratch) = take(own.scratch, walk.batch * units * at_once)?;
        let rows = own.sequence.len() / units;
        let mut sequence = Block::new(own.sequence, units, rows, units);
        let (mut first, mut count) = (0, 0);
        for place in 0..walk.steps {
            if place % at_once == 0 {
                (first, count) = walk.block(place, at_once);
                let to = (&mut *sums, &mut *scratch);
                walk.project_all(&self.kernel, (first, count), own.x, self.bias, to, parallel)?;
            }
            let step = walk.step(place);
            project(
                &self.recurrent,
                walk.batch,
                hidden,
                None,
                (true, self.activation),
                (&mut sums[(step - first) * units..], count * units),
                place % 2 == 1,
                scratch,
                // An activation is applied once, by the caller's thread.
                &Serial,
            )?;
            for row in 0..walk.batch {
                if walk.is_masked(row, step) {
                    walk.emit(row, place, None, &mut sequence);
                    continue;
                }
                let state = &mut hidden[row * units..(row + 1) * units];
                state.copy_from_slice(&sums[(row * count + step - first) * units..][..units]);
                walk.emit(row, place, Some(state), &mut sequence);
            }
        }
        Ok(())
    }

    /// Each task has some units; all meet once in a step.
    fn by_units(
        &self,
        count: usize,
        at_once: usize,
        own: Sequences<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let walk = &self.walk;
        let (state, units) = (walk.batch * walk.units, walk.units);
        let (gates, rest) = take(own.scratch, state * at_once)?;
        let (next, scratch) = take(rest, state)?;
        let bounds = team::unit_bounds(Plan::Units(count), &self.kernel, units);
        let whole = Whole {
            gates,
            scratch,
            ..Whole::outputs(&mut [], own.sequence)
        };
        let mut parts = whole.parts(units, &bounds, count);
        let boards = Board::pair((&mut *next, &mut *own.hidden), units, bounds);
        let parts = &mut parts[..count];
        team::go(
            parallel,
            walk.steps,
            parts,
            boards,
            &|place, part, hidden, out| self.step((place, at_once), own.x, part, hidden, out),
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
    ) -> Result<()> {
        let (walk, units) = (&self.walk, part.units);
        walk.begin(&self.kernel, at, x, self.bias, part, &Serial)?;
        part.prepare(walk.units, hidden, &mut out);
        let ((first, count), place) = (part.block, at.0);
        let at = walk.step(place) - first;
        let (range, _) = part.piece(0, walk.units, 1);
        project(
            &self.recurrent.part(range),
            walk.batch,
            hidden,
            None,
            (true, self.activation),
            (&mut part.gates[at * units..], count * units),
            place % 2 == 1,
            part.scratch,
            &Serial,
        )?;
        for row in 0..walk.batch {
            let to = out.row(row);
            if walk.is_masked(row, walk.step(place)) {
                to.copy_from_slice(&hidden[row * walk.units + part.first..][..units]);
                walk.emit(row, place, None, &mut part.sequence);
                continue;
            }
            to.copy_from_slice(&part.gates[(row * count + at) * units..][..units]);
            walk.emit(row, place, Some(to), &mut part.sequence);
        }
        Ok(())
    }
}
