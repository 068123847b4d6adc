//! The weights while a model is made, from which its layers pack their own.
//!
//! Tensors that are only packed are read one by one into the same memory, so that it holds one of
//! them beside the packed ones. A file is read twice: first whole, for its sums, and then tensor by
//! tensor.

use crate::bytes::Pod;
use crate::error::Result;
use crate::weights::{Tensor, outside};
#[cfg(feature = "std")]
use crate::{
    bytes::{ALIGN, AlignedBytes},
    error::Error,
    sums::Sums,
    weights::{HEADER, Layout, Weights, check, check_header, refused, word},
};
#[cfg(feature = "std")]
use core::cell::{RefCell, RefMut};

/// Where the header has the sums.
#[cfg(feature = "std")]
const SUMS: core::ops::Range<usize> = 24..40;
/// Bytes that are summed at a time: they are still in a cache when they are read again.
#[cfg(feature = "std")]
const PART: usize = 1 << 18;

/// A model's weights while its layers are made.
#[cfg(not(feature = "std"))]
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a>(&'a [u8]);

#[cfg(not(feature = "std"))]
impl<'a> Origin<'a> {
    /// Weights that have been checked.
    #[must_use]
    pub fn checked(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The bytes of a tensor.
    ///
    /// # Errors
    /// [`crate::error::Error::Plan`] if the weights are too short.
    pub fn tensor_bytes<T: Pod>(&self, tensor: Tensor<T>) -> Result<&'a [u8]> {
        tensor.bytes_in(self.0).ok_or_else(outside)
    }
}

/// A model's weights while its layers are made.
#[cfg(feature = "std")]
#[derive(Debug)]
pub struct Origin<'a> {
    /// All weights, or as many from the first one on as the model keeps.
    held: Weights,
    rest: Rest<'a>,
    /// Where a tensor of the rest is copied to, unless one is there.
    room: RefCell<AlignedBytes>,
}

/// Where all weights are, if not all are held.
#[cfg(feature = "std")]
#[derive(Debug)]
enum Rest<'a> {
    Bytes(&'a [u8]),
    File(std::fs::File),
}

/// The bytes of a tensor.
#[cfg(feature = "std")]
#[derive(Debug)]
pub enum Bytes<'a> {
    /// Where they are.
    There(&'a [u8]),
    /// A copy, in the only memory for one.
    Copied(RefMut<'a, [u8]>),
}

#[cfg(feature = "std")]
impl core::ops::Deref for Bytes<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::There(bytes) => bytes,
            Self::Copied(bytes) => bytes,
        }
    }
}

#[cfg(feature = "std")]
impl Origin<'static> {
    /// Weights that are part of the program.
    ///
    /// # Errors
    /// [`Error::Weights`] unless they have this fingerprint and length; [`Error::Memory`] if they do
    /// not lie at a multiple of 64 bytes, and there is not as much for a copy.
    pub fn embedded(bytes: &'static [u8], layout: &Layout) -> Result<Self> {
        if !bytes.as_ptr().addr().is_multiple_of(ALIGN) {
            return Self::bytes(bytes, layout);
        }
        check(bytes, layout.fingerprint, layout.len)?;
        Ok(Weights::Embedded(bytes).into())
    }

    /// Weights that stay where they are, all of them: nothing is copied.
    ///
    /// # Errors
    /// [`Error::Weights`] as [`Origin::bytes`], and if they do not lie at a multiple of 8 bytes.
    pub fn in_place(held: Weights, layout: &Layout) -> Result<Self> {
        let bytes = held.bytes();
        check(bytes, layout.fingerprint, layout.len)?;
        let (header, rest) = bytes.split_first_chunk().ok_or_else(outside)?;
        // The largest numbers have 8 bytes.
        let apart = bytes.as_ptr().addr() as u64 % 8;
        if apart != 0 {
            refused("an address that is no multiple of 8", apart, 0)?;
        }
        summing(header, |sums| {
            sums.add(rest);
            Ok(())
        })?;
        Ok(held.into())
    }
}

#[cfg(feature = "std")]
impl<'a> Origin<'a> {
    /// Weights that the caller has.
    ///
    /// # Errors
    /// As [`Origin::embedded`], also if the sums of their bytes are not those of the header;
    /// [`Error::Memory`] if there is none for those that are held, and for the largest of the rest.
    pub fn bytes(bytes: &'a [u8], layout: &Layout) -> Result<Self> {
        check(bytes, layout.fingerprint, layout.len)?;
        let (header, mut rest) = bytes.split_first_chunk().ok_or_else(outside)?;
        let held = summed(header, layout, |part| {
            let (now, after) = rest.split_at_checked(part.len()).ok_or_else(outside)?;
            part.copy_from_slice(now);
            rest = after;
            Ok(())
        })?;
        // Those of `f32` and of what is smaller can be read where they are.
        let room = match bytes.as_ptr().addr().is_multiple_of(align_of::<f32>()) {
            true => 0,
            false => layout.largest,
        };
        Self::new(held, Rest::Bytes(bytes), room)
    }

    /// The weights in a file. Nothing may write to it until the model is made.
    ///
    /// # Errors
    /// [`Error::File`] if it can't be read; as [`Origin::bytes`].
    pub fn file(path: &std::path::Path, layout: &Layout) -> Result<Self> {
        use std::io::Read;
        let mut file = std::fs::File::open(path).map_err(Error::File)?;
        let found = file.metadata().map_err(Error::File)?.len();
        let expected = layout.len as u64;
        if found < HEADER as u64 {
            refused("number of bytes", found, expected)?;
        }
        let mut header = [0; HEADER];
        file.read_exact(&mut header).map_err(Error::File)?;
        check_header(&header, found, layout.fingerprint, expected)?;
        let held = summed(&header, layout, |part| {
            file.read_exact(part).map_err(Error::File)
        })?;
        Self::new(held, Rest::File(file), layout.largest)
    }

    /// Weights that have been checked.
    #[must_use]
    pub fn checked(bytes: &'a [u8]) -> Self {
        let rest = Rest::Bytes(bytes);
        Self {
            rest,
            ..Weights::Embedded(&[]).into()
        }
    }

    fn new(held: Weights, rest: Rest<'a>, room: usize) -> Result<Self> {
        let room = RefCell::new(AlignedBytes::zeroed(room)?);
        Ok(Self { held, rest, room })
    }

    /// The bytes of a tensor. A copy has to be dropped before the next tensor is read.
    ///
    /// # Errors
    /// [`Error::Plan`] if the weights are too short, [`Error::File`] if they can't be read, and
    /// [`Error::Memory`] if there is none for a copy.
    pub fn tensor_bytes<T: Pod>(&self, tensor: Tensor<T>) -> Result<Bytes<'_>> {
        if let Some(bytes) = tensor.bytes_in(self.held.bytes()) {
            return Ok(Bytes::There(bytes));
        }
        let (at, len) = tensor.byte_span();
        match &self.rest {
            Rest::Bytes(all) => {
                let bytes = tensor.bytes_in(all).ok_or_else(outside)?;
                if bytes.as_ptr().addr().is_multiple_of(align_of::<T>()) {
                    return Ok(Bytes::There(bytes));
                }
                let mut copy = self.room_for(len)?;
                copy.copy_from_slice(bytes);
                Ok(Bytes::Copied(copy))
            }
            Rest::File(file) => {
                use std::io::{Read, Seek, SeekFrom};
                let mut file: &std::fs::File = file;
                let mut copy = self.room_for(len)?;
                file.seek(SeekFrom::Start(at as u64)).map_err(Error::File)?;
                file.read_exact(&mut copy).map_err(Error::File)?;
                Ok(Bytes::Copied(copy))
            }
        }
    }

    fn room_for(&self, len: usize) -> Result<RefMut<'_, [u8]>> {
        let mut room = self.room.try_borrow_mut().map_err(|_| outside())?;
        if room.as_slice().len() < len {
            *room = AlignedBytes::zeroed(len)?;
        }
        Ok(RefMut::map(room, |room| &mut room.as_mut_slice()[..len]))
    }

    /// What the model holds on to: the first `len` bytes.
    #[must_use]
    pub fn kept(self, len: usize) -> Weights {
        self.held.kept(len)
    }
}

#[cfg(feature = "std")]
impl From<Weights> for Origin<'_> {
    fn from(held: Weights) -> Self {
        Self {
            held,
            rest: Rest::Bytes(&[]),
            room: RefCell::default(),
        }
    }
}

/// Reads weights part by part and holds the first ones. It fails unless the sums of all are what the
/// header says.
#[cfg(feature = "std")]
fn summed(
    header: &[u8; HEADER],
    layout: &Layout,
    mut fill: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<Weights> {
    // Sums are added in lines, up to the last one.
    let held = layout.held.clamp(HEADER, layout.len);
    let held = held.next_multiple_of(ALIGN).min(layout.len);
    let mut owned = AlignedBytes::zeroed(held)?;
    let (head, body) = owned.as_mut_slice().split_at_mut(HEADER);
    head.copy_from_slice(header);
    let mut left = layout.len - held;
    let mut part = AlignedBytes::zeroed(PART.min(left))?;
    summing(header, |sums| {
        for part in body.chunks_mut(PART) {
            fill(part)?;
            sums.add(part);
        }
        while left > 0 {
            let part = &mut part.as_mut_slice()[..PART.min(left)];
            fill(part)?;
            sums.add(part);
            left -= part.len();
        }
        Ok(())
    })?;
    Ok(Weights::Owned(owned))
}

/// Sums a header and what `add` adds. It fails unless the sums are those of the header.
#[cfg(feature = "std")]
fn summing(header: &[u8; HEADER], add: impl FnOnce(&mut Sums) -> Result<()>) -> Result<()> {
    let mut sums = Sums::default();
    let mut plain = *header;
    plain[SUMS].fill(0);
    sums.add(&plain);
    add(&mut sums)?;
    for (at, found) in [SUMS.start, SUMS.start + 8].into_iter().zip(sums.finish()) {
        let expected = word(header, at);
        if found != expected {
            refused("damaged, by a sum of all bytes", found, expected)?;
        }
    }
    Ok(())
}

#[cfg(all(test, feature = "std"))]
mod tests;
