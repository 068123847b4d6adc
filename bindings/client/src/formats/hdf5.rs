//! HDF5 files, as far as Keras writes them: superblock 0, groups with symbol tables, contiguous datasets
//! of numbers, and attributes that are texts. The format is that of the HDF Group's
//! specification, version 1.

mod attributes;

use std::collections::BTreeMap;
use std::ops::Range;

use tfp_core::{DataType, Error, Result, Tensor};

use self::attributes::Attribute;
use super::bytes::{Budget, Bytes};

const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";
/// An address that stands for nothing.
const NOWHERE: u64 = u64::MAX;
/// How deep groups may lie in each other, and trees.
const DEEPEST: usize = 64;
/// How many objects a file may have: a damaged one may lead in circles.
const MOST: usize = 1_000_000;

/// The datasets of a file, by path.
pub(crate) struct Datasets<'b> {
    found: BTreeMap<String, Dataset<'b>>,
    /// The attributes of groups, by path.
    attributes: BTreeMap<String, Vec<Attribute>>,
}

/// A dataset.
struct Dataset<'b> {
    dtype: DataType,
    dims: Vec<i64>,
    at: u64,
    bytes: &'b [u8],
}

impl<'b> Datasets<'b> {
    /// Reads the directory of a file.
    pub fn open(bytes: &'b [u8]) -> Result<Self> {
        let what = "the HDF5 file";
        let mut reader = Reader {
            file: Bytes { what, bytes },
            objects: 0,
            budget: Budget::of(bytes),
            found: BTreeMap::new(),
            attributes: BTreeMap::new(),
        };
        let file = reader.file;
        if !is_hdf5(bytes) {
            return Err(Error::argument("the weights are not an HDF5 file"));
        }
        let (version, sizes) = (file.number(8, 1)?, file.number(13, 2)?);
        if version > 0 || sizes != 0x0808 {
            return Err(Error::argument(format!(
                "an HDF5 file with superblock {version}; Keras writes version 0 with numbers of 8 bytes"
            )));
        }
        let root = file.number(64, 8)?;
        reader.object(root, "", 0)?;
        Ok(Self {
            found: reader.found,
            attributes: reader.attributes,
        })
    }

    /// Reads an attribute of a group, which is one or several texts. The root's path is empty.
    pub fn texts(&self, group: &str, name: &str) -> Result<Option<Vec<String>>> {
        let all = self.attributes.get(group).into_iter().flatten();
        let found = all.into_iter().find(|(one, _)| one == name);
        found.map(|(_, texts)| texts.clone()).transpose()
    }

    /// Returns the paths of all datasets.
    pub fn paths(&self) -> impl Iterator<Item = &str> {
        self.found.keys().map(String::as_str)
    }

    /// Returns each dataset: its path, element type, dimensions, and where its bytes are.
    pub fn places(&self) -> impl Iterator<Item = (&str, DataType, &[i64], Range<u64>)> {
        self.found.iter().map(|(path, one)| {
            let range = one.at..one.at + one.bytes.len() as u64;
            (path.as_str(), one.dtype, one.dims.as_slice(), range)
        })
    }

    /// Reads a dataset.
    pub fn read(&self, path: &str) -> Result<Tensor> {
        let dataset = self.found.get(path).ok_or_else(|| {
            let folder = path.split_once("/vars").map_or(path, |(folder, _)| folder);
            let near: Vec<&str> = self.paths().filter(|one| one.starts_with(folder)).collect();
            Error::argument(format!(
                "the weights have no '{path}'; there are {}",
                match near.is_empty() {
                    true => format!("{} others, and none below '{folder}'", self.found.len()),
                    false => near.join(", "),
                }
            ))
        })?;
        Tensor::from_bytes(dataset.dtype, dataset.bytes, &dataset.dims)
    }
}

/// Whether bytes are those of a file of this format.
pub(crate) fn is_hdf5(bytes: &[u8]) -> bool {
    bytes.starts_with(SIGNATURE)
}

struct Reader<'b> {
    file: Bytes<'b>,
    objects: usize,
    /// Messages that are read, and letters of names and texts that are copied.
    budget: Budget,
    found: BTreeMap<String, Dataset<'b>>,
    attributes: BTreeMap<String, Vec<Attribute>>,
}

/// What the header of an object says.
#[derive(Default)]
struct Header {
    /// A group's tree and heap of names.
    group: Option<(u64, u64)>,
    dtype: Option<Result<DataType>>,
    dims: Option<Vec<i64>>,
    /// Where the numbers are and how many bytes.
    data: Option<Result<(u64, u64)>>,
    is_filtered: bool,
    attributes: Vec<Attribute>,
}

impl Reader<'_> {
    fn object(&mut self, address: u64, path: &str, depth: usize) -> Result<()> {
        self.objects += 1;
        if depth > DEEPEST || self.objects > MOST {
            return Err(self
                .file
                .damaged("its groups lie in each other without an end"));
        }
        let header = self.header(address)?;
        if let Some((tree, heap)) = header.group {
            self.attributes.insert(path.to_owned(), header.attributes);
            return self.group(tree, heap, path, depth, 0);
        }
        let (Some(dtype), Some(dims), Some(data)) = (header.dtype, header.dims, header.data) else {
            return Err(self
                .file
                .damaged(&format!("'{path}' is neither a group nor a dataset")));
        };
        // Of other types and layouts there may be some that nothing asks for.
        let (Ok(dtype), Ok((at, length)), false) = (dtype, data, header.is_filtered) else {
            return Ok(());
        };
        let size = dtype.size().unwrap_or(0) as u64;
        let count = dims.iter().try_fold(size, |count, &size| {
            count.checked_mul(u64::try_from(size).ok()?)
        });
        let bytes = match count {
            Some(0) => &[][..],
            Some(count) if count == length => self.file.part(at, length)?,
            _ => {
                return Err(self
                    .file
                    .damaged(&format!("'{path}' of shape {dims:?} has {length} bytes")));
            }
        };
        let dataset = Dataset {
            dtype,
            dims,
            at,
            bytes,
        };
        self.found.insert(path.to_owned(), dataset);
        Ok(())
    }

    /// Reads the messages of an object's header.
    fn header(&self, address: u64) -> Result<Header> {
        let file = self.file;
        if file.number(address, 1)? != 1 {
            return Err(Error::argument(
                "an HDF5 file with object headers that Keras does not write",
            ));
        }
        let mut header = Header::default();
        let mut left = file.number(address + 2, 2)?;
        let mut blocks = vec![(address.saturating_add(16), file.number(address + 8, 4)?)];
        while let Some((mut at, length)) = blocks.pop() {
            let end = at.saturating_add(length);
            while left > 0 && at.saturating_add(8) <= end {
                left -= 1;
                self.budget.take(file, 1)?;
                let (kind, size) = (file.number(at, 2)?, file.number(at + 2, 2)?);
                let data = at + 8;
                at = data + size;
                match kind {
                    0x0001 => header.dims = Some(self.dims(data)?),
                    0x0003 => header.dtype = Some(self.dtype(data)),
                    0x0008 => header.data = Some(self.layout(data)),
                    0x000b => header.is_filtered = true,
                    0x000c => {
                        let found = attributes::read(file, &self.budget, data, |at| self.dims(at))?;
                        header.attributes.push(found);
                    }
                    0x0010 => blocks.push((file.number(data, 8)?, file.number(data + 8, 8)?)),
                    0x0011 => {
                        header.group = Some((file.number(data, 8)?, file.number(data + 8, 8)?));
                    }
                    _ => {}
                }
            }
        }
        Ok(header)
    }

    fn dims(&self, at: u64) -> Result<Vec<i64>> {
        let file = self.file;
        let (version, rank) = (file.number(at, 1)?, file.number(at + 1, 1)?);
        let first = match version {
            1 => at + 8,
            2 => at + 4,
            _ => return Err(file.damaged(&format!("dimensions of version {version}"))),
        };
        let size = |index| {
            let size = i64::try_from(file.number(first + 8 * index, 8)?);
            size.map_err(|_| file.damaged("a dimension is too large"))
        };
        (0..rank).map(size).collect()
    }

    fn dtype(&self, at: u64) -> Result<DataType> {
        let file = self.file;
        let class = file.number(at, 1)? & 0xf;
        let (flags, size) = (file.number(at + 1, 1)?, file.number(at + 4, 4)?);
        let is_little = flags & 1 == 0;
        let is_signed = flags & 8 != 0;
        match (class, size, is_signed) {
            // What Python has no type for is bytes: Keras writes bfloat16 so.
            (5, 2, _) => Ok(DataType::BFLOAT16),
            _ if !is_little => Err(Error::argument("numbers whose first byte is the highest")),
            (1, 2, _) => Ok(DataType::HALF),
            (1, 4, _) => Ok(DataType::FLOAT),
            (1, 8, _) => Ok(DataType::DOUBLE),
            (0, 4, true) => Ok(DataType::INT32),
            (0, 8, true) => Ok(DataType::INT64),
            (0, 4, false) => Ok(DataType::UINT32),
            _ => Err(Error::argument(format!(
                "a type of class {class} and {size} bytes"
            ))),
        }
    }

    /// Where the numbers of a dataset are.
    fn layout(&self, at: u64) -> Result<(u64, u64)> {
        let file = self.file;
        match (file.number(at, 1)?, file.number(at + 1, 1)?) {
            // Inside the header.
            (3, 0) => Ok((at + 4, file.number(at + 2, 2)?)),
            (3, 1) => Ok((file.number(at + 2, 8)?, file.number(at + 10, 8)?)),
            (version, class) => Err(Error::argument(format!(
                "a dataset of layout {class}, version {version}"
            ))),
        }
    }

    /// Reads the members of a group: a tree whose leaves are tables of names and addresses.
    fn group(
        &mut self,
        tree: u64,
        heap: u64,
        path: &str,
        depth: usize,
        level: usize,
    ) -> Result<()> {
        let file = self.file;
        if tree == NOWHERE {
            return Ok(());
        }
        self.objects += 1;
        if level > DEEPEST || self.objects > MOST || file.part(tree, 4)? != b"TREE" {
            return Err(file.damaged("the tree of a group"));
        }
        let (inner, count) = (file.number(tree + 5, 1)?, file.number(tree + 6, 2)?);
        for index in 0..count {
            // Keys and children take turns; a key is before each child.
            let child = file.number(tree + 32 + 16 * index, 8)?;
            if inner > 0 {
                self.group(child, heap, path, depth, level + 1)?;
                continue;
            }
            if file.part(child, 4)? != b"SNOD" {
                return Err(file.damaged("the table of a group"));
            }
            for entry in 0..file.number(child + 6, 2)? {
                let at = child + 8 + 40 * entry;
                let (name, object) = (file.number(at, 8)?, file.number(at + 8, 8)?);
                let name = self.name(heap, name)?;
                let inside = match path {
                    "" => name,
                    _ => format!("{path}/{name}"),
                };
                self.budget.take(file, inside.len() as u64)?;
                self.object(object, &inside, depth + 1)?;
            }
        }
        Ok(())
    }

    /// A name in the heap of a group.
    fn name(&self, heap: u64, offset: u64) -> Result<String> {
        let file = self.file;
        if file.part(heap, 4)? != b"HEAP" {
            return Err(file.damaged("the names of a group"));
        }
        let (size, data) = (file.number(heap + 8, 8)?, file.number(heap + 24, 8)?);
        let bytes = file.part(data, size)?;
        let name = usize::try_from(offset).ok().and_then(|at| bytes.get(at..));
        let name = name.and_then(|name| name.split(|&byte| byte == 0).next());
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        self.budget.take(file, name.map_or(0, str::len) as u64)?;
        name.map(str::to_owned)
            .ok_or_else(|| file.damaged("the name of an object"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::hdf5_write;

    #[test]
    fn names_that_share_their_letters_are_an_error() -> Result<()> {
        let one = Tensor::scalar(1.0_f32)?;
        let mut datasets = vec![("x".repeat(1 << 20), &one)];
        datasets.extend((0..200).map(|index| (format!("y{index}"), &one)));
        let mut bytes = hdf5_write::write(&datasets)?;
        assert_eq!(Datasets::open(&bytes)?.paths().count(), 201);
        // Each name is a part of the long one, which is the first in the heap, at 8.
        let tables: Vec<usize> = (0..bytes.len() - 4)
            .filter(|&at| bytes[at..].starts_with(b"SNOD"))
            .collect();
        let mut offset = 8_u64;
        for table in tables {
            for entry in 0..usize::from(bytes[table + 6]) {
                let at = table + 8 + 40 * entry;
                bytes[at..at + 8].copy_from_slice(&offset.to_le_bytes());
                offset += 1;
            }
        }
        assert_eq!(offset, 8 + 201);
        let error = Datasets::open(&bytes)
            .map(|_| ())
            .expect_err("200 MB of names");
        assert!(error.to_string().contains("repeats"), "{error}");
        Ok(())
    }
}
