//! What a model consists of, as a table.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::Model;
use crate::variable::Variable;

/// The heads of the columns.
const HEADS: [&str; 4] = ["layer", "output", "parameters", "connected to"];

impl Model {
    /// Returns a table of the layers: name and kind, shape of the outputs without the batch, number of
    /// parameters, and what each is connected to. The last lines count all of them.
    #[must_use]
    pub fn summary(&self) -> String {
        let mut rows = vec![HEADS.map(str::to_owned)];
        for port in self.inputs() {
            rows.push([
                format!("{} (Input)", port.name),
                format!("{:?}", port.shape),
                "0".to_owned(),
                String::new(),
            ]);
        }
        let mut counted = BTreeSet::new();
        for step in self.steps() {
            let call = &step.call;
            let shapes: Vec<String> = call.outputs.iter().map(|one| format!("{one:?}")).collect();
            let parents: Vec<&str> = call.parents.iter().map(|node| node.name()).collect();
            // A shared layer's are counted once.
            let fresh = call
                .variables
                .iter()
                .filter(|one| counted.insert(one.name().to_owned()));
            rows.push([
                format!("{} ({})", call.name, call.kind),
                shapes.join(", "),
                count(fresh).to_string(),
                parents.join(", "),
            ]);
        }
        let width = |column: usize| {
            let widths = rows.iter().map(|row| row[column].chars().count());
            widths.max().unwrap_or(0)
        };
        let widths = [width(0), width(1), width(2), width(3)];
        let mut text = String::new();
        for row in &rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(widths).enumerate() {
                // Numbers end at the same place.
                let _ = match column {
                    2 => write!(line, "{cell:>width$}  "),
                    _ => write!(line, "{cell:width$}  "),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        let all = count(self.variables().iter());
        let trained = count(self.trainables().iter());
        let _ = writeln!(
            text,
            "{all} parameters, {trained} of them trained, {} kept",
            all - trained
        );
        text
    }
}

/// The number of elements of variables.
fn count<'v>(variables: impl Iterator<Item = &'v Variable>) -> i64 {
    variables
        .map(|one| one.shape().dims().map_or(0, |dims| dims.iter().product()))
        .sum()
}
