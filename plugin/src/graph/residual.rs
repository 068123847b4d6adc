//! Puts a sum with the result of a convolution, and its activation, into the convolution.

use std::collections::HashSet;

use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use super::fuse::{ACTIVATIONS, CONV, activate, activation_after, drop_nodes, float_of};
use super::norm::Shapes;
use super::view::{View, attr, control_inputs, data_inputs, is_on};

/// Fuses what nobody else sees; the nodes in `preserved` stay.
pub fn rewrite(
    graph: &mut GraphDef,
    device_type: &str,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) {
    if !graph.nodes.iter().any(|node| node.op == CONV) {
        return;
    }
    let Some(view) = View::new(graph) else {
        return;
    };
    let mut gone = HashSet::new();
    for sum in 0..graph.nodes.len() {
        let node = &graph.nodes[sum];
        let is_sum = matches!(&*node.op, "Add" | "AddN" | "AddV2") && float_of(node).is_some();
        if !is_sum || !is_on(node, device_type) {
            continue;
        }
        let Some((conv, residual)) = operands(graph, &view, sum, preserved, shapes) else {
            continue;
        };
        let activation = activation_after(graph, &view, sum, ACTIVATIONS, preserved);
        let last = activation.unwrap_or(sum);
        let Some(node) = with_residual(graph, [conv, sum, last], residual, activation) else {
            continue;
        };
        graph.nodes[last] = node;
        gone.insert(conv);
        gone.extend(activation.map(|_| sum));
    }
    drop_nodes(graph, &gone);
}

/// The place of a convolution that only the sum uses, and the value that it is added to.
fn operands(
    graph: &GraphDef,
    view: &View,
    sum: usize,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) -> Option<(usize, String)> {
    let operands: Vec<_> = data_inputs(&graph.nodes[sum]).collect();
    let &[a, b] = operands.as_slice() else {
        return None;
    };
    let shape = shapes(a).filter(|shape| !shape.contains(&-1))?;
    if shapes(b)? != shape {
        return None;
    }
    [(a, b), (b, a)].into_iter().find_map(|(conv, residual)| {
        let place = view.producer(conv)?;
        let node = &graph.nodes[place];
        let fits = node.op == CONV
            && float_of(node) == float_of(&graph.nodes[sum])
            && attr(node, "activation") == Some(Attr::String(Vec::new()))
            && attr(node, "data_format") == Some(Attr::String(b"NHWC".to_vec()))
            && data_inputs(node).count() == 3
            && view.only_user(place) == Some(sum)
            && !preserved.contains(&node.name)
            && node.device == graph.nodes[sum].device;
        fits.then(|| (place, residual.clone()))
    })
}

/// The convolution at the first place with what the others do, in the place of the last.
fn with_residual(
    graph: &GraphDef,
    places: [usize; 3],
    residual: String,
    activation: Option<usize>,
) -> Option<NodeDef> {
    let [conv, _, last] = places.map(|place| &graph.nodes[place]);
    let mut node = conv.clone();
    node.name.clone_from(&last.name);
    node.inputs = data_inputs(conv).cloned().collect();
    node.inputs.push(residual);
    for place in places {
        for control in control_inputs(&graph.nodes[place]) {
            if !node.inputs.contains(control) {
                node.inputs.push(control.clone());
            }
        }
    }
    node.set_attr("N", &Attr::Int(1));
    activate(&mut node, activation.map(|place| &graph.nodes[place]))?;
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::{self, shown_with_activation};

    fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
        let mut node = trial::node(name, op, inputs);
        if op == CONV {
            node.set_attr("activation", &Attr::String(Vec::new()));
            node.set_attr("data_format", &Attr::String(b"NHWC".to_vec()));
        }
        node
    }

    fn block() -> Vec<NodeDef> {
        vec![
            node("c", CONV, &["image", "filter", "bias", "^first"]),
            node("s", "AddV2", &["x", "c", "^second"]),
            node("r", "Relu", &["s"]),
            node("out", "Identity", &["r"]),
        ]
    }

    fn rewritten(nodes: Vec<NodeDef>, preserved: &[&str]) -> Vec<String> {
        let mut graph = GraphDef {
            nodes,
            other: Vec::new(),
        };
        let preserved = preserved.iter().map(|&name| name.to_owned()).collect();
        rewrite(&mut graph, "TFP", &preserved, &|input| match input {
            "row" => Some(vec![8]),
            "unknown" => Some(vec![-1, 3, 3, 8]),
            _ => Some(vec![-2, 3, 3, 8]),
        });
        graph.nodes.iter().map(shown_with_activation).collect()
    }

    #[test]
    fn a_residual_block_ends_with_its_convolution() {
        assert_eq!(
            rewritten(block(), &[]),
            [
                "r = TfpFusedConv2D(image filter bias x ^first ^second) Relu",
                "out = Identity(r)",
            ]
        );
        assert_eq!(
            rewritten(block(), &["s"])[0],
            "s = TfpFusedConv2D(image filter bias x ^first ^second) "
        );
        // Of two convolutions one is added to the other.
        let mut two = block();
        two.insert(0, node("x", CONV, &["image", "filter_2", "bias_2"]));
        assert_eq!(
            rewritten(two, &[])[..2],
            [
                "c = TfpFusedConv2D(image filter bias ^first) ",
                "r = TfpFusedConv2D(image filter_2 bias_2 c ^second) Relu",
            ]
        );
    }

    #[test]
    fn types_must_be_alike() {
        let half = Attr::Type(tfp_bindings::DataType::BFLOAT16);
        let mut other = block();
        other[0].set_attr("T", &half);
        assert_eq!(rewritten(other.clone(), &[]).len(), 4);
        other[1].set_attr("T", &half);
        other[2].set_attr("T", &half);
        assert_eq!(rewritten(other, &[]).len(), 2);
    }

    #[test]
    fn what_is_seen_or_broadcast_stays() {
        assert_eq!(rewritten(block(), &["c"]).len(), 4);
        for operand in ["row", "unknown"] {
            let mut other = block();
            other[1].inputs[0] = operand.into();
            assert_eq!(rewritten(other, &[]).len(), 4);
        }
        let mut twice = block();
        twice[1].inputs[0] = "c".into();
        assert_eq!(rewritten(twice, &[]).len(), 4);
        for (name, value) in [("activation", "Relu"), ("data_format", "NCHW")] {
            let mut other = block();
            other[0].set_attr(name, &Attr::String(value.as_bytes().to_vec()));
            assert_eq!(rewritten(other, &[]).len(), 4);
        }
        let mut other = block();
        other[0].device = "/device:TFP:1".into();
        assert_eq!(rewritten(other, &[]).len(), 4);
    }
}
