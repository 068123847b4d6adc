//! Characters that are joined to one, as the Unicode standard defines them.

use alloc::vec::Vec;

use crate::normal::{LEADING, LEADINGS, Part, SYLLABLE, TRAILING, TRAILINGS, VOWEL, VOWELS};
use crate::unicode::PAIRS;

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
