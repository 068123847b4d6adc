//! Operations of a graph, and their inputs and outputs.

use std::ffi::c_int;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::Arc;

use tfp_sys::loader::fenced;
use tfp_sys::{TF_Input, TF_Operation, TF_Output};

use crate::attr::set::c_int_len;
use crate::base::api::{Status, c_string, text_from_ptr};
use crate::base::buffer::OutBuffer;
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::call::operand::Value;
use crate::graph::inner::GraphInner;
use tfp_wire::DataType;

/// An operation of a graph, which it keeps alive.
#[derive(Clone)]
pub struct Operation {
    graph: Arc<GraphInner>,
    raw: NonNull<TF_Operation>,
}

// SAFETY: an operation does not change once it is added; its edges are read under the graph's lock.
unsafe impl Send for Operation {}
// SAFETY: as above.
unsafe impl Sync for Operation {}

impl Operation {
    /// Refers to an operation of a graph.
    ///
    /// # Safety
    /// `raw` is an operation of `graph`.
    #[inline]
    pub(crate) unsafe fn from_borrowed_ptr(
        graph: &Arc<GraphInner>,
        raw: NonNull<TF_Operation>,
    ) -> Self {
        Self {
            graph: Arc::clone(graph),
            raw,
        }
    }

    #[inline]
    pub(crate) fn inner(&self) -> &Arc<GraphInner> {
        &self.graph
    }

    #[inline]
    pub(crate) fn as_ptr(&self) -> *mut TF_Operation {
        self.raw.as_ptr()
    }

    /// Returns the name, which is unique in the graph.
    #[must_use]
    pub fn name(&self) -> String {
        // SAFETY: the operation is alive, and so is its name.
        unsafe { text_from_ptr(self.graph.api.c_api.TF_OperationName(self.as_ptr())) }
    }

    /// Returns the type of op, as `Conv2D`.
    #[must_use]
    pub fn op_type(&self) -> String {
        // SAFETY: as above.
        unsafe { text_from_ptr(self.graph.api.c_api.TF_OperationOpType(self.as_ptr())) }
    }

    /// Returns the device that was asked for; empty for none.
    #[must_use]
    pub fn device(&self) -> String {
        // SAFETY: as above.
        unsafe { text_from_ptr(self.graph.api.c_api.TF_OperationDevice(self.as_ptr())) }
    }

    /// Returns the number of outputs, those of lists one by one.
    #[must_use]
    pub fn output_count(&self) -> usize {
        // SAFETY: the operation is alive.
        let count = unsafe { self.graph.api.c_api.TF_OperationNumOutputs(self.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Returns an output.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) past the last one.
    #[inline]
    pub fn output(&self, index: usize) -> Result<Output> {
        if index >= self.output_count() {
            return Err(Error::not_found(
                "output",
                index.to_string(),
                format!(
                    "{} '{}', which has {}",
                    self.op_type(),
                    self.name(),
                    self.output_count()
                ),
            ));
        }
        Ok(self.known_output(index as c_int))
    }

    /// Returns an output below [`Self::output_count`].
    #[inline]
    pub(crate) fn known_output(&self, index: c_int) -> Output {
        let raw = TF_Output {
            oper: self.as_ptr(),
            index,
        };
        // SAFETY: the operation is alive, and has this output.
        let dtype = unsafe { self.graph.api.c_api.TF_OperationOutputType(raw) };
        Output {
            operation: self.clone(),
            index,
            dtype: DataType::from_raw(dtype),
        }
    }

    /// Returns all outputs, those of lists one by one.
    #[must_use]
    pub fn outputs(&self) -> Vec<Output> {
        (0..self.output_count())
            .map(|index| self.known_output(index as c_int))
            .collect()
    }

    /// Returns the number of tensors of an output argument.
    ///
    /// # Errors
    /// TensorFlow's status for an argument that the op does not have.
    pub fn output_list_length(&self, argument: &str) -> Result<usize> {
        let argument = c_string(argument)?;
        let status = Status::new(self.graph.api)?;
        // SAFETY: operation, name and status are alive.
        let length = fenced(|| unsafe {
            let api = &self.graph.api.c_api;
            api.TF_OperationOutputListLength(self.as_ptr(), argument.as_ptr(), status.as_ptr())
        })?;
        status.check()?;
        Ok(usize::try_from(length).unwrap_or(0))
    }

    /// Returns the number of tensors of an input argument.
    ///
    /// # Errors
    /// TensorFlow's status for an argument that the op does not have.
    pub fn input_list_length(&self, argument: &str) -> Result<usize> {
        let argument = c_string(argument)?;
        let status = Status::new(self.graph.api)?;
        // SAFETY: operation, name and status are alive.
        let length = fenced(|| unsafe {
            let api = &self.graph.api.c_api;
            api.TF_OperationInputListLength(self.as_ptr(), argument.as_ptr(), status.as_ptr())
        })?;
        status.check()?;
        Ok(usize::try_from(length).unwrap_or(0))
    }

    /// Returns the number of inputs, those of lists one by one.
    #[must_use]
    pub fn input_count(&self) -> usize {
        // SAFETY: the operation is alive.
        let count = unsafe { self.graph.api.c_api.TF_OperationNumInputs(self.as_ptr()) };
        usize::try_from(count).unwrap_or(0)
    }

    /// Returns the outputs that are this operation's inputs.
    #[must_use]
    pub fn inputs(&self) -> Vec<Output> {
        let _guard = self.graph.lock();
        let none = TF_Output {
            oper: ptr::null_mut(),
            index: 0,
        };
        let mut raw = vec![none; self.input_count()];
        // SAFETY: the operation is alive, and `raw` has room for its inputs.
        unsafe {
            let count = raw.len() as c_int;
            self.graph
                .api
                .c_api
                .TF_OperationAllInputs(self.as_ptr(), raw.as_mut_ptr(), count);
        }
        raw.into_iter()
            .filter_map(|raw| self.neighbour_output(raw))
            .collect()
    }

    /// Returns the inputs that an output feeds.
    #[must_use]
    pub fn consumers(&self, output: usize) -> Vec<(Operation, usize)> {
        if output >= self.output_count() {
            return Vec::new();
        }
        let _guard = self.graph.lock();
        let api = &self.graph.api.c_api;
        let from = TF_Output {
            oper: self.as_ptr(),
            index: output as c_int,
        };
        // SAFETY: the operation has this output, and its edges do not change under the lock.
        let count = unsafe { api.TF_OperationOutputNumConsumers(from) };
        let none = TF_Input {
            oper: ptr::null_mut(),
            index: 0,
        };
        let mut raw = vec![none; usize::try_from(count).unwrap_or(0)];
        // SAFETY: as above, and `raw` has room for `count` consumers.
        let found = unsafe { api.TF_OperationOutputConsumers(from, raw.as_mut_ptr(), count) };
        raw.truncate(usize::try_from(found).unwrap_or(0));
        raw.into_iter()
            .filter_map(|raw| Some((self.neighbour(raw.oper)?, usize::try_from(raw.index).ok()?)))
            .collect()
    }

    /// Returns the operations that must run before this one.
    #[must_use]
    pub fn control_inputs(&self) -> Vec<Operation> {
        let _guard = self.graph.lock();
        let api = &self.graph.api.c_api;
        // SAFETY: the operation is alive, and its edges do not change under the lock.
        let count = unsafe { api.TF_OperationNumControlInputs(self.as_ptr()) };
        let mut raw = vec![ptr::null_mut(); usize::try_from(count).unwrap_or(0)];
        // SAFETY: as above, and `raw` has room for `count` operations.
        let found =
            unsafe { api.TF_OperationGetControlInputs(self.as_ptr(), raw.as_mut_ptr(), count) };
        raw.truncate(usize::try_from(found).unwrap_or(0));
        raw.into_iter()
            .filter_map(|raw| self.neighbour(raw))
            .collect()
    }

    /// Returns the operations that this one must run before.
    #[must_use]
    pub fn control_outputs(&self) -> Vec<Operation> {
        let _guard = self.graph.lock();
        let api = &self.graph.api.c_api;
        // SAFETY: the operation is alive, and its edges do not change under the lock.
        let count = unsafe { api.TF_OperationNumControlOutputs(self.as_ptr()) };
        let mut raw = vec![ptr::null_mut(); usize::try_from(count).unwrap_or(0)];
        // SAFETY: as above, and `raw` has room for `count` operations.
        let found =
            unsafe { api.TF_OperationGetControlOutputs(self.as_ptr(), raw.as_mut_ptr(), count) };
        raw.truncate(usize::try_from(found).unwrap_or(0));
        raw.into_iter()
            .filter_map(|raw| self.neighbour(raw))
            .collect()
    }

    /// Returns the operation as a serialized `NodeDef`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn to_node_def(&self) -> Result<Vec<u8>> {
        let api = self.graph.api;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: operation, buffer and status are alive.
        fenced(|| unsafe {
            api.c_api
                .TF_OperationToNodeDef(self.as_ptr(), buffer.as_ptr(), status.as_ptr());
        })?;
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    fn neighbour(&self, raw: *mut TF_Operation) -> Option<Self> {
        // SAFETY: TensorFlow returned it as an operation of the same graph.
        NonNull::new(raw).map(|raw| unsafe { Self::from_borrowed_ptr(&self.graph, raw) })
    }

    fn neighbour_output(&self, raw: TF_Output) -> Option<Output> {
        Some(self.neighbour(raw.oper)?.known_output(raw.index))
    }
}

impl PartialEq for Operation {
    fn eq(&self, other: &Self) -> bool {
        self.raw == other.raw && Arc::ptr_eq(&self.graph, &other.graph)
    }
}

impl Eq for Operation {}

impl std::hash::Hash for Operation {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.raw.hash(state);
    }
}

impl fmt::Debug for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} '{}'", self.op_type(), self.name())
    }
}

/// An output of an operation: a tensor that the graph will compute.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct Output {
    operation: Operation,
    index: c_int,
    dtype: DataType,
}

impl Output {
    /// Returns the operation.
    #[must_use]
    #[inline]
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// Returns the position among the operation's outputs.
    #[must_use]
    #[inline]
    pub fn index(&self) -> usize {
        usize::try_from(self.index).unwrap_or(0)
    }

    /// Returns the element type; a reference for the output of an old variable.
    #[must_use]
    #[inline]
    pub fn dtype(&self) -> DataType {
        self.dtype
    }

    /// Returns what is known of the shape.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn shape(&self) -> Result<Shape> {
        self.operation.graph().shape(self)
    }

    /// Returns the name as Python writes it, `operation:index`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}:{}", self.operation.name(), self.index)
    }

    #[inline]
    pub(crate) fn raw(&self) -> TF_Output {
        TF_Output {
            oper: self.operation.as_ptr(),
            index: self.index,
        }
    }
}

impl Value for Output {
    #[inline]
    fn dtype(&self) -> DataType {
        self.dtype
    }

    fn shape(&self) -> Result<Shape> {
        self.operation.graph().shape(self)
    }
}

impl fmt::Debug for Output {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name(), self.dtype)
    }
}

/// Returns a count as the C API wants it.
pub(crate) fn count_of<T>(list: &[T]) -> Result<c_int> {
    c_int_len(list.len())
}
