//! What a serialized `GraphDef` and `FunctionDef` say, as far as it is looked at before TensorFlow
//! gets it.

use crate::base::error::Result;
use tfp_wire::Reader;

/// A `NodeDef`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Node<'d> {
    pub(crate) name: &'d [u8],
    pub(crate) op: &'d [u8],
    pub(crate) inputs: Vec<&'d [u8]>,
    /// Names and serialized `AttrValue`s.
    pub(crate) attrs: Vec<(&'d [u8], &'d [u8])>,
}

/// The operations of a graph or function.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body<'d> {
    pub(crate) nodes: Vec<Node<'d>>,
    /// What a function returns, as inputs are written.
    pub(crate) results: Vec<&'d [u8]>,
}

/// A `FunctionDef`.
#[derive(Clone, Debug, Default)]
pub(crate) struct FunctionDef<'d> {
    pub(crate) name: &'d [u8],
    pub(crate) body: Body<'d>,
}

/// A `GraphDef`.
#[derive(Clone, Debug, Default)]
pub(crate) struct GraphDef<'d> {
    pub(crate) body: Body<'d>,
    pub(crate) functions: Vec<FunctionDef<'d>>,
}

impl<'d> GraphDef<'d> {
    /// Reads a `GraphDef`.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](crate::ErrorKind::Proto).
    pub(crate) fn read(bytes: &'d [u8]) -> Result<Self> {
        let mut graph = Self::default();
        for field in Reader::new("GraphDef", bytes) {
            match field? {
                (1, node) => graph.body.nodes.push(Node::read(node.bytes()?)?),
                (2, library) => {
                    for field in Reader::new("FunctionDefLibrary", library.bytes()?) {
                        if let (1, function) = field? {
                            graph.functions.push(FunctionDef::read(function.bytes()?)?);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(graph)
    }
}

impl<'d> FunctionDef<'d> {
    /// Reads a `FunctionDef`.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`](crate::ErrorKind::Proto).
    pub(crate) fn read(bytes: &'d [u8]) -> Result<Self> {
        let mut function = Self::default();
        for field in Reader::new("FunctionDef", bytes) {
            match field? {
                (1, signature) => {
                    for field in Reader::new("OpDef", signature.bytes()?) {
                        if let (1, name) = field? {
                            function.name = name.bytes()?;
                        }
                    }
                }
                (3, node) => function.body.nodes.push(Node::read(node.bytes()?)?),
                (4, entry) => function.body.results.push(read_entry(entry.bytes()?)?.1),
                _ => {}
            }
        }
        Ok(function)
    }
}

impl<'d> Node<'d> {
    fn read(bytes: &'d [u8]) -> Result<Self> {
        let mut node = Self::default();
        for field in Reader::new("NodeDef", bytes) {
            match field? {
                (1, name) => node.name = name.bytes()?,
                (2, op) => node.op = op.bytes()?,
                (3, input) => node.inputs.push(input.bytes()?),
                (5, entry) => node.attrs.push(read_entry(entry.bytes()?)?),
                _ => {}
            }
        }
        Ok(node)
    }
}

/// Reads an entry of a map whose values are text or messages.
fn read_entry(bytes: &[u8]) -> Result<(&[u8], &[u8])> {
    let (mut key, mut value) = (&[][..], &[][..]);
    for field in Reader::new("map entry", bytes) {
        match field? {
            (1, field) => key = field.bytes()?,
            (2, field) => value = field.bytes()?,
            _ => {}
        }
    }
    Ok((key, value))
}
