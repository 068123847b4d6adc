//! Safetensors: the length of a header, the header in JSON, then the bytes of all tensors without gaps.
//!
//! The reader is written here because it needs nothing that is not here already: a JSON reader, and
//! checks of a few numbers. So the crate keeps its two dependencies.

use std::collections::BTreeMap;

use tfp_core::{DataType, Error, ErrorKind, Result};

use super::json::Json;

/// How long a header may be, as in the format's own reader.
const LONGEST: u64 = 100_000_000;
/// The member of the header that describes the file itself.
const METADATA: &str = "__metadata__";

/// Types by their names in the format.
const TYPES: &[(&str, DataType)] = &[
    ("BOOL", DataType::BOOL),
    ("U8", DataType::UINT8),
    ("I8", DataType::INT8),
    ("U16", DataType::UINT16),
    ("I16", DataType::INT16),
    ("U32", DataType::UINT32),
    ("I32", DataType::INT32),
    ("U64", DataType::UINT64),
    ("I64", DataType::INT64),
    ("F16", DataType::HALF),
    ("BF16", DataType::BFLOAT16),
    ("F32", DataType::FLOAT),
    ("F64", DataType::DOUBLE),
    ("C64", DataType::COMPLEX64),
    ("F8_E4M3", DataType::FLOAT8_E4M3FN),
    ("F8_E5M2", DataType::FLOAT8_E5M2),
];

/// A tensor in the header.
#[derive(Debug, PartialEq)]
pub(crate) struct Entry {
    pub name: String,
    /// The element type, or the name of one that TensorFlow does not have.
    pub dtype: Result<DataType, String>,
    pub dims: Vec<i64>,
    /// Where its bytes begin after the header, and how many there are.
    pub at: u64,
    pub length: u64,
}

/// What a header says.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Header {
    pub tensors: Vec<Entry>,
    pub metadata: BTreeMap<String, String>,
}

fn damaged(problem: impl std::fmt::Display) -> Error {
    Error::argument(format!("the safetensors header is damaged: {problem}"))
}

/// Returns the length of the header, which the first eight bytes of a file say.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a length that the file does not have.
pub(crate) fn header_length(first: [u8; 8], file: u64) -> Result<u64> {
    let length = u64::from_le_bytes(first);
    if length > LONGEST || length > file.saturating_sub(8) {
        return Err(damaged(format!(
            "its length is {length}, in a file of {file} bytes"
        )));
    }
    Ok(length)
}

/// Reads a header; `length` is the number of bytes that follow it.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument), which names the tensor.
pub(crate) fn read_header(header: &[u8], length: u64) -> Result<Header> {
    let parsed = Json::parse(header).map_err(|error| match error.kind() {
        ErrorKind::Argument { message } => damaged(message),
        _ => error,
    });
    let Json::Object(members) = parsed? else {
        return Err(damaged("it is no object"));
    };
    let mut found = Header::default();
    let mut names = std::collections::HashSet::new();
    for (name, value) in members {
        if !names.insert(name.clone()) {
            return Err(damaged(format!("'{name}' is there twice")));
        }
        if name == METADATA {
            let Json::Object(members) = value else {
                return Err(damaged(format!("'{METADATA}' is no object")));
            };
            for (key, value) in members {
                let text = value
                    .text()
                    .ok_or_else(|| damaged(format!("'{key}' of '{METADATA}' is no text")))?;
                found.metadata.insert(key, text.to_owned());
            }
            continue;
        }
        let entry = read_entry(&name, &value).ok_or_else(|| {
            damaged(format!(
                "the tensor '{name}' has no dtype, shape and data_offsets"
            ))
        })?;
        if let Ok(dtype) = entry.dtype {
            check_length(&entry, dtype)?;
        }
        found.tensors.push(entry);
    }
    found
        .tensors
        .sort_by(|a, b| (a.at, a.length, &a.name).cmp(&(b.at, b.length, &b.name)));
    let mut end = 0;
    for entry in &found.tensors {
        if entry.at != end {
            return Err(damaged(format!(
                "the bytes of the tensor '{}' begin at {}, those before end at {end}",
                entry.name, entry.at
            )));
        }
        end = entry.at.saturating_add(entry.length);
        if end > length {
            return Err(damaged(format!(
                "the tensor '{}' ends at byte {end} of {length}: the file is cut",
                entry.name
            )));
        }
    }
    if end != length {
        return Err(damaged(format!(
            "its tensors end at byte {end}, the file has {length}"
        )));
    }
    Ok(found)
}

fn read_entry(name: &str, value: &Json) -> Option<Entry> {
    let whole = |json: &Json| json.integer().filter(|&number| number >= 0);
    let numbers =
        |name: &str| -> Option<Vec<i64>> { value.get(name)?.list()?.iter().map(whole).collect() };
    let kind = value.get("dtype")?.text()?;
    let known = TYPES.iter().find(|(name, _)| *name == kind);
    let dims = numbers("shape")?;
    let &[begin, end] = numbers("data_offsets")?.as_slice() else {
        return None;
    };
    Some(Entry {
        name: name.to_owned(),
        dtype: known
            .map(|&(_, dtype)| dtype)
            .ok_or_else(|| kind.to_owned()),
        dims,
        at: begin as u64,
        length: u64::try_from(end.checked_sub(begin)?).ok()?,
    })
}

fn check_length(entry: &Entry, dtype: DataType) -> Result<()> {
    let size = dtype.size().unwrap_or(0) as u64;
    let needed = entry.dims.iter().try_fold(size, |product, &size| {
        product.checked_mul(u64::try_from(size).ok()?)
    });
    if needed == Some(entry.length) {
        return Ok(());
    }
    Err(damaged(format!(
        "the tensor '{}' is {dtype} of shape {:?} and has {} bytes",
        entry.name, entry.dims, entry.length
    )))
}

/// A tensor to be written: its name, element type and dimensions.
pub(crate) type Described<'t> = (&'t str, DataType, &'t [i64]);

/// Makes the first bytes of a file: the length and the header. The bytes of the tensors follow in the
/// order given.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a name that is reserved or there twice,
/// and for a type that the format does not have.
pub(crate) fn write_header(
    tensors: &[Described<'_>],
    metadata: &[(&str, &str)],
) -> Result<Vec<u8>> {
    let mut members: Vec<(String, Json)> = Vec::new();
    if !metadata.is_empty() {
        let metadata = metadata
            .iter()
            .map(|&(key, value)| (key.to_owned(), value.into()));
        members.push((METADATA.to_owned(), Json::Object(metadata.collect())));
    }
    let mut names = std::collections::HashSet::from([METADATA]);
    let mut end = 0_u64;
    for &(name, dtype, dims) in tensors {
        if !names.insert(name) {
            return Err(Error::argument(format!(
                "a safetensors file can't have a tensor '{name}': the name is taken"
            )));
        }
        let known = TYPES.iter().find(|(_, known)| *known == dtype);
        let &(kind, _) = known.ok_or_else(|| {
            Error::argument(format!(
                "safetensors has no type for '{name}', which is {dtype}"
            ))
        })?;
        let begin = end;
        let count = dims
            .iter()
            .map(|&size| size.unsigned_abs())
            .product::<u64>();
        end += count * dtype.size().unwrap_or(0) as u64;
        let offsets = [begin as i64, end as i64];
        let entry = Json::object([
            ("dtype", kind.into()),
            ("shape", dims.into()),
            ("data_offsets", offsets.as_slice().into()),
        ]);
        members.push((name.to_owned(), entry));
    }
    let mut header = Json::Object(members).to_string().into_bytes();
    // So the first tensor begins at a multiple of eight.
    header.resize(header.len().next_multiple_of(8), b' ');
    let mut bytes = (header.len() as u64).to_le_bytes().to_vec();
    bytes.extend(header);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(text: &str, length: u64) -> Result<Header> {
        read_header(text.as_bytes(), length)
    }

    #[test]
    fn what_is_written_is_read() -> Result<()> {
        let tensors: [Described<'_>; 3] = [
            ("a", DataType::FLOAT, &[2, 3]),
            ("b\"\n", DataType::BFLOAT16, &[]),
            ("none", DataType::INT64, &[0, 5]),
        ];
        let bytes = write_header(&tensors, &[("format", "pt")])?;
        assert_eq!(bytes.len() % 8, 0);
        let length = header_length(bytes[..8].try_into().expect("8 bytes"), bytes.len() as u64)?;
        let header = read_header(&bytes[8..8 + length as usize], 26)?;
        assert_eq!(header.metadata["format"], "pt");
        let mut found: Vec<_> = header
            .tensors
            .iter()
            .map(|one| (&*one.name, one.at, one.length))
            .collect();
        found.sort_unstable();
        assert_eq!(found, [("a", 0, 24), ("b\"\n", 24, 2), ("none", 26, 0)]);
        assert!(write_header(&[tensors[0], tensors[0]], &[]).is_err());
        assert!(write_header(&[("s", DataType::STRING, &[])], &[]).is_err());
        assert!(write_header(&[(METADATA, DataType::FLOAT, &[])], &[]).is_err());
        Ok(())
    }

    #[test]
    fn a_type_that_is_not_known_is_kept_with_its_name() -> Result<()> {
        let header = entry(
            r#"{"x": {"dtype": "F4", "shape": [4], "data_offsets": [0, 2]}}"#,
            2,
        )?;
        assert_eq!(header.tensors[0].dtype, Err("F4".to_owned()));
        Ok(())
    }

    #[test]
    fn damage_names_the_tensor() {
        let one = |rest: &str| format!(r#"{{"w": {{"dtype": "F32", {rest}}}}}"#);
        for (text, length, problem) in [
            (
                one(r#""shape": [2], "data_offsets": [0, 8]"#),
                4,
                "the file is cut",
            ),
            (
                one(r#""shape": [2], "data_offsets": [0, 8]"#),
                12,
                "the file has 12",
            ),
            (
                one(r#""shape": [3], "data_offsets": [0, 8]"#),
                8,
                "'w' is float32",
            ),
            (
                one(r#""shape": [-2], "data_offsets": [0, 8]"#),
                8,
                "'w' has no dtype",
            ),
            (
                one(r#""shape": [2], "data_offsets": [8, 0]"#),
                8,
                "'w' has no dtype",
            ),
            (
                one(r#""shape": [2], "data_offsets": [4, 12]"#),
                12,
                "'w' begin at 4",
            ),
            (
                one(r#""shape": [4294967296, 4294967296], "data_offsets": [0, 0]"#),
                0,
                "'w' is float32",
            ),
            (
                // More than a double counts.
                one(r#""shape": [4611686018427387904, 4], "data_offsets": [0, 0]"#),
                0,
                "'w' has no dtype",
            ),
            (one(r#""shape": [2]"#), 8, "'w' has no dtype"),
            ("[1]".to_owned(), 0, "no object"),
            ("{".to_owned(), 0, "damaged"),
            (r#"{"__metadata__": {"a": 1}}"#.to_owned(), 0, "is no text"),
        ] {
            let error = entry(&text, length).expect_err(&text).to_string();
            assert!(error.contains(problem), "{text}: {error}");
        }
        let two = r#"{"a": {"dtype": "U8", "shape": [2], "data_offsets": [0, 2]},
                      "b": {"dtype": "U8", "shape": [2], "data_offsets": [1, 3]}}"#;
        assert!(entry(two, 3).is_err_and(|error| error.to_string().contains("'b' begin at 1")));
        assert!(header_length(100_u64.to_le_bytes(), 50).is_err());
        assert!(header_length(u64::MAX.to_le_bytes(), u64::MAX).is_err());
    }

    #[test]
    fn no_change_of_a_byte_panics() {
        let tensors: [Described<'_>; 2] =
            [("a", DataType::FLOAT, &[2]), ("b", DataType::INT8, &[3])];
        let bytes = write_header(&tensors, &[("k", "v")]).expect("a header");
        // Spaces at the end may be missing.
        let header = bytes[8..].trim_ascii_end();
        for at in 0..header.len() {
            for value in [0, b'"', b'9', b'{', b']', 0x80, 0xff] {
                let mut damaged = header.to_vec();
                damaged[at] = value;
                let _ = read_header(&damaged, 11);
            }
            assert!(read_header(&header[..at], 11).is_err());
        }
    }
}
