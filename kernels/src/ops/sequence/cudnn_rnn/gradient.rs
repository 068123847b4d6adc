//! The gradients of stacks of recurrent layers.
//!
//! The outputs of all steps are known, so the gates of all steps are computed again by one product
//! each for the inputs and for the states. Their gradients come step by step, and those of weights
//! and inputs again by one product each. Everything is in time-major order.

mod layer;

use super::stack::{Stack, Weights, has_lengths, lengths, product, sum, swap};
use super::{ATTRS, ATTRS_V3, HOST, HOST_V3};
use crate::base::adapt::{check_count, check_shape, variants};
use crate::base::def::{Call, Inputs, KernelDef, OutputSink, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::scratch::{f32_bytes, f32s, take};
use crate::gemm::{Gemm, Matrix};

/// The kernel of the first version's gradient.
pub static BACKPROP: KernelDef = KernelDef {
    variants: variants!(["T": F32];),
    attrs: ATTRS,
    outputs,
    scratch,
    run,
    ..KernelDef::of("CudnnRNNBackprop")
};

/// The kernel of the second version's gradient.
pub static BACKPROP_V2: KernelDef = KernelDef {
    variants: variants!(["T": F32] host HOST;),
    attrs: ATTRS,
    outputs,
    scratch,
    run,
    ..KernelDef::of("CudnnRNNBackpropV2")
};

/// The kernel of the third version's gradient.
pub static BACKPROP_V3: KernelDef = KernelDef {
    variants: variants!(["T": F32] host HOST_V3;),
    attrs: ATTRS_V3,
    outputs,
    scratch,
    run,
    ..KernelDef::of("CudnnRNNBackpropV3")
};

fn outputs(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    let stack = Stack::of(inputs)?;
    Given::check(&stack, inputs)?;
    for (index, name) in ["input", "input_h", "input_c", "params"]
        .into_iter()
        .enumerate()
    {
        sink(DType::F32, inputs.shape(index, name)?)?;
    }
    Ok(())
}

/// What the forward pass gave, and the gradients of its outputs.
pub(super) struct Given<'a> {
    pub(super) output: &'a [f32],
    pub(super) of_output: &'a [f32],
    pub(super) of_hidden: &'a [f32],
    pub(super) of_cells: &'a [f32],
    pub(super) reserve: &'a [f32],
}

impl<'a> Given<'a> {
    /// The number of inputs before `output`.
    fn first(inputs: &Inputs<'_>) -> usize {
        if has_lengths(inputs) { 5 } else { 4 }
    }

    fn check(stack: &Stack, inputs: &Inputs<'_>) -> Result<()> {
        let first = Self::first(inputs);
        let (sequence, states) = (stack.sequence(stack.width())?, stack.states()?);
        for (offset, name, expected) in [
            (0, "output", &sequence),
            (3, "output_backprop", &sequence),
            (4, "output_h_backprop", &states),
        ] {
            check_shape(name, &inputs.shape(first + offset, name)?, expected)?;
        }
        if stack.has_cells() {
            let name = "output_c_backprop";
            check_shape(name, &inputs.shape(first + 5, name)?, &states)?;
        }
        let kept = product(&[stack.layers - 1, stack.rows(), stack.width()])?;
        let found = inputs.shape(first + 6, "reserve_space")?.elements();
        check_count("reserve_space", found, kept)
    }

    fn of(inputs: &Inputs<'a>) -> Result<Self> {
        let first = Self::first(inputs);
        let at = |offset: usize, name| -> Result<&'a [f32]> {
            let tensor: TensorRef<'a> = inputs.get(first + offset, name)?;
            tensor.f32(name)
        };
        Ok(Self {
            output: at(0, "output")?,
            of_output: at(3, "output_backprop")?,
            of_hidden: at(4, "output_h_backprop")?,
            of_cells: at(5, "output_c_backprop")?,
            reserve: at(6, "reserve_space")?,
        })
    }
}

/// Elements of the parts of the scratch memory.
pub(super) struct Parts {
    /// The input of a layer, its output, and the gradients of both.
    layer: usize,
    /// The gates of all steps; a GRU has those of the states apart.
    gates: usize,
    /// States of all steps, before each.
    states: usize,
    weights: usize,
    /// A state of one step.
    state: usize,
    /// What products need.
    own: usize,
}

impl Parts {
    pub(super) fn of(stack: &Stack) -> Result<Self> {
        let columns = stack.gates() * stack.units;
        let mut own = 0;
        for inputs in [stack.inputs, stack.width(), stack.units] {
            let rows = stack.rows();
            for (sizes, a, b) in [
                ((rows, columns, inputs), false, false),
                ((rows, inputs, columns), false, true),
                ((inputs, columns, rows), true, false),
                ((stack.batch, inputs, columns), false, true),
            ] {
                let [a, b] = [a, b].map(|transposed| Matrix {
                    transposed,
                    ..Matrix::rows(&[], 0)
                });
                own = own.max(Gemm::new(sizes, a, b).scratch_len()?);
            }
        }
        Ok(Self {
            layer: stack.rows() * stack.inputs.max(stack.width()),
            gates: stack.rows() * columns,
            states: stack.rows() * stack.units,
            weights: stack.weights_len(),
            state: stack.batch * stack.units,
            own,
        })
    }

    pub(super) fn len(&self) -> Result<usize> {
        sum(&[
            product(&[4, self.layer])?,
            product(&[2, self.gates])?,
            product(&[2, self.states])?,
            product(&[2, self.weights])?,
            product(&[3, self.state])?,
            self.own,
        ])
    }
}

fn scratch(inputs: &Inputs<'_>) -> Result<usize> {
    f32_bytes(Parts::of(&Stack::of(inputs)?)?.len()?)
}

fn run(call: &mut Call<'_>) -> Result<()> {
    let inputs = &call.inputs;
    let stack = Stack::of(inputs)?;
    let backward = Backward {
        stack: &stack,
        lengths: lengths(&stack, inputs)?,
        given: Given::of(inputs)?,
        x: inputs.get(0, "input")?.f32("input")?,
        hidden: inputs.get(1, "input_h")?.f32("input_h")?,
        cells: inputs.get(2, "input_c")?.f32("input_c")?,
        params: inputs.get(3, "params")?.f32("params")?,
        parallel: call.parallel,
    };
    let memory = f32s(call.scratch);
    let [of_x, of_hidden, of_cells, of_params] = &mut *call.outputs else {
        return Err(Error::Value {
            argument: "output",
            expected: "the gradients of four inputs",
        });
    };
    backward.run(
        of_x.f32_mut("input_backprop")?,
        of_hidden.f32_mut("input_h_backprop")?,
        of_cells.f32_mut("input_c_backprop")?,
        of_params.f32_mut("params_backprop")?,
        memory,
    )
}

pub(super) struct Backward<'a> {
    pub(super) stack: &'a Stack,
    pub(super) lengths: Option<&'a [i32]>,
    pub(super) given: Given<'a>,
    pub(super) x: &'a [f32],
    pub(super) hidden: &'a [f32],
    pub(super) cells: &'a [f32],
    pub(super) params: &'a [f32],
    pub(super) parallel: &'a dyn Parallel,
}

/// The memory of one layer in one direction.
struct Memory<'a> {
    gates: &'a mut [f32],
    /// The gates of the states; of a GRU only.
    projected: &'a mut [f32],
    /// The outputs before each step.
    before: &'a mut [f32],
    /// The cells before each step.
    cells: &'a mut [f32],
    hidden_gradient: &'a mut [f32],
    cell_gradient: &'a mut [f32],
    spare: &'a mut [f32],
    own: &'a mut [f32],
}

/// The sequences of one layer, all directions.
struct Layer<'a> {
    x: &'a [f32],
    output: &'a [f32],
    of_output: &'a [f32],
    of_x: &'a mut [f32],
}

impl Backward<'_> {
    pub(super) fn run(
        &self,
        of_x: &mut [f32],
        of_hidden: &mut [f32],
        of_cells: &mut [f32],
        of_params: &mut [f32],
        memory: &mut [f32],
    ) -> Result<()> {
        let stack = self.stack;
        let parts = Parts::of(stack)?;
        let memory = take(memory, parts.len()?)?;
        let (x, memory) = memory.split_at_mut(parts.layer);
        let (output, memory) = memory.split_at_mut(parts.layer);
        let (of_output, memory) = memory.split_at_mut(parts.layer);
        let (of_input, memory) = memory.split_at_mut(parts.layer);
        let (gates, memory) = memory.split_at_mut(parts.gates);
        let (projected, memory) = memory.split_at_mut(parts.gates);
        let (before, memory) = memory.split_at_mut(parts.states);
        let (cells, memory) = memory.split_at_mut(parts.states);
        let (weights, memory) = memory.split_at_mut(parts.weights);
        let (of_weights, memory) = memory.split_at_mut(parts.weights);
        let (hidden_gradient, memory) = memory.split_at_mut(parts.state);
        let (cell_gradient, memory) = memory.split_at_mut(parts.state);
        let (spare, own) = memory.split_at_mut(parts.state);
        let mut memory = Memory {
            gates,
            projected,
            before,
            cells,
            hidden_gradient,
            cell_gradient,
            spare,
            own,
        };
        let (mut of_output, mut of_input) = (of_output, of_input);
        if !stack.has_cells() {
            of_cells.fill(0.0);
        }
        self.read(self.given.output, stack.width(), stack.time_major, output);
        self.read(
            self.given.of_output,
            stack.width(),
            stack.time_major,
            of_output,
        );
        let kept = stack.rows() * stack.width();
        for layer in (0..stack.layers).rev() {
            let width = stack.width_into(layer);
            if layer == 0 {
                self.read(self.x, width, stack.time_major, x);
            } else {
                let source = &self.given.reserve[(layer - 1) * kept..][..kept];
                self.read(source, width, false, x);
            }
            for direction in 0..stack.directions {
                let index = layer * stack.directions + direction;
                let place = stack.place(layer, direction)?;
                let mut weights = Weights::new(stack, place.inputs, weights);
                let mut of_weights = Weights::new(stack, place.inputs, of_weights);
                stack.unpack(&place, self.params, &mut weights);
                let sequences = Layer {
                    x: &x[..stack.rows() * width],
                    output: &output[..kept],
                    of_output: &of_output[..kept],
                    of_x: &mut of_input[..stack.rows() * width],
                };
                self.layer(
                    (index, direction),
                    &place,
                    sequences,
                    (&weights, &mut of_weights),
                    &mut memory,
                )?;
                stack.pack(&place, &of_weights, of_params);
                stack.write_state(index, memory.hidden_gradient, of_hidden);
                if stack.has_cells() {
                    stack.write_state(index, memory.cell_gradient, of_cells);
                }
            }
            if layer > 0 {
                output[..kept].copy_from_slice(&x[..kept]);
                core::mem::swap(&mut of_output, &mut of_input);
            }
        }
        let found = &of_input[..of_x.len()];
        if stack.time_major {
            of_x.copy_from_slice(found);
        } else {
            swap(found, (stack.steps, stack.batch, stack.inputs), of_x);
        }
        Ok(())
    }

    /// Copies a sequence into time-major order.
    fn read(&self, from: &[f32], width: usize, time_major: bool, to: &mut [f32]) {
        if time_major {
            to[..from.len()].copy_from_slice(from);
        } else {
            swap(from, (self.stack.batch, self.stack.steps, width), to);
        }
    }

    fn is_valid(&self, step: usize, row: usize) -> bool {
        self.lengths
            .is_none_or(|lengths| usize::try_from(lengths[row]).is_ok_and(|length| step < length))
    }

    /// The steps of a direction, in its order.
    fn steps(&self, direction: usize) -> impl DoubleEndedIterator<Item = usize> {
        let steps = self.stack.steps;
        (0..steps).map(move |place| {
            if direction == 1 {
                steps - 1 - place
            } else {
                place
            }
        })
    }
}
