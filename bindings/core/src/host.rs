//! Functions of Rust that TensorFlow's runtime calls, as the kernel of an op of this crate.

use std::collections::HashMap;
use std::ffi::{CString, c_int, c_void};
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock};

use tfp_sys::loader::fenced;
use tfp_sys::{
    ClientApi, TF_OpKernelConstruction, TF_OpKernelContext, TF_ShapeInferenceContext, TF_Status,
    TSL_Code,
};
use tfp_wire::DataType;

use crate::base::api::{Status, api};
use crate::base::error::{Code, Error, Result};
use crate::call::Context;
use crate::call::operand::IntoOperands;
use crate::graph::registry::OpBuilder;
use crate::tensor::Tensor;

/// The op, whose attribute `function` is the number of a [`HostFunction`].
const OP: &str = "TfpHostCall";

type Body = dyn Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync;

/// A function of Rust that graphs, functions and eager mode call as an op, in this process alone.
///
/// TensorFlow calls it on its own threads, several at the same time, for as long as this value lives;
/// a call afterwards is an error. It takes the op for a pure function: equal calls may become one, and
/// a call whose result nothing needs may be left out. A file can't hold it.
///
/// ```no_run
/// use tfp_core::{DataType, EagerContext, HostFunction, Result, Tensor};
///
/// fn main() -> Result<()> {
///     let cx = EagerContext::new()?;
///     let length = HostFunction::new(&[DataType::INT64], |inputs| {
///         Ok(vec![Tensor::scalar(inputs[0].as_strings()?[0].len() as i64)?])
///     })?;
///     let text = cx.handle(&Tensor::from_string("word")?)?;
///     assert_eq!(length.call(&cx, &[&text])?[0].to_tensor()?.to_scalar::<i64>()?, 4);
///     Ok(())
/// }
/// ```
pub struct HostFunction {
    number: i64,
    results: Vec<DataType>,
}

/// The functions that are alive, by number.
static ALIVE: LazyLock<RwLock<HashMap<i64, Arc<Body>>>> = LazyLock::new(RwLock::default);

impl HostFunction {
    /// Takes a function of tensors and the element types of its results.
    ///
    /// An error of the function is the call's error, with its class and message. One that panics ends
    /// in an error too.
    ///
    /// # Errors
    /// [`ErrorKind::Load`](crate::ErrorKind::Load) when TensorFlow is not there, and what TensorFlow says
    /// of the op.
    pub fn new(
        results: &[DataType],
        body: impl Fn(&[Tensor]) -> Result<Vec<Tensor>> + Send + Sync + 'static,
    ) -> Result<Self> {
        static REGISTERED: OnceLock<Result<()>> = OnceLock::new();
        static NEXT: AtomicI64 = AtomicI64::new(1);
        let api = api()?;
        REGISTERED.get_or_init(|| register(api)).clone()?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let mut alive = ALIVE.write().unwrap_or_else(PoisonError::into_inner);
        alive.insert(number, Arc::new(body));
        Ok(Self {
            number,
            results: results.to_vec(),
        })
    }

    /// Adds a call to a graph, or calls immediately in eager mode. The shapes of the results are unknown.
    ///
    /// # Errors
    /// As for [`Context::execute`], and those of the function.
    pub fn call<'a, C: Context>(
        &'a self,
        context: &C,
        inputs: impl IntoOperands<'a, C::Value>,
    ) -> Result<Vec<C::Value>> {
        let called = OpBuilder::new(OP)?
            .list(inputs)
            .attr("Tout", &self.results[..])?
            .attr("function", self.number)?
            .execute(context)?;
        Ok(called.all())
    }
}

impl Drop for HostFunction {
    fn drop(&mut self) {
        let mut alive = ALIVE.write().unwrap_or_else(PoisonError::into_inner);
        let body = alive.remove(&self.number);
        // What the function owns may be host functions too.
        drop(alive);
        drop(body);
    }
}

impl fmt::Debug for HostFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HostFunction({}, {:?})", self.number, self.results)
    }
}

/// Registers op and kernel, for the rest of the process.
fn register(api: &'static ClientApi) -> Result<()> {
    let status = Status::new(api)?;
    // SAFETY: the texts are C strings, the functions are those of this module, and registering takes
    // the builders.
    fenced(|| unsafe {
        let op = api.ops.TF_NewOpDefinitionBuilder(c"TfpHostCall".as_ptr());
        for attr in [
            c"Tin: list(type) >= 0",
            c"Tout: list(type) >= 0",
            c"function: int",
        ] {
            api.ops.TF_OpDefinitionBuilderAddAttr(op, attr.as_ptr());
        }
        api.ops
            .TF_OpDefinitionBuilderAddInput(op, c"inputs: Tin".as_ptr());
        api.ops
            .TF_OpDefinitionBuilderAddOutput(op, c"outputs: Tout".as_ptr());
        let infer = Some(infer as unsafe extern "C" fn(_, _));
        api.ops
            .TF_OpDefinitionBuilderSetShapeInferenceFunction(op, infer);
        api.ops.TF_RegisterOpDefinition(op, status.as_ptr());
    })?;
    status.check_ref()?;
    // SAFETY: as above.
    fenced(|| unsafe {
        let kernel = api.kernels.TF_NewKernelBuilder(
            c"TfpHostCall".as_ptr(),
            c"CPU".as_ptr(),
            Some(create),
            Some(compute),
            Some(delete),
        );
        let name = c"TfpHostCall".as_ptr();
        api.kernels
            .TF_RegisterKernelBuilder(name, kernel, status.as_ptr());
    })?;
    status.check()
}

unsafe extern "C" fn infer(context: *mut TF_ShapeInferenceContext, status: *mut TF_Status) {
    if let Ok(api) = api() {
        // SAFETY: TensorFlow lends both for this call.
        let done = fenced(|| unsafe {
            api.ops
                .TF_ShapeInferenceContextSetUnknownShape(context, status)
        });
        if done.is_err() {
            let code = TSL_Code(Code::ResourceExhausted as u32);
            // SAFETY: as above. A status without a text needs no memory.
            unsafe { api.tf_status.TF_SetStatus(status, code, c"".as_ptr()) };
        }
    }
}

/// Makes a kernel: the boxed number of its function, or null.
unsafe extern "C" fn create(context: *mut TF_OpKernelConstruction) -> *mut c_void {
    let Ok(api) = api() else {
        return null_mut();
    };
    let Ok(status) = Status::new(api) else {
        return null_mut();
    };
    let mut number = 0;
    // SAFETY: TensorFlow lends the construction for this call; name, number and status are alive.
    let done = fenced(|| unsafe {
        let name = c"function".as_ptr();
        api.kernels.TF_OpKernelConstruction_GetAttrInt64(
            context,
            name,
            &raw mut number,
            status.as_ptr(),
        );
        let is_read = api.tf_status.TF_GetCode(status.as_ptr()).0 == 0;
        if !is_read {
            api.kernels
                .TF_OpKernelConstruction_Failure(context, status.as_ptr());
        }
        is_read
    });
    // The kernel without a number fails when it computes.
    if done != Ok(true) {
        return null_mut();
    }
    Box::into_raw(Box::new(number)).cast()
}

unsafe extern "C" fn delete(kernel: *mut c_void) {
    if !kernel.is_null() {
        // SAFETY: `create` made the box, and TensorFlow calls this once.
        drop(unsafe { Box::from_raw(kernel.cast::<i64>()) });
    }
}

unsafe extern "C" fn compute(kernel: *mut c_void, context: *mut TF_OpKernelContext) {
    let Ok(api) = api() else { return };
    let Ok(status) = Status::new(api) else { return };
    // SAFETY: `kernel` is null or what `create` made, and TensorFlow deletes it after its last call.
    let number = unsafe { kernel.cast::<i64>().as_ref() };
    // Neither a panic nor a C++ exception may cross the callback.
    let done = catch_unwind(AssertUnwindSafe(|| {
        // SAFETY: TensorFlow lends the context for this call.
        fenced(|| unsafe { run(number.copied(), api, context, &status) })
    }));
    let error = match done {
        Ok(Ok(Ok(()))) => return status.recycle(),
        Ok(Ok(Err(error))) => error,
        Ok(Err(thrown)) => thrown.into(),
        Err(panic) => Error::panicked("a function of Rust", panic),
    };
    let text = message(&error).replace('\0', " ");
    let text = CString::new(text).unwrap_or_default();
    // SAFETY: the status and the message are alive, and TensorFlow lends the context for this call.
    let told = fenced(|| unsafe {
        let code = TSL_Code(error.code() as u32);
        api.tf_status
            .TF_SetStatus(status.as_ptr(), code, text.as_ptr());
        api.kernels
            .TF_OpKernelContext_Failure(context, status.as_ptr());
    });
    // Where there is no memory to tell it, TensorFlow says that the op gave no results.
    let _ = told;
}

/// The text of an error without the class, which the status has.
fn message(error: &Error) -> String {
    match error.kind() {
        crate::ErrorKind::Status { message, .. } => message.clone(),
        _ => error.to_string(),
    }
}

/// Calls a function with the inputs of a kernel and sets its outputs.
///
/// # Safety
/// TensorFlow lends the context for the duration of this call.
unsafe fn run(
    number: Option<i64>,
    api: &'static ClientApi,
    context: *mut TF_OpKernelContext,
    status: &Status,
) -> Result<()> {
    let body = {
        let alive = ALIVE.read().unwrap_or_else(PoisonError::into_inner);
        number.and_then(|number| alive.get(&number).cloned())
    };
    let body = body.ok_or_else(|| {
        Error::new(crate::ErrorKind::Closed {
            what: "function of Rust that an op calls",
        })
    })?;
    // SAFETY: the context is alive.
    let (inputs, outputs) = unsafe {
        let kernels = &api.kernels;
        (
            kernels.TF_NumInputs(context),
            kernels.TF_NumOutputs(context),
        )
    };
    let inputs = (0..inputs).map(|at| {
        let mut raw = null_mut();
        // SAFETY: the context is alive, and `at` below the number of inputs. The tensor is a new one.
        unsafe {
            api.kernels
                .TF_GetInput(context, at, &raw mut raw, status.as_ptr());
            status.check_ref()?;
            Tensor::from_owned_ptr(raw, api)
        }
    });
    let inputs = inputs.collect::<Result<Vec<_>>>()?;
    let results = body(&inputs)?;
    if results.len() != outputs as usize {
        return Err(Error::argument(format!(
            "a function of Rust gave {} tensors, expected {outputs}",
            results.len()
        )));
    }
    for (at, result) in results.iter().enumerate() {
        let at = at as c_int;
        // SAFETY: the context is alive, and `at` below the number of outputs.
        let expected = unsafe { api.kernels.TF_ExpectedOutputDataType(context, at) };
        let expected = DataType::from_raw(expected);
        if result.dtype() != expected {
            let what = format!("result {at} of a function of Rust");
            return Err(Error::dtype(what, expected, result.dtype()));
        }
        // SAFETY: as above; the type is the expected one, and TensorFlow shares the tensor's memory.
        unsafe {
            api.kernels
                .TF_SetOutput(context, at, result.as_ptr(), status.as_ptr());
        }
        status.check_ref()?;
    }
    Ok(())
}
