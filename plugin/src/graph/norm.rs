//! Batch norms of inference, which come as a product and a sum: into one op, or into the weights of
//! the convolution before.
//!
//! In a model of mixed precision a norm computes in float32 between two casts. It then takes the value
//! before the first one, and gives that after the second one.

use std::collections::HashSet;

use tfp_bindings::DataType;
use tfp_bindings::proto::attr::Attr;
use tfp_bindings::proto::graph::{GraphDef, NodeDef};

use self::fold::fold;
use super::fuse::{CLAMPS, activation_after, cast_types, drop_nodes, float_of};
use super::view::{Names, View, control_inputs, data_inputs, is_on};

mod fold;

/// What is known of the shape of an input: -1 for an unknown dimension.
pub type Shapes<'a> = dyn Fn(&str) -> Option<Vec<i64>> + 'a;

/// `x * scale + shift`, with a number per channel.
struct Norm {
    /// Places of the product, the sum, and the activation after it.
    product: usize,
    sum: usize,
    activation: Option<usize>,
    /// Places of the casts before the product and after the sum.
    casts: Option<(usize, usize)>,
    x: String,
    scale: String,
    shift: String,
    /// Type of `x` and of the result.
    outside: DataType,
    /// Type of the numbers per channel.
    inside: DataType,
}

impl Norm {
    /// The place of the node with the result.
    fn last(&self) -> usize {
        let cast = self.casts.map(|(_, after)| after);
        self.activation.or(cast).unwrap_or(self.sum)
    }

    /// The place of the node that uses `x`.
    fn first(&self) -> usize {
        self.casts.map_or(self.product, |(before, _)| before)
    }
}

/// Whether there may be something to do, for which shapes are needed.
pub fn is_needed(graph: &GraphDef, device_type: &str) -> bool {
    let Some(view) = View::new(graph) else {
        return false;
    };
    (0..graph.nodes.len()).any(|sum| !products(graph, &view, sum, device_type).is_empty())
}

/// Rewrites what nobody else sees; the nodes in `preserved` stay.
pub fn rewrite(
    graph: &mut GraphDef,
    device_type: &str,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) {
    shift_first(graph, device_type, preserved, shapes);
    let Some(view) = View::new(graph) else {
        return;
    };
    let mut names = Names::new(graph);
    let mut gone = HashSet::new();
    let mut added = Vec::new();
    for sum in 0..graph.nodes.len() {
        let found = find(graph, &view, sum, device_type, preserved, shapes);
        let Some(norm) = found.filter(|norm| !gone.contains(&norm.product)) else {
            continue;
        };
        let (before, after) = norm.casts.unzip();
        let last = norm.last();
        let inside = [Some(norm.product), Some(norm.sum), after];
        gone.extend(inside.into_iter().flatten().filter(|&place| place != last));
        gone.extend(before.filter(|&cast| is_hidden(graph, &view, cast, norm.product, preserved)));
        let folded = fold(graph, &view, &norm, preserved, shapes, &mut names);
        graph.nodes[last] = match folded {
            Some((conv, node, more)) if !gone.contains(&conv) => {
                gone.insert(conv);
                added.extend(more);
                node
            }
            _ => scale_shift(graph, &norm),
        };
    }
    drop_nodes(graph, &gone);
    graph.nodes.extend(added);
}

/// Puts the sum with a norm's shift before the one with a residual. TensorFlow adds first what has
/// one shape.
fn shift_first(
    graph: &mut GraphDef,
    device_type: &str,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) {
    let Some(view) = View::new(graph) else {
        return;
    };
    for last in 0..view.len() {
        let node = &graph.nodes[last];
        let Some(float) = float_of(node).filter(|_| node.op == "AddV2") else {
            continue;
        };
        if !is_on(node, device_type) {
            continue;
        }
        let operands: Vec<_> = data_inputs(node).cloned().collect();
        let [a, b] = operands.as_slice() else {
            continue;
        };
        let found = [(a, b), (b, a)].into_iter().find_map(|(sum, shift)| {
            let place = view.producer(sum)?;
            let first = &graph.nodes[place];
            let hidden = view.only_user(place) == Some(last) && !preserved.contains(&first.name);
            let is_sum =
                matches!(&*first.op, "AddN" | "Add" | "AddV2") && float_of(first) == Some(float);
            let terms: Vec<_> = data_inputs(first).cloned().collect();
            let [c, d] = terms.as_slice() else {
                return None;
            };
            if !hidden || !is_sum || first.device != node.device || shapes(c)? != shapes(d)? {
                return None;
            }
            let (product, residual) = [(c, d), (d, c)]
                .into_iter()
                .find(|(product, _)| is_scaled(graph, &view, product, (shift, float), shapes))?;
            let of_first = [product.clone(), shift.clone()];
            Some((place, of_first, [sum.clone(), residual.clone()]))
        });
        if let Some((first, of_first, of_last)) = found {
            replace_values(&mut graph.nodes[first], of_first);
            replace_values(&mut graph.nodes[last], of_last);
            // An op that adds only what has one shape still refuses a residual of another one.
            let (op, attrs) = (
                graph.nodes[first].op.clone(),
                graph.nodes[first].attrs.clone(),
            );
            let sum = &mut graph.nodes[first];
            sum.op = "AddV2".to_owned();
            sum.attrs.clear();
            sum.set_attr("T", &Attr::Type(float));
            if op == "AddN" {
                let sum = &mut graph.nodes[last];
                (sum.op, sum.attrs) = (op, attrs);
            }
        }
    }
}

/// Whether a value is a product by channel, to which `shift` could be added by channel.
fn is_scaled(
    graph: &GraphDef,
    view: &View,
    product: &str,
    (shift, float): (&str, DataType),
    shapes: &Shapes<'_>,
) -> bool {
    let Some(node) = view.producer(product).map(|place| &graph.nodes[place]) else {
        return false;
    };
    let factors: Vec<_> = data_inputs(node).collect();
    let &[a, b] = factors.as_slice() else {
        return false;
    };
    let by_channel = |x: &str, scale: &str| is_by_channel(shapes, x, &[scale, shift]);
    node.op == "Mul" && float_of(node) == Some(float) && (by_channel(a, b) || by_channel(b, a))
}

/// Gives a node other values; it waits for the same nodes.
fn replace_values(node: &mut NodeDef, values: [String; 2]) {
    let waits: Vec<String> = control_inputs(node).cloned().collect();
    node.inputs = values.into_iter().chain(waits).collect();
}

/// The products that a sum has as operands: the number of the operand, and the product's place.
fn products(graph: &GraphDef, view: &View, sum: usize, device_type: &str) -> Vec<(usize, usize)> {
    let node = &graph.nodes[sum];
    if node.op != "AddV2" || float_of(node).is_none() || !is_on(node, device_type) {
        return Vec::new();
    }
    let operands = data_inputs(node).enumerate();
    let products = operands.filter_map(|(number, input)| {
        let place = view.producer(input)?;
        let product = &graph.nodes[place];
        let fits = product.op == "Mul"
            && float_of(product) == float_of(node)
            && product.device == node.device
            && view.only_user(place) == Some(sum);
        fits.then_some((number, place))
    });
    products.collect()
}

fn find(
    graph: &GraphDef,
    view: &View,
    sum: usize,
    device_type: &str,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) -> Option<Norm> {
    products(graph, view, sum, device_type)
        .into_iter()
        .find_map(|(number, product)| {
            let node = &graph.nodes[product];
            if preserved.contains(&node.name) {
                return None;
            }
            let shift = data_inputs(&graph.nodes[sum]).nth(1 - number)?;
            let factors: Vec<_> = data_inputs(node).collect();
            let &[a, b] = factors.as_slice() else {
                return None;
            };
            let (x, scale) = [(a, b), (b, a)]
                .into_iter()
                .find(|(x, scale)| is_by_channel(shapes, x, &[scale, shift]))?;
            let inside = float_of(node)?;
            let mut norm = Norm {
                product,
                sum,
                activation: None,
                casts: None,
                x: x.clone(),
                scale: scale.clone(),
                shift: shift.clone(),
                outside: inside,
                inside,
            };
            if let Some((casts, source, outside)) = casts(graph, view, &norm, preserved) {
                (norm.casts, norm.x, norm.outside) = (Some(casts), source, outside);
            }
            norm.activation = activation_after(graph, view, norm.last(), CLAMPS, preserved);
            Some(norm)
        })
}

/// The places of the casts around a norm of float32, the value before the first one, and its type: a
/// 16-bit float, which the result gets, too.
fn casts(
    graph: &GraphDef,
    view: &View,
    norm: &Norm,
    preserved: &HashSet<String>,
) -> Option<((usize, usize), String, DataType)> {
    let sum = &graph.nodes[norm.sum];
    let (before, after) = (view.producer(&norm.x)?, view.only_user(norm.sum)?);
    let [first, last] = [before, after].map(|place| &graph.nodes[place]);
    let (outside, inside) = cast_types(first)?;
    let fits = outside != DataType::FLOAT
        && inside == DataType::FLOAT
        && cast_types(last)? == (inside, outside)
        && [first, last].iter().all(|cast| cast.device == sum.device)
        && !preserved.contains(&sum.name);
    let source = data_inputs(first).next()?;
    fits.then(|| ((before, after), source.clone(), outside))
}

/// Whether only the node at `user` uses the one at `place`, which nobody else sees.
fn is_hidden(
    graph: &GraphDef,
    view: &View,
    place: usize,
    user: usize,
    preserved: &HashSet<String>,
) -> bool {
    view.only_user(place) == Some(user) && !preserved.contains(&graph.nodes[place].name)
}

/// Whether the vectors have a number for each element of the last axis of `x`, which has others;
/// axes of one element may be in front.
fn is_by_channel(shapes: &Shapes<'_>, x: &str, vectors: &[&str]) -> bool {
    let Some(x) = shapes(x).filter(|x| x.len() >= 2) else {
        return false;
    };
    let Some(&channels) = x.last().filter(|&&channels| channels > 0) else {
        return false;
    };
    vectors.iter().all(|vector| {
        let shape = shapes(vector).unwrap_or_default();
        shape.len() <= x.len()
            && shape.split_last().is_some_and(|(&last, before)| {
                last == channels && before.iter().all(|&dim| dim == 1)
            })
    })
}

/// What the last node of the norm applies.
fn activation(graph: &GraphDef, norm: &Norm) -> Attr {
    let name = norm.activation.map_or("", |place| &graph.nodes[place].op);
    Attr::String(name.as_bytes().to_vec())
}

/// A node in the place of the norm's last one, with the control inputs of all of it.
fn last_node(graph: &GraphDef, norm: &Norm, op: &str, inputs: Vec<String>) -> NodeDef {
    let (before, after) = norm.casts.unzip();
    let places = [
        before,
        Some(norm.product),
        Some(norm.sum),
        after,
        norm.activation,
    ];
    let last = &graph.nodes[norm.last()];
    let mut node = NodeDef {
        name: last.name.clone(),
        op: op.to_owned(),
        inputs,
        device: last.device.clone(),
        ..NodeDef::default()
    };
    for place in places.into_iter().flatten() {
        wait_as(&mut node, &graph.nodes[place]);
    }
    node
}

fn wait_as(node: &mut NodeDef, other: &NodeDef) {
    for control in control_inputs(other) {
        if !node.inputs.contains(control) {
            node.inputs.push(control.clone());
        }
    }
}

fn scale_shift(graph: &GraphDef, norm: &Norm) -> NodeDef {
    let inputs = vec![norm.x.clone(), norm.scale.clone(), norm.shift.clone()];
    let mut node = last_node(graph, norm, "TfpScaleShift", inputs);
    node.set_attr("T", &Attr::Type(norm.outside));
    node.set_attr("U", &Attr::Type(norm.inside));
    node.set_attr("activation", &activation(graph, norm));
    node
}

#[cfg(test)]
mod tests;
