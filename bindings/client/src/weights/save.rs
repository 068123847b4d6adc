//! Files of weights are written.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::path::Path;

use tfp_core::{Error, Result, Tensor};

use super::layout;
use super::mapping::Mapping;
use super::named::NamedVariables;
use crate::checkpoint::write_tensors;
use crate::files;
use crate::formats::{hdf5_write, npy, safetensors, zip};
use crate::room;

/// Writes the values of variables. The end of the path says the format: `.safetensors`, `.npz`, `.h5`, or
/// any other for a checkpoint of tensors by name. A file that is there stays until the new one is whole.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for two variables of one name, axes that are
/// not those of a variable, and a type that the format does not have;
/// [`ErrorKind::File`](tfp_core::ErrorKind::File) for a file that can't be written, and as for
/// [`NamedVariables::values_of`].
pub fn save<N: NamedVariables + ?Sized>(
    path: impl AsRef<Path>,
    of: &N,
    names: &Mapping,
) -> Result<()> {
    let path = path.as_ref();
    let (own, variables): (Vec<_>, Vec<_>) = of.named_variables().into_iter().unzip();
    let mut tensors = of.values_of(&variables)?;
    let mut taken = BTreeSet::new();
    let mut list = Vec::with_capacity(own.len());
    for (name, tensor) in own.iter().zip(&mut tensors) {
        if let Some(axes) = names.axes(name) {
            *tensor = layout::permute(tensor, &layout::inverse(axes))
                .map_err(|error| Error::argument(format!("'{name}': {error}")))?;
        }
        let in_file = names.tensor_name(name);
        if !taken.insert(in_file.clone()) {
            return Err(Error::argument(format!(
                "two variables would be '{in_file}' in the file, one of them '{name}'"
            )));
        }
        list.push(in_file);
    }
    let named: Vec<(&str, &Tensor)> = list.iter().map(String::as_str).zip(&tensors).collect();
    match path.extension().and_then(|end| end.to_str()) {
        Some("safetensors") => write_safetensors(path, &named, &[]),
        Some("npz") => write_npz(path, &named),
        Some("h5" | "hdf5") => {
            let datasets: Vec<(String, &Tensor)> = list.iter().cloned().zip(&tensors).collect();
            files::write(path, &hdf5_write::write(&datasets)?)
        }
        _ => write_tensors(path, &named),
    }
}

/// Writes tensors by name as a safetensors file, with texts by key that describe it. A file that is there
/// stays until the new one is whole.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for two tensors of one name, or one of a type
/// that the format does not have; [`ErrorKind::File`](tfp_core::ErrorKind::File) for a file that can't be
/// written.
pub fn write_safetensors(
    path: impl AsRef<Path>,
    tensors: &[(&str, &Tensor)],
    metadata: &[(&str, &str)],
) -> Result<()> {
    // Numbers lie at multiples of their size where those of the largest type come first.
    let mut sorted = tensors.to_vec();
    sorted.sort_by_key(|(name, tensor)| (std::cmp::Reverse(tensor.dtype().size()), *name));
    let described: Vec<safetensors::Described<'_>> = sorted
        .iter()
        .map(|(name, tensor)| (*name, tensor.dtype(), tensor.dims()))
        .collect();
    let header = safetensors::write_header(&described, metadata)?;
    let mut parts = vec![header.as_slice()];
    for (_, tensor) in &sorted {
        parts.push(tensor.as_bytes()?);
    }
    files::write_by(path.as_ref(), |file| {
        parts.iter().try_for_each(|part| file.write_all(part))
    })
}

/// Writes tensors by name as an `.npz` file, which `numpy.load` reads. A file that is there stays until
/// the new one is whole.
///
/// # Errors
/// As for [`write_safetensors`], and [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for more than
/// 4 GiB.
pub fn write_npz(path: impl AsRef<Path>, tensors: &[(&str, &Tensor)]) -> Result<()> {
    let mut members = Vec::with_capacity(tensors.len());
    let mut taken = BTreeSet::new();
    for (name, tensor) in tensors {
        if !taken.insert(*name) {
            return Err(Error::argument(format!(
                "two tensors of a file are '{name}'"
            )));
        }
        let header = npy::write_header(tensor.dtype(), tensor.dims());
        let mut bytes =
            header.map_err(|error| Error::argument(format!("the tensor '{name}': {error}")))?;
        room::extend(&mut bytes, tensor.as_bytes()?)?;
        members.push((format!("{name}.npy"), bytes));
    }
    let members: Vec<(&str, &[u8])> = members
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.as_slice()))
        .collect();
    files::write(path.as_ref(), &zip::archive(&members)?)
}
