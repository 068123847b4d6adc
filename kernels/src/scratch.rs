//! Scratch memory of an adapter, seen as numbers.

/// The f32 that lie in `bytes`; those at a 64-byte boundary hold `bytes.len() / 4`.
#[must_use]
pub fn f32s(bytes: &mut [u8]) -> &mut [f32] {
    // SAFETY: every bit pattern is an f32, and every f32 is bytes; `align_to_mut` itself keeps to
    // alignment and bounds.
    unsafe { bytes.align_to_mut::<f32>().1 }
}

/// The f64 that lie in `bytes`; those at a 64-byte boundary hold `bytes.len() / 8`.
#[must_use]
pub fn f64s(bytes: &mut [u8]) -> &mut [f64] {
    // SAFETY: as for f32.
    unsafe { bytes.align_to_mut::<f64>().1 }
}

/// Numbers of a test's memory as bytes.
#[cfg(test)]
pub(crate) fn as_bytes<T: Word>(words: &[T]) -> &[u8] {
    // SAFETY: the numbers have no padding, and u8 no alignment and no invalid value.
    unsafe { words.align_to::<u8>().1 }
}

/// As [`as_bytes`], to write them.
#[cfg(test)]
pub(crate) fn as_bytes_mut<T: Word>(words: &mut [T]) -> &mut [u8] {
    // SAFETY: as for `as_bytes`; all bytes are a number.
    unsafe { words.align_to_mut::<u8>().1 }
}

/// A number without padding, of which all bytes are one.
#[cfg(test)]
pub(crate) trait Word {}
#[cfg(test)]
impl Word for u32 {}
#[cfg(test)]
impl Word for u64 {}

/// Bytes of scratch memory for so many f32.
///
/// # Errors
/// [`crate::error::Error::Overflow`].
pub fn f32_bytes(count: usize) -> crate::error::Result<usize> {
    count
        .checked_mul(size_of::<f32>())
        .ok_or(crate::error::Error::Overflow {
            argument: "scratch",
        })
}

/// The first `expected` elements.
///
/// # Errors
/// [`crate::error::Error::Length`] if there are fewer.
pub(crate) fn take(scratch: &mut [f32], expected: usize) -> crate::error::Result<&mut [f32]> {
    let found = scratch.len();
    scratch
        .get_mut(..expected)
        .ok_or(crate::error::Error::Length {
            argument: "scratch",
            found,
            expected,
        })
}

/// The first output, borrowed apart from the rest of a [`crate::def::Call`].
///
/// # Errors
/// [`crate::error::Error::Value`] if there is none.
pub fn first_output<'x, 'a>(
    outputs: &'x mut [crate::def::TensorMut<'a>],
) -> crate::error::Result<&'x mut crate::def::TensorMut<'a>> {
    outputs.first_mut().ok_or(crate::error::Error::Value {
        argument: "output",
        expected: "an output tensor",
    })
}

#[cfg(test)]
mod tests;
