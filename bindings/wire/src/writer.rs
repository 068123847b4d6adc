//! Messages, written field by field.

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

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, number: u32, wire_type: u64) {
        self.varint(u64::from(number) << 3 | wire_type);
    }

    /// Appends an integer, truth value or enumerator, also if it is 0.
    pub fn int(&mut self, number: u32, value: i64) {
        self.key(number, 0);
        self.varint(value.cast_unsigned());
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

    /// Appends a string, bytes or a message that is serialized already.
    pub fn bytes(&mut self, number: u32, value: &[u8]) {
        self.key(number, 2);
        self.varint(value.len() as u64);
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
