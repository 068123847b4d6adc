//! What the outputs of a graph need.

use std::collections::{BTreeMap, BTreeSet};

use tfp_core::{Error, Result};

use super::{Entry, Graph, Kind};
use crate::nn::keras::calls::Value;

impl Graph {
    /// Finds what the outputs need: unknown layers there are problems, and a circle is an error.
    pub(super) fn check(&mut self, problems: &mut Vec<String>) -> Result<()> {
        let by_name: BTreeMap<&str, &Entry> = self
            .layers
            .iter()
            .map(|entry| (entry.name.as_str(), entry))
            .collect();
        if by_name.len() != self.layers.len() {
            return Err(Error::argument("two of its layers have the same name"));
        }
        let mut done: BTreeSet<(&str, usize)> = BTreeSet::new();
        let mut unknown: BTreeSet<&str> = BTreeSet::new();
        let outputs = self.outputs.iter().map(|(_, value)| value);
        for output in self.inputs.iter().chain(outputs) {
            let mut path: Vec<((&str, usize), usize)> = vec![((&output.layer, output.call), 0)];
            let mut on_path: BTreeSet<(&str, usize)> = path.iter().map(|(at, _)| *at).collect();
            while let Some((at, next)) = path.last_mut() {
                let entry = by_name.get(at.0).ok_or_else(|| {
                    Error::argument(format!("there is no layer '{}', which others need", at.0))
                })?;
                let given = match entry.kind {
                    Kind::Input(..) => &[][..],
                    _ => entry.calls.get(at.1).map(Vec::as_slice).ok_or_else(|| {
                        Error::argument(format!("there is no call {} of layer '{}'", at.1, at.0))
                    })?,
                };
                if let Kind::Unknown(problem) = &entry.kind
                    && unknown.insert(&entry.name)
                {
                    problems.push(format!("'{}' ({}): {problem}", entry.name, entry.class));
                }
                if let Some(parent) = given.get(*next) {
                    *next += 1;
                    let parent = (parent.layer.as_str(), parent.call);
                    if on_path.contains(&parent) {
                        let names: Vec<&str> = on_path.iter().map(|(name, _)| *name).collect();
                        return Err(Error::argument(format!(
                            "its graph has a circle among the layers {}",
                            names.join(", ")
                        )));
                    }
                    if !done.contains(&parent) {
                        on_path.insert(parent);
                        path.push((parent, 0));
                    }
                    continue;
                }
                let at = *at;
                done.insert(at);
                on_path.remove(&at);
                path.pop();
            }
        }
        let sources = by_name
            .values()
            .filter(|entry| matches!(entry.class.as_str(), "Embedding" | "Masking"))
            .flat_map(|entry| entry.calls.iter().flatten())
            .collect();
        for &(name, call) in &done {
            let masks = by_name.get(name).and_then(|entry| entry.masks.get(call));
            for mask in masks.into_iter().flatten() {
                if !is_of_values(&by_name, &sources, mask) {
                    problems.push(format!(
                        "'{name}': a mask that does not come from Embedding or Masking is not supported"
                    ));
                }
            }
        }
        let used: BTreeSet<(String, usize)> = done
            .iter()
            .map(|(name, call)| ((*name).to_owned(), *call))
            .collect();
        // Calls that nothing needs are not made, as those of masks that Keras notes.
        for entry in &mut self.layers {
            for (index, call) in entry.calls.iter_mut().enumerate() {
                if !used.contains(&(entry.name.clone(), index)) {
                    call.clear();
                }
            }
        }
        Ok(())
    }
}

/// Whether a mask is what Keras makes of the values: it follows, by ops alone, from tensors that an
/// `Embedding` or a `Masking` is given, the sources.
fn is_of_values(
    by_name: &BTreeMap<&str, &Entry>,
    sources: &BTreeSet<&Value>,
    mask: &Value,
) -> bool {
    let mut seen: BTreeSet<&Value> = BTreeSet::new();
    let mut open = vec![mask];
    while let Some(value) = open.pop() {
        if sources.contains(value) || !seen.insert(value) {
            continue;
        }
        let entry = by_name.get(value.layer.as_str());
        let op = entry.filter(|entry| matches!(entry.kind, Kind::Unknown(_)));
        match op.and_then(|entry| entry.calls.get(value.call)) {
            Some(inputs) if !inputs.is_empty() => open.extend(inputs),
            _ => return false,
        }
    }
    true
}
