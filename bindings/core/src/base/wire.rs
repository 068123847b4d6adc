//! The wire format of protocol buffers: the little of it that the client reads and writes.

use crate::base::error::{Error, ErrorKind, Result};

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Field<'a> {
    /// An integer, truth value or enumerator.
    Varint(u64),
    /// Eight bytes.
    Fixed64(u64),
    /// A string, bytes, message or packed list.
    Bytes(&'a [u8]),
    /// Four bytes.
    Fixed32(u32),
}

impl<'a> Field<'a> {
    #[cold]
    fn other(self, expected: &str) -> Error {
        let found = match self {
            Self::Varint(_) => "an integer".to_owned(),
            Self::Fixed64(_) => "a number of eight bytes".to_owned(),
            Self::Fixed32(_) => "a number of four bytes".to_owned(),
            Self::Bytes(bytes) => format!("{} bytes", bytes.len()),
        };
        Error::new(ErrorKind::Proto {
            message: "field",
            problem: format!("expected {expected}, found {found}"),
        })
    }

    /// Returns the integer, truth value or enumerator.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`] for a field of another kind.
    pub fn int(self) -> Result<i64> {
        match self {
            Self::Varint(value) => Ok(value as i64),
            _ => Err(self.other("an integer")),
        }
    }

    /// Returns the bytes of a string, a message or a packed list.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`] for a field of another kind.
    pub fn bytes(self) -> Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(self.other("bytes")),
        }
    }

    /// Returns the text.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`] for a field of another kind, and for bytes that are not UTF-8.
    pub fn text(self) -> Result<String> {
        match std::str::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(self.other("text in UTF-8")),
        }
    }

    /// Returns the 32-bit float.
    ///
    /// # Errors
    /// [`ErrorKind::Proto`] for a field of another kind.
    pub fn float(self) -> Result<f32> {
        match self {
            Self::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(self.other("a float")),
        }
    }
}

/// Reads the fields of a message, in the order of the bytes.
pub struct Reader<'a> {
    message: &'static str,
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// Begins at the first byte; `message` is the type's name, for errors.
    pub fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            message,
            bytes,
            at: 0,
        }
    }

    #[cold]
    fn bad(&self, problem: &str) -> Error {
        Error::new(ErrorKind::Proto {
            message: self.message,
            problem: format!("{problem} at byte {} of {}", self.at, self.bytes.len()),
        })
    }

    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let Some(&byte) = self.bytes.get(self.at) else {
                return Err(self.bad("an integer is cut off"));
            };
            self.at += 1;
            // The tenth byte has the last bit.
            if shift == 63 && byte > 1 {
                return Err(self.bad("an integer has more than 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.bad("an integer has more than 64 bits"))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let rest = self.bytes.get(self.at..).unwrap_or(&[]);
        match usize::try_from(length)
            .ok()
            .and_then(|length| rest.get(..length))
        {
            Some(bytes) => {
                self.at += bytes.len();
                Ok(bytes)
            }
            None => Err(self.bad(&format!(
                "{length} bytes are announced, {} left",
                rest.len()
            ))),
        }
    }

    fn field(&mut self) -> Result<(u32, Field<'a>)> {
        let tag = self.varint()?;
        let field = match tag & 7 {
            0 => Field::Varint(self.varint()?),
            1 => Field::Fixed64(
                self.take(8)?
                    .iter()
                    .rev()
                    .fold(0, |v, &b| v << 8 | u64::from(b)),
            ),
            2 => {
                let length = self.varint()?;
                Field::Bytes(self.take(length)?)
            }
            5 => Field::Fixed32(
                self.take(4)?
                    .iter()
                    .rev()
                    .fold(0, |v, &b| v << 8 | u32::from(b)),
            ),
            kind => return Err(self.bad(&format!("a field has wire type {kind}"))),
        };
        match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => Ok((number, field)),
            _ => Err(self.bad("a field has no valid number")),
        }
    }
}

impl<'a> Iterator for Reader<'a> {
    type Item = Result<(u32, Field<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.at >= self.bytes.len() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.at = self.bytes.len();
        }
        Some(field)
    }
}

/// Reads a list of integers, packed or one by one.
///
/// # Errors
/// [`ErrorKind::Proto`] for a field of another kind, and a list that is cut off.
pub fn read_ints(field: Field<'_>, list: &mut Vec<i64>) -> Result<()> {
    let Field::Bytes(bytes) = field else {
        list.push(field.int()?);
        return Ok(());
    };
    let mut reader = Reader::new("packed list", bytes);
    while reader.at < bytes.len() {
        list.push(reader.varint()? as i64);
    }
    Ok(())
}

/// Reads a list of floats, packed or one by one.
///
/// # Errors
/// [`ErrorKind::Proto`] for a field of another kind, and a list that is cut off.
pub fn read_floats(field: Field<'_>, list: &mut Vec<f32>) -> Result<()> {
    let Field::Bytes(bytes) = field else {
        list.push(field.float()?);
        return Ok(());
    };
    let (floats, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err(field.other("floats of four bytes each"));
    }
    list.extend(floats.iter().map(|&float| f32::from_le_bytes(float)));
    Ok(())
}

/// Writes the fields of a message.
#[derive(Default)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Begins an empty message.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the message.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    /// Appends an integer, truth value or enumerator.
    pub fn int(&mut self, number: u32, value: i64) {
        self.raw_varint(u64::from(number) << 3);
        self.raw_varint(value as u64);
    }

    /// Appends a 32-bit float.
    pub fn float(&mut self, number: u32, value: f32) {
        self.raw_varint(u64::from(number) << 3 | 5);
        self.0.extend(value.to_le_bytes());
    }

    /// Appends a string, bytes or a message that is serialized already.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.raw_varint(u64::from(number) << 3 | 2);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Appends a field as it was read.
    pub fn field(&mut self, number: u32, field: Field<'_>) {
        match field {
            Field::Varint(value) => self.int(number, value as i64),
            Field::Bytes(bytes) => self.bytes(number, bytes),
            Field::Fixed64(value) => {
                self.raw_varint(u64::from(number) << 3 | 1);
                self.0.extend(value.to_le_bytes());
            }
            Field::Fixed32(value) => {
                self.raw_varint(u64::from(number) << 3 | 5);
                self.0.extend(value.to_le_bytes());
            }
        }
    }

    /// Appends a message.
    pub fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::new();
        write(&mut inner);
        self.bytes(number, &inner.0);
    }
}
