//! Normal forms of text, as the Unicode standard defines them.

use alloc::string::String;
use alloc::vec::Vec;

use crate::unicode::{CLASSES, PAIRS};

// Syllables of Hangul are computed: their first, the first of each kind of part, and how many of
// a kind there are.
const SYLLABLE: u32 = 0xAC00;
const LEADING: u32 = 0x1100;
const VOWEL: u32 = 0x1161;
const TRAILING: u32 = 0x11A7;
const LEADINGS: u32 = 19;
const VOWELS: u32 = 21;
const TRAILINGS: u32 = 28;

/// A character, and the class that says where among others it stands.
type Part = (char, u8);

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

/// Joins what combines to one character.
pub(crate) fn composed(parts: &mut Vec<Part>) {
    let mut kept = 0;
    let mut starter: Option<usize> = None;
    for at in 0..parts.len() {
        let (c, class) = parts[at];
        if let Some(first) = starter {
            let between = parts[first + 1..kept].last().map(|part| part.1);
            let free = between.is_none_or(|before| before != 0 && before < class);
            if let Some(joined) = pair(parts[first].0, c).filter(|_| free) {
                parts[first].0 = joined;
                continue;
            }
        }
        if class == 0 {
            starter = Some(kept);
        }
        parts[kept] = (c, class);
        kept += 1;
    }
    parts.truncate(kept);
}

/// The characters alone.
pub(crate) fn text(parts: &[Part]) -> String {
    parts.iter().map(|part| part.0).collect()
}

/// The character that two others are, if there is one.
fn pair(first: char, second: char) -> Option<char> {
    let (a, b) = (u32::from(first), u32::from(second));
    let (leading, vowel) = (a.wrapping_sub(LEADING), b.wrapping_sub(VOWEL));
    if leading < LEADINGS && vowel < VOWELS {
        return char::from_u32(SYLLABLE + (leading * VOWELS + vowel) * TRAILINGS);
    }
    let (syllable, trailing) = (a.wrapping_sub(SYLLABLE), b.wrapping_sub(TRAILING));
    if syllable < LEADINGS * VOWELS * TRAILINGS
        && syllable % TRAILINGS == 0
        && (1..TRAILINGS).contains(&trailing)
    {
        return char::from_u32(a + trailing);
    }
    let place = PAIRS.binary_search_by_key(&(first, second), |entry| (entry.0, entry.1));
    place.ok().map(|place| PAIRS[place].2)
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
