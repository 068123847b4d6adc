//! Byte-pair encoding: pairs of tokens become one, in the order in which they were learned.

use alloc::collections::BinaryHeap;
use alloc::string::String;
use alloc::vec::Vec;
use core::cmp::Reverse;

use crate::UnknownId;
use crate::data::Tokens;
use crate::numbers::numbers;
use crate::pieces::pieces;
use crate::table::{NONE, Table, Trie};

/// The vocabulary, and which of its tokens become one.
#[derive(Clone, Debug)]
pub(crate) struct BytePair {
    pub(crate) tokens: Tokens,
    // The place of a pair in the order of merges.
    ranks: Table,
    // What a pair becomes, by its place.
    results: Vec<u32>,
    // The token of each byte.
    bytes: [u32; 256],
    // Tokens that are found in a text before it is taken apart.
    whole: Trie,
    prefix: bool,
}

/// A token among others; `left` and `right` are places, and those of a removed token are unused.
#[derive(Clone, Copy)]
struct Link {
    id: u32,
    left: u32,
    right: u32,
}

impl BytePair {
    /// Reads a vocabulary and its merges.
    pub(crate) fn new(
        tokens: &'static [u8],
        merges: &'static [u8],
        whole: &'static [u8],
        prefix: bool,
    ) -> Self {
        let tokens = Tokens::read(tokens);
        let mut all = numbers(merges);
        let (mut ranks, mut results) = (Table::new(), Vec::new());
        while let (Some(a), Some(b), Some(c)) = (all.next(), all.next(), all.next()) {
            ranks.set(pair(a, b), results.len() as u32);
            results.push(c);
        }
        let mut bytes = [NONE; 256];
        for (byte, id) in (0..=255).zip(&mut bytes) {
            let mut letter = [0; 4];
            let letter = shown(byte).encode_utf8(&mut letter);
            *id = tokens.ids.get(letter).unwrap_or(NONE);
        }
        Self {
            tokens,
            ranks,
            results,
            bytes,
            whole: Tokens::read(whole).ids,
            prefix,
        }
    }

    /// Gives the numbers of a text's tokens.
    pub(crate) fn encode(&self, text: &str, mut give: impl FnMut(u32)) {
        let mut links = Vec::new();
        let (mut start, mut at) = (0, 0);
        while at < text.len() {
            let found = self.whole.longest(Trie::ROOT, &text.as_bytes()[at..]);
            if let Some((length, id)) = found {
                self.part(&text[start..at], &mut links, &mut give);
                give(id);
                at += length;
                start = at;
            } else {
                at += text[at..].chars().next().map_or(1, char::len_utf8);
            }
        }
        self.part(&text[start..], &mut links, &mut give);
    }

    /// Encodes what is between tokens that are found whole.
    fn part(&self, text: &str, links: &mut Vec<Link>, give: &mut impl FnMut(u32)) {
        let prefixed;
        let mut text = text;
        if self.prefix && !text.is_empty() && !text.starts_with(' ') {
            prefixed = alloc::format!(" {text}");
            text = &prefixed;
        }
        pieces(text, |piece| {
            self.merge(piece.as_bytes(), links);
            let mut at = 0;
            while let Some(link) = links.get(at as usize) {
                give(link.id);
                at = link.right;
            }
        });
    }

    /// Makes a chain of a piece's tokens, of which the first stays at the first place.
    fn merge(&self, piece: &[u8], links: &mut Vec<Link>) {
        links.clear();
        let known = piece.iter().map(|&byte| self.bytes[usize::from(byte)]);
        for id in known.filter(|&id| id != NONE) {
            let place = links.len() as u32;
            links.push(Link {
                id,
                left: place.wrapping_sub(1),
                right: place + 1,
            });
        }
        let Some(last) = links.last_mut() else { return };
        last.right = NONE;
        let mut next: BinaryHeap<_> = (0..links.len() as u32)
            .filter_map(|place| self.found(links, place))
            .collect();
        while let Some(Reverse((rank, place))) = next.pop() {
            // A merge that is no longer there is left out: one of its tokens has changed.
            if self.found(links, place) != Some(Reverse((rank, place))) {
                continue;
            }
            let right = links[place as usize].right as usize;
            let after = links[right].right;
            links[right].id = NONE;
            links[place as usize].id = self.results[rank as usize];
            links[place as usize].right = after;
            if let Some(link) = links.get_mut(after as usize) {
                link.left = place;
            }
            next.extend(self.found(links, place));
            next.extend(self.found(links, links[place as usize].left));
        }
    }

    /// The merge of a token with the one to its right: its rank, and the token's place.
    fn found(&self, links: &[Link], place: u32) -> Option<Reverse<(u32, u32)>> {
        let first = links.get(place as usize)?;
        let second = links.get(first.right as usize)?;
        let rank = self.ranks.get(pair(first.id, second.id))?;
        Some(Reverse((rank, place)))
    }

    /// Joins the bytes of tokens; those that are not UTF-8 become U+FFFD.
    pub(crate) fn decode(&self, ids: &[i32]) -> Result<String, UnknownId> {
        let mut bytes = Vec::new();
        for &id in ids {
            let token = self.tokens.text(id)?;
            let before = bytes.len();
            for letter in token.chars() {
                if let Some(byte) = hidden(letter) {
                    bytes.push(byte);
                } else {
                    bytes.truncate(before);
                    bytes.extend_from_slice(token.as_bytes());
                    break;
                }
            }
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

fn pair(a: u32, b: u32) -> u64 {
    u64::from(a) << 32 | u64::from(b)
}

/// Whether a byte stands for itself in the texts of tokens.
fn is_shown(byte: u8) -> bool {
    matches!(byte, b'!'..=b'~' | 0xA1..=0xAC | 0xAE..=0xFF)
}

/// The character that stands for a byte in the texts of tokens.
fn shown(byte: u8) -> char {
    if is_shown(byte) {
        return char::from(byte);
    }
    let before = (0..byte).filter(|&other| !is_shown(other)).count();
    char::from_u32(0x100 + before as u32).unwrap_or(char::REPLACEMENT_CHARACTER)
}

/// The byte that a character stands for.
fn hidden(letter: char) -> Option<u8> {
    let code = u32::from(letter);
    match u8::try_from(code) {
        Ok(byte) => is_shown(byte).then_some(byte),
        Err(_) => (0..=255)
            .filter(|&byte| !is_shown(byte))
            .nth(code as usize - 0x100),
    }
}
