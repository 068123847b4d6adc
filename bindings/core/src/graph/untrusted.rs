//! Checks of graphs and functions from elsewhere, for what makes TensorFlow end the process or never
//! come back, where it should return an error.

use std::collections::{BTreeMap, BTreeSet};

use crate::attr::proto::read_shape;
use crate::base::error::{Error, Result};
use crate::base::op::{AttrDefault, OpDesc};
use crate::graph::def::{Body, FunctionDef, GraphDef, Node};
use tfp_wire::DataType;
use tfp_wire::{Reader, Value};

/// The most bytes of a constant.
const MOST_BYTES: u64 = 1 << 40;
/// The most elements of a list of integers that are not written one by one. TensorFlow takes such lists
/// for values such as shapes when it looks at a graph, and goes through each element.
const MOST_REPEATED: u64 = 1 << 24;
/// How deeply attributes may be nested: as deeply as TensorFlow reads them.
const DEPTH: usize = 64;

/// Which functions each function calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls(BTreeMap<Vec<u8>, Called>);

/// The names of functions and ops.
pub(crate) type Called = BTreeSet<Vec<u8>>;

impl Calls {
    /// Notes what a function calls, or nothing of it; returns what was noted before.
    pub(crate) fn set(&mut self, name: &[u8], called: Option<Called>) -> Option<Called> {
        match called {
            Some(called) => self.0.insert(name.to_vec(), called),
            None => self.0.remove(name),
        }
    }

    /// Refuses a function that would call itself through those that are noted.
    pub(crate) fn check_new(&self, name: &[u8], called: &Called) -> Result<()> {
        let (mut open, mut seen) = (vec![called], BTreeSet::new());
        while let Some(called) = open.pop() {
            if called.contains(name) {
                return Err(circle(name));
            }
            for callee in called {
                if let Some(next) = self.0.get(callee)
                    && seen.insert(callee)
                {
                    open.push(next);
                }
            }
        }
        Ok(())
    }

    /// Refuses functions that call each other in a circle: TensorFlow follows it until its stack ends.
    pub(crate) fn check(&self) -> Result<()> {
        // Every function that calls none but those that are done is done.
        let mut waiting: BTreeMap<&[u8], usize> = BTreeMap::new();
        let mut callers: BTreeMap<&[u8], Vec<&[u8]>> = BTreeMap::new();
        let mut done = Vec::new();
        for (name, called) in &self.0 {
            let own = called.iter().filter(|name| self.0.contains_key(*name));
            let mut count = 0;
            for callee in own {
                callers.entry(callee).or_default().push(name);
                count += 1;
            }
            match count {
                0 => done.push(name.as_slice()),
                _ => drop(waiting.insert(name, count)),
            }
        }
        while let Some(name) = done.pop() {
            for caller in callers.remove(name).unwrap_or_default() {
                if let Some(count) = waiting.get_mut(caller) {
                    *count -= 1;
                    if *count == 0 {
                        waiting.remove(caller);
                        done.push(caller);
                    }
                }
            }
        }
        match waiting.keys().next() {
            None => Ok(()),
            Some(name) => Err(circle(name)),
        }
    }
}

#[cold]
fn circle(name: &[u8]) -> Error {
    Error::argument(format!(
        "function '{}' is in a circle of functions that call each other, or calls one",
        show(name)
    ))
}

impl GraphDef<'_> {
    /// Checks a graph and its functions.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument), naming the operation.
    pub(crate) fn check(&self) -> Result<()> {
        check_constants(&self.body, "the graph")?;
        let mut calls = Calls::default();
        for function in &self.functions {
            calls.set(function.name, Some(function.called()?));
        }
        calls.check()?;
        self.functions.iter().try_for_each(FunctionDef::check)
    }
}

impl FunctionDef<'_> {
    /// Returns what the function calls: ops, and functions.
    pub(crate) fn called(&self) -> Result<Called> {
        let mut called = self.named()?;
        called.extend(self.body.nodes.iter().map(|node| node.op.to_vec()));
        Ok(called)
    }

    /// Returns the functions that attributes of its operations name.
    pub(crate) fn named(&self) -> Result<Called> {
        let mut named = Called::new();
        for node in &self.body.nodes {
            for (_, value) in &node.attrs {
                functions_of(value, &mut named, 0)?;
            }
        }
        Ok(named)
    }

    /// Checks a function by itself.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](crate::ErrorKind::Argument), naming the operation.
    pub(crate) fn check(&self) -> Result<()> {
        let place = format!("function '{}'", show(self.name));
        for node in &self.body.nodes {
            check_attributes(node, &place)?;
        }
        check_constants(&self.body, &place)
    }
}

/// Refuses an operation that lacks an attribute without a default.
fn check_attributes(node: &Node<'_>, place: &str) -> Result<()> {
    // What is no op is a function, or TensorFlow says so.
    let Some(desc) = std::str::from_utf8(node.op)
        .ok()
        .and_then(|op| OpDesc::find(op).ok())
    else {
        return Ok(());
    };
    let has = |name: &[u8]| node.attrs.iter().any(|(attr, _)| *attr == name);
    let missing = desc
        .attrs
        .iter()
        .filter(|attr| matches!(attr.default, AttrDefault::Required))
        .find(|attr| !has(attr.name.to_bytes()));
    match missing {
        None => Ok(()),
        Some(attr) => Err(Error::argument(format!(
            "operation '{}' of {place} lacks the attribute '{}', which every {} has",
            show(node.name),
            attr.name.to_string_lossy(),
            desc.name_str()
        ))),
    }
}

/// Refuses constants of impossible sizes.
fn check_constants(body: &Body<'_>, place: &str) -> Result<()> {
    for node in &body.nodes {
        for (name, value) in &node.attrs {
            for field in Reader::new("AttrValue", value) {
                if let (8, tensor) = field? {
                    check_tensor(tensor.bytes()?).map_err(|problem| {
                        Error::argument(format!(
                            "attribute '{}' of operation '{}' of {place}: {problem}",
                            show(name),
                            show(node.name)
                        ))
                    })?;
                }
            }
        }
    }
    Ok(())
}

/// Checks a `TensorProto`; returns what is wrong.
fn check_tensor(bytes: &[u8]) -> std::result::Result<(), String> {
    fn text(error: impl ToString) -> String {
        error.to_string()
    }
    let (mut number, mut shape, mut content) = (0, None, 0_u64);
    for field in Reader::new("TensorProto", bytes) {
        match field.map_err(text)? {
            (1, value) => number = value.int().map_err(text)?,
            (2, value) => {
                let bytes = value.bytes().map_err(text)?;
                shape = Some(read_shape(bytes).map_err(text)?);
            }
            // Numbers that are written one by one take a byte at least.
            (_, field) => {
                let bytes = match field.value() {
                    Value::Bytes(bytes) => bytes.len().max(1),
                    _ => 1,
                };
                content = content.saturating_add(bytes as u64);
            }
        }
    }
    let Some(shape) = shape else {
        return Ok(());
    };
    let Some(dims) = shape.dims() else {
        return Err("a tensor of unknown shape".to_owned());
    };
    let dtype = DataType::from_number(u32::try_from(number).unwrap_or(0));
    let count = dims.iter().try_fold(1_u64, |count, &dim| {
        count.checked_mul(u64::try_from(dim).ok()?)
    });
    let size = dtype.size().unwrap_or(1) as u64;
    let is_list = dims.len() == 1 && matches!(dtype, DataType::INT32 | DataType::INT64);
    let fits = |count: u64| {
        let bytes = count.checked_mul(size);
        bytes.is_some_and(|bytes| bytes <= MOST_BYTES)
            && (!is_list || count <= MOST_REPEATED.max(content))
    };
    if count.is_some_and(fits) {
        return Ok(());
    }
    Err(format!(
        "a tensor of {dtype} with shape {shape}, of which {content} bytes are there, is too large"
    ))
}

/// Adds the functions that an attribute names.
fn functions_of(value: &[u8], found: &mut Called, depth: usize) -> Result<()> {
    if depth > DEPTH {
        return Err(Error::argument(
            "functions are nested too deeply in attributes",
        ));
    }
    for field in Reader::new("AttrValue", value) {
        match field? {
            (10, function) => function_of(function.bytes()?, found, depth)?,
            (1, list) => {
                for field in Reader::new("ListValue", list.bytes()?) {
                    if let (9, function) = field? {
                        function_of(function.bytes()?, found, depth)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

/// Adds the function of a `NameAttrList`, and those that its attributes name.
fn function_of(bytes: &[u8], found: &mut Called, depth: usize) -> Result<()> {
    for field in Reader::new("NameAttrList", bytes) {
        match field? {
            (1, name) => drop(found.insert(name.bytes()?.to_vec())),
            (2, entry) => {
                for field in Reader::new("AttrEntry", entry.bytes()?) {
                    if let (2, value) = field? {
                        functions_of(value.bytes()?, found, depth + 1)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(())
}

fn show(name: &[u8]) -> String {
    String::from_utf8_lossy(name).escape_debug().to_string()
}

/// Checks a serialized `GraphDef` before its functions are given to a context one by one.
///
/// # Errors
/// [`ErrorKind::Proto`](crate::ErrorKind::Proto) for bytes that are none, and
/// [`ErrorKind::Argument`](crate::ErrorKind::Argument), naming the operation, for an operation of a
/// function that lacks an attribute, functions that call each other in a circle, and constants of
/// impossible sizes: TensorFlow ends the process for these.
pub fn check_graph_def(bytes: &[u8]) -> Result<()> {
    GraphDef::read(bytes)?.check()
}
