//! Arrays of NumPy: what the members of an `.npz` file are.

use tfp_core::{DataType, Error, Result};

use super::bytes::Bytes;

const MAGIC: &[u8] = b"\x93NUMPY";

/// Types by their letter and size, without the order of bytes.
const TYPES: &[(&str, DataType)] = &[
    ("b1", DataType::BOOL),
    ("u1", DataType::UINT8),
    ("i1", DataType::INT8),
    ("u2", DataType::UINT16),
    ("i2", DataType::INT16),
    ("u4", DataType::UINT32),
    ("i4", DataType::INT32),
    ("u8", DataType::UINT64),
    ("i8", DataType::INT64),
    ("f2", DataType::HALF),
    ("f4", DataType::FLOAT),
    ("f8", DataType::DOUBLE),
    ("c8", DataType::COMPLEX64),
    ("c16", DataType::COMPLEX128),
];

/// What the header of an array says.
#[derive(Debug, PartialEq)]
pub(crate) struct Header {
    /// The element type, or the name of one that TensorFlow does not have.
    pub dtype: Result<DataType, String>,
    /// The size of the numbers whose bytes are in the other order; 0 for none.
    pub swapped: usize,
    /// Whether the first axis, not the last one, is that of neighbours.
    pub is_fortran: bool,
    pub dims: Vec<i64>,
    /// Where the elements begin.
    pub at: u64,
}

/// Reads a header, with which the bytes begin.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for one that is damaged, and for a number of
/// bytes that does not fit the shape.
pub(crate) fn read_header(bytes: &[u8]) -> Result<Header> {
    let file = Bytes {
        what: "the array",
        bytes,
    };
    if !bytes.starts_with(MAGIC) {
        return Err(file.damaged("it does not begin as NumPy's do"));
    }
    let (begin, length) = match file.number(6, 1)? {
        1 => (10, file.number(8, 2)?),
        2 | 3 => (12, file.number(8, 4)?),
        version => return Err(file.damaged(&format!("its version is {version}"))),
    };
    let at = begin + length;
    let text = String::from_utf8_lossy(file.part(begin, length)?).into_owned();
    let wrong = || file.damaged(&format!("its header is {:.200}", text.trim()));
    let descr = after(&text, "descr").ok_or_else(wrong)?;
    let is_fortran = match after(&text, "fortran_order").ok_or_else(wrong)? {
        rest if rest.starts_with("True") => true,
        rest if rest.starts_with("False") => false,
        _ => return Err(wrong()),
    };
    let shape = after(&text, "shape").and_then(|rest| rest.strip_prefix('('));
    let shape = shape
        .and_then(|rest| rest.split_once(')'))
        .ok_or_else(wrong)?
        .0;
    let mut dims = Vec::new();
    for size in shape
        .split(',')
        .map(str::trim)
        .filter(|size| !size.is_empty())
    {
        let size: i64 = size.trim_end_matches('L').parse().map_err(|_| wrong())?;
        if size < 0 {
            return Err(wrong());
        }
        dims.push(size);
    }
    let (dtype, swapped) = match descr.chars().next() {
        Some(quote @ ('\'' | '"')) => {
            let name = descr[1..].split(quote).next().unwrap_or_default();
            read_type(name)
        }
        Some('[') => (Err("a structure".to_owned()), 0),
        _ => return Err(wrong()),
    };
    if let Ok(dtype) = dtype {
        let size = dtype.size().unwrap_or(0) as u64;
        let needed = dims.iter().try_fold(size, |product, &size| {
            product.checked_mul(u64::try_from(size).ok()?)
        });
        let found = (bytes.len() as u64).saturating_sub(at);
        if needed != Some(found) {
            return Err(file.damaged(&format!(
                "it is {dtype} of shape {dims:?} and has {found} bytes"
            )));
        }
    }
    Ok(Header {
        dtype,
        swapped,
        is_fortran,
        dims,
        at,
    })
}

/// The text after a key of Python's dictionary and its colon.
fn after<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let quoted = [format!("'{key}'"), format!("\"{key}\"")];
    let (_, rest) = quoted
        .iter()
        .find_map(|key| text.split_once(key.as_str()))?;
    Some(rest.trim_start().strip_prefix(':')?.trim_start())
}

fn read_type(name: &str) -> (Result<DataType, String>, usize) {
    let kind = name.trim_start_matches(['<', '>', '=', '|']);
    let known = TYPES.iter().find(|(known, _)| *known == kind);
    let Some(&(_, dtype)) = known else {
        return (Err(name.to_owned()), 0);
    };
    let size = dtype.size().unwrap_or(1);
    let swapped = match (name.starts_with('>'), kind.starts_with('c')) {
        (true, true) => size / 2,
        (true, false) if size > 1 => size,
        _ => 0,
    };
    (Ok(dtype), swapped)
}

/// Writes the header of an array.
///
/// # Errors
/// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) for a type that NumPy does not have.
pub(crate) fn write_header(dtype: DataType, dims: &[i64]) -> Result<Vec<u8>> {
    let known = TYPES.iter().find(|(_, known)| *known == dtype);
    let &(kind, _) = known.ok_or_else(|| {
        Error::argument(format!(
            "NumPy has no type {dtype}; safetensors may have, or cast it"
        ))
    })?;
    let order = if dtype.size() == Some(1) { '|' } else { '<' };
    let shape: String = match dims {
        [one] => format!("{one},"),
        dims => dims
            .iter()
            .map(i64::to_string)
            .collect::<Vec<_>>()
            .join(", "),
    };
    let mut text =
        format!("{{'descr': '{order}{kind}', 'fortran_order': False, 'shape': ({shape}), }}");
    // The elements begin at a multiple of 64, after a new line.
    let length = (10 + text.len() + 1).next_multiple_of(64) - 10;
    text.extend(std::iter::repeat_n(' ', length - 1 - text.len()));
    text.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    bytes.extend((length as u16).to_le_bytes());
    bytes.extend(text.into_bytes());
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() -> Result<()> {
        for dims in [&[][..], &[3], &[2, 0, 5]] {
            let mut bytes = write_header(DataType::DOUBLE, dims)?;
            assert_eq!(bytes.len() % 64, 0);
            let count: i64 = dims.iter().product();
            bytes.resize(bytes.len() + 8 * count as usize, 0);
            let header = read_header(&bytes)?;
            assert_eq!(
                (header.dtype, header.dims.as_slice()),
                (Ok(DataType::DOUBLE), dims)
            );
            assert!(!header.is_fortran && header.swapped == 0);
        }
        assert!(write_header(DataType::BFLOAT16, &[]).is_err());
        Ok(())
    }

    #[test]
    fn what_numpy_writes_of_other_orders_is_read() -> Result<()> {
        let text = "{'descr': '>c8', 'fortran_order': True, 'shape': (1, 2), }\n";
        let mut bytes = b"\x93NUMPY\x02\x00".to_vec();
        bytes.extend((text.len() as u32).to_le_bytes());
        bytes.extend(text.as_bytes());
        let at = bytes.len() as u64;
        bytes.extend([0; 16]);
        let header = read_header(&bytes)?;
        let expected = Header {
            dtype: Ok(DataType::COMPLEX64),
            swapped: 4,
            is_fortran: true,
            dims: vec![1, 2],
            at,
        };
        assert_eq!(header, expected);
        assert_eq!(read_type("<U2"), (Err("<U2".to_owned()), 0));
        assert_eq!(read_type("|b1"), (Ok(DataType::BOOL), 0));
        Ok(())
    }

    #[test]
    fn no_change_of_a_byte_panics() {
        let mut bytes = write_header(DataType::FLOAT, &[2, 3]).expect("a header");
        bytes.resize(bytes.len() + 24, 0);
        for at in 0..bytes.len() - 24 {
            for value in [0, b'\'', b'9', b'(', 0x80, 0xff] {
                let mut damaged = bytes.clone();
                damaged[at] = value;
                let _ = read_header(&damaged);
            }
        }
        for length in 0..bytes.len() {
            assert!(read_header(&bytes[..length]).is_err(), "{length}");
        }
    }
}
