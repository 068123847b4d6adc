//! Attributes of objects in HDF5 files, as far as Keras writes them: one or several texts.

use tfp_core::{Error, Result};

use crate::formats::bytes::{Budget, Bytes};

/// Strings of one length, and those whose bytes are in a heap of the file.
const FIXED: u64 = 3;
const VARIABLE: u64 = 9;
/// How many bytes the place of a string in a heap takes.
const REFERENCE: u64 = 16;

/// An attribute, with its name.
pub(super) type Attribute = (String, Result<Vec<String>>);

/// Reads the message of an attribute, or says what of it is damaged. Types other than strings are an
/// error of the attribute alone.
pub(super) fn read(
    file: Bytes<'_>,
    budget: &Budget,
    at: u64,
    dims: impl Fn(u64) -> Result<Vec<i64>>,
) -> Result<Attribute> {
    let version = file.number(at, 1)?;
    let sizes = [4, 6, 2].map(|place| file.number(at + place, 2));
    let [dtype, space, name] = sizes;
    // Version 1 has each part at a multiple of 8 bytes; version 3 says the alphabet of the name.
    let padded = |size: u64| match version {
        1 => size.next_multiple_of(8),
        _ => size,
    };
    let first = match version {
        1 | 2 => at + 8,
        3 => at + 9,
        _ => return Err(file.damaged(&format!("an attribute of version {version}"))),
    };
    let (dtype, space, name) = (dtype?, space?, name?);
    let is_shared = version > 1 && file.number(at + 1, 1)? != 0;
    let dtype_at = first + padded(name);
    let space_at = dtype_at + padded(dtype);
    let data_at = space_at + padded(space);
    let name = text(file, budget, file.part(first, name)?)?;
    if is_shared {
        let problem = Error::argument(format!("the type of attribute '{name}' is elsewhere"));
        return Ok((name, Err(problem)));
    }
    let count = dims(space_at)?.iter().try_fold(1_u64, |count, &size| {
        count.checked_mul(u64::try_from(size).ok()?)
    });
    let count = count.ok_or_else(|| file.damaged("the number of an attribute's values"))?;
    Ok((name, texts(file, budget, [dtype_at, data_at], count)))
}

fn texts(
    file: Bytes<'_>,
    budget: &Budget,
    [dtype, data]: [u64; 2],
    count: u64,
) -> Result<Vec<String>> {
    // An empty list has the type of numbers.
    if count == 0 {
        return Ok(Vec::new());
    }
    let (first, flags) = (file.number(dtype, 1)?, file.number(dtype + 1, 1)?);
    let size = match (first & 0xf, flags & 0xf) {
        (FIXED, _) => file.number(dtype + 4, 4)?,
        (VARIABLE, 1) => REFERENCE,
        (class, _) => {
            return Err(Error::argument(format!(
                "an attribute of class {class}, and not of text"
            )));
        }
    };
    let length = size.checked_mul(count).filter(|&length| length > 0);
    let all = file.part(data, length.ok_or_else(|| file.damaged("an attribute"))?)?;
    let mut found = Vec::new();
    for (index, one) in (0..).zip(all.chunks_exact(size as usize)) {
        found.push(match first & 0xf {
            FIXED => text(file, budget, one)?,
            _ => {
                let at = data + index * REFERENCE;
                let length = file.number(at, 4)?;
                let heap = (file.number(at + 4, 8)?, file.number(at + 12, 4)?);
                let bytes = match length {
                    0 => &[][..],
                    _ => in_heap(file, budget, heap)?,
                };
                let bytes = bytes.get(..length as usize);
                let bytes = bytes.ok_or_else(|| file.damaged("a text is too short"))?;
                text(file, budget, bytes)?
            }
        });
    }
    Ok(found)
}

/// The bytes of an object, by its heap and its number there.
fn in_heap<'b>(file: Bytes<'b>, budget: &Budget, (heap, wanted): (u64, u64)) -> Result<&'b [u8]> {
    if file.part(heap, 4)? != b"GCOL" {
        return Err(file.damaged("the heap of its texts"));
    }
    let size = file.number(heap.saturating_add(8), 8)?;
    let end = heap.saturating_add(size).min(file.bytes.len() as u64);
    let mut at = heap.saturating_add(16);
    while at.saturating_add(16) <= end {
        budget.take(file, 1)?;
        let (index, size) = (file.number(at, 2)?, file.number(at + 8, 8)?);
        if index == wanted {
            return file.part(at + 16, size);
        }
        // The last object is the space that is left.
        if index == 0 {
            break;
        }
        at = at
            .saturating_add(16)
            .saturating_add(size.checked_next_multiple_of(8).unwrap_or(u64::MAX));
    }
    Err(file.damaged(&format!("the heap of its texts has no object {wanted}")))
}

/// A text, which may end before its bytes do.
fn text(file: Bytes<'_>, budget: &Budget, bytes: &[u8]) -> Result<String> {
    // A place in a list takes memory, too.
    budget.take(file, bytes.len() as u64 + size_of::<String>() as u64)?;
    let bytes = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = std::str::from_utf8(bytes).map_err(|_| file.damaged("a text that is not UTF-8"))?;
    Ok(text.to_owned())
}
