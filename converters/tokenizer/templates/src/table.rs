//! Tables that are filled once: numbers by numbers, and numbers by text.

use alloc::vec;
use alloc::vec::Vec;

/// Stands for no number.
pub(crate) const NONE: u32 = u32::MAX;
// A key that nobody asks for: keys are pairs of ids, or a node and a byte.
const FREE: u64 = u64::MAX;

/// Numbers by keys, with linear probing.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    slots: Vec<(u64, u32)>,
    count: usize,
}

impl Table {
    /// An empty table.
    pub(crate) fn new() -> Self {
        Self {
            slots: vec![(FREE, NONE); 16],
            count: 0,
        }
    }

    /// The number at a key.
    pub(crate) fn get(&self, key: u64) -> Option<u32> {
        let (found, value) = self.slots[self.place(key)];
        (found == key && value != NONE).then_some(value)
    }

    /// Puts a number at a key, in place of one that is there.
    pub(crate) fn set(&mut self, key: u64, value: u32) {
        // At most half is filled, so that a search ends.
        if 2 * (self.count + 1) > self.slots.len() {
            let wider = vec![(FREE, NONE); 2 * self.slots.len()];
            for (key, value) in core::mem::replace(&mut self.slots, wider) {
                if key != FREE {
                    let place = self.place(key);
                    self.slots[place] = (key, value);
                }
            }
        }
        let place = self.place(key);
        self.count += usize::from(self.slots[place].0 == FREE);
        self.slots[place] = (key, value);
    }

    /// Where a key is, or would be.
    fn place(&self, key: u64) -> usize {
        let mixed = (key ^ (key >> 29)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mask = self.slots.len() - 1;
        let mut place = (mixed >> 32) as usize & mask;
        while self.slots[place].0 != key && self.slots[place].0 != FREE {
            place = (place + 1) & mask;
        }
        place
    }
}

/// Numbers by text, which is read byte by byte.
#[derive(Clone, Debug)]
pub(crate) struct Trie {
    edges: Table,
    values: Vec<u32>,
}

impl Trie {
    /// Where every text begins.
    pub(crate) const ROOT: u32 = 0;

    /// A trie without text.
    pub(crate) fn new() -> Self {
        Self {
            edges: Table::new(),
            values: vec![NONE],
        }
    }

    /// Puts a number at a text, in place of one that is there.
    pub(crate) fn insert(&mut self, text: &str, value: u32) {
        let mut node = Self::ROOT;
        for &byte in text.as_bytes() {
            node = self.step(node, byte).unwrap_or_else(|| {
                let next = self.values.len() as u32;
                self.values.push(NONE);
                self.edges.set(Self::key(node, byte), next);
                next
            });
        }
        self.values[node as usize] = value;
    }

    /// The node behind a byte.
    pub(crate) fn step(&self, node: u32, byte: u8) -> Option<u32> {
        self.edges.get(Self::key(node, byte))
    }

    /// The number of the text that ends at a node.
    pub(crate) fn value(&self, node: u32) -> Option<u32> {
        Some(self.values[node as usize]).filter(|&value| value != NONE)
    }

    /// The node at which a text ends.
    pub(crate) fn walk(&self, text: &str) -> Option<u32> {
        text.bytes()
            .try_fold(Self::ROOT, |node, byte| self.step(node, byte))
    }

    /// The number of a whole text.
    pub(crate) fn get(&self, text: &str) -> Option<u32> {
        self.walk(text).and_then(|node| self.value(node))
    }

    /// The longest text, not empty, with which bytes begin: its length and its number.
    pub(crate) fn longest(&self, from: u32, bytes: &[u8]) -> Option<(usize, u32)> {
        let (mut node, mut found) = (from, None);
        for (at, &byte) in bytes.iter().enumerate() {
            let Some(next) = self.step(node, byte) else {
                break;
            };
            node = next;
            if let Some(value) = self.value(node) {
                found = Some((at + 1, value));
            }
        }
        found
    }

    fn key(node: u32, byte: u8) -> u64 {
        u64::from(node) << 8 | u64::from(byte)
    }
}
