//! Inputs and outputs between the caller and the model.

use crate::error::{Error, Result};

/// What an input or output of a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Port {
    /// Its name in the model.
    pub name: &'static str,
    /// The type of its elements.
    pub element: &'static str,
    /// Its dimensions; `None` for what calls differ in, such as the batch.
    pub shape: &'static [Option<usize>],
}

impl Port {
    /// An input or output.
    #[must_use]
    pub const fn new(
        name: &'static str,
        element: &'static str,
        shape: &'static [Option<usize>],
    ) -> Self {
        Self {
            name,
            element,
            shape,
        }
    }
}

/// The number of batch elements that an input of `found` elements has.
///
/// # Errors
/// [`Error::Input`] unless it is a multiple of `example`, and `batch` times it if that is known.
#[inline]
pub fn examples(
    name: &'static str,
    found: usize,
    example: usize,
    batch: Option<usize>,
) -> Result<usize> {
    let fail = Err(Error::Input {
        name,
        found,
        example,
        batch,
    });
    match batch {
        Some(batch) if batch.checked_mul(example) != Some(found) => fail,
        Some(batch) => Ok(batch),
        None if example == 0 || !found.is_multiple_of(example) => fail,
        None => Ok(found / example),
    }
}

/// Copies an output to the caller.
///
/// # Errors
/// [`Error::Output`] unless `to` has as many elements.
#[inline]
pub fn deliver<T: Copy>(name: &'static str, from: &[T], to: &mut [T]) -> Result<()> {
    if from.len() != to.len() {
        return Err(Error::Output {
            name,
            found: to.len(),
            expected: from.len(),
        });
    }
    to.copy_from_slice(from);
    Ok(())
}

/// As [`deliver`], for truth values.
///
/// # Errors
/// As [`deliver`].
pub fn deliver_bools(name: &'static str, from: &[u8], to: &mut [bool]) -> Result<()> {
    if from.len() != to.len() {
        return Err(Error::Output {
            name,
            found: to.len(),
            expected: from.len(),
        });
    }
    for (to, from) in to.iter_mut().zip(from) {
        *to = *from != 0;
    }
    Ok(())
}

/// As [`deliver`], for words at certain places of a list.
///
/// # Errors
/// As [`deliver`]; [`Error::Plan`] if the list has no such place.
pub fn deliver_words(
    name: &'static str,
    (words, from): (&'static [&'static str], &[i32]),
    to: &mut [&'static str],
) -> Result<()> {
    if from.len() != to.len() {
        return Err(Error::Output {
            name,
            found: to.len(),
            expected: from.len(),
        });
    }
    for (to, &from) in to.iter_mut().zip(from) {
        *to = word(words, from)?;
    }
    Ok(())
}

/// The word at a place of a list.
///
/// # Errors
/// [`Error::Plan`] if the list has no such place.
pub fn word(words: &'static [&'static str], place: i32) -> Result<&'static str> {
    let found = usize::try_from(place).ok().and_then(|at| words.get(at));
    found.copied().ok_or(Error::Plan {
        expected: "a place in the list of words",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    static WORDS: [&str; 2] = ["a", "é"];

    #[test]
    fn words_are_those_of_the_list() {
        let mut to = [""; 3];
        assert!(deliver_words("y", (&WORDS, &[1, 0, 1]), &mut to).is_ok());
        assert_eq!(to, ["é", "a", "é"]);
        let short = deliver_words("y", (&WORDS, &[1, 0]), &mut to);
        assert!(matches!(
            short,
            Err(Error::Output {
                found: 3,
                expected: 2,
                ..
            })
        ));
        for place in [2, -1, i32::MIN] {
            assert!(matches!(word(&WORDS, place), Err(Error::Plan { .. })));
        }
    }
}
