//! Small letters of all alphabets.

use alloc::string::String;
use alloc::vec::Vec;

use crate::classes::is_in;
use crate::composed::composed;
use crate::normal::{decomposed, text};
use crate::unicode::{COMPATIBLE, FOLDS, IGNORABLE};

/// A text without the difference of capital and small letters, and of forms of one character.
pub(crate) fn folded(word: &str) -> String {
    if word.is_ascii() {
        return word.to_ascii_lowercase();
    }
    let mut parts = Vec::new();
    decomposed(word, &COMPATIBLE, &mut parts);
    composed(&mut parts);
    let mut small = String::new();
    for &(c, _) in &parts {
        match FOLDS.binary_search_by_key(&c, |entry| entry.0) {
            Ok(place) => small.push_str(FOLDS[place].1),
            Err(_) => small.push(c),
        }
    }
    decomposed(&small, &COMPATIBLE, &mut parts);
    composed(&mut parts);
    parts.retain(|part| !is_in(&IGNORABLE, part.0));
    text(&parts)
}
