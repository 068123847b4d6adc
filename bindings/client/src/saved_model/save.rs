//! A model that was loaded and changed, written back.

use std::collections::BTreeMap;
use std::path::Path;

use tfp_core::{Error, Result, Tensor};

use super::load::{Model, variables_prefix};
use super::write::{MODEL, delete_fingerprint, is_of_model};
use crate::checkpoint::{CheckpointReader, index_path, read_objects, write_tensors};
use crate::files::{self, file_error, replace_folder};

impl Model {
    /// Writes the model to another folder, with the values that its variables have now.
    ///
    /// Everything else (graph, signatures, objects, files beside it) is copied as it is, so Python
    /// loads it as it loaded the original. A model that is there is replaced as
    /// [`ModelWriter::write`](crate::ModelWriter::write) does it.
    ///
    /// # Errors
    /// [`ErrorKind::File`](tfp_core::ErrorKind::File) for what can't be read or written and for a link
    /// to what is not in the model's folder, and
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for the folder that it was loaded from
    /// and what is in it.
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<()> {
        let mut changed = BTreeMap::new();
        if !self.variables_by_node().is_empty() {
            let reader = CheckpointReader::open(variables_prefix(&self.folder))?;
            let keys = self.checkpoint_keys(&read_objects(&reader)?, &reader)?;
            for (at, key) in keys {
                let at = self.copies.get(&at).unwrap_or(&at);
                changed.insert(key, self.variables_by_node()[at].to_tensor()?);
            }
        }
        save_with(&self.folder, folder.as_ref(), &changed)
    }
}

/// Copies a model's folder, with other values of some variables.
pub(super) fn save_with(
    from: &Path,
    folder: &Path,
    changed: &BTreeMap<String, Tensor>,
) -> Result<()> {
    let real = |path: &Path| path.canonicalize().ok();
    // The part of the new folder's path that is there already.
    let there = std::path::absolute(folder).ok();
    let there = there.and_then(|path| path.ancestors().find_map(real));
    if let (Some(there), Some(from)) = (there, real(from))
        && there.starts_with(&from)
    {
        return Err(Error::argument(format!(
            "the model was loaded from '{}': save it outside of that folder, not to '{}'",
            from.display(),
            folder.display()
        )));
    }
    let prefix = variables_prefix(from);
    replace_folder(folder, is_of_model, |folder| {
        if index_path(&prefix).is_file() {
            rewrite(&prefix, &variables_prefix(folder), changed)?;
        }
        // Last, so that a folder with the model's file has its variables.
        copy_model(from, folder)
    })
}

/// Writes the tensors of a checkpoint again, some of them with other values.
fn rewrite(from: &Path, to: &Path, changed: &BTreeMap<String, Tensor>) -> Result<()> {
    let reader = CheckpointReader::open(from)?;
    let rest: Vec<&str> = reader
        .entries()
        .map(|(name, ..)| name)
        .filter(|name| !changed.contains_key(*name))
        .collect();
    let values = reader.read_all(&rest)?;
    let mut all: BTreeMap<&str, &Tensor> = rest.into_iter().zip(&values).collect();
    all.extend(changed.iter().map(|(key, tensor)| (key.as_str(), tensor)));
    let list: Vec<(&str, &Tensor)> = all.into_iter().collect();
    write_tensors(to, &list)
}

/// Copies a model's folder without the values of its variables, and without the fingerprint, which
/// covers them. The model's own file comes last.
fn copy_model(from: &Path, to: &Path) -> Result<()> {
    let root = from
        .canonicalize()
        .map_err(|error| uncopied(from, &error))?;
    copy_folder(&root, from, to, &["fingerprint.pb", "variables", MODEL])?;
    delete_fingerprint(to);
    let (model, source) = (to.join(MODEL), from.join(MODEL));
    match source.try_exists() {
        Ok(false) => Ok(()),
        _ => files::copy(&source, &model),
    }
}

fn uncopied(path: &Path, problem: &dyn std::fmt::Display) -> Error {
    file_error(path, format!("it can't be copied: {problem}"))
}

/// Copies files and folders that are in `root`.
fn copy_folder(root: &Path, from: &Path, to: &Path, without: &[&str]) -> Result<()> {
    std::fs::create_dir_all(to).map_err(|error| uncopied(to, &error))?;
    for entry in std::fs::read_dir(from).map_err(|error| uncopied(from, &error))? {
        let entry = entry.map_err(|error| uncopied(from, &error))?;
        let (name, path) = (entry.file_name(), entry.path());
        if without.iter().any(|other| *other == name) {
            continue;
        }
        let kind = entry.file_type().map_err(|error| uncopied(&path, &error))?;
        if kind.is_dir() {
            copy_folder(root, &path, &to.join(name), &[])?;
            continue;
        }
        // A model from elsewhere may hold links to files of this machine.
        let real = path
            .canonicalize()
            .map_err(|error| uncopied(&path, &error))?;
        if !real.starts_with(root) || !real.is_file() {
            return Err(uncopied(
                &path,
                &format!(
                    "it leads to '{}', which is not a file in the model's folder; load a copy of the \
                     model that holds the files themselves, as `cp -rL` makes",
                    real.display()
                ),
            ));
        }
        files::copy(&real, &to.join(name))?;
    }
    Ok(())
}
