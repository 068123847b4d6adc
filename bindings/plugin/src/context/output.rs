//! Outputs and temporary memory of a step.

use tfp_sys as sys;

use super::plan::CANDIDATES;
use super::{Context, c_index, no_such};
use crate::data_type::DataType;
use crate::error::{Error, Result};
use crate::layout::{LARGEST_ELEMENT, byte_size, c_dims, extent, impossible};
use crate::tensor::{Tensor, TensorMut};

impl<'a> Context<'a> {
    pub(super) fn check_output_type(&self, index: usize, found: DataType) -> Result<()> {
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
}
