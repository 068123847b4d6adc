//! Inputs and outputs whose layouts are checked once for many steps.

use super::{Context, c_index, given_twice, gone, no_such};
use crate::error::{Error, Result};
use crate::layout::Layout;
use crate::tensor::{Tensor, TensorMut};

/// Candidates for forwarding that are considered.
pub(super) const CANDIDATES: usize = 4;

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

impl<'a> Context<'a> {
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
