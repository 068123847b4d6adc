//! Text that a call writes into the strings of its outputs.

use std::string::String;
use std::vec::Vec;

use crate::error::{Error, Result};
use crate::kernels::text::changes::{Change, changed};
use crate::kernels::text::tokens::Split;
use crate::shapes::Array;

/// What the letters of all alphabets become.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    /// They stay.
    Kept,
    /// Small letters.
    Lower,
    /// Capital letters.
    Upper,
}

/// What becomes of a text.
#[derive(Clone, Copy, Debug)]
pub struct Edit {
    /// What changes in it first.
    pub changes: &'static [Change],
    /// Whether white space is then cut off from both ends.
    pub trimmed: bool,
    /// The case of its letters at last.
    pub case: Case,
}

impl Edit {
    /// The text stays as it is.
    pub const NONE: Self = Self {
        changes: &[],
        trimmed: false,
        case: Case::Kept,
    };

    /// Does what comes after the changes, to what a text has from a byte on.
    fn finish(&self, text: &mut String, from: usize) -> Result<()> {
        if self.trimmed {
            let end = text[from..].trim_end_matches(is_space).len();
            text.truncate(from + end);
            let kept = text[from..].trim_start_matches(is_space).len();
            text.drain(from..text.len() - kept);
        }
        cased(text, from, self.case)
    }
}

/// White space of ASCII, as the kernels have it.
const fn is_space(character: char) -> bool {
    matches!(character, '\t'..='\r' | ' ')
}

/// What an output of text is made of.
pub trait Source {
    /// How many texts there are.
    fn count(&self) -> usize;

    /// Writes the texts; there are as many strings.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is no memory for a text, [`Error::Plan`] for a place that no list
    /// has.
    fn write(&self, to: &mut [String]) -> Result<()>;
}

/// A part of texts that are joined.
#[derive(Clone, Copy, Debug)]
pub struct Piece<'a> {
    /// Words that the model has: the first places, or the only text.
    pub words: &'static [&'static str],
    /// Texts of inputs, each with the number that an example has: the places after the words.
    pub texts: &'a [(&'a [&'a str], usize)],
    /// The place of each element; without places they are the texts of the input in their order.
    pub places: Option<&'a [i32]>,
    /// What becomes of a text.
    pub edit: Edit,
}

impl Piece<'_> {
    /// The number of elements, of which those of a larger output are the same again and again.
    fn count(&self) -> usize {
        match (self.places, self.texts) {
            (Some(places), _) => places.len(),
            (None, [(texts, _), ..]) => texts.len(),
            (None, []) => 1,
        }
    }

    fn text(&self, at: usize) -> Option<&str> {
        let Some(places) = self.places else {
            let given = self.texts.first().map_or(self.words, |(texts, _)| texts);
            return given.get(at % given.len().max(1)).copied();
        };
        let at = at % places.len().max(1);
        let mut place = usize::try_from(*places.get(at)?).ok()?;
        if let Some(word) = self.words.get(place) {
            return Some(word);
        }
        place -= self.words.len();
        let rows = |(texts, size): &(&[&str], usize)| texts.len() / (*size).max(1);
        let examples = self.texts.iter().map(rows).max()?;
        let example = at / (places.len() / examples.max(1)).max(1);
        for given in self.texts {
            let (texts, size) = *given;
            if place < size {
                return texts
                    .get(example % rows(given).max(1) * size + place)
                    .copied();
            }
            place -= size;
        }
        None
    }
}

/// Texts that are joined of pieces.
#[derive(Clone, Copy, Debug)]
pub struct Joined<'a> {
    /// The pieces in their order.
    pub pieces: &'a [Piece<'a>],
    /// What becomes of the whole text.
    pub edit: Edit,
}

impl Source for Joined<'_> {
    fn count(&self) -> usize {
        let whole = self.pieces.iter().map(Piece::count);
        // Of no text there is none, whatever stands around it.
        if whole.clone().any(|count| count == 0) {
            0
        } else {
            whole.max().unwrap_or(0)
        }
    }

    fn write(&self, to: &mut [String]) -> Result<()> {
        for (at, to) in to.iter_mut().enumerate() {
            to.clear();
            for piece in self.pieces {
                let text = piece.text(at).ok_or(Error::Plan {
                    expected: "a place in the list of texts",
                })?;
                let from = to.len();
                push(to, text, piece.edit.changes)?;
                piece.edit.finish(to, from)?;
            }
            if !self.edit.changes.is_empty() {
                change(to, self.edit.changes)?;
            }
            self.edit.finish(to, 0)?;
        }
        Ok(())
    }
}

/// The tokens of texts.
#[derive(Clone, Copy, Debug)]
pub struct Apart<'a> {
    /// The texts.
    pub texts: &'a [&'a str],
    /// What changes in them before.
    pub changes: &'static [Change],
    /// Where they are taken apart.
    pub split: Split,
    /// How many tokens a text has at most, if it is not 0; the last one is the rest.
    pub most: usize,
    /// How many tokens of a text are written, empty ones after the last.
    pub row: usize,
}

impl Source for Apart<'_> {
    fn count(&self) -> usize {
        self.texts.len() * self.row
    }

    fn write(&self, to: &mut [String]) -> Result<()> {
        for (text, row) in self.texts.iter().zip(to.chunks_exact_mut(self.row.max(1))) {
            row.iter_mut().for_each(String::clear);
            let mut tokens = Tokens {
                row,
                open: None,
                begun: 0,
                found: Ok(()),
            };
            self.read(text, &mut tokens);
            tokens.close();
            tokens.found?;
        }
        Ok(())
    }
}

impl Apart<'_> {
    /// Hands a text to its tokens, byte by byte.
    fn read(&self, text: &str, tokens: &mut Tokens<'_>) {
        let mut inside = matches!(self.split, Split::Whole | Split::At(_));
        if inside {
            tokens.begin();
        }
        changed(self.changes, text.as_bytes(), &mut |byte| {
            let rest = inside && tokens.begun == self.most;
            let (ends, begins, kept) = match self.split {
                _ if rest => (false, false, true),
                Split::Whole => (false, false, true),
                Split::At(separator) => (byte == separator, byte == separator, byte != separator),
                Split::Whitespace => {
                    let space = matches!(byte, b'\t'..=b'\r' | b' ');
                    (space, !inside && !space, !space)
                }
                Split::Characters => {
                    let first = byte & 0xc0 != 0x80;
                    (first, first, true)
                }
            };
            inside = begins || inside && !ends;
            if begins {
                tokens.begin();
            }
            if kept {
                tokens.push(byte);
            }
        });
    }
}

/// The tokens of a text while they are written.
struct Tokens<'a> {
    row: &'a mut [String],
    /// The bytes of the last one.
    open: Option<Vec<u8>>,
    /// How many have begun, written or not.
    begun: usize,
    /// Whether all so far are text.
    found: Result<()>,
}

impl Tokens<'_> {
    fn begin(&mut self) {
        self.close();
        let place = self.row.get_mut(self.begun);
        self.open = place.map(|place| core::mem::take(place).into_bytes());
        self.begun += 1;
    }

    fn push(&mut self, byte: u8) {
        if let Some(bytes) = &mut self.open
            && let Err(error) = add(bytes, byte)
        {
            self.found = Err(error);
        }
    }

    /// Ends the last token.
    fn close(&mut self) {
        let place = self
            .begun
            .checked_sub(1)
            .and_then(|at| self.row.get_mut(at));
        if let (Some(place), Some(bytes), Ok(())) = (place, self.open.take(), &self.found) {
            self.found = utf8(bytes).map(|text| *place = text);
        }
    }
}

/// Writes an output of text.
///
/// # Errors
/// [`Error::Output`] unless `to` has as many elements; those of [`Source::write`].
pub fn deliver_texts(name: &'static str, from: &impl Source, to: &mut [String]) -> Result<()> {
    if from.count() != to.len() {
        return Err(Error::Output {
            name,
            found: to.len(),
            expected: from.count(),
        });
    }
    from.write(to)
}

impl<const RANK: usize> Array<String, RANK> {
    /// As [`Array::take`], for text that the call writes. Strings that are there keep their memory.
    ///
    /// # Errors
    /// As [`Array::take`]; those of [`Source::write`].
    pub fn take_texts(
        &mut self,
        name: &'static str,
        from: &impl Source,
        shape: [usize; RANK],
    ) -> Result<()> {
        if from.count() > self.data.capacity() {
            return Err(Error::Output {
                name,
                found: self.data.capacity(),
                expected: from.count(),
            });
        }
        self.data.resize_with(from.count(), String::new);
        self.shape = shape;
        from.write(&mut self.data)
    }
}

/// Adds a text.
fn append(to: &mut String, text: &str) -> Result<()> {
    let full = |_| Error::Memory { bytes: text.len() };
    to.try_reserve(text.len()).map_err(full)?;
    to.push_str(text);
    Ok(())
}

/// Adds a text, changed.
fn push(to: &mut String, text: &str, changes: &[Change]) -> Result<()> {
    if changes.is_empty() {
        return append(to, text);
    }
    let mut bytes: Vec<u8> = core::mem::take(to).into_bytes();
    let mut found = Ok(());
    changed(changes, text.as_bytes(), &mut |byte| {
        if found.is_ok() {
            found = add(&mut bytes, byte);
        }
    });
    found?;
    *to = utf8(bytes)?;
    Ok(())
}

/// Adds a byte.
fn add(bytes: &mut Vec<u8>, byte: u8) -> Result<()> {
    let more = bytes.try_reserve(1);
    more.map_err(|_| Error::Memory { bytes: bytes.len() })?;
    bytes.push(byte);
    Ok(())
}

/// Changes a text in its own memory.
fn change(text: &mut String, changes: &[Change]) -> Result<()> {
    let mut bytes = core::mem::take(text).into_bytes();
    let (before, mut after) = (bytes.len(), 0);
    changed(changes, &bytes, &mut |_| after += 1);
    bytes
        .try_reserve(after)
        .map_err(|_| Error::Memory { bytes: after })?;
    bytes.resize(before + after, 0);
    let (from, to) = bytes.split_at_mut(before);
    let mut to = to.iter_mut();
    changed(changes, from, &mut |byte| {
        if let Some(to) = to.next() {
            *to = byte;
        }
    });
    bytes.drain(..before);
    *text = utf8(bytes)?;
    Ok(())
}

/// Bytes as text: characters are changed and kept as a whole, so that they stay UTF-8.
fn utf8(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|_| Error::Plan {
        expected: "whole characters",
    })
}

/// Changes the case of what a text has from a byte on.
fn cased(to: &mut String, from: usize, case: Case) -> Result<()> {
    if case == Case::Kept {
        return Ok(());
    }
    let end = to.len();
    // A letter becomes three times as many bytes at most.
    let bytes = (end - from).saturating_mul(3);
    to.try_reserve(bytes).map_err(|_| Error::Memory { bytes })?;
    if case == Case::Lower && to[from..].contains('\u{3a3}') {
        // Which small letter it becomes depends on its neighbours.
        let small = to[from..].to_lowercase();
        to.push_str(&small);
    } else {
        let mut at = from;
        while let Some(letter) = to[at..end].chars().next() {
            at += letter.len_utf8();
            if case == Case::Lower {
                to.extend(letter.to_lowercase());
            } else {
                to.extend(letter.to_uppercase());
            }
        }
    }
    to.drain(from..end);
    Ok(())
}

#[cfg(test)]
mod tests;
