//! Whether a text is one of those that a regular expression matches: a table that bytes go through.

use crate::base::error::{Error, Result};
use crate::text::changes::{Change, changed, served};

/// What each byte of a text leads to.
#[derive(Clone, Copy, Debug)]
pub struct Automaton<'a> {
    /// The class of each byte: 256 of them.
    pub classes: &'a [u8],
    /// The next state for each state and class.
    pub next: &'a [i32],
    /// The state before the first byte.
    pub start: usize,
    /// Texts match that end in this state or a later one.
    pub matching: usize,
}

impl Automaton<'_> {
    /// How many classes there are, if the table is whole: every state and class leads to a state.
    fn width(&self) -> Option<usize> {
        let width = usize::from(*self.classes.iter().max()?) + 1;
        let states = self.next.len() / width;
        let inside = |&state: &i32| usize::try_from(state).is_ok_and(|state| state < states);
        let whole = self.classes.len() == 256
            && self.next.len() == states * width
            && self.start < states
            && self.next.iter().all(inside);
        whole.then_some(width)
    }
}

/// Whether each text, changed, is matched as a whole.
///
/// # Errors
/// [`Error::Value`] for a table that is not whole, or changes that are not served; [`Error::Length`]
/// unless `out` has an element for each text. Nothing has been written then.
pub fn matches(
    automaton: &Automaton<'_>,
    changes: &[Change],
    texts: &[&str],
    out: &mut [u8],
) -> Result<()> {
    let fail = |argument, expected| Err(Error::Value { argument, expected });
    if !served(changes) {
        return fail("changes", "at most 8, of patterns of 1 to 255 bytes");
    }
    let Some(width) = automaton.width() else {
        return fail("automaton", "a state for each state and class of bytes");
    };
    if out.len() != texts.len() {
        return Err(Error::Length {
            argument: "out",
            found: out.len(),
            expected: texts.len(),
        });
    }
    for (out, text) in out.iter_mut().zip(texts) {
        let mut state = automaton.start;
        changed(changes, text.as_bytes(), &mut |byte| {
            let class = usize::from(automaton.classes[usize::from(byte)]);
            state = automaton.next[state * width + class] as usize;
        });
        *out = u8::from(state >= automaton.matching);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An odd number of the letter `a`, and nothing else.
    const NEXT: [i32; 6] = [0, 0, 2, 0, 1, 0];

    fn classes() -> [u8; 256] {
        let mut classes = [1; 256];
        classes[usize::from(b'a')] = 0;
        classes
    }

    #[test]
    fn texts_go_through_the_table() {
        let automaton = Automaton {
            classes: &classes(),
            next: &NEXT,
            start: 1,
            matching: 2,
        };
        let mut out = [9; 5];
        let texts = ["", "a", "aa", "AAa", "aé"];
        matches(&automaton, &[Change::Lower], &texts, &mut out).unwrap();
        assert_eq!(out, [0, 1, 0, 1, 0]);
    }

    #[test]
    fn a_table_with_gaps_is_refused() {
        let classes = classes();
        let good = Automaton {
            classes: &classes,
            next: &NEXT,
            start: 1,
            matching: 2,
        };
        let mut out = [9];
        for bad in [
            Automaton { start: 3, ..good },
            Automaton {
                next: &[0, 0, 2, 0, 3, 0],
                ..good
            },
            Automaton {
                next: &[0, 0, 2, 0, -1, 0],
                ..good
            },
            Automaton {
                next: &NEXT[..5],
                ..good
            },
            Automaton {
                classes: &classes[1..],
                ..good
            },
            Automaton {
                classes: &[],
                ..good
            },
        ] {
            assert!(matches(&bad, &[], &["a"], &mut out).is_err());
        }
        assert!(matches(&good, &[], &["a", "a"], &mut out).is_err());
        assert!(matches(&good, &[Change::Every(b"", b"")], &["a"], &mut out).is_err());
        assert_eq!(out, [9]);
    }
}
