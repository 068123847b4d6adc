//! Numbers at places of a file, which may be damaged.

use std::cell::Cell;

use tfp_core::{Error, Result};

/// What a reader may still do that costs time or memory beyond the bytes of a file, whose parts may be
/// told again and again.
pub(crate) struct Budget(Cell<u64>);

impl Budget {
    /// Enough for every file of so many bytes that repeats little.
    pub fn of(bytes: &[u8]) -> Self {
        Self(Cell::new((1 << 26) + 16 * bytes.len() as u64))
    }

    /// Takes steps, or bytes that are copied.
    ///
    /// # Errors
    /// [`ErrorKind::Argument`](tfp_core::ErrorKind::Argument) where there is not so much left.
    pub fn take(&self, file: Bytes<'_>, count: u64) -> Result<()> {
        let left = self.0.get().checked_sub(count);
        self.0.set(left.ok_or_else(|| {
            file.damaged("it repeats its parts far more often than any program writes them")
        })?);
        Ok(())
    }
}

/// The bytes of a file.
#[derive(Clone, Copy)]
pub(crate) struct Bytes<'b> {
    /// What the file is, for messages.
    pub what: &'static str,
    pub bytes: &'b [u8],
}

impl<'b> Bytes<'b> {
    /// An error about the file.
    pub fn damaged(&self, problem: &str) -> Error {
        Error::argument(format!("{} is damaged: {problem}", self.what))
    }

    /// Some bytes.
    pub fn part(&self, at: u64, length: u64) -> Result<&'b [u8]> {
        let range = usize::try_from(at).ok().zip(usize::try_from(length).ok());
        range
            .and_then(|(at, length)| self.bytes.get(at..at.checked_add(length)?))
            .ok_or_else(|| {
                self.damaged(&format!(
                    "{length} bytes at {at} are beyond its end, {}",
                    self.bytes.len()
                ))
            })
    }

    /// A little-endian number of up to 8 bytes.
    pub fn number(&self, at: u64, length: u64) -> Result<u64> {
        let bytes = self.part(at, length)?.iter().rev();
        Ok(bytes.fold(0, |number, &byte| number << 8 | u64::from(byte)))
    }
}
