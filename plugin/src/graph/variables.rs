//! Replaces ops on variables by ones that read, compute and assign.

use std::collections::HashMap;

use tfp_bindings::proto::attr::{Attr, AttrList};
use tfp_bindings::proto::graph::{GraphDef, NodeDef};
use tfp_bindings::proto::wire::Writer;
use tfp_bindings::{DataType, Error, Result};

use super::norm::Shapes;
use super::view::{Edge, Names, attr, control_inputs, data_inputs, edge, is_on};
use crate::variables::check::shapes_fit;
use crate::variables::fits::{STEP, STEP_FITS, TYPES, VARIABLES};
use crate::variables::lower::{Emit, Types, lower};
use crate::variables::table::VariableOp;
use crate::variables::{describe, table};

/// The ops of TensorFlow's own that run on any device, for every type.
const EVERYWHERE: &[&str] = &[
    "AssignAddVariableOp",
    "AssignSubVariableOp",
    "AssignVariableOp",
    "Const",
    "ReadVariableOp",
    "Shape",
    "VariableShape",
];

/// What there is to replace ops by.
#[derive(Clone, Copy, Debug)]
pub struct Means {
    /// Whether TensorFlow knows the plug-in's own ops.
    pub own_ops: bool,
    /// Whether there is a kernel for what is not replaced. Updates that others must see as one step
    /// are left to it.
    pub one_node: bool,
}

/// Replaces what can be replaced. `shapes` says what is known of the shape of an input.
pub fn replace(graph: &mut GraphDef, device_type: &str, means: Means, shapes: &Shapes<'_>) {
    let known = |node: &NodeDef| table::ops().any(|op| op == node.op);
    if !graph.nodes.iter().any(known) {
        return;
    }
    let mut names = Names::new(graph);
    let variables = variable_shapes(graph);
    let nodes = std::mem::take(&mut graph.nodes);
    for node in nodes {
        let shape = |input: &str| match edge(input) {
            Edge::Data(producer, 0) if variables.contains_key(producer) => {
                variables.get(producer).cloned()
            }
            _ => shapes(input),
        };
        if known(&node)
            && is_on(&node, device_type)
            && !(means.one_node && stays(&node))
            && let Ok(replacement) = replacement(&node, means.own_ops, &mut names, &shape)
        {
            graph.nodes.extend(replacement);
        } else {
            graph.nodes.push(node);
        }
    }
}

/// Whether a node has to be one step for others, and can't be as several nodes.
fn stays(node: &NodeDef) -> bool {
    // Sums that the scatters add are one step as they are, locked or not.
    let is_locked = attr(node, "use_locking") == Some(Attr::Bool(true));
    // The kernel assigns by way of the op that adds, which TensorFlow has for numbers only.
    let is_bool = attr(node, "T") == Some(Attr::Type(DataType::BOOL));
    !is_bool && (table::is_one_step(&node.op) || (node.op.contains("Apply") && is_locked))
}

/// The declared shapes of the variables that nodes hand out.
fn variable_shapes(graph: &GraphDef) -> HashMap<String, Vec<i64>> {
    let shape = |node: &NodeDef| match node.op.as_str() {
        "VarHandleOp" => match attr(node, "shape") {
            Some(Attr::Shape(shape)) => shape,
            _ => None,
        },
        _ => match attr(node, "_handle_shapes") {
            Some(Attr::List(list)) => list.shapes.into_iter().next()?,
            _ => None,
        },
    };
    let nodes = graph.nodes.iter();
    nodes
        .filter_map(|node| Some((node.name.clone(), shape(node)?)))
        .collect()
}

/// Whether the shapes of a step's inputs are all known and fit each other.
fn fits(row: &VariableOp, node: &NodeDef, shapes: &Shapes<'_>) -> bool {
    let shape = |input: &String| {
        let dims = shapes(input)?;
        let dims = dims.iter().map(|&dim| usize::try_from(dim).ok());
        dims.collect::<Option<Vec<_>>>()
    };
    let shapes: Option<Vec<_>> = data_inputs(node).map(shape).collect();
    shapes.is_some_and(|shapes| shapes_fit(row, &shapes).is_ok())
}

/// The nodes that do what `node` does. One of them has its name.
fn replacement(
    node: &NodeDef,
    own_ops: bool,
    names: &mut Names,
    shapes: &Shapes<'_>,
) -> Result<Vec<NodeDef>> {
    let (row, types) = describe(&node.op, |name| attr(node, name))?;
    let mut nodes = Nodes {
        replaced: node,
        own_ops,
        names,
        nodes: Vec::new(),
        effects: Vec::new(),
        output: None,
        fits: None,
    };
    if row.is_step() && !fits(row, node, shapes) {
        nodes.check_step(row, types)?;
    }
    lower(row, types, &mut nodes)?;
    nodes.finish()
}

/// The nodes of a replacement.
struct Nodes<'a> {
    replaced: &'a NodeDef,
    own_ops: bool,
    names: &'a mut Names,
    nodes: Vec<NodeDef>,
    /// Places of the nodes that change variables.
    effects: Vec<usize>,
    /// Place of the node with the output.
    output: Option<usize>,
    /// The node that refuses inputs that do not fit. What changes a variable waits for it.
    fits: Option<String>,
}

impl Nodes<'_> {
    fn add(&mut self, op: &str, inputs: Vec<String>, attrs: &[(&'static str, Attr)]) -> Result<()> {
        let is_served = tfp_adapter::serves(op, attrs) && (self.own_ops || !op.starts_with("Tfp"));
        if !is_served && !EVERYWHERE.contains(&op) {
            return Err(Error::internal(format!("no kernel for {op}")));
        }
        let mut node = NodeDef {
            name: self
                .names
                .fresh(&format!("{}/tfp/{op}", self.replaced.name)),
            op: op.to_owned(),
            inputs,
            device: self.replaced.device.clone(),
            ..NodeDef::default()
        };
        for (name, value) in attrs {
            node.set_attr(name, value);
        }
        // What reads or changes a variable waits for what the replaced node waited for.
        if op.ends_with("VariableOp") || op == "VariableShape" {
            node.inputs.extend(control_inputs(self.replaced).cloned());
        }
        self.nodes.push(node);
        Ok(())
    }

    /// Adds the node that refuses inputs that do not fit.
    fn check_step(&mut self, row: &VariableOp, types: Types) -> Result<()> {
        if !self.own_ops {
            return Err(Error::internal(format!("TensorFlow has no {STEP_FITS}")));
        }
        let (mut variables, mut values) = (Vec::new(), Vec::new());
        let mut value_types = Vec::new();
        for (place, name) in row.inputs.iter().enumerate() {
            let input = self.input(place)?;
            if name.starts_with('&') {
                let attrs = [("out_type", Attr::Type(DataType::INT64))];
                self.add("VariableShape", vec![input], &attrs)?;
                variables.push(self.last());
                continue;
            }
            values.push(input);
            value_types.push(match *name {
                "indices" => types.indices.unwrap_or(DataType::INT32),
                "global_step" => DataType::INT64,
                _ => types.variable,
            });
        }
        let mut node = NodeDef {
            name: self
                .names
                .fresh(&format!("{}/tfp/{STEP_FITS}", self.replaced.name)),
            op: STEP_FITS.to_owned(),
            device: self.replaced.device.clone(),
            ..NodeDef::default()
        };
        let count = i64::try_from(variables.len()).unwrap_or(0);
        node.set_attr(VARIABLES, &Attr::Int(count));
        node.set_attr(
            TYPES,
            &Attr::List(AttrList {
                types: value_types,
                ..AttrList::default()
            }),
        );
        node.set_attr(STEP, &Attr::String(row.op.as_bytes().to_vec()));
        node.inputs.extend(variables);
        node.inputs.extend(values);
        self.fits = Some(node.name.clone());
        self.nodes.push(node);
        Ok(())
    }

    /// Gives the replaced node's name to the one that ends the replacement.
    fn finish(mut self) -> Result<Vec<NodeDef>> {
        let last = match (self.output, self.effects.pop()) {
            (Some(place), _) | (None, Some(place)) => place,
            (None, None) => return Err(Error::internal("the replacement does nothing")),
        };
        let waits: Vec<String> = self
            .effects
            .iter()
            .map(|&place| format!("^{}", self.nodes[place].name))
            .collect();
        let node = &mut self.nodes[last];
        node.name.clone_from(&self.replaced.name);
        node.inputs.extend(waits);
        Ok(self.nodes)
    }
}

impl Emit for Nodes<'_> {
    type Value = String;

    fn input(&mut self, index: usize) -> Result<String> {
        let found = data_inputs(self.replaced).nth(index).cloned();
        found.ok_or_else(|| Error::internal(format!("there is no input {index}")))
    }

    fn scalar(&mut self, data_type: DataType, bytes: &[u8]) -> Result<String> {
        // A node without inputs would be outside of the loop that the replaced one may be in.
        let first = self.input(0)?;
        let (Edge::Data(anchor, _) | Edge::Control(anchor)) = edge(&first);
        let mut tensor = Writer::new();
        tensor.int(1, data_type.number().into());
        tensor.bytes(2, &[]);
        tensor.bytes(4, bytes);
        let attrs = [
            ("dtype", Attr::Type(data_type)),
            ("value", Attr::Tensor(tensor.into_bytes())),
        ];
        self.add("Const", vec![format!("^{anchor}")], &attrs)?;
        Ok(self.last())
    }

    fn op(
        &mut self,
        op: &'static str,
        inputs: &[String],
        attrs: &[(&'static str, Attr)],
    ) -> Result<String> {
        self.add(op, inputs.to_vec(), attrs)?;
        Ok(self.last())
    }

    fn effect(
        &mut self,
        op: &'static str,
        inputs: &[String],
        attrs: &[(&'static str, Attr)],
    ) -> Result<()> {
        // A read is of the value before the change, also where the change does not follow from it.
        let reads: Vec<String> = self
            .nodes
            .iter()
            .filter(|node| node.op == "ReadVariableOp" && node.inputs.first() == inputs.first())
            .map(|node| format!("^{}", node.name))
            .collect();
        let fits = self.fits.iter().map(|name| format!("^{name}"));
        let waits: Vec<String> = reads.into_iter().chain(fits).collect();
        self.effects.push(self.nodes.len());
        self.add(op, inputs.to_vec(), attrs)?;
        if let Some(node) = self.nodes.last_mut() {
            if op == "AssignVariableOp" {
                node.set_attr("validate_shape", &Attr::Bool(true));
            }
            node.inputs.extend(waits);
        }
        Ok(())
    }

    fn output(&mut self, value: &String) -> Result<()> {
        self.output = self.nodes.iter().position(|node| node.name == *value);
        match self.output {
            Some(_) => Ok(()),
            None => Err(Error::internal("the output is no value of the replacement")),
        }
    }
}

impl Nodes<'_> {
    fn last(&self) -> String {
        self.nodes
            .last()
            .map_or_else(String::new, |node| node.name.clone())
    }
}

#[cfg(test)]
mod tests;
