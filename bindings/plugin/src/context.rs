//! What a kernel computes with: inputs, outputs and temporary memory of one step.

mod output;
mod plan;

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_sys as sys;

pub use self::plan::{InputPlan, OutputPlan};
use crate::api::Api;
use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::status::{Status, c_text};
use crate::tensor::Tensor;

/// A node that has a kernel object, and so a type per input and output.
pub(crate) struct Node {
    /// What errors of its steps begin with.
    place: Box<str>,
    /// No other node of the process has it, not even one that is gone.
    id: u64,
    /// Numbers of inputs and outputs, from the first step on.
    counts: OnceLock<[usize; 2]>,
}

impl Node {
    pub(crate) fn new(place: String) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            place: place.into(),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            counts: OnceLock::new(),
        }
    }

    pub(crate) fn place(&self) -> &str {
        &self.place
    }
}

/// What a step has done with its inputs and outputs so far.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    /// Inputs whose buffers have become outputs: bit per input.
    forwarded: u64,
    /// Outputs that have a value: bit per output.
    given: u64,
    /// Those of them that have no bit.
    given_far: Vec<usize>,
}

impl Progress {
    #[inline(always)]
    fn has(&self, output: usize) -> bool {
        if output < 64 {
            self.given & (1 << output) != 0
        } else {
            self.given_far.contains(&output)
        }
    }

    #[inline(always)]
    fn give(&mut self, output: usize) {
        if output < 64 {
            self.given |= 1 << output;
        } else if !self.given_far.contains(&output) {
            self.given_far.push(output);
        }
    }
}

/// One step of a kernel.
pub struct Context<'a> {
    raw: NonNull<sys::TF_OpKernelContext>,
    status: &'a Status,
    api: &'static Api,
    node: u64,
    inputs: usize,
    outputs: usize,
    pub(crate) progress: Progress,
    step: PhantomData<&'a mut sys::TF_OpKernelContext>,
}

impl<'a> Context<'a> {
    /// # Safety
    /// `raw` is the context of a running step of `node` and lives for `'a`.
    #[inline]
    pub(crate) unsafe fn from_borrowed_ptr(
        raw: *mut sys::TF_OpKernelContext,
        status: &'a Status,
        node: &Node,
    ) -> Result<Self> {
        let raw = NonNull::new(raw).ok_or_else(|| Error::internal("the kernel context is null"))?;
        let api = status.api();
        let [inputs, outputs] = *node.counts.get_or_init(|| {
            // SAFETY: the context is live.
            let counts = unsafe {
                let inputs = api.kernels.TF_NumInputs(raw.as_ptr());
                [inputs, api.kernels.TF_NumOutputs(raw.as_ptr())]
            };
            counts.map(|count| usize::try_from(count).unwrap_or(0))
        });
        Ok(Self {
            raw,
            status,
            api,
            node: node.id,
            inputs,
            outputs,
            progress: Progress::default(),
            step: PhantomData,
        })
    }

    /// The C object, for functions that this type does not wrap.
    #[must_use]
    pub fn as_ptr(&self) -> *mut sys::TF_OpKernelContext {
        self.raw.as_ptr()
    }

    /// Number of inputs, list inputs in place.
    #[must_use]
    #[inline]
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// Number of outputs, list outputs in place.
    #[must_use]
    #[inline]
    pub fn outputs(&self) -> usize {
        self.outputs
    }

    /// Input `index`.
    ///
    /// # Errors
    /// If there is no such input, or its buffer has become an output.
    pub fn input(&self, index: usize) -> Result<Tensor> {
        if self.is_forwarded(index) {
            return Err(gone(index));
        }
        let tensor = self.get_input(c_index(index, "input")?)?;
        // SAFETY: the callee passed ownership of `tensor`. Inputs are not written during a step
        // unless they are forwarded, which needs the only reference to the buffer.
        unsafe { Tensor::from_owned_ptr(tensor, self.api, "an input") }
    }

    /// A new handle of an input; null only where the status is wrongly OK.
    #[inline(always)]
    fn get_input(&self, number: i32) -> Result<*mut sys::TF_Tensor> {
        let mut tensor = std::ptr::null_mut();
        // SAFETY: context and status are live; the callee checks the index.
        unsafe {
            self.api.kernels.TF_GetInput(
                self.raw.as_ptr(),
                number,
                &mut tensor,
                self.status.as_ptr(),
            );
        }
        // The callee gives a tensor exactly when it succeeds.
        if tensor.is_null() {
            self.status.take()?;
        }
        Ok(tensor)
    }

    /// Whether the buffer of input `index` has become an output.
    #[must_use]
    #[inline]
    pub fn is_forwarded(&self, index: usize) -> bool {
        index < 64 && self.progress.forwarded & (1 << index) != 0
    }

    /// The inputs that the argument `name` stands for: one, or several for a list.
    ///
    /// # Errors
    /// If the op has no such argument.
    pub fn input_range(&self, name: &str) -> Result<Range<usize>> {
        let c_name = c_text(name);
        let mut args = sys::TF_InputRange_Args {
            struct_size: sys::TF_InputRange_Args_STRUCT_SIZE,
            r#priv: std::ptr::null_mut(),
            start: 0,
            stop: 0,
            status: self.status.as_ptr(),
        };
        // SAFETY: all pointers are live during the call.
        unsafe {
            self.api
                .kernels
                .TF_InputRange(self.raw.as_ptr(), c_name.as_ptr(), &mut args)
        };
        self.status.take()?;
        match (usize::try_from(args.start), usize::try_from(args.stop)) {
            (Ok(start), Ok(stop)) if start <= stop => Ok(start..stop),
            _ => Err(Error::internal(format!("no valid range for input {name}"))),
        }
    }

    /// Element type of input `index`.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn input_type(&self, index: usize) -> Result<DataType> {
        if index >= self.inputs {
            return Err(no_such("input", index, self.inputs));
        }
        let number = c_index(index, "input")?;
        // SAFETY: the index is below the number of inputs.
        let raw = unsafe { self.api.kernels.TF_InputDatatype(self.raw.as_ptr(), number) };
        Ok(DataType::from_raw(raw))
    }

    /// Element type that the op's definition gives output `index`.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn output_type(&self, index: usize) -> Result<DataType> {
        if index >= self.outputs {
            return Err(no_such("output", index, self.outputs));
        }
        let number = c_index(index, "output")?;
        // SAFETY: the index is below the number of outputs.
        let raw = unsafe {
            self.api
                .kernels
                .TF_ExpectedOutputDataType(self.raw.as_ptr(), number)
        };
        Ok(DataType::from_raw(raw))
    }

    /// TensorFlow ends the process when a tensor is put where one is already.
    #[inline(always)]
    fn check_free(&self, index: usize) -> Result<()> {
        if self.progress.has(index) {
            return Err(given_twice(index));
        }
        Ok(())
    }

    /// Fails unless every output has a value. TensorFlow itself looks for them in graphs only: an
    /// eager step gives a tensor without elements instead.
    #[inline(always)]
    pub(crate) fn check_complete(&self) -> Result<()> {
        let expected = match u32::try_from(self.outputs) {
            Ok(count) if count < 64 => (1 << count) - 1,
            _ => u64::MAX,
        };
        let far = self.outputs.saturating_sub(64);
        if self.progress.given == expected && self.progress.given_far.len() == far {
            return Ok(());
        }
        Err(incomplete(self))
    }

    /// Says that output `index` is without a value in this step, as the dead one of `Switch`, or
    /// that it has got one through [`Self::as_ptr`]. An output that is forgotten fails the step.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn leave_output(&mut self, index: usize) -> Result<()> {
        if index >= self.outputs {
            return Err(no_such("output", index, self.outputs));
        }
        self.progress.give(index);
        Ok(())
    }

    /// Whether input `index` is in host memory.
    ///
    /// # Errors
    /// If there is no such input.
    pub fn is_host_input(&self, index: usize) -> Result<bool> {
        if index >= self.inputs {
            return Err(no_such("input", index, self.inputs));
        }
        let number = c_index(index, "input")?;
        // SAFETY: the index is below the number of inputs.
        let host = unsafe {
            self.api
                .kernels
                .TF_IsHostMemoryInput(self.raw.as_ptr(), number, self.status.as_ptr())
        };
        self.status.take()?;
        Ok(host)
    }

    /// Whether output `index` is in host memory.
    ///
    /// # Errors
    /// If there is no such output.
    pub fn is_host_output(&self, index: usize) -> Result<bool> {
        if index >= self.outputs {
            return Err(no_such("output", index, self.outputs));
        }
        let number = c_index(index, "output")?;
        // SAFETY: the index is below the number of outputs.
        let host = unsafe {
            self.api
                .kernels
                .TF_IsHostMemoryOutput(self.raw.as_ptr(), number, self.status.as_ptr())
        };
        self.status.take()?;
        Ok(host)
    }

    /// Number of the step.
    #[must_use]
    pub fn step_id(&self) -> i64 {
        // SAFETY: the context is live.
        unsafe { self.api.kernels.TF_StepId(self.raw.as_ptr()) }
    }

    /// Number of the physical device.
    #[must_use]
    pub fn device_id(&self) -> i32 {
        // SAFETY: the context is live.
        unsafe { self.api.kernels.TF_GetDeviceId(self.raw.as_ptr()) }
    }
}

#[cold]
fn given_twice(index: usize) -> Error {
    Error::internal(format!("output {index} has been given already"))
}

#[cold]
fn incomplete(context: &Context<'_>) -> Error {
    let missing = (0..context.outputs).find(|&index| !context.progress.has(index));
    let (index, count) = (missing.unwrap_or(0), context.outputs);
    Error::internal(format!("the kernel gave no output {index} of {count}"))
}

#[cold]
fn gone(index: usize) -> Error {
    Error::internal(format!("input {index} has been forwarded to an output"))
}

#[cold]
fn no_such(what: &str, index: usize, count: usize) -> Error {
    Error::internal(format!("{what} {index} of {count} does not exist"))
}

#[inline]
fn c_index(index: usize, what: &str) -> Result<i32> {
    i32::try_from(index).map_err(|_| Error::internal(format!("{what} {index} is out of range")))
}
