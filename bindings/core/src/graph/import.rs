//! Import of a `GraphDef`.

use std::ffi::{CStr, c_char, c_int};
use std::ptr::{self, NonNull};

use tfp_sys::loader::fenced;
use tfp_sys::{ClientApi, TF_ImportGraphDefOptions, TF_ImportGraphDefResults};

use crate::base::api::{Status, c_string};
use crate::base::buffer::lend;
use crate::base::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::def::GraphDef;
use crate::graph::operation::{Operation, Output};
use tfp_wire::Reader;

/// How a `GraphDef` is imported: every option of the C API.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions<'a> {
    /// What precedes every name, without a slash at the end; empty for nothing.
    pub prefix: &'a str,
    /// The device of operations that have none; empty for none.
    pub default_device: &'a str,
    /// Whether names that are taken get a number; otherwise the import fails.
    pub uniquify_names: bool,
    /// Whether the prefix gets a number when it is taken.
    pub uniquify_prefix: bool,
    /// Outputs of the `GraphDef`, by operation and index, that are replaced by outputs of the graph.
    pub input_map: &'a [(&'a str, usize, Output)],
    /// Control inputs of the `GraphDef`, by operation, that are replaced.
    pub control_map: &'a [(&'a str, Operation)],
    /// Operations that every imported one runs after.
    pub control_dependencies: &'a [Operation],
    /// Outputs to return, by operation and index, with names as in the `GraphDef`.
    pub return_outputs: &'a [(&'a str, usize)],
    /// Operations to return, with names as in the `GraphDef`.
    pub return_operations: &'a [&'a str],
    /// Whether colocation with operations that are not there is an error; `None` for TensorFlow's default.
    pub validate_colocation: Option<bool>,
}

/// What an import returns.
#[derive(Clone, Debug, Default)]
pub struct Imported {
    /// The outputs that were asked for.
    pub outputs: Vec<Output>,
    /// The operations that were asked for.
    pub operations: Vec<Operation>,
    /// Entries of the input map that nothing needed and that the `GraphDef` does not have.
    pub unused_mappings: Vec<(String, usize)>,
}

/// The options as the C API wants them.
struct RawOptions(*mut TF_ImportGraphDefOptions, &'static ClientApi);

impl Drop for RawOptions {
    fn drop(&mut self) {
        // SAFETY: the options are alive, and this is their end.
        unsafe { self.1.c_api.TF_DeleteImportGraphDefOptions(self.0) };
    }
}

/// The results as the C API returns them.
struct RawResults(*mut TF_ImportGraphDefResults, &'static ClientApi);

impl Drop for RawResults {
    fn drop(&mut self) {
        // SAFETY: the results are alive, and this is their end.
        unsafe { self.1.c_api.TF_DeleteImportGraphDefResults(self.0) };
    }
}

impl Graph {
    /// Adds the operations and functions of a serialized `GraphDef`.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](crate::ErrorKind::Proto) for bytes that are not a `GraphDef`; the errors of
    /// [`check_graph_def`](crate::check_graph_def); TensorFlow's status for one that needs ops, names or versions
    /// that are not there, and for options that do not fit; the graph is then as before.
    pub fn import(&self, graph_def: &[u8], options: &ImportOptions<'_>) -> Result<Imported> {
        for (_, _, output) in options.input_map {
            self.check_own(output)?;
        }
        let mapped = options.control_map.iter().map(|(_, operation)| operation);
        for operation in mapped.chain(options.control_dependencies) {
            self.check_operation(operation)?;
        }
        let read = GraphDef::read(graph_def)?;
        read.check()?;
        self.inner.shares(read.sharing());
        let api = self.inner.api;
        let raw = self.raw_options(options)?;
        let status = Status::new(api)?;
        let buffer = lend(graph_def);
        let mut guard = self.inner.lock();
        guard.others_named();
        if !options.prefix.is_empty() && !options.uniquify_names && !options.uniquify_prefix {
            self.check_prefixed_names(graph_def, options.prefix)?;
        }
        // SAFETY: graph, options and status are alive; the buffer is only read during the call.
        let results = self.inner.fence.call(|| unsafe {
            api.c_api.TF_GraphImportGraphDefWithResults(
                self.inner.as_ptr(),
                &raw const buffer,
                raw.0,
                status.as_ptr(),
            )
        })?;
        drop(guard);
        status.check()?;
        if results.is_null() {
            return Err(Error::internal(
                "TF_GraphImportGraphDefWithResults returned null",
            ));
        }
        self.read_results(&RawResults(results, api))
    }

    /// Refuses names that are taken under a prefix, which TensorFlow itself only looks at without one.
    fn check_prefixed_names(&self, graph_def: &[u8], prefix: &str) -> Result<()> {
        // Bytes that are no `GraphDef` are left to TensorFlow.
        for field in Reader::new("GraphDef", graph_def).map_while(Result::ok) {
            let (1, node) = field else {
                continue;
            };
            let Ok(node) = node.bytes() else {
                continue;
            };
            for field in Reader::new("NodeDef", node).map_while(Result::ok) {
                if let (1, Ok(name)) = (field.0, field.1.text()) {
                    let name = format!("{prefix}/{name}");
                    if !name.contains('\0') && self.operation(&name).is_ok() {
                        return Err(Error::argument(format!(
                            "the import would add '{name}', which is in the graph already"
                        )));
                    }
                }
            }
        }
        Ok(())
    }

    fn raw_options(&self, options: &ImportOptions<'_>) -> Result<RawOptions> {
        let api = self.inner.api;
        let c = &api.c_api;
        // SAFETY: the function has no precondition.
        let raw = RawOptions(fenced(|| unsafe { c.TF_NewImportGraphDefOptions() })?, api);
        let index = |index: usize| {
            c_int::try_from(index)
                .map_err(|_| Error::argument(format!("{index} is not the index of an output")))
        };
        // SAFETY: the options are alive; names are C strings, which TensorFlow copies; operations
        // and outputs were found to be of this graph.
        fenced(|| unsafe {
            if !options.prefix.is_empty() {
                c.TF_ImportGraphDefOptionsSetPrefix(raw.0, c_string(options.prefix)?.as_ptr());
            }
            if !options.default_device.is_empty() {
                let device = c_string(options.default_device)?;
                c.TF_ImportGraphDefOptionsSetDefaultDevice(raw.0, device.as_ptr());
            }
            c.TF_ImportGraphDefOptionsSetUniquifyNames(raw.0, options.uniquify_names.into());
            c.TF_ImportGraphDefOptionsSetUniquifyPrefix(raw.0, options.uniquify_prefix.into());
            for (name, position, output) in options.input_map {
                let (name, position) = (c_string(name)?, index(*position)?);
                let to = output.raw();
                c.TF_ImportGraphDefOptionsAddInputMapping(raw.0, name.as_ptr(), position, to);
            }
            for (name, operation) in options.control_map {
                let (name, to) = (c_string(name)?, operation.as_ptr());
                c.TF_ImportGraphDefOptionsRemapControlDependency(raw.0, name.as_ptr(), to);
            }
            for operation in options.control_dependencies {
                c.TF_ImportGraphDefOptionsAddControlDependency(raw.0, operation.as_ptr());
            }
            for (name, position) in options.return_outputs {
                let (name, position) = (c_string(name)?, index(*position)?);
                c.TF_ImportGraphDefOptionsAddReturnOutput(raw.0, name.as_ptr(), position);
            }
            for name in options.return_operations {
                let name = c_string(name)?;
                c.TF_ImportGraphDefOptionsAddReturnOperation(raw.0, name.as_ptr());
            }
            if let Some(validate) = options.validate_colocation {
                let c = &api.c_api_experimental;
                c.TF_ImportGraphDefOptionsSetValidateColocationConstraints(raw.0, validate.into());
            }
            Ok::<_, Error>(())
        })??;
        Ok(raw)
    }

    fn read_results(&self, results: &RawResults) -> Result<Imported> {
        let c = &results.1.c_api;
        let mut imported = Imported::default();
        let mut count: c_int = 0;
        let (mut outputs, mut operations) = (ptr::null_mut(), ptr::null_mut());
        let (mut names, mut indexes) = (ptr::null_mut::<*const c_char>(), ptr::null_mut());
        // SAFETY: the results are alive and own the arrays that they return, of the length that they
        // return; operations are of this graph, and names are C strings.
        unsafe {
            c.TF_ImportGraphDefResultsReturnOutputs(results.0, &raw mut count, &raw mut outputs);
            for position in 0..usize::try_from(count).unwrap_or(0) {
                let output = *outputs.add(position);
                let Some(operation) = NonNull::new(output.oper) else {
                    return Err(Error::internal("an imported output has no operation"));
                };
                let operation = Operation::from_borrowed_ptr(&self.inner, operation);
                imported
                    .outputs
                    .push(operation.output(usize::try_from(output.index).unwrap_or(0))?);
            }
            let list = &raw mut operations;
            c.TF_ImportGraphDefResultsReturnOperations(results.0, &raw mut count, list);
            for position in 0..usize::try_from(count).unwrap_or(0) {
                if let Some(operation) = NonNull::new(*operations.add(position)) {
                    let operation = Operation::from_borrowed_ptr(&self.inner, operation);
                    imported.operations.push(operation);
                }
            }
            c.TF_ImportGraphDefResultsMissingUnusedInputMappings(
                results.0,
                &raw mut count,
                &raw mut names,
                &raw mut indexes,
            );
            for position in 0..usize::try_from(count).unwrap_or(0) {
                let name = CStr::from_ptr(*names.add(position))
                    .to_string_lossy()
                    .into_owned();
                let index = usize::try_from(*indexes.add(position)).unwrap_or(0);
                imported.unused_mappings.push((name, index));
            }
        }
        Ok(imported)
    }
}
