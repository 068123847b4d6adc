//! Recurrent layers over whole sequences, as Keras defines them, with tanh and sigmoid.
//!
//! The inputs of many steps at a time are projected by one product per sequence, or by one for all
//! sequences where all steps or one are; a step then adds the projected state and updates the state
//! row by row.

use crate::adapt::check_count;
use crate::error::{Error, Result};
use crate::gemm::{Activation, Gemm, Matrix, Packed, Right};
use crate::map::Map;
use crate::parallel::{Parallel, Serial};
use crate::simd::body::{Body, dispatch};
use crate::thin::Thin;
use crate::unary::{Sigmoid, Tanh};

/// Inputs of a step below which another thread costs the one that goes through a sequence more
/// than it saves: that one reads what the other has computed.
const PARALLEL_INPUTS: usize = 128;

/// A matrix of weights, plain or packed.
#[derive(Clone, Copy, Debug)]
pub struct Factor<'a> {
    right: Right<'a>,
    rows: usize,
    columns: usize,
}

impl<'a> Factor<'a> {
    /// A packed matrix.
    #[must_use]
    pub const fn packed(matrix: Packed<'a>) -> Self {
        Self {
            rows: matrix.rows(),
            columns: matrix.columns(),
            right: Right::Packed(matrix),
        }
    }

    /// A matrix of `rows` x `columns` as it lies in memory.
    #[must_use]
    pub const fn plain(matrix: Matrix<'a>, (rows, columns): (usize, usize)) -> Self {
        Self {
            right: Right::Plain(matrix),
            rows,
            columns,
        }
    }

    fn gemm<'b>(&self, m: usize, a: &'b [f32]) -> Gemm<'b>
    where
        'a: 'b,
    {
        let a = Matrix::rows(a, self.rows);
        match self.right {
            Right::Packed(matrix) => Gemm::packed(m, a, matrix),
            Right::Plain(matrix) => Gemm::new((m, self.columns, self.rows), a, matrix),
        }
    }

    fn check(&self, argument: &'static str, (rows, columns): (usize, usize)) -> Result<()> {
        check_count(argument, self.rows, rows)?;
        check_count(argument, self.columns, columns)
    }
}

/// How a layer goes through its sequences.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    /// Sequences.
    pub batch: usize,
    /// Steps of each.
    pub steps: usize,
    /// Elements of the state.
    pub units: usize,
    /// From the last step to the first.
    pub reverse: bool,
    /// `[batch, steps]`: 0 where a step leaves the state as it is.
    pub mask: Option<&'a [u8]>,
    /// Whether a step without effect puts 0 into the output, instead of the output before.
    pub zero_masked: bool,
}

impl Walk<'_> {
    /// Elements of the gates that are kept at a time.
    fn gates_len(&self, gates: usize, inputs: usize) -> Result<usize> {
        product(&[self.batch, self.at_once(gates, inputs)?, self.units, gates])
    }

    /// Steps whose gates are computed at a time: as many as fit into as much memory as inputs and
    /// weights have, so that many units of few inputs do not multiply it; at least one.
    fn at_once(&self, gates: usize, inputs: usize) -> Result<usize> {
        let one = product(&[self.batch, self.units, gates])?;
        let x = product(&[self.batch, self.steps, inputs])?;
        let weights = product(&[inputs.saturating_add(self.units), self.units, gates])?;
        let all = x.saturating_add(weights).max(one);
        Ok((all / one.max(1)).clamp(1, self.steps.max(1)))
    }

    /// The first step and the number of steps of the block that starts at place `place`.
    fn block(&self, place: usize, at_once: usize) -> (usize, usize) {
        let count = at_once.min(self.steps - place);
        let first = if self.reverse {
            self.steps - place - count
        } else {
            place
        };
        (first, count)
    }

    /// Projects the inputs of some steps: the gates of a sequence's steps follow each other.
    #[allow(clippy::too_many_arguments)]
    fn project(
        &self,
        kernel: &Factor<'_>,
        (first, count): (usize, usize),
        x: &[f32],
        bias: Option<&[f32]>,
        gates: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (inputs, columns) = (kernel.rows, kernel.columns);
        let parallel: &dyn Parallel = if self.batch == 1 && inputs < PARALLEL_INPUTS {
            &Serial
        } else {
            parallel
        };
        let (whole, single) = (count == self.steps, count == 1);
        // Rows of one product, their distance, and products.
        let (rows, ld, products) = if whole {
            (self.batch * self.steps, inputs, 1)
        } else if single {
            (self.batch, self.steps * inputs, 1)
        } else {
            (count, inputs, self.batch)
        };
        for sequence in 0..products {
            let from = (sequence * self.steps + first) * inputs;
            let gemm = Gemm {
                bias,
                a: Matrix::rows(x.get(from..).unwrap_or(&[]), ld),
                ..kernel.gemm(rows, x)
            };
            let to = &mut gates[sequence * count * columns..];
            gemm.run(to, columns, scratch, parallel)?;
        }
        Ok(())
    }

    fn check(&self, x: usize, inputs: usize, sequence: usize, states: &[usize]) -> Result<()> {
        check_count("x", x, self.batch * self.steps * inputs)?;
        if sequence != 0 {
            check_count("sequence", sequence, self.batch * self.steps * self.units)?;
        }
        for &state in states {
            check_count("state", state, self.batch * self.units)?;
        }
        match self.mask {
            Some(mask) => check_count("mask", mask.len(), self.batch * self.steps),
            None => Ok(()),
        }
    }

    /// The step that is read at place `place` of the walk.
    fn step(&self, place: usize) -> usize {
        if self.reverse {
            self.steps - 1 - place
        } else {
            place
        }
    }

    fn is_masked(&self, row: usize, step: usize) -> bool {
        self.mask
            .is_some_and(|mask| mask[row * self.steps + step] == 0)
    }

    /// Writes the output of one sequence at one place; `None` for a masked step.
    fn emit(&self, row: usize, place: usize, output: Option<&[f32]>, sequence: &mut [f32]) {
        if sequence.is_empty() {
            return;
        }
        let at = (row * self.steps + place) * self.units;
        match output {
            Some(output) => sequence[at..at + self.units].copy_from_slice(output),
            None if self.zero_masked || place == 0 => sequence[at..at + self.units].fill(0.0),
            None => sequence.copy_within(at - self.units..at, at),
        }
    }
}

/// The product of some sizes.
fn product(sizes: &[usize]) -> Result<usize> {
    sizes
        .iter()
        .try_fold(1_usize, |product, &size| product.checked_mul(size))
        .ok_or(Error::Overflow { argument: "units" })
}

/// `out = x * factor + bias`, or added to what `out` holds; rows of `out` are `ld` apart. The
/// factor of one row is read `backwards` every other time.
#[allow(clippy::too_many_arguments)]
fn project(
    factor: &Factor<'_>,
    rows: usize,
    x: &[f32],
    bias: Option<&[f32]>,
    (accumulate, activation): (bool, Activation),
    (out, ld): (&mut [f32], usize),
    backwards: bool,
    scratch: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    if let (1, Right::Packed(matrix)) = (rows, &factor.right) {
        let thin = Thin {
            bias,
            activation,
            accumulate,
            backwards,
        };
        return thin.run(x, matrix, &mut out[..factor.columns], parallel);
    }
    let gemm = Gemm {
        bias,
        accumulate,
        activation,
        ..factor.gemm(rows, x)
    };
    gemm.run(out, ld, scratch, parallel)
}

fn take(scratch: &mut [f32], expected: usize) -> Result<(&mut [f32], &mut [f32])> {
    let found = scratch.len();
    scratch.split_at_mut_checked(expected).ok_or(Error::Length {
        argument: "scratch",
        found,
        expected,
    })
}

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

struct LstmCell<'a> {
    gates: &'a [f32],
    hidden: &'a mut [f32],
    cell: &'a mut [f32],
}

impl Body for LstmCell<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let units = self.cell.len();
        let (input, rest) = self.gates.split_at(units);
        let (forget, rest) = rest.split_at(units);
        let (candidate, output) = rest.split_at(units);
        for (cell, ((&i, &f), &g)) in self
            .cell
            .iter_mut()
            .zip(input.iter().zip(forget).zip(candidate))
        {
            *cell = Sigmoid.apply(f) * *cell + Sigmoid.apply(i) * Tanh.apply(g);
        }
        for (hidden, (&cell, &o)) in self.hidden.iter_mut().zip(self.cell.iter().zip(output)) {
            *hidden = Sigmoid.apply(o) * Tanh.apply(cell);
        }
    }
}

impl LstmLayer<'_> {
    /// Elements of scratch memory that [`LstmLayer::run`] needs: the gates of some steps, and what
    /// products with plain matrices need.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        let rows = self.walk.batch * self.walk.steps;
        let all = self.kernel.gemm(rows, &[]).scratch_len()?;
        let one = self.recurrent.gemm(self.walk.batch, &[]).scratch_len()?;
        Ok(self.walk.gates_len(4, self.kernel.rows)? + all.max(one))
    }

    /// Reads `x`, `[batch, steps, inputs]`; advances `hidden` and `cell`, both `[batch, units]`;
    /// writes every output into `sequence`, `[batch, steps, units]`, unless that is empty.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice or matrix has not the size that the others say.
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
        let (scratch, _) = take(scratch, self.scratch_len()?)?;
        let (gates, scratch) = take(scratch, walk.gates_len(4, kernel.rows)?)?;
        if gates.is_empty() {
            return Ok(());
        }
        let add = (true, Activation::None);
        let at_once = walk.at_once(4, kernel.rows)?;
        let (mut first, mut count) = (0, 0);
        for place in 0..walk.steps {
            if place % at_once == 0 {
                (first, count) = walk.block(place, at_once);
                walk.project(kernel, (first, count), x, *bias, gates, scratch, parallel)?;
            }
            let step = walk.step(place);
            let of_step = (&mut gates[(step - first) * columns..], count * columns);
            let back = place % 2 == 1;
            project(
                recurrent, walk.batch, hidden, None, add, of_step, back, scratch, parallel,
            )?;
            for row in 0..walk.batch {
                let state = row * units..(row + 1) * units;
                if walk.is_masked(row, step) {
                    walk.emit(row, place, None, sequence);
                    continue;
                }
                dispatch(LstmCell {
                    gates: &gates[(row * count + step - first) * columns..][..columns],
                    hidden: &mut hidden[state.clone()],
                    cell: &mut cell[state.clone()],
                });
                walk.emit(row, place, Some(&hidden[state]), sequence);
            }
        }
        Ok(())
    }
}

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

/// The end of a step: the new state from the update gate and the candidate.
struct GruEnd<'a> {
    update: &'a [f32],
    /// What the reset gate multiplies, or nothing where the candidate is whole.
    reset: Option<(&'a [f32], &'a [f32])>,
    candidate: &'a [f32],
    hidden: &'a mut [f32],
}

impl Body for GruEnd<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let blend = |hidden: &mut f32, z: f32, candidate: f32| {
            let z = Sigmoid.apply(z);
            *hidden = z * *hidden + (1.0 - z) * Tanh.apply(candidate);
        };
        let gates = self.update.iter().zip(self.candidate);
        match self.reset {
            Some((reset, state)) => {
                let rest = gates.zip(reset.iter().zip(state));
                for (hidden, ((&z, &x), (&r, &h))) in self.hidden.iter_mut().zip(rest) {
                    blend(hidden, z, x + Sigmoid.apply(r) * h);
                }
            }
            None => {
                for (hidden, (&z, &x)) in self.hidden.iter_mut().zip(gates) {
                    blend(hidden, z, x);
                }
            }
        }
    }
}

/// `out = sigmoid(reset) * hidden`.
struct GruReset<'a> {
    reset: &'a [f32],
    hidden: &'a [f32],
    out: &'a mut [f32],
}

impl Body for GruReset<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        for (out, (&r, &h)) in self.out.iter_mut().zip(self.reset.iter().zip(self.hidden)) {
            *out = Sigmoid.apply(r) * h;
        }
    }
}

/// `a += b`.
fn add(a: &mut [f32], b: &[f32]) {
    for (a, b) in a.iter_mut().zip(b) {
        *a += b;
    }
}

impl GruLayer<'_> {
    /// Elements of scratch memory that [`GruLayer::run`] needs: the gates of some steps, those of
    /// the state, and what products with plain matrices need.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        let batch = self.walk.batch;
        let all = self
            .kernel
            .gemm(batch * self.walk.steps, &[])
            .scratch_len()?;
        let one = match &self.recurrent {
            Reset::After { matrix, .. } => matrix.gemm(batch, &[]).scratch_len()?,
            Reset::Before { gates, candidate } => {
                let gates = gates.gemm(batch, &[]).scratch_len()?;
                gates.max(candidate.gemm(batch, &[]).scratch_len()?)
            }
        };
        Ok(self.walk.gates_len(3, self.kernel.rows)? + batch * 3 * self.walk.units + all.max(one))
    }

    /// Reads `x`, `[batch, steps, inputs]`; advances `hidden`, `[batch, units]`; writes every
    /// output into `sequence`, `[batch, steps, units]`, unless that is empty.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice or matrix has not the size that the others say.
    pub fn run(
        &self,
        x: &[f32],
        hidden: &mut [f32],
        sequence: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let Self { walk, kernel, .. } = self;
        let (units, columns, batch) = (walk.units, 3 * walk.units, walk.batch);
        walk.check(x.len(), kernel.rows, sequence.len(), &[hidden.len()])?;
        kernel.check("kernel", (kernel.rows, columns))?;
        match &self.recurrent {
            Reset::After { matrix, .. } => matrix.check("recurrent", (units, columns))?,
            Reset::Before { gates, candidate } => {
                gates.check("recurrent gates", (units, 2 * units))?;
                candidate.check("recurrent candidate", (units, units))?;
            }
        }
        let (scratch, _) = take(scratch, self.scratch_len()?)?;
        let (gates, scratch) = take(scratch, walk.gates_len(3, kernel.rows)?)?;
        let (state, scratch) = take(scratch, batch * columns)?;
        if gates.is_empty() {
            return Ok(());
        }
        let set = (false, Activation::None);
        let at_once = walk.at_once(3, kernel.rows)?;
        let (mut first, mut count) = (0, 0);
        for place in 0..walk.steps {
            if place % at_once == 0 {
                (first, count) = walk.block(place, at_once);
                walk.project(
                    kernel,
                    (first, count),
                    x,
                    self.bias,
                    gates,
                    scratch,
                    parallel,
                )?;
            }
            let step = walk.step(place);
            let gates_at = |row: usize| (row * count + step - first) * columns;
            let back = place % 2 == 1;
            match &self.recurrent {
                Reset::After { matrix, bias } => {
                    let to = (&mut *state, columns);
                    project(
                        matrix, batch, hidden, *bias, set, to, back, scratch, parallel,
                    )?;
                    for row in 0..batch {
                        let gates = &mut gates[gates_at(row)..][..2 * units];
                        add(gates, &state[row * columns..]);
                    }
                }
                Reset::Before {
                    gates: matrix,
                    candidate,
                } => {
                    let (sums, kept) = state.split_at_mut(2 * batch * units);
                    let to = (&mut *sums, 2 * units);
                    project(
                        matrix, batch, hidden, None, set, to, back, scratch, parallel,
                    )?;
                    for row in 0..batch {
                        let gates = &mut gates[gates_at(row)..][..2 * units];
                        add(gates, &sums[row * 2 * units..]);
                        dispatch(GruReset {
                            reset: &gates[units..],
                            hidden: &hidden[row * units..],
                            out: &mut kept[row * units..][..units],
                        });
                    }
                    let to = (&mut *sums, units);
                    project(
                        candidate, batch, kept, None, set, to, back, scratch, parallel,
                    )?;
                    for row in 0..batch {
                        let gates = &mut gates[gates_at(row) + 2 * units..][..units];
                        add(gates, &sums[row * units..]);
                    }
                }
            }
            for row in 0..batch {
                if walk.is_masked(row, step) {
                    walk.emit(row, place, None, sequence);
                    continue;
                }
                let gates = &gates[gates_at(row)..][..columns];
                let after = matches!(self.recurrent, Reset::After { .. });
                let reset = after.then(|| {
                    let state = &state[row * columns + 2 * units..][..units];
                    (&gates[units..2 * units], state)
                });
                let at = row * units..(row + 1) * units;
                dispatch(GruEnd {
                    update: &gates[..units],
                    reset,
                    candidate: &gates[2 * units..],
                    hidden: &mut hidden[at.clone()],
                });
                walk.emit(row, place, Some(&hidden[at]), sequence);
            }
        }
        Ok(())
    }
}

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
    /// Elements of scratch memory that [`SimpleRnnLayer::run`] needs.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        let rows = self.walk.batch * self.walk.steps;
        let all = self.kernel.gemm(rows, &[]).scratch_len()?;
        let one = self.recurrent.gemm(self.walk.batch, &[]).scratch_len()?;
        Ok(self.walk.gates_len(1, self.kernel.rows)? + all.max(one))
    }

    /// As [`GruLayer::run`].
    ///
    /// # Errors
    /// [`Error::Length`] if a slice or matrix has not the size that the others say.
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
        let (scratch, _) = take(scratch, self.scratch_len()?)?;
        let (sums, scratch) = take(scratch, walk.gates_len(1, kernel.rows)?)?;
        if sums.is_empty() {
            return Ok(());
        }
        let at_once = walk.at_once(1, kernel.rows)?;
        let (mut first, mut count) = (0, 0);
        for place in 0..walk.steps {
            if place % at_once == 0 {
                (first, count) = walk.block(place, at_once);
                walk.project(
                    kernel,
                    (first, count),
                    x,
                    self.bias,
                    sums,
                    scratch,
                    parallel,
                )?;
            }
            let step = walk.step(place);
            let of_step = (&mut sums[(step - first) * units..], count * units);
            let last = (true, self.activation);
            project(
                &self.recurrent,
                walk.batch,
                hidden,
                None,
                last,
                of_step,
                place % 2 == 1,
                scratch,
                // An activation is applied once, by the caller's thread.
                &Serial,
            )?;
            for row in 0..walk.batch {
                if walk.is_masked(row, step) {
                    walk.emit(row, place, None, sequence);
                    continue;
                }
                let state = &mut hidden[row * units..(row + 1) * units];
                state.copy_from_slice(&sums[(row * count + step - first) * units..][..units]);
                walk.emit(row, place, Some(state), sequence);
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
