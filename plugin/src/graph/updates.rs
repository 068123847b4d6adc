//! Makes updates of variables the device's work: a read, a sum and an assignment, where TensorFlow would add in place on
//! the processor. That is for devices whose memory the processor reads slowly.
//!
//! Between the read and the assignment others may change the variable: of two threads that update it at the same time,
//! one update may be lost.

use std::collections::HashMap;

use tfp_bindings::DataType;
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use super::norm::Shapes;
use super::stores::{set, sum_of};
use super::view::{Names, attr, data_inputs, is_on};

/// Rewrites the updates of float32 variables. Adds the shapes of the new nodes to `added`.
pub fn assign(
    graph: &mut GraphDef,
    device_type: &str,
    shapes: &Shapes<'_>,
    added: &mut HashMap<String, Vec<i64>>,
) {
    let mut names = Names::new(graph);
    let mut nodes = Vec::new();
    for node in &mut graph.nodes {
        let Some(sum) = sum_of(&node.op) else {
            continue;
        };
        let is_float = attr(node, "dtype") == Some(Attr::Type(DataType::FLOAT));
        let inputs: Vec<String> = data_inputs(node).cloned().collect();
        let ([variable, change], true) = (&inputs[..], is_float) else {
            continue;
        };
        if !is_on(node, device_type) {
            continue;
        }
        let waits = node.inputs.iter().filter(|input| input.starts_with('^'));
        let read_inputs = [variable].into_iter().chain(waits).cloned().collect();
        let mut make = |op: &str, inputs: Vec<String>, typed: &str| {
            let mut made = NodeDef {
                name: names.fresh(&format!("{}/tfp/{op}", node.name)),
                op: op.to_owned(),
                inputs,
                device: node.device.clone(),
                ..NodeDef::default()
            };
            made.set_attr(typed, &Attr::Type(DataType::FLOAT));
            if let Some(shape) = shapes(change).filter(|shape| !shape.contains(&-1)) {
                added.insert(made.name.clone(), shape);
            }
            made
        };
        let read = make("ReadVariableOp", read_inputs, "dtype");
        let value = make(sum, vec![read.name.clone(), change.clone()], "T");
        set(node, &value.name);
        nodes.extend([read, value]);
    }
    graph.nodes.extend(nodes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::{node, shown};

    fn assigned(op: &str, dtype: DataType) -> (Vec<String>, Vec<String>) {
        let mut update = node("end", op, &["var", "change", "^before"]);
        update.set_attr("dtype", &Attr::Type(dtype));
        let mut graph = GraphDef {
            nodes: vec![node("var", "_Arg", &[]), update],
            other: Vec::new(),
        };
        let mut added = HashMap::new();
        assign(&mut graph, "TFP", &|_| Some(vec![2, 3]), &mut added);
        let mut names: Vec<_> = added.into_keys().collect();
        names.sort_unstable();
        (graph.nodes.iter().skip(1).map(shown).collect(), names)
    }

    #[test]
    fn an_update_is_read_summed_and_assigned() {
        let (nodes, names) = assigned("AssignSubVariableOp", DataType::FLOAT);
        assert_eq!(
            nodes,
            [
                "end = AssignVariableOp(var end/tfp/Sub ^before)",
                "end/tfp/ReadVariableOp = ReadVariableOp(var ^before)",
                "end/tfp/Sub = Sub(end/tfp/ReadVariableOp change)",
            ]
        );
        assert_eq!(names, ["end/tfp/ReadVariableOp", "end/tfp/Sub"]);
    }

    #[test]
    fn other_types_and_ops_stay() {
        let (nodes, names) = assigned("AssignSubVariableOp", DataType::DOUBLE);
        assert_eq!(nodes, ["end = AssignSubVariableOp(var change ^before)"]);
        assert!(names.is_empty());
        let (nodes, _) = assigned("AssignVariableOp", DataType::FLOAT);
        assert_eq!(nodes, ["end = AssignVariableOp(var change ^before)"]);
    }
}
