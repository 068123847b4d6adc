//! Recurrent layers over whole sequences, as Keras defines them, with tanh and sigmoid.
//!
//! The inputs of many steps at a time are projected by one product per sequence, or by one for all
//! sequences where all steps or one are; a step then adds the projected state and updates the state
//! row by row. Several threads take a part of the units each, and meet once or twice in a step, or
//! some of the sequences ([`team`]).
//!
//! Which sums of a step are added first depends on the number of sequences, and, for a single one,
//! on the number of threads.

use core::ops::Range;

use crate::base::adapt::check_count;
use crate::base::error::{Error, Result};
use crate::base::parallel::{Parallel, Serial};
use crate::gemm::thin::Thin;
use crate::gemm::{Activation, Gemm, Matrix, Packed, Right};
use crate::simd::blocks::Block;
use team::{FEW, Part, Whole};

mod cells;
mod gru;
mod lstm;
mod simple;
mod team;
#[cfg(test)]
mod tests;

pub use gru::{GruLayer, Reset};
pub use lstm::LstmLayer;
pub use simple::SimpleRnnLayer;

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

    /// Some columns; of a packed matrix, whole panels.
    #[inline]
    fn part(&self, columns: Range<usize>) -> Self {
        if columns.len() == self.columns {
            return *self;
        }
        let right = match self.right {
            Right::Packed(matrix) => Right::Packed(matrix.part(columns.clone())),
            Right::Plain(matrix) => Right::Plain(matrix.skip_columns_of(columns.start)),
        };
        Self {
            right,
            columns: columns.len(),
            ..*self
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

    /// Projects the inputs of the next block of steps for the units of a part, if `place` is the
    /// first of it.
    fn begin(
        &self,
        kernel: &Factor<'_>,
        (place, at_once): (usize, usize),
        x: &[f32],
        bias: Option<&[f32]>,
        part: &mut Part<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        if place != part.end {
            return Ok(());
        }
        part.block = self.block(place, at_once);
        part.end += part.block.1;
        self.project(kernel, part.block, x, bias, part, parallel)
    }

    /// Projects the inputs of some steps for the units of a part: the gates of a sequence's steps
    /// follow each other.
    fn project(
        &self,
        kernel: &Factor<'_>,
        (first, count): (usize, usize),
        x: &[f32],
        bias: Option<&[f32]>,
        part: &mut Part<'_>,
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let inputs = kernel.rows;
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
        let gates = kernel.columns / self.units;
        let columns = gates * part.units;
        for sequence in 0..products {
            let from = (sequence * self.steps + first) * inputs;
            for piece in 0..part.pieces(self.units, gates) {
                let (range, at) = part.piece(piece, self.units, gates);
                let bias = bias.map(|bias| &bias[range.clone()]);
                let kernel = kernel.part(range);
                let x = x.get(from..).unwrap_or(&[]);
                let to = &mut part.gates[sequence * count * columns + at..];
                if let (true, Right::Packed(matrix)) = (single && self.batch <= FEW, kernel.right) {
                    let thin = Thin {
                        bias,
                        ..Thin::default()
                    };
                    thin_rows(&thin, rows, (x, ld), &matrix, (to, columns), parallel)?;
                    continue;
                }
                let gemm = Gemm {
                    bias,
                    a: Matrix::rows(x, ld),
                    ..kernel.gemm(rows, x)
                };
                gemm.run(to, columns, part.scratch, parallel)?;
            }
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

    /// Projects the inputs of some steps of one sequence for all units.
    fn project_all(
        &self,
        kernel: &Factor<'_>,
        block: (usize, usize),
        x: &[f32],
        bias: Option<&[f32]>,
        (gates, scratch): (&mut [f32], &mut [f32]),
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let bounds = team::bounds(self.units, self.units, 1);
        let whole = Whole {
            gates,
            scratch,
            ..Whole::outputs(&mut [], &mut [])
        };
        whole
            .parts(self.units, &bounds, 1)
            .iter_mut()
            .flatten()
            .try_for_each(|part| self.project(kernel, block, x, bias, part, parallel))
    }

    /// Whether there is nothing to do.
    fn is_empty(&self) -> bool {
        self.batch == 0 || self.steps == 0 || self.units == 0
    }

    /// Numbers below `count`, from the last one every other time.
    fn in_turn(&self, place: usize, count: usize) -> impl Iterator<Item = usize> {
        (0..count).map(move |i| if place % 2 == 1 { count - 1 - i } else { i })
    }

    /// The step that is read at place `place` of the walk.
    pub(super) fn step(&self, place: usize) -> usize {
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

    /// Writes the output of some units of one sequence at one place; `None` for a masked step.
    fn emit(
        &self,
        row: usize,
        place: usize,
        output: Option<&[f32]>,
        sequence: &mut Block<'_, f32>,
    ) {
        if sequence.rows == 0 {
            return;
        }
        let at = row * self.steps + place;
        match output {
            Some(output) => sequence.row(at).copy_from_slice(output),
            None if self.zero_masked || place == 0 => sequence.row(at).fill(0.0),
            None => sequence.copy_row(at - 1, at),
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

/// Rows of products, each on its own: those of `x` and of `out` are so many elements apart. Every
/// other row reads the matrix from its other end.
#[inline]
fn thin_rows(
    thin: &Thin<'_>,
    rows: usize,
    (x, x_ld): (&[f32], usize),
    matrix: &Packed<'_>,
    (out, ld): (&mut [f32], usize),
    parallel: &dyn Parallel,
) -> Result<()> {
    for row in 0..rows {
        let thin = Thin {
            backwards: thin.backwards != (row % 2 == 1),
            ..*thin
        };
        let x = &x[row * x_ld..][..matrix.rows()];
        thin.run(
            x,
            matrix,
            &mut out[row * ld..][..matrix.columns()],
            parallel,
        )?;
    }
    Ok(())
}

/// `out = x * factor + bias`, or added to what `out` holds; rows of `out` are `ld` apart. The
/// factor of few rows is read `backwards` every other time.
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
    if let (1..=FEW, Right::Packed(matrix)) = (rows, &factor.right) {
        let thin = Thin {
            bias,
            activation,
            accumulate,
            backwards,
        };
        return thin_rows(&thin, rows, (x, factor.rows), matrix, (out, ld), parallel);
    }
    let gemm = Gemm {
        bias,
        accumulate,
        activation,
        ..factor.gemm(rows, x)
    };
    gemm.run(out, ld, scratch, parallel)
}

/// Fails unless a bias, if there is one, has so many elements.
fn check_bias(argument: &'static str, bias: Option<&[f32]>, columns: usize) -> Result<()> {
    bias.map_or(Ok(()), |bias| check_count(argument, bias.len(), columns))
}

/// Whether to add to what the output holds, and what is applied last.
const SET: (bool, Activation) = (false, Activation::None);
const ADD: (bool, Activation) = (true, Activation::None);
