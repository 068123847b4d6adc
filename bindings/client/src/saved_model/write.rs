//! SavedModels that are made here.

mod called;
mod objects;
mod outer;

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::Path;

use tfp_core::wire::{Writer, shape_proto};
use tfp_core::{DataType, Error, Output, Result, Session, Shape, Tensor};

use self::called::Called;
use self::objects::ObjectGraph;
use self::outer::Outer;
use super::load::variables_prefix;
use super::tables::Tables;
use super::trace::{Traced, cut, trace};
use crate::checkpoint::{OBJECT_GRAPH_KEY, Objects, value_key, write_tensors};
use crate::context::func_graph::FuncGraph;
use crate::files::{self, replace_folder};
use crate::table::LookupTable;
use crate::variable::{Variable, values_in};

/// A SavedModel that is put together: variables and lookup tables by their paths, and signatures that
/// use them.
///
/// `tf.saved_model.load`, Keras' `TFSMLayer` and [`SavedModel`](tfp_core::SavedModel) load what is
/// written.
#[derive(Debug, Default)]
pub struct ModelWriter {
    variables: BTreeMap<String, Variable>,
    tables: BTreeMap<String, LookupTable>,
    signatures: BTreeMap<String, Traced>,
}

impl ModelWriter {
    /// Begins a model.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable, with its path in the tree of objects, as `dense/kernel`.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a path that is taken, has an
    /// empty name in it or begins with `signatures`.
    pub fn variable(&mut self, path: &str, variable: &Variable) -> Result<()> {
        self.check_path(path)?;
        self.variables.insert(path.to_owned(), variable.clone());
        Ok(())
    }

    /// Adds a lookup table, with its path in the tree of objects. The model has the keys and values of
    /// the time when it is written; those of a text file it has as a copy of the file.
    ///
    /// # Errors
    /// As for [`Self::variable`].
    pub fn table(&mut self, path: &str, table: &LookupTable) -> Result<()> {
        self.check_path(path)?;
        self.tables.insert(path.to_owned(), table.clone());
        Ok(())
    }

    fn check_path(&self, path: &str) -> Result<()> {
        let first = path.split('/').next();
        if path.split('/').any(str::is_empty) || first == Some("signatures") {
            return Err(Error::argument(format!(
                "{path:?} can't be the path of a variable or table"
            )));
        }
        if self.variables.contains_key(path) || self.tables.contains_key(path) {
            return Err(Error::argument(format!(
                "the model has a variable or table at '{path}' already"
            )));
        }
        Ok(())
    }

    /// Adds a signature: a closure that is traced with arguments of these names, types and shapes.
    ///
    /// It returns results by name. The variables and tables that it reads must have been added, tensors of an
    /// eager context that it uses become constants.
    ///
    /// # Errors
    /// What the closure returns, and [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for
    /// names that are there twice.
    pub fn signature(
        &mut self,
        name: &str,
        arguments: &[(&str, DataType, Shape)],
        body: impl FnOnce(&FuncGraph, &BTreeMap<String, Output>) -> Result<Vec<(String, Output)>>,
    ) -> Result<()> {
        self.add(trace(name, arguments, body)?)
    }

    /// Adds a signature: the part of a graph that computes results from arguments.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) when a result needs a placeholder
    /// that is not an argument, and [`ErrorKind::Foreign`](tfp_core::ErrorKind::Foreign) for outputs
    /// of several graphs.
    pub fn graph_signature(
        &mut self,
        name: &str,
        arguments: &[(&str, &Output)],
        results: &[(&str, &Output)],
    ) -> Result<()> {
        self.add(cut(name, arguments, results)?)
    }

    fn add(&mut self, traced: Traced) -> Result<()> {
        let name = traced.name.clone();
        match self.signatures.insert(name.clone(), traced) {
            None => Ok(()),
            Some(_) => Err(Error::argument(format!(
                "the model has two signatures '{name}'"
            ))),
        }
    }

    /// Writes a model whose variables are of an eager context. A model that is there is replaced once
    /// the new one is whole, and stays as it is when writing fails or the process ends; other files of
    /// the folder are kept. Where a folder can't be exchanged for another, as the root of a file
    /// system, it is replaced file by file, `saved_model.pb` last.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a signature that uses a variable
    /// which was not added, [`ErrorKind::File`](tfp_core::ErrorKind::File) for a folder that can't
    /// be written, and what TensorFlow says.
    pub fn write(&self, folder: impl AsRef<Path>) -> Result<()> {
        let values = self.variables.values().map(Variable::to_tensor);
        let tables = Tables::new(&self.tables, None)?;
        self.write_values(
            folder.as_ref(),
            &values.collect::<Result<Vec<_>>>()?,
            &tables,
        )
    }

    /// Writes a model whose variables are of a graph, with the values that a session has for them.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn write_from(&self, session: &Session, folder: impl AsRef<Path>) -> Result<()> {
        let list: Vec<Variable> = self.variables.values().cloned().collect();
        let tables = Tables::new(&self.tables, Some(session))?;
        self.write_values(folder.as_ref(), &values_in(session, &list)?, &tables)
    }

    fn write_values(&self, folder: &Path, values: &[Tensor], tables: &Tables) -> Result<()> {
        let names = self
            .variables
            .iter()
            .map(|(path, variable)| (path.as_str(), variable.name()));
        let mut objects = Objects::of_paths(names);
        let table_ids: Vec<usize> = self.tables.keys().map(|path| objects.make(path)).collect();
        let graph_proto = Tensor::from_string(objects.write())?;
        let keys: Vec<String> = self.variables.keys().map(|path| value_key(path)).collect();
        let mut outer = Outer::new(self, tables, &keys, &graph_proto)?;
        let mut functions = outer.add_tables(self)?;
        let makers = functions.len();
        for traced in self.signatures.values() {
            functions.push(outer.call(self, traced)?);
        }
        let graph = ObjectGraph {
            writer: self,
            tree: &objects,
            table_ids: &table_ids,
            outer: &outer,
            functions: &functions,
            makers,
        };
        let model = self.proto(&outer, &functions[makers..], &graph.write())?;
        let mut tensors: Vec<(&str, &Tensor)> =
            keys.iter().map(String::as_str).zip(values).collect();
        tensors.push((OBJECT_GRAPH_KEY, &graph_proto));
        replace_folder(folder, is_of_model, |folder| {
            tables.copy_files(folder)?;
            write_tensors(variables_prefix(folder), &tensors)?;
            delete_fingerprint(folder);
            // Last, for a folder with this file is a model.
            files::write(&folder.join(MODEL), &model)
        })
    }

    /// Makes the `SavedModel`.
    fn proto(&self, outer: &Outer, signatures: &[Called<'_>], objects: &[u8]) -> Result<Vec<u8>> {
        let graph_def = outer.graph.to_graph_def()?;
        let version = tfp_core::version()?;
        let mut out = Writer::new();
        out.int(1, 1);
        out.message(2, |meta| {
            meta.message(1, |info| {
                info.bytes(4, b"serve");
                info.bytes(5, version.as_bytes());
            });
            meta.bytes(2, &graph_def);
            meta.message(3, |saver| {
                saver.bytes(1, b"saver_filename:0");
                saver.bytes(2, b"saver_done:0");
                saver.bytes(3, b"saver_restore");
                // The format of checkpoints of TensorFlow 2.
                saver.int(7, 2);
            });
            meta.message(4, |entry| {
                entry.bytes(1, b"saved_model_main_op");
                entry.message(2, |value| value.message(1, |list| list.bytes(1, b"init")));
            });
            meta.message(5, |entry| {
                entry.bytes(1, b"__saved_model_init_op");
                entry.message(2, |signature| {
                    signature.message(2, |output| {
                        output.bytes(1, b"__saved_model_init_op");
                        output.message(2, |info| {
                            info.bytes(1, b"init");
                            info.bytes(3, &shape_proto(&Shape::unknown()));
                        });
                    });
                });
            });
            for called in signatures {
                meta.message(5, |entry| {
                    entry.bytes(1, called.traced.name.as_bytes());
                    entry.message(2, |signature| called.write_signature(signature));
                });
            }
            outer.tables.write_files(meta, &outer.files);
            meta.bytes(7, objects);
        });
        Ok(out.into_bytes())
    }
}

/// The file that makes a folder a model.
pub(super) const MODEL: &str = "saved_model.pb";

/// Deletes the fingerprint of a model that is replaced in its folder: nothing reads a wrong one then.
pub(super) fn delete_fingerprint(folder: &Path) {
    let _ = std::fs::remove_file(folder.join("fingerprint.pb"));
}

/// Whether a name in a model's folder is of the model, and not of somebody else.
pub(super) fn is_of_model(name: &OsStr) -> bool {
    let names = ["assets", "fingerprint.pb", MODEL, "variables"];
    names.iter().any(|own| *own == name)
}
