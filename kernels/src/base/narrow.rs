//! Kernels of `f32` on tensors of 16-bit floats.
//!
//! The inputs are widened, the kernel computes, and each result is rounded once. What works element
//! by element goes through blocks that stay in the cache, everything else through scratch memory.

mod blocks;
mod wide;

use self::blocks::{BLOCK, Blocks, SIDES};
use self::wide::{NO_SPEC, Wide, widened};
use core::ops::Range;
use core::sync::atomic::{AtomicBool, Ordering};

use crate::base::chunks::{chunk_len, for_each_chunk};
use crate::base::def::{Call, Inputs, KernelDef, OutputSink, Spec, TensorMut, TensorRef};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::half::Half;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::simd::numbers;

/// Tensors that a kernel may have on each side.
const MOST: usize = 13;
/// Boundary at which each part of the scratch memory begins.
const ALIGN: usize = 64;
/// Work per element of what goes through blocks, in units of one addition.
const COST: usize = 4;

/// How a kernel serves 16-bit floats.
#[derive(Clone, Copy)]
pub struct Narrow {
    /// What computes.
    pub def: &'static KernelDef,
    /// As many of its first outputs are narrow where the kernel's are `f32`.
    pub outputs: usize,
    /// Whether an element of the output depends on the elements at its place alone, wherever they
    /// are: all inputs are narrow, and there is one output.
    pub elementwise: bool,
}

/// The narrow type of a node: that of an input, else that of the numbers that it draws.
fn narrow_type(inputs: &Inputs<'_>) -> Result<DType> {
    let mut types = inputs.tensors.iter().map(TensorRef::dtype);
    match types.find(|&dtype| Half::of(dtype).is_some()) {
        Some(dtype) => Ok(dtype),
        None => inputs.attrs.dtype("dtype"),
    }
}

/// Where everything lies in the scratch memory.
struct Plan {
    /// The kernel's own.
    own: usize,
    /// The widened inputs; empty for an input that is not narrow.
    inputs: [Range<usize>; MOST],
    /// Where the scratch memory is free.
    end: usize,
}

impl Plan {
    /// The next part, of so many `f32`.
    fn take(&mut self, elements: usize) -> Result<Range<usize>> {
        let overflow = Error::Overflow {
            argument: "scratch",
        };
        let start = self.end.checked_next_multiple_of(ALIGN).ok_or(overflow)?;
        let bytes = elements.checked_mul(size_of::<f32>()).ok_or(overflow)?;
        self.end = start.checked_add(bytes).ok_or(overflow)?;
        Ok(start..self.end)
    }
}

/// The specs of the inputs as the kernel sees them.
fn wide_specs(inputs: &Inputs<'_>) -> Result<[Spec; MOST]> {
    let mut specs = [NO_SPEC; MOST];
    let slots = specs.get_mut(..inputs.tensors.len()).ok_or(Error::Length {
        argument: "inputs",
        found: inputs.tensors.len(),
        expected: MOST,
    })?;
    for (slot, tensor) in slots.iter_mut().zip(inputs.tensors) {
        *slot = Spec::new(widened(tensor.dtype()), *tensor.shape())?;
    }
    Ok(specs)
}

/// The inputs without the values of those that are narrow.
fn wide_shapes<'a>(inputs: &Inputs<'a>, specs: &'a [Spec; MOST]) -> [TensorRef<'a>; MOST] {
    let mut refs = [TensorRef::forwarded(&NO_SPEC); MOST];
    for ((slot, tensor), spec) in refs.iter_mut().zip(inputs.tensors).zip(specs) {
        *slot = match Half::of(tensor.dtype()) {
            Some(_) => TensorRef::forwarded(spec),
            None => *tensor,
        };
    }
    refs
}

impl Narrow {
    /// [`KernelDef::outputs`]
    ///
    /// # Errors
    /// Those of the kernel.
    #[inline(never)]
    pub fn outputs(self, inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
        let narrow = narrow_type(inputs)?;
        let specs = wide_specs(inputs)?;
        let refs = wide_shapes(inputs, &specs);
        let wide = Inputs {
            tensors: refs.get(..inputs.tensors.len()).unwrap_or_default(),
            attrs: &Wide(inputs.attrs),
        };
        let mut index = 0;
        (self.def.outputs)(&wide, &mut |dtype, shape| {
            let rounds = dtype == DType::F32 && index < self.outputs;
            index += 1;
            sink(if rounds { narrow } else { dtype }, shape)
        })
    }

    /// [`KernelDef::scratch`]
    ///
    /// # Errors
    /// Those of the kernel; [`Error::Overflow`].
    #[inline(never)]
    pub fn scratch(self, inputs: &Inputs<'_>) -> Result<usize> {
        let mut plan = self.plan(inputs)?;
        if self.goes_through_blocks(inputs) {
            return Ok(0);
        }
        let mut shapes = [Shape::SCALAR; MOST];
        let mut count = 0;
        self.outputs(inputs, &mut |dtype, shape| {
            if Half::of(dtype).is_some()
                && let Some(slot) = shapes.get_mut(count)
            {
                *slot = shape;
                count += 1;
            }
            Ok(())
        })?;
        for shape in shapes.iter().take(count) {
            plan.take(shape.elements())?;
        }
        Ok(plan.end)
    }

    /// The kernel's own scratch memory, and the inputs'.
    fn plan(self, inputs: &Inputs<'_>) -> Result<Plan> {
        let specs = wide_specs(inputs)?;
        let refs = wide_shapes(inputs, &specs);
        let own = (self.def.scratch)(&Inputs {
            tensors: refs.get(..inputs.tensors.len()).unwrap_or_default(),
            attrs: &Wide(inputs.attrs),
        })?;
        let mut plan = Plan {
            own,
            inputs: [const { 0..0 }; MOST],
            end: own,
        };
        for (index, tensor) in inputs.tensors.iter().enumerate() {
            if Half::of(tensor.dtype()).is_some() {
                let part = plan.take(tensor.shape().elements())?;
                if let Some(slot) = plan.inputs.get_mut(index) {
                    *slot = part;
                }
            }
        }
        Ok(plan)
    }

    /// Whether the elements at one place follow from those at the same place of each input, or from
    /// the only one of an input.
    fn goes_through_blocks(self, inputs: &Inputs<'_>) -> bool {
        let tensors = || inputs.tensors.iter();
        let size = |tensor: &&TensorRef<'_>| (tensor.shape().elements(), tensor.shape().rank());
        let Some(largest) = tensors().max_by_key(size) else {
            return false;
        };
        let (elements, rank) = size(&largest);
        self.elementwise
            && inputs.tensors.len() <= SIDES
            && tensors().all(|tensor| {
                let (count, axes) = size(&tensor);
                let repeated = count == 1 && elements != 1 && axes <= rank;
                tensor.shape() == largest.shape() || repeated
            })
    }

    /// [`KernelDef::run`]
    ///
    /// # Errors
    /// Those of the kernel.
    #[inline(never)]
    pub fn run(self, call: &mut Call<'_>) -> Result<()> {
        if self.goes_through_blocks(&call.inputs) {
            self.run_blocks(call)
        } else {
            self.run_whole(call)
        }
    }

    /// All of them, in scratch memory.
    fn run_whole(self, call: &mut Call<'_>) -> Result<()> {
        let mut plan = self.plan(&call.inputs)?;
        let mut results = [const { 0..0 }; MOST];
        for (slot, output) in results.iter_mut().zip(call.outputs.iter()) {
            if Half::of(output.dtype()).is_some() {
                *slot = plan.take(output.shape().elements())?;
            }
        }
        let found = call.scratch.len();
        let scratch = call.scratch.get_mut(..plan.end).ok_or(Error::Length {
            argument: "scratch",
            found,
            expected: plan.end,
        })?;
        let (count, parallel) = (call.inputs.tensors.len(), call.parallel);
        for (index, tensor) in call.inputs.tensors.iter().enumerate() {
            if Half::of(tensor.dtype()).is_none() {
                continue;
            }
            let part = plan.inputs.get(index).cloned().unwrap_or_default();
            let part = numbers::within(scratch.get_mut(part).unwrap_or_default());
            if tensor.is_forwarded() {
                let output = forwarded_to(self.def, index, call.outputs)?;
                let (half, bits) = output.halves_mut("input")?;
                widen(half, bits, part, parallel);
            } else {
                let (half, bits) = tensor.halves("input")?;
                widen(half, bits, part, parallel);
            }
        }
        let specs = wide_specs(&call.inputs)?;
        let mut made = [NO_SPEC; MOST];
        for (slot, output) in made.iter_mut().zip(call.outputs.iter()) {
            *slot = Spec::new(widened(output.dtype()), *output.shape())?;
        }
        let outputs = call.outputs.len();
        {
            let mut rest = Parts(scratch, 0);
            let own = rest.cut(0..plan.own)?;
            let mut refs = wide_shapes(&call.inputs, &specs);
            let sides = call.inputs.tensors.iter().zip(&specs).zip(&plan.inputs);
            for (slot, ((tensor, spec), part)) in refs.iter_mut().zip(sides) {
                if Half::of(tensor.dtype()).is_some() {
                    *slot = TensorRef::new(spec, rest.cut(part.clone())?)?;
                }
            }
            let mut views: [_; MOST] = core::array::from_fn(|_| None);
            let sides = call.outputs.iter_mut().zip(&made).zip(results.iter());
            for (slot, ((output, spec), part)) in views.iter_mut().zip(sides) {
                *slot = Some(match Half::of(output.dtype()) {
                    Some(_) => TensorMut::new(spec, rest.cut(part.clone())?)?,
                    None => TensorMut::new(spec, output.bytes_mut())?,
                });
            }
            let mut views = views.map(|view| view.unwrap_or_else(TensorMut::nothing));
            (self.def.run)(&mut Call {
                inputs: Inputs {
                    tensors: refs.get(..count).unwrap_or_default(),
                    attrs: &Wide(call.inputs.attrs),
                },
                outputs: views.get_mut(..outputs).unwrap_or_default(),
                scratch: own,
                parallel,
                state: call.state,
            })?;
        }
        for (output, part) in call.outputs.iter_mut().zip(results) {
            if Half::of(output.dtype()).is_some() {
                let (half, bits) = output.halves_mut("output")?;
                let wide = numbers::within(scratch.get_mut(part).unwrap_or_default());
                round(half, wide, bits, parallel);
            }
        }
        Ok(())
    }

    /// Block by block, in memory of the stack.
    fn run_blocks(self, call: &mut Call<'_>) -> Result<()> {
        let output = call.outputs.first_mut().ok_or(Error::Value {
            argument: "output",
            expected: "an output tensor",
        })?;
        let dtype = output.dtype();
        let blocks = Blocks {
            def: self.def,
            inputs: &call.inputs,
            state: call.state,
            dtype,
            total: output.shape().elements(),
        };
        let chunk = chunk_len(call.parallel, blocks.total, BLOCK, COST) * dtype.size();
        // What a kernel refuses, it refuses of every block alike.
        let refused = AtomicBool::new(false);
        for_each_chunk(call.parallel, output.bytes_mut(), chunk, &|start, out| {
            if blocks.run(start / dtype.size(), out).is_err() {
                refused.store(true, Ordering::Relaxed);
            }
        });
        match refused.into_inner() {
            true => blocks.run(0, output.bytes_mut()),
            false => Ok(()),
        }
    }
}

/// The rest of the scratch memory, and where it begins.
struct Parts<'a>(&'a mut [u8], usize);

impl<'a> Parts<'a> {
    /// The part at these bytes, which lie behind those that were cut before.
    fn cut(&mut self, part: Range<usize>) -> Result<&'a mut [u8]> {
        let overflow = Error::Overflow {
            argument: "scratch",
        };
        let rest = core::mem::take(&mut self.0);
        let found = part.end.checked_sub(self.1);
        let (head, rest) = found
            .and_then(|end| rest.split_at_mut_checked(end))
            .ok_or(overflow)?;
        let start = part.start.checked_sub(self.1).ok_or(overflow)?;
        (self.0, self.1) = (rest, part.end);
        head.get_mut(start..).ok_or(overflow)
    }
}

/// The output that has taken over the buffer of an input.
fn forwarded_to<'x, 'a>(
    def: &KernelDef,
    input: usize,
    outputs: &'x mut [TensorMut<'a>],
) -> Result<&'x mut TensorMut<'a>> {
    let pair = def.forward.iter().find(|pair| pair.0 == input);
    pair.and_then(|pair| outputs.get_mut(pair.1))
        .ok_or(Error::Value {
            argument: "input",
            expected: "data, or the output that has it",
        })
}

fn widen(half: Half, x: &[u16], out: &mut [f32], parallel: &dyn Parallel) {
    let chunk = chunk_len(parallel, out.len(), 16, 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        half.widen(x.get(start..).unwrap_or_default(), out);
    });
}

/// `out[i] = x[i]`, rounded.
pub(crate) fn round(half: Half, x: &[f32], out: &mut [u16], parallel: &dyn Parallel) {
    let chunk = chunk_len(parallel, out.len(), 16, 1);
    for_each_chunk(parallel, out, chunk, &|start, out| {
        half.round(x.get(start..).unwrap_or_default(), out);
    });
}

#[cfg(test)]
mod tests;
