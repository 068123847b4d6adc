//! Characters and their parts, as the Unicode standard defines them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::unicode::CLASSES;

// Syllables of Hangul are computed: their first, the first of each kind of part, and how many of
// a kind there are.
pub(crate) const SYLLABLE: u32 = 0xAC00;
pub(crate) const LEADING: u32 = 0x1100;
pub(crate) const VOWEL: u32 = 0x1161;
pub(crate) const TRAILING: u32 = 0x11A7;
pub(crate) const LEADINGS: u32 = 19;
pub(crate) const VOWELS: u32 = 21;
pub(crate) const TRAILINGS: u32 = 28;

/// A character, and the class that says where among others it stands.
pub(crate) type Part = (char, u8);

/// Takes characters apart by a table, and puts those that combine in their order.
pub(crate) fn decomposed(text: &str, table: &[(char, &str)], parts: &mut Vec<Part>) {
    parts.clear();
    for c in text.chars() {
        let syllable = u32::from(c).wrapping_sub(SYLLABLE);
        if syllable < LEADINGS * VOWELS * TRAILINGS {
            let (vowel, trailing) = (syllable / TRAILINGS % VOWELS, syllable % TRAILINGS);
            let leading = syllable / (TRAILINGS * VOWELS);
            let codes = [LEADING + leading, VOWEL + vowel, TRAILING + trailing];
            let count = if trailing == 0 { 2 } else { 3 };
            let all = codes[..count]
                .iter()
                .filter_map(|&code| char::from_u32(code));
            parts.extend(all.map(|part| (part, 0)));
        } else if let Ok(place) = table.binary_search_by_key(&c, |entry| entry.0) {
            parts.extend(table[place].1.chars().map(|part| (part, class(part))));
        } else {
            parts.push((c, class(c)));
        }
    }
    for run in parts.chunk_by_mut(|_, after| after.1 != 0) {
        // The first of a run may be the character that the others combine with.
        run.sort_by_key(|part| part.1);
    }
}

/// The characters alone.
pub(crate) fn text(parts: &[Part]) -> String {
    parts.iter().map(|part| part.0).collect()
}

/// The class of a character that combines with others; zero for one that does not.
fn class(c: char) -> u8 {
    let code = u32::from(c);
    let after = CLASSES.partition_point(|range| range.0 <= code);
    match after.checked_sub(1).map(|place| CLASSES[place]) {
        Some((_, last, class)) if code <= last => class,
        _ => 0,
    }
}
