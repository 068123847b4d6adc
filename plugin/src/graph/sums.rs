//! Makes sums of what TensorFlow's memory pass left of them.
//!
//! Where a graph needs much memory, that pass replaces a sum of many tensors by a variable of the
//! first kind, which TensorFlow's C interface offers no kernel for. A plug-in may turn the pass off,
//! but TensorFlow then prints a table of all its passes for every function that it optimizes.

use std::collections::{HashMap, HashSet};

use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use super::fuse::drop_nodes;
use super::view::{attr, control_inputs, data_inputs, is_on};

const LAST: &str = "DestroyTemporaryVariable";

/// Restores the sums on devices of this type. The last node of such a chain has the sum's name, and
/// the names of the others begin with that.
pub fn restore(graph: &mut GraphDef, device_type: &str) {
    let is_last = |node: &NodeDef| node.op == LAST && is_on(node, device_type);
    if !graph.nodes.iter().any(is_last) {
        return;
    }
    let named = graph.nodes.iter().enumerate();
    let places = named
        .map(|(place, node)| (node.name.clone(), place))
        .collect();
    let mut gone = HashSet::new();
    for place in 0..graph.nodes.len() {
        if !is_last(&graph.nodes[place]) {
            continue;
        }
        if let Some((sum, parts)) = sum(graph, &places, place) {
            graph.nodes[place] = sum;
            gone.extend(parts);
        }
    }
    drop_nodes(graph, &gone);
}

/// The sum that the chain which ends at `place` computes, and the places of its other nodes.
fn sum(
    graph: &GraphDef,
    places: &HashMap<String, usize>,
    place: usize,
) -> Option<(NodeDef, Vec<usize>)> {
    let last = &graph.nodes[place];
    let part = |suffix: &str, op: &str| {
        let place = *places.get(&format!("{}/tmp_var{suffix}", last.name))?;
        (op.is_empty() || graph.nodes[place].op == op).then_some(place)
    };
    let variable = part("", "TemporaryVariable")?;
    let first = part("_initializer", "Assign")?;
    // Constant folding may have made another op of it.
    let zeros = part("_zeros", "")?;
    let mut parts = vec![variable, zeros, first];
    let mut values = Vec::new();
    while let Some(addition) = part(&format!("_accum_{}", values.len()), "AssignAdd") {
        values.push(data_inputs(&graph.nodes[addition]).nth(1)?.clone());
        parts.push(addition);
    }
    let count = i64::try_from(values.len())
        .ok()
        .filter(|&count| count > 0)?;
    let names: HashSet<_> = parts
        .iter()
        .map(|&part| graph.nodes[part].name.as_str())
        .collect();
    let mut sum = last.clone();
    sum.op = "AddN".to_owned();
    sum.attrs.retain(|(name, _)| name != "var_name");
    sum.set_attr("T", &attr(last, "T")?);
    sum.set_attr("N", &Attr::Int(count));
    let of_all = parts.iter().chain([&place]);
    let mut waits: Vec<_> = of_all
        .flat_map(|&part| control_inputs(&graph.nodes[part]))
        .filter(|wait| !names.contains(&wait[1..]) && !values.contains(&wait[1..].to_owned()))
        .cloned()
        .collect();
    waits.sort();
    waits.dedup();
    sum.inputs = values.into_iter().chain(waits).collect();
    Some((sum, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::{node, shown};
    use tfp_bindings::DataType;

    fn chain() -> Vec<NodeDef> {
        let mut nodes = vec![
            node("a", "Sin", &["x"]),
            node("s/tmp_var", "TemporaryVariable", &["^before", "^a"]),
            node("s/tmp_var_zeros", "Const", &["^a"]),
            node(
                "s/tmp_var_initializer",
                "Assign",
                &["s/tmp_var", "s/tmp_var_zeros"],
            ),
        ];
        for (place, value) in ["a", "b:1", "c"].into_iter().enumerate() {
            let inputs = ["s/tmp_var_initializer", value];
            nodes.push(node(
                &format!("s/tmp_var_accum_{place}"),
                "AssignAdd",
                &inputs,
            ));
        }
        nodes.push(node(
            "s",
            LAST,
            &[
                "s/tmp_var_initializer",
                "^s/tmp_var_accum_0",
                "^s/tmp_var_accum_1",
                "^s/tmp_var_accum_2",
                "^after",
            ],
        ));
        nodes.push(node("end", "Neg", &["s"]));
        nodes
    }

    fn restored(nodes: Vec<NodeDef>) -> GraphDef {
        let mut graph = GraphDef {
            nodes,
            other: Vec::new(),
        };
        restore(&mut graph, "TFP");
        graph
    }

    #[test]
    fn a_variable_that_sums_up_is_a_sum_again() {
        let graph = restored(chain());
        let lines: Vec<_> = graph.nodes.iter().map(shown).collect();
        let sum = "s = AddN(a b:1 c ^after ^before)";
        assert_eq!(lines, ["a = Sin(x)", sum, "end = Neg(s)"]);
        assert_eq!(attr(&graph.nodes[1], "N"), Some(Attr::Int(3)));
        assert_eq!(
            attr(&graph.nodes[1], "T"),
            Some(Attr::Type(DataType::FLOAT))
        );
    }

    #[test]
    fn other_variables_and_devices_stay() {
        let mut other = chain();
        other[3].op = "AssignSub".into();
        assert_eq!(restored(other.clone()).nodes, other);
        let mut elsewhere = chain();
        elsewhere[7].device = "/device:CPU:0".into();
        assert_eq!(restored(elsewhere.clone()).nodes, elsewhere);
    }
}
