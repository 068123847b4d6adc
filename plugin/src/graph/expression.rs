//! Puts element-wise ops that feed each other into one.
//!
//! Floats of 16 bits take part, and the casts between floats. A step rounds to its type, so that every
//! element has the bits that the ops would give it.

use std::collections::{HashMap, HashSet};

use tfp_adapter::gpu;
use tfp_bindings::DataType;
use tfp_bindings::proto::attr::{Attr, AttrList};
use tfp_bindings::proto::graph::{GraphDef, NodeDef};
use tfp_kernels::ops::elementwise::expression::{
    Extent, MAX_INPUTS, MAX_OUTPUTS, MAX_ROW, MAX_STEPS, Program,
};

pub use self::step::is_step;
use self::step::{Candidate, candidate, types};
use super::fuse::drop_nodes;
use super::merge::rename_inputs;
use super::norm::Shapes;
use super::stores::ASSIGN;
use super::view::{View, control_inputs, data_inputs, is_on};

mod step;

/// Nodes that become one, the last of which has the name and the output.
struct Group {
    /// Places, each after those whose values it uses.
    nodes: Vec<usize>,
    inputs: Vec<String>,
    types: Vec<DataType>,
    /// The type of the outputs.
    to: DataType,
    /// Of the inputs, as what is known of shapes says.
    extents: Vec<i64>,
    words: Vec<i64>,
    /// Numbers of the steps whose values others use, too, and the places of their nodes: assignments to
    /// variables.
    results: Vec<(i64, usize)>,
}

/// Fuses what nobody else sees; the nodes in `preserved` stay. `shapes` gives what is known of a
/// shape: -1 for an unknown dimension, a smaller number for one that equals all of this number.
pub fn rewrite(
    graph: &mut GraphDef,
    device_type: &str,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) {
    let Some(view) = View::new(graph) else {
        return;
    };
    // A GPU has no body for expressions of several types.
    let has_narrow = gpu::chosen().is_none();
    let candidates: HashMap<usize, Candidate> = (0..graph.nodes.len())
        .filter_map(|place| Some((place, candidate(&graph.nodes[place], device_type, shapes)?)))
        .filter(|(_, candidate)| has_narrow || candidate.is_wide())
        .collect();
    let mut gone = HashSet::new();
    let mut taken = HashSet::new();
    for last in users_first(graph, &view, &candidates) {
        if taken.contains(&last) {
            continue;
        }
        let group = grow(graph, &view, &candidates, &taken, last, preserved, shapes);
        if group.nodes.len() < 2 {
            continue;
        }
        taken.extend(&group.nodes);
        gone.extend(group.nodes.iter().filter(|&&place| place != last));
        for (output, &(_, place)) in group.results.iter().enumerate() {
            let (old, new) = (
                graph.nodes[place].name.clone(),
                format!("{}:{}", graph.nodes[last].name, output + 1),
            );
            for &(user, _) in view.users(place) {
                rename_inputs(&mut graph.nodes[user], |name| {
                    (name == old).then(|| new.clone())
                });
            }
        }
        graph.nodes[last] = node(graph, &group, last);
    }
    drop_nodes(graph, &gone);
}

/// Whether there may be something to do, for which shapes are needed.
pub fn is_needed(graph: &GraphDef, device_type: &str) -> bool {
    let mut steps = graph
        .nodes
        .iter()
        .filter(|node| is_on(node, device_type) && types(node).is_some());
    steps.nth(1).is_some()
}

/// The candidates, each after those that use it.
fn users_first(
    graph: &GraphDef,
    view: &View,
    candidates: &HashMap<usize, Candidate>,
) -> Vec<usize> {
    let producers = |place: usize| -> Vec<usize> {
        let found = data_inputs(&graph.nodes[place]).filter_map(|input| view.producer(input));
        found
            .filter(|place| candidates.contains_key(place))
            .collect()
    };
    let mut users: HashMap<usize, usize> = HashMap::new();
    for &place in candidates.keys() {
        for producer in producers(place) {
            *users.entry(producer).or_default() += 1;
        }
    }
    let unused = |place: &usize| !users.contains_key(place);
    let mut ready: Vec<usize> = candidates.keys().copied().filter(unused).collect();
    ready.sort_unstable();
    let mut order = Vec::new();
    while let Some(place) = ready.pop() {
        order.push(place);
        for producer in producers(place) {
            if let Some(left) = users.get_mut(&producer) {
                *left -= 1;
                if *left == 0 {
                    ready.push(producer);
                }
            }
        }
    }
    order
}

/// The largest group that ends with `last`.
fn grow(
    graph: &GraphDef,
    view: &View,
    candidates: &HashMap<usize, Candidate>,
    taken: &HashSet<usize>,
    last: usize,
    preserved: &HashSet<String>,
    shapes: &Shapes<'_>,
) -> Group {
    let mut group = Group {
        nodes: Vec::new(),
        inputs: Vec::new(),
        types: Vec::new(),
        to: DataType::FLOAT,
        extents: Vec::new(),
        words: Vec::new(),
        results: Vec::new(),
    };
    let Some(shape) = candidates.get(&last).map(|candidate| &candidate.shape) else {
        return group;
    };
    let extent_of = |input: &str| {
        let shape_of = shapes(input).filter(|shape| !shape.contains(&-1))?;
        let extent = Extent::find(&shape_of, shape)?;
        let row = shape.last().copied().unwrap_or(1);
        let fits = extent != Extent::Row || (row >= 0 && row as usize <= MAX_ROW);
        fits.then_some(extent)
    };
    let finish = |nodes: &[usize]| finish(graph, view, candidates, nodes, &extent_of);
    let mut nodes = vec![last];
    if let Some(done) = finish(&nodes) {
        group = done;
    } else {
        return group;
    }
    // A producer joins when all of its users are inside; each that joins may let others in.
    let mut at = 0;
    while at < nodes.len() {
        let producers: Vec<usize> = data_inputs(&graph.nodes[nodes[at]])
            .filter_map(|input| view.producer(input))
            .collect();
        at += 1;
        for producer in producers {
            let name = &graph.nodes[producer].name;
            let joins = candidates.contains_key(&producer)
                && !nodes.contains(&producer)
                && !taken.contains(&producer)
                && !preserved.contains(name)
                && graph.nodes[producer].device == graph.nodes[last].device
                && view.all_users(producer, |user| {
                    nodes.contains(&user) || is_end(graph, view, candidates, user)
                });
            if !joins {
                continue;
            }
            nodes.push(producer);
            match finish(&nodes) {
                Some(larger) => {
                    group = larger;
                    at = 0;
                }
                None => {
                    nodes.pop();
                }
            }
        }
    }
    group
}

/// Whether a node only sets a variable, and nothing that could be part of an expression comes after
/// it: what it needs may then be computed together with anything.
fn is_end(
    graph: &GraphDef,
    view: &View,
    candidates: &HashMap<usize, Candidate>,
    place: usize,
) -> bool {
    if graph.nodes[place].op != ASSIGN {
        return false;
    }
    let mut seen = HashSet::from([place]);
    let mut ready = vec![place];
    while let Some(place) = ready.pop() {
        if candidates.contains_key(&place) {
            return false;
        }
        let users = view.users(place).iter().map(|&(user, _)| user);
        ready.extend(users.filter(|&user| seen.insert(user)));
    }
    true
}

/// The program of some nodes, the first of which is the last step. None if the kernel would refuse
/// it, or if an operand is neither whole, a row nor a number.
fn finish(
    graph: &GraphDef,
    view: &View,
    candidates: &HashMap<usize, Candidate>,
    nodes: &[usize],
    extent_of: &dyn Fn(&str) -> Option<Extent>,
) -> Option<Group> {
    let by_name: HashMap<&str, usize> = nodes
        .iter()
        .map(|&place| (graph.nodes[place].name.as_str(), place))
        .collect();
    let inner = |input: &str| {
        by_name
            .get(input.strip_suffix(":0").unwrap_or(input))
            .copied()
    };
    let mut inputs: Vec<String> = Vec::new();
    let mut types = Vec::new();
    let mut extents = Vec::new();
    for &place in nodes {
        for input in data_inputs(&graph.nodes[place]) {
            if inner(input).is_none() && !inputs.contains(input) {
                extents.push(extent_of(input)?);
                types.push(candidates.get(&place)?.from);
                inputs.push(input.clone());
            }
        }
        // A step's result is what its operands broadcast to, which has to be one of the three too.
        extent_of(&graph.nodes[place].name)?;
    }
    if inputs.len() > MAX_INPUTS || nodes.len() > MAX_STEPS {
        return None;
    }
    let order = producers_first(graph, nodes, &inner);
    let last = *order.last()?;
    let to = candidates.get(&last)?.to;
    let is_seen = |place: usize| {
        let outside = |&(user, _): &(usize, _)| !nodes.contains(&user);
        place != last && view.users(place).iter().any(outside)
    };
    let mut words = Vec::new();
    let mut results = Vec::new();
    let mut found = extents.clone();
    // The value that each node's is: an input, or the result of a step.
    let mut values: HashMap<usize, usize> = HashMap::new();
    for &place in &order {
        let candidate = candidates.get(&place)?;
        let mut operands = Vec::new();
        for input in data_inputs(&graph.nodes[place]) {
            let value = match inner(input) {
                Some(producer) => *values.get(&producer)?,
                None => inputs.iter().position(|other| other == input)?,
            };
            operands.push(value);
        }
        if let [operand] = operands[..]
            && candidate.is_widening()
            && place != last
            && !is_seen(place)
        {
            values.insert(place, operand);
            continue;
        }
        let extent = operands.iter().map(|&value| found[value]).max()?;
        if extent != extent_of(&graph.nodes[place].name)? {
            return None;
        }
        if is_seen(place) {
            if candidate.to != to {
                return None;
            }
            results.push((i64::try_from(words.len() / WORDS).ok()?, place));
        }
        values.insert(place, found.len());
        found.push(extent);
        operands.resize(2, 0);
        words.push(candidate.step);
        for value in operands {
            words.push(i64::try_from(value).ok()?);
        }
    }
    if results.len() >= MAX_OUTPUTS || words.is_empty() {
        return None;
    }
    let steps: Vec<i64> = results.iter().map(|&(step, _)| step).collect();
    // Any input may be the one whose buffer the output takes; those of 16 bits are loaded anyway.
    let numbered = types.iter().enumerate();
    let narrow = numbered.filter(|(_, kind)| **kind != DataType::FLOAT);
    let narrow: u32 = narrow.map(|(number, _)| 1 << number).sum();
    for forwarded in (0..inputs.len()).map(|input| 1 << input).chain([0]) {
        Program::new(&words, &extents, forwarded | narrow, &steps).ok()?;
    }
    Some(Group {
        nodes: order,
        inputs,
        types,
        to,
        extents: extents.iter().map(|&extent| extent as i64).collect(),
        words,
        results,
    })
}

/// Numbers in a program per step.
const WORDS: usize = 3;

/// Some nodes, each after those whose values it uses; the first of `nodes` uses all others.
fn producers_first(
    graph: &GraphDef,
    nodes: &[usize],
    inner: &dyn Fn(&str) -> Option<usize>,
) -> Vec<usize> {
    fn visit(
        graph: &GraphDef,
        place: usize,
        inner: &dyn Fn(&str) -> Option<usize>,
        order: &mut Vec<usize>,
    ) {
        if order.contains(&place) {
            return;
        }
        for input in data_inputs(&graph.nodes[place]) {
            if let Some(producer) = inner(input) {
                visit(graph, producer, inner, order);
            }
        }
        order.push(place);
    }
    let mut order = Vec::new();
    if let Some(&last) = nodes.first() {
        visit(graph, last, inner, &mut order);
    }
    order
}

fn node(graph: &GraphDef, group: &Group, last: usize) -> NodeDef {
    let mut node = NodeDef {
        name: graph.nodes[last].name.clone(),
        op: "TfpExpression".to_owned(),
        device: graph.nodes[last].device.clone(),
        inputs: group.inputs.clone(),
        ..NodeDef::default()
    };
    for &place in &group.nodes {
        for control in control_inputs(&graph.nodes[place]) {
            if !node.inputs.contains(control) {
                node.inputs.push(control.clone());
            }
        }
    }
    let count = |len: usize| Attr::Int(i64::try_from(len).unwrap_or(0));
    let list = |ints: &[i64]| {
        Attr::List(AttrList {
            ints: ints.to_vec(),
            ..AttrList::default()
        })
    };
    let types = AttrList {
        types: group.types.clone(),
        ..AttrList::default()
    };
    let results: Vec<i64> = group.results.iter().map(|&(step, _)| step).collect();
    node.set_attr("Tin", &Attr::List(types));
    node.set_attr("M", &count(1 + group.results.len()));
    node.set_attr("T", &Attr::Type(group.to));
    node.set_attr("program", &list(&group.words));
    node.set_attr("results", &list(&results));
    node.set_attr("extents", &list(&group.extents));
    node
}

#[cfg(test)]
mod tests;
