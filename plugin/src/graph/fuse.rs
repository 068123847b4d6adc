//! Puts a product or convolution, its bias and its activation into one op.

use std::collections::HashSet;

use tfp_bindings::DataType;
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use super::view::{View, attr, control_inputs, data_inputs, is_on};

/// An op that computes `activation(base + bias)`.
struct Fused {
    /// The op that the bias is added to.
    base: &'static str,
    /// The op that does all.
    op: &'static str,
    /// The attributes of `base` that `op` has too.
    attrs: &'static [&'static str],
}

/// The op that gives numbers another type.
pub const CAST: &str = "Cast";

/// The op that convolves and adds. Its filter and bias have a type of their own, `U`.
pub const CONV: &str = "TfpFusedConv2D";

const FUSED: &[Fused] = &[
    Fused {
        base: "MatMul",
        op: "TfpFusedMatMul",
        attrs: &["T", "transpose_a", "transpose_b"],
    },
    Fused {
        base: "Conv2D",
        op: CONV,
        attrs: &[
            "T",
            "strides",
            "dilations",
            "padding",
            "explicit_paddings",
            "data_format",
        ],
    },
];

/// The activations of the fused ops.
pub const ACTIVATIONS: &[&str] = &[
    "Elu", LEAKY, "Relu", "Relu6", "Selu", "Sigmoid", "Softplus", "Softsign", "Tanh",
];
/// The one with a slope.
const LEAKY: &str = "LeakyRelu";
/// Those that keep a value within limits, which every op of the plug-in's own can do.
pub const CLAMPS: &[&str] = &["Relu", "Relu6"];

/// Fuses what nobody else sees; the nodes in `preserved` stay.
pub fn fuse(graph: &mut GraphDef, device_type: &str, preserved: &HashSet<String>) {
    let Some(view) = View::new(graph) else {
        return;
    };
    let mut gone = HashSet::new();
    for place in 0..graph.nodes.len() {
        if let Some((last, node, parts)) = chain(graph, &view, place, device_type, preserved) {
            graph.nodes[last] = node;
            gone.extend(parts);
        }
    }
    drop_nodes(graph, &gone);
}

/// Removes the nodes at these places.
pub fn drop_nodes(graph: &mut GraphDef, gone: &HashSet<usize>) {
    let mut place = 0;
    graph.nodes.retain(|_| {
        place += 1;
        !gone.contains(&(place - 1))
    });
}

/// Whether a node computes with float32.
pub fn is_float(node: &NodeDef) -> bool {
    float_of(node) == Some(DataType::FLOAT)
}

/// The type that a node computes with, if the fused ops do: float32 or a 16-bit float.
pub fn float_of(node: &NodeDef) -> Option<DataType> {
    fused_type(node, "T")
}

/// The type that an attribute names, if it is one of the fused ops.
pub fn fused_type(node: &NodeDef, name: &str) -> Option<DataType> {
    match attr(node, name)? {
        Attr::Type(found) => [DataType::FLOAT, DataType::HALF, DataType::BFLOAT16]
            .into_iter()
            .find(|known| *known == found),
        _ => None,
    }
}

/// The types of the operand and of the result of a cast between the types of the fused ops that rounds
/// to the nearest.
pub fn cast_types(node: &NodeDef) -> Option<(DataType, DataType)> {
    let rounds = node.op == CAST && attr(node, "Truncate") != Some(Attr::Bool(true));
    let types = (fused_type(node, "SrcT")?, fused_type(node, "DstT")?);
    rounds.then_some(types)
}

/// The type of a node's result, if it is one of the fused ops'.
fn result_type(node: &NodeDef) -> Option<DataType> {
    fused_type(node, if node.op == CAST { "DstT" } else { "T" })
}

/// The place of one of these activations that alone uses the node at `place`, which nobody else
/// sees.
pub fn activation_after(
    graph: &GraphDef,
    view: &View,
    place: usize,
    activations: &[&str],
    preserved: &HashSet<String>,
) -> Option<usize> {
    let node = &graph.nodes[place];
    let user = view.only_user(place)?;
    let next = &graph.nodes[user];
    let fits = !preserved.contains(&node.name)
        && activations.contains(&&*next.op)
        && next.device == node.device
        && float_of(next).is_some_and(|float| result_type(node) == Some(float));
    fits.then_some(user)
}

/// The chain whose bias is at `place`: where its last node is, the op that replaces that, and the
/// places of the nodes that are then not needed.
fn chain(
    graph: &GraphDef,
    view: &View,
    place: usize,
    device_type: &str,
    preserved: &HashSet<String>,
) -> Option<(usize, NodeDef, Vec<usize>)> {
    let bias = &graph.nodes[place];
    if bias.op != "BiasAdd" || !is_on(bias, device_type) {
        return None;
    }
    let mut operands = data_inputs(bias);
    let base_place = view.producer(operands.next()?)?;
    let bias_value = operands.next()?;
    let base = &graph.nodes[base_place];
    let fused = FUSED.iter().find(|fused| fused.base == base.op)?;
    let fits = base.device == bias.device
        && float_of(base).is_some()
        && float_of(base) == float_of(bias)
        && view.only_user(base_place) == Some(place)
        && !preserved.contains(&base.name)
        && data_format(base) == data_format(bias);
    if !fits {
        return None;
    }
    let activation = activation_after(graph, view, place, ACTIVATIONS, preserved);
    let mut parts = vec![base_place];
    let last = match activation {
        None => place,
        Some(user) => {
            parts.push(place);
            user
        }
    };
    let mut node = NodeDef {
        name: graph.nodes[last].name.clone(),
        op: fused.op.to_owned(),
        device: bias.device.clone(),
        inputs: data_inputs(base).cloned().collect(),
        ..NodeDef::default()
    };
    node.inputs.push(bias_value.clone());
    for &part in parts.iter().chain([&last]) {
        for control in control_inputs(&graph.nodes[part]) {
            if !node.inputs.contains(control) {
                node.inputs.push(control.clone());
            }
        }
    }
    for name in fused.attrs {
        node.set_attr(name, &attr(base, name)?);
    }
    if fused.op == CONV {
        node.set_attr("U", &attr(base, "T")?);
    }
    activate(&mut node, activation.map(|user| &graph.nodes[user]))?;
    Some((last, node, parts))
}

/// Lets a fused node do what `activation` does, if there is one.
pub fn activate(node: &mut NodeDef, activation: Option<&NodeDef>) -> Option<()> {
    let name = activation.map_or("", |activation| &activation.op);
    node.set_attr("activation", &Attr::String(name.as_bytes().to_vec()));
    if let Some(leaky) = activation.filter(|activation| activation.op == LEAKY) {
        node.set_attr("alpha", &attr(leaky, "alpha")?);
    }
    Some(())
}

/// Where the channels are; last if the op does not say.
fn data_format(node: &NodeDef) -> Attr {
    attr(node, "data_format").unwrap_or_else(|| Attr::String(b"NHWC".to_vec()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::view::trial::{self, shown_with_activation};

    fn node(name: &str, op: &str, inputs: &[&str]) -> NodeDef {
        let mut node = trial::node(name, op, inputs);
        if op == "MatMul" {
            node.set_attr("transpose_a", &Attr::Bool(false));
            node.set_attr("transpose_b", &Attr::Bool(true));
        }
        node
    }

    fn dense() -> Vec<NodeDef> {
        vec![
            node("m", "MatMul", &["x", "w", "^first"]),
            node("b", "BiasAdd", &["m", "bias"]),
            node("r", "Relu", &["b", "^second"]),
            node("out", "Identity", &["r"]),
        ]
    }

    fn fused(nodes: Vec<NodeDef>, preserved: &[&str]) -> Vec<String> {
        let mut graph = GraphDef {
            nodes,
            other: Vec::new(),
        };
        let preserved = preserved.iter().map(|&name| name.to_owned()).collect();
        fuse(&mut graph, "TFP", &preserved);
        graph.nodes.iter().map(shown_with_activation).collect()
    }

    #[test]
    fn a_dense_layer_becomes_one_node() {
        assert_eq!(
            fused(dense(), &[]),
            [
                "r = TfpFusedMatMul(x w bias ^first ^second) Relu",
                "out = Identity(r)"
            ]
        );
    }

    #[test]
    fn floats_of_16_bits_are_fused_among_themselves() {
        for float in [DataType::HALF, DataType::BFLOAT16] {
            let typed = |upto: usize| {
                let mut nodes = dense();
                for node in &mut nodes[..upto] {
                    node.set_attr("T", &Attr::Type(float));
                }
                nodes
            };
            let mut graph = GraphDef {
                nodes: typed(3),
                other: Vec::new(),
            };
            fuse(&mut graph, "TFP", &HashSet::new());
            assert_eq!(graph.nodes[0].op, "TfpFusedMatMul");
            assert_eq!(attr(&graph.nodes[0], "T"), Some(Attr::Type(float)));
            assert_eq!(fused(typed(1), &[]).len(), 4);
            assert_eq!(
                fused(typed(2), &[])[0],
                "b = TfpFusedMatMul(x w bias ^first) "
            );
        }
    }

    #[test]
    fn every_activation_that_the_kernel_has() {
        for activation in ACTIVATIONS {
            let mut nodes = dense();
            nodes[2].op = (*activation).to_owned();
            nodes[2].set_attr("alpha", &Attr::Float(0.25));
            let expected = format!("r = TfpFusedMatMul(x w bias ^first ^second) {activation}");
            assert_eq!(fused(nodes, &[])[0], expected);
        }
        let mut leaky = GraphDef {
            nodes: dense(),
            other: Vec::new(),
        };
        leaky.nodes[2].op = LEAKY.into();
        leaky.nodes[2].set_attr("alpha", &Attr::Float(0.25));
        fuse(&mut leaky, "TFP", &HashSet::new());
        assert_eq!(attr(&leaky.nodes[0], "alpha"), Some(Attr::Float(0.25)));
        let mut other = dense();
        other[2].op = "Exp".into();
        assert_eq!(fused(other, &[]).len(), 3);
    }

    #[test]
    fn what_is_fetched_or_used_twice_stays() {
        assert_eq!(
            fused(dense(), &["b"])[0],
            "b = TfpFusedMatMul(x w bias ^first) "
        );
        assert_eq!(fused(dense(), &["m"]).len(), 4);
        let mut twice = dense();
        twice.push(node("grad", "ReluGrad", &["g", "b"]));
        assert_eq!(fused(twice, &[])[0], "b = TfpFusedMatMul(x w bias ^first) ");
        let mut waited = dense();
        waited.push(node("late", "NoOp", &["^m"]));
        assert_eq!(fused(waited, &[]).len(), 5);
    }

    #[test]
    fn what_differs_in_type_device_or_format_stays() {
        let mut other = dense();
        other[0].set_attr("T", &Attr::Type(DataType::DOUBLE));
        assert_eq!(fused(other, &[]).len(), 4);
        let mut other = dense();
        other[0].device = "/device:TFP:1".into();
        assert_eq!(fused(other, &[]).len(), 4);
        let mut other = dense();
        other[1].set_attr("data_format", &Attr::String(b"NCHW".to_vec()));
        assert_eq!(fused(other, &[]).len(), 4);
        let mut other = dense();
        other[2].device = "/device:CPU:0".into();
        assert_eq!(fused(other, &[]).len(), 3);
        let mut other = dense();
        other[0].attrs.retain(|(name, _)| name != "transpose_a");
        assert_eq!(fused(other, &[]).len(), 4);
    }
}
