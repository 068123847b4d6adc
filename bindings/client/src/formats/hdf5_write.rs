//! Writes HDF5 files in the layout that [`super::hdf5`] reads, and every HDF5 library: superblock 0,
//! groups with symbol tables, contiguous datasets of numbers.

use std::collections::BTreeMap;

use tfp_core::{DataType, Error, Result, Tensor};

use crate::room::extend;

/// An address that stands for nothing.
const NOWHERE: u64 = u64::MAX;
/// How many names a table of a group has at most, and how many children a node of its tree: twice the
/// numbers of the superblock.
const NAMES: usize = 8;
const CHILDREN: usize = 32;

/// A group's members by name, or a dataset.
enum Object<'t> {
    Group(BTreeMap<String, Self>),
    Dataset(&'t Tensor),
}

/// Writes datasets at their paths.
pub(crate) fn write(datasets: &[(String, &Tensor)]) -> Result<Vec<u8>> {
    let mut root = BTreeMap::new();
    for (path, tensor) in datasets {
        insert(&mut root, path, path, tensor)?;
    }
    let mut file = File { bytes: vec![0; 96] };
    let root = file.group(&root)?;
    let mut head = b"\x89HDF\r\n\x1a\n".to_vec();
    // Versions, and sizes of addresses and of lengths.
    head.extend([0, 0, 0, 0, 0, 8, 8, 0]);
    head.extend((NAMES as u16 / 2).to_le_bytes());
    head.extend((CHILDREN as u16 / 2).to_le_bytes());
    head.extend([0; 4]);
    for address in [0, NOWHERE, file.end(), NOWHERE, 0, root.header] {
        head.extend(address.to_le_bytes());
    }
    head.extend([1, 0, 0, 0, 0, 0, 0, 0]);
    head.extend(root.tree.to_le_bytes());
    head.extend(root.heap.to_le_bytes());
    file.bytes[..96].copy_from_slice(&head);
    Ok(file.bytes)
}

fn insert<'t>(
    group: &mut BTreeMap<String, Object<'t>>,
    whole: &str,
    path: &str,
    tensor: &'t Tensor,
) -> Result<()> {
    let twice = || Error::argument(format!("two datasets of a file are at '{whole}'"));
    let Some((name, rest)) = path.split_once('/') else {
        return match group.insert(path.to_owned(), Object::Dataset(tensor)) {
            None => Ok(()),
            Some(_) => Err(twice()),
        };
    };
    let inner = group.entry(name.to_owned());
    match inner.or_insert_with(|| Object::Group(BTreeMap::new())) {
        Object::Group(inner) => insert(inner, whole, rest, tensor),
        Object::Dataset(_) => Err(twice()),
    }
}

/// Where the parts of a group are.
struct Group {
    header: u64,
    tree: u64,
    heap: u64,
}

struct File {
    bytes: Vec<u8>,
}

impl File {
    fn end(&self) -> u64 {
        self.bytes.len() as u64
    }

    /// Adds bytes at a multiple of 8.
    fn add(&mut self, bytes: &[u8]) -> Result<u64> {
        let at = self.end();
        extend(&mut self.bytes, bytes)?;
        let rest = bytes.len().next_multiple_of(8) - bytes.len();
        extend(&mut self.bytes, &[0; 8][..rest])?;
        Ok(at)
    }

    fn group(&mut self, members: &BTreeMap<String, Object<'_>>) -> Result<Group> {
        // Names, each with a zero at its end; the first one is empty.
        let mut names = vec![0; 8];
        let mut entries: Vec<(u64, [u8; 40])> = Vec::new();
        for (name, object) in members {
            let offset = names.len() as u64;
            names.extend(name.as_bytes());
            names.resize((names.len() + 1).next_multiple_of(8), 0);
            let mut entry = [0; 40];
            entry[..8].copy_from_slice(&offset.to_le_bytes());
            let header = match object {
                Object::Dataset(tensor) => self.dataset(tensor)?,
                Object::Group(members) => {
                    let group = self.group(members)?;
                    entry[16] = 1;
                    entry[24..32].copy_from_slice(&group.tree.to_le_bytes());
                    entry[32..].copy_from_slice(&group.heap.to_le_bytes());
                    group.header
                }
            };
            entry[8..16].copy_from_slice(&header.to_le_bytes());
            entries.push((offset, entry));
        }
        let tree = self.tree(&entries)?;
        let data = self.add(&names)?;
        let mut heap = b"HEAP\0\0\0\0".to_vec();
        // The length, that nothing in it is free, and where it is.
        for number in [names.len() as u64, 1, data] {
            heap.extend(number.to_le_bytes());
        }
        let heap = self.add(&heap)?;
        let place = [tree.to_le_bytes(), heap.to_le_bytes()].concat();
        let header = self.header(&[(0x11, place)])?;
        Ok(Group { header, tree, heap })
    }

    /// Adds the tree of a group, whose leaves are tables of names.
    fn tree(&mut self, entries: &[(u64, [u8; 40])]) -> Result<u64> {
        // The last name of each child, and where it is.
        let mut children: Vec<(u64, u64)> = Vec::new();
        for part in entries.chunks(NAMES) {
            let mut table = b"SNOD\x01\0".to_vec();
            table.extend((part.len() as u16).to_le_bytes());
            table.extend(part.iter().flat_map(|(_, entry)| entry));
            table.resize(8 + NAMES * 40, 0);
            let last = part.last().map_or(0, |(offset, _)| *offset);
            children.push((last, self.add(&table)?));
        }
        let mut level = 0_u8;
        loop {
            let mut nodes = Vec::new();
            let mut first = 0;
            let size = 24 + 8 * (2 * CHILDREN + 1);
            let begin = self.end();
            let count = children.len().div_ceil(CHILDREN).max(1);
            for index in 0..count {
                let part = children.iter().skip(index * CHILDREN).take(CHILDREN);
                let beside = |other: Option<usize>| {
                    let other = other.filter(|other| *other < count);
                    other.map_or(NOWHERE, |other| begin + (other * size) as u64)
                };
                let mut node = b"TREE\0".to_vec();
                node.push(level);
                node.extend((part.len() as u16).to_le_bytes());
                node.extend(beside(index.checked_sub(1)).to_le_bytes());
                node.extend(beside(Some(index + 1)).to_le_bytes());
                node.extend(u64::to_le_bytes(first));
                for &(last, child) in part {
                    node.extend(child.to_le_bytes());
                    node.extend(last.to_le_bytes());
                    first = last;
                }
                node.resize(size, 0);
                nodes.push((first, self.add(&node)?));
            }
            match nodes.as_slice() {
                &[(_, root)] => return Ok(root),
                _ => children = nodes,
            }
            level += 1;
        }
    }

    fn dataset(&mut self, tensor: &Tensor) -> Result<u64> {
        let bytes = tensor.as_bytes()?;
        let at = match bytes.is_empty() {
            true => NOWHERE,
            false => self.add(bytes)?,
        };
        let dims = tensor.dims();
        let mut space = vec![1, dims.len() as u8, 0, 0, 0, 0, 0, 0];
        space.extend(dims.iter().flat_map(|size| size.to_le_bytes()));
        let mut layout = vec![3, 1];
        layout.extend(at.to_le_bytes());
        layout.extend((bytes.len() as u64).to_le_bytes());
        // Values that were never written are not defined.
        let fill = vec![2, 2, 2, 0];
        let messages = [
            (0x01, space),
            (0x03, dtype(tensor.dtype())?),
            (0x05, fill),
            (0x08, layout),
        ];
        self.header(&messages)
    }

    /// Adds the header of an object.
    fn header(&mut self, messages: &[(u16, Vec<u8>)]) -> Result<u64> {
        let mut body = Vec::new();
        for (kind, data) in messages {
            body.extend(kind.to_le_bytes());
            let size = data.len().next_multiple_of(8);
            body.extend((size as u16).to_le_bytes());
            body.extend([0; 4]);
            body.extend(data);
            body.resize(body.len() + size - data.len(), 0);
        }
        let mut header = vec![1, 0];
        header.extend((messages.len() as u16).to_le_bytes());
        header.extend(1_u32.to_le_bytes());
        header.extend((body.len() as u32).to_le_bytes());
        header.extend([0; 4]);
        header.extend(body);
        self.add(&header)
    }
}

/// The description of a type: little-endian numbers.
fn dtype(dtype: DataType) -> Result<Vec<u8>> {
    // The place of the sign; place and size of the exponent, size of the mantissa; the bias.
    let float = |size: u32, parts: [u8; 4], bias: u32| {
        let [sign, exponent, exponents, mantissa] = parts;
        let mut message = vec![0x11, 0x20, sign, 0];
        message.extend(size.to_le_bytes());
        message.extend([0, 0]);
        message.extend((8 * size as u16).to_le_bytes());
        message.extend([exponent, exponents, 0, mantissa]);
        message.extend(bias.to_le_bytes());
        message
    };
    let integer = |size: u32, is_signed: bool| {
        let mut message = vec![0x10, 8 * u8::from(is_signed), 0, 0];
        message.extend(size.to_le_bytes());
        message.extend([0, 0]);
        message.extend((8 * size as u16).to_le_bytes());
        message
    };
    Ok(match dtype {
        DataType::HALF => float(2, [15, 10, 5, 10], 15),
        DataType::FLOAT => float(4, [31, 23, 8, 23], 127),
        DataType::DOUBLE => float(8, [63, 52, 11, 52], 1023),
        DataType::INT32 => integer(4, true),
        DataType::INT64 => integer(8, true),
        DataType::UINT32 => integer(4, false),
        other => {
            return Err(Error::argument(format!(
                "variables of type {other} can't be written; expected float16, float32, float64, int32, \
                 int64 or uint32"
            )));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::hdf5::Datasets;

    /// The file is also read by h5py, in Python's test of saved models.
    #[test]
    fn what_is_written_is_read() -> Result<()> {
        // Several tables, and a tree of two levels.
        let tensors = (0..300).map(|index| Tensor::from_array([index as f32, 0.5]));
        let tensors = tensors.collect::<Result<Vec<_>>>()?;
        let mut datasets: Vec<(String, &Tensor)> = Vec::new();
        for (index, tensor) in tensors.iter().enumerate() {
            datasets.push((format!("layers/dense_{index}/vars/0"), tensor));
        }
        let (scalar, empty) = (
            Tensor::scalar(7_i64)?,
            Tensor::from_vec::<f64>(Vec::new(), &[0, 3])?,
        );
        datasets.push(("optimizer/vars/0".to_owned(), &scalar));
        datasets.push(("empty".to_owned(), &empty));
        let bytes = write(&datasets)?;
        let found = Datasets::open(&bytes)?;
        assert_eq!(found.paths().count(), 302);
        for (path, tensor) in &datasets {
            let found = found.read(path)?;
            assert_eq!(
                (found.dims(), found.dtype()),
                (tensor.dims(), tensor.dtype())
            );
            assert_eq!(found.as_bytes()?, tensor.as_bytes()?, "{path}");
        }
        datasets.push(("empty/more".to_owned(), &scalar));
        assert!(write(&datasets).is_err_and(|error| error.to_string().contains("'empty/more'")));
        assert!(Datasets::open(&write(&[])?)?.paths().next().is_none());
        Ok(())
    }
}
