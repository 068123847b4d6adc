//! Hands truth values that decide about loops and branches from the device to the host, and those
//! that the host has to the ops that combine them, without the copies of TensorFlow's.

use std::collections::HashMap;

use tfp_bindings::DataType;
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use super::view::{Edge, Names, attr, edge, is_on};
use crate::moves::{TO_DEVICE, TO_HOST};

/// Where a kernel of this device type leaves or wants a truth value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Memory {
    Device,
    Host,
}

const COMPARISONS: &[&str] = &[
    "Equal",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "NotEqual",
];
const COMBINATIONS: &[&str] = &["LogicalAnd", "LogicalNot", "LogicalOr"];
const REDUCTIONS: &[&str] = &["All", "Any"];
const PASSES: &[&str] = &["Identity", "Merge"];

/// Where a node leaves its first output, if that is a truth value and the place is known.
fn left(node: &NodeDef) -> Option<Memory> {
    let op = node.op.as_str();
    if COMPARISONS.contains(&op) {
        // TensorFlow's own kernels compare these, in the host's memory on every device.
        let is_int = attr(node, "T") == Some(Attr::Type(DataType::INT32));
        return Some(if is_int { Memory::Host } else { Memory::Device });
    }
    // TensorFlow's kernels for every device pass truth values on in the device's memory.
    let is_truth = || attr(node, "T") == Some(Attr::Type(DataType::BOOL));
    let passed = PASSES.contains(&op) && is_truth();
    let ours = COMBINATIONS.contains(&op) || REDUCTIONS.contains(&op);
    (passed || ours).then_some(Memory::Device)
}

/// Where a node wants an input, if that is a truth value and the place is known.
fn wanted(node: &NodeDef, input: usize) -> Option<Memory> {
    match (node.op.as_str(), input) {
        ("Switch", 1) | ("LoopCond", 0) => Some(Memory::Host),
        (op, _) if COMBINATIONS.contains(&op) => Some(Memory::Device),
        _ => None,
    }
}

/// Adds a node on each edge between devices of this type that leads from one memory to the other.
pub fn bridge(graph: &mut GraphDef, device_type: &str) {
    let wants =
        |node: &NodeDef| is_on(node, device_type) && wanted(node, 0).or(wanted(node, 1)).is_some();
    if !graph.nodes.iter().any(wants) {
        return;
    }
    let known = graph.nodes.iter().filter(|node| is_on(node, device_type));
    let sources: HashMap<String, (Memory, String)> = known
        .filter_map(|node| Some((node.name.clone(), (left(node)?, node.device.clone()))))
        .collect();
    let mut names = Names::new(graph);
    let mut added: HashMap<String, NodeDef> = HashMap::new();
    for node in &mut graph.nodes {
        if !is_on(node, device_type) {
            continue;
        }
        for place in 0..node.inputs.len() {
            let Some(to) = wanted(node, place) else {
                continue;
            };
            let Edge::Data(name, 0) = edge(&node.inputs[place]) else {
                continue;
            };
            let Some((from, device)) = sources.get(name) else {
                continue;
            };
            if *from == to || *device != node.device {
                continue;
            }
            let bridge = added.entry(name.to_owned()).or_insert_with(|| {
                let (op, suffix) = match to {
                    Memory::Host => (TO_HOST, "to_host"),
                    Memory::Device => (TO_DEVICE, "to_device"),
                };
                let mut bridge = NodeDef {
                    name: names.fresh(&format!("{name}/{suffix}")),
                    op: op.to_owned(),
                    inputs: vec![name.to_owned()],
                    device: device.clone(),
                    ..NodeDef::default()
                };
                bridge.set_attr("T", &Attr::Type(DataType::BOOL));
                bridge
            });
            node.inputs[place].clone_from(&bridge.name);
        }
    }
    let mut added: Vec<_> = added.into_values().collect();
    added.sort_by(|a, b| a.name.cmp(&b.name));
    graph.nodes.extend(added);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::{node, shown};

    fn bridged(nodes: Vec<NodeDef>) -> Vec<String> {
        let mut graph = GraphDef {
            nodes,
            other: Vec::new(),
        };
        bridge(&mut graph, "TFP");
        graph.nodes.iter().map(shown).collect()
    }

    fn count(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
        let mut node = node(name, op, inputs);
        node.set_attr("T", &Attr::Type(DataType::INT32));
        node
    }

    #[test]
    fn a_value_of_the_device_decides_on_the_host() {
        let nodes = vec![
            node("p", "Greater", &["x", "y"]),
            node("a", "Switch", &["x", "p"]),
            node("b", "Switch", &["y", "p:0"]),
            node("c", "SelectV2", &["p", "x", "y"]),
        ];
        let expected = [
            "p = Greater(x y)",
            "a = Switch(x p/to_host)",
            "b = Switch(y p/to_host)",
            "c = SelectV2(p x y)",
            "p/to_host = TfpToHost(p)",
        ];
        assert_eq!(bridged(nodes), expected);
    }

    #[test]
    fn counts_of_the_host_are_combined_on_the_device() {
        let nodes = vec![
            count("i", "Less", &["step", "steps"]),
            count("j", "Less", &["item", "items"]),
            node("both", "LogicalAnd", &["i", "j"]),
            node("loop", "LoopCond", &["both"]),
        ];
        let expected = [
            "i = Less(step steps)",
            "j = Less(item items)",
            "both = LogicalAnd(i/to_device j/to_device)",
            "loop = LoopCond(both/to_host)",
            "both/to_host = TfpToHost(both)",
            "i/to_device = TfpToDevice(i)",
            "j/to_device = TfpToDevice(j)",
        ];
        assert_eq!(bridged(nodes), expected);
    }

    #[test]
    fn what_a_branch_gives_decides_about_the_next() {
        let mut merged = node("m", "Merge", &["a", "b"]);
        merged.set_attr("T", &Attr::Type(DataType::BOOL));
        let other = node("n", "Merge", &["c", "d"]);
        let nodes = vec![
            merged,
            other,
            node("s", "Switch", &["x", "m"]),
            node("t", "Switch", &["x", "m:1"]),
            node("u", "Switch", &["x", "n"]),
        ];
        let found = bridged(nodes);
        assert_eq!(
            found[2..5],
            [
                "s = Switch(x m/to_host)",
                "t = Switch(x m:1)",
                "u = Switch(x n)"
            ]
        );
        assert_eq!(found.len(), 6);
    }

    #[test]
    fn what_is_where_it_is_wanted_or_elsewhere_stays() {
        let nodes = vec![
            count("i", "Less", &["step", "steps"]),
            node("loop", "LoopCond", &["i"]),
            node("r", "ReadVariableOp", &["v"]),
            node("s", "Switch", &["x", "r"]),
        ];
        assert_eq!(bridged(nodes).len(), 4);
        let mut nodes = vec![
            node("p", "Greater", &["x", "y"]),
            node("a", "Switch", &["x", "p"]),
        ];
        nodes[0].device = "/device:CPU:0".into();
        assert_eq!(bridged(nodes.clone()).len(), 2);
        nodes[0].device = "/device:TFP:1".into();
        assert_eq!(bridged(nodes).len(), 2);
    }
}
