//! The sizes of a stack of layers, and where its parameters and states are.

use crate::base::adapt::{check_count, check_rank, check_shape};
use crate::base::def::Inputs;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::ops::sequence::recurrent::Walk;

/// The kind of layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    Lstm,
    Gru,
}

/// The sizes of a stack of layers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stack {
    pub(super) mode: Mode,
    pub(super) layers: usize,
    /// 2 if each layer goes through its sequences in both directions.
    pub(super) directions: usize,
    pub(super) batch: usize,
    pub(super) steps: usize,
    pub(super) inputs: usize,
    pub(super) units: usize,
    /// Whether the first axis of inputs and outputs is that of the steps.
    pub(super) time_major: bool,
}

/// Where the parameters of a layer in one direction are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place {
    /// Elements of an input.
    pub(super) inputs: usize,
    pub(super) kernel: usize,
    pub(super) recurrent: usize,
    pub(super) bias: usize,
    pub(super) recurrent_bias: usize,
}

const OVERFLOW: Error = Error::Overflow { argument: "params" };

/// The product of some sizes.
pub(super) fn product(sizes: &[usize]) -> Result<usize> {
    let mut sizes = sizes.iter();
    sizes
        .try_fold(1_usize, |product, &size| product.checked_mul(size))
        .ok_or(OVERFLOW)
}

pub(super) fn sum(sizes: &[usize]) -> Result<usize> {
    let mut sizes = sizes.iter();
    sizes
        .try_fold(0_usize, |sum, &size| sum.checked_add(size))
        .ok_or(OVERFLOW)
}

impl Stack {
    /// Of the inputs of any of the ops; the first four are the same for all.
    pub(super) fn of(inputs: &Inputs<'_>) -> Result<Self> {
        let attrs = inputs.attrs;
        let mode = match attrs.string("rnn_mode")? {
            "lstm" => Mode::Lstm,
            "gru" => Mode::Gru,
            _ => {
                return Err(Error::Value {
                    argument: "rnn_mode",
                    expected: "'lstm' or 'gru'",
                });
            }
        };
        let directions = match attrs.string("direction")? {
            "unidirectional" => 1,
            "bidirectional" => 2,
            _ => {
                return Err(Error::Value {
                    argument: "direction",
                    expected: "'unidirectional' or 'bidirectional'",
                });
            }
        };
        let third = has_lengths(inputs);
        let time_major = !third || attrs.boolean("time_major")?;
        if third && attrs.int("num_proj")? != 0 {
            return Err(Error::Value {
                argument: "num_proj",
                expected: "0, a projection of the output has no kernel",
            });
        }
        let (x, state) = (inputs.shape(0, "input")?, inputs.shape(1, "input_h")?);
        check_rank(&x, "input", 3, "3")?;
        check_rank(&state, "input_h", 3, "3")?;
        let [(steps, batch), (all, _)] = [&x, &state].map(|shape| {
            let (first, second) = (shape[0], shape[1]);
            if time_major {
                (first, second)
            } else {
                (second, first)
            }
        });
        let stack = Self {
            mode,
            layers: all / directions,
            directions,
            batch,
            steps,
            inputs: x[2],
            units: state[2],
            time_major,
        };
        if all == 0 || all % directions != 0 {
            return Err(Error::Value {
                argument: "input_h",
                expected: "a state for each layer and direction",
            });
        }
        check_shape("input_h", &state, &stack.states()?)?;
        if stack.has_cells() {
            check_shape("input_c", &inputs.shape(2, "input_c")?, &state)?;
        }
        if stack.layers > 1 && attrs.float("dropout")? != 0.0 {
            return Err(Error::Value {
                argument: "dropout",
                expected: "0, dropout between layers has no kernel",
            });
        }
        let projected = match attrs.string("input_mode")? {
            "linear_input" => true,
            "auto_select" => stack.inputs != stack.units,
            _ => false,
        };
        if !projected {
            return Err(Error::Value {
                argument: "input_mode",
                expected: "'linear_input'",
            });
        }
        stack.all_elements()?;
        let params = inputs.shape(3, "params")?.elements();
        check_count("params", params, stack.params_len()?)?;
        if third {
            let lengths = inputs.shape(4, "sequence_lengths")?;
            check_shape("sequence_lengths", &lengths, &Shape::new(&[batch])?)?;
        }
        Ok(stack)
    }

    pub(super) fn has_cells(&self) -> bool {
        self.mode == Mode::Lstm
    }

    pub(super) fn gates(&self) -> usize {
        match self.mode {
            Mode::Lstm => 4,
            Mode::Gru => 3,
        }
    }

    /// Elements of an output of a layer.
    pub(super) fn width(&self) -> usize {
        self.directions * self.units
    }

    /// Elements of an input of a layer.
    pub(super) fn width_into(&self, layer: usize) -> usize {
        if layer == 0 {
            self.inputs
        } else {
            self.width()
        }
    }

    /// Rows of all steps.
    pub(super) fn rows(&self) -> usize {
        self.batch * self.steps
    }

    /// Fails if any size that is computed below has no `usize`.
    pub(super) fn all_elements(&self) -> Result<()> {
        let widest = self.inputs.max(product(&[2, self.units])?);
        product(&[self.batch.max(1), self.steps.max(1), widest.max(1), 8])?;
        product(&[sum(&[widest, self.units, 2])?.max(1), self.units.max(1), 16])?;
        Ok(())
    }

    pub(super) fn states(&self) -> Result<Shape> {
        let all = self.layers * self.directions;
        if self.time_major {
            Shape::new(&[all, self.batch, self.units])
        } else {
            Shape::new(&[self.batch, all, self.units])
        }
    }

    pub(super) fn sequence(&self, width: usize) -> Result<Shape> {
        if self.time_major {
            Shape::new(&[self.steps, self.batch, width])
        } else {
            Shape::new(&[self.batch, self.steps, width])
        }
    }

    /// Elements of the matrices of a layer in one direction.
    pub(super) fn matrices(&self, layer: usize) -> Result<usize> {
        let rows = sum(&[self.width_into(layer), self.units])?;
        product(&[self.gates(), self.units, rows])
    }

    pub(super) fn params_len(&self) -> Result<usize> {
        let last = self.place(self.layers - 1, self.directions - 1)?;
        sum(&[last.recurrent_bias, self.gates() * self.units])
    }

    pub(super) fn place(&self, layer: usize, direction: usize) -> Result<Place> {
        let columns = self.gates() * self.units;
        let (first, other) = (self.matrices(0)?, self.matrices(1)?);
        // Matrices of so many layers and directions, in the order of the parameters.
        let matrices = |count: usize| {
            let of_first = count.min(self.directions);
            sum(&[
                product(&[of_first, first])?,
                product(&[count - of_first, other])?,
            ])
        };
        let index = layer * self.directions + direction;
        let kernel = matrices(index)?;
        let inputs = self.width_into(layer);
        let bias = sum(&[
            matrices(self.layers * self.directions)?,
            product(&[index, 2, columns])?,
        ])?;
        Ok(Place {
            inputs,
            kernel,
            recurrent: sum(&[kernel, product(&[columns, inputs])?])?,
            bias,
            recurrent_bias: sum(&[bias, columns])?,
        })
    }

    /// Where the state of a layer and direction is for a row.
    pub(super) fn state_at(&self, index: usize, row: usize) -> core::ops::Range<usize> {
        let at = if self.time_major {
            index * self.batch + row
        } else {
            row * self.layers * self.directions + index
        };
        at * self.units..(at + 1) * self.units
    }

    /// Copies the state of a layer and direction out of a tensor of states.
    pub(super) fn read_state(&self, index: usize, states: &[f32], state: &mut [f32]) {
        for (row, to) in state.chunks_exact_mut(self.units.max(1)).enumerate() {
            to.copy_from_slice(&states[self.state_at(index, row)]);
        }
    }

    /// Copies the state of a layer and direction into a tensor of states.
    pub(super) fn write_state(&self, index: usize, state: &[f32], states: &mut [f32]) {
        for (row, from) in state.chunks_exact(self.units.max(1)).enumerate() {
            states[self.state_at(index, row)].copy_from_slice(from);
        }
    }

    /// Writes the matrices `[inputs, gates * units]` and `[units, gates * units]` and the biases
    /// of a layer and direction.
    pub(super) fn unpack(&self, place: &Place, params: &[f32], weights: &mut Weights<'_>) {
        let columns = self.gates() * self.units;
        for (start, depth, matrix) in [
            (place.kernel, place.inputs, &mut *weights.kernel),
            (place.recurrent, self.units, &mut *weights.recurrent),
        ] {
            let source = &params[start..][..columns * depth];
            swap(source, (columns, depth, 1), matrix);
        }
        let of = |start: usize| &params[start..][..columns];
        weights.bias.copy_from_slice(of(place.bias));
        let recurrent_bias = of(place.recurrent_bias);
        weights.recurrent_bias.copy_from_slice(recurrent_bias);
    }

    /// The other way round.
    pub(super) fn pack(&self, place: &Place, weights: &Weights<'_>, params: &mut [f32]) {
        let columns = self.gates() * self.units;
        for (start, depth, matrix) in [
            (place.kernel, place.inputs, &*weights.kernel),
            (place.recurrent, self.units, &*weights.recurrent),
        ] {
            let target = &mut params[start..][..columns * depth];
            swap(matrix, (depth, columns, 1), target);
        }
        for (start, bias) in [
            (place.bias, &*weights.bias),
            (place.recurrent_bias, &*weights.recurrent_bias),
        ] {
            params[start..][..columns].copy_from_slice(bias);
        }
    }

    pub(super) fn walk<'a>(&self, reverse: bool, mask: Option<&'a [u8]>) -> Walk<'a> {
        Walk {
            batch: self.batch,
            steps: self.steps,
            units: self.units,
            reverse,
            mask,
            zero_masked: true,
        }
    }

    /// Elements of [`Weights`].
    pub(super) fn weights_len(&self) -> usize {
        let widest = self.inputs.max(self.width());
        (widest + self.units + 2) * self.gates() * self.units
    }
}

/// The weights of a layer in one direction, as the layers take them.
pub(super) struct Weights<'a> {
    pub(super) kernel: &'a mut [f32],
    pub(super) recurrent: &'a mut [f32],
    pub(super) bias: &'a mut [f32],
    pub(super) recurrent_bias: &'a mut [f32],
}

impl<'a> Weights<'a> {
    pub(super) fn new(stack: &Stack, inputs: usize, memory: &'a mut [f32]) -> Self {
        let columns = stack.gates() * stack.units;
        let (kernel, rest) = memory.split_at_mut(inputs * columns);
        let (recurrent, rest) = rest.split_at_mut(stack.units * columns);
        let (bias, rest) = rest.split_at_mut(columns);
        Self {
            kernel,
            recurrent,
            bias,
            recurrent_bias: &mut rest[..columns],
        }
    }
}

/// Swaps the first two axes: `x` is `[first, second, width]`.
pub(super) fn swap(x: &[f32], (first, second, width): (usize, usize, usize), out: &mut [f32]) {
    if width == 0 {
        return;
    }
    for (index, row) in x.chunks_exact(width).enumerate() {
        let (i, j) = (index / second, index % second);
        out[(j * first + i) * width..][..width].copy_from_slice(row);
    }
}

/// Whether the op is of the third version, or its gradient: they have one input more, the lengths
/// of the sequences.
pub(super) fn has_lengths(inputs: &Inputs<'_>) -> bool {
    matches!(inputs.tensors.len(), 5 | 13)
}

/// The number of steps of each sequence; all if there is no such input.
pub(super) fn lengths<'a>(stack: &Stack, inputs: &Inputs<'a>) -> Result<Option<&'a [i32]>> {
    if !has_lengths(inputs) {
        return Ok(None);
    }
    let lengths = inputs.get(4, "sequence_lengths")?.i32("sequence_lengths")?;
    if !lengths_are_valid(lengths, stack.steps) {
        return Err(Error::Value {
            argument: "sequence_lengths",
            expected: "numbers of steps from 0 to those of the input",
        });
    }
    let whole = |&length: &i32| usize::try_from(length) == Ok(stack.steps);
    Ok((!lengths.iter().all(whole)).then_some(lengths))
}

/// Whether no sequence is longer than there are steps.
pub(super) fn lengths_are_valid(lengths: &[i32], steps: usize) -> bool {
    let known = |&length: &i32| usize::try_from(length).is_ok_and(|length| length <= steps);
    lengths.iter().all(known)
}
