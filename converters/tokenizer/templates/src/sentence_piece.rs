//! `SentencePiece`: the tokens of a text, spaces included.

use alloc::string::String;
use alloc::vec::Vec;

use crate::UnknownId;
use crate::charsmap::Charsmap;
use crate::data::Tokens;
use crate::normalized::{Rules, SPACE, normalized};
use crate::numbers::numbers;
use crate::search::Search;
use crate::table::Trie;

// Kinds of tokens; texts of the user's own kind are never taken apart.
const NORMAL: u8 = 1;
const UNKNOWN: u8 = 2;
const CONTROL: u8 = 3;
const OWN: u8 = 4;
const BYTE: u8 = 6;

/// What a model says of itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Settings {
    pub(crate) rules: Rules,
    /// The token before a text.
    pub(crate) first: Option<u32>,
    /// The token after a text.
    pub(crate) last: Option<u32>,
    /// The token of unknown characters.
    pub(crate) unknown: u32,
    /// What decoding makes of it.
    pub(crate) surface: &'static str,
    /// A token that decoding leaves out.
    pub(crate) silent: Option<u32>,
    /// Unknown characters become tokens of their bytes.
    pub(crate) bytes: bool,
}

/// The files of a model.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    pub(crate) tokens: &'static [u8],
    pub(crate) scores: &'static [u8],
    pub(crate) kinds: &'static [u8],
    pub(crate) charsmap: &'static [u8],
}

/// The vocabulary, and what is done to a text before it is taken apart.
#[derive(Clone, Debug)]
pub(crate) struct SentencePiece {
    pub(crate) tokens: Tokens,
    settings: Settings,
    kinds: &'static [u8],
    map: Charsmap,
    kept: Trie,
    search: Search,
    bytes: Vec<u32>,
}

impl SentencePiece {
    /// Reads a model.
    pub(crate) fn new(files: Files, settings: Settings) -> Self {
        let tokens = Tokens::read(files.tokens);
        let scores: Vec<f32> = numbers(files.scores).map(f32::from_bits).collect();
        let (mut kept, mut bytes) = (Trie::new(), Vec::new());
        let mut search = Search::new();
        for ((id, &kind), score) in (0..).zip(files.kinds).zip(scores) {
            let Ok(text) = tokens.text(id) else { continue };
            match kind {
                NORMAL | OWN => search.add(text, id as u32, score, kind == OWN),
                BYTE => bytes.push(id as u32),
                _ => {}
            }
            if kind == OWN {
                kept.insert(text, id as u32);
            }
        }
        let map = Charsmap::new(files.charsmap);
        Self {
            tokens,
            settings,
            kinds: files.kinds,
            map,
            kept,
            search,
            bytes,
        }
    }

    /// Gives the numbers of a text's tokens.
    pub(crate) fn encode(&self, text: &str, mut give: impl FnMut(u32)) {
        self.settings.first.into_iter().for_each(&mut give);
        let text = normalized(text, self.settings.rules, &self.map, &self.kept);
        let mut known = true;
        self.search.pieces(&text, &self.kept, |piece, id| {
            if let Some(id) = id {
                give(id);
            } else if self.settings.bytes {
                let ids = piece
                    .bytes()
                    .filter_map(|byte| self.bytes.get(usize::from(byte)));
                ids.for_each(|&id| give(id));
            } else if known {
                // Unknown characters that follow each other are one token.
                give(self.settings.unknown);
            }
            known = id.is_some();
        });
        self.settings.last.into_iter().for_each(&mut give);
    }

    /// Joins tokens to a text.
    pub(crate) fn decode(&self, ids: &[i32]) -> Result<String, UnknownId> {
        let mut text = String::new();
        let mut bytes = Vec::new();
        let Rules { prefix, trim, .. } = self.settings.rules;
        // Whether the space before the text has yet to be left out, and whether one was.
        let (mut first, mut left_out) = (true, false);
        for &id in ids {
            let piece = self.tokens.text(id)?;
            if self.settings.silent == Some(id as u32) {
                continue;
            }
            let kind = self.kinds.get(id as usize).copied().unwrap_or(CONTROL);
            if kind == BYTE {
                bytes.extend(
                    self.bytes
                        .iter()
                        .position(|&byte| byte == id as u32)
                        .map(|at| at as u8),
                );
                continue;
            }
            take_bytes(&mut bytes, &mut text);
            first &= !left_out && text.is_empty();
            left_out = false;
            match kind {
                CONTROL => {}
                UNKNOWN => text.push_str(self.settings.surface),
                _ => {
                    let mut rest = piece;
                    if first && (prefix || trim) {
                        rest = piece.strip_prefix(SPACE).unwrap_or(piece);
                        left_out = !trim && rest.len() < piece.len();
                    }
                    text.extend(rest.chars().map(|c| if c == SPACE { ' ' } else { c }));
                }
            }
        }
        take_bytes(&mut bytes, &mut text);
        Ok(text)
    }
}

/// Appends the characters of bytes; U+FFFD stands for each byte of none.
fn take_bytes(bytes: &mut Vec<u8>, text: &mut String) {
    let mut rest = &bytes[..];
    while !rest.is_empty() {
        let valid = match core::str::from_utf8(rest) {
            Ok(valid) => valid,
            Err(err) => core::str::from_utf8(&rest[..err.valid_up_to()]).unwrap_or_default(),
        };
        text.push_str(valid);
        rest = &rest[valid.len()..];
        if !rest.is_empty() {
            text.push(char::REPLACEMENT_CHARACTER);
            rest = &rest[1..];
        }
    }
    bytes.clear();
}
