//! What a kernel computes with: inputs, outputs and temporary memory of one step.

use std::marker::PhantomData;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_sys as sys;

use crate::api::Api;
use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::layout::{LARGEST_ELEMENT, Layout, byte_size, c_dims, extent, impossible};
use crate::status::{Status, c_text};
use crate::tensor::{Tensor, TensorMut};

/// Candidates for forwarding that are considered.
const CANDIDATES: usize = 4;

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

    /// Checks that input `index` of this node may have a layout, for [`Self::planned_input`] in this
    /// step and later ones of this node.
    ///
    /// # Errors
    /// If there is no such input, or it has another type.
    pub fn plan_input(&self, index: usize, layout: Layout) -> Result<InputPlan> {
        let found = self.input_type(index)?;
        if found != layout.data_type() {
            return Err(Error::internal(format!(
                "input {index} is {found}, planned is {}",
                layout.data_type()
            )));
        }
        Ok(InputPlan {
            node: self.node,
            index: c_index(index, "input")?,
            mask: u32::try_from(index).map_or(0, |index| 1_u64.checked_shl(index).unwrap_or(0)),
            layout,
        })
    }

    /// The input of a plan, and whether it has the planned layout. If so, it is read without further
    /// questions.
    ///
    /// # Errors
    /// [`Code::Internal`](crate::Code::Internal) if the plan is of another node, or the input's
    /// buffer has become an output.
    #[inline(always)]
    pub fn planned_input(&self, plan: &InputPlan) -> Result<(Tensor, bool)> {
        if plan.node != self.node {
            return Err(of_another_node("input", plan.index));
        }
        if self.progress.forwarded & plan.mask != 0 {
            return Err(gone(plan.index as usize));
        }
        let raw = self.get_input(plan.index)?;
        // SAFETY: as in `input`, and the tensor has the type of this node's input, which is the
        // layout's.
        let mut tensor = unsafe { Tensor::of_type(raw, self.api, plan.layout.data_type())? };
        let same = tensor.has_dims_of(&plan.layout);
        Ok((tensor, same))
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

    fn check_output_type(&self, index: usize, found: DataType) -> Result<()> {
        let expected = self.output_type(index)?;
        if expected == found {
            return Ok(());
        }
        Err(Error::internal(format!(
            "the kernel gives output {index} the type {found}, the op expects {expected}"
        )))
    }

    /// A fresh buffer as output `index`.
    ///
    /// # Errors
    /// If there is no such output or it has been given already, its type is another one, the shape
    /// is impossible, or memory is used up.
    pub fn allocate_output(
        &mut self,
        index: usize,
        data_type: DataType,
        dims: &[usize],
    ) -> Result<TensorMut<'a>> {
        self.check_output_type(index, data_type)?;
        self.check_free(index)?;
        let bytes = byte_size(data_type, dims)?;
        let number = c_index(index, "output")?;
        let (pointer, rank) = c_dims(dims);
        let raw = {
            // SAFETY: context and status are live, `pointer` is valid for `rank` dimensions, and
            // index and shape have been checked.
            unsafe {
                self.api.kernels.TF_AllocateOutput(
                    self.raw.as_ptr(),
                    number,
                    data_type.raw(),
                    pointer,
                    rank,
                    bytes,
                    self.status.as_ptr(),
                )
            }
        };
        self.status.take()?;
        self.progress.give(index);
        // SAFETY: the callee passed ownership of a fresh output that nobody else sees before the
        // kernel is finished.
        unsafe { TensorMut::from_owned_ptr(raw, self.api, "an output") }
    }

    /// Output `index` in the buffer of one of the `candidates` if nobody else needs that, else in a
    /// fresh buffer. Also gives the input whose buffer it was. Drop the [`Tensor`]s of the
    /// candidates first: while one lives its buffer is in use.
    ///
    /// # Errors
    /// As [`Context::allocate_output`].
    #[inline]
    pub fn forward_or_allocate_output(
        &mut self,
        candidates: &[usize],
        index: usize,
        dims: &[usize],
    ) -> Result<(TensorMut<'a>, Option<usize>)> {
        if index >= self.outputs {
            return Err(no_such("output", index, self.outputs));
        }
        self.check_free(index)?;
        extent(LARGEST_ELEMENT, dims).ok_or_else(|| impossible("output", dims))?;
        let number = c_index(index, "output")?;
        let mut inputs = [0; CANDIDATES];
        let mut count = 0;
        let allowed = candidates
            .iter()
            .copied()
            .filter(|&i| i < 64 && i < self.inputs && !self.is_forwarded(i));
        for (slot, candidate) in inputs.iter_mut().zip(allowed) {
            *slot = c_index(candidate, "input")?;
            count += 1;
        }
        let mut taken = -1;
        let (pointer, rank) = c_dims(dims);
        let raw = {
            // SAFETY: context and status are live, the arrays are as long as said, and indices
            // and shape have been checked.
            unsafe {
                self.api.kernels.TF_ForwardInputOrAllocateOutput(
                    self.raw.as_ptr(),
                    inputs.as_ptr(),
                    count,
                    number,
                    pointer,
                    rank,
                    &mut taken,
                    self.status.as_ptr(),
                )
            }
        };
        // The callee gives a tensor exactly when it succeeds.
        if raw.is_null() {
            self.status.take()?;
        }
        // SAFETY: the callee passed ownership; a forwarded buffer had no other reference, and from
        // now on `input` refuses to give out another one.
        let tensor = unsafe { TensorMut::from_owned_ptr(raw, self.api, "an output")? };
        let taken = usize::try_from(taken).ok();
        if let Some(input) = taken {
            self.progress.forwarded |= 1 << input;
        }
        self.progress.give(index);
        Ok((tensor, taken))
    }

    /// Checks that output `index` of this node may have a layout, for [`Self::planned_output`] in
    /// this step and later ones of this node. The output may take over the buffer of one of the `candidates`, of
    /// which four are considered.
    ///
    /// # Errors
    /// If there is no such output or input, or the op gives the output another type.
    pub fn plan_output(
        &self,
        index: usize,
        layout: Layout,
        candidates: &[usize],
    ) -> Result<OutputPlan> {
        self.check_output_type(index, layout.data_type())?;
        let mut plan = OutputPlan {
            node: self.node,
            index: c_index(index, "output")?,
            layout,
            inputs: [0; CANDIDATES],
            count: 0,
            mask: 0,
        };
        for (slot, &candidate) in plan.inputs.iter_mut().zip(candidates) {
            if candidate >= self.inputs.min(64) {
                return Err(no_such("input", candidate, self.inputs.min(64)));
            }
            *slot = c_index(candidate, "input")?;
            plan.count += 1;
            plan.mask |= 1 << candidate;
        }
        Ok(plan)
    }

    /// An output as planned: in the buffer of a candidate that nobody else needs, else in a fresh
    /// one, which [`Self::is_forwarded`] then tells. Drop the [`Tensor`]s of the candidates first.
    ///
    /// # Errors
    /// [`Code::Internal`](crate::Code::Internal) if the plan is of another node, or a candidate has
    /// been forwarded already; if memory is used up, what TensorFlow says.
    #[inline(always)]
    pub fn planned_output(&mut self, plan: &OutputPlan) -> Result<TensorMut<'a>> {
        let layout = &plan.layout;
        let output = plan.index as usize;
        if plan.node != self.node
            || plan.mask & self.progress.forwarded != 0
            || self.progress.has(output)
        {
            return Err(misplaced(plan, self));
        }
        let (dims, status) = (layout.dims().as_ptr(), self.status.as_ptr());
        let mut taken = -1;
        let raw = if plan.count == 0 {
            // SAFETY: context and status are live, `dims` is valid for the rank, a layout is one
            // that a tensor can have, and the plan was checked against this node.
            unsafe {
                self.api.kernels.TF_AllocateOutput(
                    self.raw.as_ptr(),
                    plan.index,
                    layout.data_type().raw(),
                    dims,
                    layout.rank(),
                    layout.bytes(),
                    status,
                )
            }
        } else {
            // SAFETY: as above, and the candidates are inputs, as many as said.
            unsafe {
                self.api.kernels.TF_ForwardInputOrAllocateOutput(
                    self.raw.as_ptr(),
                    plan.inputs.as_ptr(),
                    plan.count,
                    plan.index,
                    dims,
                    layout.rank(),
                    &mut taken,
                    status,
                )
            }
        };
        // The callee gives a tensor exactly when it succeeds.
        if raw.is_null() {
            self.status.take()?;
        }
        // SAFETY: the callee passed ownership of a buffer without other references, and a forwarded
        // input is not given out again. The tensor has the dimensions that were asked for and the
        // type of this node's output, which is the layout's.
        let tensor = unsafe { TensorMut::with_layout(raw, self.api, layout)? };
        if let Ok(input) = u32::try_from(taken) {
            self.progress.forwarded |= 1 << input;
        }
        self.progress.give(output);
        Ok(tensor)
    }

    /// Memory for the time of the step, on the device or on the host.
    ///
    /// # Errors
    /// If the shape is impossible or memory is used up.
    pub fn allocate_temp(
        &mut self,
        data_type: DataType,
        dims: &[usize],
        on_host: bool,
    ) -> Result<TensorMut<'a>> {
        byte_size(data_type, dims)?;
        let mut attributes = sys::TF_AllocatorAttributes {
            struct_size: sys::TF_ALLOCATOR_ATTRIBUTES_STRUCT_SIZE,
            on_host: on_host.into(),
        };
        let (pointer, rank) = c_dims(dims);
        let raw = {
            // SAFETY: all pointers are live and as long as said; the shape has been checked.
            unsafe {
                self.api.kernels.TF_AllocateTemp(
                    self.raw.as_ptr(),
                    data_type.raw(),
                    pointer,
                    rank,
                    &mut attributes,
                    self.status.as_ptr(),
                )
            }
        };
        self.status.take()?;
        // SAFETY: the callee passed ownership of a fresh tensor.
        unsafe { TensorMut::from_owned_ptr(raw, self.api, "temporary memory") }
    }

    /// Makes a finished tensor output `index`.
    ///
    /// # Errors
    /// If there is no such output, it has been given already, or its type is another one.
    pub fn set_output(&mut self, index: usize, tensor: &Tensor) -> Result<()> {
        self.check_output_type(index, tensor.data_type())?;
        self.check_free(index)?;
        let number = c_index(index, "output")?;
        // SAFETY: all objects are live, index and type have been checked.
        unsafe {
            self.api.kernels.TF_SetOutput(
                self.raw.as_ptr(),
                number,
                tensor.as_ptr(),
                self.status.as_ptr(),
            );
        }
        self.status.take()?;
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

/// What [`Context::plan_input`] has checked of an input of one node.
#[derive(Clone, Debug)]
pub struct InputPlan {
    node: u64,
    index: i32,
    /// The bit of this input among those that may be forwarded.
    mask: u64,
    layout: Layout,
}

/// What [`Context::plan_output`] has checked of an output of one node.
#[derive(Clone, Debug)]
pub struct OutputPlan {
    node: u64,
    index: i32,
    layout: Layout,
    /// The first `count` are inputs that may give their buffer; bit per input in `mask`.
    inputs: [i32; CANDIDATES],
    count: i32,
    mask: u64,
}

impl OutputPlan {
    /// Whether input `index` may give its buffer.
    #[must_use]
    #[inline]
    pub fn is_candidate(&self, index: usize) -> bool {
        index < 64 && self.mask & (1 << index) != 0
    }
}

#[cold]
fn misplaced(plan: &OutputPlan, context: &Context<'_>) -> Error {
    let index = plan.index;
    if plan.node != context.node {
        return of_another_node("output", index);
    }
    if plan.mask & context.progress.forwarded == 0 {
        return given_twice(index as usize);
    }
    Error::internal(format!(
        "an input that output {index} may take over has been forwarded already"
    ))
}

#[cold]
fn of_another_node(what: &str, index: i32) -> Error {
    Error::internal(format!("the plan of {what} {index} is of another node"))
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
