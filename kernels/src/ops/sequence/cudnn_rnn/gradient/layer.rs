//! The gradients of one layer in one direction.

use super::super::stack::{Mode, Place, Weights};
use super::{Backward, Layer, Memory};
use crate::base::error::Result;
use crate::frame::map::{Map, map_in_place};
use crate::gemm::{Gemm, Matrix};
use crate::ops::elementwise::unary::{Sigmoid, Tanh};

impl Backward<'_> {
    /// Computes the gradients of the layer's input, states and weights.
    pub(super) fn layer(
        &self,
        (index, direction): (usize, usize),
        place: &Place,
        sequences: Layer<'_>,
        (weights, of_weights): (&Weights<'_>, &mut Weights<'_>),
        memory: &mut Memory<'_>,
    ) -> Result<()> {
        let stack = self.stack;
        let (units, batch, rows) = (stack.units, stack.batch, stack.rows());
        let columns = stack.gates() * units;
        stack.read_state(index, self.given.of_hidden, memory.hidden_gradient);
        if stack.has_cells() {
            stack.read_state(index, self.given.of_cells, memory.cell_gradient);
        }
        self.states_before(index, direction, sequences.output, memory);
        let lstm = stack.mode == Mode::Lstm;
        let gemm = Gemm {
            bias: Some(weights.bias),
            ..Gemm::new(
                (rows, columns, place.inputs),
                Matrix::rows(sequences.x, place.inputs),
                Matrix::rows(weights.kernel, columns),
            )
        };
        gemm.run(memory.gates, columns, memory.own, self.parallel)?;
        let gates = if lstm {
            &mut *memory.gates
        } else {
            &mut *memory.projected
        };
        let gemm = Gemm {
            accumulate: lstm,
            bias: Some(weights.recurrent_bias),
            ..Gemm::new(
                (rows, columns, units),
                Matrix::rows(memory.before, units),
                Matrix::rows(weights.recurrent, columns),
            )
        };
        gemm.run(gates, columns, memory.own, self.parallel)?;
        match stack.mode {
            Mode::Lstm => self.lstm_gates(index, direction, memory),
            Mode::Gru => self.gru_gates(memory),
        }
        for step in self.steps(direction).rev() {
            for row in 0..batch {
                let at = step * batch + row;
                let gates = &mut memory.gates[at * columns..][..columns];
                let projected = &mut memory.projected[at * columns..][..columns];
                if !self.is_valid(step, row) {
                    gates.fill(0.0);
                    projected.fill(0.0);
                    continue;
                }
                let state = row * units..(row + 1) * units;
                let hidden = &mut memory.hidden_gradient[state.clone()];
                let output = at * stack.width() + direction * units;
                for (gradient, of_output) in hidden.iter_mut().zip(&sequences.of_output[output..]) {
                    *gradient += of_output;
                }
                match stack.mode {
                    Mode::Lstm => {
                        let cells = &memory.cells[at * units..][..units];
                        lstm_row(gates, cells, hidden, &mut memory.cell_gradient[state]);
                    }
                    Mode::Gru => {
                        let before = &memory.before[at * units..][..units];
                        gru_row(gates, projected, before, hidden);
                    }
                }
            }
            let of_gates = if lstm {
                &*memory.gates
            } else {
                &*memory.projected
            };
            let of_gates = &of_gates[step * batch * columns..][..batch * columns];
            // The gradient of the state before the step.
            Gemm::new(
                (batch, units, columns),
                Matrix::rows(of_gates, columns),
                Matrix::columns(weights.recurrent, columns),
            )
            .run(memory.spare, units, memory.own, self.parallel)?;
            for row in 0..batch {
                if !self.is_valid(step, row) {
                    continue;
                }
                let state = row * units..(row + 1) * units;
                let hidden = memory.hidden_gradient[state.clone()].iter_mut();
                for (gradient, more) in hidden.zip(&memory.spare[state]) {
                    // What the LSTM's output gate passes on is in its gates already.
                    *gradient = if lstm { *more } else { *gradient + more };
                }
            }
        }
        let of_state = if lstm {
            &*memory.gates
        } else {
            &*memory.projected
        };
        for (of_gates, bias) in [
            (&*memory.gates, &mut *of_weights.bias),
            (of_state, &mut *of_weights.recurrent_bias),
        ] {
            bias.fill(0.0);
            for row in of_gates.chunks_exact(columns.max(1)) {
                for (sum, gradient) in bias.iter_mut().zip(row) {
                    *sum += gradient;
                }
            }
        }
        // A gradient of weights is the product of what they multiplied, transposed, and the gates'.
        let (x, of_gates) = (
            Matrix::columns(sequences.x, place.inputs),
            Matrix::rows(memory.gates, columns),
        );
        let size = (place.inputs, columns, rows);
        Gemm::new(size, x, of_gates).run(of_weights.kernel, columns, memory.own, self.parallel)?;
        let (before, of_gates) = (
            Matrix::columns(memory.before, units),
            Matrix::rows(of_state, columns),
        );
        let size = (units, columns, rows);
        Gemm::new(size, before, of_gates).run(
            of_weights.recurrent,
            columns,
            memory.own,
            self.parallel,
        )?;
        let gemm = Gemm {
            accumulate: direction > 0,
            ..Gemm::new(
                (rows, place.inputs, columns),
                Matrix::rows(memory.gates, columns),
                Matrix::columns(weights.kernel, columns),
            )
        };
        gemm.run(sequences.of_x, place.inputs, memory.own, self.parallel)
    }

    /// Fills in the outputs before each step.
    fn states_before(
        &self,
        index: usize,
        direction: usize,
        output: &[f32],
        memory: &mut Memory<'_>,
    ) {
        let (units, batch) = (self.stack.units, self.stack.batch);
        for step in 0..self.stack.steps {
            for row in 0..batch {
                let to = &mut memory.before[(step * batch + row) * units..][..units];
                let last = match direction {
                    0 => step.checked_sub(1),
                    _ => Some(step + 1).filter(|&step| step < self.stack.steps),
                };
                match last.filter(|&last| self.is_valid(last, row)) {
                    Some(last) => {
                        let at = (last * batch + row) * self.stack.width() + direction * units;
                        to.copy_from_slice(&output[at..][..units]);
                    }
                    None => {
                        to.copy_from_slice(&self.hidden[self.stack.state_at(index, row)]);
                    }
                }
            }
        }
    }

    /// Applies the functions of the gates, and fills in the cells before each step.
    fn lstm_gates(&self, index: usize, direction: usize, memory: &mut Memory<'_>) {
        let (units, batch) = (self.stack.units, self.stack.batch);
        for gates in memory.gates.chunks_exact_mut((4 * units).max(1)) {
            let (sigmoids, rest) = gates.split_at_mut(2 * units);
            let (candidate, output) = rest.split_at_mut(units);
            map_in_place(Sigmoid, sigmoids, self.parallel);
            map_in_place(Tanh, candidate, self.parallel);
            map_in_place(Sigmoid, output, self.parallel);
        }
        self.stack.read_state(index, self.cells, memory.spare);
        for step in self.steps(direction) {
            for row in 0..batch {
                let at = step * batch + row;
                let cell = &mut memory.spare[row * units..][..units];
                memory.cells[at * units..][..units].copy_from_slice(cell);
                if !self.is_valid(step, row) {
                    continue;
                }
                let gates = &memory.gates[at * 4 * units..][..4 * units];
                for (unit, cell) in cell.iter_mut().enumerate() {
                    *cell = gates[units + unit] * *cell + gates[unit] * gates[2 * units + unit];
                }
            }
        }
    }

    /// Applies the functions of the gates.
    fn gru_gates(&self, memory: &mut Memory<'_>) {
        let units = self.stack.units;
        let all = (3 * units).max(1);
        let states = memory.projected.chunks_exact(all);
        for (gates, projected) in memory.gates.chunks_exact_mut(all).zip(states) {
            let (sigmoids, candidate) = gates.split_at_mut(2 * units);
            for (gate, state) in sigmoids.iter_mut().zip(projected) {
                *gate += state;
            }
            map_in_place(Sigmoid, sigmoids, self.parallel);
            let state = &projected[2 * units..];
            for (unit, candidate) in candidate.iter_mut().enumerate() {
                *candidate += sigmoids[units + unit] * state[unit];
            }
            map_in_place(Tanh, candidate, self.parallel);
        }
    }
}

/// Turns the gates of a row into their gradients. `hidden` is the gradient of the output,
/// `cell_gradient` that of the cells after the step, and then that before it.
fn lstm_row(gates: &mut [f32], cells: &[f32], hidden: &[f32], cell_gradient: &mut [f32]) {
    let units = cells.len();
    let (input, rest) = gates.split_at_mut(units);
    let (forget, rest) = rest.split_at_mut(units);
    let (candidate, output) = rest.split_at_mut(units);
    for unit in 0..units {
        let (i, f) = (input[unit], forget[unit]);
        let (g, o) = (candidate[unit], output[unit]);
        let t = Tanh.apply(f * cells[unit] + i * g);
        let d = hidden[unit];
        let new = cell_gradient[unit] + d * o * (1.0 - t * t);
        input[unit] = new * g * i * (1.0 - i);
        forget[unit] = new * cells[unit] * f * (1.0 - f);
        candidate[unit] = new * i * (1.0 - g * g);
        output[unit] = d * t * o * (1.0 - o);
        cell_gradient[unit] = new * f;
    }
}

/// Turns the gates of a row into their gradients, once for the inputs and once for the state.
/// `hidden` is the gradient of the output, and then what passes by the gates to the state before.
fn gru_row(gates: &mut [f32], projected: &mut [f32], before: &[f32], hidden: &mut [f32]) {
    let units = before.len();
    for unit in 0..units {
        let (z, r) = (gates[unit], gates[units + unit]);
        let n = gates[2 * units + unit];
        let state = projected[2 * units + unit];
        let d = hidden[unit];
        let of_candidate = d * (1.0 - z) * (1.0 - n * n);
        let of_update = d * (before[unit] - n) * z * (1.0 - z);
        let of_reset = of_candidate * state * r * (1.0 - r);
        gates[unit] = of_update;
        gates[units + unit] = of_reset;
        gates[2 * units + unit] = of_candidate;
        projected[unit] = of_update;
        projected[units + unit] = of_reset;
        projected[2 * units + unit] = of_candidate * r;
        hidden[unit] = d * z;
    }
}
