//! Bytes of memory as numbers.

use core::slice::{from_raw_parts, from_raw_parts_mut};

/// A number without padding, of which all bytes are one.
pub(crate) trait Number: sealed::Plain {}

mod sealed {
    /// Keeps [`super::Number`] to the types of this file, for which its promise holds.
    pub trait Plain {}
}

macro_rules! numbers {
    ($($type:ty)*) => {$(
        impl sealed::Plain for $type {}
        impl Number for $type {}
    )*};
}

numbers! { f32 f64 i32 i64 u16 u32 u64 }

/// How many numbers the bytes are; `None` unless they lie as an array of `T` does.
#[inline]
fn length_of<T>(bytes: &[u8]) -> Option<usize> {
    let fits =
        bytes.as_ptr().cast::<T>().is_aligned() && bytes.len().is_multiple_of(size_of::<T>());
    fits.then_some(bytes.len() / size_of::<T>())
}

/// The numbers that the bytes are; `None` unless they lie as an array of `T` does. Of no bytes
/// there are none, wherever they lie.
#[inline]
pub(crate) fn all<T: Number>(bytes: &[u8]) -> Option<&[T]> {
    if bytes.is_empty() {
        return Some(&[]);
    }
    let length = length_of::<T>(bytes)?;
    // SAFETY: the bytes are so many aligned numbers, and every bit pattern is one.
    Some(unsafe { from_raw_parts(bytes.as_ptr().cast(), length) })
}

/// As [`all`], to write them.
#[inline]
pub(crate) fn all_mut<T: Number>(bytes: &mut [u8]) -> Option<&mut [T]> {
    if bytes.is_empty() {
        return Some(&mut []);
    }
    let length = length_of::<T>(bytes)?;
    // SAFETY: as for `all`, and every number is valid bytes.
    Some(unsafe { from_raw_parts_mut(bytes.as_mut_ptr().cast(), length) })
}

/// The numbers between the first and the last place in `bytes` where one may lie.
#[inline]
pub(crate) fn within<T: Number>(bytes: &mut [u8]) -> &mut [T] {
    // SAFETY: as above; `align_to_mut` itself keeps to alignment and bounds.
    unsafe { bytes.align_to_mut::<T>().1 }
}

/// Numbers of a test's memory as bytes.
#[cfg(test)]
pub(crate) fn bytes<T: Number>(numbers: &[T]) -> &[u8] {
    // SAFETY: the numbers have no padding, and u8 no alignment and no invalid value.
    unsafe { numbers.align_to::<u8>().1 }
}

/// As [`bytes`], to write them.
#[cfg(test)]
pub(crate) fn bytes_mut<T: Number>(numbers: &mut [T]) -> &mut [u8] {
    // SAFETY: as above; all bytes are a number.
    unsafe { numbers.align_to_mut::<u8>().1 }
}
