//! Graphs that become functions, and the functions of a graph.

use std::ffi::CString;
use std::ptr;

use tfp_sys::loader::fenced;
use tfp_sys::{TF_Operation, TF_Output};

use crate::attr::AttrValue;
use crate::attr::function::Function;
use crate::attr::proto::attr_proto;
use crate::base::api::{Status, api, c_string};
use crate::base::error::{Error, Result};
use crate::graph::def::FunctionDef;
use crate::graph::operation::{Operation, Output, count_of};
use crate::graph::{Graph, in_place};

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
        let raw = fenced(|| unsafe {
            let data = bytes.as_ptr().cast();
            api.c_api
                .TF_FunctionImportFunctionDef(data, bytes.len(), status.as_ptr())
        })?;
        status.check()?;
        // SAFETY: the caller of the function owns the result.
        unsafe { Self::from_owned_ptr(raw, api, sharing) }
    }

    /// Returns the names of the functions that its operations call, each once, in order.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn called(&self) -> Result<&[String]> {
        if let Some(known) = self.named().get() {
            return Ok(known);
        }
        let names = FunctionDef::read(&self.to_function_def()?)?
            .named()?
            .into_iter()
            .filter(|name| !name.is_empty())
            .map(|name| String::from_utf8_lossy(&name).into_owned())
            .collect();
        Ok(self.named().get_or_init(|| names))
    }

    /// Returns a copy with an attribute set.
    ///
    /// # Errors
    /// What TensorFlow says about the value.
    pub fn with_attr(&self, name: &str, value: &AttrValue<'_>) -> Result<Self> {
        let copy = Self::from_function_def(&self.to_function_def()?)?;
        let (name, proto) = (c_string(name)?, attr_proto(value)?);
        let status = Status::new(copy.api())?;
        // SAFETY: the function is new and used by this thread alone; name and bytes are alive.
        fenced(|| unsafe {
            copy.api().c_api.TF_FunctionSetAttrValueProto(
                copy.as_ptr(),
                name.as_ptr(),
                proto.as_ptr().cast(),
                proto.len(),
                status.as_ptr(),
            );
        })?;
        status.check()?;
        Ok(copy)
    }
}

impl Graph {
    /// Adds a function, and all that it calls, to the graph's library; does nothing when the same
    /// function is there.
    ///
    /// # Errors
    /// TensorFlow's status when another function of the name is there.
    pub fn add_function(&self, function: &Function) -> Result<()> {
        self.inner.shares(function.sharing());
        let mut library = self.inner.functions();
        let known = library.by_name.get(function.name());
        if known.is_some_and(|known| known.is_same(function)) {
            return Ok(());
        }
        let is_new = known.is_none();
        if library.aside && is_new {
            let name = function.name().to_owned();
            library.by_name.insert(name, function.clone());
            return Ok(());
        }
        let status = Status::new(self.inner.api)?;
        // SAFETY: graph, function and status are alive; there is no gradient function.
        self.inner.fence.call(|| unsafe {
            self.inner.api.c_api.TF_GraphCopyFunction(
                self.inner.as_ptr(),
                function.as_ptr(),
                std::ptr::null(),
                status.as_ptr(),
            );
        })?;
        status.check()?;
        if is_new {
            let name = function.name().to_owned();
            library.by_name.insert(name, function.clone());
            library.given += 1;
        }
        Ok(())
    }

    /// Returns the functions of the graph's library, by name.
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn functions(&self) -> Result<Vec<Function>> {
        let api = self.inner.api;
        let status = Status::new(api)?;
        let _guard = self.inner.lock();
        let mut library = self.inner.functions();
        // SAFETY: the graph is alive.
        let count = self
            .inner
            .fence
            .call(|| unsafe { api.c_api.TF_GraphNumFunctions(self.inner.as_ptr()) })?;
        let given = usize::try_from(count).unwrap_or(0);
        if given == library.given {
            return Ok(library.by_name.values().cloned().collect());
        }
        // Some came with an imported graph. TensorFlow copies each.
        let mut raw = vec![std::ptr::null_mut(); given];
        // SAFETY: the graph is alive, and `raw` has room for `count` functions.
        let found = self.inner.fence.call(|| unsafe {
            let data = raw.as_mut_ptr();
            api.c_api
                .TF_GraphGetFunctions(self.inner.as_ptr(), data, count, status.as_ptr())
        })?;
        status.check()?;
        raw.truncate(usize::try_from(found).unwrap_or(0));
        // SAFETY: the caller of the function owns each function.
        let found: Vec<Function> = raw
            .into_iter()
            .map(|raw| unsafe { Function::from_owned_ptr(raw, api, self.inner.sharing()) })
            .collect::<Result<_>>()?;
        for function in found {
            let name = function.name().to_owned();
            library.by_name.entry(name).or_insert(function);
        }
        library.given = given;
        Ok(library.by_name.values().cloned().collect())
    }

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
        let input_count = count_of(&inputs)?;
        let output_count = count_of(&outputs)?;
        let control_count = count_of(&control_raw)?;
        // SAFETY: all operations are of this graph, every list has the length that is passed with
        // it, and every name is a C string that lives here.
        let function = self.inner.fence.call(|| unsafe {
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
                input_count,
                inputs.as_ptr(),
                output_count,
                outputs.as_ptr(),
                if output_names.is_empty() {
                    ptr::null()
                } else {
                    output_names.as_ptr()
                },
                control_count,
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
        })?;
        drop(guard);
        status.check()?;
        // SAFETY: the caller of the function owns the result.
        unsafe { Function::from_owned_ptr(function, api, self.inner.sharing()) }
    }
}
