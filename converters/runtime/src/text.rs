//! Texts as numbers: the tokens of a text, looked up in a vocabulary or hashed.

use core::ops::Add;

use crate::bytes::Pod;
use crate::error::{Result, at};
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
