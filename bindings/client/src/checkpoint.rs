//! Checkpoints: variables in files, which Python reads and writes too.

mod bundle;
mod entry;
mod objects;
mod table;

pub use bundle::{CheckpointReader, write_tensors};
pub(crate) use bundle::{host, index_path};
use objects::{Attribute, attribute_key};
pub(crate) use objects::{OBJECT_GRAPH_KEY, Object, Objects, VALUE, value_key};
pub(crate) use table::masked_crc;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, Ordering};

use tfp_core::{Error, ErrorKind, Result, Session, Tensor};

use crate::files::{file_error, read_file};
use crate::variable::{Variable, set_in, values_in};

/// Where the number of saves is kept, as Python does.
const COUNTER: &str = "save_counter";

/// The attribute of an object that is a reading of a dataset, and what follows its key in that of the
/// tensor.
const READING: &str = "ITERATOR";
const STATE: &str = "_STATE";

/// Something else than a variable whose state a checkpoint holds.
pub(crate) trait Stateful: fmt::Debug + Send + Sync {
    /// Returns the state, on the host.
    fn state(&self) -> Result<Tensor>;

    /// Goes on from a state.
    fn set_state(&self, state: &Tensor) -> Result<()>;
}

/// Variables by their place in a tree, as `model/dense/kernel`, and readings of datasets
/// ([`Elements::track`](crate::data::Elements::track)).
///
/// The files are those of `tf.train.Checkpoint` in Python: `Checkpoint(model=model)` there is a tree
/// with everything of the model below `model`, and each restores what the other wrote.
#[derive(Debug, Default)]
pub struct Checkpoint {
    variables: BTreeMap<String, Variable>,
    states: BTreeMap<String, Box<dyn Stateful>>,
    saves: AtomicI64,
}

/// What a checkpoint had besides the variables that were restored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Restored {
    /// Paths of variables in the file that nothing took.
    pub unused: Vec<String>,
    /// Paths of variables and readings that the file does not have; they keep their values.
    pub missing: Vec<String>,
}

/// Where the values of variables are.
enum Place<'s> {
    Eager,
    Session(&'s Session),
}

impl<'s> Place<'s> {
    fn of(session: Option<&'s Session>) -> Self {
        session.map_or(Self::Eager, Self::Session)
    }
}

impl Checkpoint {
    /// Makes an empty tree.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a variable at a path of names with slashes in between.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`] for a path that is taken, or has an empty name in it.
    pub fn add(&mut self, path: &str, variable: &Variable) -> Result<()> {
        self.check_free(path)?;
        self.variables.insert(path.to_owned(), variable.clone());
        Ok(())
    }

    /// Adds something else with a state.
    pub(crate) fn add_state(&mut self, path: &str, of: Box<dyn Stateful>) -> Result<()> {
        self.check_free(path)?;
        self.states.insert(path.to_owned(), of);
        Ok(())
    }

    fn check_free(&self, path: &str) -> Result<()> {
        if path.split('/').any(str::is_empty) {
            return Err(Error::argument(format!(
                "{path:?} is no path of a variable in a checkpoint: expected names with slashes between"
            )));
        }
        for (what, is_taken) in [
            ("variable", self.variables.contains_key(path)),
            ("reading", self.states.contains_key(path)),
        ] {
            if is_taken {
                return Err(Error::argument(format!(
                    "the checkpoint has a {what} at '{path}' already"
                )));
            }
        }
        Ok(())
    }

    /// Returns the variables by their paths.
    pub fn variables(&self) -> impl Iterator<Item = (&str, &Variable)> {
        let all = self.variables.iter();
        all.map(|(path, variable)| (path.as_str(), variable))
    }

    /// Writes the values of variables of an eager context. A checkpoint that is there is replaced once
    /// the new one is whole, and stays as it is when writing fails or the process ends.
    ///
    /// # Errors
    /// [`ErrorKind::Foreign`] for a variable of a graph, and TensorFlow's status for one without a
    /// value or a folder that can't be written.
    pub fn write(&self, prefix: impl AsRef<Path>) -> Result<()> {
        self.write_place(&Place::Eager, prefix.as_ref(), &[])
    }

    /// Writes the values that a session has for variables of its graph.
    ///
    /// # Errors
    /// As for [`Self::write`].
    pub fn write_from(&self, session: &Session, prefix: impl AsRef<Path>) -> Result<()> {
        self.write_place(&Place::Session(session), prefix.as_ref(), &[])
    }

    /// Writes the values of variables of a session's graph, or of an eager context without one, and
    /// tensors at paths of their own.
    pub(crate) fn write_with(
        &self,
        session: Option<&Session>,
        prefix: &Path,
        tensors: &[(&str, Tensor)],
    ) -> Result<()> {
        self.write_place(&Place::of(session), prefix, tensors)
    }

    /// Reads what [`Self::write_with`] wrote, of which no variable may be missing, and returns the
    /// tensors that there are.
    pub(crate) fn read_with(
        &self,
        session: Option<&Session>,
        prefix: &Path,
        paths: &[&str],
    ) -> Result<Vec<Option<Tensor>>> {
        let reader = CheckpointReader::open(prefix)?;
        let objects = read_objects(&reader)?;
        let tensor = |path: &&str| {
            let object = objects.find(path);
            let attribute = object.and_then(|object| object.attributes.get(VALUE));
            attribute
                .map(|attribute| reader.read(&attribute.key))
                .transpose()
        };
        let found = paths.iter().map(tensor).collect::<Result<_>>()?;
        self.restore_place(&Place::of(session), prefix, true)?;
        Ok(found)
    }

    /// Writes with the next number after the prefix, and notes it as the folder's latest checkpoint.
    ///
    /// Returns the prefix with the number.
    ///
    /// # Errors
    /// As for [`Self::write`], and [`ErrorKind::File`].
    pub fn save(&self, prefix: impl AsRef<Path>) -> Result<PathBuf> {
        self.save_place(&Place::Eager, prefix.as_ref())
    }

    /// Does the same with the values that a session has.
    ///
    /// # Errors
    /// As for [`Self::save`].
    pub fn save_from(&self, session: &Session, prefix: impl AsRef<Path>) -> Result<PathBuf> {
        self.save_place(&Place::Session(session), prefix.as_ref())
    }

    fn save_place(&self, place: &Place<'_>, prefix: &Path) -> Result<PathBuf> {
        let number = self.saves.load(Ordering::SeqCst).checked_add(1);
        let number = number.ok_or_else(|| Error::argument("the checkpoint was saved too often"))?;
        let mut numbered = prefix.as_os_str().to_owned();
        numbered.push(format!("-{number}"));
        let numbered = PathBuf::from(numbered);
        self.write_place(place, &numbered, &[(COUNTER, Tensor::scalar(number)?)])?;
        self.saves.store(number, Ordering::SeqCst);
        let folder = prefix.parent().unwrap_or(Path::new(""));
        let state = folder.join("checkpoint");
        let name = numbered.file_name().unwrap_or_default().to_string_lossy();
        let name = name.replace('\\', "\\\\").replace('"', "\\\"");
        let text =
            format!("model_checkpoint_path: \"{name}\"\nall_model_checkpoint_paths: \"{name}\"\n");
        crate::files::write(&state, text.as_bytes())?;
        Ok(numbered)
    }

    fn write_place(&self, place: &Place<'_>, prefix: &Path, more: &[(&str, Tensor)]) -> Result<()> {
        let list: Vec<Variable> = self.variables.values().cloned().collect();
        let mut values = match place {
            Place::Eager => list
                .iter()
                .map(Variable::to_tensor)
                .collect::<Result<_>>()?,
            Place::Session(session) => values_in(session, &list)?,
        };
        let mut paths: Vec<&str> = self.variables.keys().map(String::as_str).collect();
        let mut names: Vec<&str> = list.iter().map(Variable::name).collect();
        for (path, tensor) in more {
            paths.push(path);
            names.push(path);
            values.push(tensor.share()?);
        }
        let mut objects = Objects::of_paths(paths.iter().copied().zip(names));
        let mut keys: Vec<String> = paths.iter().map(|path| value_key(path)).collect();
        for (path, of) in &self.states {
            let key = attribute_key(path, READING);
            keys.push(format!("{key}{STATE}"));
            let full_name = String::new();
            let at = objects.make(path);
            let attributes = &mut objects.0[at].attributes;
            attributes.insert(READING.to_owned(), Attribute { key, full_name });
            values.push(of.state()?);
        }
        let mut named: Vec<(&str, &Tensor)> =
            keys.iter().map(String::as_str).zip(&values).collect();
        let graph = Tensor::from_string(objects.write())?;
        named.push((OBJECT_GRAPH_KEY, &graph));
        write_tensors(prefix, &named)
    }

    /// Gives variables of an eager context the values of a checkpoint.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a checkpoint that is missing, [`ErrorKind::File`] for one that is
    /// damaged, [`ErrorKind::DType`] and [`ErrorKind::Shape`] for a value that does not fit its variable;
    /// nothing is changed then.
    pub fn restore(&self, prefix: impl AsRef<Path>) -> Result<Restored> {
        self.restore_place(&Place::Eager, prefix.as_ref(), false)
    }

    /// Gives variables of a session's graph the values of a checkpoint.
    ///
    /// # Errors
    /// As for [`Self::restore`].
    pub fn restore_into(&self, session: &Session, prefix: impl AsRef<Path>) -> Result<Restored> {
        self.restore_place(&Place::Session(session), prefix.as_ref(), false)
    }

    /// Restores; with `is_whole`, a checkpoint that lacks a variable changes nothing.
    fn restore_place(&self, place: &Place<'_>, prefix: &Path, is_whole: bool) -> Result<Restored> {
        let reader = CheckpointReader::open(prefix)?;
        let objects = read_objects(&reader)?;
        let mut restored = Restored::default();
        let (mut found, mut keys) = (Vec::new(), Vec::new());
        for (path, variable) in &self.variables {
            let object = objects.find(path);
            match object.and_then(|object| object.attributes.get(VALUE)) {
                Some(attribute) => {
                    found.push(variable);
                    keys.push(attribute.key.as_str());
                }
                None => restored.missing.push(path.clone()),
            }
        }
        let mut states = Vec::new();
        for (path, of) in &self.states {
            let object = objects.find(path);
            match object.and_then(|object| object.attributes.get(READING)) {
                Some(attribute) => {
                    states.push((of, reader.read(&format!("{}{STATE}", attribute.key))?));
                }
                None => restored.missing.push(path.clone()),
            }
        }
        restored.missing.sort();
        let taken: BTreeSet<&str> = keys.iter().copied().collect();
        let mut saves = None;
        for (at, path) in objects.paths() {
            let Some(attribute) = objects.0[at].attributes.get(VALUE) else {
                continue;
            };
            if path == COUNTER {
                saves = Some(reader.read(&attribute.key)?.to_scalar::<i64>()?);
            } else if !taken.contains(attribute.key.as_str()) {
                restored.unused.push(path);
            }
        }
        restored.unused.sort();
        if is_whole {
            restored = restored.complete()?;
        }
        let tensors = reader.read_all(&keys)?;
        for (variable, tensor) in found.iter().zip(&tensors) {
            variable.check_tensor(tensor)?;
        }
        let pairs: Vec<(&Variable, &Tensor)> = found.iter().copied().zip(&tensors).collect();
        match place {
            Place::Eager => pairs.iter().try_for_each(|(v, tensor)| v.set(tensor))?,
            Place::Session(session) => set_in(session, &pairs)?,
        }
        for (of, state) in states {
            of.set_state(&state)?;
        }
        if let Some(number) = saves {
            self.saves.store(number, Ordering::SeqCst);
        }
        Ok(restored)
    }
}

impl Restored {
    /// Refuses a checkpoint that lacks a variable.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`], with what the checkpoint has that nothing took.
    pub fn complete(self) -> Result<Self> {
        match self.missing.first() {
            None => Ok(self),
            Some(_) => Err(Error::new(ErrorKind::NotFound {
                what: "variable",
                name: self.missing.join("', '"),
                place: format!(
                    "the checkpoint; not used of it: {}",
                    if self.unused.is_empty() {
                        "nothing".to_owned()
                    } else {
                        self.unused.join(", ")
                    }
                ),
            })),
        }
    }
}

/// Reads the object graph of a checkpoint.
pub(crate) fn read_objects(reader: &CheckpointReader) -> Result<Objects> {
    let path = index_path(reader.prefix());
    if reader.entry(OBJECT_GRAPH_KEY).is_none() {
        return Err(file_error(
            &path,
            "it holds tensors by name and no objects; CheckpointReader reads it",
        ));
    }
    let tensor = reader.read(OBJECT_GRAPH_KEY)?;
    let strings = tensor.as_strings()?;
    let bytes = strings.first().copied().unwrap_or_default();
    Objects::read(bytes).map_err(|error| file_error(&path, error.to_string()))
}

/// Returns the prefix of a folder's latest checkpoint, which its file `checkpoint` names.
///
/// # Errors
/// [`ErrorKind::NotFound`] when that file is missing, [`ErrorKind::File`] when it names none.
pub fn latest_checkpoint(folder: impl AsRef<Path>) -> Result<PathBuf> {
    let folder = folder.as_ref();
    let path = folder.join("checkpoint");
    let text = String::from_utf8_lossy(&read_file(&path)?).into_owned();
    let name = text.lines().find_map(|line| {
        let quoted = line.trim().strip_prefix("model_checkpoint_path:")?.trim();
        let name = quoted.strip_prefix('"')?.strip_suffix('"')?;
        Some(name.replace("\\\"", "\"").replace("\\\\", "\\"))
    });
    name.map(|name| folder.join(name))
        .ok_or_else(|| file_error(&path, "it names no checkpoint"))
}
