//! The graph of a model around its functions.

use tfp_core::{
    DataType, Error, ErrorKind, Graph, Operation, Output, Result, Scope, Shape, Tensor,
};
use tfp_ops::{
    assign_variable_op, identity, no_op, read_variable_op, restore_v2, save_v2,
    stateful_partitioned_call,
};

use super::ModelWriter;
use super::called::{Called, Captured};
use super::objects::node_name;
use crate::checkpoint::OBJECT_GRAPH_KEY;
use crate::context::value::AnyValue;
use crate::saved_model::tables::Tables;
use crate::saved_model::trace::{Traced, is_resource};
use crate::variable::Variable;

/// The graph of the model: handles of its variables and tables, a call per signature, saving and
/// restoring.
pub(super) struct Outer<'m> {
    pub(super) graph: Graph,
    pub(super) tables: &'m Tables,
    pub(super) handles: Vec<Output>,
    pub(super) table_handles: Vec<Output>,
    // The constants with the paths of files.
    pub(super) files: Vec<String>,
    // The value that was captured, and the name of the operation.
    pub(super) constants: Vec<(AnyValue, String)>,
}

impl<'m> Outer<'m> {
    pub(super) fn new(
        writer: &ModelWriter,
        tables: &'m Tables,
        keys: &[String],
        object_graph: &Tensor,
    ) -> Result<Self> {
        let graph = Graph::new()?;
        let scope = graph.scope();
        let mut handles = Vec::new();
        for (path, variable) in &writer.variables {
            let name = node_name(path).unwrap_or_default();
            let (dtype, shape) = (variable.dtype(), variable.shape());
            let made =
                Variable::uninitialized(&scope, &name, dtype, shape, variable.is_trainable())?;
            handles.push(made.handle().output()?.clone());
        }
        let types: Vec<DataType> = writer.variables.values().map(Variable::dtype).collect();
        add_saver(&scope, &handles, &types, keys, object_graph)?;
        let mut files = Vec::new();
        for file in &tables.files {
            let path = Tensor::from_string(&file.name)?;
            files.push(format!("{}:0", scope.constant_named("file", &path)?));
        }
        Ok(Self {
            graph,
            tables,
            handles,
            table_handles: Vec::new(),
            files,
            constants: Vec::new(),
        })
    }

    /// Adds the tables and what fills them when a session begins; returns the functions that make and
    /// fill each.
    pub(super) fn add_tables(&mut self, writer: &ModelWriter) -> Result<Vec<Called<'m>>> {
        let scope = self.graph.scope();
        for (table, parts) in writer.tables.values().zip(&self.tables.parts) {
            let place = scope.named(&parts.shared_name);
            self.table_handles
                .push(table.resource_in(&place, &parts.shared_name)?);
        }
        let (mut functions, mut filled) = (Vec::new(), Vec::new());
        for parts in &self.tables.parts {
            self.graph.add_function(&parts.create.function)?;
            functions.push(Called {
                traced: &parts.create,
                placeholders: Vec::new(),
                results: Vec::new(),
                captures: Vec::new(),
                is_plain: true,
            });
            let mut fill = self.call(writer, &parts.initialize)?;
            fill.is_plain = true;
            for result in &fill.results {
                filled.push(self.graph.output(result)?.operation().clone());
            }
            functions.push(fill);
        }
        no_op(&scope.after(&filled)?.named("init"))?;
        Ok(functions)
    }

    /// Adds the call of a function.
    pub(super) fn call<'t>(
        &mut self,
        writer: &ModelWriter,
        traced: &'t Traced,
    ) -> Result<Called<'t>> {
        let scope = self.graph.scope();
        let mut operands = Vec::new();
        for spec in &traced.inputs {
            let name = node_name(&format!("{}_{}", traced.name, spec.name)).unwrap_or_default();
            operands.push(scope.placeholder(&name, spec.dtype, &spec.shape)?);
        }
        let placeholders = operands.iter().map(Output::name).collect();
        let mut captures = Vec::new();
        for value in &traced.captures {
            let capture = self.captured(writer, traced, value)?;
            operands.push(match capture {
                Captured::Variable(number) => self.handles[number].clone(),
                Captured::Constant(number) => self.graph.output(&self.constants[number].1)?,
                Captured::Table(number) => self.table_handles[number].clone(),
                Captured::File(number) => self.graph.output(&self.files[number])?,
            });
            captures.push(capture);
        }
        for function in &traced.nested {
            self.graph.add_function(function)?;
        }
        let types: Vec<DataType> = traced.outputs.iter().map(|spec| spec.dtype).collect();
        let results = stateful_partitioned_call(
            &scope,
            &operands,
            &types,
            &traced.function,
            Default::default(),
        )?;
        let index = |output: &Output| format!("{}:{}", output.operation().name(), output.index());
        Ok(Called {
            traced,
            placeholders,
            results: results.iter().map(index).collect(),
            captures,
            is_plain: false,
        })
    }

    fn captured(
        &mut self,
        writer: &ModelWriter,
        traced: &Traced,
        value: &AnyValue,
    ) -> Result<Captured> {
        let mut variables = writer.variables.values();
        if let Some(number) = variables.position(|variable| variable.handle() == value) {
            return Ok(Captured::Variable(number));
        }
        let mut tables = writer.tables.values();
        if let Some(number) = tables.position(|table| table.handle() == value) {
            return Ok(Captured::Table(number));
        }
        let mut files = self.tables.files.iter();
        if let Some(number) = files.position(|file| file.path == *value) {
            return Ok(Captured::File(number));
        }
        if let Some(number) = self.constants.iter().position(|(known, _)| known == value) {
            return Ok(Captured::Constant(number));
        }
        match value {
            AnyValue::Handle(handle) if handle.dtype() != DataType::RESOURCE => {
                let constant = self
                    .graph
                    .scope()
                    .constant_named("captured", &handle.to_tensor()?)?;
                self.constants.push((value.clone(), constant));
                Ok(Captured::Constant(self.constants.len() - 1))
            }
            AnyValue::Output(output) if !is_resource(output.operation()) => {
                Err(Error::new(ErrorKind::Foreign {
                    what: format!(
                        "signature '{}' uses '{}' of another graph, which is no variable and no table",
                        traced.name,
                        output.name()
                    ),
                }))
            }
            _ => {
                let name = match value {
                    AnyValue::Output(output) => format!(" '{}'", output.operation().name()),
                    AnyValue::Handle(_) => String::new(),
                };
                Err(Error::argument(format!(
                    "signature '{}' uses a variable or table{name} that was not added to the model",
                    traced.name
                )))
            }
        }
    }
}

/// Makes a constant and returns the name of its operation.
trait NamedConstant {
    fn constant_named(&self, name: &str, tensor: &Tensor) -> Result<String>;
}

impl NamedConstant for Scope {
    fn constant_named(&self, name: &str, tensor: &Tensor) -> Result<String> {
        let made = tfp_ops::r#const(&self.named(name), tensor, tensor.dtype())?;
        Ok(made.operation().name())
    }
}

/// Adds what a session needs to save and restore the variables.
fn add_saver(
    scope: &Scope,
    handles: &[Output],
    types: &[DataType],
    keys: &[String],
    object_graph: &Tensor,
) -> Result<()> {
    let file = scope.placeholder("saver_filename", DataType::STRING, &Shape::scalar())?;
    let inner = scope.sub_scope("saver");
    let mut names: Vec<&str> = keys.iter().map(String::as_str).collect();
    let mut restores: Vec<Operation> = Vec::new();
    let mut values = Vec::new();
    if !names.is_empty() {
        let slices = vec![""; names.len()];
        let restored = restore_v2(&inner, &file, &names[..], &slices[..], types)?;
        for (handle, value) in handles.iter().zip(&restored) {
            restores.push(assign_variable_op(
                &inner,
                handle,
                value,
                Default::default(),
            )?);
        }
    }
    for (handle, &dtype) in handles.iter().zip(types) {
        values.push(read_variable_op(&inner, handle, dtype)?);
    }
    values.push(tfp_ops::r#const(&inner, object_graph, DataType::STRING)?);
    names.push(OBJECT_GRAPH_KEY);
    let slices = vec![""; names.len()];
    let save = save_v2(&inner, &file, &names[..], &slices[..], &values)?;
    identity(&scope.after(&[save])?.named("saver_done"), &file)?;
    no_op(&scope.after(&restores)?.named("saver_restore"))?;
    Ok(())
}
