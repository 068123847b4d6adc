//! Messages as numbered fields, one after the other.

use crate::error::{Error, Result};
use crate::varint::take_varint;

/// The value of a field as it stands in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Wire type 0: an integer, truth value or enumerator.
    Varint(u64),
    /// Wire type 1: eight bytes.
    Fixed64(u64),
    /// Wire type 2: a string, bytes, a message or a packed list.
    Bytes(&'a [u8]),
    /// Wire type 5: four bytes.
    Fixed32(u32),
}

/// A field of a message.
#[derive(Clone, Copy, Debug)]
pub struct Field<'a> {
    message: &'static str,
    number: u32,
    value: Value<'a>,
    raw: &'a [u8],
}

impl<'a> Field<'a> {
    /// Returns the number in the message.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// Returns the value, of whatever kind.
    #[must_use]
    pub fn value(self) -> Value<'a> {
        self.value
    }

    /// Returns the key and the value as they stand in the message, for [`Writer::raw`](crate::Writer::raw).
    #[must_use]
    pub fn raw(self) -> &'a [u8] {
        self.raw
    }

    #[cold]
    fn other(self, expected: &str) -> Error {
        let found = match self.value {
            Value::Varint(_) => "an integer".to_owned(),
            Value::Fixed64(_) => "a number of eight bytes".to_owned(),
            Value::Fixed32(_) => "a number of four bytes".to_owned(),
            Value::Bytes(bytes) => format!("{} bytes", bytes.len()),
        };
        Error::new(
            self.message,
            format!("field {}: expected {expected}, found {found}", self.number),
        )
    }

    /// Returns the integer, truth value or enumerator.
    ///
    /// # Errors
    /// For a field of another kind.
    pub fn int(self) -> Result<i64> {
        match self.value {
            Value::Varint(value) => Ok(value.cast_signed()),
            _ => Err(self.other("an integer")),
        }
    }

    /// Returns the bytes of a string, a message or a packed list.
    ///
    /// # Errors
    /// For a field of another kind.
    pub fn bytes(self) -> Result<&'a [u8]> {
        match self.value {
            Value::Bytes(bytes) => Ok(bytes),
            _ => Err(self.other("bytes")),
        }
    }

    /// Returns the text.
    ///
    /// # Errors
    /// For a field of another kind, and for bytes that are not UTF-8.
    pub fn text(self) -> Result<&'a str> {
        std::str::from_utf8(self.bytes()?).map_err(|_| self.other("text in UTF-8"))
    }

    /// Returns the 32-bit float.
    ///
    /// # Errors
    /// For a field of another kind.
    pub fn float(self) -> Result<f32> {
        match self.value {
            Value::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(self.other("a float")),
        }
    }

    /// Appends the integers of one occurrence of a repeated field, packed or not, to a list.
    ///
    /// # Errors
    /// For a field of another kind, and for a packed list that is cut off.
    pub fn ints(self, list: &mut Vec<i64>) -> Result<()> {
        let Value::Bytes(bytes) = self.value else {
            list.push(self.int()?);
            return Ok(());
        };
        let mut packed = Reader::new(self.message, bytes);
        while !packed.rest.is_empty() {
            list.push(packed.varint()?.cast_signed());
        }
        Ok(())
    }

    /// Appends the floats of one occurrence of a repeated field, packed or not, to a list.
    ///
    /// # Errors
    /// For a field of another kind, and for a packed list that is cut off.
    pub fn floats(self, list: &mut Vec<f32>) -> Result<()> {
        let Value::Bytes(bytes) = self.value else {
            list.push(self.float()?);
            return Ok(());
        };
        let (floats, rest) = bytes.as_chunks::<4>();
        if !rest.is_empty() {
            return Err(self.other("floats of four bytes each"));
        }
        list.extend(floats.iter().map(|&float| f32::from_le_bytes(float)));
        Ok(())
    }
}

/// Reads the fields of a message, in the order of the bytes. After an error it ends.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    message: &'static str,
    length: usize,
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Begins at the first byte; `message` is the type's name, for errors.
    #[must_use]
    pub fn new(message: &'static str, bytes: &'a [u8]) -> Self {
        Self {
            message,
            length: bytes.len(),
            rest: bytes,
        }
    }

    #[cold]
    fn bad(&self, problem: &str) -> Error {
        let at = self.length - self.rest.len();
        Error::new(
            self.message,
            format!("{problem} at byte {at} of {}", self.length),
        )
    }

    fn varint(&mut self) -> Result<u64> {
        take_varint(&mut self.rest).map_err(|problem| self.bad(problem))
    }

    fn take(&mut self, length: u64) -> Result<&'a [u8]> {
        let split = usize::try_from(length)
            .ok()
            .and_then(|length| self.rest.split_at_checked(length));
        let Some((bytes, rest)) = split else {
            let left = self.rest.len();
            return Err(self.bad(&format!("{length} bytes are announced, {left} left")));
        };
        self.rest = rest;
        Ok(bytes)
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N]> {
        let Some((&bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.bad(&format!("a number of {N} bytes is cut off")));
        };
        self.rest = rest;
        Ok(bytes)
    }

    fn field(&mut self) -> Result<(u32, Field<'a>)> {
        let start = self.rest;
        let tag = self.varint()?;
        let value = match tag & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.fixed()?)),
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.fixed()?)),
            kind => return Err(self.bad(&format!("a field has wire type {kind}"))),
        };
        let number = match u32::try_from(tag >> 3) {
            Ok(number) if number > 0 => number,
            _ => return Err(self.bad("a field has no valid number")),
        };
        let field = Field {
            message: self.message,
            number,
            value,
            raw: &start[..start.len() - self.rest.len()],
        };
        Ok((number, field))
    }
}

impl<'a> Iterator for Reader<'a> {
    /// A field and its number.
    type Item = Result<(u32, Field<'a>)>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.field();
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}
