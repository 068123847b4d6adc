//! The cells of recurrent layers, as Keras defines them: one step for a batch of rows.

use crate::base::error::{Error, Result};
use crate::base::parallel::{Parallel, Serial};
use crate::base::scratch::take;
use crate::conv::geometry::check_len;
use crate::frame::map::map_in_place;
use crate::gemm::{Gemm, Matrix, Packed};
use crate::ops::elementwise::unary::{Sigmoid, Tanh};

/// Rows of a GRU whose gates are computed at a time.
pub(crate) const ROWS: usize = 128;

/// A step of an LSTM with tanh and sigmoid. The four gates follow each other in the order input,
/// forget, candidate, output.
#[derive(Clone, Copy, Debug)]
pub struct Lstm<'a> {
    /// Rows.
    pub batch: usize,
    /// Elements of the state.
    pub units: usize,
    /// `[inputs, 4 * units]`
    pub kernel: Packed<'a>,
    /// `[units, 4 * units]`
    pub recurrent: Packed<'a>,
    /// `4 * units`
    pub bias: Option<&'a [f32]>,
}

impl Lstm<'_> {
    /// Elements of scratch memory that [`Lstm::step`] needs: those of the gates.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        gates_len(self.batch, self.units, 4)
    }

    /// Advances `hidden` and `cell`, both `[batch, units]`, by the inputs `[batch, inputs]`.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the sizes say.
    pub fn step(
        &self,
        inputs: &[f32],
        hidden: &mut [f32],
        cell: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let units = self.units;
        let gates = take(scratch, self.scratch_len()?)?;
        check_len("hidden", hidden.len(), self.batch * units)?;
        check_len("cell", cell.len(), self.batch * units)?;
        let sizes = (self.batch, units, 4 * units);
        project(
            sizes,
            &self.kernel,
            inputs,
            self.bias,
            false,
            gates,
            parallel,
        )?;
        project(sizes, &self.recurrent, hidden, None, true, gates, parallel)?;
        if units == 0 {
            return Ok(());
        }
        let states = hidden
            .chunks_exact_mut(units)
            .zip(cell.chunks_exact_mut(units));
        for (gates, (hidden, cell)) in gates.chunks_exact_mut(4 * units).zip(states) {
            let (sigmoids, rest) = gates.split_at_mut(2 * units);
            let (candidate, output) = rest.split_at_mut(units);
            map_in_place(Sigmoid, sigmoids, &Serial);
            map_in_place(Tanh, candidate, &Serial);
            map_in_place(Sigmoid, output, &Serial);
            let (input, forget) = sigmoids.split_at(units);
            for i in 0..units {
                cell[i] = forget[i] * cell[i] + input[i] * candidate[i];
            }
            hidden.copy_from_slice(cell);
            map_in_place(Tanh, hidden, &Serial);
            for (hidden, output) in hidden.iter_mut().zip(output) {
                *hidden *= *output;
            }
        }
        Ok(())
    }
}

/// A step of a GRU with tanh and sigmoid. The three gates follow each other in the order update,
/// reset, candidate.
#[derive(Clone, Copy, Debug)]
pub struct Gru<'a> {
    /// Rows.
    pub batch: usize,
    /// Elements of the state.
    pub units: usize,
    /// `[inputs, 3 * units]`
    pub kernel: Packed<'a>,
    /// The recurrent matrix.
    pub recurrent: Recurrent<'a>,
    /// `3 * units`, added to the projected inputs.
    pub bias: Option<&'a [f32]>,
}

/// How the reset gate of a [`Gru`] acts.
#[derive(Clone, Copy, Debug)]
pub enum Recurrent<'a> {
    /// On the projected state (Keras: `reset_after=True`).
    ResetAfter {
        /// `[units, 3 * units]`
        matrix: Packed<'a>,
        /// `3 * units`, added to the projected state.
        bias: Option<&'a [f32]>,
    },
    /// On the state, before its projection for the candidate (Keras: `reset_after=False`).
    ResetBefore {
        /// Update and reset, `[units, 2 * units]`.
        gates: Packed<'a>,
        /// Candidate, `[units, units]`.
        candidate: Packed<'a>,
    },
}

impl Gru<'_> {
    /// Elements of scratch memory that [`Gru::step`] needs: twice those of the gates of 128 rows.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        gates_len(self.batch, self.units, 1)?;
        gates_len(self.batch.min(ROWS), self.units, 6)
    }

    /// Advances `hidden`, `[batch, units]`, by the inputs `[batch, inputs]`.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice has not the length that the sizes say.
    pub fn step(
        &self,
        inputs: &[f32],
        hidden: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let scratch = take(scratch, self.scratch_len()?)?;
        check_len("hidden", hidden.len(), self.batch * self.units)?;
        check_len("rows", inputs.len(), self.batch * self.kernel.rows())?;
        for first in (0..self.batch).step_by(ROWS) {
            let rows = first..self.batch.min(first + ROWS);
            let of = |each: usize| rows.start * each..rows.end * each;
            let (inputs, hidden) = (&inputs[of(self.kernel.rows())], &mut hidden[of(self.units)]);
            let part = Self {
                batch: rows.len(),
                ..*self
            };
            part.rows(inputs, hidden, scratch, parallel)?;
        }
        Ok(())
    }

    /// Advances rows whose gates fit into scratch memory.
    fn rows(
        &self,
        inputs: &[f32],
        hidden: &mut [f32],
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (batch, units) = (self.batch, self.units);
        let (x, h) = scratch.split_at_mut(3 * batch * units);
        let h = &mut h[..3 * batch * units];
        let sizes = (batch, units, 3 * units);
        project(sizes, &self.kernel, inputs, self.bias, false, x, parallel)?;
        if units == 0 {
            return Ok(());
        }
        let rows = |x: &[f32]| x.len() / units;
        match &self.recurrent {
            Recurrent::ResetAfter { matrix, bias } => {
                project(sizes, matrix, hidden, *bias, false, h, parallel)?;
                for (x, h) in x.chunks_exact_mut(3 * units).zip(h.chunks_exact(3 * units)) {
                    for i in 0..2 * units {
                        x[i] += h[i];
                    }
                    map_in_place(Sigmoid, &mut x[..2 * units], &Serial);
                    for i in 0..units {
                        x[2 * units + i] += x[units + i] * h[2 * units + i];
                    }
                }
            }
            Recurrent::ResetBefore { gates, candidate } => {
                let (g, rest) = h.split_at_mut(2 * batch * units);
                let sizes = (batch, units, 2 * units);
                project(sizes, gates, hidden, None, false, g, parallel)?;
                // The state after the reset, and its projection into the gates' place.
                for row in 0..rows(hidden) {
                    let (x, g) = (&mut x[row * 3 * units..], &g[row * 2 * units..]);
                    for i in 0..2 * units {
                        x[i] += g[i];
                    }
                    map_in_place(Sigmoid, &mut x[..2 * units], &Serial);
                    for i in 0..units {
                        rest[row * units + i] = hidden[row * units + i] * x[units + i];
                    }
                }
                let g = &mut g[..batch * units];
                project(
                    (batch, units, units),
                    candidate,
                    rest,
                    None,
                    false,
                    g,
                    parallel,
                )?;
                for (x, g) in x.chunks_exact_mut(3 * units).zip(g.chunks_exact(units)) {
                    for i in 0..units {
                        x[2 * units + i] += g[i];
                    }
                }
            }
        }
        for (x, hidden) in x
            .chunks_exact_mut(3 * units)
            .zip(hidden.chunks_exact_mut(units))
        {
            let (gates, candidate) = x.split_at_mut(2 * units);
            map_in_place(Tanh, candidate, &Serial);
            for i in 0..units {
                hidden[i] = gates[i] * hidden[i] + (1.0 - gates[i]) * candidate[i];
            }
        }
        Ok(())
    }
}

fn gates_len(batch: usize, units: usize, gates: usize) -> Result<usize> {
    batch
        .checked_mul(units)
        .and_then(|x| x.checked_mul(gates))
        .ok_or(Error::Overflow { argument: "units" })
}

/// `out = (or +=) rows * matrix + bias`, where the matrix has as many rows as `rows` has columns.
fn project(
    (batch, _, columns): (usize, usize, usize),
    matrix: &Packed<'_>,
    rows: &[f32],
    bias: Option<&[f32]>,
    accumulate: bool,
    out: &mut [f32],
    parallel: &dyn Parallel,
) -> Result<()> {
    check_len("packed columns", matrix.columns(), columns)?;
    check_len("rows", rows.len(), batch * matrix.rows())?;
    let gemm = Gemm {
        bias,
        accumulate,
        ..Gemm::packed(batch, Matrix::rows(rows, matrix.rows()), *matrix)
    };
    gemm.run(out, columns, &mut [], parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::numbers;

    const BATCH: usize = 3;
    const INPUTS: usize = 5;
    const UNITS: usize = 7;

    fn pack<'a>(data: &[f32], rows: usize, columns: usize, memory: &'a mut Vec<f32>) -> Packed<'a> {
        memory.resize(Packed::len(rows, columns).unwrap(), 0.0);
        Packed::pack(
            &Matrix::rows(data, columns),
            (rows, columns),
            memory,
            &Serial,
        )
        .unwrap()
    }

    fn sigmoid(x: f64) -> f64 {
        1.0 / (1.0 + (-x).exp())
    }

    /// Element `j` of row `i` of a product.
    fn dot(a: &[f32], b: &[f32], k: usize, n: usize, i: usize, j: usize) -> f64 {
        (0..k)
            .map(|p| f64::from(a[i * k + p]) * f64::from(b[p * n + j]))
            .sum()
    }

    fn assert_close(found: &[f32], exact: &[f64]) {
        for (&found, exact) in found.iter().zip(exact) {
            assert!((f64::from(found) - exact).abs() < 2e-6, "{found} {exact}");
        }
    }

    #[test]
    fn lstm_matches_its_definition() {
        let n = 4 * UNITS;
        let (w, u, b) = (numbers(INPUTS * n, 1), numbers(UNITS * n, 2), numbers(n, 3));
        let (x, mut h, mut c) = (
            numbers(BATCH * INPUTS, 4),
            numbers(BATCH * UNITS, 5),
            numbers(BATCH * UNITS, 6),
        );
        let (mut exact_h, mut exact_c) = (Vec::new(), Vec::new());
        for i in 0..BATCH {
            for j in 0..UNITS {
                let gate = |gate: usize| {
                    let j = gate * UNITS + j;
                    dot(&x, &w, INPUTS, n, i, j) + dot(&h, &u, UNITS, n, i, j) + f64::from(b[j])
                };
                let cell = sigmoid(gate(1)) * f64::from(c[i * UNITS + j])
                    + sigmoid(gate(0)) * gate(2).tanh();
                exact_c.push(cell);
                exact_h.push(sigmoid(gate(3)) * cell.tanh());
            }
        }
        let (mut m1, mut m2) = (Vec::new(), Vec::new());
        let lstm = Lstm {
            batch: BATCH,
            units: UNITS,
            kernel: pack(&w, INPUTS, n, &mut m1),
            recurrent: pack(&u, UNITS, n, &mut m2),
            bias: Some(&b),
        };
        let mut scratch = vec![f32::NAN; lstm.scratch_len().unwrap()];
        lstm.step(&x, &mut h, &mut c, &mut scratch, &Serial)
            .unwrap();
        assert_close(&c, &exact_c);
        assert_close(&h, &exact_h);
        assert!(
            lstm.step(&x[1..], &mut h, &mut c, &mut scratch, &Serial)
                .is_err()
        );
        assert!(
            lstm.step(&x, &mut h, &mut c, &mut scratch[1..], &Serial)
                .is_err()
        );
    }

    #[test]
    fn gru_matches_its_definition() {
        let n = 3 * UNITS;
        let (w, u) = (numbers(INPUTS * n, 1), numbers(UNITS * n, 2));
        let (b, d) = (numbers(n, 3), numbers(n, 7));
        let (x, h) = (numbers(BATCH * INPUTS, 4), numbers(BATCH * UNITS, 5));
        let part = |from: usize, to: usize| -> Vec<f32> {
            u.chunks(n).flat_map(|row| row[from..to].to_vec()).collect()
        };
        let (gates, candidate) = (part(0, 2 * UNITS), part(2 * UNITS, n));
        for after in [true, false] {
            let mut exact = Vec::new();
            for i in 0..BATCH {
                let input = |j: usize| dot(&x, &w, INPUTS, n, i, j) + f64::from(b[j]);
                let state = |j: usize| {
                    dot(&h, &u, UNITS, n, i, j) + if after { f64::from(d[j]) } else { 0.0 }
                };
                let reset = |j: usize| sigmoid(input(UNITS + j) + state(UNITS + j));
                for j in 0..UNITS {
                    let update = sigmoid(input(j) + state(j));
                    let rest = if after {
                        reset(j) * state(2 * UNITS + j)
                    } else {
                        (0..UNITS)
                            .map(|p| {
                                reset(p)
                                    * f64::from(h[i * UNITS + p])
                                    * f64::from(u[p * n + 2 * UNITS + j])
                            })
                            .sum()
                    };
                    let candidate = (input(2 * UNITS + j) + rest).tanh();
                    let old = f64::from(h[i * UNITS + j]);
                    exact.push(update * old + (1.0 - update) * candidate);
                }
            }
            let (mut m1, mut m2, mut m3) = (Vec::new(), Vec::new(), Vec::new());
            let recurrent = if after {
                Recurrent::ResetAfter {
                    matrix: pack(&u, UNITS, n, &mut m2),
                    bias: Some(&d),
                }
            } else {
                Recurrent::ResetBefore {
                    gates: pack(&gates, UNITS, 2 * UNITS, &mut m2),
                    candidate: pack(&candidate, UNITS, UNITS, &mut m3),
                }
            };
            let gru = Gru {
                batch: BATCH,
                units: UNITS,
                kernel: pack(&w, INPUTS, n, &mut m1),
                recurrent,
                bias: Some(&b),
            };
            let mut scratch = vec![f32::NAN; gru.scratch_len().unwrap()];
            let mut found = h.clone();
            gru.step(&x, &mut found, &mut scratch, &Serial).unwrap();
            assert_close(&found, &exact);
        }
    }
}
