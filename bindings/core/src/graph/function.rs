//! Functions: graphs that ops call.

use std::ffi::CString;
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Arc, Weak};

use tfp_sys::{ClientApi, TF_Function, TF_Operation, TF_Output};

use crate::api::{Status, api, c_string, text_from_ptr};
use crate::attr::AttrValue;
use crate::buffer::OutBuffer;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph_def::FunctionDef;
use crate::in_place::{self, Sharing};
use crate::operation::{Operation, Output, count_of};
use crate::wire;

struct FunctionInner {
    raw: NonNull<TF_Function>,
    api: &'static ClientApi,
    name: String,
    sharing: Sharing,
}

// SAFETY: a function does not change: an attribute is set only on a copy that nobody else has yet.
unsafe impl Send for FunctionInner {}
// SAFETY: as above.
unsafe impl Sync for FunctionInner {}

impl Drop for FunctionInner {
    fn drop(&mut self) {
        // SAFETY: the function is alive, and this is its end; graphs and contexts have their own.
        unsafe { self.api.c_api.TF_DeleteFunction(self.raw.as_ptr()) };
    }
}

/// A graph with arguments and results, which ops call by its name. A clone is the same function.
#[derive(Clone)]
pub struct Function {
    inner: Arc<FunctionInner>,
}

/// What tells a function from any other, also from later ones; it does not keep the function.
pub(crate) struct FunctionId(Weak<FunctionInner>);

impl FunctionId {
    pub(crate) fn is_of(&self, function: &Function) -> bool {
        std::ptr::eq(self.0.as_ptr(), Arc::as_ptr(&function.inner))
    }
}

/// What becomes a function, besides its arguments and results; see [`Graph::to_function`].
#[derive(Clone, Debug, Default)]
pub struct FunctionOptions<'a> {
    /// Whether a hash of the body is appended to the name.
    pub append_hash: bool,
    /// The operations of the body; all of the graph when `None`.
    pub operations: Option<&'a [Operation]>,
    /// A name per result; derived from the operations when empty.
    pub output_names: &'a [&'a str],
    /// Operations that run whenever the function is called, each with a name of its own.
    pub control_outputs: &'a [(&'a str, Operation)],
    /// A text for people; empty for none.
    pub description: &'a str,
}

impl Function {
    /// Takes a function that TensorFlow gave away, whose operations write to at most so much.
    ///
    /// # Safety
    /// `raw` is null or a function that nothing else deletes.
    pub(crate) unsafe fn from_owned_ptr(
        raw: *mut TF_Function,
        api: &'static ClientApi,
        sharing: Sharing,
    ) -> Result<Self> {
        let Some(raw) = NonNull::new(raw) else {
            return Err(Error::internal("TensorFlow returned a null function"));
        };
        // SAFETY: the function is alive, and so is its name.
        let name = unsafe { text_from_ptr(api.c_api.TF_FunctionName(raw.as_ptr())) };
        Ok(Self {
            inner: Arc::new(FunctionInner {
                raw,
                api,
                name,
                sharing,
            }),
        })
    }

    pub(crate) fn sharing(&self) -> Sharing {
        self.inner.sharing
    }

    pub(crate) fn id(&self) -> FunctionId {
        FunctionId(Arc::downgrade(&self.inner))
    }

    pub(crate) fn as_ptr(&self) -> *mut TF_Function {
        self.inner.raw.as_ptr()
    }

    /// Makes a function of a serialized `FunctionDef`.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](crate::ErrorKind::Proto) for bytes that are none, what
    /// [`check_graph_def`](crate::check_graph_def) says of a function, and TensorFlow's status.
    pub fn from_function_def(bytes: &[u8]) -> Result<Self> {
        let api = api()?;
        let function = FunctionDef::read(bytes)?;
        function.check()?;
        let (sharing, _) = in_place::sharing(&function.body);
        let status = Status::new(api)?;
        // SAFETY: the bytes and the status are alive.
        let raw = unsafe {
            let data = bytes.as_ptr().cast();
            api.c_api
                .TF_FunctionImportFunctionDef(data, bytes.len(), status.as_ptr())
        };
        status.check()?;
        // SAFETY: the caller of the function owns the result.
        unsafe { Self::from_owned_ptr(raw, api, sharing) }
    }

    /// Returns the function as a serialized `FunctionDef`.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn to_function_def(&self) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: function, buffer and status are alive.
        unsafe {
            let status = status.as_ptr();
            api.c_api
                .TF_FunctionToFunctionDef(self.as_ptr(), buffer.as_ptr(), status);
        }
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }

    /// Returns the name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// Returns a copy with an attribute set.
    ///
    /// # Errors
    /// What TensorFlow says about the value.
    pub fn with_attr(&self, name: &str, value: &AttrValue<'_>) -> Result<Self> {
        let copy = Self::from_function_def(&self.to_function_def()?)?;
        let (name, proto) = (c_string(name)?, wire::attr_proto(value)?);
        let status = Status::new(copy.inner.api)?;
        // SAFETY: the function is new and used by this thread alone; name and bytes are alive.
        unsafe {
            copy.inner.api.c_api.TF_FunctionSetAttrValueProto(
                copy.as_ptr(),
                name.as_ptr(),
                proto.as_ptr().cast(),
                proto.len(),
                status.as_ptr(),
            );
        }
        status.check()?;
        Ok(copy)
    }

    /// Returns an attribute as a serialized `AttrValue`.
    ///
    /// # Errors
    /// TensorFlow's status for an attribute that the function does not have.
    pub fn attr(&self, name: &str) -> Result<Vec<u8>> {
        let api = self.inner.api;
        let name = c_string(name)?;
        let (status, buffer) = (Status::new(api)?, OutBuffer::new(api)?);
        // SAFETY: function, name, buffer and status are alive.
        unsafe {
            let (out, status) = (buffer.as_ptr(), status.as_ptr());
            api.c_api
                .TF_FunctionGetAttrValueProto(self.as_ptr(), name.as_ptr(), out, status);
        }
        status.check()?;
        Ok(buffer.as_slice().to_vec())
    }
}

impl fmt::Debug for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Function '{}'", self.name())
    }
}

impl Graph {
    /// Makes a function of this graph's operations; `inputs` become its arguments.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`](crate::ErrorKind::Foreign) for what is of another graph, and
    /// TensorFlow's status for a body that needs what is neither in it nor an argument.
    pub fn to_function(
        &self,
        name: &str,
        inputs: &[Output],
        outputs: &[Output],
        options: &FunctionOptions<'_>,
    ) -> Result<Function> {
        inputs
            .iter()
            .chain(outputs)
            .try_for_each(|output| self.check_own(output))?;
        let controls = options.control_outputs;
        let body = options.operations.unwrap_or(&[]);
        let operations = body
            .iter()
            .chain(controls.iter().map(|(_, operation)| operation));
        operations
            .into_iter()
            .try_for_each(|operation| self.check_operation(operation))?;
        if !options.output_names.is_empty() && options.output_names.len() != outputs.len() {
            return Err(Error::argument(format!(
                "{} names are given for {} results of function {name:?}",
                options.output_names.len(),
                outputs.len()
            )));
        }
        let api = self.inner.api;
        let c_name = c_string(name)?;
        let description = c_string(options.description)?;
        let body_raw: Vec<*const TF_Operation> = body
            .iter()
            .map(|operation| operation.as_ptr().cast_const())
            .collect();
        let raw = |list: &[Output]| list.iter().map(Output::raw).collect::<Vec<TF_Output>>();
        let (inputs, outputs) = (raw(inputs), raw(outputs));
        let names = |list: Vec<&str>| {
            list.into_iter()
                .map(c_string)
                .collect::<Result<Vec<CString>>>()
        };
        let output_names = names(options.output_names.to_vec())?;
        let control_names = names(controls.iter().map(|(name, _)| *name).collect())?;
        let pointers = |list: &[CString]| list.iter().map(|name| name.as_ptr()).collect::<Vec<_>>();
        let (output_names, control_names_raw) = (pointers(&output_names), pointers(&control_names));
        let control_raw: Vec<*const TF_Operation> = controls
            .iter()
            .map(|(_, operation)| operation.as_ptr().cast_const())
            .collect();
        let count = match options.operations {
            Some(_) => count_of(&body_raw)?,
            None => -1,
        };
        let status = Status::new(api)?;
        let guard = self.inner.lock();
        // SAFETY: all operations are of this graph, every list has the length that is passed with
        // it, and every name is a C string that lives here.
        let function = unsafe {
            api.c_api.TF_GraphToFunctionWithControlOutputs(
                self.inner.as_ptr(),
                c_name.as_ptr(),
                options.append_hash.into(),
                count,
                if count < 0 {
                    ptr::null()
                } else {
                    body_raw.as_ptr()
                },
                count_of(&inputs)?,
                inputs.as_ptr(),
                count_of(&outputs)?,
                outputs.as_ptr(),
                if output_names.is_empty() {
                    ptr::null()
                } else {
                    output_names.as_ptr()
                },
                count_of(&control_raw)?,
                control_raw.as_ptr(),
                control_names_raw.as_ptr(),
                ptr::null(),
                if options.description.is_empty() {
                    ptr::null()
                } else {
                    description.as_ptr()
                },
                status.as_ptr(),
            )
        };
        drop(guard);
        status.check()?;
        // SAFETY: the caller of the function owns the result.
        unsafe { Function::from_owned_ptr(function, api, self.inner.sharing()) }
    }
}
