//! Memory for as much as a file or a tensor says: an error, and not the end of the process, where there is
//! none.

use tfp_core::{Code, Error, Result};

/// An error about memory that there is not.
#[cold]
pub(crate) fn exhausted(what: impl std::fmt::Display) -> Error {
    Error::status(
        Code::ResourceExhausted,
        format!("there is no memory for {what}"),
    )
}

/// An empty vector with room for so many bytes.
///
/// # Errors
/// [`Code::ResourceExhausted`] for more memory than there is.
pub(crate) fn room(length: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    match usize::try_from(length).map(|length| bytes.try_reserve_exact(length)) {
        Ok(Ok(())) => Ok(bytes),
        _ => Err(exhausted(format_args!("{length} bytes"))),
    }
}

/// So many bytes, which are 0.
///
/// # Errors
/// As for [`room`].
pub(crate) fn zeros(length: u64) -> Result<Vec<u8>> {
    let mut bytes = room(length)?;
    bytes.resize(length as usize, 0);
    Ok(bytes)
}

/// A copy of bytes.
///
/// # Errors
/// As for [`room`].
pub(crate) fn copied(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut copy = room(bytes.len() as u64)?;
    copy.extend_from_slice(bytes);
    Ok(copy)
}

/// Adds bytes at the end of a vector.
///
/// # Errors
/// As for [`room`].
pub(crate) fn extend(all: &mut Vec<u8>, bytes: &[u8]) -> Result<()> {
    let more = all.try_reserve(bytes.len());
    more.map_err(|_| exhausted(format_args!("{} bytes", all.len() + bytes.len())))?;
    all.extend_from_slice(bytes);
    Ok(())
}

/// Adds an element at the end of a list.
///
/// # Errors
/// As for [`room`].
pub(crate) fn push<T>(list: &mut Vec<T>, item: T) -> Result<()> {
    let more = list.try_reserve(1);
    more.map_err(|_| exhausted(format_args!("a list of {} elements", list.len() + 1)))?;
    list.push(item);
    Ok(())
}

/// Adds a letter at the end of a text.
///
/// # Errors
/// As for [`room`].
pub(crate) fn push_letter(text: &mut String, letter: char) -> Result<()> {
    let more = text.try_reserve(letter.len_utf8());
    more.map_err(|_| exhausted(format_args!("a text of {} bytes", text.len() + 1)))?;
    text.push(letter);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_bytes_than_there_is_memory_are_an_error() {
        for length in [u64::MAX, 1 << 62] {
            let found = zeros(length).map(|bytes| std::hint::black_box(bytes).len());
            assert_eq!(found.unwrap_err().code(), Code::ResourceExhausted);
        }
        assert_eq!(zeros(3).unwrap(), [0; 3]);
        assert_eq!(copied(b"ab").unwrap(), b"ab");
        let mut all = vec![1];
        extend(&mut all, &[2, 3]).unwrap();
        push(&mut all, 4).unwrap();
        assert_eq!(all, [1, 2, 3, 4]);
    }
}
