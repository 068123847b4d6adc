//! Where a file has the variables of a graph's layers, if it lists them by layer.

use tfp_core::Result;

use super::{Entry, Graph, Kind};

impl Entry {
    /// Collects the places of the variables, and whether they are trained.
    fn places<'e>(&'e mut self, is_trained: bool, into: &mut Vec<(bool, &'e mut String)>) {
        let is_trained = is_trained && self.is_trainable;
        match &mut self.kind {
            Kind::Layer(described, _) => {
                let states = described.states;
                let count = described.places.len().saturating_sub(states);
                let places = described.places.iter_mut().enumerate();
                into.extend(places.map(|(index, one)| (is_trained && index < count, one)));
            }
            Kind::Model(graph) | Kind::EachStep(graph) => {
                for entry in &mut graph.layers {
                    entry.places(is_trained, into);
                }
            }
            Kind::Input(..) | Kind::Unknown(_) => {}
        }
    }
}

impl Graph {
    /// Changes where the file has the variables.
    pub fn rename(&mut self, of: impl Fn(&str) -> String) {
        let mut places = Vec::new();
        for entry in &mut self.layers {
            entry.places(true, &mut places);
        }
        for (_, place) in places {
            *place = of(place);
        }
    }

    /// Sets where the file has the variables: `of` says it for a layer's name and a number of variables.
    /// Those of a model in this one are in one list. What is trained comes first.
    pub fn place(&mut self, of: impl Fn(&str, usize) -> Result<Vec<String>>) -> Result<()> {
        for entry in &mut self.layers {
            let name = entry.name.clone();
            let mut places = Vec::new();
            entry.places(true, &mut places);
            places.sort_by_key(|(is_trained, _)| !is_trained);
            if places.is_empty() {
                continue;
            }
            let found = of(&name, places.len())?;
            for ((_, place), found) in places.into_iter().zip(found) {
                *place = found;
            }
        }
        Ok(())
    }
}
