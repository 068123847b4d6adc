//! Hands what a function writes to a variable to those who read it afterwards, so that the value and
//! what follows from it can be one expression; and makes the update of a moving average an
//! expression, too.
//!
//! A moving average's update, `m += (x - m) * c`, is a read and an addition, between which others
//! may change the variable. It becomes a read and an assignment: of two threads that update one
//! average at the same time, one update may be lost.

use std::collections::{HashMap, HashSet};

use tfp_bindings::DataType;
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use super::expression::is_step;
use super::fuse::drop_nodes;
use super::norm::Shapes;
use super::view::{Names, View, attr, control_inputs, data_inputs, is_on};

/// The op that sets a variable.
pub const ASSIGN: &str = "AssignVariableOp";

/// Rewrites functions; the nodes in `preserved` stay, though nobody may use them any more. Returns
/// the shapes of the nodes that are added.
pub fn forward(
    graph: &mut GraphDef,
    device_type: &str,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) -> HashMap<String, Vec<i64>> {
    let mut added = HashMap::new();
    let is_update = |node: &NodeDef| sum_of(&node.op).is_some() || node.op == ASSIGN;
    if !graph.nodes.iter().any(is_update) {
        return added;
    }
    let Some(view) = View::new(graph) else {
        return added;
    };
    let mut names = Names::new(graph);
    let mut gone = HashSet::new();
    for place in 0..view.len() {
        if !is_update(&graph.nodes[place]) || !is_on(&graph.nodes[place], device_type) {
            continue;
        }
        let Some(readers) = readers(graph, &view, place) else {
            continue;
        };
        let Some(value) = value(graph, &view, place, &readers, shapes, &mut names) else {
            continue;
        };
        if let Some((node, shape)) = value.added {
            added.insert(node.name.clone(), shape);
            set(&mut graph.nodes[place], &node.name);
            graph.nodes.push(node);
        }
        let after = format!("^{}", graph.nodes[place].name);
        for reader in readers {
            let node = &graph.nodes[reader];
            if !node.inputs.contains(&after) {
                continue;
            }
            let read = node.name.clone();
            let value = (&*read, &*value.name);
            hand_over(graph, &view, reader, value, &after, preserved);
            let mut users = view.users(reader).iter();
            if !preserved.contains(&read) && users.all(|(_, output)| output.is_some()) {
                gone.insert(reader);
            }
        }
    }
    drop_nodes(graph, &gone);
    added
}

/// The op that computes what an op on variables leaves there.
pub fn sum_of(op: &str) -> Option<&'static str> {
    match op {
        "AssignAddVariableOp" => Some("AddV2"),
        "AssignSubVariableOp" => Some("Sub"),
        _ => None,
    }
}

fn is_float_variable(node: &NodeDef) -> bool {
    attr(node, "dtype") == Some(Attr::Type(DataType::FLOAT))
}

/// The places of all reads of the variable that the node at `place` changes, if that is an argument
/// of the function that nothing else uses.
fn readers(graph: &GraphDef, view: &View, place: usize) -> Option<Vec<usize>> {
    let node = &graph.nodes[place];
    let argument = view.producer(data_inputs(node).next()?)?;
    if graph.nodes[argument].op != "_Arg" || !is_float_variable(node) {
        return None;
    }
    let mut readers = Vec::new();
    for &(user, output) in view.users(argument) {
        let other = &graph.nodes[user];
        if user == place {
            continue;
        }
        let reads = other.op == "ReadVariableOp"
            && output == Some(0)
            && is_float_variable(other)
            && other.device == node.device;
        if !reads {
            return None;
        }
        readers.push(user);
    }
    Some(readers)
}

/// What a variable holds after an update.
struct Written {
    name: String,
    /// The node that has to compute it, and its shape.
    added: Option<(NodeDef, Vec<i64>)>,
}

/// The value that the node at `place` leaves in its variable, if an expression can make it.
fn value(
    graph: &GraphDef,
    view: &View,
    place: usize,
    readers: &[usize],
    shapes: &Shapes<'_>,
    names: &mut Names,
) -> Option<Written> {
    let node = &graph.nodes[place];
    let operand = data_inputs(node).nth(1)?;
    let last = &graph.nodes[view.producer(operand)?];
    if !is_step(last) || last.device != node.device {
        return None;
    }
    let Some(sum) = sum_of(&node.op) else {
        return Some(Written {
            name: operand.clone(),
            added: None,
        });
    };
    // The update of a moving average: a product one of whose factors is a difference from the
    // variable's value.
    let read = (last.op == "Mul").then(|| {
        data_inputs(last)
            .filter_map(|factor| view.producer(factor))
            .map(|factor| &graph.nodes[factor])
            .filter(|factor| factor.op == "Sub")
            .flat_map(data_inputs)
            .find(|term| {
                view.producer(term).is_some_and(|term| {
                    let waits = control_inputs(&graph.nodes[term]);
                    readers.contains(&term) && waits.count() == 0
                })
            })
    })??;
    let shape = shapes(operand).filter(|shape| !shape.contains(&-1))?;
    if shapes(read)? != shape {
        return None;
    }
    let mut added = NodeDef {
        name: names.fresh(&format!("{}/tfp/{sum}", node.name)),
        op: sum.to_owned(),
        inputs: vec![read.clone(), operand.clone()],
        device: node.device.clone(),
        ..NodeDef::default()
    };
    added.set_attr("T", &Attr::Type(DataType::FLOAT));
    Some(Written {
        name: added.name.clone(),
        added: Some((added, shape)),
    })
}

/// Makes an update an assignment of `value`.
pub fn set(node: &mut NodeDef, value: &str) {
    node.op = ASSIGN.to_owned();
    if let Some(operand) = node.inputs.get_mut(1) {
        *operand = value.to_owned();
    }
    node.attrs.clear();
    node.set_attr("dtype", &Attr::Type(DataType::FLOAT));
    // The sum refuses a value of another shape, too, and what is known of shapes here rests on that.
    node.set_attr("validate_shape", &Attr::Bool(true));
}

/// Gives the users of the read at `reader` the value itself. What comes after them still comes after
/// the assignment; ops that can be part of an expression with the value do not wait for it.
fn hand_over(
    graph: &mut GraphDef,
    view: &View,
    reader: usize,
    (read, value): (&str, &str),
    after: &str,
    preserved: &HashSet<String>,
) {
    let mut seen = HashSet::new();
    let mut ready = vec![reader];
    while let Some(place) = ready.pop() {
        for &(user, output) in view.users(place) {
            if place == reader && output.is_none() {
                continue;
            }
            let node = &mut graph.nodes[user];
            if place == reader {
                for input in &mut node.inputs {
                    if input.strip_suffix(":0").unwrap_or(input) == read {
                        *input = value.to_owned();
                    }
                }
            }
            if !seen.insert(user) {
                continue;
            }
            if is_step(node) && !preserved.contains(&node.name) {
                ready.push(user);
            } else if !node.inputs.iter().any(|input| input == after) {
                node.inputs.push(after.to_owned());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::{node as plain, shown};

    fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
        let mut node = plain(name, op, inputs);
        if op.ends_with("VariableOp") {
            node.set_attr("dtype", &Attr::Type(DataType::FLOAT));
        }
        node
    }

    /// `m += (g - m) * c; var -= sqrt(m)`
    fn step() -> Vec<NodeDef> {
        vec![
            node("m", "_Arg", &[]),
            node("var", "_Arg", &[]),
            node("old", "ReadVariableOp", &["m"]),
            node("difference", "Sub", &["g", "old"]),
            node("change", "Mul", &["difference", "c"]),
            node("update", "AssignAddVariableOp", &["m", "change", "^before"]),
            node("new", "ReadVariableOp", &["m", "^update"]),
            node("root", "Sqrt", &["new"]),
            node("end", "AssignSubVariableOp", &["var", "root"]),
        ]
    }

    fn forwarded(nodes: Vec<NodeDef>, preserved: &[&str]) -> Vec<String> {
        let mut graph = GraphDef {
            nodes,
            other: Vec::new(),
        };
        let preserved = preserved.iter().map(|&name| name.to_owned()).collect();
        forward(&mut graph, "TFP", &preserved, &|input| match input {
            "unknown" => Some(vec![-1]),
            "row" => Some(vec![3]),
            _ => Some(vec![2, 3]),
        });
        graph.nodes.iter().skip(2).map(shown).collect()
    }

    #[test]
    fn a_moving_average_is_assigned_and_handed_over() {
        assert_eq!(
            forwarded(step(), &[]),
            [
                "old = ReadVariableOp(m)",
                "difference = Sub(g old)",
                "change = Mul(difference c)",
                "update = AssignVariableOp(m update/tfp/AddV2 ^before)",
                "root = Sqrt(update/tfp/AddV2)",
                "end = AssignSubVariableOp(var root ^update)",
                "update/tfp/AddV2 = AddV2(old change)",
            ]
        );
    }

    #[test]
    fn what_is_assigned_is_handed_over() {
        let mut set = step();
        set[5].op = ASSIGN.into();
        let found = forwarded(set, &[]);
        assert_eq!(found[3], "update = AssignVariableOp(m change ^before)");
        assert_eq!(found[4], "root = Sqrt(change)");
        assert_eq!(found.len(), 6);
    }

    #[test]
    fn who_waits_for_a_read_still_waits_for_the_assignment() {
        let mut nodes = step();
        nodes.push(node("other", "MatMul", &["new", "new"]));
        nodes.push(node("late", "NoOp", &["^root"]));
        nodes.push(node("later", "NoOp", &["^new"]));
        let found = forwarded(nodes, &[]);
        assert!(found.contains(&"new = ReadVariableOp(m ^update)".to_owned()));
        assert!(found.contains(&"later = NoOp(^new)".to_owned()));
        assert!(found.contains(&"late = NoOp(^root ^update)".to_owned()));
        let product = "other = MatMul(update/tfp/AddV2 update/tfp/AddV2 ^update)";
        assert!(found.contains(&product.to_owned()));
        // TensorFlow preserves all reads of a function.
        let found = forwarded(step(), &["old", "new"]);
        assert!(found.contains(&"new = ReadVariableOp(m ^update)".to_owned()));
        assert!(found.contains(&"root = Sqrt(update/tfp/AddV2)".to_owned()));
        // A value that is fetched is no part of an expression.
        let found = forwarded(step(), &["root"]);
        assert!(found.contains(&"root = Sqrt(update/tfp/AddV2 ^update)".to_owned()));
    }

    #[test]
    fn other_updates_stay() {
        let stays = |change: &dyn Fn(&mut Vec<NodeDef>)| {
            let mut nodes = step();
            change(&mut nodes);
            let found = forwarded(nodes, &[]);
            let update = found.iter().find(|line| line.starts_with("update = "));
            update.unwrap().contains("AssignAddVariableOp(m change")
        };
        assert!(!stays(&|_| ()));
        // A second change of the variable, by whatever op.
        assert!(stays(&|nodes| nodes.push(node(
            "w",
            "AssignAddVariableOp",
            &["m", "x"]
        ))));
        assert!(stays(&|nodes| nodes.push(node(
            "w",
            "PartitionedCall",
            &["m"]
        ))));
        // A variable that is no argument, as inside of a loop.
        assert!(stays(&|nodes| nodes[0].op = "Enter".into()));
        // What is no moving average is one step for others, and stays it.
        assert!(stays(&|nodes| nodes[4].op = "AddV2".into()));
        assert!(stays(&|nodes| nodes[3].inputs[1] = "x".into()));
        // A read that waits for something may not be the value that the sum begins with.
        assert!(stays(&|nodes| nodes[2].inputs.push("^x".into())));
        // Types and devices.
        assert!(stays(
            &|nodes| nodes[4].set_attr("T", &Attr::Type(DataType::HALF))
        ));
        assert!(stays(&|nodes| nodes[2].device = "/device:CPU:0".into()));
        assert!(stays(&|nodes| nodes[5].device = "/device:CPU:0".into()));
    }
}
