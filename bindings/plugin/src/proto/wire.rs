//! The wire format: numbered fields, one after the other.

use crate::error::{Error, Result};

/// The value of a field as it stands in the message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 2: a string, bytes, a message or packed numbers.
    Bytes(&'a [u8]),
    /// Wire type 5.
    Fixed32(u32),
}

/// A field: its number, its value, and all of its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// Number of the field in its message.
    pub number: u32,
    /// Value.
    pub value: Value<'a>,
    /// Key and value as they stand in the message.
    pub raw: &'a [u8],
}

/// Iterates over the fields of a message. After an error it ends.
#[derive(Clone, Debug)]
pub struct Fields<'a> {
    rest: &'a [u8],
}

/// The fields of `message`.
#[must_use]
pub fn fields(message: &[u8]) -> Fields<'_> {
    Fields { rest: message }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let start = self.rest;
        let read = self.read();
        match read {
            Some((number, value)) => Some(Ok(Field {
                number,
                value,
                raw: &start[..start.len() - self.rest.len()],
            })),
            None => {
                let left = start.len();
                self.rest = &[];
                Some(Err(Error::invalid(format!(
                    "malformed protocol buffer: no valid field {left} bytes before its end"
                ))))
            }
        }
    }
}

impl<'a> Fields<'a> {
    fn read(&mut self) -> Option<(u32, Value<'a>)> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|&n| n != 0)?;
        let value = match key & 7 {
            0 => Value::Varint(self.varint()?),
            1 => Value::Fixed64(u64::from_le_bytes(self.take(8)?.try_into().ok()?)),
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Value::Bytes(self.take(length)?)
            }
            5 => Value::Fixed32(u32::from_le_bytes(self.take(4)?.try_into().ok()?)),
            _ => return None,
        };
        Some((number, value))
    }

    fn varint(&mut self) -> Option<u64> {
        let (value, rest) = varint(self.rest)?;
        self.rest = rest;
        Some(value)
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.rest.split_at_checked(length)?;
        self.rest = rest;
        Some(head)
    }
}

fn varint(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0_u64;
    for (i, &byte) in bytes.iter().enumerate().take(10) {
        let bits = u64::from(byte & 0x7f);
        if i == 9 && bits > 1 {
            return None;
        }
        value |= bits << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, &bytes[i + 1..]));
        }
    }
    None
}

impl<'a> Value<'a> {
    /// Bytes, a string or a message.
    ///
    /// # Errors
    /// If the field is a number.
    pub fn bytes(self, what: &str) -> Result<&'a [u8]> {
        match self {
            Self::Bytes(bytes) => Ok(bytes),
            _ => Err(Error::invalid(format!("{what} is a number in the message"))),
        }
    }

    /// A string.
    ///
    /// # Errors
    /// If the field is a number or not UTF-8.
    pub fn text(self, what: &str) -> Result<&'a str> {
        std::str::from_utf8(self.bytes(what)?)
            .map_err(|_| Error::invalid(format!("{what} is not UTF-8")))
    }

    /// An integer, a bool or an enum.
    ///
    /// # Errors
    /// If the field is not a varint.
    #[allow(clippy::cast_possible_wrap)]
    pub fn int(self, what: &str) -> Result<i64> {
        match self {
            Self::Varint(value) => Ok(value as i64),
            _ => Err(Error::invalid(format!("{what} is not an integer"))),
        }
    }

    /// A `float`.
    ///
    /// # Errors
    /// If the field is not 32 bits wide.
    pub fn float(self, what: &str) -> Result<f32> {
        match self {
            Self::Fixed32(bits) => Ok(f32::from_bits(bits)),
            _ => Err(Error::invalid(format!("{what} is not a float"))),
        }
    }

    /// The numbers of one occurrence of a repeated integer field, packed or not.
    ///
    /// # Errors
    /// If the field is of another kind.
    #[allow(clippy::cast_possible_wrap)]
    pub fn ints(self, what: &str, sink: &mut Vec<i64>) -> Result<()> {
        match self {
            Self::Varint(value) => sink.push(value as i64),
            Self::Bytes(mut packed) => {
                while !packed.is_empty() {
                    let (value, rest) = varint(packed)
                        .ok_or_else(|| Error::invalid(format!("{what} is cut off")))?;
                    sink.push(value as i64);
                    packed = rest;
                }
            }
            _ => return Err(Error::invalid(format!("{what} is not an integer"))),
        }
        Ok(())
    }

    /// The numbers of one occurrence of a repeated `float` field, packed or not.
    ///
    /// # Errors
    /// If the field is of another kind.
    pub fn floats(self, what: &str, sink: &mut Vec<f32>) -> Result<()> {
        match self {
            Self::Fixed32(bits) => sink.push(f32::from_bits(bits)),
            Self::Bytes(packed) => {
                let (numbers, rest) = packed.as_chunks::<4>();
                if !rest.is_empty() {
                    return Err(Error::invalid(format!("{what} is cut off")));
                }
                sink.extend(numbers.iter().map(|&n| f32::from_le_bytes(n)));
            }
            _ => return Err(Error::invalid(format!("{what} is not a float"))),
        }
        Ok(())
    }
}

/// Writes a message field by field.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer {
    bytes: Vec<u8>,
}

impl Writer {
    /// An empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The message.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// An integer, a bool or an enum, also when it is 0.
    #[allow(clippy::cast_sign_loss)]
    pub fn int(&mut self, number: u32, value: i64) -> &mut Self {
        self.varint(u64::from(number) << 3);
        self.varint(value as u64);
        self
    }

    /// A `float`.
    pub fn float(&mut self, number: u32, value: f32) -> &mut Self {
        self.varint(u64::from(number) << 3 | 5);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// A `double`.
    pub fn double(&mut self, number: u32, value: f64) -> &mut Self {
        self.varint(u64::from(number) << 3 | 1);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self
    }

    /// Bytes, a string or a message.
    pub fn bytes(&mut self, number: u32, value: &[u8]) -> &mut Self {
        self.varint(u64::from(number) << 3 | 2);
        self.varint(value.len() as u64);
        self.bytes.extend_from_slice(value);
        self
    }

    /// A message that `fill` writes.
    pub fn message(&mut self, number: u32, fill: impl FnOnce(&mut Self)) -> &mut Self {
        let mut inner = Self::new();
        fill(&mut inner);
        self.bytes(number, &inner.bytes)
    }

    /// Fields that are already in wire format.
    pub fn raw(&mut self, fields: &[u8]) -> &mut Self {
        self.bytes.extend_from_slice(fields);
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_is_written_is_read() {
        let mut writer = Writer::new();
        writer
            .int(1, -1)
            .float(2, 1.5)
            .double(3, 2.5)
            .bytes(400, b"hi");
        let bytes = writer.into_bytes();
        let read: Vec<_> = fields(&bytes).map(Result::unwrap).collect();
        assert_eq!(read[0].value.int("x").unwrap(), -1);
        assert_eq!(read[1].value.float("x").unwrap(), 1.5);
        assert_eq!(read[2].value, Value::Fixed64(2.5_f64.to_bits()));
        assert_eq!(read[3].number, 400);
        assert_eq!(read[3].value.text("x").unwrap(), "hi");
        let joined: Vec<u8> = read.iter().flat_map(|f| f.raw).copied().collect();
        assert_eq!(joined, bytes);
    }

    #[test]
    fn cut_off_messages_are_errors() {
        let mut writer = Writer::new();
        writer.bytes(1, b"abcdef").float(2, 1.0);
        let bytes = writer.into_bytes();
        for end in 1..bytes.len() {
            let whole = fields(&bytes[..end]).all(|f| f.is_ok());
            assert_eq!(whole, end == 8, "cut at {end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut good = 0;
            for field in fields(&bytes) {
                match field {
                    Ok(field) => good += field.raw.len(),
                    Err(error) => prop_assert!(error.message().contains("malformed")),
                }
            }
            prop_assert!(good <= bytes.len());
        }

        #[test]
        fn integers_round_trip(values in proptest::collection::vec(any::<i64>(), 0..20)) {
            let mut packed = Writer::new();
            let mut single = Writer::new();
            for &value in &values {
                single.int(3, value);
                packed.varint(value.cast_unsigned());
            }
            let mut whole = Writer::new();
            whole.bytes(3, &packed.into_bytes());
            for bytes in [single.into_bytes(), whole.into_bytes()] {
                let mut read = Vec::new();
                for field in fields(&bytes) {
                    field.unwrap().value.ints("x", &mut read).unwrap();
                }
                prop_assert_eq!(&read, &values);
            }
        }
    }
}
