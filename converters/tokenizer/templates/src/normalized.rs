//! The text that a model of `SentencePiece` takes apart: replaced characters, and marked spaces.

use alloc::string::String;

use crate::charsmap::Charsmap;
use crate::table::Trie;

/// Stands for a space.
pub(crate) const SPACE: char = '\u{2581}';

/// What is done to a text.
#[allow(clippy::struct_excessive_bools, reason = "a model's file has them")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    /// A space goes before the text, or after it if `after`.
    pub(crate) prefix: bool,
    /// Spaces belong to the words before them.
    pub(crate) after: bool,
    /// Spaces at the ends and after spaces are removed.
    pub(crate) trim: bool,
    /// Spaces become `SPACE`.
    pub(crate) mark: bool,
}

/// Returns a text as a model takes it apart; `kept` are texts that are left as they are.
pub(crate) fn normalized(text: &str, rules: Rules, map: &Charsmap, kept: &Trie) -> String {
    let mut out = String::with_capacity(text.len() + 3);
    let mut rest = text;
    if rules.trim {
        while !rest.is_empty() {
            let (length, piece) = replaced(rest, map, kept);
            if piece != " " {
                break;
            }
            rest = &rest[length..];
        }
    }
    if rest.is_empty() {
        return out;
    }
    let space = if rules.mark { SPACE } else { ' ' };
    if rules.prefix && !rules.after {
        out.push(space);
    }
    let mut spaced = rules.trim;
    while !rest.is_empty() {
        let (length, piece) = replaced(rest, map, kept);
        let piece = if spaced {
            piece.trim_start_matches(' ')
        } else {
            piece
        };
        if !piece.is_empty() {
            out.extend(piece.chars().map(|c| if c == ' ' { space } else { c }));
            spaced = rules.trim && piece.ends_with(' ');
        }
        rest = &rest[length..];
    }
    if rules.trim {
        out.truncate(out.trim_end_matches(space).len());
    }
    if rules.prefix && rules.after {
        out.push(space);
    }
    out
}

/// The bytes of a text's first part, and what it becomes.
fn replaced<'a>(text: &'a str, map: &Charsmap, kept: &Trie) -> (usize, &'a str) {
    if let Some((length, _)) = kept.longest(Trie::ROOT, text.as_bytes()) {
        return (length, &text[..length]);
    }
    let first = text.chars().next().map_or(0, char::len_utf8);
    match map.longest(text.as_bytes()) {
        Some((length, piece)) if text.is_char_boundary(length) => (length, piece),
        _ => (first, &text[..first]),
    }
}
