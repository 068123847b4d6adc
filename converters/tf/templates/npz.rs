//! Reads uncompressed `.npz` files: a zip archive of arrays in NumPy's format.

use std::collections::BTreeMap;

/// The arrays of a file.
pub struct Npz {
    arrays: BTreeMap<String, (String, Vec<u8>)>,
    texts: BTreeMap<String, Vec<String>>,
}

/// A type that arrays are read as.
pub trait Element: Sized {
    /// NumPy's name of the type.
    const NUMPY: &'static str;

    /// The element that these bytes are.
    fn of(bytes: &[u8]) -> Self;
}

macro_rules! elements {
    ($($type:ident $numpy:literal)*) => {$(
        impl Element for $type {
            const NUMPY: &'static str = $numpy;

            fn of(bytes: &[u8]) -> Self {
                Self::from_le_bytes(bytes.try_into().expect("the size of an element"))
            }
        }
    )*};
}

elements! {
    f32 "<f4" f64 "<f8" i8 "|i1" i16 "<i2" i32 "<i4" i64 "<i8" u8 "|u1" u16 "<u2" u32 "<u4" u64 "<u8"
}

impl Element for bool {
    const NUMPY: &'static str = "|b1";

    fn of(bytes: &[u8]) -> Self {
        bytes != [0]
    }
}

fn number(bytes: &[u8], at: usize, size: usize) -> usize {
    let mut wide = [0; 8];
    wide[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(wide) as usize
}

impl Npz {
    /// Reads a file.
    pub fn open(path: &str) -> Self {
        let bytes = std::fs::read(path).unwrap_or_else(|error| panic!("{path}: {error}"));
        let end = bytes
            .windows(4)
            .rposition(|window| window == b"PK\x05\x06")
            .unwrap_or_else(|| panic!("{path} is no zip archive"));
        let (count, mut at) = (number(&bytes, end + 10, 2), number(&bytes, end + 16, 4));
        let mut arrays = BTreeMap::new();
        for _ in 0..count {
            assert_eq!(&bytes[at..at + 4], b"PK\x01\x02", "{path}: directory");
            assert_eq!(number(&bytes, at + 10, 2), 0, "{path} is compressed");
            let size = number(&bytes, at + 24, 4);
            let lengths = [28, 30, 32].map(|field| number(&bytes, at + field, 2));
            let name = String::from_utf8_lossy(&bytes[at + 46..at + 46 + lengths[0]]);
            let local = number(&bytes, at + 42, 4);
            let start = local + 30 + number(&bytes, local + 26, 2) + number(&bytes, local + 28, 2);
            let array = array(&bytes[start..start + size]);
            arrays.insert(name.trim_end_matches(".npy").to_owned(), array);
            at += 46 + lengths.iter().sum::<usize>();
        }
        let texts = arrays
            .iter()
            .filter_map(|(name, (numpy, data))| Some((name.clone(), texts(numpy, data)?)))
            .collect();
        Self { arrays, texts }
    }

    /// The elements of an array of texts.
    #[allow(dead_code)]
    pub fn texts(&self, name: &str) -> Vec<&str> {
        let found = self.texts.get(name);
        let texts = found.unwrap_or_else(|| panic!("no array {name} of texts"));
        texts.iter().map(String::as_str).collect()
    }

    fn raw(&self, name: &str) -> &(String, Vec<u8>) {
        self.arrays
            .get(name)
            .unwrap_or_else(|| panic!("no array {name}; there are {:?}", self.arrays.keys()))
    }

    /// The elements of an array.
    pub fn array<T: Element>(&self, name: &str) -> Vec<T> {
        let (numpy, data) = self.raw(name);
        assert_eq!(numpy, T::NUMPY, "type of array {name}");
        data.chunks(size_of::<T>()).map(T::of).collect()
    }

    /// The elements of an array of floats.
    #[allow(dead_code)]
    pub fn floats(&self, name: &str) -> Vec<f64> {
        if self.raw(name).0 == f64::NUMPY {
            return self.array::<f64>(name);
        }
        self.array::<f32>(name).into_iter().map(f64::from).collect()
    }
}

/// The elements of an array of texts, which have so many characters of four bytes each, with zeros
/// after the last one; nothing for an array of another type.
fn texts(numpy: &str, data: &[u8]) -> Option<Vec<String>> {
    let size = numpy.strip_prefix("<U")?.parse::<usize>().ok()? * 4;
    let text = |bytes: &[u8]| -> String {
        let characters = bytes.chunks(4).map(|four| number(four, 0, 4) as u32);
        let all: String = characters.filter_map(char::from_u32).collect();
        all.trim_end_matches('\0').to_owned()
    };
    Some(data.chunks(size.max(1)).map(text).collect())
}

/// Type and data of an array.
fn array(bytes: &[u8]) -> (String, Vec<u8>) {
    assert!(bytes.starts_with(b"\x93NUMPY"), "no array");
    let (from, size) = if bytes[6] == 1 { (10, 2) } else { (12, 4) };
    let len = number(bytes, 8, size);
    let header = String::from_utf8_lossy(&bytes[from..from + len]);
    assert!(header.contains("'fortran_order': False"), "{header}");
    let numpy = header
        .split("'descr': '")
        .nth(1)
        .and_then(|rest| rest.split('\'').next());
    (
        numpy.expect("a type").to_owned(),
        bytes[from + len..].to_vec(),
    )
}
