//! `CudnnRNN`, `CudnnRNNV2`, `CudnnRNNV3` and their gradients: what programs made for GPUs call for
//! LSTM and GRU layers.
//!
//! The parameters are one vector: for each layer and direction the matrices of the gates for the
//! inputs, `[units, inputs]` each, and those for the state, `[units, units]` each; then, in the same
//! order, the biases for the inputs and those for the state. The gates of an LSTM are input,
//! forget, candidate, output, those of a GRU update, reset, candidate. The reset gate acts on the
//! projected state.
//!
//! cuDNN itself has a GRU's reset gate first. Keras swaps the two for it where TensorFlow is built
//! with CUDA, and there GPUs are not ours.

use crate::base::adapt::variants;
use crate::base::def::{AttrKind, Call, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch::{f32_bytes, f32s, take};
use crate::base::shape::Shape;
use crate::gemm::Matrix;
use crate::ops::sequence::recurrent::{Factor, GruLayer, LstmLayer, Reset, Walk};
use stack::{Mode, Stack, Weights, lengths, product, sum, swap};

mod gradient;
mod stack;
#[cfg(test)]
mod tests;

pub use gradient::{BACKPROP, BACKPROP_V2, BACKPROP_V3};

/// Arguments in host memory of the second version.
pub const HOST: &[&str] = &["host_reserved"];
/// Those of the third version, which has sequences of different lengths.
pub const HOST_V3: &[&str] = &["sequence_lengths", "host_reserved"];
const ATTRS: &[(&str, AttrKind)] = &[
    ("rnn_mode", AttrKind::String),
    ("input_mode", AttrKind::String),
    ("direction", AttrKind::String),
    ("dropout", AttrKind::Float),
];
const ATTRS_V3: &[(&str, AttrKind)] = &[
    ("rnn_mode", AttrKind::String),
    ("input_mode", AttrKind::String),
    ("direction", AttrKind::String),
    ("dropout", AttrKind::Float),
    ("num_proj", AttrKind::Int),
    ("time_major", AttrKind::Bool),
];

/// The kernel of the first version.
pub static DEF: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: ATTRS,
    outputs,
    scratch,
    run,
    ..KernelDef::of("CudnnRNN")
};

/// The kernel of the second version, which has an output in host memory.
pub static V2: KernelDef = KernelDef {
    variants: variants!(["T": F32] host HOST;),
    attrs: ATTRS,
    outputs: outputs_and_reserved,
    scratch,
    run,
    ..KernelDef::of("CudnnRNNV2")
};

/// The kernel of the third version.
pub static V3: KernelDef = KernelDef {
    variants: variants!(["T": F32] host HOST_V3;),
    attrs: ATTRS_V3,
    outputs: outputs_and_reserved,
    scratch,
    run,
    ..KernelDef::of("CudnnRNNV3")
};

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let stack = Stack::of(inputs)?;
    let states = stack.states()?;
    sink(DType::F32, stack.sequence(stack.width())?)?;
    sink(DType::F32, states)?;
    let cells = if stack.has_cells() {
        states
    } else {
        Shape::SCALAR
    };
    sink(DType::F32, cells)?;
    // The outputs of all layers but the last, which the gradients need.
    let kept = product(&[stack.layers - 1, stack.rows(), stack.width()])?;
    sink(DType::F32, Shape::new(&[kept])?)?;
    Ok(())
}

/// Those of the later versions, which have one in host memory; this device leaves it empty.
fn outputs_and_reserved(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    outputs(inputs, sink)?;
    sink(DType::I8, Shape::new(&[0])?)
}

/// Elements of the parts of the scratch memory.
struct Parts {
    /// The input of a layer, and its output.
    layer: usize,
    /// The outputs of one direction.
    sequence: usize,
    weights: usize,
    state: usize,
    /// What a layer needs.
    own: usize,
}

impl Parts {
    fn of(stack: &Stack) -> Result<Self> {
        let widest = stack.inputs.max(stack.width());
        let mut own = 0;
        for inputs in [stack.inputs, stack.width()] {
            let (kernel, recurrent) = factors(stack, inputs, &[], &[]);
            let walk = stack.walk(false, None);
            own = own.max(match stack.mode {
                Mode::Lstm => LstmLayer {
                    walk,
                    kernel,
                    recurrent,
                    bias: None,
                }
                .scratch_len()?,
                Mode::Gru => GruLayer {
                    walk,
                    kernel,
                    recurrent: Reset::After {
                        matrix: recurrent,
                        bias: None,
                    },
                    bias: None,
                }
                .scratch_len()?,
            });
        }
        Ok(Self {
            layer: stack.rows() * widest,
            sequence: stack.rows() * stack.units,
            weights: stack.weights_len(),
            state: stack.batch * stack.units,
            own,
        })
    }

    fn len(&self) -> Result<usize> {
        sum(&[
            product(&[2, self.layer])?,
            self.sequence,
            self.weights,
            product(&[2, self.state])?,
            self.own,
        ])
    }
}

/// The matrices of a layer as the layers take them.
fn factors<'a>(
    stack: &Stack,
    inputs: usize,
    kernel: &'a [f32],
    recurrent: &'a [f32],
) -> (Factor<'a>, Factor<'a>) {
    let columns = stack.gates() * stack.units;
    (
        Factor::plain(Matrix::rows(kernel, columns), (inputs, columns)),
        Factor::plain(Matrix::rows(recurrent, columns), (stack.units, columns)),
    )
}

fn scratch(inputs: &Inputs<'_>) -> Result<usize> {
    let stack = Stack::of(inputs)?;
    // Behind the numbers there is a byte for each step: whether it is valid.
    sum(&[f32_bytes(Parts::of(&stack)?.len()?)?, stack.rows()])
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let inputs = &call.inputs;
    let stack = Stack::of(inputs)?;
    let lengths = lengths(&stack, inputs)?;
    let x = inputs.get(0, "input")?.f32("input")?;
    let hidden = inputs.get(1, "input_h")?.f32("input_h")?;
    let cells = inputs.get(2, "input_c")?.f32("input_c")?;
    let params = inputs.get(3, "params")?.f32("params")?;
    let parallel = call.parallel;
    let numbers = f32_bytes(Parts::of(&stack)?.len()?)?;
    let found = call.scratch.len();
    let (memory, mask) = call
        .scratch
        .split_at_mut_checked(numbers)
        .ok_or(Error::Length {
            argument: "scratch",
            found,
            expected: numbers,
        })?;
    let [output, output_h, output_c, reserve, ..] = &mut *call.outputs else {
        return Err(Error::Value {
            argument: "output",
            expected: "all outputs of the op",
        });
    };
    let forward = Forward {
        stack: &stack,
        lengths,
        params,
        parallel,
    };
    forward.run(
        (x, hidden, cells),
        output.f32_mut("output")?,
        output_h.f32_mut("output_h")?,
        output_c.f32_mut("output_c")?,
        reserve.f32_mut("reserve_space")?,
        (f32s(memory), mask),
    )
}

/// All layers, one after the other.
struct Forward<'a> {
    stack: &'a Stack,
    lengths: Option<&'a [i32]>,
    params: &'a [f32],
    parallel: &'a dyn Parallel,
}

impl Forward<'_> {
    fn run(
        &self,
        (x, hidden, cells): (&[f32], &[f32], &[f32]),
        output: &mut [f32],
        output_h: &mut [f32],
        output_c: &mut [f32],
        reserve: &mut [f32],
        (memory, mask): (&mut [f32], &mut [u8]),
    ) -> Result<()> {
        let stack = self.stack;
        let parts = Parts::of(stack)?;
        let (steps, batch, width) = (stack.steps, stack.batch, stack.width());
        let memory = take(memory, parts.len()?)?;
        let (from, memory) = memory.split_at_mut(parts.layer);
        let (to, memory) = memory.split_at_mut(parts.layer);
        let (sequence, memory) = memory.split_at_mut(parts.sequence);
        let (weights, memory) = memory.split_at_mut(parts.weights);
        let (state, own) = memory.split_at_mut(2 * parts.state);
        let mask = self.lengths.map(|lengths| {
            let mask = &mut mask[..stack.rows()];
            for (row, &length) in mask.chunks_exact_mut(steps.max(1)).zip(lengths) {
                let length = usize::try_from(length).unwrap_or(0);
                for (step, valid) in row.iter_mut().enumerate() {
                    *valid = u8::from(step < length);
                }
            }
            &*mask
        });
        if !stack.has_cells() {
            output_c.fill(0.0);
        }
        let (mut from, mut to) = (from, to);
        if stack.time_major {
            swap(x, (steps, batch, stack.inputs), from);
        } else {
            from[..x.len()].copy_from_slice(x);
        }
        for layer in 0..stack.layers {
            for direction in 0..stack.directions {
                let index = layer * stack.directions + direction;
                let place = stack.place(layer, direction)?;
                let mut weights = Weights::new(stack, place.inputs, weights);
                stack.unpack(&place, self.params, &mut weights);
                let (h, c) = state.split_at_mut(parts.state);
                stack.read_state(index, hidden, h);
                if stack.has_cells() {
                    stack.read_state(index, cells, c);
                }
                let x = &from[..stack.rows() * place.inputs];
                let walk = stack.walk(direction == 1, mask);
                self.layer(walk, &mut weights, x, (h, c), sequence, own)?;
                stack.write_state(index, h, output_h);
                if stack.has_cells() {
                    stack.write_state(index, c, output_c);
                }
                // The outputs are in the order of the walk.
                for (row, values) in sequence.chunks_exact(stack.units.max(1)).enumerate() {
                    let (example, place) = (row / steps, row % steps);
                    let at = (example * steps + walk.step(place)) * width;
                    to[at + direction * stack.units..][..stack.units].copy_from_slice(values);
                }
            }
            core::mem::swap(&mut from, &mut to);
            if layer + 1 < stack.layers {
                let kept = stack.rows() * width;
                reserve[layer * kept..][..kept].copy_from_slice(&from[..kept]);
            }
        }
        let last = &from[..output.len()];
        if stack.time_major {
            swap(last, (batch, steps, width), output);
        } else {
            output.copy_from_slice(last);
        }
        Ok(())
    }

    /// One layer in one direction.
    fn layer(
        &self,
        walk: Walk<'_>,
        weights: &mut Weights<'_>,
        x: &[f32],
        (hidden, cell): (&mut [f32], &mut [f32]),
        sequence: &mut [f32],
        own: &mut [f32],
    ) -> Result<()> {
        let inputs = weights.kernel.len() / (self.stack.gates() * self.stack.units).max(1);
        match self.stack.mode {
            Mode::Lstm => {
                for (bias, other) in weights.bias.iter_mut().zip(&*weights.recurrent_bias) {
                    *bias += other;
                }
                let (kernel, recurrent) =
                    factors(self.stack, inputs, weights.kernel, weights.recurrent);
                let layer = LstmLayer {
                    walk,
                    kernel,
                    recurrent,
                    bias: Some(weights.bias),
                };
                layer.run(x, hidden, cell, sequence, own, self.parallel)
            }
            Mode::Gru => {
                let (kernel, matrix) =
                    factors(self.stack, inputs, weights.kernel, weights.recurrent);
                let layer = GruLayer {
                    walk,
                    kernel,
                    recurrent: Reset::After {
                        matrix,
                        bias: Some(weights.recurrent_bias),
                    },
                    bias: Some(weights.bias),
                };
                layer.run(x, hidden, sequence, own, self.parallel)
            }
        }
    }
}
