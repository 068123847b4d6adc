//! How a text is taken apart before bytes are merged: as for GPT-2.
//!
//! The pieces are those of the expression
//! `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`.

use crate::classes::is_in;
use crate::unicode::{LETTERS, NUMBERS};

const SHORT: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Letter,
    Number,
    Space,
    Other,
}

/// Gives the pieces of a text.
pub(crate) fn pieces(text: &str, mut give: impl FnMut(&str)) {
    let mut rest = text;
    while !rest.is_empty() {
        let (piece, after) = rest.split_at(length(rest).clamp(1, rest.len()));
        give(piece);
        rest = after;
    }
}

/// The bytes of the first piece of a text.
fn length(text: &str) -> usize {
    if let Some(short) = SHORT.iter().find(|short| text.starts_with(**short)) {
        return short.len();
    }
    let spaced = text.strip_prefix(' ').unwrap_or(text);
    let kind = spaced.chars().next().map_or(Kind::Space, kind_of);
    if kind != Kind::Space {
        return text.len() - spaced.len() + run(spaced, kind);
    }
    let spaces = run(text, Kind::Space);
    match text[..spaces].char_indices().next_back() {
        // The last space belongs to what follows.
        Some((last, _)) if spaces < text.len() && last > 0 => last,
        _ => spaces,
    }
}

/// The bytes of the characters of a kind with which a text begins.
fn run(text: &str, kind: Kind) -> usize {
    text.find(|c| kind_of(c) != kind).unwrap_or(text.len())
}

fn kind_of(c: char) -> Kind {
    if is_in(&LETTERS, c) {
        Kind::Letter
    } else if is_in(&NUMBERS, c) {
        Kind::Number
    } else if c.is_whitespace() {
        Kind::Space
    } else {
        Kind::Other
    }
}
