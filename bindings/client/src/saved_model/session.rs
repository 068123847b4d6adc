//! A SavedModel in a session: its variables, and the way back to files.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tfp_core::{Attr, DataType, Operation, Output, Result, SavedModel, SessionOptions, Shape};

use super::load::{object_paths, variables_prefix};
use super::proto::{Kind, MetaGraph, read_meta_graph, read_model};
use super::save::save_with;
use crate::checkpoint::{CheckpointReader, VALUE, index_path, read_objects};
use crate::files::file_error;
use crate::variable::{Variable, values_in};

/// A SavedModel that was loaded into a graph with a session, also one of TensorFlow 1.
///
/// Its signatures are parts of the graph, so operations that train it can be added; its variables
/// are changed in the session, and [`Self::save`] writes it back with their values.
#[derive(Debug)]
pub struct SessionModel {
    /// The graph, the session and the signatures.
    pub model: SavedModel,
    folder: PathBuf,
    has_objects: bool,
    variables: BTreeMap<String, Variable>,
    /// The reference variables of old graphs: their values, by name.
    references: BTreeMap<String, Output>,
}

impl SessionModel {
    /// Loads the part of a model that has all the tags, as `["serve"]`.
    ///
    /// # Errors
    /// As for [`SavedModel::load`], and [`ErrorKind::File`](tfp_core::ErrorKind::File), naming the file,
    /// for what is damaged or of another version.
    pub fn load(folder: impl AsRef<Path>, tags: &[&str], options: &SessionOptions) -> Result<Self> {
        let folder = folder.as_ref();
        // TensorFlow's own loader does not look at the version.
        read_model(folder)?;
        let model = SavedModel::load(folder, tags, options)?;
        let meta = read_meta_graph(&model.meta_graph_def)
            .map_err(|error| file_error(&folder.join("saved_model.pb"), error.to_string()))?;
        let has_objects = !meta.nodes.is_empty();
        let variables = match has_objects {
            true => variables_of_objects(&model, &meta)?,
            false => variables_of_graph(&model)?,
        };
        Ok(Self {
            references: references_of_graph(&model)?,
            model,
            folder: folder.to_owned(),
            has_objects,
            variables,
        })
    }

    /// Returns the variables that signatures use, each with its path in the tree of objects; with its
    /// name for a model of TensorFlow 1.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Variable)> {
        let all = self.variables.iter();
        all.map(|(path, variable)| (path.as_str(), variable))
    }

    /// Returns the reference variables, each with its name, as graphs of TensorFlow 1 have
    /// them: an op as `Assign` or `AssignSub` takes one as its reference, and a run changes it.
    pub fn references(&self) -> impl Iterator<Item = (&str, &Output)> {
        let all = self.references.iter();
        all.map(|(name, output)| (name.as_str(), output))
    }

    /// Writes the model to another folder, with the values that the session has for its variables.
    ///
    /// Everything else is copied as it is; operations that were added to the graph are not part of
    /// the model.
    ///
    /// # Errors
    /// As for [`Model::save`](super::Model::save).
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let mut changed = BTreeMap::new();
        if !self.variables.is_empty() || !self.references.is_empty() {
            let reader = CheckpointReader::open(variables_prefix(&self.folder))?;
            // A graph has variables that are not saved, as counters of a run.
            let (keys, list): (Vec<String>, Vec<Variable>) = self
                .keys(&reader)?
                .into_iter()
                .zip(self.variables.values().cloned())
                .filter(|(key, _)| reader.entry(key).is_some())
                .unzip();
            changed.extend(keys.into_iter().zip(values_in(&self.model.session, &list)?));
            let saved = |(name, _): &(&String, &Output)| reader.entry(name).is_some();
            let (names, outputs): (Vec<&String>, Vec<&Output>) =
                self.references.iter().filter(saved).unzip();
            let values = match outputs.is_empty() {
                true => Vec::new(),
                false => self.model.session.eval(&[], &outputs)?,
            };
            changed.extend(names.into_iter().cloned().zip(values));
        }
        save_with(&self.folder, folder.as_ref(), &changed)
    }

    /// Returns the key of each variable in the model's checkpoint, in the order of their paths.
    fn keys(&self, reader: &CheckpointReader) -> Result<Vec<String>> {
        if !self.has_objects {
            return Ok(self.variables.keys().cloned().collect());
        }
        let objects = read_objects(reader)?;
        let key = |path: &String| {
            let object = objects.find(path);
            let attribute = object.and_then(|object| object.attributes.get(VALUE));
            attribute
                .map(|attribute| attribute.key.clone())
                .ok_or_else(|| {
                    file_error(
                        &index_path(reader.prefix()),
                        format!("it has no value of variable '{path}'"),
                    )
                })
        };
        self.variables.keys().map(key).collect()
    }
}

/// Finds the handles that calls of the model's functions take after their arguments.
fn variables_of_objects(
    model: &SavedModel,
    meta: &MetaGraph,
) -> Result<BTreeMap<String, Variable>> {
    let paths = object_paths(meta);
    let mut variables = BTreeMap::new();
    for operation in model.session.graph().operations() {
        let Some(function) = called(&operation)? else {
            continue;
        };
        let Some(function) = meta.functions.get(&function) else {
            continue;
        };
        let inputs = operation.inputs();
        let first = inputs.len().saturating_sub(function.bound_inputs.len());
        for (handle, at) in inputs[first..].iter().zip(&function.bound_inputs) {
            let Kind::Variable {
                dtype,
                shape,
                trainable,
                name,
            } = &meta.nodes[*at].kind
            else {
                continue;
            };
            if let Some(path) = paths.get(at)
                && !variables.contains_key(path)
            {
                let made = Variable::of_handle(handle, name, *dtype, shape, *trainable)?;
                variables.insert(path.clone(), made);
            }
        }
    }
    Ok(variables)
}

/// Returns the name of the function that an operation calls, if it is a call.
fn called(operation: &Operation) -> Result<Option<String>> {
    match operation.op_type().as_str() {
        "StatefulPartitionedCall" | "PartitionedCall" => match operation.attr("f")? {
            Attr::Func(function) => Ok(Some(function.name)),
            _ => Ok(None),
        },
        _ => Ok(None),
    }
}

/// Finds all variables of a graph that has no objects, by the names of their resources.
fn variables_of_graph(model: &SavedModel) -> Result<BTreeMap<String, Variable>> {
    let mut variables = BTreeMap::new();
    for operation in model.session.graph().operations() {
        if operation.op_type() != "VarHandleOp" {
            continue;
        }
        let (name, dtype, shape) = match (
            operation.attr("shared_name")?,
            operation.attr("dtype")?,
            operation.attr("shape")?,
        ) {
            (Attr::String(name), Attr::Type(dtype), Attr::Shape(shape)) => {
                (String::from_utf8_lossy(&name).into_owned(), dtype, shape)
            }
            _ => (operation.name(), DataType::FLOAT, Shape::unknown()),
        };
        let made = Variable::of_handle(operation.output(0)?, &name, dtype, &shape, true)?;
        variables.insert(name, made);
    }
    Ok(variables)
}

/// Finds all reference variables of a graph, by their names in checkpoints.
fn references_of_graph(model: &SavedModel) -> Result<BTreeMap<String, Output>> {
    let operations = model.session.graph().operations();
    operations
        .filter(|operation| ["VariableV2", "Variable"].contains(&operation.op_type().as_str()))
        .map(|operation| Ok((operation.name(), operation.output(0)?)))
        .collect()
}
