//! A SavedModel in an eager context: its variables and functions.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tfp_core::wire::{Reader, Writer};
use tfp_core::{
    EagerContext, Error, ErrorKind, Graph, ImportOptions, Result, Tensor, TensorHandle,
    check_graph_def,
};
use tfp_ops::lookup_table_import_v2;

use super::LISTS;
use super::gradients::{self, Registered, op_types, registered};
use super::model_function::{Body, ModelFunction};
use super::proto::{Kind, MetaGraph, read_model};
use super::rename::renamed_functions;
use super::structure::{Parameters, tell_types};
use crate::checkpoint::{CheckpointReader, Objects, VALUE, index_path, read_objects};
use crate::context::any::Mode;
use crate::context::kept::Loaded;
use crate::context::value::AnyValue;
use crate::files::file_error;
use crate::function::body::read_signature;
use crate::gradient::registry::forget;
use crate::variable::Variable;

/// A SavedModel that was loaded into an eager context.
///
/// Its signatures are called in that context, in tapes over it and in functions that are traced; its
/// variables are changed as any others, and [`Self::save`] writes it back with their values. The
/// functions that it added are in the context until nothing can call them any more: the model, a
/// [`ModelFunction`], a traced function and a tape that call one. For a graph with a session, see
/// [`tfp_core::SavedModel`].
#[derive(Debug)]
pub struct Model {
    pub(super) folder: PathBuf,
    pub(super) meta: MetaGraph,
    context: EagerContext,
    suffix: String,
    /// Holds the functions in the context, and the gradients in the registry.
    kept: Loaded,
    /// The tensor of each object that has one.
    tensors: BTreeMap<usize, AnyValue>,
    variables: BTreeMap<usize, Variable>,
    /// Variables that are copies of others.
    pub(super) copies: BTreeMap<usize, usize>,
    pub(super) paths: BTreeMap<usize, String>,
}

impl Model {
    /// Loads the part of a model that has all the tags, as `["serve"]`; the only part for none.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a folder or tags that are not there, and [`ErrorKind::File`],
    /// naming the file, for what is damaged or of another version.
    pub fn load(context: &EagerContext, folder: impl AsRef<Path>, tags: &[&str]) -> Result<Self> {
        let folder = folder.as_ref();
        let path = folder.join("saved_model.pb");
        let meta = choose(read_model(folder)?, tags, &path)?;
        if meta.nodes.is_empty() {
            return Err(file_error(
                &path,
                "it was written without objects, as by TensorFlow 1: load it with SavedModel",
            ));
        }
        check_versions(&meta.graph_def).map_err(|error| file_error(&path, error.to_string()))?;
        check_graph_def(&meta.graph_def).map_err(|error| file_error(&path, error.to_string()))?;
        static LOADED: AtomicU64 = AtomicU64::new(0);
        let suffix = format!("_tfp{}", LOADED.fetch_add(1, Ordering::Relaxed));
        let damaged = |error: Error| file_error(&path, error.to_string());
        let gradients = registered(&meta.graph_def).map_err(damaged)?;
        let renamed =
            renamed_functions(&meta.graph_def, &op_types(&gradients), &suffix).map_err(damaged)?;
        let here = |name: &str| format!("{name}{suffix}");
        let functions = renamed.iter().map(|function| here(&function.name));
        let rules: Vec<String> = gradients.iter().map(|known| here(&known.op_type)).collect();
        let ending = Box::new(move || forget(&rules));
        let kept = Loaded::new(functions.collect(), ending);
        kept.functions.note(context);
        for function in &renamed {
            context
                .add_function_def(&function.function_def)
                .map_err(|error| {
                    file_error(&path, format!("function '{}': {error}", function.name))
                })?;
        }
        let mut model = Self {
            folder: folder.to_owned(),
            paths: object_paths(&meta),
            meta,
            context: context.clone(),
            kept,
            suffix,
            tensors: BTreeMap::new(),
            variables: BTreeMap::new(),
            copies: BTreeMap::new(),
        };
        model.make_variables()?;
        model.copies = model.find_copies();
        model.make_constants()?;
        model.make_resources()?;
        model.restore()?;
        for gradient in &gradients {
            model.register_gradient(gradient)?;
        }
        Ok(model)
    }

    /// Takes the functions that the model added out of its context now, also those that something could
    /// still call.
    ///
    /// Dropping the model does so when nothing can. After this a call of its functions is an error, also by
    /// a tape that computes a gradient and by a function that was traced with one. TensorFlow keeps
    /// what it compiled for calls that were made, by which they may still succeed, until
    /// [`EagerContext::clear_caches`].
    ///
    /// # Errors
    /// What TensorFlow says.
    pub fn unload(self) -> Result<()> {
        for name in self.kept.functions.names() {
            // Somebody else may have removed it.
            if self.context.has_function(name)? {
                self.context.remove_function(name)?;
            }
        }
        Ok(())
    }

    fn register_gradient(&self, gradient: &Registered) -> Result<()> {
        let in_library = |name: &str| format!("{name}{}", self.suffix);
        let function = in_library(&gradient.function);
        if !self.context.has_function(&function)? {
            return Ok(());
        }
        let (_, results) = read_signature(&self.context.function_def(&function)?)?;
        let types = results.into_iter().map(|(_, dtype)| dtype).collect();
        let arguments = |name: &str| -> Result<Vec<String>> {
            let name = in_library(name);
            if !self.context.has_function(&name)? {
                return Ok(Vec::new());
            }
            let (arguments, _) = read_signature(&self.context.function_def(&name)?)?;
            Ok(arguments.into_iter().map(|(name, _)| name).collect())
        };
        let tensor = |at: usize| self.tensors.get(&at).cloned();
        gradients::register(
            &self.meta,
            gradient,
            &self.suffix,
            &tensor,
            &arguments,
            types,
        )
    }

    fn make_variables(&mut self) -> Result<()> {
        for (at, node) in self.meta.nodes.iter().enumerate() {
            let Kind::Variable {
                dtype,
                shape,
                trainable,
                name,
            } = &node.kind
            else {
                continue;
            };
            let name = match name.as_str() {
                "" => self.paths.get(&at).map_or("variable", String::as_str),
                name => name,
            };
            let made = Variable::uninitialized(&self.context, name, *dtype, shape, *trainable)?;
            self.tensors.insert(at, made.handle().clone());
            self.variables.insert(at, made);
        }
        Ok(())
    }

    /// Finds the variables in `_all_variables` that no function reads, each with the only other variable
    /// of its name, type and shape.
    fn find_copies(&self) -> BTreeMap<usize, usize> {
        let functions = self.meta.functions.values();
        let read: BTreeSet<usize> = functions
            .flat_map(|function| &function.bound_inputs)
            .copied()
            .collect();
        let is_listed = |at: &usize| {
            let path = self.paths.get(at);
            path.is_some_and(|path| path.starts_with("_all_variables/"))
        };
        let mut copies = BTreeMap::new();
        for at in self
            .variables
            .keys()
            .filter(|at| is_listed(at) && !read.contains(at))
        {
            let kind = &self.meta.nodes[*at].kind;
            let mut others = self
                .variables
                .keys()
                .filter(|other| !is_listed(other) && self.meta.nodes[**other].kind == *kind);
            if let (Some(&other), None) = (others.next(), others.next()) {
                copies.insert(*at, other);
            }
        }
        copies
    }

    /// Makes the tensors of constants, which are in the graph, and of files.
    fn make_constants(&mut self) -> Result<()> {
        let mut graph = None;
        for (at, node) in self.meta.nodes.iter().enumerate() {
            let tensor = match &node.kind {
                Kind::Asset(index) => {
                    let file = self.folder.join("assets").join(&self.meta.assets[*index]);
                    Tensor::from_string(file.to_string_lossy().as_bytes())?
                }
                Kind::Constant(name) => {
                    let graph: &Graph = match &graph {
                        Some(graph) => graph,
                        None => {
                            let made = Graph::new()?;
                            made.import(&self.meta.graph_def, &ImportOptions::default())?;
                            graph.insert(made)
                        }
                    };
                    let value = AnyValue::from(graph.output(name)?).known()?;
                    value.ok_or_else(|| {
                        file_error(
                            &self.folder.join("saved_model.pb"),
                            format!("operation '{name}' is no constant"),
                        )
                    })?
                }
                _ => continue,
            };
            let handle = self.context.handle(&tensor)?;
            self.tensors.insert(at, handle.into());
        }
        Ok(())
    }

    /// Makes resources such as tables: each has functions that make it and fill it.
    fn make_resources(&mut self) -> Result<()> {
        let is_resource = |node: &super::proto::Node| node.kind == Kind::Resource;
        let resources: Vec<usize> = (0..self.meta.nodes.len())
            .filter(|&at| is_resource(&self.meta.nodes[at]))
            .collect();
        for &at in &resources {
            let Some(create) = self.meta.child(at, "_create_resource") else {
                continue;
            };
            let made = self.call_node(create)?.into_iter().next();
            let made = made.ok_or_else(|| {
                file_error(
                    &self.folder.join("saved_model.pb"),
                    format!("the function that makes object {at} returns nothing"),
                )
            })?;
            self.tensors.insert(at, made.into());
        }
        for &at in &resources {
            if let Some(initialize) = self.meta.child(at, "_initialize") {
                self.call_node(initialize)?;
            }
        }
        Ok(())
    }

    fn call_node(&self, node: usize) -> Result<Vec<TensorHandle>> {
        let body = match &self.meta.nodes[node].kind {
            Kind::Function(bodies, _) => bodies.first(),
            Kind::ConcreteFunction(body, _) => Some(body),
            _ => None,
        };
        let Some(name) = body else {
            return Ok(Vec::new());
        };
        let body = self.concrete(name, &Parameters::default())?;
        let what = format!("function '{name}'");
        ModelFunction::new(name, vec![body], &BTreeMap::new(), what).call(&self.context, &[])
    }

    /// Gives variables and tables the values of the model's checkpoint.
    fn restore(&self) -> Result<()> {
        let has_tables = self
            .meta
            .nodes
            .iter()
            .any(|node| node.kind == Kind::Resource);
        let prefix = variables_prefix(&self.folder);
        if self.variables.is_empty() && !(has_tables && index_path(&prefix).is_file()) {
            return Ok(());
        }
        let reader = CheckpointReader::open(&prefix)?;
        let objects = read_objects(&reader)?;
        let keys = self.checkpoint_keys(&objects, &reader)?;
        let list: Vec<&str> = keys.values().map(String::as_str).collect();
        for ((at, _), tensor) in keys.iter().zip(reader.read_all(&list)?) {
            self.variables[at].set(&tensor)?;
        }
        for (&at, handle) in &self.tensors {
            if self.meta.nodes[at].kind != Kind::Resource {
                continue;
            }
            let saved = self.paths.get(&at).and_then(|path| objects.find(path));
            let Some(saved) = saved else { continue };
            let key = |end: &str| {
                let mut all = saved.attributes.iter();
                all.find(|(name, _)| name.ends_with(end))
                    .map(|(_, a)| a.key.as_str())
            };
            if let (Some(keys), Some(values)) = (key("-keys"), key("-values")) {
                let (keys, values) = (reader.read(keys)?, reader.read(values)?);
                let table = self.context.from_any(handle.clone())?;
                lookup_table_import_v2(&self.context, &table, &keys, &values)?;
            }
        }
        Ok(())
    }

    /// Returns the key in the checkpoint of each variable, by object.
    pub(super) fn checkpoint_keys(
        &self,
        objects: &Objects,
        reader: &CheckpointReader,
    ) -> Result<BTreeMap<usize, String>> {
        let mut keys = BTreeMap::new();
        for (&at, variable) in &self.variables {
            let path = self.paths.get(&at);
            let object = path.and_then(|path| objects.find(path));
            match object.and_then(|object| object.attributes.get(VALUE)) {
                Some(attribute) => keys.insert(at, attribute.key.clone()),
                None => {
                    return Err(file_error(
                        &index_path(reader.prefix()),
                        format!(
                            "it has no value of variable '{}' ('{}')",
                            variable.name(),
                            path.map_or("not reachable", String::as_str)
                        ),
                    ));
                }
            };
        }
        Ok(keys)
    }

    /// Returns the variables, each with its path in the tree of objects. Copies that Keras 3 exports in
    /// `_all_variables`, which no function reads, are not among them; [`Self::save`] gives them the
    /// values of the variables that they are copies of.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Variable)> {
        let path = |at| self.paths.get(at).map_or("", String::as_str);
        self.variables
            .iter()
            .filter(|(at, _)| !self.copies.contains_key(at))
            .map(move |(at, variable)| (path(at), variable))
    }

    pub(super) fn variables_by_node(&self) -> &BTreeMap<usize, Variable> {
        &self.variables
    }

    /// Returns the names of the signatures.
    #[must_use]
    pub fn signatures(&self) -> Vec<String> {
        self.meta.signatures().into_keys().collect()
    }

    /// Returns a signature.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with the names that there are.
    pub fn signature(&self, name: &str) -> Result<ModelFunction> {
        let all = self.meta.signatures();
        let Some((body, keywords)) = all.get(name) else {
            let names: Vec<&str> = all.keys().map(String::as_str).collect();
            return Err(not_found("signature", name, &self.folder, &names));
        };
        let mut body = self.concrete(body, &Parameters::default())?;
        // A signature of one argument may have lost its name.
        if body.inputs.len() == keywords.len() {
            let mut inputs = body.inputs.iter();
            if inputs.any(|spec| !keywords.contains(&spec.name)) {
                for (spec, keyword) in body.inputs.iter_mut().zip(keywords) {
                    spec.name.clone_from(keyword);
                }
            }
        }
        let what = format!("signature '{name}'");
        Ok(ModelFunction::new(name, vec![body], &BTreeMap::new(), what))
    }

    /// Returns a function of the model by its path in the tree of objects, as `serve`.
    ///
    /// Of several bodies, which Python traced for other shapes or for other values such as `training=True`,
    /// each call takes the first that its arguments fit. An argument that is not a tensor has its default;
    /// [`ModelFunction::with`] gives it another value.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with the paths that there are.
    pub fn function(&self, path: &str) -> Result<ModelFunction> {
        let (mut others, none) = (Vec::new(), Parameters::default());
        for (&at, found) in &self.paths {
            let (bodies, parameters) = match &self.meta.nodes[at].kind {
                Kind::Function(bodies, parameters) if !bodies.is_empty() => {
                    (bodies.as_slice(), parameters)
                }
                Kind::ConcreteFunction(body, _) => (std::slice::from_ref(body), &none),
                _ => continue,
            };
            if found != path {
                others.push(found.as_str());
                continue;
            }
            let (mut all, mut problem) = (Vec::new(), None);
            for body in bodies {
                match self.concrete(body, parameters) {
                    Ok(body) => all.push(body),
                    Err(error) => problem = problem.or(Some(error)),
                }
            }
            // One that can't be loaded is no obstacle to the others.
            return match problem {
                Some(error) if all.is_empty() => Err(error),
                _ => {
                    let what = format!("function '{path}'");
                    Ok(ModelFunction::new(path, all, &parameters.defaults, what))
                }
            };
        }
        others.sort_unstable();
        Err(not_found("function", path, &self.folder, &others))
    }

    /// Returns a body of a function with what it captured.
    fn concrete(&self, body: &str, parameters: &Parameters) -> Result<Body> {
        let place = self.folder.join("saved_model.pb");
        let Some(function) = self.meta.functions.get(body) else {
            return Err(file_error(&place, format!("it has no function '{body}'")));
        };
        let mut captures = Vec::with_capacity(function.bound_inputs.len());
        for at in &function.bound_inputs {
            let Some(value) = self.tensors.get(at) else {
                return Err(file_error(
                    &place,
                    format!(
                        "function '{body}' needs object {at}, of a kind that can't be loaded: {:?}",
                        self.meta.nodes[*at].kind
                    ),
                ));
            };
            captures.push(value.clone());
        }
        let in_library = format!("{body}{}", self.suffix);
        let (mut inputs, mut outputs) = (function.inputs.flatten(), function.outputs.flatten());
        let (arguments, results) = read_signature(&self.context.function_def(&in_library)?)?;
        for (what, told, found) in [
            ("takes", arguments.len(), inputs.len() + captures.len()),
            ("returns", results.len(), outputs.len()),
        ] {
            // TensorFlow ends the process when it calls one that returns more than is asked for.
            if told != found {
                return Err(file_error(
                    &place,
                    format!(
                        "function '{body}' {what} {told} tensors, {found} by the description of its \
                         arguments, captured objects and results"
                    ),
                ));
            }
        }
        // Of a ragged or sparse tensor the structure tells only of how many tensors it is made.
        tell_types(&mut inputs, &arguments);
        tell_types(&mut outputs, &results);
        Ok(Body {
            function: in_library,
            inputs,
            outputs,
            captures,
            values: parameters.values(&function.inputs),
            kept: self.kept.clone(),
        })
    }
}

#[cold]
fn not_found(what: &'static str, name: &str, folder: &Path, there: &[&str]) -> Error {
    Error::new(ErrorKind::NotFound {
        what,
        name: name.to_owned(),
        place: format!(
            "SavedModel '{}', which has {}",
            folder.display(),
            if there.is_empty() {
                "none".to_owned()
            } else {
                there.join(", ")
            }
        ),
    })
}

/// Returns the prefix of the checkpoint in a model's folder.
pub(super) fn variables_prefix(folder: &Path) -> PathBuf {
    folder.join("variables").join("variables")
}

/// Returns the part with all the tags.
fn choose(parts: Vec<MetaGraph>, tags: &[&str], path: &Path) -> Result<MetaGraph> {
    let listed: Vec<String> = parts.iter().map(|part| part.tags.join("+")).collect();
    let only = parts.len() == 1 && tags.is_empty();
    let fits = |part: &MetaGraph| {
        only || part.tags.len() == tags.len()
            && tags.iter().all(|tag| part.tags.iter().any(|t| t == tag))
    };
    parts.into_iter().find(fits).ok_or_else(|| {
        Error::new(ErrorKind::NotFound {
            what: "part with the tags",
            name: tags.join("+"),
            place: format!("'{}', which has {}", path.display(), listed.join(", ")),
        })
    })
}

/// Asks TensorFlow whether it reads graphs of the versions that a `GraphDef` names.
fn check_versions(graph_def: &[u8]) -> Result<()> {
    let mut empty = Writer::new();
    for field in Reader::new("GraphDef", graph_def) {
        if let (4, versions) = field? {
            empty.bytes(4, versions.bytes()?);
        }
    }
    Graph::new()?
        .import(&empty.into_bytes(), &ImportOptions::default())
        .map(drop)
}

/// Returns a shortest path to every object; through a list of all variables only where no other path
/// leads there, for checkpoints need not have those lists.
pub(super) fn object_paths(meta: &MetaGraph) -> BTreeMap<usize, String> {
    let objects = meta.nodes.iter().map(|node| crate::checkpoint::Object {
        children: node.children.clone(),
        ..Default::default()
    });
    let mut objects = Objects(objects.collect());
    let mut paths = objects.paths();
    if let Some(root) = objects.0.first_mut() {
        root.children
            .retain(|name, _| !LISTS.contains(&name.as_str()));
    }
    paths.extend(objects.paths());
    paths
}
