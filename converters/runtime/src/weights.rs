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
/// Where the header has the sums.
#[cfg(feature = "std")]
const SUMS: core::ops::Range<usize> = 24..40;
/// Bytes that are copied and summed at a time: they are still in a cache when they are read again.
#[cfg(feature = "std")]
const PART: usize = 1 << 18;

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

fn check_header(header: &[u8; HEADER], found: u64, fingerprint: u64, len: u64) -> Result<()> {
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
fn word(header: &[u8; HEADER], at: usize) -> u64 {
    let bytes = header.get(at..).and_then(|x| x.first_chunk());
    u64::from_le_bytes(bytes.copied().unwrap_or_default())
}

fn refused(reason: &'static str, found: u64, expected: u64) -> Result<()> {
    Err(Error::Weights {
        reason,
        found,
        expected,
    })
}

/// Fills memory for weights part by part, and fails unless the sums of all are what the header says.
#[cfg(feature = "std")]
fn summed(
    header: &[u8; HEADER],
    len: usize,
    mut fill: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<Weights> {
    let mut owned = crate::bytes::AlignedBytes::zeroed(len)?;
    let (head, body) = owned.as_mut_slice().split_at_mut(HEADER.min(len));
    head.copy_from_slice(&header[..head.len()]);
    let mut sums = crate::sums::Sums::default();
    let mut plain = *header;
    plain[SUMS].fill(0);
    sums.add(&plain);
    for part in body.chunks_mut(PART) {
        fill(part)?;
        sums.add(part);
    }
    for (at, found) in [SUMS.start, SUMS.start + 8].into_iter().zip(sums.finish()) {
        let expected = word(header, at);
        if found != expected {
            refused("damaged, by a sum of all bytes", found, expected)?;
        }
    }
    Ok(Weights::Owned(owned))
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
    /// As [`Weights::embedded`], also if the sums of their bytes are not those of the header;
    /// [`Error::Memory`] if there is not as much.
    pub fn copied(bytes: &[u8], fingerprint: u64, len: usize) -> Result<Self> {
        check(bytes, fingerprint, len)?;
        let (header, mut rest) = bytes.split_first_chunk().ok_or_else(outside)?;
        summed(header, len, |part| {
            let (now, after) = rest.split_at_checked(part.len()).ok_or_else(outside)?;
            part.copy_from_slice(now);
            rest = after;
            Ok(())
        })
    }

    /// The weights in a file.
    ///
    /// # Errors
    /// [`Error::File`] if it can't be read; as [`Weights::copied`].
    pub fn from_file(path: &std::path::Path, fingerprint: u64, len: usize) -> Result<Self> {
        use std::io::Read;
        let mut file = std::fs::File::open(path).map_err(Error::File)?;
        let (found, expected) = (file.metadata().map_err(Error::File)?.len(), len as u64);
        if found < HEADER as u64 {
            refused("number of bytes", found, expected)?;
        }
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(Error::File)?;
        check_header(&header, found, fingerprint, expected)?;
        summed(&header, len, |part| {
            file.read_exact(part).map_err(Error::File)
        })
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

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    const FINGERPRINT: u64 = 0x0123_4567_89ab_cdef;

    /// A file of weights with so many bytes after the header.
    fn written(body: usize) -> Vec<u8> {
        let mut bytes = vec![0; HEADER];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..16].copy_from_slice(&FINGERPRINT.to_le_bytes());
        bytes[16..24].copy_from_slice(&(body as u64).to_le_bytes());
        bytes.extend((0..body).map(|i| (i * 37 % 251) as u8));
        let mut sums = crate::sums::Sums::default();
        sums.add(&bytes);
        let sums = sums.finish().map(u64::to_le_bytes);
        bytes[SUMS].copy_from_slice(sums.as_flattened());
        bytes
    }

    /// What weights are as bytes, and in a file.
    fn loaded(bytes: &[u8], len: usize) -> [Result<Weights>; 2] {
        let path = std::env::temp_dir().join(format!(
            "tfp_weights_{}_{:?}.bin",
            std::process::id(),
            std::thread::current().id()
        ));
        std::fs::write(&path, bytes).unwrap();
        let found = Weights::from_file(&path, FINGERPRINT, len);
        std::fs::remove_file(&path).unwrap();
        [Weights::copied(bytes, FINGERPRINT, len), found]
    }

    fn reason(result: &Result<Weights>) -> &'static str {
        match result {
            Err(Error::Weights {
                reason,
                found,
                expected,
            }) => {
                assert_ne!(found, expected, "{reason}");
                reason
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn weights_are_those_of_the_file() {
        for body in [0, 16, 64, 80, PART - 16, PART, PART + 32, 2 * PART + 16] {
            let bytes = written(body);
            for weights in loaded(&bytes, bytes.len()) {
                assert_eq!(weights.unwrap().bytes(), bytes, "{body}");
            }
        }
    }

    #[test]
    fn a_flipped_bit_anywhere_is_an_error() {
        let good = written(144);
        for bit in 0..8 * good.len() {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            for weights in loaded(&bad, good.len()) {
                reason(&weights);
            }
        }
        let mut bad = written(2 * PART);
        for at in [
            PART,
            HEADER + PART - 1,
            HEADER + PART,
            HEADER + 2 * PART - 1,
        ] {
            bad[at] ^= 0x10;
            for weights in loaded(&bad, bad.len()) {
                assert_eq!(reason(&weights), "damaged, by a sum of all bytes");
            }
            bad[at] ^= 0x10;
        }
    }

    #[test]
    fn an_error_tells_what_was_found_from_what_was_expected() {
        let good = written(8);
        let (mut other, mut older, mut none) = (good.clone(), good.clone(), good.clone());
        other[8] ^= 6;
        older[7] = 1;
        none[3] = b'W';
        for (bytes, expected) in [
            (&other[..], "another model's fingerprint"),
            (
                &older,
                "another version of the format; convert the model again",
            ),
            (&none, "no file of weights, by its first 8 bytes"),
            (&good[..HEADER - 1], "number of bytes"),
            (&good[..HEADER], "number of bytes"),
            (&[], "number of bytes"),
        ] {
            for weights in loaded(bytes, good.len()) {
                assert_eq!(reason(&weights), expected);
            }
        }
    }

    /// Runs a test again in a process with so many KiB of addresses.
    #[cfg(target_os = "linux")]
    fn limited(test: &str, kib: u32) {
        let limited = format!("ulimit -v {kib} && exec \"$0\" --exact {test}");
        let this = std::env::current_exe().unwrap();
        let mut command = std::process::Command::new("sh");
        let command = command.args([std::ffi::OsStr::new("-c"), limited.as_ref(), this.as_ref()]);
        let done = command.env("TFP_LIMITED", "1").output().unwrap();
        let text = String::from_utf8_lossy(&done.stdout);
        assert!(done.status.success(), "{text}");
        assert!(text.contains("1 passed"), "{text}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn weights_that_memory_has_no_room_for_are_an_error() {
        if std::env::var_os("TFP_LIMITED").is_none() {
            let test = "weights::tests::weights_that_memory_has_no_room_for_are_an_error";
            return limited(test, 1 << 19);
        }
        let len = 1 << 30;
        let mut header = written(0);
        header[16..24].copy_from_slice(&((len - HEADER) as u64).to_le_bytes());
        let name = format!("tfp_large_weights_{}.bin", std::process::id());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, header).unwrap();
        // The file has a hole: it takes no space.
        let file = std::fs::File::options().write(true).open(&path).unwrap();
        file.set_len(len as u64).unwrap();
        let found = Weights::from_file(&path, FINGERPRINT, len);
        std::fs::remove_file(&path).unwrap();
        assert!(
            matches!(found, Err(Error::Memory { bytes }) if bytes == len),
            "{found:?}"
        );
        let found = crate::bytes::filled(0.0_f32, len / 4).map(|x| x.len());
        assert!(
            matches!(found, Err(Error::Memory { bytes }) if bytes == len),
            "{found:?}"
        );
    }

    #[test]
    fn a_file_that_is_not_there_is_an_error() {
        let path = std::env::temp_dir().join("tfp_no_such_weights.bin");
        let found = Weights::from_file(&path, FINGERPRINT, HEADER);
        let kind = match found {
            Err(Error::File(error)) => error.kind(),
            other => panic!("{other:?}"),
        };
        assert_eq!(kind, std::io::ErrorKind::NotFound);
    }
}
