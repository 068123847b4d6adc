//! Messages, written field by field.

use crate::varint::push_varint;

/// Writes the fields of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Writer(Vec<u8>);

impl Writer {
    /// Begins an empty message.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the message.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn key(&mut self, number: u32, wire_type: u64) {
        push_varint(&mut self.0, u64::from(number) << 3 | wire_type);
    }

    /// Appends an integer, truth value or enumerator, also if it is 0.
    pub fn int(&mut self, number: u32, value: i64) {
        self.key(number, 0);
        push_varint(&mut self.0, value.cast_unsigned());
    }

    /// Appends a 32-bit float.
    pub fn float(&mut self, number: u32, value: f32) {
        self.key(number, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a 64-bit float.
    pub fn double(&mut self, number: u32, value: f64) {
        self.key(number, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
    }

    /// Appends a packed list of integers; nothing for an empty one.
    pub fn ints(&mut self, number: u32, values: &[i64]) {
        let mut packed = Vec::with_capacity(values.len());
        for value in values {
            push_varint(&mut packed, value.cast_unsigned());
        }
        if !packed.is_empty() {
            self.bytes(number, &packed);
        }
    }

    /// Appends a packed list of 32-bit floats; nothing for an empty one.
    pub fn floats(&mut self, number: u32, values: &[f32]) {
        let packed: Vec<u8> = values.iter().flat_map(|one| one.to_le_bytes()).collect();
        if !packed.is_empty() {
            self.bytes(number, &packed);
        }
    }

    /// Appends a string, bytes or a message that is serialized already.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.key(number, 2);
        push_varint(&mut self.0, value.len() as u64);
        self.0.extend_from_slice(value);
    }

    /// Appends a message that `write` fills.
    pub fn message(&mut self, number: u32, write: impl FnOnce(&mut Self)) {
        let mut inner = Self::new();
        write(&mut inner);
        self.bytes(number, &inner.0);
    }

    /// Appends fields in wire format, such as [`Field::raw`](crate::Field::raw).
    pub fn raw(&mut self, fields: &[u8]) {
        self.0.extend_from_slice(fields);
    }
}
