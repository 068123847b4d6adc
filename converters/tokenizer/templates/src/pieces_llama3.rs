//! How a text is taken apart before bytes are merged: as for Llama 3.
//!
//! The pieces are those of the expression `(?i:'s|'t|'re|'ve|'m|'ll|'d)`, or
//! `[^\r\n\p{L}\p{N}]?\p{L}+`, `\p{N}{1,3}`, ` ?[^\s\p{L}\p{N}]+[\r\n]*`, `\s*[\r\n]+`, `\s+(?!\S)`, `\s+`.

use crate::classes::is_in;
use crate::unicode::{LETTERS, NUMBERS};

const SHORT: [&str; 7] = ["'s", "'t", "'re", "'ve", "'m", "'ll", "'d"];

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
    let Some(first) = text.chars().next() else {
        return 0;
    };
    if let Some(short) = short(text) {
        return short;
    }
    let behind = &text[first.len_utf8()..];
    if is_letter(first) {
        return first.len_utf8() + run(behind, is_letter);
    }
    if !is_line_end(first) && !is_number(first) && behind.starts_with(is_letter) {
        return first.len_utf8() + run(behind, is_letter);
    }
    if is_number(first) {
        let third = text.char_indices().take(4).find(|&(_, c)| !is_number(c));
        let fourth = text.char_indices().nth(3).map_or(text.len(), |(at, _)| at);
        return third.map_or(fourth, |(at, _)| at.min(fourth));
    }
    let spaced = text.strip_prefix(' ').unwrap_or(text);
    let others = run(spaced, is_other);
    if others > 0 {
        let lines = run(&spaced[others..], is_line_end);
        return text.len() - spaced.len() + others + lines;
    }
    spaces(text)
}

/// The bytes of a piece of white space.
fn spaces(text: &str) -> usize {
    let end = run(text, char::is_whitespace);
    if let Some((last, c)) = text[..end].char_indices().rfind(|&(_, c)| is_line_end(c)) {
        return last + c.len_utf8();
    }
    match text[..end].char_indices().next_back() {
        // The last space belongs to what follows.
        Some((last, _)) if end < text.len() && last > 0 => last,
        _ => end,
    }
}

/// The bytes of a shortened word such as `'ll`, in capital or small letters.
fn short(text: &str) -> Option<usize> {
    SHORT.iter().find_map(|short| {
        let mut behind = text.chars();
        short
            .chars()
            .all(|c| behind.next().is_some_and(|found| folds_to(found, c)))
            .then(|| text.len() - behind.as_str().len())
    })
}

/// Whether a character is another one, or its capital letter; U+017F is a letter s, too.
fn folds_to(found: char, small: char) -> bool {
    found.to_ascii_lowercase() == small || (found == '\u{17F}' && small == 's')
}

fn run(text: &str, is: impl Fn(char) -> bool) -> usize {
    text.find(|c| !is(c)).unwrap_or(text.len())
}

fn is_letter(c: char) -> bool {
    is_in(&LETTERS, c)
}

fn is_number(c: char) -> bool {
    is_in(&NUMBERS, c)
}

fn is_line_end(c: char) -> bool {
    c == '\r' || c == '\n'
}

fn is_other(c: char) -> bool {
    !c.is_whitespace() && !is_letter(c) && !is_number(c)
}
