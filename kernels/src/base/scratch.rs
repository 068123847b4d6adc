//! Scratch memory of an adapter, seen as numbers.

use crate::simd::numbers;

/// The f32 that lie in `bytes`; those at a 64-byte boundary hold `bytes.len() / 4`.
#[must_use]
pub fn f32s(bytes: &mut [u8]) -> &mut [f32] {
    numbers::within(bytes)
}

/// The f64 that lie in `bytes`; those at a 64-byte boundary hold `bytes.len() / 8`.
#[must_use]
pub fn f64s(bytes: &mut [u8]) -> &mut [f64] {
    numbers::within(bytes)
}

/// Bytes of scratch memory for so many f32.
///
/// # Errors
/// [`crate::base::error::Error::Overflow`].
pub fn f32_bytes(count: usize) -> crate::base::error::Result<usize> {
    count
        .checked_mul(size_of::<f32>())
        .ok_or(crate::base::error::Error::Overflow {
            argument: "scratch",
        })
}

/// The first `expected` elements.
///
/// # Errors
/// [`crate::base::error::Error::Length`] if there are fewer.
pub(crate) fn take(scratch: &mut [f32], expected: usize) -> crate::base::error::Result<&mut [f32]> {
    let found = scratch.len();
    scratch
        .get_mut(..expected)
        .ok_or(crate::base::error::Error::Length {
            argument: "scratch",
            found,
            expected,
        })
}

/// The first output, borrowed apart from the rest of a [`crate::base::def::Call`].
///
/// # Errors
/// [`crate::base::error::Error::Value`] if there is none.
pub fn first_output<'x, 'a>(
    outputs: &'x mut [crate::base::def::TensorMut<'a>],
) -> crate::base::error::Result<&'x mut crate::base::def::TensorMut<'a>> {
    outputs.first_mut().ok_or(crate::base::error::Error::Value {
        argument: "output",
        expected: "an output tensor",
    })
}

#[cfg(test)]
mod tests;
