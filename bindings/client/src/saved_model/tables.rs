//! Lookup tables of a model that is made here: functions that make and fill them, and their files.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use tfp_core::wire::Writer;
use tfp_core::{Context, DataType, Error, Graph, Result, Session, Shape, Tensor};
use tfp_ops::{initialize_table_v2, lookup_table_import_v2};

use super::trace::{Traced, trace};
use crate::context::any::Mode;
use crate::context::value::AnyValue;
use crate::files;
use crate::files::file_error;
use crate::table::LookupTable;

/// What a model has of a table.
#[derive(Debug)]
pub(super) struct TableParts {
    /// The name that makes it one table wherever it is made.
    pub(super) shared_name: String,
    pub(super) create: Traced,
    pub(super) initialize: Traced,
}

/// The tables of a model and the files that fill them.
#[derive(Debug, Default)]
pub(super) struct Tables {
    pub(super) parts: Vec<TableParts>,
    pub(super) files: Vec<ModelFile>,
}

/// A file beside a model.
#[derive(Debug)]
pub(super) struct ModelFile {
    from: PathBuf,
    /// Its name in the model's folder of files.
    pub(super) name: String,
    /// What stands for its path where a function captures that.
    pub(super) path: AnyValue,
}

impl Tables {
    /// Makes the functions of tables, with the contents that they have now: in a session those of
    /// tables of a graph.
    pub(super) fn new(
        tables: &BTreeMap<String, LookupTable>,
        session: Option<&Session>,
    ) -> Result<Self> {
        let mut made = Self::default();
        for (path, table) in tables {
            let shared_name = format!("table_{}", path.replace('/', "_"));
            let create = trace(&format!("create_{path}"), &[], |func, _| {
                let place = func.with_scope(|scope| scope.named("table"));
                let table = table.resource_in(&place, &shared_name)?;
                Ok(vec![("table".to_owned(), table)])
            })?;
            let file = table.file().map(|file| made.file(&file.path)).transpose()?;
            // Those of a file are in the file.
            let contents = match file {
                Some(_) => None,
                None => Some(table.contents(session)?),
            };
            let initialize = trace(&format!("initialize_{path}"), &[], |func, _| {
                let any = func.any();
                match (&contents, table.file(), file) {
                    (Some((keys, values)), ..) if table.is_mutable() => {
                        lookup_table_import_v2(&any, table.handle(), keys, values)?;
                    }
                    (Some((keys, values)), ..) => {
                        initialize_table_v2(&any, table.handle(), keys, values)?;
                    }
                    (None, Some(file), Some(number)) => {
                        file.fill(&any, table.handle(), &made.files[number].path)?;
                    }
                    (None, ..) => {}
                }
                // Python's functions that fill return one.
                let done = func.scope().constant(&Tensor::scalar(1_i32)?)?;
                Ok(vec![("done".to_owned(), done)])
            })?;
            made.parts.push(TableParts {
                shared_name,
                create,
                initialize,
            });
        }
        Ok(made)
    }

    /// Returns the number of a file, which is new if no table had it yet.
    fn file(&mut self, from: &Path) -> Result<usize> {
        if let Some(known) = self.files.iter().position(|file| file.from == from) {
            return Ok(known);
        }
        let Some(wanted) = from.file_name().map(|name| name.to_string_lossy()) else {
            return Err(Error::argument(format!(
                "'{}' is not the path of a file",
                from.display()
            )));
        };
        let taken: BTreeSet<&str> = self.files.iter().map(|file| file.name.as_str()).collect();
        let (mut name, mut number) = (wanted.to_string(), 0);
        while taken.contains(name.as_str()) {
            number += 1;
            name = format!("{number}_{wanted}");
        }
        let scope = Graph::new()?.scope();
        let path = scope.placeholder("file", DataType::STRING, &Shape::scalar())?;
        self.files.push(ModelFile {
            from: from.to_owned(),
            name,
            path: path.into(),
        });
        Ok(self.files.len() - 1)
    }

    /// Copies the files into a model's folder.
    pub(super) fn copy_files(&self, folder: &Path) -> Result<()> {
        if self.files.is_empty() {
            return Ok(());
        }
        let assets = folder.join("assets");
        std::fs::create_dir_all(&assets)
            .map_err(|error| file_error(&assets, format!("it can't be written: {error}")))?;
        for file in &self.files {
            files::copy(&file.from, &assets.join(&file.name))?;
        }
        Ok(())
    }

    /// Writes the files of a `MetaGraphDef`, whose paths are fed to constants of the graph.
    pub(super) fn write_files(&self, meta: &mut Writer, constants: &[String]) {
        for (file, constant) in self.files.iter().zip(constants) {
            meta.message(6, |asset| {
                asset.message(1, |tensor| tensor.bytes(1, constant.as_bytes()));
                asset.bytes(2, file.name.as_bytes());
            });
        }
    }
}
