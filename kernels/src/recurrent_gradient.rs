//! The gradients of one step of an LSTM or a GRU: of its inputs, states and weights.
//!
//! What the step computed on the way is computed again. The gates are in the order of
//! [`crate::lstm`]; the weights are matrices as they lie in memory, not packed, because their
//! transposes are needed too.

use crate::adapt::check_count;
use crate::body::{Body, dispatch};
use crate::error::{Error, Result};
use crate::gemm::{Gemm, Matrix};
use crate::lstm::ROWS;
use crate::map::Map;
use crate::parallel::Parallel;
use crate::unary::{Sigmoid, Tanh};

/// The sizes and weights of a cell with `g` gates: 4 for an LSTM, 3 for a GRU.
#[derive(Clone, Copy, Debug)]
pub struct Cell<'a> {
    /// Rows.
    pub batch: usize,
    /// Elements of an input.
    pub inputs: usize,
    /// Elements of a state.
    pub units: usize,
    /// `[inputs, g * units]`
    pub kernel: &'a [f32],
    /// `[units, g * units]`
    pub recurrent: &'a [f32],
    /// `g * units`
    pub bias: Option<&'a [f32]>,
}

/// Where the gradients of a [`Cell`] go.
#[derive(Debug)]
pub struct Gradients<'a> {
    /// `[batch, inputs]`, overwritten.
    pub inputs: &'a mut [f32],
    /// That of the state before the step, `[batch, units]`, overwritten.
    pub hidden: &'a mut [f32],
    /// As long as the kernel; added to, because all steps share it.
    pub kernel: &'a mut [f32],
    /// As long as the recurrent matrix; added to.
    pub recurrent: &'a mut [f32],
    /// As long as the bias; added to. Only where there is one.
    pub bias: Option<&'a mut [f32]>,
}

/// The sizes of the products of a step with so many gates, with transposes of A and B.
type Product = ((usize, usize, usize), bool, bool);

impl Cell<'_> {
    fn products(&self, gates: usize) -> [Product; 12] {
        let (batch, inputs, units) = (self.batch, self.inputs, self.units);
        let all = gates * units;
        [
            ((batch, all, inputs), false, false),
            ((batch, all, units), false, false),
            ((batch, inputs, all), false, true),
            ((batch, units, all), false, true),
            ((inputs, all, batch), true, false),
            ((units, all, batch), true, false),
            // A GRU whose reset gate acts on the state has a matrix in two parts.
            ((batch, 2 * units, units), false, false),
            ((batch, units, 2 * units), false, true),
            ((units, 2 * units, batch), true, false),
            ((batch, units, units), false, false),
            ((batch, units, units), false, true),
            ((units, units, batch), true, false),
        ]
    }

    /// Elements of scratch memory that the products need, after `kept` elements per row and unit.
    fn scratch(&self, gates: usize, kept: usize) -> Result<usize> {
        let overflow = Error::Overflow { argument: "units" };
        let whole = [self.batch, self.units, kept]
            .into_iter()
            .try_fold(1_usize, usize::checked_mul)
            .ok_or(overflow)?;
        for factor in [self.batch, self.inputs, self.units] {
            self.units
                .checked_mul(gates)
                .and_then(|all| all.checked_mul(factor))
                .ok_or(overflow)?;
        }
        let mut most = 0;
        for (sizes, a, b) in self.products(gates) {
            let [a, b] = [a, b].map(|transposed| Matrix {
                transposed,
                ..Matrix::rows(&[], 0)
            });
            most = most.max(Gemm::new(sizes, a, b).scratch_len()?);
        }
        whole.checked_add(most).ok_or(overflow)
    }

    fn check(&self, gates: usize, inputs: &[f32], states: &[(&'static str, usize)]) -> Result<()> {
        let all = gates * self.units;
        check_count("inputs", inputs.len(), self.batch * self.inputs)?;
        check_count("kernel", self.kernel.len(), self.inputs * all)?;
        check_count("recurrent", self.recurrent.len(), self.units * all)?;
        if let Some(bias) = self.bias {
            check_count("bias", bias.len(), all)?;
        }
        for &(argument, found) in states {
            check_count(argument, found, self.batch * self.units)?;
        }
        Ok(())
    }

    fn check_gradients(&self, gradients: &Gradients<'_>) -> Result<()> {
        let states = self.batch * self.units;
        check_count(
            "inputs gradient",
            gradients.inputs.len(),
            self.batch * self.inputs,
        )?;
        check_count("hidden gradient", gradients.hidden.len(), states)?;
        check_count("kernel gradient", gradients.kernel.len(), self.kernel.len())?;
        let found = gradients.recurrent.len();
        check_count("recurrent gradient", found, self.recurrent.len())?;
        let found = gradients.bias.as_ref().map_or(0, |bias| bias.len());
        let expected = match gradients.bias {
            Some(_) => self.bias.map_or(0, <[f32]>::len),
            None => 0,
        };
        check_count("bias gradient", found, expected)
    }
}

/// What products share.
struct Memory<'a> {
    scratch: &'a mut [f32],
    parallel: &'a dyn Parallel,
}

impl Memory<'_> {
    /// `c = a * b`, or added to what `c` holds; rows of `c` are `ldc` apart.
    fn multiply(
        &mut self,
        sizes: (usize, usize, usize),
        (a, b): (Matrix<'_>, Matrix<'_>),
        accumulate: bool,
        (c, ldc): (&mut [f32], usize),
    ) -> Result<()> {
        let gemm = Gemm {
            accumulate,
            ..Gemm::new(sizes, a, b)
        };
        gemm.run(c, ldc, self.scratch, self.parallel)
    }

    /// `gates = rows * matrix + bias`, or added to what `gates` holds.
    fn project(
        &mut self,
        (batch, all, depth): (usize, usize, usize),
        rows: &[f32],
        matrix: &[f32],
        (accumulate, bias): (bool, Option<&[f32]>),
        gates: &mut [f32],
    ) -> Result<()> {
        let (a, b) = (Matrix::rows(rows, depth), Matrix::rows(matrix, all));
        let gemm = Gemm {
            accumulate,
            bias,
            ..Gemm::new((batch, all, depth), a, b)
        };
        gemm.run(gates, all, self.scratch, self.parallel)
    }

    /// The gradients of the rows and of the matrix of a projection, from those of its result.
    /// The matrix's is added to, the rows' as well if `accumulate` says so.
    fn projection_gradients(
        &mut self,
        (batch, all, depth): (usize, usize, usize),
        (rows, matrix): (&[f32], &[f32]),
        gates: &[f32],
        (rows_gradient, accumulate): (&mut [f32], bool),
        matrix_gradient: &mut [f32],
    ) -> Result<()> {
        let gates = Matrix::rows(gates, all);
        self.multiply(
            (batch, depth, all),
            (gates, Matrix::columns(matrix, all)),
            accumulate,
            (rows_gradient, depth),
        )?;
        self.multiply(
            (depth, all, batch),
            (Matrix::columns(rows, depth), gates),
            true,
            (matrix_gradient, all),
        )
    }
}

/// Adds all rows to the gradient of a bias.
fn add_rows(rows: &[f32], sums: &mut [f32]) {
    for row in rows.chunks_exact(sums.len().max(1)) {
        for (sum, x) in sums.iter_mut().zip(row) {
            *sum += x;
        }
    }
}

fn take(scratch: &mut [f32], expected: usize) -> Result<&mut [f32]> {
    let found = scratch.len();
    scratch.get_mut(..expected).ok_or(Error::Length {
        argument: "scratch",
        found,
        expected,
    })
}

/// Elements of scratch memory that [`lstm_gradient`] needs: the gates, and what products need.
///
/// # Errors
/// [`Error::Overflow`].
pub fn lstm_scratch_len(cell: &Cell<'_>) -> Result<usize> {
    cell.scratch(4, 4)
}

/// The states of an LSTM before a step, or the gradients of those after it, `[batch, units]` each.
#[derive(Clone, Copy, Debug)]
pub struct LstmStates<'a> {
    /// The output.
    pub hidden: &'a [f32],
    /// The memory.
    pub cell: &'a [f32],
}

/// The gradients of a step of [`crate::lstm::Lstm`] from the inputs, the states before it and the
/// gradients of the states after it. `cell_gradient` is that of the memory before the step.
///
/// # Errors
/// [`Error::Length`] if a slice has not the length that the sizes say; [`Error::Overflow`].
#[allow(clippy::too_many_arguments)]
pub fn lstm_gradient(
    cell: &Cell<'_>,
    inputs: &[f32],
    before: LstmStates<'_>,
    after: LstmStates<'_>,
    gradients: &mut Gradients<'_>,
    cell_gradient: &mut [f32],
    scratch: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let needed = lstm_scratch_len(cell)?;
    let states = [
        ("hidden", before.hidden.len()),
        ("cell", before.cell.len()),
        ("hidden output gradient", after.hidden.len()),
        ("cell output gradient", after.cell.len()),
        ("cell gradient", cell_gradient.len()),
    ];
    cell.check(4, inputs, &states)?;
    cell.check_gradients(gradients)?;
    let (batch, units, all) = (cell.batch, cell.units, 4 * cell.units);
    let (gates, scratch) = take(scratch, needed)?.split_at_mut(batch * all);
    let mut memory = Memory { scratch, parallel };
    let (of_inputs, of_hidden) = ((batch, all, cell.inputs), (batch, all, units));
    memory.project(of_inputs, inputs, cell.kernel, (false, cell.bias), gates)?;
    memory.project(
        of_hidden,
        before.hidden,
        cell.recurrent,
        (true, None),
        gates,
    )?;
    for row in 0..batch {
        let of = row * units..(row + 1) * units;
        dispatch(LstmRow {
            gates: &mut gates[row * all..][..all],
            cell: &before.cell[of.clone()],
            hidden_gradient: &after.hidden[of.clone()],
            new_gradient: &after.cell[of.clone()],
            cell_gradient: &mut cell_gradient[of],
        });
    }
    if let Some(bias) = &mut gradients.bias {
        add_rows(gates, bias);
    }
    memory.projection_gradients(
        of_inputs,
        (inputs, cell.kernel),
        gates,
        (gradients.inputs, false),
        gradients.kernel,
    )?;
    memory.projection_gradients(
        of_hidden,
        (before.hidden, cell.recurrent),
        gates,
        (gradients.hidden, false),
        gradients.recurrent,
    )
}

/// Turns the gates of a row into their gradients.
struct LstmRow<'a> {
    gates: &'a mut [f32],
    cell: &'a [f32],
    hidden_gradient: &'a [f32],
    new_gradient: &'a [f32],
    cell_gradient: &'a mut [f32],
}

impl Body for LstmRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let units = self.cell.len();
        let (input, rest) = self.gates.split_at_mut(units);
        let (forget, rest) = rest.split_at_mut(units);
        let (candidate, output) = rest.split_at_mut(units);
        let output = &mut output[..units];
        let (hidden_gradient, new_gradient) =
            (&self.hidden_gradient[..units], &self.new_gradient[..units]);
        let cell_gradient = &mut self.cell_gradient[..units];
        for j in 0..units {
            let (i, f) = (Sigmoid.apply(input[j]), Sigmoid.apply(forget[j]));
            let (g, o) = (Tanh.apply(candidate[j]), Sigmoid.apply(output[j]));
            let old = self.cell[j];
            let t = Tanh.apply(f * old + i * g);
            let d = hidden_gradient[j];
            let new = new_gradient[j] + d * o * (1.0 - t * t);
            input[j] = new * g * i * (1.0 - i);
            forget[j] = new * old * f * (1.0 - f);
            candidate[j] = new * i * (1.0 - g * g);
            output[j] = d * t * o * (1.0 - o);
            cell_gradient[j] = new * f;
        }
    }
}

/// How the reset gate of a GRU acts.
#[derive(Debug)]
pub enum Reset<'a> {
    /// On the projected state (Keras: `reset_after=True`).
    After {
        /// `3 * units`, added to the projected state.
        bias: Option<&'a [f32]>,
        /// Its gradient; added to. Only where there is a bias.
        gradient: Option<&'a mut [f32]>,
    },
    /// On the state, before its projection for the candidate (Keras: `reset_after=False`).
    Before,
}

/// Elements of scratch memory that [`gru_gradient`] needs: for 128 rows, the gates of inputs and
/// state, the state after the reset and its gradient; and what products need.
///
/// # Errors
/// [`Error::Overflow`].
pub fn gru_scratch_len(cell: &Cell<'_>) -> Result<usize> {
    let all = cell.batch.checked_mul(cell.units.max(cell.inputs));
    all.ok_or(Error::Overflow { argument: "units" })?;
    let rows = |batch| Cell { batch, ..*cell };
    let last = rows(cell.batch % ROWS).scratch(3, 8)?;
    Ok(rows(cell.batch.min(ROWS)).scratch(3, 8)?.max(last))
}

/// The gradients of a step of [`crate::lstm::Gru`] from the inputs, the state before it and the
/// gradient of the state after it.
///
/// # Errors
/// [`Error::Length`] if a slice has not the length that the sizes say; [`Error::Overflow`].
#[allow(clippy::too_many_arguments)]
pub fn gru_gradient(
    cell: &Cell<'_>,
    reset: &mut Reset<'_>,
    inputs: &[f32],
    before: &[f32],
    after: &[f32],
    gradients: &mut Gradients<'_>,
    scratch: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let needed = gru_scratch_len(cell)?;
    let states = [
        ("hidden", before.len()),
        ("hidden output gradient", after.len()),
    ];
    cell.check(3, inputs, &states)?;
    cell.check_gradients(gradients)?;
    let scratch = take(scratch, needed)?;
    if let Reset::After { bias, gradient } = &*reset {
        let all = 3 * cell.units;
        let found = bias.map_or(all, <[f32]>::len);
        check_count("recurrent bias", found, all)?;
        let found = gradient.as_ref().map_or(all, |gradient| gradient.len());
        check_count("recurrent bias gradient", found, all)?;
    }
    for first in (0..cell.batch).step_by(ROWS) {
        let rows = first..cell.batch.min(first + ROWS);
        let of = |each: usize| rows.start * each..rows.end * each;
        let part = Cell {
            batch: rows.len(),
            ..*cell
        };
        let mut gradients = Gradients {
            inputs: &mut gradients.inputs[of(cell.inputs)],
            hidden: &mut gradients.hidden[of(cell.units)],
            kernel: gradients.kernel,
            recurrent: gradients.recurrent,
            bias: gradients.bias.as_deref_mut(),
        };
        gru_rows(
            &part,
            reset,
            &inputs[of(cell.inputs)],
            (&before[of(cell.units)], &after[of(cell.units)]),
            &mut gradients,
            scratch,
            parallel,
        )?;
    }
    Ok(())
}

/// The gradients of rows whose gates fit into scratch memory.
fn gru_rows(
    cell: &Cell<'_>,
    reset: &mut Reset<'_>,
    inputs: &[f32],
    (before, after): (&[f32], &[f32]),
    gradients: &mut Gradients<'_>,
    scratch: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    let (batch, units, all) = (cell.batch, cell.units, 3 * cell.units);
    let (x, rest) = scratch.split_at_mut(batch * all);
    let (h, rest) = rest.split_at_mut(batch * all);
    let (kept, rest) = rest.split_at_mut(batch * units);
    let (kept_gradient, scratch) = rest.split_at_mut(batch * units);
    let mut memory = Memory { scratch, parallel };
    let (of_inputs, of_hidden) = ((batch, all, cell.inputs), (batch, all, units));
    memory.project(of_inputs, inputs, cell.kernel, (false, cell.bias), x)?;
    match reset {
        Reset::After { bias, gradient } => {
            memory.project(of_hidden, before, cell.recurrent, (false, *bias), h)?;
            for row in 0..batch {
                dispatch(AfterRow(GruRow::new(
                    row,
                    units,
                    (x, h),
                    before,
                    after,
                    gradients,
                )));
            }
            if let Some(gradient) = gradient {
                add_rows(h, gradient);
            }
            memory.projection_gradients(
                of_hidden,
                (before, cell.recurrent),
                h,
                (gradients.hidden, true),
                gradients.recurrent,
            )?;
        }
        Reset::Before => {
            let kept = (kept, kept_gradient);
            reset_before(cell, &mut memory, (x, h), kept, (before, after), gradients)?;
        }
    }
    if let Some(bias) = &mut gradients.bias {
        add_rows(x, bias);
    }
    memory.projection_gradients(
        of_inputs,
        (inputs, cell.kernel),
        x,
        (gradients.inputs, false),
        gradients.kernel,
    )
}

/// The columns from `first` on of a matrix of `ld` columns, or their transpose.
fn part(data: &[f32], first: usize, ld: usize, transposed: bool) -> Matrix<'_> {
    Matrix {
        data: data.get(first..).unwrap_or(&[]),
        ld,
        transposed,
    }
}

/// Turns `x`, the projected inputs, into the gradients of the gates, where the reset gate acts on
/// the state, and computes the gradients of state and recurrent matrix.
fn reset_before(
    cell: &Cell<'_>,
    memory: &mut Memory<'_>,
    (x, h): (&mut [f32], &mut [f32]),
    (kept, kept_gradient): (&mut [f32], &mut [f32]),
    (before, after): (&[f32], &[f32]),
    gradients: &mut Gradients<'_>,
) -> Result<()> {
    let (batch, units) = (cell.batch, cell.units);
    if batch == 0 || units == 0 {
        return Ok(());
    }
    // The recurrent matrix has a part for two gates and one for the candidate.
    let (all, two) = (3 * units, 2 * units);
    let weights = |first, transposed| part(cell.recurrent, first, all, transposed);
    memory.multiply(
        (batch, two, units),
        (Matrix::rows(before, units), weights(0, false)),
        false,
        (h, all),
    )?;
    for row in 0..batch {
        let (x, h) = (&x[row * all + units..], &mut h[row * all + units..]);
        let of = row * units..(row + 1) * units;
        let states = before[of.clone()].iter().zip(&mut kept[of]);
        for ((old, kept), (x, h)) in states.zip(x.iter().zip(h)) {
            *h = Sigmoid.apply(x + *h);
            *kept = *h * old;
        }
    }
    memory.multiply(
        (batch, units, units),
        (Matrix::rows(kept, units), weights(two, false)),
        false,
        (&mut h[two..], all),
    )?;
    for row in 0..batch {
        dispatch(BeforeRow(GruRow::new(
            row,
            units,
            (x, h),
            before,
            after,
            gradients,
        )));
    }
    memory.multiply(
        (batch, units, units),
        (part(x, two, all, false), weights(two, true)),
        false,
        (kept_gradient, units),
    )?;
    for row in 0..batch {
        let (x, h) = (&mut x[row * all + units..], &h[row * all + units..]);
        let of = row * units..(row + 1) * units;
        let states = before[of.clone()]
            .iter()
            .zip(&mut gradients.hidden[of.clone()]);
        let gates = x.iter_mut().zip(h);
        for ((d, (old, hidden)), (x, reset)) in kept_gradient[of].iter().zip(states).zip(gates) {
            *x = d * old * reset * (1.0 - reset);
            *hidden += d * reset;
        }
    }
    memory.multiply(
        (units, units, batch),
        (Matrix::columns(kept, units), part(x, two, all, false)),
        true,
        (&mut gradients.recurrent[two..], all),
    )?;
    memory.multiply(
        (batch, units, two),
        (part(x, 0, all, false), weights(0, true)),
        true,
        (gradients.hidden, units),
    )?;
    memory.multiply(
        (units, two, batch),
        (Matrix::columns(before, units), part(x, 0, all, false)),
        true,
        (gradients.recurrent, all),
    )
}

/// One row of a GRU: the projections of inputs and state, which become gradients.
struct GruRow<'a> {
    x: &'a mut [f32],
    h: &'a mut [f32],
    old: &'a [f32],
    after: &'a [f32],
    hidden: &'a mut [f32],
}

impl<'a> GruRow<'a> {
    fn new(
        row: usize,
        units: usize,
        (x, h): (&'a mut [f32], &'a mut [f32]),
        before: &'a [f32],
        after: &'a [f32],
        gradients: &'a mut Gradients<'_>,
    ) -> Self {
        let of = row * units..(row + 1) * units;
        let all = 3 * of.start..3 * of.end;
        Self {
            x: &mut x[all.clone()],
            h: &mut h[all],
            old: &before[of.clone()],
            after: &after[of.clone()],
            hidden: &mut gradients.hidden[of],
        }
    }
}

/// A row whose reset gate acts on the projected state.
struct AfterRow<'a>(GruRow<'a>);

impl Body for AfterRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let GruRow {
            x,
            h,
            old,
            after,
            hidden,
        } = self.0;
        let units = old.len();
        let (x_update, x) = x.split_at_mut(units);
        let (x_reset, x_candidate) = x.split_at_mut(units);
        let (h_update, h) = h.split_at_mut(units);
        let (h_reset, h_candidate) = h.split_at_mut(units);
        for j in 0..units {
            let update = Sigmoid.apply(x_update[j] + h_update[j]);
            let reset = Sigmoid.apply(x_reset[j] + h_reset[j]);
            let state = h_candidate[j];
            let candidate = Tanh.apply(x_candidate[j] + reset * state);
            let d = after[j];
            let inner = d * (1.0 - update) * (1.0 - candidate * candidate);
            x_update[j] = d * (old[j] - candidate) * update * (1.0 - update);
            x_reset[j] = inner * state * reset * (1.0 - reset);
            x_candidate[j] = inner;
            h_update[j] = x_update[j];
            h_reset[j] = x_reset[j];
            h_candidate[j] = inner * reset;
            hidden[j] = d * update;
        }
    }
}

/// A row whose reset gate acts on the state; all but the gradient of that gate, in whose place of
/// `h` its value is.
struct BeforeRow<'a>(GruRow<'a>);

impl Body for BeforeRow<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let GruRow {
            x,
            h,
            old,
            after,
            hidden,
        } = self.0;
        let units = old.len();
        let (x_update, x) = x.split_at_mut(units);
        let x_candidate = &mut x[units..];
        let (h_update, h) = h.split_at_mut(units);
        let h_candidate = &h[units..];
        for j in 0..units {
            let update = Sigmoid.apply(x_update[j] + h_update[j]);
            let candidate = Tanh.apply(x_candidate[j] + h_candidate[j]);
            let d = after[j];
            x_update[j] = d * (old[j] - candidate) * update * (1.0 - update);
            x_candidate[j] = d * (1.0 - update) * (1.0 - candidate * candidate);
            hidden[j] = d * update;
        }
    }
}

#[cfg(test)]
mod tests;
