//! A model of the graph of a configuration.

use std::collections::BTreeMap;

use tfp_core::{Error, Result};

use super::loaded::{Named, Way};
use super::{Graph, Kind};
use crate::formats::hdf5::Datasets;
use crate::nn::Weights;
use crate::nn::keras::calls::Value;
use crate::nn::keras::names::numbered;
use crate::nn::layer::{Layer, Model, Node, SharedLayer, TimeDistributed};

impl Graph {
    /// Makes the layers, whose variables have the values of the file.
    pub fn build(self, weights: &Weights, datasets: &Datasets<'_>) -> Result<Model> {
        let mut values: BTreeMap<(String, usize), Vec<Node>> = BTreeMap::new();
        let mut waiting = Vec::new();
        for entry in self.layers {
            let mut back: Option<Box<dyn Layer>> = None;
            let shared: Box<dyn Layer> = match entry.kind {
                Kind::Input(dtype, shape) => {
                    let node = Node::typed_input(weights, &entry.name, dtype, &shape)?;
                    values.insert((entry.name, 0), vec![node]);
                    continue;
                }
                Kind::Unknown(_) => continue,
                Kind::Layer(described, keras) => {
                    let (there, and_back) = Way::all(*keras, described, datasets)?;
                    back = and_back.map(|way| Box::new(way) as _);
                    Box::new(there)
                }
                Kind::Model(graph) => {
                    let place = weights.layer(&graph.name);
                    let layer = graph.build(&place, datasets)?;
                    if !entry.is_trainable {
                        place.freeze();
                    }
                    let name = entry.name.clone();
                    Box::new(Named { layer, name })
                }
                Kind::EachStep(graph) => {
                    let name = graph.name.clone();
                    let place = weights.layer(&entry.name).layer(&name);
                    let layer = graph.build(&place, datasets)?;
                    if !entry.is_trainable {
                        place.freeze();
                    }
                    let layer = Named { layer, name };
                    let layer = SharedLayer::new(TimeDistributed { layer });
                    let name = entry.name.clone();
                    Box::new(Named { layer, name })
                }
            };
            let ways = (shared, back, entry.reversed);
            waiting.push((entry.name, ways, entry.calls, entry.is_trainable));
        }
        // Layers of a file are mostly in an order in which they can be called.
        let mut left = usize::MAX;
        loop {
            let mut open = 0;
            for (name, (there, back, reversed), calls, is_trainable) in &waiting {
                for (index, call) in calls.iter().enumerate() {
                    let key = (name.clone(), index);
                    if call.is_empty() || values.contains_key(&key) {
                        continue;
                    }
                    let nodes: Option<Vec<&Node>> =
                        call.iter().map(|value| find(&values, value)).collect();
                    let Some(nodes) = nodes else {
                        open += 1;
                        continue;
                    };
                    let layer = match back {
                        Some(back) if reversed.get(index) == Some(&true) => back,
                        _ => there,
                    };
                    let made = Node::outputs(Some(name), layer, &nodes)?;
                    // Its name here: another model with these weights may have one of that name.
                    if let (false, Some(node)) = (is_trainable, made.first()) {
                        weights.set_frozen(node.name(), true);
                    }
                    values.insert(key, made);
                }
            }
            if open == 0 || open == left {
                break;
            }
            left = open;
        }
        let need = |value: &Value| {
            find(&values, value).ok_or_else(|| {
                Error::argument(format!(
                    "layer '{}' has no output {}",
                    value.layer, value.output
                ))
            })
        };
        let inputs: Vec<&Node> = self.inputs.iter().map(need).collect::<Result<_>>()?;
        let mut names = Vec::new();
        let mut outputs = Vec::new();
        for (name, value) in &self.outputs {
            outputs.push((numbered(name, &mut names), need(value)?));
        }
        let outputs: Vec<(&str, &Node)> = outputs
            .iter()
            .map(|(name, node)| (name.as_str(), *node))
            .collect();
        Model::of_nodes(&inputs, &outputs, self.is_sequence)
    }
}

/// The node of a value, if it was made.
fn find<'v>(values: &'v BTreeMap<(String, usize), Vec<Node>>, value: &Value) -> Option<&'v Node> {
    let made = values.get(&(value.layer.clone(), value.call))?;
    made.get(value.output)
}
