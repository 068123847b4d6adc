//! `GraphDef` and `NodeDef`.

use crate::error::{Error, Result};
use crate::proto::attr::Attr;
use tfp_wire::{Reader, Writer};

/// A graph. Functions, versions and all other fields keep their bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GraphDef {
    /// The nodes, in the order of the message.
    pub nodes: Vec<NodeDef>,
    /// All fields but the nodes, in wire format.
    pub other: Vec<u8>,
}

/// A node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NodeDef {
    /// Name, unique in its graph.
    pub name: String,
    /// Name of the op.
    pub op: String,
    /// Inputs: `node`, `node:output` or `^control`.
    pub inputs: Vec<String>,
    /// Device, empty if not placed.
    pub device: String,
    /// Attributes and their serialized `AttrValue`s, in the order of the message.
    pub attrs: Vec<(String, Vec<u8>)>,
    /// All other fields, in wire format.
    pub other: Vec<u8>,
}

impl GraphDef {
    /// Reads a graph.
    ///
    /// # Errors
    /// If the message is malformed.
    pub fn parse(message: &[u8]) -> Result<Self> {
        let mut graph = Self::default();
        for field in Reader::new("GraphDef", message) {
            match field? {
                (1, node) => graph.nodes.push(NodeDef::parse(node.bytes()?)?),
                (_, field) => graph.other.extend_from_slice(field.raw()),
            }
        }
        Ok(graph)
    }

    /// The serialized graph.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new();
        for node in &self.nodes {
            w.bytes(1, &node.to_bytes());
        }
        w.raw(&self.other);
        w.into_bytes()
    }
}

impl NodeDef {
    /// Reads a node.
    ///
    /// # Errors
    /// If the message is malformed.
    pub fn parse(message: &[u8]) -> Result<Self> {
        let mut node = Self::default();
        for field in Reader::new("NodeDef", message) {
            match field? {
                (1, value) => node.name = value.text()?.to_owned(),
                (2, value) => node.op = value.text()?.to_owned(),
                (3, value) => node.inputs.push(value.text()?.to_owned()),
                (4, value) => node.device = value.text()?.to_owned(),
                (5, value) => node.attrs.push(parse_entry(value.bytes()?)?),
                (_, field) => node.other.extend_from_slice(field.raw()),
            }
        }
        Ok(node)
    }

    /// The serialized node.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut w = Writer::new();
        w.bytes(1, self.name.as_bytes());
        w.bytes(2, self.op.as_bytes());
        for input in &self.inputs {
            w.bytes(3, input.as_bytes());
        }
        if !self.device.is_empty() {
            w.bytes(4, self.device.as_bytes());
        }
        for (name, value) in &self.attrs {
            w.message(5, |w| {
                w.bytes(1, name.as_bytes());
                w.bytes(2, value);
            });
        }
        w.raw(&self.other);
        w.into_bytes()
    }

    /// The attribute `name`.
    ///
    /// # Errors
    /// If the node has no such attribute or it is malformed.
    pub fn attr(&self, name: &str) -> Result<Attr> {
        let found = self.attrs.iter().find(|(candidate, _)| candidate == name);
        let (_, value) = found.ok_or_else(|| {
            let names: Vec<_> = self.attrs.iter().map(|(n, _)| n.as_str()).collect();
            Error::invalid(format!(
                "node {} ({}) has no attribute {name}; it has {}",
                self.name,
                self.op,
                names.join(", ")
            ))
        })?;
        Attr::parse(value).map_err(|error| error.at(format_args!("attribute {name}")))
    }

    /// Sets the attribute `name`.
    pub fn set_attr(&mut self, name: &str, value: &Attr) {
        let bytes = value.to_bytes();
        match self.attrs.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = bytes,
            None => self.attrs.push((name.to_owned(), bytes)),
        }
    }
}

fn parse_entry(message: &[u8]) -> Result<(String, Vec<u8>)> {
    let mut entry = (String::new(), Vec::new());
    for field in Reader::new("NodeDef.AttrEntry", message) {
        match field? {
            (1, name) => entry.0 = name.text()?.to_owned(),
            (2, value) => entry.1 = value.bytes()?.to_vec(),
            _ => {}
        }
    }
    Ok(entry)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn unknown_fields_survive() {
        let mut node = Writer::new();
        node.bytes(1, b"a");
        node.bytes(2, b"NoOp");
        node.bytes(77, b"new");
        let mut graph = Writer::new();
        graph.bytes(1, &node.into_bytes());
        graph.bytes(4, b"versions");
        graph.int(99, 5);
        let bytes = graph.into_bytes();
        let parsed = GraphDef::parse(&bytes).unwrap();
        assert_eq!(parsed.nodes[0].op, "NoOp");
        assert_eq!(parsed.to_bytes(), bytes);
    }

    #[test]
    fn attributes_are_found_and_replaced() {
        let mut node = NodeDef {
            name: "n".into(),
            op: "Relu".into(),
            ..NodeDef::default()
        };
        node.set_attr("a", &Attr::Int(1));
        node.set_attr("a", &Attr::Int(2));
        assert_eq!(node.attrs.len(), 1);
        assert_eq!(node.attr("a").unwrap(), Attr::Int(2));
        let message = node.attr("b").unwrap_err().to_string();
        assert_eq!(message, "node n (Relu) has no attribute b; it has a");
    }

    proptest! {
        #[test]
        fn graphs_round_trip(
            names in proptest::collection::vec("[a-z]{1,5}", 0..5),
            inputs in proptest::collection::vec("[\\^]?[a-z]{1,3}(:[0-9])?", 0..4),
            device in "(/device:TFP:0)?",
        ) {
            let nodes = names.iter().map(|name| NodeDef {
                name: name.clone(),
                op: "Op".into(),
                inputs: inputs.clone(),
                device: device.clone(),
                attrs: vec![("T".into(), Attr::Int(3).to_bytes())],
                other: Vec::new(),
            }).collect();
            let graph = GraphDef { nodes, other: Vec::new() };
            prop_assert_eq!(GraphDef::parse(&graph.to_bytes()).unwrap(), graph);
        }
    }
}
