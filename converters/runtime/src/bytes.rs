//! Bytes seen as numbers, and memory that is aligned for every instruction set.

use core::mem::align_of;

use crate::error::{Error, Result};

/// Alignment in bytes of every tensor: a line of the cache, and a vector of AVX-512.
pub const ALIGN: usize = 64;

/// Numbers whose every bit pattern is a value, without padding. `bool` travels as `u8`.
///
/// # Safety
/// Any bytes of the right number are a valid value.
pub unsafe trait Pod: Copy + Default + Send + Sync + 'static {}

macro_rules! pod {
    ($($type:ident)*) => {$(
        // SAFETY: a primitive number has no padding and no invalid value.
        unsafe impl Pod for $type {}
    )*};
}

pod!(f32 f64 i8 i16 i32 i64 u8 u16 u32 u64);

/// The numbers that lie in `bytes`.
///
/// # Errors
/// [`Error::Plan`] unless `bytes` is aligned for them and a multiple of their size.
#[inline]
pub fn view<T: Pod>(bytes: &[u8]) -> Result<&[T]> {
    if !fits::<T>(bytes) {
        return match bytes {
            [] => Ok(&[]),
            _ => Err(unaligned()),
        };
    }
    let len = bytes.len() / size_of::<T>();
    // SAFETY: any bytes are numbers; alignment and length have been checked.
    Ok(unsafe { core::slice::from_raw_parts(bytes.as_ptr().cast(), len) })
}

/// As [`view`], to write to.
///
/// # Errors
/// As [`view`].
#[inline]
pub fn view_mut<T: Pod>(bytes: &mut [u8]) -> Result<&mut [T]> {
    if !fits::<T>(bytes) {
        return match bytes {
            [] => Ok(&mut []),
            _ => Err(unaligned()),
        };
    }
    let len = bytes.len() / size_of::<T>();
    // SAFETY: any bytes are numbers, and numbers are bytes; alignment and length have been checked.
    Ok(unsafe { core::slice::from_raw_parts_mut(bytes.as_mut_ptr().cast(), len) })
}

/// Whether bytes are aligned for numbers and a multiple of their size. `align_to` would find out where
/// the numbers start, which takes longer than all else that a small layer does besides its product.
#[inline]
fn fits<T: Pod>(bytes: &[u8]) -> bool {
    bytes.as_ptr().addr().is_multiple_of(align_of::<T>())
        && bytes.len().is_multiple_of(size_of::<T>())
}

#[cold]
fn unaligned() -> Error {
    Error::Plan {
        expected: "tensors at multiples of their alignment",
    }
}

/// The bytes of truth values: 0 or 1.
#[must_use]
pub fn of_bools(values: &[bool]) -> &[u8] {
    const { assert!(size_of::<bool>() == 1 && align_of::<bool>() == 1) };
    // SAFETY: a bool is one byte, 0 or 1, and the slice is borrowed for as long.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), values.len()) }
}

/// Something at a boundary of [`ALIGN`] bytes: embedded weights, a static workspace.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub struct Aligned<T: ?Sized>(pub T);

/// So many elements of one value.
///
/// # Errors
/// [`Error::Memory`] if there is no memory for them.
#[cfg(feature = "std")]
pub fn filled<T: Clone>(value: T, len: usize) -> Result<std::vec::Vec<T>> {
    let mut elements = std::vec::Vec::new();
    elements.try_reserve_exact(len).map_err(|_| Error::Memory {
        bytes: len.saturating_mul(size_of::<T>()),
    })?;
    elements.resize(len, value);
    Ok(elements)
}

/// Memory at a boundary of [`ALIGN`] bytes, zero at first.
#[cfg(feature = "std")]
#[derive(Clone, Debug, Default)]
pub struct AlignedBytes {
    lines: std::vec::Vec<Aligned<[u8; ALIGN]>>,
    len: usize,
}

#[cfg(feature = "std")]
impl AlignedBytes {
    /// So many bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is no memory for them.
    pub fn zeroed(len: usize) -> Result<Self> {
        let lines = filled(Aligned([0; ALIGN]), len.div_ceil(ALIGN))?;
        Ok(Self { lines, len })
    }

    /// The bytes.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the lines are arrays of bytes without padding between, and hold at least `len`.
        unsafe { core::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }

    /// The bytes, to write to.
    #[must_use]
    #[inline]
    pub fn as_mut_slice(&mut self) -> &mut [u8] {
        // SAFETY: as for `as_slice`; the lines are borrowed mutably.
        unsafe { core::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }

    /// Keeps the first `len` bytes and gives the rest back.
    pub fn truncate(&mut self, len: usize) {
        if len < self.len {
            self.lines.truncate(len.div_ceil(ALIGN));
            self.lines.shrink_to_fit();
            self.len = len;
        }
    }
}

#[cfg(all(test, feature = "std"))]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_seen_where_they_lie() {
        let mut bytes = AlignedBytes::zeroed(16).unwrap();
        view_mut::<f32>(bytes.as_mut_slice()).unwrap()[1] = 1.5;
        assert_eq!(view::<f32>(bytes.as_slice()).unwrap(), [0.0, 1.5, 0.0, 0.0]);
        assert_eq!(view::<u16>(&bytes.as_slice()[2..]).unwrap().len(), 7);
    }

    #[test]
    fn more_bytes_than_there_are_is_no_panic() {
        for len in [usize::MAX, usize::MAX - 63, isize::MAX as usize, 1 << 62] {
            assert!(matches!(
                AlignedBytes::zeroed(len),
                Err(Error::Memory { .. })
            ));
        }
        for len in [0, 1, 64, 1000] {
            let bytes = AlignedBytes::zeroed(len).unwrap();
            assert_eq!(bytes.as_slice(), std::vec![0; len]);
        }
    }

    #[test]
    fn bytes_that_are_no_numbers_are_refused() {
        let mut bytes = AlignedBytes::zeroed(16).unwrap();
        for range in [1..5, 0..15, 2..16] {
            let part = &mut bytes.as_mut_slice()[range];
            assert!(view::<f32>(part).is_err() && view_mut::<f32>(part).is_err());
        }
        // No byte lies nowhere.
        let part = &mut bytes.as_mut_slice()[1..1];
        assert!(view::<f32>(part).unwrap().is_empty());
        assert!(view_mut::<f32>(part).unwrap().is_empty());
    }
}
