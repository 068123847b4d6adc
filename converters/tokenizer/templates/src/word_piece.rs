//! `WordPiece`: a word becomes the longest tokens of the vocabulary, from its start on.

use alloc::string::String;

use crate::UnknownId;
use crate::data::Tokens;
use crate::table::Trie;
use crate::words::words;

// A longer word is unknown, in bytes.
const LONGEST: usize = 100;

/// The vocabulary, and which of its tokens continue a word.
#[derive(Clone, Debug)]
pub(crate) struct WordPiece {
    pub(crate) tokens: Tokens,
    unknown: u32,
    suffix: &'static str,
    // Where tokens that continue a word begin; none if there is none of them.
    inner: Option<u32>,
}

impl WordPiece {
    /// Reads a vocabulary.
    pub(crate) fn new(tokens: &'static [u8], unknown: u32, suffix: &'static str) -> Self {
        let tokens = Tokens::read(tokens);
        let inner = tokens.ids.walk(suffix);
        Self {
            tokens,
            unknown,
            suffix,
            inner,
        }
    }

    /// Gives the numbers of a text's tokens.
    pub(crate) fn encode(&self, text: &str, mut give: impl FnMut(u32)) {
        words(text, |word| {
            let mut ids = [0; LONGEST];
            match self.pieces(word, &mut ids) {
                Some(ids) => ids.iter().for_each(|&id| give(id)),
                None => give(self.unknown),
            }
        });
    }

    /// Writes the tokens of a word; none if it has others.
    fn pieces<'a>(&self, word: &str, ids: &'a mut [u32; LONGEST]) -> Option<&'a [u32]> {
        let (mut rest, mut from, mut count) = (word.as_bytes(), Some(Trie::ROOT), 0);
        while !rest.is_empty() {
            let (length, id) = self.tokens.ids.longest(from?, rest)?;
            // Each token has a byte, so that the numbers of a word that is not too long fit.
            *ids.get_mut(count).filter(|_| word.len() <= LONGEST)? = id;
            count += 1;
            rest = &rest[length..];
            from = self.inner;
        }
        Some(&ids[..count])
    }

    /// Joins tokens to a text, in which spaces are between words.
    pub(crate) fn decode(&self, ids: &[i32]) -> Result<String, UnknownId> {
        let mut text = String::new();
        for (at, &id) in ids.iter().enumerate() {
            let token = self.tokens.text(id)?;
            match token.strip_prefix(self.suffix) {
                Some(rest) if at > 0 && !rest.is_empty() => text.push_str(rest),
                _ => {
                    if at > 0 {
                        text.push(' ');
                    }
                    text.push_str(token);
                }
            }
        }
        Ok(text)
    }
}
