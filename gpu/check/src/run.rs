//! One call on the CPU and on a GPU.

use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use tfp_gpu::{Body, Gpu, Outcome, Problem, Reason};
use tfp_kernels::base::def::{Call, Inputs, KernelDef, Spec, State, TensorMut, TensorRef};
use tfp_kernels::base::dtype::DType;
use tfp_kernels::base::error::Error;
use tfp_kernels::base::parallel::{Parallel, Serial};

use crate::arena::{Arena, Guard};
use crate::tensor::{Table, Tensor};

/// Why a call gave no result.
#[derive(Debug)]
pub enum Failure {
    /// The kernel of the CPU refuses the call.
    Kernel(Error),
    /// The GPU failed.
    Gpu(Problem),
    /// The GPU's body declined.
    Declined(Reason),
    /// The body wrote beyond an output.
    Overrun,
    /// The block for the tensors is too small.
    Block,
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Kernel(error)
    }
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Self {
        Self::Gpu(problem)
    }
}

/// A call: the kernel, its attributes and its inputs.
pub struct Case {
    /// The kernel.
    pub def: &'static KernelDef,
    /// Its attributes.
    pub attrs: Table,
    /// The type by which its body is looked for.
    pub dtype: DType,
    /// Its inputs.
    pub inputs: Vec<Tensor>,
    /// Which inputs are in host memory.
    pub host: Vec<usize>,
    /// Inputs whose values are in the buffer of an output, (input, output).
    pub forwarded: Vec<(usize, usize)>,
}

/// How long calls took, in nanoseconds.
#[derive(Clone, Debug, Default)]
pub struct Times {
    /// Of the whole call.
    pub wall: Vec<f64>,
    /// Of the device, if it tells.
    pub device: Vec<f64>,
}

fn state() -> State {
    State {
        entropy: [1, 2],
        counter: AtomicU64::new(0),
    }
}

/// A slice for a tensor.
type Cut<'a> = (&'a mut [u8], Option<Guard>);

impl Case {
    /// Of float32, without attributes, nothing in host memory, nothing forwarded.
    #[must_use]
    pub fn new(def: &'static KernelDef, inputs: Vec<Tensor>) -> Self {
        Self {
            def,
            attrs: Table::default(),
            dtype: DType::F32,
            inputs,
            host: Vec::new(),
            forwarded: Vec::new(),
        }
    }

    fn specs(&self) -> Result<(Vec<Spec>, Vec<Spec>, usize), Failure> {
        let inputs = self.inputs.iter().map(Tensor::spec);
        let inputs = inputs.collect::<Result<Vec<_>, _>>()?;
        // Shapes follow from the values of those in host memory alone.
        let tensors = inputs.iter().zip(&self.inputs).enumerate();
        let tensors = tensors.map(|(number, (spec, tensor))| {
            if self.host.contains(&number) {
                TensorRef::new(spec, tensor.bytes())
            } else {
                Ok(TensorRef::forwarded(spec))
            }
        });
        let tensors = tensors.collect::<Result<Vec<_>, _>>()?;
        let all = Inputs {
            tensors: &tensors,
            attrs: &self.attrs,
        };
        let mut outputs = Vec::new();
        (self.def.outputs)(&all, &mut |dtype, shape| {
            outputs.push(Spec::new(dtype, shape)?);
            Ok(())
        })?;
        let scratch = (self.def.scratch)(&all)?;
        Ok((inputs, outputs, scratch))
    }

    /// The shape of the first output.
    #[must_use]
    pub fn output_dims(&self) -> Option<Vec<usize>> {
        let (_, outputs, _) = self.specs().ok()?;
        outputs.first().map(|spec| spec.shape().to_vec())
    }

    /// Runs `work` on a call whose tensors are where `cut` says; the outputs' bytes after it, if they are to be kept.
    fn with<'a>(
        &self,
        mut cut: impl FnMut(usize, bool) -> Option<Cut<'a>>,
        (parallel, keep): (&dyn Parallel, bool),
        work: impl FnOnce(&mut Call<'_>) -> Result<(), Failure>,
    ) -> Result<Vec<Tensor>, Failure> {
        let (input_specs, output_specs, scratch) = self.specs()?;
        let mut guards = Vec::new();
        let mut inputs = Vec::new();
        for (number, tensor) in self.inputs.iter().enumerate() {
            let bytes = tensor.bytes();
            let (slice, guard) =
                cut(bytes.len(), self.host.contains(&number)).ok_or(Failure::Block)?;
            slice.copy_from_slice(bytes);
            guards.extend(guard);
            inputs.push(&*slice);
        }
        let mut outputs = Vec::new();
        for (number, spec) in output_specs.iter().enumerate() {
            let (slice, guard) = cut(spec.bytes(), false).ok_or(Failure::Block)?;
            let mut pairs = self.forwarded.iter().filter(|(_, to)| *to == number);
            match pairs.next() {
                Some(&(from, _)) => slice.copy_from_slice(inputs[from]),
                None => slice.fill(0xA5),
            }
            guards.extend(guard);
            outputs.push(slice);
        }
        let mut tensors = Vec::new();
        for (number, (spec, bytes)) in input_specs.iter().zip(&inputs).enumerate() {
            tensors.push(if self.forwarded.iter().any(|(from, _)| *from == number) {
                TensorRef::forwarded(spec)
            } else {
                TensorRef::new(spec, bytes)?
            });
        }
        let mut scratch = vec![0_u64; scratch.div_ceil(8) + 8];
        let scratch = bytes_of(&mut scratch);
        let skip = scratch.as_ptr().align_offset(64);
        let state = state();
        {
            let mut views = Vec::new();
            for (spec, bytes) in output_specs.iter().zip(&mut outputs) {
                views.push(TensorMut::new(spec, bytes)?);
            }
            let end = skip + scratch.len() - 64;
            work(&mut Call {
                inputs: Inputs {
                    tensors: &tensors,
                    attrs: &self.attrs,
                },
                outputs: &mut views,
                scratch: &mut scratch[skip..end],
                parallel,
                state: &state,
            })?;
        }
        if !guards.iter().all(Guard::is_whole) {
            return Err(Failure::Overrun);
        }
        if !keep {
            // A card's memory is slow to read.
            return Ok(Vec::new());
        }
        let made = output_specs.iter().zip(&outputs);
        Ok(made
            .map(|(spec, bytes)| Tensor::new(spec.dtype(), spec.shape(), bytes))
            .collect())
    }

    /// The outputs of the CPU's kernel.
    ///
    /// # Errors
    /// [`Failure::Kernel`].
    pub fn on_cpu(&self) -> Result<Vec<Tensor>, Failure> {
        self.time_on_cpu(&Serial, 1).map(|(outputs, _)| outputs)
    }

    /// Runs the CPU's kernel as often as `times` says.
    ///
    /// # Errors
    /// [`Failure::Kernel`].
    pub fn time_on_cpu(
        &self,
        parallel: &dyn Parallel,
        times: usize,
    ) -> Result<(Vec<Tensor>, Times), Failure> {
        let mut found = Times::default();
        let (inputs, outputs, _) = self.specs()?;
        let specs = inputs.iter().chain(&outputs);
        // Kernels read whole vectors, and their memory is aligned.
        let mut rooms: Vec<Vec<u64>> = specs
            .map(|spec| vec![0; spec.bytes().div_ceil(8) + 16])
            .collect();
        let mut rooms = rooms.iter_mut();
        let cut = |bytes: usize, _| {
            let room = bytes_of(rooms.next()?);
            let skip = room.as_ptr().align_offset(64);
            Some((room.get_mut(skip..skip + bytes)?, None))
        };
        let outputs = self.with(cut, (parallel, true), |call| {
            for _ in 0..times {
                let start = Instant::now();
                (self.def.run)(call)?;
                found.wall.push(start.elapsed().as_nanos() as f64);
            }
            Ok(())
        })?;
        Ok((outputs, found))
    }

    /// The outputs of a GPU's body.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub fn on_gpu(&self, gpu: &Gpu, body: &Body) -> Result<Vec<Tensor>, Failure> {
        self.time_on_gpu(gpu, body, 1).map(|(outputs, _)| outputs)
    }

    /// What a GPU's body does with a call whose tensors are in memory of the host.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub fn on_host(&self, gpu: &Gpu, body: &Body) -> Result<Outcome, Failure> {
        let (inputs, outputs, _) = self.specs()?;
        let specs = inputs.iter().chain(&outputs);
        let mut rooms: Vec<Vec<u64>> = specs
            .map(|spec| vec![0; spec.bytes().div_ceil(8)])
            .collect();
        let mut rooms = rooms.iter_mut();
        let cut = |bytes: usize, _| Some((bytes_of(rooms.next()?).get_mut(..bytes)?, None));
        let mut outcome = None;
        self.with(cut, (&Serial, false), |call| {
            outcome = Some(gpu.run(body, call)?);
            Ok(())
        })?;
        outcome.ok_or(Failure::Block)
    }

    /// Runs a GPU's body as often as `times` says.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub fn time_on_gpu(
        &self,
        gpu: &Gpu,
        body: &Body,
        times: usize,
    ) -> Result<(Vec<Tensor>, Times), Failure> {
        self.time_on_gpu_for(gpu, body, (Duration::ZERO, times))
    }

    /// Runs a GPU's body again and again for a time, then as often as the number says; these are the times. There are
    /// outputs only without such a time.
    ///
    /// # Errors
    /// Any [`Failure`].
    pub fn time_on_gpu_for(
        &self,
        gpu: &Gpu,
        body: &Body,
        (warm, times): (Duration, usize),
    ) -> Result<(Vec<Tensor>, Times), Failure> {
        let (inputs, outputs, _) = self.specs()?;
        let sizes = inputs
            .iter()
            .chain(&outputs)
            .map(|spec| Arena::size(spec.bytes()));
        let mut arena = Arena::new(gpu, sizes.sum())?;
        let host = self.host.iter().filter_map(|&number| inputs.get(number));
        let mut rooms: Vec<Vec<u64>> = host.map(|spec| vec![0; spec.bytes().div_ceil(8)]).collect();
        let mut rooms = rooms.iter_mut();
        let mut found = Times::default();
        let cut = |bytes: usize, host: bool| {
            if host {
                return Some((bytes_of(rooms.next()?).get_mut(..bytes)?, None));
            }
            arena.cut(bytes).map(|(slice, guard)| (slice, Some(guard)))
        };
        let keep = warm.is_zero();
        let outputs = self.with(cut, (&Serial, keep), |call| {
            let begin = Instant::now();
            while begin.elapsed() < warm {
                gpu.run(body, call)?;
            }
            for _ in 0..times {
                let start = Instant::now();
                match gpu.run(body, call)? {
                    Outcome::Done { nanoseconds } => {
                        found.wall.push(start.elapsed().as_nanos() as f64);
                        found.device.extend(nanoseconds.map(|each| each as f64));
                    }
                    Outcome::Declined(reason) => return Err(Failure::Declined(reason)),
                }
            }
            Ok(())
        })?;
        drop(arena);
        Ok((outputs, found))
    }
}

fn bytes_of(words: &mut [u64]) -> &mut [u8] {
    let len = words.len() * 8;
    // SAFETY: the bytes of the words, borrowed as long as they are; any byte is a valid one.
    unsafe { std::slice::from_raw_parts_mut(words.as_mut_ptr().cast(), len) }
}
