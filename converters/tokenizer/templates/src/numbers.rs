//! Numbers in files: each has four bytes, the least first.

/// The unsigned numbers of some bytes.
pub(crate) fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> + '_ {
    let (numbers, _) = bytes.as_chunks::<4>();
    numbers.iter().map(|&number| u32::from_le_bytes(number))
}
