//! The order in which Keras has the layers of a model: it numbers layers of a class and lists
//! variables by it.

use std::collections::{BTreeMap, HashMap};

use super::names::numbered;
use crate::nn::layer::Model;
use crate::variable::Variable;

/// The inputs and layers of a model in Keras' order.
pub(super) struct Graph {
    pub operations: Vec<Operation>,
    /// What each value comes from: the number of the operation, of its call, and of the output.
    pub origins: Vec<(usize, usize, usize)>,
    /// Whether the outputs have the names of their layers; otherwise they have names of their own.
    pub outputs_by_layer: bool,
    is_sequence: bool,
}

/// An input, by its number, or a layer, by the steps that call it.
#[derive(Clone, Debug)]
pub(super) enum Operation {
    Input(usize),
    Layer(Vec<usize>),
}

impl Operation {
    /// The name, with the path of the models around it.
    pub fn name<'m>(&self, model: &'m Model) -> &'m str {
        match self {
            Self::Input(index) => &model.inputs()[*index].name,
            Self::Layer(steps) => {
                let call = &model.steps()[steps[0]].call;
                let keras = call.keras.as_ref().and_then(|one| one.as_ref().ok());
                let own = keras.and_then(|one| one.name.as_deref());
                own.unwrap_or(&call.name)
            }
        }
    }

    pub fn kind<'m>(&self, model: &'m Model) -> &'m str {
        match self {
            Self::Input(_) => "Input",
            Self::Layer(steps) => &model.steps()[steps[0]].call.kind,
        }
    }

    pub fn variables<'m>(&self, model: &'m Model) -> &'m [Variable] {
        match self {
            Self::Input(_) => &[],
            Self::Layer(steps) => &model.steps()[steps[0]].call.variables,
        }
    }
}

/// The calls of a model: inputs first, then steps.
struct Nodes {
    /// The calls whose values each call takes.
    parents: Vec<Vec<usize>>,
    /// Which operation each call is of.
    operation: Vec<usize>,
    /// How much deeper the calls before one lie: Keras computes masks between them.
    distance: Vec<usize>,
}

impl Graph {
    pub fn of(model: &Model) -> Self {
        let inputs = model.inputs().len();
        let mut operations: Vec<Operation> = (0..inputs).map(Operation::Input).collect();
        let mut by_identity: HashMap<u64, usize> = HashMap::new();
        let mut nodes = Nodes {
            parents: vec![Vec::new(); inputs],
            operation: (0..inputs).collect(),
            distance: vec![1; inputs],
        };
        // The call and the output of each value.
        let mut values: Vec<(usize, usize)> = (0..inputs).map(|input| (input, 0)).collect();
        let mut call_numbers = vec![0; inputs];
        for (index, step) in model.steps().iter().enumerate() {
            let keras = step.call.keras.as_ref().and_then(|one| one.as_ref().ok());
            let known = keras.and_then(|one| one.identity);
            let next = operations.len();
            let at = match known {
                Some(identity) => *by_identity.entry(identity).or_insert(next),
                None => next,
            };
            match operations.get_mut(at) {
                Some(Operation::Layer(steps)) => {
                    call_numbers.push(steps.len());
                    steps.push(index);
                }
                _ => {
                    call_numbers.push(0);
                    operations.push(Operation::Layer(vec![index]));
                }
            }
            let node = nodes.parents.len();
            let parents = step.inputs.iter().map(|&value| values[value].0);
            nodes.parents.push(parents.collect());
            nodes.operation.push(at);
            // A mask is two operations between a layer that takes it and what `Masking` is given.
            let is_masking = keras.is_some_and(|one| one.class == "Masking");
            nodes.distance.push(1 + usize::from(is_masking));
            for output in 0..step.call.outputs.len() {
                let value = step.first + output;
                if values.len() <= value {
                    values.resize(value + 1, (node, 0));
                }
                values[value] = (node, output);
            }
        }
        let mut outputs: Vec<(&str, usize)> = model
            .outputs()
            .iter()
            .map(|port| (port.name.as_str(), values[port.value].0))
            .collect();
        let mut names = Vec::new();
        let outputs_by_layer = outputs.iter().all(|(name, node)| {
            let own = operations[nodes.operation[*node]].name(model);
            *name == numbered(own.rsplit('/').next().unwrap_or(own), &mut names)
        });
        if !outputs_by_layer && outputs.len() > 1 {
            outputs.sort_unstable();
        }
        let outputs: Vec<usize> = outputs.into_iter().map(|(_, node)| node).collect();
        let order = nodes.order(&outputs, operations.len());
        let mut place = vec![0; operations.len()];
        for (new, &old) in order.iter().enumerate() {
            place[old] = new;
        }
        let origins = values
            .iter()
            .map(|&(node, output)| (place[nodes.operation[node]], call_numbers[node], output));
        let is_chain = nodes.parents.iter().enumerate().all(|(node, parents)| {
            let expected = node.checked_sub(1).into_iter().collect::<Vec<usize>>();
            *parents == expected
        });
        let one_each = model
            .steps()
            .iter()
            .all(|step| step.call.outputs.len() == 1);
        let once = operations.len() == nodes.parents.len();
        Self {
            origins: origins.collect(),
            outputs_by_layer,
            is_sequence: model.is_sequence() && is_chain && one_each && once,
            operations: order.iter().map(|&old| operations[old].clone()).collect(),
        }
    }

    /// Whether it is a chain of layers that was made as one.
    pub fn is_sequence(&self) -> bool {
        self.is_sequence
    }
}

impl Nodes {
    /// The numbers of the operations, deepest first. Among those of equal depth, those come first that
    /// a walk from the outputs back finds first.
    fn order(&self, outputs: &[usize], operations: usize) -> Vec<usize> {
        let mut found: Vec<Option<usize>> = vec![None; operations];
        let mut count = 0;
        let mut finished = Vec::new();
        let mut is_known = vec![false; self.parents.len()];
        for &output in outputs {
            let mut path = vec![(output, 0)];
            while let Some((node, next)) = path.last_mut() {
                let node = *node;
                if *next == 0 {
                    if is_known[node] {
                        path.pop();
                        continue;
                    }
                    let found = &mut found[self.operation[node]];
                    if found.is_none() {
                        *found = Some(count);
                        count += 1;
                    }
                }
                match self.parents[node].get(*next) {
                    Some(&parent) => {
                        *next += 1;
                        if !is_known[parent] {
                            path.push((parent, 0));
                        }
                    }
                    None => {
                        is_known[node] = true;
                        finished.push(node);
                        path.pop();
                    }
                }
            }
        }
        let mut node_depths: BTreeMap<usize, usize> = BTreeMap::new();
        let mut depths = vec![0; operations];
        for &node in finished.iter().rev() {
            let operation = self.operation[node];
            let depth = node_depths.get(&node).copied().unwrap_or(0);
            let depth = depth.max(depths[operation]);
            depths[operation] = depth;
            node_depths.insert(node, depth);
            for &parent in &self.parents[node] {
                let below = node_depths.entry(parent).or_insert(0);
                *below = (*below).max(depth + self.distance[node]);
            }
        }
        let mut order: Vec<usize> = (0..operations).collect();
        // Inputs that no output needs come first among the last ones.
        let key = |&one: &usize| (usize::MAX - depths[one], found[one].map_or(0, |at| at + 1));
        order.sort_by_key(key);
        order
    }
}
