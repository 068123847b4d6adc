//! Batch norms that go into the weights of the convolution before.

use std::collections::HashSet;

use tfp_bindings::DataType;
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use super::{Norm, Shapes, activation, is_hidden, last_node, wait_as};
use crate::graph::fuse::{CAST, CONV, float_of, fused_type};
use crate::graph::view::{Names, View, attr, data_inputs};

/// The norm as part of the convolution before: that one's place, the convolution that does both,
/// and the nodes that compute its weights in each step. None where these cost more than they save.
pub(super) fn fold(
    graph: &GraphDef,
    view: &View,
    norm: &Norm,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
    names: &mut Names,
) -> Option<(usize, NodeDef, Vec<NodeDef>)> {
    let place = view.producer(&norm.x)?;
    let conv = &graph.nodes[place];
    let hidden = is_hidden(graph, view, place, norm.first(), preserved)
        && norm
            .casts
            .is_none_or(|(before, _)| is_hidden(graph, view, before, norm.product, preserved))
        && float_of(conv) == Some(norm.outside);
    let is_conv = match &*conv.op {
        "Conv2D" => true,
        CONV => attr(conv, "activation") == Some(Attr::String(Vec::new())),
        _ => false,
    };
    let last = attr(conv, "data_format") == Some(Attr::String(b"NHWC".to_vec()));
    if !hidden || !is_conv || !last || conv.device != graph.nodes[norm.sum].device {
        return None;
    }
    let operands: Vec<_> = data_inputs(conv).collect();
    let (image, filter) = (*operands.first()?, *operands.get(1)?);
    // A weight takes part in one product, which is read and written; so is an element of an image,
    // of which there is more than one where their number is not known.
    let size = |dims: &[i64]| {
        let known = |size: i64, &dim: &i64| size.checked_mul(dim).filter(|_| dim > 0);
        dims.iter().try_fold(1, known)
    };
    let weights = size(shapes(filter)?.get(..3)?)?;
    let image_shape = shapes(&norm.x)?;
    let batch = image_shape.first().copied().filter(|&batch| batch > 0);
    let pixels = size(image_shape.get(1..3)?)?;
    if weights > pixels.saturating_mul(batch.unwrap_or(2)) {
        return None;
    }
    let mut folded = Folded {
        conv,
        names,
        added: Vec::new(),
    };
    let weights = fused_type(conv, "U").or_else(|| float_of(conv))?;
    let filter = folded.wide(filter, weights);
    let scale = folded.wide(&norm.scale, norm.inside);
    let shift = folded.wide(&norm.shift, norm.inside);
    let filter = folded.add("Mul", &[&filter, &scale]);
    let bias = match operands.get(2) {
        None => shift,
        Some(bias) => {
            let bias = folded.wide(bias, weights);
            let scaled = folded.add("Mul", &[&bias, &scale]);
            folded.add("AddV2", &[&scaled, &shift])
        }
    };
    let added = folded.added;
    let inputs = vec![image.clone(), filter, bias];
    let mut node = last_node(graph, norm, CONV, inputs);
    wait_as(&mut node, conv);
    for name in [
        "strides",
        "dilations",
        "padding",
        "explicit_paddings",
        "data_format",
    ] {
        node.set_attr(name, &attr(conv, name)?);
    }
    node.set_attr("T", &Attr::Type(norm.outside));
    node.set_attr("U", &Attr::Type(DataType::FLOAT));
    node.set_attr("activation", &activation(graph, norm));
    Some((place, node, added))
}

/// Nodes that compute the weights of a convolution with a norm, in float32: rounded to 16 bits, they
/// would be less exact than convolution and norm apart.
struct Folded<'a> {
    conv: &'a NodeDef,
    names: &'a mut Names,
    added: Vec<NodeDef>,
}

impl Folded<'_> {
    fn node(&mut self, op: &str, inputs: &[&String], attrs: &[(&str, DataType)]) -> String {
        let name = self.names.fresh(&format!("{}/tfp/{op}", self.conv.name));
        let mut node = NodeDef {
            name: name.clone(),
            op: op.to_owned(),
            inputs: inputs.iter().map(|&input| input.clone()).collect(),
            device: self.conv.device.clone(),
            ..NodeDef::default()
        };
        for (attr, float) in attrs {
            node.set_attr(attr, &Attr::Type(*float));
        }
        self.added.push(node);
        name
    }

    fn add(&mut self, op: &str, inputs: &[&String; 2]) -> String {
        self.node(op, inputs, &[("T", DataType::FLOAT)])
    }

    /// The value in float32.
    fn wide(&mut self, value: &String, from: DataType) -> String {
        if from == DataType::FLOAT {
            return value.clone();
        }
        let types = [("SrcT", from), ("DstT", DataType::FLOAT)];
        self.node(CAST, &[value], &types)
    }
}
