//! Files of named tensors: what every checkpoint consists of.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use tfp_core::wire::{Reader, Writer};
use tfp_core::{DataType, EagerContext, Error, ErrorKind, Result, Shape, Tensor};
use tfp_ops::{restore_v2, save_v2};

use super::entry::{Entry, read_entry};
use super::table::{read_table, write_table};
use crate::files::{self, Beside, file_error, folder_of, read_file, unwritten};

/// A checkpoint that is open for reading: tensors by name.
///
/// Reads what `tf.train.Checkpoint`, `tf.compat.v1.train.Saver` and [`write_tensors`] write; the
/// names are those of the variables, or keys of objects (see [`Checkpoint`](super::Checkpoint)).
#[derive(Clone, Debug)]
pub struct CheckpointReader {
    prefix: PathBuf,
    entries: BTreeMap<String, Entry>,
}

/// The context on which files are read and written.
pub(crate) fn host() -> Result<EagerContext> {
    static HOST: Mutex<Option<EagerContext>> = Mutex::new(None);
    let mut host = HOST
        .lock()
        .unwrap_or_else(std::sync::PoisonError::into_inner);
    if let Some(context) = &*host {
        return Ok(context.clone());
    }
    let context = EagerContext::new()?.on_device("/device:CPU:0")?;
    Ok(host.insert(context).clone())
}

fn text(path: &Path) -> Result<&str> {
    path.to_str()
        .ok_or_else(|| file_error(path, "the name of a checkpoint must be UTF-8"))
}

/// Returns the path of a checkpoint's index.
pub(crate) fn index_path(prefix: &Path) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(".index");
    name.into()
}

impl CheckpointReader {
    /// Opens the checkpoint with a prefix: the path without `.index`.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] when there is none, [`ErrorKind::File`] when it is damaged; both name the
    /// file.
    pub fn open(prefix: impl AsRef<Path>) -> Result<Self> {
        let prefix = prefix.as_ref().to_owned();
        let path = index_path(&prefix);
        let table = read_table(&read_file(&path)?).map_err(|problem| file_error(&path, problem))?;
        let mut entries = BTreeMap::new();
        let mut parts = Vec::new();
        for (key, value) in table {
            // The empty key holds the header.
            if key.is_empty() {
                continue;
            }
            let name = String::from_utf8_lossy(&key).into_owned();
            let entry = read_entry(&value)
                .map_err(|problem| file_error(&path, format!("the tensor {name:?}: {problem}")))?;
            // Keys that begin with zero hold parts of tensors.
            if key.first() == Some(&0) {
                parts.push((key, entry.dtype));
            } else {
                entries.insert(name, entry);
            }
        }
        for (name, entry) in entries.iter().filter(|(_, entry)| entry.is_sliced) {
            let start = start_of_parts(name);
            let mut dtypes = parts.iter().filter(|(key, _)| key.starts_with(&start));
            if let Some((_, dtype)) = dtypes.find(|(_, dtype)| *dtype != entry.dtype) {
                let problem = format!("the tensor {name:?} is {}, a part {dtype}", entry.dtype);
                return Err(file_error(&path, problem));
            }
        }
        Ok(Self { prefix, entries })
    }

    /// Returns the prefix.
    #[must_use]
    pub fn prefix(&self) -> &Path {
        &self.prefix
    }

    /// Returns the name, element type and shape of every tensor, sorted by name.
    pub fn entries(&self) -> impl Iterator<Item = (&str, DataType, &Shape)> {
        let entries = self.entries.iter();
        entries.map(|(name, entry)| (name.as_str(), entry.dtype, &entry.shape))
    }

    /// Returns the element type and shape of a tensor, if there is one of the name.
    #[must_use]
    pub fn entry(&self, name: &str) -> Option<(DataType, &Shape)> {
        let entry = self.entries.get(name)?;
        Some((entry.dtype, &entry.shape))
    }

    /// Reads a tensor.
    ///
    /// # Errors
    /// As for [`Self::read_all`].
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let tensors = self.read_all(&[name])?;
        let first = tensors.into_iter().next();
        first.ok_or_else(|| file_error(&self.prefix, "TensorFlow read no tensor"))
    }

    /// Reads tensors, in the order of the names.
    ///
    /// # Errors
    /// [`ErrorKind::NotFound`] for a name that is not there, [`ErrorKind::File`] for a tensor that is
    /// larger than the files, and TensorFlow's status for damaged data.
    pub fn read_all(&self, names: &[&str]) -> Result<Vec<Tensor>> {
        let mut dtypes = Vec::with_capacity(names.len());
        let mut most = None;
        for name in names {
            let Some(entry) = self.entries.get(*name) else {
                return Err(Error::new(ErrorKind::NotFound {
                    what: "tensor",
                    name: (*name).to_owned(),
                    place: format!("checkpoint '{}'", self.prefix.display()),
                }));
            };
            // TensorFlow makes room for a tensor before it looks for its bytes.
            let most = *most.get_or_insert_with(|| bytes_of_data(&self.prefix));
            if entry.bytes > most {
                return Err(file_error(
                    &self.prefix,
                    format!(
                        "the tensor {name:?} takes {} bytes, and the files with data have {most}",
                        entry.bytes
                    ),
                ));
            }
            dtypes.push(entry.dtype);
        }
        if names.is_empty() {
            return Ok(Vec::new());
        }
        let slices = vec![""; names.len()];
        let values = restore_v2(&host()?, text(&self.prefix)?, names, &slices[..], &dtypes)?;
        values
            .iter()
            .map(tfp_core::TensorHandle::to_tensor)
            .collect()
    }
}

/// Writes tensors by name as a checkpoint, which replaces one that is there once it is whole: whoever
/// reads meanwhile, or after the process has ended in between, finds the old one.
///
/// With the names of variables this is what `tf.compat.v1.train.Saver` restores.
///
/// # Errors
/// [`ErrorKind::File`] for a folder that can't be made, and what TensorFlow says.
pub fn write_tensors(prefix: impl AsRef<Path>, tensors: &[(&str, &Tensor)]) -> Result<()> {
    let prefix = prefix.as_ref();
    let beside = Beside::new(prefix)?;
    let part = beside.path().join("part");
    let names: Vec<&str> = tensors.iter().map(|(name, _)| *name).collect();
    let slices = vec![""; names.len()];
    let values: Vec<&Tensor> = tensors.iter().map(|(_, tensor)| *tensor).collect();
    save_v2(&host()?, text(&part)?, &names[..], &slices[..], values)?;

    // The index names the data by the number of its files: another number than the old one's makes
    // another name, so that the rename of the index alone replaces the checkpoint.
    let count = if count_of_files(prefix) == Some(1) {
        2
    } else {
        1
    };
    let (made, index) = (data_path(&part, 1), index_path(&part));
    let mut table =
        read_table(&read_file(&index)?).map_err(|problem| file_error(&index, problem))?;
    if let Some(header) = table.get_mut(&[][..]) {
        *header = with_count(header, count)?;
    }
    files::write_new(&index, &write_table(&table)).map_err(unwritten(&index))?;
    files::flush(&made)?;
    let data = data_path(prefix, count);
    files::rename(&made, &data)?;
    files::rename(&index, &index_path(prefix))?;
    delete_others(prefix, &data);
    Ok(())
}

/// Returns the path of the first of a checkpoint's files with data.
fn data_path(prefix: &Path, count: i64) -> PathBuf {
    let mut name = prefix.as_os_str().to_owned();
    name.push(format!(".data-00000-of-{count:05}"));
    name.into()
}

/// Returns how many files with data a checkpoint has, if there is one that can be read.
fn count_of_files(prefix: &Path) -> Option<i64> {
    let table = read_table(&std::fs::read(index_path(prefix)).ok()?).ok()?;
    let header = table.get(&[][..])?;
    let mut fields = Reader::new("BundleHeaderProto", header).map_while(Result::ok);
    fields.find_map(|(number, value)| (number == 1).then(|| value.int().ok())?)
}

/// Changes the number of files in a `BundleHeaderProto`.
fn with_count(header: &[u8], count: i64) -> Result<Vec<u8>> {
    let mut out = Writer::new();
    out.int(1, count);
    for field in Reader::new("BundleHeaderProto", header) {
        match field? {
            (2, endianness) => out.int(2, endianness.int()?),
            (3, version) => out.bytes(3, version.bytes()?),
            _ => {}
        }
    }
    Ok(out.into_bytes())
}

/// Returns how the keys of a tensor's parts begin: a zero, and its name with an end.
fn start_of_parts(name: &str) -> Vec<u8> {
    let mut key = vec![0];
    for &byte in name.as_bytes() {
        key.push(byte);
        match byte {
            0 => key.push(0xff),
            0xff => key.push(0),
            _ => {}
        }
    }
    key.extend([0, 1]);
    key
}

/// Returns how many bytes the files with data have.
fn bytes_of_data(prefix: &Path) -> u64 {
    let files = files_of_data(prefix);
    files
        .filter_map(|file| std::fs::metadata(file.path()).ok())
        .fold(0, |sum, file| sum.saturating_add(file.len()))
}

/// Returns the files with data beside a prefix, such as `PREFIX.data-00000-of-00001`.
fn files_of_data(prefix: &Path) -> impl Iterator<Item = std::fs::DirEntry> {
    let entries = std::fs::read_dir(folder_of(prefix)).into_iter().flatten();
    entries.flatten().filter(|entry| {
        let name = entry.file_name();
        let start = prefix.file_name().unwrap_or_default().as_encoded_bytes();
        let rest = name.as_encoded_bytes().strip_prefix(start);
        rest.is_some_and(|rest| {
            rest.len() == 20
                && rest
                    .iter()
                    .zip(b".data-00000-of-00000")
                    .all(|(byte, sample)| {
                        byte == sample || (*sample == b'0' && byte.is_ascii_digit())
                    })
        })
    })
}

/// Deletes the data of checkpoints that were replaced. What can't be deleted the next save deletes.
fn delete_others(prefix: &Path, data: &Path) {
    for file in files_of_data(prefix) {
        if Some(file.file_name().as_os_str()) != data.file_name() {
            let _ = std::fs::remove_file(file.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use tfp_core::wire::Writer;

    use super::super::table::write_table;
    use super::{CheckpointReader, index_path, start_of_parts};

    /// An entry of a type with the shape [2]; `slice` says that it is in parts.
    fn entry(dtype: i64, slice: bool) -> Vec<u8> {
        let mut out = Writer::new();
        out.int(1, dtype);
        out.message(2, |out| out.message(2, |out| out.int(1, 2)));
        if slice {
            out.message(7, |out| out.message(1, |out| out.int(2, 2)));
        } else {
            out.int(5, if dtype == 1 { 8 } else { 16 });
        }
        out.into_bytes()
    }

    /// TensorFlow ends the process where a part has another type than its tensor.
    #[test]
    fn parts_have_the_type_of_their_tensor() {
        let folder = std::env::temp_dir().join(format!("tfp_parts_{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let prefix = folder.join("ck");
        let part = [&start_of_parts("w")[..], &[1, 1, 0x80, 0x82]].concat();
        for (dtype, is_taken) in [(1, true), (9, false)] {
            let table = BTreeMap::from([
                (b"w".to_vec(), entry(1, true)),
                (part.clone(), entry(dtype, false)),
            ]);
            std::fs::write(index_path(&prefix), write_table(&table)).unwrap();
            let found = CheckpointReader::open(&prefix);
            assert_eq!(found.is_ok(), is_taken, "{found:?}");
        }
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn names_in_keys_have_an_end() {
        assert_eq!(start_of_parts("a\0b"), b"\0a\0\xffb\0\x01");
    }
}
