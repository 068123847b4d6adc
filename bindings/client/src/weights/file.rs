//! Files of tensors by name, of any format.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};

use tfp_core::{Code, DataType, Error, ErrorKind, Result, Tensor};

use super::layout;
use crate::checkpoint::{
    CheckpointReader, OBJECT_GRAPH_KEY, Objects, VALUE, host, index_path, read_objects,
};
use crate::files::{file_error, folder_of, read_file};
use crate::formats::json::Json;
use crate::formats::{hdf5, npy, safetensors, zip};
use crate::ops;
use crate::room;

/// Tensors by name in a file: safetensors (also several files with an index), NumPy's `.npz`, HDF5 as
/// far as Keras writes it, or a checkpoint of TensorFlow by its prefix. A tensor is read when it is asked
/// for.
///
/// In a checkpoint with objects, as Keras 3 writes it, a tensor has the name of its variable, such as
/// `sequential/dense/kernel`, and can also be asked for by its path in the tree of objects.
pub struct TensorFile {
    path: PathBuf,
    metadata: BTreeMap<String, String>,
    tensors: BTreeMap<String, Entry>,
    /// Files with bytes of tensors.
    parts: Vec<(PathBuf, File)>,
    checkpoint: Option<(CheckpointReader, Objects)>,
}

struct Entry {
    /// The element type, or the name of one that TensorFlow does not have.
    dtype: Result<DataType, String>,
    dims: Vec<i64>,
    place: Place,
}

enum Place {
    Bytes {
        part: usize,
        at: u64,
        length: u64,
        swapped: usize,
        is_fortran: bool,
    },
    /// In a checkpoint, under a key.
    Key(String),
    /// What was packed in the file.
    Read(Tensor),
}

impl TensorFile {
    /// Opens a file, whose first bytes say what it is, or the checkpoint with a prefix. An index of
    /// several safetensors files, `model.safetensors.index.json`, opens them all.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::File`] for one that is damaged or of no
    /// known format; both name the file, and what is damaged in it.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let mut file = Self {
            path: path.to_owned(),
            metadata: BTreeMap::new(),
            tensors: BTreeMap::new(),
            parts: Vec::new(),
            checkpoint: None,
        };
        if !path.is_file() && index_path(path).is_file() {
            file.open_checkpoint(path)?;
            return Ok(file);
        }
        let opened = open_part(path)?;
        let mut first = [0; 8];
        let length = opened.metadata().map_or(0, |found| found.len());
        let count = first.len().min(usize::try_from(length).unwrap_or(8));
        read_at(path, &opened, &mut first[..count], 0)?;
        let at_file = |error: Error| match error.kind() {
            ErrorKind::Argument { message } => file_error(path, message),
            _ => error,
        };
        match &first {
            [b'P', b'K', 3 | 5, ..] => file.open_npz(opened).map_err(at_file)?,
            b"\x89HDF\r\n\x1a\n" => file.open_hdf5(opened).map_err(at_file)?,
            _ if path.to_string_lossy().ends_with(".index.json") => file.open_index()?,
            _ if count == 8 => {
                file.open_safetensors(path, opened, first, length)
                    .map_err(at_file)?;
            }
            _ => {
                return Err(file_error(
                    path,
                    "it is too short for any format of weights",
                ));
            }
        }
        Ok(file)
    }

    /// Returns the path that was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the texts by key that describe a safetensors file.
    #[must_use]
    pub const fn metadata(&self) -> &BTreeMap<String, String> {
        &self.metadata
    }

    /// Returns the names of all tensors, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// Returns the element type and the dimensions of a tensor, if there is one of the name and of a type
    /// that TensorFlow has.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<(DataType, &[i64])> {
        let entry = self.tensors.get(self.resolve(name)?)?;
        Some((*entry.dtype.as_ref().ok()?, &entry.dims))
    }

    /// Returns the name under which a tensor is listed: of one in a checkpoint that is asked for by its
    /// path, that of its variable.
    pub(super) fn resolve<'n>(&'n self, name: &str) -> Option<&'n str> {
        if let Some((listed, _)) = self.tensors.get_key_value(name) {
            return Some(listed);
        }
        let (_, objects) = self.checkpoint.as_ref()?;
        let wanted = &objects.find(name)?.attributes.get(VALUE)?.key;
        let is_it = |entry: &Entry| matches!(&entry.place, Place::Key(key) if key == wanted);
        let found = self.tensors.iter().find(|(_, entry)| is_it(entry));
        found.map(|(listed, _)| listed.as_str())
    }

    pub(super) fn described(&self, name: &str) -> Result<(DataType, &[i64])> {
        let entry = self.entry_of(name)?;
        match &entry.dtype {
            Ok(dtype) => Ok((*dtype, &entry.dims)),
            Err(kind) => Err(self.error(format!(
                "the tensor '{name}' is of type {kind}, which TensorFlow does not have"
            ))),
        }
    }

    fn entry_of(&self, name: &str) -> Result<&Entry> {
        let found = self.resolve(name).and_then(|name| self.tensors.get(name));
        found.ok_or_else(|| {
            Error::new(ErrorKind::NotFound {
                what: "tensor",
                name: name.to_owned(),
                place: format!(
                    "'{}'; there are {}",
                    self.path.display(),
                    self.names().take(20).collect::<Vec<_>>().join(", ")
                ),
            })
        })
    }

    /// Reads a tensor.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a name that is not there; [`ErrorKind::File`], which names the tensor,
    /// for one of a type that TensorFlow does not have and for a file that can't be read; TensorFlow's
    /// status for a damaged checkpoint, and its code for more memory than there is.
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let (dtype, dims) = self.described(name)?;
        let (part, at, length, swapped, is_fortran) = match &self.entry_of(name)?.place {
            Place::Read(tensor) => return tensor.share(),
            Place::Key(key) => {
                let (reader, _) = self.checkpoint.as_ref().ok_or_else(|| {
                    self.error(format!("the tensor '{name}' is in no checkpoint"))
                })?;
                return reader.read(key);
            }
            &Place::Bytes {
                part,
                at,
                length,
                swapped,
                is_fortran,
            } => (part, at, length, swapped, is_fortran),
        };
        let (path, file) = &self.parts[part];
        let mut bytes = room::zeros(length)?;
        read_at(path, file, &mut bytes, at)
            .map_err(|error| self.error(format!("the tensor '{name}': {error}")))?;
        self.arranged(name, (dtype, dims), bytes, swapped, is_fortran)
    }

    /// Makes a tensor of the bytes of its elements in the file.
    fn arranged(
        &self,
        name: &str,
        (dtype, dims): (DataType, &[i64]),
        mut bytes: Vec<u8>,
        swapped: usize,
        is_fortran: bool,
    ) -> Result<Tensor> {
        layout::swap(&mut bytes, swapped);
        if is_fortran && dims.len() > 1 {
            let turned: Vec<i64> = dims.iter().rev().copied().collect();
            let axes: Vec<usize> = (0..dims.len()).rev().collect();
            bytes = layout::reorder(&bytes, dtype.size().unwrap_or(1), &turned, &axes)?;
        }
        if dtype == DataType::BOOL && bytes.iter().any(|&byte| byte > 1) {
            return Err(self.error(format!(
                "the tensor '{name}' is bool and has bytes that are neither 0 nor 1"
            )));
        }
        Tensor::from_bytes(dtype, &bytes, dims)
    }

    fn open_safetensors(
        &mut self,
        path: &Path,
        file: File,
        first: [u8; 8],
        length: u64,
    ) -> Result<()> {
        let size = safetensors::header_length(first, length).map_err(|error| {
            Error::argument(format!(
                "it is neither safetensors, npz nor HDF5, and no checkpoint has this prefix ({error})"
            ))
        })?;
        let mut header = room::zeros(size)?;
        read_at(path, &file, &mut header, 8)?;
        let begin = size + 8;
        let header = safetensors::read_header(&header, length - begin)?;
        self.metadata.extend(header.metadata);
        for entry in header.tensors {
            let place = Place::Bytes {
                part: self.parts.len(),
                at: begin + entry.at,
                length: entry.length,
                swapped: 0,
                is_fortran: false,
            };
            let (dtype, dims) = (entry.dtype, entry.dims);
            let made = Entry { dtype, dims, place };
            if self.tensors.insert(entry.name.clone(), made).is_some() {
                return Err(Error::argument(format!(
                    "the tensor '{}' is in two of its files",
                    entry.name
                )));
            }
        }
        self.parts.push((path.to_owned(), file));
        Ok(())
    }

    /// Opens the files that an index names.
    fn open_index(&mut self) -> Result<()> {
        let path = self.path.clone();
        let damaged =
            |problem: String| file_error(&path, format!("the index is damaged: {problem}"));
        let json = Json::parse(&read_file(&path)?).map_err(|error| match error.kind() {
            ErrorKind::Argument { message } => damaged(message.clone()),
            _ => error,
        })?;
        let Some(Json::Object(map)) = json.get("weight_map") else {
            return Err(damaged("it has no object 'weight_map'".to_owned()));
        };
        let mut files: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (tensor, file) in map {
            let name = file
                .text()
                .filter(|name| !name.contains('/') && *name != "..");
            let name = name.ok_or_else(|| damaged(format!("the file of '{tensor}'")))?;
            files.entry(name).or_default().push(tensor);
        }
        for (name, tensors) in files {
            let part = folder_of(&path).join(name);
            let at_part = |error: Error| match error.kind() {
                ErrorKind::Argument { message } => file_error(&part, message),
                _ => error,
            };
            let file = open_part(&part)?;
            let length = file.metadata().map_or(0, |found| found.len());
            let mut first = [0; 8];
            read_at(&part, &file, &mut first, 0)?;
            self.open_safetensors(&part, file, first, length)
                .map_err(at_part)?;
            if let Some(missing) = tensors.iter().find(|one| !self.tensors.contains_key(**one)) {
                return Err(file_error(
                    &part,
                    format!("it lacks the tensor '{missing}', which the index says is in it"),
                ));
            }
        }
        Ok(())
    }

    fn open_npz(&mut self, file: File) -> Result<()> {
        let bytes = read_file(&self.path)?;
        for member in zip::members(&bytes)? {
            let Some(name) = member.name.strip_suffix(".npy") else {
                continue;
            };
            let at_tensor = |error: Error| match error.code() {
                Code::ResourceExhausted => error,
                _ => self.error(format!("the tensor '{name}': {error}")),
            };
            let unpacked;
            let array = match member.method {
                0 => {
                    member.check().map_err(at_tensor)?;
                    member.packed
                }
                8 => {
                    let options = ops::DecodeCompressedOptions {
                        compression_type: Some("GZIP".into()),
                    };
                    let gzip = Tensor::from_string(member.to_gzip()?)?;
                    let made = ops::decode_compressed(&host()?, &gzip, options)
                        .and_then(|made| made.to_tensor())
                        .map_err(at_tensor)?;
                    unpacked = made;
                    unpacked.as_strings()?.first().copied().unwrap_or_default()
                }
                method => {
                    let problem = format!("it is packed by method {method}; 8 is known");
                    return Err(at_tensor(Error::argument(problem)));
                }
            };
            let header = npy::read_header(array).map_err(at_tensor)?;
            let elements = array.get(header.at as usize..).unwrap_or_default();
            let place = match (member.method, &header.dtype) {
                (8, &Ok(dtype)) => Place::Read(self.arranged(
                    name,
                    (dtype, &header.dims),
                    room::copied(elements)?,
                    header.swapped,
                    header.is_fortran,
                )?),
                _ => Place::Bytes {
                    part: 0,
                    at: member.at + header.at,
                    length: elements.len() as u64,
                    swapped: header.swapped,
                    is_fortran: header.is_fortran,
                },
            };
            let (dtype, dims) = (header.dtype, header.dims);
            let made = Entry { dtype, dims, place };
            self.tensors.insert(name.to_owned(), made);
        }
        self.parts.push((self.path.clone(), file));
        Ok(())
    }

    fn open_hdf5(&mut self, file: File) -> Result<()> {
        let bytes = read_file(&self.path)?;
        for (path, dtype, dims, range) in hdf5::Datasets::open(&bytes)?.places() {
            let place = Place::Bytes {
                part: 0,
                at: range.start,
                length: range.end - range.start,
                swapped: 0,
                is_fortran: false,
            };
            let (dtype, dims) = (Ok(dtype), dims.to_vec());
            let entry = Entry { dtype, dims, place };
            self.tensors.insert(path.to_owned(), entry);
        }
        self.parts.push((self.path.clone(), file));
        Ok(())
    }

    fn open_checkpoint(&mut self, prefix: &Path) -> Result<()> {
        let reader = CheckpointReader::open(prefix)?;
        let objects = match reader.entry(OBJECT_GRAPH_KEY) {
            Some(_) => read_objects(&reader)?,
            None => Objects::default(),
        };
        // Variables by their keys: the names that they have, and the shortest paths.
        let mut names: BTreeMap<&str, (&str, String)> = BTreeMap::new();
        for (at, path) in objects.paths() {
            let object = objects.0.get(at);
            if let Some(found) = object.and_then(|object| object.attributes.get(VALUE)) {
                names.insert(&found.key, (&found.full_name, path));
            }
        }
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for (name, _) in names.values() {
            *counts.entry(name).or_default() += 1;
        }
        for (key, dtype, shape) in reader.entries() {
            if key == OBJECT_GRAPH_KEY {
                continue;
            }
            let name = match names.get(key) {
                Some((name, _)) if !name.is_empty() && counts[name] == 1 => *name,
                Some((_, path)) => path,
                None => key,
            };
            let entry = Entry {
                dtype: Ok(dtype),
                dims: shape.dims().unwrap_or_default().to_vec(),
                place: Place::Key(key.to_owned()),
            };
            self.tensors.insert(name.to_owned(), entry);
        }
        self.checkpoint = Some((reader, objects));
        Ok(())
    }
}

impl fmt::Debug for TensorFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let count = self.tensors.len();
        write!(f, "TensorFile('{}', {count} tensors)", self.path.display())
    }
}

fn open_part(path: &Path) -> Result<File> {
    match File::open(path) {
        Ok(file) => Ok(file),
        // The same error as for a file that is read at once.
        Err(_) => {
            read_file(path)?;
            Err(file_error(path, "it can't be opened"))
        }
    }
}

fn read_at(path: &Path, file: &File, bytes: &mut [u8], at: u64) -> Result<()> {
    file.read_exact_at(bytes, at)
        .map_err(|error| file_error(path, format!("it can't be read: {error}")))
}
