//! Texts as numbers: the tokens of a text, looked up in a vocabulary or hashed.

use core::ops::Add;

use crate::bytes::Pod;
use crate::error::{Result, at};
use crate::kernels::text::automaton::{self, Automaton};
use crate::kernels::text::changes::{Change, changed};
use crate::kernels::text::farm::Farm;
use crate::kernels::text::finder::Words;
use crate::kernels::text::tokens::{Reading, Text, counts, values};
use crate::memory::{Memory, Reader, Slot, Source};
use crate::weights::Tensor;

/// How texts become tokens, and these classes.
#[derive(Clone, Copy, Debug)]
pub struct Texts {
    /// Name of the layer.
    pub name: &'static str,
    /// How a text is read.
    pub reading: Reading,
    /// The words of the vocabulary, in the order of their bytes, and where each ends.
    pub words: Option<(Tensor<u8>, Tensor<i32>)>,
}

/// How many tokens the longest of some texts has.
#[must_use]
pub fn longest(reading: &Reading, texts: &[&str]) -> usize {
    let none = Words {
        bytes: &[],
        ends: &[],
    };
    let count = |text: &&str| {
        let mut found = [0_i64];
        // A token of no vocabulary is of the first class, whose bin is the only one.
        let counted = counts(reading, &none, &[*text], (&[0], 1, false), &mut found);
        counted.map_or(0, |()| usize::try_from(found[0]).unwrap_or(usize::MAX))
    };
    texts.iter().map(count).max().unwrap_or(0)
}

/// Whether texts are the same, or whether they `differ`; those of the shorter side come again.
///
/// # Errors
/// [`crate::error::Error::Plan`] if the slot does not fit.
pub fn same(
    m: &mut Memory<'_>,
    (a, b): (&[&str], &[&str]),
    differ: bool,
    out: Slot<u8>,
) -> Result<()> {
    let (_, out) = m.write(out)?;
    let pairs = a.iter().cycle().zip(b.iter().cycle());
    for (out, (a, b)) in out.iter_mut().zip(pairs) {
        *out = u8::from((a == b) != differ);
    }
    Ok(())
}

/// Whether texts, changed, are matched as a whole by a regular expression: the classes of bytes, the
/// next states, the first state, and the first of those at which texts match.
///
/// # Errors
/// [`crate::error::Error::Layer`] for a table with gaps, [`crate::error::Error::Plan`] if the slot does
/// not fit.
pub fn matches<'a>(
    m: &'a mut Memory<'_>,
    (texts, changes): (&[&str], &[Change]),
    (classes, next): (impl Into<Source<'a, u8>>, impl Into<Source<'a, i32>>),
    (start, matching): (usize, usize),
    out: Slot<u8>,
) -> Result<()> {
    let (reader, out) = m.write(out)?;
    let automaton = Automaton {
        classes: reader.read(classes.into())?,
        next: reader.read(next.into())?,
        start,
        matching,
    };
    automaton::matches(&automaton, changes, texts, out).map_err(at("matches"))
}

/// The fingerprints of texts, changed.
///
/// # Errors
/// [`crate::error::Error::Plan`] if the slot does not fit.
pub fn prints(
    m: &mut Memory<'_>,
    (texts, changes): (&[&str], &[Change]),
    out: Slot<i64>,
) -> Result<()> {
    let (_, out) = m.write(out)?;
    for (out, text) in out.iter_mut().zip(texts) {
        let mut print = Farm::new();
        changed(changes, text.as_bytes(), &mut |byte| print.push(byte));
        *out = print.finish().cast_signed();
    }
    Ok(())
}

impl Texts {
    /// The value of each token by its class, `row` tokens of each text; the last value stands where a
    /// text has no more.
    ///
    /// # Errors
    /// [`crate::error::Error::Layer`] or [`crate::error::Error::Plan`] if a slot does not fit.
    pub fn values<'a, T: Pod>(
        &self,
        m: &'a mut Memory<'_>,
        (texts, row): (&[&str], usize),
        of_classes: impl Into<Source<'a, T>>,
        out: Slot<T>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let words = self.words(&reader)?;
        let numbers = reader.read(of_classes.into())?;
        values(&self.reading, &words, texts, (numbers, row), out).map_err(at(self.name))
    }

    /// As [`Texts::values`], where each text is the digits of a number.
    ///
    /// # Errors
    /// As [`Texts::values`].
    pub fn values_of_numbers<'a, I: Pod + Text, T: Pod>(
        &self,
        m: &'a mut Memory<'_>,
        numbers: impl Into<Source<'a, I>>,
        of_classes: impl Into<Source<'a, T>>,
        out: Slot<T>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let words = self.words(&reader)?;
        let numbers = reader.read(numbers.into())?;
        let found = reader.read(of_classes.into())?;
        values(&self.reading, &words, numbers, (found, 1), out).map_err(at(self.name))
    }

    /// How many tokens of each text are in each of `size` bins, or with `binary` whether any is.
    ///
    /// # Errors
    /// As [`Texts::values`].
    pub fn counts<'a, T: Pod + From<u8> + Add<Output = T>>(
        &self,
        m: &'a mut Memory<'_>,
        texts: &[&str],
        (bins, size, binary): (impl Into<Source<'a, i32>>, usize, bool),
        out: Slot<T>,
    ) -> Result<()> {
        let (reader, out) = m.write(out)?;
        let words = self.words(&reader)?;
        let bins = reader.read(bins.into())?;
        counts(&self.reading, &words, texts, (bins, size, binary), out).map_err(at(self.name))
    }

    fn words<'a>(&self, reader: &Reader<'a>) -> Result<Words<'a>> {
        Ok(match self.words {
            None => Words {
                bytes: &[],
                ends: &[],
            },
            Some((bytes, ends)) => Words {
                bytes: reader.read(bytes.into())?,
                ends: reader.read(ends.into())?,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernels::text::finder::Rest;
    use crate::kernels::text::tokens::Split;

    #[test]
    fn the_longest_text_has_the_most_tokens() {
        let reading = Reading {
            changes: &[],
            split: Split::Whitespace,
            widths: &[1, 2],
            between: b" ",
            rest: Rest::One,
        };
        assert_eq!(longest(&reading, &["a b", "", "one two  three", "x"]), 5);
        assert_eq!(longest(&reading, &["", " \t"]), 0);
        assert_eq!(longest(&reading, &[]), 0);
    }
}
