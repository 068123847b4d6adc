//! Makes one node of several that compute the same.

use std::collections::{HashMap, HashSet};

use tfp_bindings::proto::graph::{GraphDef, NodeDef};
use tfp_kernels::ops::elementwise::expression::operation;

use super::fuse::drop_nodes;
use super::view::{Edge, control_inputs, data_inputs, edge, is_on};

/// Merges equal nodes on devices of this type: ops on elements, and reads of a variable that nothing
/// comes between. Those in `preserved` stay, though nobody uses a function's read of its argument
/// any more: TensorFlow names all of them, and fetches none.
///
/// TensorFlow merges equal ops, too, but takes no two reads of a variable to be equal, and so
/// nothing that follows from them: an optimizer computes its rate for every variable anew.
pub fn merge(graph: &mut GraphDef, device_type: &str, preserved: &HashSet<String>) {
    let arguments: HashSet<String> = graph
        .nodes
        .iter()
        .filter(|node| node.op == "_Arg")
        .map(|node| node.name.clone())
        .collect();
    let stays = |node: &NodeDef| preserved.contains(&node.name);
    let may_lose_users = |node: &NodeDef| {
        let variable = data_inputs(node).next();
        let of_argument = variable.is_some_and(|variable| arguments.contains(variable));
        !stays(node) || (node.op == READ && of_argument)
    };
    // What was merged may make those after it equal.
    while merge_once(graph, device_type, &stays, &may_lose_users) {}
}

/// Returns whether anything has changed.
fn merge_once(
    graph: &mut GraphDef,
    device_type: &str,
    stays: &dyn Fn(&NodeDef) -> bool,
    may_lose_users: &dyn Fn(&NodeDef) -> bool,
) -> bool {
    let mut first: HashMap<Key, usize> = HashMap::new();
    let mut same: HashMap<String, String> = HashMap::new();
    let mut gone = HashSet::new();
    for (place, node) in graph.nodes.iter().enumerate() {
        if !is_on(node, device_type) || !is_repeatable(&node.op) || !may_lose_users(node) {
            continue;
        }
        let kept = *first.entry(key(node)).or_insert(place);
        if kept != place {
            same.insert(node.name.clone(), graph.nodes[kept].name.clone());
            if !stays(node) {
                gone.insert(place);
            }
        }
    }
    let mut changed = !gone.is_empty();
    for node in &mut graph.nodes {
        changed |= rename_inputs(node, |name| same.get(name).cloned());
    }
    drop_nodes(graph, &gone);
    changed
}

const READ: &str = "ReadVariableOp";

/// Whether it makes no difference how often a node of this op runs.
fn is_repeatable(op: &str) -> bool {
    op == READ || operation(op).is_some()
}

/// What equal nodes share: op, device, inputs and attributes.
type Key = (String, String, Vec<String>, Vec<(String, Vec<u8>)>);

fn key(node: &NodeDef) -> Key {
    let mut inputs: Vec<String> = data_inputs(node).cloned().collect();
    let mut waits: Vec<String> = control_inputs(node).cloned().collect();
    waits.sort();
    inputs.extend(waits);
    // Attributes with an underscore in front are notes of TensorFlow's, such as names of layers.
    let mut attrs: Vec<_> = node
        .attrs
        .iter()
        .filter(|(name, _)| !name.starts_with('_'))
        .cloned()
        .collect();
    attrs.sort();
    (node.op.clone(), node.device.clone(), inputs, attrs)
}

/// Lets the inputs of a node name others; a control input comes once. Returns whether one did.
pub fn rename_inputs(node: &mut NodeDef, new_name: impl Fn(&str) -> Option<String>) -> bool {
    let mut changed = false;
    for input in &mut node.inputs {
        let renamed = match edge(input) {
            Edge::Data(name, 0) => new_name(name),
            Edge::Data(name, output) => new_name(name).map(|name| format!("{name}:{output}")),
            Edge::Control(name) => new_name(name).map(|name| format!("^{name}")),
        };
        if let Some(renamed) = renamed {
            *input = renamed;
            changed = true;
        }
    }
    if changed {
        let mut seen = HashSet::new();
        node.inputs
            .retain(|input| !input.starts_with('^') || seen.insert(input.clone()));
    }
    changed
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::{node, shown};

    fn merged(nodes: Vec<NodeDef>, preserved: &[&str]) -> Vec<String> {
        let mut graph = GraphDef {
            nodes,
            other: Vec::new(),
        };
        let preserved = preserved.iter().map(|&name| name.to_owned()).collect();
        merge(&mut graph, "TFP", &preserved);
        graph.nodes.iter().map(shown).collect()
    }

    fn rates() -> Vec<NodeDef> {
        vec![
            node("r1", "ReadVariableOp", &["step"]),
            node("r2", "ReadVariableOp", &["step"]),
            node("c1", "Cast", &["r1"]),
            node("c2", "Cast", &["r2"]),
            node("p1", "Pow", &["beta", "c1"]),
            node("p2", "Pow", &["beta", "c2"]),
            node("u1", "Sub", &["p1", "x"]),
            node("u2", "Sub", &["p2", "y"]),
            node("set", "AssignVariableOp", &["step", "z", "^r1", "^r2"]),
        ]
    }

    #[test]
    fn what_follows_from_equal_reads_is_computed_once() {
        assert_eq!(
            merged(rates(), &[]),
            [
                "r1 = ReadVariableOp(step)",
                "c1 = Cast(r1)",
                "p1 = Pow(beta c1)",
                "u1 = Sub(p1 x)",
                "u2 = Sub(p1 y)",
                "set = AssignVariableOp(step z ^r1)",
            ]
        );
    }

    #[test]
    fn what_differs_or_is_seen_stays() {
        let mut late = rates();
        late[1].inputs.push("^set".into());
        late[8].inputs.pop();
        assert_eq!(merged(late, &[]).len(), 9);
        assert_eq!(merged(rates(), &["c2"]).len(), 8);
        // A session fetches what it preserves; a function has its results elsewhere.
        assert_eq!(merged(rates(), &["r1", "r2"]).len(), 9);
        let mut function = rates();
        function.push(node("step", "_Arg", &[]));
        let found = merged(function, &["r1", "r2"]);
        assert_eq!(found.len(), 8);
        assert!(found.contains(&"r2 = ReadVariableOp(step)".to_owned()));
        assert!(found.contains(&"set = AssignVariableOp(step z ^r1)".to_owned()));
        let mut other = rates();
        other[1].device = "/device:CPU:0".into();
        assert_eq!(merged(other, &[]).len(), 9);
        let random = vec![
            node("a", "RandomUniform", &["shape"]),
            node("b", "RandomUniform", &["shape"]),
        ];
        assert_eq!(merged(random, &[]).len(), 2);
    }
}
