//! `saved_model.pb` as data: only what is needed to call and to save a model.

use std::collections::BTreeMap;
use std::path::Path;

use tfp_core::wire::{Reader, read_shape};
use tfp_core::{DataType, Error, ErrorKind, Result, Shape};

use super::structure::{Parameters, Structure};
use crate::files::{file_error, read_file};

/// The version of the format that this crate knows.
const SCHEMA: i64 = 1;

/// A part of a SavedModel.
#[derive(Debug, Default)]
pub(super) struct MetaGraph {
    pub(super) tags: Vec<String>,
    /// The serialized `GraphDef`.
    pub(super) graph_def: Vec<u8>,
    /// Files beside the model, in their order.
    pub(super) assets: Vec<String>,
    pub(super) nodes: Vec<Node>,
    pub(super) functions: BTreeMap<String, ConcreteFunction>,
}

/// An object of the model; the first is the root.
#[derive(Debug, Default)]
pub(super) struct Node {
    pub(super) children: BTreeMap<String, usize>,
    pub(super) kind: Kind,
}

/// What an object is.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) enum Kind {
    /// Anything that only has children.
    #[default]
    Object,
    Variable {
        dtype: DataType,
        shape: Shape,
        trainable: bool,
        name: String,
    },
    /// The index of a file beside the model.
    Asset(usize),
    /// A function with its bodies, one per way it was called, and its parameters in Python.
    Function(Vec<String>, Parameters),
    /// A function with one body, and the names of its arguments.
    ConcreteFunction(String, Vec<String>),
    /// The operation of a constant in the graph.
    Constant(String),
    /// Something that functions make, as a table.
    Resource,
    /// A tensor inside a function, and the function.
    Captured(String, String),
}

/// A body of a function.
#[derive(Debug, Default)]
pub(super) struct ConcreteFunction {
    /// Objects whose tensors follow the arguments.
    pub(super) bound_inputs: Vec<usize>,
    pub(super) inputs: Structure,
    pub(super) outputs: Structure,
}

/// Reads the parts of the model in a folder.
pub(super) fn read_model(folder: &Path) -> Result<Vec<MetaGraph>> {
    if !folder.is_dir() {
        return Err(Error::new(ErrorKind::NotFound {
            what: "SavedModel",
            name: folder.display().to_string(),
            place: "the file system".to_owned(),
        }));
    }
    let path = folder.join("saved_model.pb");
    let bytes = read_file(&path)?;
    parse_model(&bytes).map_err(|error| file_error(&path, error.to_string()))
}

/// Reads the parts of a `SavedModel`.
pub(super) fn parse_model(bytes: &[u8]) -> Result<Vec<MetaGraph>> {
    let (mut schema, mut parts) = (0, Vec::new());
    for field in Reader::new("SavedModel", bytes) {
        match field? {
            (1, value) => schema = value.int()?,
            (2, value) => parts.push(value.bytes()?),
            _ => {}
        }
    }
    if schema != SCHEMA {
        return Err(Error::argument(format!(
            "its format has version {schema}; version {SCHEMA} is what can be read"
        )));
    }
    if parts.is_empty() {
        return Err(Error::argument("it has no graph"));
    }
    parts.into_iter().map(read_meta_graph).collect()
}

/// Reads a `MetaGraphDef`.
pub(super) fn read_meta_graph(bytes: &[u8]) -> Result<MetaGraph> {
    let mut meta = MetaGraph::default();
    for field in Reader::new("MetaGraphDef", bytes) {
        match field? {
            (1, info) => {
                for field in Reader::new("MetaInfoDef", info.bytes()?) {
                    if let (4, tag) = field? {
                        meta.tags.push(tag.text()?.to_owned());
                    }
                }
            }
            (2, graph) => meta.graph_def = graph.bytes()?.to_vec(),
            (6, asset) => {
                for field in Reader::new("AssetFileDef", asset.bytes()?) {
                    if let (2, name) = field? {
                        meta.assets.push(name.text()?.to_owned());
                    }
                }
            }
            (7, objects) => read_objects(objects.bytes()?, &mut meta)?,
            _ => {}
        }
    }
    meta.check()?;
    Ok(meta)
}

/// Reads a `SavedObjectGraph`.
fn read_objects(bytes: &[u8], meta: &mut MetaGraph) -> Result<()> {
    for field in Reader::new("SavedObjectGraph", bytes) {
        match field? {
            (1, node) => meta.nodes.push(read_node(node.bytes()?)?),
            (2, entry) => {
                let (mut name, mut function) = (String::new(), ConcreteFunction::default());
                for field in Reader::new("ConcreteFunctionsEntry", entry.bytes()?) {
                    match field? {
                        (1, key) => name = key.text()?.to_owned(),
                        (2, value) => function = read_concrete(value.bytes()?)?,
                        _ => {}
                    }
                }
                meta.functions.insert(name, function);
            }
            _ => {}
        }
    }
    Ok(())
}

fn read_concrete(bytes: &[u8]) -> Result<ConcreteFunction> {
    let mut function = ConcreteFunction::default();
    for field in Reader::new("SavedConcreteFunction", bytes) {
        match field? {
            (2, value) => {
                let mut ids = Vec::new();
                value.ints(&mut ids)?;
                let known = ids
                    .into_iter()
                    .map(|id| usize::try_from(id).unwrap_or(usize::MAX));
                function.bound_inputs.extend(known);
            }
            (3, value) => function.inputs = Structure::read(value.bytes()?)?,
            (4, value) => function.outputs = Structure::read(value.bytes()?)?,
            _ => {}
        }
    }
    Ok(function)
}

fn read_node(bytes: &[u8]) -> Result<Node> {
    let mut node = Node::default();
    for field in Reader::new("SavedObject", bytes) {
        let (number, value) = field?;
        let inner = || value.bytes();
        match number {
            1 => {
                let (mut id, mut name) = (-1, String::new());
                for field in Reader::new("ObjectReference", inner()?) {
                    match field? {
                        (1, value) => id = value.int()?,
                        (2, value) => name = value.text()?.to_owned(),
                        _ => {}
                    }
                }
                // The root's number is zero, which is not written.
                let id = usize::try_from(id.max(0)).unwrap_or(usize::MAX);
                node.children.insert(name, id);
            }
            5 => {
                let mut index = 0;
                for field in Reader::new("SavedAsset", inner()?) {
                    if let (1, value) = field? {
                        index = value.int()?;
                    }
                }
                node.kind = Kind::Asset(usize::try_from(index).unwrap_or(usize::MAX));
            }
            6 => {
                let (mut bodies, mut parameters) = (Vec::new(), Parameters::default());
                for field in Reader::new("SavedFunction", inner()?) {
                    match field? {
                        (1, value) => bodies.push(value.text()?.to_owned()),
                        (2, value) => parameters = Parameters::read(value.bytes()?)?,
                        _ => {}
                    }
                }
                node.kind = Kind::Function(bodies, parameters);
            }
            7 => node.kind = read_variable(inner()?)?,
            8 => {
                let mut name = texts("SavedBareConcreteFunction", 1, inner()?)?;
                let keywords = texts("SavedBareConcreteFunction", 2, inner()?)?;
                node.kind = Kind::ConcreteFunction(name.pop().unwrap_or_default(), keywords);
            }
            9 => {
                let mut name = texts("SavedConstant", 1, inner()?)?;
                node.kind = Kind::Constant(name.pop().unwrap_or_default());
            }
            10 => node.kind = Kind::Resource,
            12 => {
                let mut name = texts("CapturedTensor", 1, inner()?)?;
                let mut function = texts("CapturedTensor", 2, inner()?)?;
                let last = |list: &mut Vec<String>| list.pop().unwrap_or_default();
                node.kind = Kind::Captured(last(&mut name), last(&mut function));
            }
            _ => {}
        }
    }
    Ok(node)
}

/// Reads all texts of a field.
fn texts(message: &'static str, number: u32, bytes: &[u8]) -> Result<Vec<String>> {
    let mut list = Vec::new();
    for field in Reader::new(message, bytes) {
        let (found, value) = field?;
        if found == number {
            list.push(value.text()?.to_owned());
        }
    }
    Ok(list)
}

fn read_variable(bytes: &[u8]) -> Result<Kind> {
    let (mut number, mut shape) = (0, Shape::scalar());
    let (mut trainable, mut name) = (false, String::new());
    for field in Reader::new("SavedVariable", bytes) {
        match field? {
            (1, value) => number = value.int()?,
            (2, value) => shape = read_shape(value.bytes()?)?,
            (3, value) => trainable = value.int()? != 0,
            (6, value) => name = value.text()?.to_owned(),
            _ => {}
        }
    }
    let dtype = DataType::from_number(u32::try_from(number).unwrap_or(0));
    Ok(Kind::Variable {
        dtype,
        shape,
        trainable,
        name,
    })
}

impl MetaGraph {
    /// Checks that every number of an object is one.
    fn check(&self) -> Result<()> {
        let count = self.nodes.len();
        let bad = |what: String, id: usize| {
            Err(Error::argument(format!(
                "{what} refers to object {id}; there are {count} objects"
            )))
        };
        for (at, node) in self.nodes.iter().enumerate() {
            for (name, &child) in &node.children {
                if child >= count {
                    return bad(format!("'{name}' of object {at}"), child);
                }
            }
            if let Kind::Asset(index) = node.kind
                && index >= self.assets.len()
            {
                return Err(Error::argument(format!(
                    "object {at} is file {index}; there are {} files",
                    self.assets.len()
                )));
            }
        }
        for (name, function) in &self.functions {
            if let Some(&id) = function.bound_inputs.iter().find(|&&id| id >= count) {
                return bad(format!("function '{name}'"), id);
            }
        }
        Ok(())
    }

    /// Returns the object that is a child of another one.
    pub(super) fn child(&self, node: usize, name: &str) -> Option<usize> {
        self.nodes.get(node)?.children.get(name).copied()
    }

    /// Returns the names of the functions with which signatures are called, by signature, each with
    /// the names of its arguments.
    pub(super) fn signatures(&self) -> BTreeMap<String, (String, Vec<String>)> {
        let map = self
            .child(0, "signatures")
            .and_then(|at| self.nodes.get(at));
        let mut signatures = BTreeMap::new();
        for (name, &child) in map.into_iter().flat_map(|map| &map.children) {
            match &self.nodes[child].kind {
                Kind::ConcreteFunction(function, keywords) => {
                    signatures.insert(name.clone(), (function.clone(), keywords.clone()));
                }
                Kind::Function(bodies, _) => {
                    if let Some(body) = bodies.first() {
                        signatures.insert(name.clone(), (body.clone(), Vec::new()));
                    }
                }
                _ => {}
            }
        }
        signatures
    }
}

#[cfg(test)]
mod tests {
    use tfp_core::wire::Writer;

    use super::parse_model;

    /// A model of one part: an object with a variable, a signature of a function with one body.
    fn model() -> Vec<u8> {
        let mut out = Writer::new();
        out.int(1, 1);
        out.message(2, |meta| {
            meta.message(1, |info| info.bytes(4, b"serve"));
            meta.message(7, |graph| {
                graph.message(1, |root| {
                    for (id, name) in [(1, "v"), (2, "signatures")] {
                        root.message(1, |child| {
                            child.int(1, id);
                            child.bytes(2, name.as_bytes());
                        });
                    }
                });
                graph.message(1, |node| node.message(7, |variable| variable.int(1, 1)));
                graph.message(1, |map| {
                    map.message(1, |child| {
                        child.int(1, 3);
                        child.bytes(2, b"serving_default");
                    });
                });
                graph.message(1, |node| {
                    node.message(8, |bare| {
                        bare.bytes(1, b"f");
                        bare.bytes(2, b"x");
                    });
                });
                graph.message(2, |entry| {
                    entry.bytes(1, b"f");
                    entry.message(2, |function| function.int(2, 1));
                });
            });
        });
        out.into_bytes()
    }

    #[test]
    fn signatures_are_found() {
        let parts = parse_model(&model()).expect("a model");
        let signatures = parts[0].signatures();
        assert_eq!(
            signatures["serving_default"],
            ("f".to_owned(), vec!["x".to_owned()])
        );
        assert_eq!(parts[0].functions["f"].bound_inputs, [1]);
    }

    #[test]
    fn other_versions_and_numbers_are_refused_with_what_is_wrong() {
        let problem = |bytes: &[u8]| parse_model(bytes).expect_err("refused").to_string();
        let mut future = model();
        future[1] = 9;
        assert!(
            problem(&future).contains("version 9"),
            "{}",
            problem(&future)
        );
        assert!(problem(&[]).contains("version 0"));
        assert!(problem(&[8, 1]).contains("no graph"));
        let whole = model();
        let at = whole
            .windows(2)
            .position(|pair| pair == [16, 1])
            .expect("a bound input");
        let mut far = whole;
        far[at + 1] = 77;
        assert!(problem(&far).contains("object 77"), "{}", problem(&far));
    }

    #[test]
    fn damaged_bytes_never_panic() {
        let whole = model();
        for at in 0..whole.len() {
            let _ = parse_model(&whole[..at]);
            for value in 0..=255 {
                let mut damaged = whole.clone();
                damaged[at] = value;
                if let Ok(parts) = parse_model(&damaged) {
                    for part in parts {
                        let _ = part.signatures();
                    }
                }
            }
        }
    }
}
