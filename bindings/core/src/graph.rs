//! Graphs and the operations in them.

pub(crate) mod attr;
pub(crate) mod def;
pub(crate) mod function;
pub(crate) mod import;
pub(crate) mod in_place;
pub(crate) mod inner;
pub(crate) mod operation;
pub(crate) mod registry;
pub(crate) mod scope;
pub(crate) mod untrusted;
pub(crate) mod while_loop;

use std::ffi::CString;
use std::fmt;
use std::ptr::NonNull;
use std::sync::Arc;

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_Graph, TF_Operation};

use crate::attr::sharing::Sharing;
use crate::base::api::{Status, api, c_string, not_null};
use crate::base::buffer::OutBuffer;
use crate::base::error::{Error, Result};
use crate::base::names::Names;
use crate::base::shape::Shape;
use crate::base::small_vec::SmallVec;
use crate::graph::inner::GraphInner;
use crate::graph::operation::{Operation, Output};

/// A graph of operations.
///
/// A clone is the same graph. Operations, outputs and sessions keep the graph alive. Several threads
/// may add operations at the same time.
#[derive(Clone)]
pub struct Graph {
    pub(crate) inner: Arc<GraphInner>,
}

impl Graph {
    /// Makes an empty graph.
    ///
    /// # Errors
    /// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there.
    pub fn new() -> Result<Self> {
        let api = api()?;
        // SAFETY: the function has no precondition.
        let raw = fenced(|| unsafe { api.c_api.TF_NewGraph() })?;
        // SAFETY: a new graph, or null.
        unsafe { Self::from_owned_ptr(raw, api) }
    }

    /// Makes an empty graph that is for functions only ([`Self::to_function`]).
    ///
    /// Functions that are added to it are kept as they are: TensorFlow copies none of them. It has
    /// therefore no session that can run a call.
    ///
    /// # Errors
    /// As for [`Self::new`].
    pub fn of_bodies() -> Result<Self> {
        let graph = Self::new()?;
        graph.inner.functions().aside = true;
        Ok(graph)
    }

    /// Takes an empty graph that TensorFlow gave away.
    ///
    /// # Safety
    /// `raw` is null or a graph that nothing else deletes.
    pub(crate) unsafe fn from_owned_ptr(
        raw: *mut TF_Graph,
        api: &'static ClientApi,
    ) -> Result<Self> {
        Self::of(raw, api, true)
    }

    /// Refers to a graph that TensorFlow deletes.
    ///
    /// # Safety
    /// `raw` is null or a graph that outlives what is returned and all that is made of it.
    pub(crate) unsafe fn from_borrowed_ptr(
        raw: *mut TF_Graph,
        api: &'static ClientApi,
    ) -> Result<Self> {
        Self::of(raw, api, false)
    }

    fn of(raw: *mut TF_Graph, api: &'static ClientApi, is_owned: bool) -> Result<Self> {
        let names = if is_owned {
            Names::default()
        } else {
            Names::with_others()
        };
        let raw = not_null(raw, "TensorFlow, asked for a graph,")?;
        let inner = Arc::new(GraphInner::new(raw, api, names, is_owned));
        Ok(Self { inner })
    }

    /// Whether two are the same graph.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Whether TensorFlow threw an exception in a call on this graph or a session of it, so that it may
    /// have left it locked. Then every further call fails with
    /// [`Code::FailedPrecondition`](crate::Code::FailedPrecondition): make another graph.
    #[must_use]
    pub fn is_broken(&self) -> bool {
        self.inner.fence.is_broken()
    }

    pub(crate) fn unique_scope(&self, name: &str) -> String {
        self.inner.lock().unique_scope(name)
    }

    /// Returns an operation.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound).
    pub fn operation(&self, name: &str) -> Result<Operation> {
        let c_name = c_string(name)?;
        // SAFETY: the graph is alive and the name is a C string.
        let raw = self.inner.fence.call(|| unsafe {
            self.inner
                .api
                .c_api
                .TF_GraphOperationByName(self.inner.as_ptr(), c_name.as_ptr())
        })?;
        match NonNull::new(raw) {
            // SAFETY: the operation is of this graph.
            Some(raw) => Ok(unsafe { Operation::from_borrowed_ptr(&self.inner, raw) }),
            None => Err(Error::not_found("operation", name, self.place())),
        }
    }

    #[cold]
    fn place(&self) -> String {
        let mut names: Vec<String> = self.operations().take(9).map(|op| op.name()).collect();
        if names.is_empty() {
            return "the graph, which is empty".to_owned();
        }
        if names.len() > 8 {
            names[8] = "...".to_owned();
        }
        format!("the graph, which has {}", names.join(", "))
    }

    /// Returns an output of an operation by `operation` or `operation:index`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`](crate::ErrorKind::NotFound) for the operation or the index.
    pub fn output(&self, name: &str) -> Result<Output> {
        match name.rsplit_once(':') {
            Some((operation, index)) => {
                let index = index.parse().map_err(|_| {
                    Error::argument(format!("{name:?} does not end in the number of an output"))
                })?;
                self.operation(operation)?.output(index)
            }
            None => self.operation(name)?.output(0),
        }
    }

    /// Returns the operations, in the order in which they were added; none after TensorFlow has thrown an
    /// exception.
    pub fn operations(&self) -> impl Iterator<Item = Operation> + use<> {
        let graph = Arc::clone(&self.inner);
        let mut position = 0;
        std::iter::from_fn(move || {
            graph.fence.check().ok()?;
            // SAFETY: the graph is alive, and the position was returned by this function.
            let raw: *mut TF_Operation = unsafe {
                graph
                    .api
                    .c_api
                    .TF_GraphNextOperation(graph.as_ptr(), &raw mut position)
            };
            // SAFETY: the operation is of this graph.
            NonNull::new(raw).map(|raw| unsafe { Operation::from_borrowed_ptr(&graph, raw) })
        })
    }

    /// Returns the graph, with its functions, as a serialized `GraphDef`.
    ///
    /// # Errors
    /// What TensorFlow says, as for a graph of more than 2 GiB.
    pub fn to_graph_def(&self) -> Result<Vec<u8>> {
        self.buffer(|api, status, buffer| {
            // SAFETY: graph, buffer and status are alive.
            unsafe {
                api.c_api
                    .TF_GraphToGraphDef(self.inner.as_ptr(), buffer, status)
            }
        })
    }

    /// Returns the versions that the graph was made for, as a serialized `VersionDef`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn versions(&self) -> Result<Vec<u8>> {
        self.buffer(|api, status, buffer| {
            // SAFETY: graph, buffer and status are alive.
            unsafe {
                api.c_api
                    .TF_GraphVersions(self.inner.as_ptr(), buffer, status)
            }
        })
    }

    /// Returns the definition of a type of op, as a serialized `OpDef`.
    ///
    /// # Errors
    /// TensorFlow's status for a type of op that does not exist.
    pub fn op_def(&self, op_type: &str) -> Result<Vec<u8>> {
        let op_type = c_string(op_type)?;
        self.buffer(|api, status, buffer| {
            // SAFETY: graph, name, buffer and status are alive.
            unsafe {
                api.c_api
                    .TF_GraphGetOpDef(self.inner.as_ptr(), op_type.as_ptr(), buffer, status);
            }
        })
    }

    fn buffer(
        &self,
        fill: impl FnOnce(&ClientApi, *mut tfp_sys::TF_Status, *mut tfp_sys::TF_Buffer),
    ) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        let buffer = OutBuffer::new(api)?;
        self.inner
            .fence
            .call(|| fill(api, status.as_ptr(), buffer.as_ptr()))?;
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Returns what is known of an output's shape.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for an output of another graph.
    pub fn shape(&self, output: &Output) -> Result<Shape> {
        self.check_own(output)?;
        let (api, raw) = (&self.inner.api.c_api, output.raw());
        let status = Status::new(self.inner.api)?;
        // SAFETY: the output is of this graph, which is alive.
        let rank = self.inner.fence.call(|| unsafe {
            api.TF_GraphGetTensorNumDims(self.inner.as_ptr(), raw, status.as_ptr())
        })?;
        status.check_ref()?;
        if rank < 0 {
            return Ok(Shape::unknown());
        }
        let mut dims: SmallVec<i64, 6> = (0..rank).map(|_| 0).collect();
        if rank > 0 {
            // SAFETY: as above, and `dims` has room for `rank` dimensions.
            self.inner.fence.call(|| unsafe {
                let data = dims.as_mut_ptr();
                api.TF_GraphGetTensorShape(self.inner.as_ptr(), raw, data, rank, status.as_ptr());
            })?;
        }
        status.check()?;
        Ok(Shape::from_dims(Some(dims)))
    }

    /// Merges a shape into what is known of an output's shape.
    ///
    /// # Errors
    /// TensorFlow's status for a shape that contradicts what is known.
    pub fn set_shape(&self, output: &Output, shape: &Shape) -> Result<()> {
        self.check_own(output)?;
        let status = Status::new(self.inner.api)?;
        let (dims, rank) = match shape.dims() {
            Some(dims) => (dims.as_ptr(), crate::attr::set::c_int_len(dims.len())?),
            None => (std::ptr::null(), -1),
        };
        // SAFETY: the output is of this graph; `dims` has `rank` elements.
        self.inner.fence.call(|| unsafe {
            let (graph, raw) = (self.inner.as_ptr(), output.raw());
            let api = &self.inner.api.c_api;
            api.TF_GraphSetTensorShape(graph, raw, dims, rank, status.as_ptr());
        })?;
        self.inner.renew_epoch();
        status.check()
    }

    /// Returns the value of an output that does not depend on anything but constants.
    ///
    /// # Errors
    /// What TensorFlow says while it computes the value.
    pub fn try_evaluate(&self, output: &Output) -> Result<Option<crate::Tensor>> {
        self.check_own(output)?;
        let status = Status::new(self.inner.api)?;
        let mut tensor = std::ptr::null_mut();
        // SAFETY: the output is of this graph; `tensor` and the status are alive.
        let known = self.inner.fence.call(|| unsafe {
            self.inner.api.c_api.TF_TryEvaluateConstant(
                self.inner.as_ptr(),
                output.raw(),
                &raw mut tensor,
                status.as_ptr(),
            )
        })?;
        status.check()?;
        if known == 0 {
            return Ok(None);
        }
        // SAFETY: the caller of the function owns the tensor.
        unsafe { crate::Tensor::from_owned_ptr(tensor, self.inner.api) }.map(Some)
    }

    #[inline]
    pub(crate) fn check_own(&self, output: &Output) -> Result<()> {
        self.check_operation(output.operation())
    }

    #[inline]
    pub(crate) fn check_operation(&self, operation: &Operation) -> Result<()> {
        if Arc::ptr_eq(operation.inner(), &self.inner) {
            return Ok(());
        }
        Err(foreign(operation))
    }

    /// Adds gradients of the sum of `y` with respect to each of `x`, from TensorFlow's C++ registry.
    ///
    /// `dy` are the gradients of `y`, ones when empty. A gradient of `None` is that of an `x` on which
    /// `y` depends only through operations that have no gradient by nature.
    ///
    /// # Errors
    /// TensorFlow's status for an op without a gradient in C++ or an `x` on which no `y` depends,
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument) for a loop of TensorFlow 1 of which
    /// a variable is not between `x` and `y`, and [`ErrorKind::Foreign`](crate::ErrorKind::Foreign).
    pub fn add_gradients(
        &self,
        prefix: Option<&str>,
        y: &[Output],
        x: &[Output],
        dy: &[Output],
    ) -> Result<Vec<Option<Output>>> {
        y.iter()
            .chain(x)
            .chain(dy)
            .try_for_each(|output| self.check_own(output))?;
        if !dy.is_empty() && dy.len() != y.len() {
            return Err(Error::argument(format!(
                "{} gradients are given for {} outputs: expected as many, or none",
                dy.len(),
                y.len()
            )));
        }
        self.check_loops(y, x)?;
        let prefix: Option<CString> = prefix.map(c_string).transpose()?;
        let raw = |outputs: &[Output]| outputs.iter().map(Output::raw).collect::<Vec<_>>();
        let (mut y, mut x_raw, mut dy) = (raw(y), raw(x), raw(dy));
        let none = tfp_sys::TF_Output {
            oper: std::ptr::null_mut(),
            index: -1,
        };
        let mut result = vec![none; x.len()];
        let status = Status::new(self.inner.api)?;
        let mut guard = self.inner.lock();
        guard.others_named();
        let y_count = crate::attr::set::c_int_len(y.len())?;
        let x_count = crate::attr::set::c_int_len(x.len())?;
        // SAFETY: all outputs are of this graph, and every pointer has the length that is passed;
        // `dy` is null when there is none.
        self.inner.fence.call(|| unsafe {
            self.inner.api.c_api.TF_AddGradientsWithPrefix(
                self.inner.as_ptr(),
                prefix
                    .as_ref()
                    .map_or(std::ptr::null(), |prefix| prefix.as_ptr()),
                y.as_mut_ptr(),
                y_count,
                x_raw.as_mut_ptr(),
                x_count,
                if dy.is_empty() {
                    std::ptr::null_mut()
                } else {
                    dy.as_mut_ptr()
                },
                status.as_ptr(),
                result.as_mut_ptr(),
            );
        })?;
        drop(guard);
        status.check()?;
        Ok(result
            .into_iter()
            .map(|raw| {
                let operation = NonNull::new(raw.oper)?;
                // SAFETY: the operation was just added to this graph.
                let operation = unsafe { Operation::from_borrowed_ptr(&self.inner, operation) };
                operation.output(usize::try_from(raw.index).ok()?).ok()
            })
            .collect())
    }

    /// Makes an operation that exists run after these, and after no others.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for an operation of another graph.
    pub fn set_control_inputs(&self, operation: &Operation, after: &[Operation]) -> Result<()> {
        self.check_operation(operation)?;
        after
            .iter()
            .try_for_each(|before| self.check_operation(before))?;
        let _guard = self.inner.lock();
        let api = &self.inner.api.c_api;
        // SAFETY: all operations are of this graph, whose edges nobody else reads under the lock.
        self.inner.fence.call(|| unsafe {
            api.TF_RemoveAllControlInputs(self.inner.as_ptr(), operation.as_ptr());
            for before in after {
                api.TF_AddOperationControlInput(
                    self.inner.as_ptr(),
                    operation.as_ptr(),
                    before.as_ptr(),
                );
            }
        })?;
        Ok(())
    }

    /// Makes an input of an operation that exists come from another output of the same graph.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign), or TensorFlow's status for an input that
    /// the operation does not have, another element type or another shape. A session that ran the
    /// operation before refuses to run the graph again.
    pub fn update_edge(&self, source: &Output, consumer: &Operation, input: usize) -> Result<()> {
        self.check_own(source)?;
        self.check_operation(consumer)?;
        if input == 0 && in_place::writes(consumer.op_type().as_bytes()) {
            self.inner.shares(Sharing::Operands);
        }
        let status = Status::new(self.inner.api)?;
        let destination = tfp_sys::TF_Input {
            oper: consumer.as_ptr(),
            index: crate::attr::set::c_int_len(input)?,
        };
        let _guard = self.inner.lock();
        // SAFETY: both operations are of this graph, whose edges nobody else reads under the lock.
        self.inner.fence.call(|| unsafe {
            let (graph, source) = (self.inner.as_ptr(), source.raw());
            let api = &self.inner.api.c_api;
            api.TF_UpdateEdge(graph, source, destination, status.as_ptr());
        })?;
        status.check()
    }
}

#[cold]
fn foreign(operation: &Operation) -> Error {
    Error::foreign(format!(
        "operation '{}' is of another graph",
        operation.name()
    ))
}

impl fmt::Debug for Graph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Graph({} operations)", self.operations().count())
    }
}

impl Operation {
    /// Returns the graph.
    #[must_use]
    pub fn graph(&self) -> Graph {
        Graph {
            inner: Arc::clone(self.inner()),
        }
    }
}
