//! The most probable tokens of a text, by the Viterbi algorithm.

use alloc::vec;
use alloc::vec::Vec;

use crate::table::{NONE, Trie};

// An unknown character costs that much more than the least probable token.
const PENALTY: f32 = 10.0;

/// Tokens and their logarithmic probabilities.
#[derive(Clone, Debug)]
pub(crate) struct Search {
    ids: Trie,
    // By number; a token of the user's own is as good as the best token for each of its bytes.
    tokens: Vec<(f32, bool)>,
    least: f32,
    most: f32,
}

/// The best tokens up to a place: their sum, and where the last of them starts.
#[derive(Clone, Copy)]
struct Best {
    sum: f32,
    start: usize,
    id: u32,
}

const UNREACHED: Best = Best {
    sum: 0.0,
    start: usize::MAX,
    id: NONE,
};

impl Search {
    /// No tokens.
    pub(crate) fn new() -> Self {
        Self {
            ids: Trie::new(),
            tokens: Vec::new(),
            least: f32::MAX,
            most: f32::MIN,
        }
    }

    /// Adds a token.
    pub(crate) fn add(&mut self, text: &str, id: u32, score: f32, own: bool) {
        self.ids.insert(text, id);
        self.tokens
            .resize(self.tokens.len().max(id as usize + 1), (0.0, false));
        self.tokens[id as usize] = (score, own);
        if !own {
            self.least = self.least.min(score);
            self.most = self.most.max(score);
        }
    }

    /// Gives the parts of a text and the numbers of their tokens; none for an unknown character.
    pub(crate) fn pieces(&self, text: &str, _: &Trie, mut give: impl FnMut(&str, Option<u32>)) {
        let mut best = vec![UNREACHED; text.len() + 1];
        for (start, c) in text.char_indices() {
            let so_far = best[start].sum;
            let (mut node, mut single) = (Trie::ROOT, false);
            for (at, &byte) in text.as_bytes().iter().enumerate().skip(start) {
                let Some(next) = self.ids.step(node, byte) else {
                    break;
                };
                node = next;
                if let Some(id) = self.ids.value(node) {
                    let length = at + 1 - start;
                    improve(&mut best[at + 1], self.score(id, length), so_far, start, id);
                    single |= length == c.len_utf8();
                }
            }
            if !single {
                let end = &mut best[start + c.len_utf8()];
                improve(end, f64::from(self.least - PENALTY), so_far, start, NONE);
            }
        }
        let (mut end, mut parts) = (text.len(), Vec::new());
        while end > 0 {
            let Best { start, id, .. } = best[end];
            parts.push((start, end, id));
            end = start;
        }
        for &(start, end, id) in parts.iter().rev() {
            give(&text[start..end], Some(id).filter(|&id| id != NONE));
        }
    }

    fn score(&self, id: u32, length: usize) -> f64 {
        match self.tokens[id as usize] {
            (_, true) => f64::from(length as f32 * self.most) - 0.1,
            (score, false) => f64::from(score),
        }
    }
}

/// Takes a way to a place if it is the first one or better.
fn improve(best: &mut Best, score: f64, so_far: f32, start: usize, id: u32) {
    let sum = score + f64::from(so_far);
    if best.start == usize::MAX || sum > f64::from(best.sum) {
        *best = Best {
            sum: sum as f32,
            start,
            id,
        };
    }
}
