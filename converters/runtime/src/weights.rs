//! The weights of a model: one block of bytes with every tensor at a place that the converter chose.
//!
//! A file of weights is a header of [`HEADER`] bytes (magic, fingerprint, length), then the
//! tensors, little-endian, each at a multiple of 64 bytes. Tensors that a model reads in place come
//! first; those that it packs when it is made follow and are not needed afterwards.

use core::fmt;
use core::marker::PhantomData;

use crate::bytes::{Pod, view};
use crate::error::{Error, Result};

#[cfg(target_endian = "big")]
compile_error!("weights are read in place, so that the target must be little-endian");

/// Bytes before the first tensor.
pub const HEADER: usize = 64;
/// First bytes of a file of weights.
pub const MAGIC: [u8; 8] = *b"tfpw\0\0\0\x01";

/// The place of a tensor in the weights.
pub struct Tensor<T> {
    at: usize,
    len: usize,
    element: PhantomData<fn() -> T>,
}

impl<T> Clone for Tensor<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Tensor<T> {}

impl<T> fmt::Debug for Tensor<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Tensor({} elements at byte {})", self.len, self.at)
    }
}

impl<T: Pod> Tensor<T> {
    /// A tensor of `len` elements from byte `at` of the file on.
    #[must_use]
    pub const fn new(at: usize, len: usize) -> Self {
        Self {
            at,
            len,
            element: PhantomData,
        }
    }

    /// Its elements.
    ///
    /// # Errors
    /// [`Error::Plan`] if the weights are too short.
    #[inline]
    pub fn of<'a>(&self, weights: &'a [u8]) -> Result<&'a [T]> {
        let bytes = weights
            .get(self.at..)
            .and_then(|x| x.get(..self.len * size_of::<T>()));
        view(bytes.ok_or_else(outside)?)
    }
}

#[cold]
fn outside() -> Error {
    Error::Plan {
        expected: "every tensor inside the weights",
    }
}

/// Fails unless `bytes` are the weights with this fingerprint and length.
///
/// # Errors
/// [`Error::Weights`].
pub fn check(bytes: &[u8], fingerprint: u64, len: usize) -> Result<()> {
    let fail = |reason, found, expected| {
        Err(Error::Weights {
            reason,
            found,
            expected,
        })
    };
    let lengths = (bytes.len() as u64, len as u64);
    if bytes.len() < HEADER {
        return fail("number of bytes", lengths.0, lengths.1);
    }
    let word = |at: usize| {
        let mut word = [0; 8];
        word.copy_from_slice(&bytes[at..at + 8]);
        u64::from_le_bytes(word)
    };
    if !bytes.starts_with(&MAGIC) {
        let expected = u64::from_le_bytes(MAGIC);
        return fail(
            "no file of weights, by its first 8 bytes",
            word(0),
            expected,
        );
    }
    let found = word(8);
    if found != fingerprint {
        return fail("another model's fingerprint", found, fingerprint);
    }
    if lengths.0 != lengths.1 {
        return fail("number of bytes", lengths.0, lengths.1);
    }
    Ok(())
}

/// The weights that a model holds on to.
#[cfg(feature = "std")]
#[derive(Clone, Debug)]
pub enum Weights {
    /// Part of the program.
    Embedded(&'static [u8]),
    /// Read or copied when the model was made.
    Owned(crate::bytes::AlignedBytes),
}

#[cfg(feature = "std")]
impl Weights {
    /// Weights that are part of the program, at a multiple of 64 bytes.
    ///
    /// # Errors
    /// [`Error::Weights`] unless they have this fingerprint and length.
    pub fn embedded(bytes: &'static [u8], fingerprint: u64, len: usize) -> Result<Self> {
        check(bytes, fingerprint, len)?;
        if bytes.as_ptr().addr().is_multiple_of(crate::bytes::ALIGN) {
            Ok(Self::Embedded(bytes))
        } else {
            Self::copied(bytes, fingerprint, len)
        }
    }

    /// A copy of weights that the caller has.
    ///
    /// # Errors
    /// As [`Weights::embedded`].
    pub fn copied(bytes: &[u8], fingerprint: u64, len: usize) -> Result<Self> {
        check(bytes, fingerprint, len)?;
        let mut owned = crate::bytes::AlignedBytes::zeroed(bytes.len());
        owned.as_mut_slice().copy_from_slice(bytes);
        Ok(Self::Owned(owned))
    }

    /// The weights in a file.
    ///
    /// # Errors
    /// [`Error::File`] if it can't be read; as [`Weights::embedded`].
    pub fn from_file(path: &std::path::Path, fingerprint: u64, len: usize) -> Result<Self> {
        use std::io::Read;
        let mut file = std::fs::File::open(path).map_err(Error::File)?;
        let found = file.metadata().map_err(Error::File)?.len();
        if found != len as u64 {
            return Err(Error::Weights {
                reason: "number of bytes",
                found,
                expected: len as u64,
            });
        }
        let mut owned = crate::bytes::AlignedBytes::zeroed(len);
        file.read_exact(owned.as_mut_slice()).map_err(Error::File)?;
        check(owned.as_slice(), fingerprint, len)?;
        Ok(Self::Owned(owned))
    }

    /// All bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Embedded(bytes) => bytes,
            Self::Owned(bytes) => bytes.as_slice(),
        }
    }

    /// The same weights; what follows the first `len` bytes is given back if it is owned.
    #[must_use]
    pub fn kept(mut self, len: usize) -> Self {
        if let Self::Owned(bytes) = &mut self {
            bytes.truncate(len);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_what_was_found_from_what_was_expected() {
        let mut good = vec![0; HEADER + 8];
        good[..8].copy_from_slice(&MAGIC);
        good[8] = 7;
        assert!(check(&good, 7, good.len()).is_ok());
        let (mut other, mut older) = (good.clone(), good.clone());
        other[8] = 6;
        older[7] ^= 2;
        for bytes in [
            &other,
            &older,
            &good[..HEADER - 1].to_vec(),
            &good[..HEADER].to_vec(),
        ] {
            let Err(Error::Weights {
                found, expected, ..
            }) = check(bytes, 7, good.len())
            else {
                panic!("{} bytes are taken", bytes.len())
            };
            assert_ne!(found, expected);
        }
    }
}
