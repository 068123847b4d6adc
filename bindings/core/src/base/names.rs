//! Names of operations that are unique in a graph, without asking TensorFlow about each.

use std::cell::Cell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use crate::base::small_vec::SmallVec;

/// A name that is being made. Usual ones need no allocation.
pub(crate) type NameBuf = SmallVec<u8, 96>;

/// A map whose keys are this program's own: their hash needs no protection against chosen keys.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<QuickHasher>>;

/// Multiplies and rotates, eight bytes at a time.
#[derive(Default)]
pub(crate) struct QuickHasher(u64);

impl QuickHasher {
    #[inline]
    fn add(&mut self, word: u64) {
        // An odd number without pattern: 2^64 divided by the golden ratio.
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

impl Hasher for QuickHasher {
    #[inline]
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        for word in words {
            self.add(u64::from_le_bytes(*word));
        }
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.add(u64::from_le_bytes(word));
        }
    }

    #[inline]
    fn write_u32(&mut self, number: u32) {
        self.add(number.into());
    }

    #[inline]
    fn write_usize(&mut self, number: usize) {
        self.add(number as u64);
    }

    #[inline]
    fn finish(&self) -> u64 {
        // Tables take a bucket from the low bits, which a product mixes least.
        self.0 ^ (self.0 >> 32)
    }
}

/// The names that were given to a graph's operations.
///
/// A name is one that was asked for, or such a name with `_` and a number from 1 on. So whether a
/// name is taken follows from the names that were asked for and from the next number of each.
#[derive(Default)]
pub(crate) struct Names {
    next: QuickMap<Box<[u8]>, Cell<u32>>,
    scopes: QuickMap<Box<str>, u32>,
    has_others: bool,
    // Whether a name that was asked for ends in `_` and a number: only then may one with a number be
    // taken that was not made here.
    has_numbered: bool,
}

impl Names {
    /// The names of a graph that TensorFlow filled.
    pub(crate) fn with_others() -> Self {
        Self {
            has_others: true,
            ..Self::default()
        }
    }

    /// Notes that the graph has, or may get, operations whose names were not made here. From then on
    /// only the graph knows which are taken.
    pub(crate) fn others_named(&mut self) {
        self.has_others = true;
    }

    /// Makes a name unique by a number, and ends it by a NUL byte. `in_graph` tells whether the graph
    /// has an operation of a name, which ends in a NUL byte.
    #[inline]
    pub(crate) fn unique(&mut self, name: &mut NameBuf, in_graph: impl Fn(&[u8]) -> bool) {
        let is_taken = |name: &[u8]| match name {
            [name @ .., _] if !self.has_others => self.has_numbered && self.next.contains_key(name),
            _ => in_graph(name),
        };
        let base = name.len();
        let Some(next) = self.next.get(&name[..]) else {
            name.push(0);
            let taken = if self.has_others {
                in_graph(name)
            } else {
                self.was_numbered(&name[..base])
            };
            self.next.insert(name[..base].into(), Cell::new(1));
            self.has_numbered |= split_number(&name[..base]).is_some();
            if taken {
                name.truncate(base);
                self.unique(name, in_graph);
            }
            return;
        };
        loop {
            name.push(b'_');
            push_decimal(name, next.get());
            name.push(0);
            next.set(next.get().wrapping_add(1));
            if !is_taken(name) {
                return;
            }
            name.truncate(base);
        }
    }

    /// Whether a name is another one with a number that was given to it.
    fn was_numbered(&self, name: &[u8]) -> bool {
        let Some((base, number)) = split_number(name) else {
            return false;
        };
        self.next.get(base).is_some_and(|next| number < next.get())
    }

    /// Makes the name of a scope unique among scopes.
    pub(crate) fn unique_scope(&mut self, name: &str) -> String {
        let count = self.scopes.entry(name.into()).or_insert(0);
        *count += 1;
        if *count == 1 {
            return name.to_owned();
        }
        let candidate = format!("{name}_{}", *count - 1);
        self.unique_scope(&candidate)
    }
}

/// Splits a name that ends in `_` and a number as they are made here.
fn split_number(name: &[u8]) -> Option<(&[u8], u32)> {
    let at = name.iter().rposition(|&byte| byte == b'_')?;
    let (base, digits) = (&name[..at], &name[at + 1..]);
    let number = match digits {
        [b'1'..=b'9', ..] => std::str::from_utf8(digits).ok()?.parse().ok()?,
        _ => return None,
    };
    Some((base, number))
}

/// Appends a number in decimal digits.
#[inline]
fn push_decimal(name: &mut NameBuf, mut number: u32) {
    let mut digits = [0_u8; 10];
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    name.extend_from_slice(&digits[first..]);
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::{NameBuf, Names};

    /// Names as Python's `Graph.unique_name` would make them, from a set of all that were given.
    fn expected(given: &mut HashSet<String>, asked: &str) -> String {
        let names = std::iter::once(asked.to_owned());
        let mut names = names.chain((1..).map(|number| format!("{asked}_{number}")));
        let free = names.find(|name| !given.contains(name));
        let free = free.unwrap_or_default();
        given.insert(free.clone());
        free
    }

    fn given(names: &mut Names, asked: &str, in_graph: impl Fn(&[u8]) -> bool) -> String {
        let mut name = NameBuf::new();
        name.extend_from_slice(asked.as_bytes());
        names.unique(&mut name, in_graph);
        assert_eq!(name.last(), Some(&0));
        String::from_utf8_lossy(&name[..name.len() - 1]).into_owned()
    }

    proptest! {
        /// Without and with operations that others named, from any point on.
        #[test]
        fn are_the_first_free_ones(
            asked in prop::collection::vec("[ab](_[0-3]){0,3}", 1..60),
            others_from in 0_usize..80,
        ) {
            let mut names = Names::default();
            let known = RefCell::new(HashSet::new());
            for (position, asked) in asked.iter().enumerate() {
                if position == others_from {
                    names.others_named();
                    known.borrow_mut().extend(["a_2".to_owned(), "b_1_1".to_owned()]);
                }
                let in_graph = |name: &[u8]| {
                    assert!(position >= others_from, "the graph is asked without a need");
                    known.borrow().contains(&String::from_utf8_lossy(&name[..name.len() - 1])[..])
                };
                let found = given(&mut names, asked, in_graph);
                prop_assert_eq!(found, expected(&mut known.borrow_mut(), asked));
            }
        }
    }

    #[test]
    fn numbers_are_decimal_without_leading_zeros() {
        let mut names = Names::default();
        let nowhere = |_: &[u8]| false;
        for expected in ["x".to_owned()]
            .into_iter()
            .chain((1..=110).map(|n| format!("x_{n}")))
        {
            assert_eq!(given(&mut names, "x", nowhere), expected);
        }
        assert_eq!(given(&mut names, "x_100", nowhere), "x_100_1");
        assert_eq!(given(&mut names, "x_010", nowhere), "x_010");
        assert_eq!(given(&mut names, "x_111", nowhere), "x_111");
        assert_eq!(given(&mut names, "x", nowhere), "x_112");
    }

    #[test]
    fn scopes_have_names_of_their_own() {
        let mut names = Names::default();
        let scopes: Vec<String> = ["a", "a", "a_1", "a"]
            .map(|name| names.unique_scope(name))
            .into();
        assert_eq!(scopes, ["a", "a_1", "a_1_1", "a_2"]);
        assert_eq!(given(&mut names, "a", |_| false), "a");
        assert_eq!(given(&mut names, "a/_1", |_| false), "a/_1");
    }
}
