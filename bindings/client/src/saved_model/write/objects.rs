//! The objects of a model as a `SavedObjectGraph`.

use std::collections::BTreeMap;

use tfp_core::wire::{Writer, shape_proto};

use super::ModelWriter;
use super::called::{Called, Captured};
use super::outer::Outer;
use crate::checkpoint::Objects;
use crate::saved_model::LISTS;
use crate::variable::Variable;

/// The objects of a model: the tree of its variables and tables, then constants, files, functions and
/// lists.
pub(super) struct ObjectGraph<'w> {
    pub(super) writer: &'w ModelWriter,
    pub(super) tree: &'w Objects,
    pub(super) table_ids: &'w [usize],
    pub(super) outer: &'w Outer<'w>,
    /// Two per table, which make and fill it, and one per signature.
    pub(super) functions: &'w [Called<'w>],
    /// How many of the functions are those of tables.
    pub(super) makers: usize,
}

impl ObjectGraph<'_> {
    /// Returns a `SavedObjectGraph`.
    pub(super) fn write(&self) -> Vec<u8> {
        let Self { tree, outer, .. } = self;
        let paths = tree.paths();
        let node_of: BTreeMap<&str, usize> = paths
            .iter()
            .map(|(&at, path)| (path.as_str(), at))
            .collect();
        let variables = &self.writer.variables;
        let variable_ids: Vec<usize> = variables
            .keys()
            .map(|path| node_of[path.as_str()])
            .collect();
        let constants_at = tree.0.len();
        let files_at = constants_at + outer.constants.len();
        let functions_at = files_at + outer.files.len();
        let signatures_at = functions_at + self.functions.len();
        let mut out = Writer::new();
        for (at, object) in tree.0.iter().enumerate() {
            out.message(1, |node| {
                for (name, &child) in &object.children {
                    write_child(node, name, child);
                }
                if at == 0 {
                    write_child(node, "signatures", signatures_at);
                    for (offset, name) in LISTS.iter().enumerate() {
                        if !object.children.contains_key(*name) {
                            write_child(node, name, signatures_at + 1 + offset);
                        }
                    }
                }
                let path = &paths[&at];
                let table = self.table_ids.iter().position(|&id| id == at);
                match (variables.get(path), table) {
                    (Some(variable), _) if !path.is_empty() => write_variable(node, path, variable),
                    (_, Some(number)) => {
                        write_child(node, "_create_resource", functions_at + 2 * number);
                        write_child(node, "_initialize", functions_at + 2 * number + 1);
                        // A `SavedResource` on any device.
                        node.message(10, |_| {});
                    }
                    _ => write_object(node, "_generic_user_object"),
                }
            });
        }
        for (_, name) in &outer.constants {
            out.message(1, |node| {
                node.message(9, |constant| constant.bytes(1, name.as_bytes()))
            });
        }
        for number in 0..outer.files.len() {
            out.message(1, |node| node.message(5, |file| file.int(1, number as i64)));
        }
        for called in self.functions {
            out.message(1, |node| {
                node.message(8, |function| called.write_bare(function))
            });
        }
        out.message(1, |node| {
            for (offset, called) in self.functions.iter().enumerate().skip(self.makers) {
                write_child(node, &called.traced.name, functions_at + offset);
            }
            write_object(node, "signature_map");
        });
        for name in LISTS {
            out.message(1, |node| {
                let kept = variables.values().zip(&variable_ids);
                let kept =
                    kept.filter(|(variable, _)| *name == "variables" || variable.is_trainable());
                for (number, (_, &id)) in kept.enumerate() {
                    write_child(node, &number.to_string(), id);
                }
                write_object(node, "trackable_list_wrapper");
            });
        }
        for called in self.functions {
            let ids = called.captures.iter().map(|capture| match capture {
                Captured::Variable(number) => variable_ids[*number],
                Captured::Constant(number) => constants_at + number,
                Captured::Table(number) => self.table_ids[*number],
                Captured::File(number) => files_at + number,
            });
            let ids: Vec<usize> = ids.collect();
            out.message(2, |entry| {
                entry.bytes(1, called.traced.function.name().as_bytes());
                entry.message(2, |function| called.write_concrete(function, &ids));
            });
        }
        out.into_bytes()
    }
}

fn write_child(node: &mut Writer, name: &str, id: usize) {
    node.message(1, |child| {
        child.int(1, id as i64);
        child.bytes(2, name.as_bytes());
    });
}

fn write_object(node: &mut Writer, identifier: &str) {
    node.message(4, |object| {
        object.bytes(1, identifier.as_bytes());
        object.message(2, |version| {
            version.int(1, 1);
            version.int(2, 1);
        });
    });
}

fn write_variable(node: &mut Writer, path: &str, variable: &Variable) {
    let name = match node_name(variable.name()) {
        Some(name) => name,
        None => node_name(path).unwrap_or_else(|| "variable".to_owned()),
    };
    node.message(7, |out| {
        out.int(1, variable.dtype().number().into());
        out.bytes(2, &shape_proto(variable.shape()));
        out.int(3, variable.is_trainable().into());
        out.bytes(6, name.as_bytes());
    });
}

/// Returns a name as one that an operation may have.
pub(super) fn node_name(name: &str) -> Option<String> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_./-".contains(c);
    let name: String = name
        .chars()
        .map(|c| if fits(c) { c } else { '_' })
        .collect();
    let first = name.chars().next()?;
    Some(if first.is_ascii_alphanumeric() {
        name
    } else {
        format!("v{name}")
    })
}
