//! How deep the layers of a model lie: the order in which Keras numbers and calls them.

use std::collections::HashMap;

use super::node::Call;

/// The calls of a model: inputs first, then steps.
pub(crate) struct Nodes {
    /// The calls whose values each call takes.
    pub parents: Vec<Vec<usize>>,
    /// Which operation each call is of: an input, or a layer, which several calls may share.
    pub operation: Vec<usize>,
    /// How much deeper the calls before one lie: Keras computes masks between them.
    distance: Vec<usize>,
}

/// Depths, counted from the outputs.
pub(crate) struct Depths {
    /// Calls with their depths, in the order in which a walk from the outputs back comes to them.
    calls: Vec<(usize, usize)>,
    operations: Vec<usize>,
    /// When the walk finds each operation.
    found: Vec<Option<usize>>,
}

impl Nodes {
    /// Takes the number of inputs, and of each step the call, the values that it takes, and the first of
    /// those that it gives.
    pub(super) fn of<'s>(
        inputs: usize,
        steps: impl Iterator<Item = (&'s Call, &'s [usize], usize)>,
    ) -> Self {
        let mut nodes = Self {
            parents: vec![Vec::new(); inputs],
            operation: (0..inputs).collect(),
            distance: vec![1; inputs],
        };
        let mut by_identity: HashMap<u64, usize> = HashMap::new();
        let mut of_value: HashMap<usize, usize> = (0..inputs).map(|input| (input, input)).collect();
        let mut next = inputs;
        for (index, (call, taken, first)) in steps.enumerate() {
            let keras = call.keras.as_ref().and_then(|one| one.as_ref().ok());
            let at = match keras.and_then(|one| one.identity) {
                Some(identity) => *by_identity.entry(identity).or_insert(next),
                None => next,
            };
            next += usize::from(at == next);
            let parents = taken.iter().filter_map(|value| of_value.get(value));
            nodes.parents.push(parents.copied().collect());
            nodes.operation.push(at);
            // A mask is two operations between a layer that takes it and what `Masking` is given.
            let is_masking = keras.is_some_and(|one| one.class == "Masking");
            nodes.distance.push(1 + usize::from(is_masking));
            let values = first..first + call.outputs.len();
            of_value.extend(values.map(|value| (value, inputs + index)));
        }
        nodes
    }

    /// Returns the depths below some calls. Calls of one layer are at least as deep as its later ones.
    pub(crate) fn depths(&self, outputs: &[usize]) -> Depths {
        let operations = self.operation.iter().max().map_or(0, |last| last + 1);
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
        let mut order = Vec::new();
        let mut depth_of: Vec<Option<usize>> = vec![None; self.parents.len()];
        let mut depths = vec![0; operations];
        for &node in finished.iter().rev() {
            let operation = self.operation[node];
            if depth_of[node].is_none() {
                order.push(node);
            }
            let depth = depth_of[node].unwrap_or(0).max(depths[operation]);
            depths[operation] = depth;
            depth_of[node] = Some(depth);
            for &parent in &self.parents[node] {
                if depth_of[parent].is_none() {
                    order.push(parent);
                }
                let below = depth_of[parent].unwrap_or(0);
                depth_of[parent] = Some(below.max(depth + self.distance[node]));
            }
        }
        let depth = |node: usize| (node, depth_of[node].unwrap_or(0));
        Depths {
            calls: order.into_iter().map(depth).collect(),
            operations: depths,
            found,
        }
    }
}

impl Depths {
    /// The numbers of the operations, deepest first. Among those of equal depth, those come first that
    /// the walk finds first, and inputs that no output needs before all of them.
    pub(crate) fn operations(&self) -> Vec<usize> {
        let mut order: Vec<usize> = (0..self.operations.len()).collect();
        order.sort_by_key(|&one| {
            let found = self.found[one].map_or(0, |at| at + 1);
            (usize::MAX - self.operations[one], found)
        });
        order
    }

    /// The numbers of the calls in the order in which Keras makes them, deepest first. It matters where
    /// the calls of a layer change its state.
    pub(super) fn calls(&self) -> Vec<usize> {
        let mut calls = self.calls.clone();
        calls.sort_by_key(|&(_, depth)| usize::MAX - depth);
        calls.into_iter().map(|(call, _)| call).collect()
    }
}
