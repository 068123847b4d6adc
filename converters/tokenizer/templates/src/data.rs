//! Reads the files beside this crate's sources, which the converter wrote.

use alloc::vec::Vec;

use crate::UnknownId;
use crate::numbers::numbers;
use crate::table::Trie;

/// Tokens by number, and numbers by token.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    texts: Vec<Option<&'static str>>,
    pub(crate) ids: Trie,
}

impl Tokens {
    /// Reads tokens: of each its number, its length in bytes, and its text.
    pub(crate) fn read(mut bytes: &'static [u8]) -> Self {
        let mut tokens = Self {
            texts: Vec::new(),
            ids: Trie::new(),
        };
        while let Some((head, rest)) = bytes.split_at_checked(8) {
            let mut head = numbers(head);
            let (Some(id), Some(length)) = (head.next(), head.next()) else {
                break;
            };
            let (text, rest) = rest.split_at(rest.len().min(length as usize));
            bytes = rest;
            let Ok(text) = core::str::from_utf8(text) else {
                continue;
            };
            let place = id as usize;
            if tokens.texts.len() <= place {
                tokens.texts.resize(place + 1, None);
            }
            tokens.texts[place] = Some(text);
            tokens.ids.insert(text, id);
        }
        tokens
    }

    /// One more than the largest number.
    pub(crate) fn len(&self) -> usize {
        self.texts.len()
    }

    /// The token of a number.
    pub(crate) fn text(&self, id: i32) -> Result<&'static str, UnknownId> {
        let place = usize::try_from(id).ok();
        place
            .and_then(|place| self.texts.get(place).copied().flatten())
            .ok_or(UnknownId(id))
    }
}
