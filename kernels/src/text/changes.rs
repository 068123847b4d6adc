//! How a text is standardized, byte by byte.

/// Characters: some of ASCII, and perhaps all others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Set {
    /// A bit for each character of ASCII.
    pub ascii: u128,
    /// Whether all other characters belong to it.
    pub beyond: bool,
}

impl Set {
    /// Whether a byte is of a character of the set.
    #[must_use]
    pub const fn has(&self, byte: u8) -> bool {
        if byte < 128 {
            self.ascii >> byte & 1 == 1
        } else {
            self.beyond
        }
    }
}

/// A change of a text. Changes follow each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Letters of ASCII become small.
    Lower,
    /// Letters of ASCII become capital.
    Upper,
    /// Every character of the set becomes some bytes.
    Each(Set, &'static [u8]),
    /// Every occurrence of some bytes, from the left, becomes others.
    Every(&'static [u8], &'static [u8]),
}

/// Changes of one text, at most.
pub const MOST: usize = 8;
/// Bytes that [`Change::Every`] looks for, at most.
pub const LONGEST: usize = 255;

/// Whether changes are as few and as short as they may be.
#[must_use]
pub fn served(changes: &[Change]) -> bool {
    let short = |change: &Change| match change {
        Change::Every(from, _) => !from.is_empty() && from.len() <= LONGEST,
        _ => true,
    };
    changes.len() <= MOST && changes.iter().all(short)
}

/// Hands the bytes of a text to `sink`, changed.
pub fn changed(changes: &[Change], text: &[u8], sink: &mut impl FnMut(u8)) {
    if changes.is_empty() {
        text.iter().for_each(|&byte| sink(byte));
        return;
    }
    let mut matched = [0; MOST];
    for &byte in text {
        push(changes, &mut matched, byte, sink);
    }
    for at in 0..changes.len().min(MOST) {
        let (held, rest) = (matched[at], at + 1);
        if let Change::Every(from, _) = changes[at] {
            for &byte in &from[..held] {
                push(&changes[rest..], &mut matched[rest..], byte, sink);
            }
        }
    }
}

/// Changes a byte; `matched` has for each change how many bytes of its pattern came last.
fn push(changes: &[Change], matched: &mut [usize], byte: u8, sink: &mut impl FnMut(u8)) {
    let (Some((change, rest)), Some((held, later))) =
        (changes.split_first(), matched.split_first_mut())
    else {
        return sink(byte);
    };
    match *change {
        Change::Lower => push(rest, later, byte.to_ascii_lowercase(), sink),
        Change::Upper => push(rest, later, byte.to_ascii_uppercase(), sink),
        Change::Each(set, _) if !set.has(byte) => push(rest, later, byte, sink),
        // The bytes after the first one of a character.
        Change::Each(..) if byte & 0xc0 == 0x80 => {}
        Change::Each(_, with) => with.iter().for_each(|&b| push(rest, later, b, sink)),
        Change::Every(from, with) => {
            let kept = longest(from, *held, byte);
            let known = *held;
            *held = kept % from.len();
            let last = [byte];
            for &free in from[..known].iter().chain(&last).take(known + 1 - kept) {
                push(rest, later, free, sink);
            }
            if kept == from.len() {
                with.iter().for_each(|&b| push(rest, later, b, sink));
            }
        }
    }
}

/// How many bytes of a pattern are the last ones, after `held` of them and another byte.
fn longest(pattern: &[u8], held: usize, byte: u8) -> usize {
    (1..=held + 1)
        .rev()
        .find(|&len| {
            pattern[len - 1] == byte && pattern[..len - 1] == pattern[held + 1 - len..held]
        })
        .unwrap_or(0)
}
