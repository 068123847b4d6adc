//! Which word of a vocabulary a token is, or which hash it has.

use crate::text::farm::Farm;
use crate::text::sip::Sip;

/// A vocabulary: words in the order of their bytes, each of them once.
#[derive(Clone, Copy, Debug)]
pub struct Words<'a> {
    /// The bytes of all words, one word after the other.
    pub bytes: &'a [u8],
    /// Where each word ends in `bytes`.
    pub ends: &'a [i32],
}

impl<'a> Words<'a> {
    /// Whether each word ends where the bytes are, and not before the one before it.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        let last = self.ends.last().map_or(0, |&end| end);
        self.ends.is_sorted()
            && self.ends.first().is_none_or(|&end| end >= 0)
            && usize::try_from(last).is_ok_and(|end| end == self.bytes.len())
    }

    fn word(&self, index: usize) -> &'a [u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start as usize..self.ends[index] as usize]
    }
}

/// What becomes of a token that is not in the vocabulary: one of some buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rest {
    /// There is one bucket.
    One,
    /// By FarmHash.
    Farm(u64),
    /// By SipHash with a key.
    Sip(u64, [u64; 2]),
}

impl Rest {
    /// How many buckets there are.
    #[must_use]
    pub const fn buckets(self) -> u64 {
        match self {
            Self::One => 1,
            Self::Farm(buckets) | Self::Sip(buckets, _) => buckets,
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Hash {
    None,
    Farm(Farm),
    Sip(Sip),
}

/// A token whose bytes come one by one.
#[derive(Clone, Copy, Debug)]
pub struct Finder {
    /// The words that begin with the bytes so far, and how many these are.
    from: usize,
    to: usize,
    depth: usize,
    hash: Hash,
}

impl Finder {
    /// An empty token.
    #[must_use]
    pub fn new(words: &Words<'_>, rest: Rest) -> Self {
        Self {
            from: 0,
            to: words.ends.len(),
            depth: 0,
            hash: match rest {
                Rest::One => Hash::None,
                Rest::Farm(_) => Hash::Farm(Farm::new()),
                Rest::Sip(_, key) => Hash::Sip(Sip::new(key)),
            },
        }
    }

    /// Adds a byte.
    pub fn push(&mut self, words: &Words<'_>, byte: u8) {
        match &mut self.hash {
            Hash::None => {}
            Hash::Farm(farm) => farm.push(byte),
            Hash::Sip(sip) => sip.push(byte),
        }
        let (from, depth) = (self.from, self.depth);
        // A word that ends here comes before those that go on.
        let below = |index| words.word(index).get(depth).is_none_or(|&b| b < byte);
        self.from = first(from, self.to, below);
        let upto = |index| words.word(index).get(depth).is_none_or(|&b| b <= byte);
        self.to = first(self.from, self.to, upto);
        self.depth += 1;
    }

    /// The number of the word; for another token, its bucket after all words.
    #[must_use]
    pub fn class(self, words: &Words<'_>, rest: Rest) -> usize {
        if self.from < self.to && words.word(self.from).len() == self.depth {
            return self.from;
        }
        let bucket = match self.hash {
            Hash::None => 0,
            Hash::Farm(farm) => farm.finish() % rest.buckets().max(1),
            Hash::Sip(sip) => sip.finish() % rest.buckets().max(1),
        };
        words.ends.len() + bucket as usize
    }
}

/// The first of some numbers for which a condition does not hold; it holds for those before.
fn first(mut from: usize, mut to: usize, holds: impl Fn(usize) -> bool) -> usize {
    while from < to {
        let middle = from + (to - from) / 2;
        if holds(middle) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}
