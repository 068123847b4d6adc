//! The weights of a model: one block of bytes with every tensor at a place that the converter chose.
//!
//! A file of weights is a header of [`HEADER`] bytes, then the tensors, little-endian, each at a
//! multiple of 64 bytes. Tensors that a model reads in place come first; those that it packs when it
//! is made follow and are not needed afterwards. The header has, all little-endian:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | [`MAGIC`], whose last byte is the version of the format |
//! | 8 | the model's fingerprint |
//! | 8 | bytes after the header |
//! | 16 | two sums of all bytes, these 16 taken as zeros (`sums::Sums`) |
//! | 24 | zeros |
//!
//! The sums are compared when weights come from outside of the program: from a file, or as bytes.

use core::fmt;
use core::marker::PhantomData;

use crate::bytes::{Pod, view};
use crate::error::{Error, Result};

#[cfg(target_endian = "big")]
compile_error!("weights are read in place, so that the target must be little-endian");

/// Bytes before the first tensor.
pub const HEADER: usize = 64;
/// First bytes of a file of weights.
pub const MAGIC: [u8; 8] = *b"tfpw\0\0\0\x02";

/// What the converter knows of a file of weights.
#[derive(Clone, Copy, Debug)]
pub struct Layout {
    /// What tells it from other models' files.
    pub fingerprint: u64,
    /// Its bytes.
    pub len: usize,
    /// How many of them, from the first one on, are in memory while the model is made.
    pub held: usize,
    /// Bytes of the largest tensor after those.
    pub largest: usize,
}

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
        view(self.bytes_in(weights).ok_or_else(outside)?)
    }

    /// Its bytes; `None` if the weights are too short.
    #[inline]
    pub(crate) fn bytes_in<'a>(&self, weights: &'a [u8]) -> Option<&'a [u8]> {
        let (at, len) = self.byte_span();
        weights.get(at..)?.get(..len)
    }

    /// The byte of its first element, and how many bytes it has.
    #[inline]
    pub(crate) fn byte_span(&self) -> (usize, usize) {
        (self.at, self.len * size_of::<T>())
    }
}

#[cold]
pub(crate) fn outside() -> Error {
    Error::Plan {
        expected: "every tensor inside the weights",
    }
}

/// Fails unless `bytes` are the weights with this fingerprint and length, by their header.
///
/// # Errors
/// [`Error::Weights`].
pub fn check(bytes: &[u8], fingerprint: u64, len: usize) -> Result<()> {
    let lengths = (bytes.len() as u64, len as u64);
    match bytes.first_chunk() {
        Some(header) => check_header(header, lengths.0, fingerprint, lengths.1),
        None => refused("number of bytes", lengths.0, lengths.1),
    }
}

pub(crate) fn check_header(
    header: &[u8; HEADER],
    found: u64,
    fingerprint: u64,
    len: u64,
) -> Result<()> {
    let magic = word(header, 0);
    let expected = u64::from_le_bytes(MAGIC);
    const VERSION: u32 = 56;
    if magic << 8 != expected << 8 {
        let reason = "no file of weights, by its first 8 bytes";
        return refused(reason, magic, expected);
    }
    if magic != expected {
        let reason = "another version of the format; convert the model again";
        return refused(reason, magic >> VERSION, expected >> VERSION);
    }
    if word(header, 8) != fingerprint {
        let reason = "another model's fingerprint";
        return refused(reason, word(header, 8), fingerprint);
    }
    if found != len {
        return refused("number of bytes", found, len);
    }
    Ok(())
}

/// The number at byte `at` of a header.
pub(crate) fn word(header: &[u8; HEADER], at: usize) -> u64 {
    let bytes = header.get(at..).and_then(|x| x.first_chunk());
    u64::from_le_bytes(bytes.copied().unwrap_or_default())
}

pub(crate) fn refused(reason: &'static str, found: u64, expected: u64) -> Result<()> {
    Err(Error::Weights {
        reason,
        found,
        expected,
    })
}

/// The weights that a model holds on to.
#[cfg(feature = "std")]
#[derive(Clone)]
pub enum Weights {
    /// Part of the program, or there for as long as it runs.
    Embedded(&'static [u8]),
    /// Of an owner that others may share, such as a mapped file.
    Shared(std::sync::Arc<dyn AsRef<[u8]> + Send + Sync>),
    /// Read or copied when the model was made.
    Owned(crate::bytes::AlignedBytes),
}

#[cfg(feature = "std")]
impl fmt::Debug for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Weights({} bytes)", self.bytes().len())
    }
}

#[cfg(feature = "std")]
impl Weights {
    /// All bytes.
    #[must_use]
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::Embedded(bytes) => bytes,
            Self::Shared(owner) => (**owner).as_ref(),
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
