//! What outputs of text are written from, by small examples.

use super::*;
use std::vec;

fn strings(count: usize) -> Vec<String> {
    vec![String::from("before"); count]
}

fn piece<'a>(texts: &'a [(&'a [&'a str], usize)], places: Option<&'a [i32]>) -> Piece<'a> {
    Piece {
        words: &["one", "two"],
        texts,
        places,
        edit: Edit::NONE,
    }
}

fn joined<'a>(pieces: &'a [Piece<'a>]) -> Joined<'a> {
    Joined {
        pieces,
        edit: Edit::NONE,
    }
}

#[test]
fn the_whole_text_changes() {
    let texts = ["# a ", "#B", "ΑΣ", ""];
    let x = [(&texts[..], 1)];
    let pieces = [piece(&x, None), piece(&x, None)];
    let source = Joined {
        pieces: &pieces,
        edit: Edit {
            changes: &[Change::Every(b" #", b"+++"), Change::Every(b"B#", b"")],
            trimmed: true,
            case: Case::Lower,
        },
    };
    let mut to = strings(4);
    assert!(deliver_texts("y", &source, &mut to).is_ok());
    assert_eq!(to, ["# a+++ a", "#b", "ασας", ""]);
}

#[test]
fn pieces_are_joined_and_those_of_fewer_elements_come_again() {
    let x = [(&["a", "b", "c", "d"][..], 2)];
    let y = [(&["x", "y"][..], 2)];
    let between = Piece {
        words: &["-"],
        ..piece(&[], None)
    };
    let pieces = [piece(&x, None), between, piece(&y, None)];
    let mut to = strings(4);
    assert!(deliver_texts("y", &joined(&pieces), &mut to).is_ok());
    assert_eq!(to, ["a-x", "b-y", "c-x", "d-y"]);
    let short = deliver_texts("y", &joined(&pieces), &mut to[..3]);
    assert!(matches!(
        short,
        Err(Error::Output {
            found: 3,
            expected: 4,
            ..
        })
    ));
    let none = [(&[][..], 2)];
    assert_eq!(joined(&[between, piece(&none, None)]).count(), 0);
}

#[test]
fn a_place_is_a_word_or_a_text_of_the_same_example() {
    let x = [(&["a", "b", "c", "d"][..], 2), (&["f"][..], 1)];
    let places = [0, 3, 4, 2, 1, 4];
    let mut to = strings(6);
    let pieces = [piece(&x, Some(&places))];
    assert!(deliver_texts("y", &joined(&pieces), &mut to).is_ok());
    assert_eq!(to, ["one", "b", "f", "c", "two", "f"]);
    for place in [5, -1, i32::MIN, i32::MAX] {
        let places = [0, place];
        let wrong = [piece(&x, Some(&places))];
        let found = deliver_texts("y", &joined(&wrong), &mut to[..2]);
        assert!(matches!(found, Err(Error::Plan { .. })), "{place}");
    }
}

#[test]
fn letters_of_all_alphabets_change() {
    let texts = ["ΟΔΥΣΣΕΥΣ Ä", "Straße ǆ", "\u{130}", ""];
    let x = [(&texts[..], 1)];
    let mut to = strings(4);
    for case in [Case::Lower, Case::Upper] {
        let pieces = [
            piece(&x, None),
            Piece {
                edit: Edit { case, ..Edit::NONE },
                ..piece(&x, None)
            },
        ];
        assert!(deliver_texts("y", &joined(&pieces), &mut to).is_ok());
        for (found, text) in to.iter().zip(texts) {
            let changed = match case {
                Case::Lower => text.to_lowercase(),
                _ => text.to_uppercase(),
            };
            assert_eq!(*found, [text, &changed].concat());
        }
    }
    let texts = ["\t\x0babc é ", " \r"];
    let x = [(&texts[..], 1)];
    let edit = Edit {
        changes: &[Change::Every(b"b", b"\xc3\x89a")],
        trimmed: true,
        case: Case::Upper,
    };
    let end = Piece {
        edit,
        ..piece(&x, None)
    };
    let pieces = [piece(&x, None), end];
    assert!(deliver_texts("y", &joined(&pieces), &mut to[..2]).is_ok());
    assert_eq!(to[..2], ["\t\x0babc é AÉAC É", " \r"]);
}

fn apart(split: Split, most: usize, row: usize) -> Vec<String> {
    let source = Apart {
        texts: &[" a  bé c ", "", "x"],
        changes: &[],
        split,
        most,
        row,
    };
    let mut to = strings(source.count());
    assert!(deliver_texts("y", &source, &mut to).is_ok());
    to
}

#[test]
fn texts_are_taken_apart() {
    let (space, at) = (Split::Whitespace, Split::At(b' '));
    assert_eq!(apart(space, 0, 2), ["a", "bé", "", "", "x", ""]);
    assert_eq!(
        apart(space, 2, 3),
        ["a", "bé c ", "", "", "", "", "x", "", ""]
    );
    assert_eq!(apart(space, 1, 1), ["a  bé c ", "", "x"]);
    assert_eq!(apart(at, 0, 3), ["", "a", "", "", "", "", "x", "", ""]);
    assert_eq!(apart(at, 2, 2), ["", "a  bé c ", "", "", "x", ""]);
    assert_eq!(apart(Split::Whole, 0, 1), [" a  bé c ", "", "x"]);
    assert_eq!(
        apart(Split::Characters, 0, 6)[..6],
        [" ", "a", " ", " ", "b", "é"]
    );
}

#[test]
fn strings_keep_their_memory() {
    let mut array = Array {
        data: strings(4),
        shape: [4],
    };
    let texts = ["a", "b"];
    let x = [(&texts[..], 1)];
    let pieces = [piece(&x, None)];
    let memory: Vec<_> = array.data.iter().map(|text| text.as_ptr()).collect();
    assert!(array.take_texts("y", &joined(&pieces), [2]).is_ok());
    assert_eq!(
        (array.data.as_slice(), array.shape),
        (&texts.map(String::from)[..], [2])
    );
    assert!(
        array
            .data
            .iter()
            .zip(&memory)
            .all(|(text, &at)| text.as_ptr() == at)
    );
    array.data.shrink_to_fit();
    let many = ["a"; 9];
    let x = [(&many[..], 1)];
    let full = array.take_texts("y", &joined(&[piece(&x, None)]), [9]);
    assert!(matches!(full, Err(Error::Output { .. })));
}

#[test]
fn letters_become_three_times_as_many_bytes_at_most() {
    for letter in (0..=0x10_ffff).filter_map(char::from_u32) {
        let before = 3 * letter.len_utf8();
        let small: usize = letter.to_lowercase().map(char::len_utf8).sum();
        let capital: usize = letter.to_uppercase().map(char::len_utf8).sum();
        assert!(small <= before && capital <= before, "{letter:?}");
    }
}
