//! Graphs and the operations in them.

use std::ffi::CString;
use std::fmt;
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tfp_sys::{ClientApi, TF_Graph, TF_Operation};

use crate::api::{Status, api, c_string};
use crate::buffer::OutBuffer;
use crate::error::{Error, Result};
use crate::function::Function;
use crate::in_place::{self, Sharing};
use crate::names::Names;
use crate::operation::{Operation, Output};
use crate::scope::Scope;
use crate::shape::Shape;
use crate::small_vec::SmallVec;

/// A graph, which every operation and session on it keeps alive.
pub(crate) struct GraphInner {
    raw: NonNull<TF_Graph>,
    pub(crate) api: &'static ClientApi,
    // Held while operations or edges are added or edges are read: TensorFlow reads edges unguarded.
    names: Mutex<Names>,
    epoch: AtomicU64,
    sharing: AtomicU8,
    is_owned: bool,
}

/// Returns a number that was not returned before.
fn new_epoch() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

// SAFETY: the C API guards a graph by its own mutex; what it does not guard, `names` does.
unsafe impl Send for GraphInner {}
// SAFETY: as above.
unsafe impl Sync for GraphInner {}

impl GraphInner {
    pub(crate) fn as_ptr(&self) -> *mut TF_Graph {
        self.raw.as_ptr()
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Names> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a number that this graph alone has, as long as no shape in it is set.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Notes what operations that are added may write to.
    pub(crate) fn shares(&self, sharing: Sharing) {
        self.sharing.fetch_max(sharing as u8, Ordering::AcqRel);
    }

    /// Returns what the operations may write to.
    #[inline]
    pub(crate) fn sharing(&self) -> Sharing {
        Sharing::from_number(self.sharing.load(Ordering::Acquire))
    }

    /// Whether the graph has an operation of a name, which must end in a NUL byte.
    pub(crate) fn has(&self, name: &[u8]) -> bool {
        // SAFETY: the graph is alive and the name is a C string.
        let found = unsafe {
            self.api
                .c_api
                .TF_GraphOperationByName(self.as_ptr(), name.as_ptr().cast())
        };
        !found.is_null()
    }
}

impl Drop for GraphInner {
    fn drop(&mut self) {
        if self.is_owned {
            // SAFETY: the graph is alive, and nothing of this crate refers to it any more.
            unsafe { self.api.c_api.TF_DeleteGraph(self.raw.as_ptr()) };
        }
    }
}

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
        let raw = unsafe { api.c_api.TF_NewGraph() };
        // SAFETY: a new graph, or null.
        unsafe { Self::from_owned_ptr(raw, api) }
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
        match NonNull::new(raw) {
            Some(raw) => Ok(Self {
                inner: Arc::new(GraphInner {
                    raw,
                    api,
                    names: Mutex::new(names),
                    epoch: AtomicU64::new(new_epoch()),
                    sharing: AtomicU8::new(Sharing::Nothing as u8),
                    is_owned,
                }),
            }),
            None => Err(Error::internal("TensorFlow returned a null graph")),
        }
    }

    /// Whether two are the same graph.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }

    /// Returns the outermost scope, with which operations are added.
    #[must_use]
    pub fn scope(&self) -> Scope {
        Scope::root(self)
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
        let raw = unsafe {
            self.inner
                .api
                .c_api
                .TF_GraphOperationByName(self.inner.as_ptr(), c_name.as_ptr())
        };
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

    /// Returns the operations, in the order in which they were added.
    pub fn operations(&self) -> impl Iterator<Item = Operation> + use<> {
        let graph = Arc::clone(&self.inner);
        let mut position = 0;
        std::iter::from_fn(move || {
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
        fill(api, status.as_ptr(), buffer.as_ptr());
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
        let rank =
            unsafe { api.TF_GraphGetTensorNumDims(self.inner.as_ptr(), raw, status.as_ptr()) };
        status.check_ref()?;
        if rank < 0 {
            return Ok(Shape::unknown());
        }
        let mut dims: SmallVec<i64, 6> = (0..rank).map(|_| 0).collect();
        if rank > 0 {
            // SAFETY: as above, and `dims` has room for `rank` dimensions.
            unsafe {
                let data = dims.as_mut_ptr();
                api.TF_GraphGetTensorShape(self.inner.as_ptr(), raw, data, rank, status.as_ptr());
            }
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
            Some(dims) => (dims.as_ptr(), crate::set_attr::c_int_len(dims.len())?),
            None => (std::ptr::null(), -1),
        };
        // SAFETY: the output is of this graph; `dims` has `rank` elements.
        unsafe {
            let (graph, raw) = (self.inner.as_ptr(), output.raw());
            let api = &self.inner.api.c_api;
            api.TF_GraphSetTensorShape(graph, raw, dims, rank, status.as_ptr());
        }
        // After the call, so that who reads the new epoch sees the new shape.
        self.inner.epoch.store(new_epoch(), Ordering::Release);
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
        let known = unsafe {
            self.inner.api.c_api.TF_TryEvaluateConstant(
                self.inner.as_ptr(),
                output.raw(),
                &raw mut tensor,
                status.as_ptr(),
            )
        };
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
        // SAFETY: all outputs are of this graph, and every pointer has the length that is passed;
        // `dy` is null when there is none.
        unsafe {
            self.inner.api.c_api.TF_AddGradientsWithPrefix(
                self.inner.as_ptr(),
                prefix
                    .as_ref()
                    .map_or(std::ptr::null(), |prefix| prefix.as_ptr()),
                y.as_mut_ptr(),
                crate::set_attr::c_int_len(y.len())?,
                x_raw.as_mut_ptr(),
                crate::set_attr::c_int_len(x.len())?,
                if dy.is_empty() {
                    std::ptr::null_mut()
                } else {
                    dy.as_mut_ptr()
                },
                status.as_ptr(),
                result.as_mut_ptr(),
            );
        }
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
        unsafe {
            api.TF_RemoveAllControlInputs(self.inner.as_ptr(), operation.as_ptr());
            for before in after {
                api.TF_AddOperationControlInput(
                    self.inner.as_ptr(),
                    operation.as_ptr(),
                    before.as_ptr(),
                );
            }
        }
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
            index: crate::set_attr::c_int_len(input)?,
        };
        let _guard = self.inner.lock();
        // SAFETY: both operations are of this graph, whose edges nobody else reads under the lock.
        unsafe {
            let (graph, source) = (self.inner.as_ptr(), source.raw());
            let api = &self.inner.api.c_api;
            api.TF_UpdateEdge(graph, source, destination, status.as_ptr());
        }
        status.check()
    }

    /// Adds a function, and all that it calls, to the graph's library; does nothing when the same
    /// function is there.
    ///
    /// # Errors
    /// TensorFlow's status when another function of the name is there.
    pub fn add_function(&self, function: &Function) -> Result<()> {
        self.inner.shares(function.sharing());
        let status = Status::new(self.inner.api)?;
        // SAFETY: graph, function and status are alive; there is no gradient function.
        unsafe {
            self.inner.api.c_api.TF_GraphCopyFunction(
                self.inner.as_ptr(),
                function.as_ptr(),
                std::ptr::null(),
                status.as_ptr(),
            );
        }
        status.check()
    }

    /// Returns the functions of the graph's library.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn functions(&self) -> Result<Vec<Function>> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        let _guard = self.inner.lock();
        // SAFETY: the graph is alive.
        let count = unsafe { api.c_api.TF_GraphNumFunctions(self.inner.as_ptr()) };
        let mut raw = vec![std::ptr::null_mut(); usize::try_from(count).unwrap_or(0)];
        // SAFETY: the graph is alive, and `raw` has room for `count` functions.
        let found = unsafe {
            let data = raw.as_mut_ptr();
            api.c_api
                .TF_GraphGetFunctions(self.inner.as_ptr(), data, count, status.as_ptr())
        };
        status.check()?;
        raw.truncate(usize::try_from(found).unwrap_or(0));
        // SAFETY: the caller of the function owns each function.
        raw.into_iter()
            .map(|raw| unsafe { Function::from_owned_ptr(raw, api, self.inner.sharing()) })
            .collect()
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
