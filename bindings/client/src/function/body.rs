//! The body of a function of a library, as a graph again.

use std::collections::HashMap;
use std::sync::Arc;

use tfp_core::op::{ArgKind, AttrDefault};
use tfp_core::wire::{Reader, Writer, shape_proto};
use tfp_core::{
    DataType, EagerContext, Error, ErrorKind, Function, Graph, ImportOptions, Operation, Output,
    Result, Shape,
};

use crate::context::any::AnyContext;
use crate::context::kept::Kept;
use crate::context::op_info::OpInfo;

fn bad(problem: impl Into<String>) -> Error {
    Error::new(ErrorKind::Proto {
        message: "FunctionDef",
        problem: problem.into(),
    })
}

/// Returns the name of a serialized `FunctionDef`.
pub(crate) fn name_of(def: &[u8]) -> Result<String> {
    for field in Reader::new("FunctionDef", def) {
        if let (1, signature) = field? {
            for field in Reader::new("OpDef", signature.bytes()?) {
                if let (1, name) = field? {
                    return Ok(name.text()?.to_owned());
                }
            }
        }
    }
    Ok(String::new())
}

/// Where the functions are that a context can call: its graph, those around it, and the eager context below. A
/// graph is asked for its functions when they are not in those before.
struct Places {
    graphs: Vec<HashMap<String, Function>>,
    eager: Option<EagerContext>,
    next: Option<AnyContext>,
}

impl Places {
    fn of(cx: &AnyContext) -> Self {
        Self {
            graphs: Vec::new(),
            eager: None,
            next: Some(cx.clone()),
        }
    }

    fn find(&mut self, name: &str) -> Result<Function> {
        if let Some(found) = self.graphs.iter().find_map(|graph| graph.get(name)) {
            return Ok(found.clone());
        }
        while let Some(cx) = self.next.take() {
            if let AnyContext::Func(func) = &cx {
                self.next = func.outer().cloned();
            }
            self.eager = cx.eager().cloned();
            if let Some(graph) = cx.graph() {
                let named = |function: Function| (function.name().to_owned(), function);
                let functions: HashMap<_, _> = graph.functions()?.into_iter().map(named).collect();
                let found = functions.get(name).cloned();
                self.graphs.push(functions);
                if let Some(found) = found {
                    return Ok(found);
                }
            }
        }
        if let Some(Ok(def)) = self.eager.as_ref().map(|eager| eager.function_def(name)) {
            return Function::from_function_def(&def);
        }
        let mut places = Vec::new();
        if !self.graphs.is_empty() {
            let count: usize = self.graphs.iter().map(HashMap::len).sum();
            places.push(format!("the graph's library of {count} functions"));
        }
        if self.eager.is_some() {
            places.push("the eager context".to_owned());
        }
        Err(Error::new(ErrorKind::NotFound {
            what: "function",
            name: name.to_owned(),
            place: places.join(" and "),
        }))
    }
}

/// A function with all that it calls.
pub(crate) struct Library {
    functions: Vec<Function>,
}

impl Library {
    /// Collects a function of a context's library and all that it calls.
    pub(crate) fn of(cx: &AnyContext, name: &str) -> Result<Self> {
        let mut places = Places::of(cx);
        // Depth first; a function is `true` while one that it calls is looked at.
        let mut open: HashMap<String, bool> = HashMap::from([(name.to_owned(), true)]);
        let mut functions = vec![places.find(name)?];
        let mut path = vec![(functions[0].clone(), 0)];
        while let Some((function, next)) = path.last_mut() {
            let Some(called) = function.called()?.get(*next) else {
                open.insert(function.name().to_owned(), false);
                path.pop();
                continue;
            };
            *next += 1;
            match open.get(called) {
                Some(false) => {}
                Some(true) => {
                    return Err(Error::argument(format!(
                        "function '{called}' is in a circle of functions that call each other"
                    )));
                }
                None => {
                    let found = places.find(called)?;
                    open.insert(called.clone(), true);
                    functions.push(found.clone());
                    path.push((found, 0));
                }
            }
        }
        Ok(Self { functions })
    }

    pub(crate) fn main(&self) -> &Function {
        &self.functions[0]
    }

    pub(crate) fn others(&self) -> &[Function] {
        &self.functions[1..]
    }
}

/// The body of a function: its arguments are placeholders.
pub(crate) struct Body {
    pub(crate) graph: Graph,
    pub(crate) inputs: Vec<Output>,
    pub(crate) outputs: Vec<Output>,
    /// What runs whenever the function does.
    pub(crate) effects: Vec<Operation>,
    /// What holds the functions that it calls.
    pub(crate) holds: Vec<Arc<Kept>>,
}

/// A node of a body as it is read.
#[derive(Default)]
struct Node<'a> {
    name: String,
    op: String,
    inputs: Vec<String>,
    rest: Vec<&'a [u8]>,
    attrs: Vec<(String, &'a [u8])>,
}

fn read_node(bytes: &[u8]) -> Result<Node<'_>> {
    let mut node = Node::default();
    for field in Reader::new("NodeDef", bytes) {
        match field? {
            (1, name) => node.name = name.text()?.to_owned(),
            (2, op) => node.op = op.text()?.to_owned(),
            (3, input) => node.inputs.push(input.text()?.to_owned()),
            (number, field) => {
                if number == 5 {
                    let (mut name, mut value) = (String::new(), &[][..]);
                    for field in Reader::new("NodeDef.AttrEntry", field.bytes()?) {
                        match field? {
                            (1, field) => name = field.text()?.to_owned(),
                            (2, field) => value = field.bytes()?,
                            _ => {}
                        }
                    }
                    node.attrs.push((name, value));
                }
                node.rest.push(field.raw());
            }
        }
    }
    Ok(node)
}

/// Returns how many tensors an attribute of a node stands for.
fn attr_length(node: &Node<'_>, info: &OpInfo, index: u8) -> Result<usize> {
    let attr = &info.desc.attrs[usize::from(index)];
    let found = node
        .attrs
        .iter()
        .find(|(name, _)| name.as_bytes() == attr.name.to_bytes());
    let Some((_, value)) = found else {
        return match attr.default {
            AttrDefault::Int(length) => Ok(usize::try_from(length).unwrap_or(0)),
            AttrDefault::Types(types) => Ok(types.len()),
            _ => Err(bad(format!("node '{}' lacks an attribute", node.name))),
        };
    };
    let mut length = 0;
    for field in Reader::new("AttrValue", value) {
        match field? {
            (3, value) => length = usize::try_from(value.int()?).unwrap_or(0),
            (1, list) => {
                let mut types = Vec::new();
                for field in Reader::new("AttrValue.ListValue", list.bytes()?) {
                    if let (6, field) = field? {
                        field.ints(&mut types)?;
                    }
                }
                length = types.len();
            }
            _ => {}
        }
    }
    Ok(length)
}

/// Returns the first position of each output argument of a node.
fn output_starts(node: &Node<'_>) -> Result<HashMap<String, usize>> {
    let info = OpInfo::find(&node.op)?;
    let mut starts = HashMap::new();
    let mut next = 0;
    for output in info.desc.outputs {
        let name = output.name.to_str().unwrap_or("?");
        starts.insert(format!("{}:{name}", node.name), next);
        next = usize::saturating_add(
            next,
            match output.kind {
                ArgKind::One(_) => 1,
                ArgKind::Many { count, .. } => attr_length(node, info, count)?,
                ArgKind::Types(types) => attr_length(node, info, types)?,
            },
        );
    }
    Ok(starts)
}

/// Reads a map entry of two texts.
fn text_entry(bytes: &[u8]) -> Result<(String, String)> {
    let (mut key, mut value) = (String::new(), String::new());
    for field in Reader::new("FunctionDef.Entry", bytes) {
        match field? {
            (1, field) => key = field.text()?.to_owned(),
            (2, field) => value = field.text()?.to_owned(),
            _ => {}
        }
    }
    Ok((key, value))
}

/// Arguments or results of a function: a name and a type each.
type Arguments = Vec<(String, DataType)>;

/// Reads an `OpDef.ArgDef` of a function: a name and a type.
fn read_argument(bytes: &[u8]) -> Result<(String, DataType)> {
    let (mut name, mut dtype) = (String::new(), None);
    for field in Reader::new("OpDef.ArgDef", bytes) {
        match field? {
            (1, field) => name = field.text()?.to_owned(),
            (3, field) => dtype = u32::try_from(field.int()?).ok(),
            _ => {}
        }
    }
    match dtype {
        Some(dtype) => Ok((name, DataType::from_number(dtype))),
        None => Err(bad(format!(
            "argument '{name}' has no fixed type: functions with type attributes can't be taken apart"
        ))),
    }
}

/// Reads the arguments and results of a serialized `FunctionDef`.
pub(crate) fn read_signature(def: &[u8]) -> Result<(Arguments, Arguments)> {
    let (mut arguments, mut results) = (Vec::new(), Vec::new());
    for field in Reader::new("FunctionDef", def) {
        let (1, signature) = field? else { continue };
        for field in Reader::new("OpDef", signature.bytes()?) {
            match field? {
                (2, argument) => arguments.push(read_argument(argument.bytes()?)?),
                (3, result) => results.push(read_argument(result.bytes()?)?),
                _ => {}
            }
        }
    }
    Ok((arguments, results))
}

impl Body {
    /// Makes a graph of a function. An argument has the shape at its place, as far as one is given.
    pub(crate) fn import(library: &Library, shapes: &[Shape]) -> Result<Self> {
        let def = &library.main().to_function_def()?;
        let (arguments, results) = read_signature(def)?;
        let (mut nodes, mut returned, mut controls) = (Vec::new(), HashMap::new(), Vec::new());
        for field in Reader::new("FunctionDef", def) {
            match field? {
                (3, node) => nodes.push(read_node(node.bytes()?)?),
                (4, entry) => returned.extend([text_entry(entry.bytes()?)?]),
                (6, entry) => controls.push(text_entry(entry.bytes()?)?.1),
                _ => {}
            }
        }
        let mut starts: HashMap<String, usize> = HashMap::new();
        for node in &nodes {
            starts.extend(output_starts(node)?);
        }
        let place_of: HashMap<&str, usize> = arguments
            .iter()
            .enumerate()
            .map(|(index, (name, _))| (name.as_str(), index))
            .collect();
        // `argument`, `node:output:index`, or `^node`, as a graph writes it.
        let rewritten = |input: &str| -> Result<String> {
            if let Some(node) = input.strip_prefix('^') {
                return Ok(match place_of.get(node) {
                    Some(index) => format!("^tfp_argument_{index}"),
                    None => input.to_owned(),
                });
            }
            let (head, index) = match input.rsplit_once(':') {
                Some((head, index)) if head.contains(':') => (head, index),
                _ => {
                    let name = input.split(':').next().unwrap_or(input);
                    if let Some(index) = place_of.get(name) {
                        return Ok(format!("tfp_argument_{index}:0"));
                    }
                    // An output without an index is the first of its list.
                    (input, "0")
                }
            };
            let (node, _) = head.split_once(':').unwrap_or((head, ""));
            match (starts.get(head), index.parse::<usize>()) {
                (Some(start), Ok(index)) => Ok(format!("{node}:{}", start.saturating_add(index))),
                _ => Err(bad(format!(
                    "'{}' takes {input:?}, which is no output of its body",
                    name_of(def)?
                ))),
            }
        };
        let mut out = Writer::new();
        for (index, (_, dtype)) in arguments.iter().enumerate() {
            let shape = match *dtype {
                DataType::RESOURCE | DataType::VARIANT => Shape::unknown(),
                _ => shapes.get(index).cloned().unwrap_or_else(Shape::unknown),
            };
            out.message(1, |node| {
                node.bytes(1, format!("tfp_argument_{index}").as_bytes());
                node.bytes(2, b"Placeholder");
                let mut attr = |name: &[u8], write: &dyn Fn(&mut Writer)| {
                    node.message(5, |entry| {
                        entry.bytes(1, name);
                        entry.message(2, |value| write(value));
                    });
                };
                attr(b"dtype", &|value| value.int(6, dtype.number().into()));
                attr(b"shape", &|value| value.bytes(7, &shape_proto(&shape)));
            });
        }
        for node in &nodes {
            let inputs = node
                .inputs
                .iter()
                .map(|input| rewritten(input))
                .collect::<Result<Vec<_>>>()?;
            out.message(1, |to| {
                to.bytes(1, node.name.as_bytes());
                to.bytes(2, node.op.as_bytes());
                for input in &inputs {
                    to.bytes(3, input.as_bytes());
                }
                for field in &node.rest {
                    to.raw(field);
                }
            });
        }
        let graph = Graph::of_bodies()?;
        for function in library.others() {
            graph.add_function(function)?;
        }
        graph.import(&out.into_bytes(), &ImportOptions::default())?;
        let inputs = (0..arguments.len())
            .map(|index| graph.output(&format!("tfp_argument_{index}:0")))
            .collect::<Result<_>>()?;
        let outputs = results
            .iter()
            .map(|(name, _)| match returned.get(name) {
                Some(value) => graph.output(&rewritten(value)?),
                None => Err(bad(format!("result '{name}' has no value"))),
            })
            .collect::<Result<_>>()?;
        let effects = controls
            .iter()
            .map(|name| graph.operation(name))
            .collect::<Result<_>>()?;
        Ok(Self {
            graph,
            inputs,
            outputs,
            effects,
            holds: Kept::called_by(library.main().name()),
        })
    }
}
