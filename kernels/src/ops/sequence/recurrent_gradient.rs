//! The gradients of one step of an LSTM or a GRU: of its inputs, states and weights.
//!
//! What the step computed on the way is computed again. The gates are in the order of
//! [`crate::ops::sequence::lstm`]; the weights are matrices as they lie in memory, not packed, because their
//! transposes are needed too.

use crate::base::adapt::check_count;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch::take;
use crate::frame::map::Map;
use crate::gemm::{Gemm, Matrix};
use crate::ops::elementwise::unary::{Sigmoid, Tanh};
use crate::simd::body::{Body, dispatch};

mod gru;

pub use self::gru::{Reset, gru_gradient, gru_scratch_len};

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
        self.batch.checked_mul(self.inputs).ok_or(overflow)?;
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

/// A product of rows and a matrix of `sizes`: rows, columns, depth.
struct Projection<'a> {
    sizes: (usize, usize, usize),
    rows: &'a [f32],
    matrix: &'a [f32],
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
        a: Matrix<'_>,
        b: Matrix<'_>,
        accumulate: bool,
        c: &mut [f32],
        ldc: usize,
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
        accumulate: bool,
        bias: Option<&[f32]>,
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
        of: &Projection<'_>,
        gates: &[f32],
        accumulate: bool,
        rows_gradient: &mut [f32],
        matrix_gradient: &mut [f32],
    ) -> Result<()> {
        let (batch, all, depth) = of.sizes;
        let gates = Matrix::rows(gates, all);
        self.multiply(
            (batch, depth, all),
            gates,
            Matrix::columns(of.matrix, all),
            accumulate,
            rows_gradient,
            depth,
        )?;
        self.multiply(
            (depth, all, batch),
            Matrix::columns(of.rows, depth),
            gates,
            true,
            matrix_gradient,
            all,
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

/// The gradients of a step of [`crate::ops::sequence::lstm::Lstm`] from the inputs, the states before it and the
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
    memory.project(of_inputs, inputs, cell.kernel, false, cell.bias, gates)?;
    memory.project(of_hidden, before.hidden, cell.recurrent, true, None, gates)?;
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
    let of_inputs = Projection {
        sizes: of_inputs,
        rows: inputs,
        matrix: cell.kernel,
    };
    memory.projection_gradients(&of_inputs, gates, false, gradients.inputs, gradients.kernel)?;
    let of_hidden = Projection {
        sizes: of_hidden,
        rows: before.hidden,
        matrix: cell.recurrent,
    };
    memory.projection_gradients(
        &of_hidden,
        gates,
        false,
        gradients.hidden,
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

#[cfg(test)]
mod tests;
