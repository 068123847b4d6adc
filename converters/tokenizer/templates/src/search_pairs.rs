//! The tokens of a text, joined in pairs: the pair with the highest score first.

use alloc::collections::BinaryHeap;
use alloc::vec::Vec;
use core::cmp::{Ordering, Reverse};

use crate::table::{NONE, Trie};

/// Tokens and the order in which pairs become them.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    ids: Trie,
    scores: Vec<f32>,
}

/// A part of a text; its neighbors are places of parts.
struct Part {
    start: usize,
    end: usize,
    left: u32,
    right: u32,
    // It is not joined with others.
    whole: bool,
}

/// Two parts that may become one.
struct Pair {
    score: f32,
    left: Reverse<u32>,
    right: u32,
    length: usize,
}

impl Ord for Pair {
    fn cmp(&self, other: &Self) -> Ordering {
        self.score
            .total_cmp(&other.score)
            .then(self.left.cmp(&other.left))
    }
}

impl PartialOrd for Pair {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Pair {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Pair {}

impl Search {
    /// No tokens.
    pub(crate) fn new() -> Self {
        Self {
            ids: Trie::new(),
            scores: Vec::new(),
        }
    }

    /// Adds a token.
    pub(crate) fn add(&mut self, text: &str, id: u32, score: f32, _: bool) {
        self.ids.insert(text, id);
        self.scores
            .resize(self.scores.len().max(id as usize + 1), 0.0);
        self.scores[id as usize] = score;
    }

    /// Gives the parts of a text and the numbers of their tokens; none for an unknown character.
    pub(crate) fn pieces(&self, text: &str, kept: &Trie, mut give: impl FnMut(&str, Option<u32>)) {
        let mut parts: Vec<Part> = Vec::new();
        let mut end = 0;
        while let Some(c) = text[end..].chars().next() {
            let found = kept.longest(Trie::ROOT, &text.as_bytes()[end..]);
            let start = end;
            end += found.map_or(c.len_utf8(), |(length, _)| length);
            let place = parts.len() as u32;
            let (left, right) = (place.wrapping_sub(1), place + 1);
            parts.push(Part {
                start,
                end,
                left,
                right,
                whole: found.is_some(),
            });
        }
        let Some(last) = parts.last_mut() else { return };
        last.right = NONE;
        let count = parts.len() as u32;
        let mut next: BinaryHeap<Pair> = (0..count)
            .filter_map(|place| self.found(text, &parts, place))
            .collect();
        while let Some(Pair {
            left,
            right,
            length,
            ..
        }) = next.pop()
        {
            let (place, other) = (left.0 as usize, right as usize);
            // A part that was joined with one to its left has no bytes any more.
            let (first, second) = (&parts[place], &parts[other]);
            let is_there = first.start < first.end && second.start < second.end;
            if !is_there || first.right != right || second.end - first.start != length {
                continue;
            }
            let (end, after) = (second.end, second.right);
            parts[other].end = second.start;
            parts[place].end = end;
            parts[place].right = after;
            if let Some(part) = parts.get_mut(after as usize) {
                part.left = left.0;
            }
            next.extend(self.found(text, &parts, parts[place].left));
            next.extend(self.found(text, &parts, left.0));
        }
        let mut place = 0;
        while let Some(part) = parts.get(place as usize) {
            let piece = &text[part.start..part.end];
            give(piece, self.ids.get(piece));
            place = part.right;
        }
    }

    /// The pair of a part and the one to its right, if it is a token.
    fn found(&self, text: &str, parts: &[Part], left: u32) -> Option<Pair> {
        let first = parts.get(left as usize)?;
        let second = parts.get(first.right as usize)?;
        if first.whole || second.whole {
            return None;
        }
        let id = self.ids.get(&text[first.start..second.end])?;
        let score = self.scores[id as usize];
        let length = second.end - first.start;
        Some(Pair {
            score,
            left: Reverse(left),
            right: first.right,
            length,
        })
    }
}
