use std::string::String;
use std::vec::Vec;

use crate::text::changes::{Change, Set, changed};
use crate::text::farm::Farm;
use crate::text::finder::{Finder, Rest, Words};
use crate::text::sip::Sip;
use crate::text::tokens::{Reading, Split, counts, values};

/// Lengths with TensorFlow's `fingerprint` and the lower 62 bits of its `to_hash_bucket_strong` for
/// the key `[1, 77]`, of bytes `7 * i + 3`.
const HASHES: [(usize, u64, u64); 19] = [
    (0, 0x9ae16a3b2f90404f, 0x38a60f2d313325ce),
    (1, 0xbec09cc447469d8b, 0x2e68c2e507f5745e),
    (2, 0x16f8263645a8ecf5, 0x186b8ecff1d1cb27),
    (3, 0x40b4412e33eefd64, 0x2d30506d24427724),
    (4, 0xf3c7ee05197a7b92, 0x2c8a79ce2b3bdd5a),
    (7, 0x4fef0b39c12aa9a4, 0x3551ad166043f54d),
    (8, 0x0c97ecbc1e9d2626, 0x0001ee72517156cf),
    (16, 0x7eda0ed8c837a168, 0x1bdef3f6609d2297),
    (17, 0xc9518fe63ebf6127, 0x01b9c47ac3c4307b),
    (32, 0xa53f806f23a314e8, 0x236194263e4be646),
    (33, 0xc24f9d7ce864f0e9, 0x1474c432259d262a),
    (64, 0x0566266cb579eca2, 0x2d855cc1f5aab996),
    (65, 0x77e0867714e6b0e4, 0x2410f2e7500f6a8c),
    (127, 0xcaa19a12c8273b7e, 0x39a24078c5170e2c),
    (128, 0x666823960b3ac271, 0x15a013f02dbff256),
    (129, 0x98206b8579bca083, 0x311be05d92383692),
    (192, 0x3fb42d06dd42f727, 0x363f10be2799c4e1),
    (193, 0x9a1776a82b94f2b6, 0x1bd600ab70f8effb),
    (300, 0xdfbced116079af13, 0x0841c32029fd09fa),
];

#[test]
fn hashes_are_those_of_tensorflow() {
    for (len, fingerprint, strong) in HASHES {
        let (mut farm, mut sip) = (Farm::new(), Sip::new([1, 77]));
        for index in 0..len {
            farm.push((7 * index + 3) as u8);
            sip.push((7 * index + 3) as u8);
        }
        assert_eq!(farm.finish(), fingerprint, "{len} bytes");
        assert_eq!(sip.finish() % (1 << 62), strong, "{len} bytes");
    }
}

fn after(changes: &[Change], text: &str) -> String {
    let mut bytes = Vec::new();
    changed(changes, text.as_bytes(), &mut |byte| bytes.push(byte));
    String::from_utf8(bytes).unwrap()
}

fn set(characters: &str, beyond: bool) -> Set {
    let ascii = characters.bytes().fold(0, |bits, b| bits | 1_u128 << b);
    Set { ascii, beyond }
}

#[test]
fn changes_follow_each_other() {
    let lower = [Change::Lower, Change::Each(set(".,!", false), b"")];
    assert_eq!(after(&lower, "A, B!À."), "a bÀ");
    assert_eq!(after(&[Change::Upper], "aé"), "Aé");
    let others = [Change::Each(set(" -", true), b"_")];
    assert_eq!(after(&others, "a-é 😀b"), "a____b");
    assert_eq!(after(&[], "aé"), "aé");
}

#[test]
fn patterns_are_found_from_the_left() {
    for (from, to) in [
        ("aab", "x"),
        ("<br />", " "),
        ("aa", ""),
        ("a", "bb"),
        ("abab", "-"),
    ] {
        // The pattern does not outlive the test.
        let change = Change::Every(
            from.to_owned().leak().as_bytes(),
            to.to_owned().leak().as_bytes(),
        );
        for text in [
            "",
            "a",
            "aab",
            "aaab",
            "aaaab",
            "aabaabaa",
            "a<br /><br <br />",
            "ababab",
            "abaabab",
        ] {
            let expected = text.replace(from, to);
            assert_eq!(after(&[change], text), expected, "{from} in {text}");
        }
    }
    // What one change writes, the next one reads.
    let two = [Change::Every(b"ab", b"cc"), Change::Every(b"ccc", b"d")];
    assert_eq!(after(&two, "abab-cab"), "dc-d");
}

fn words(sorted: &[&str]) -> (Vec<u8>, Vec<i32>) {
    let mut bytes = Vec::new();
    let ends = sorted.iter().map(|word| {
        bytes.extend_from_slice(word.as_bytes());
        bytes.len() as i32
    });
    let ends = ends.collect();
    (bytes, ends)
}

#[test]
fn a_word_is_found_and_nothing_else() {
    let list = ["", "a", "ab", "abc", "b", "ba", "é", "ê"];
    let (bytes, ends) = words(&list);
    let words = Words {
        bytes: &bytes,
        ends: &ends,
    };
    assert!(words.is_whole());
    for token in [
        "", "a", "ab", "abc", "abcd", "b", "ba", "c", "aa", "é", "è", "\u{301}",
    ] {
        let mut finder = Finder::new(&words, Rest::One);
        token.bytes().for_each(|byte| finder.push(&words, byte));
        let expected = list
            .iter()
            .position(|word| *word == token)
            .unwrap_or(list.len());
        assert_eq!(finder.class(&words, Rest::One), expected, "{token}");
    }
}

fn reading(split: Split, widths: &'static [usize]) -> Reading {
    Reading {
        changes: &[],
        split,
        widths,
        between: b" ",
        rest: Rest::One,
    }
}

fn found(reading: &Reading, list: &[&str], text: &str) -> Vec<i32> {
    let (bytes, ends) = words(list);
    let words = Words {
        bytes: &bytes,
        ends: &ends,
    };
    let numbers: Vec<i32> = (0..list.len() as i32).chain([-1, -2]).collect();
    let mut out = [0; 9];
    values(reading, &words, &[text], (&numbers, 9), &mut out).unwrap();
    let len = out
        .iter()
        .rposition(|&n| n != -2)
        .map_or(0, |last| last + 1);
    out[..len].to_vec()
}

#[test]
fn texts_are_taken_apart() {
    let list = ["", "a", "a b", "b", "b c", "c", "é"];
    let spaces = reading(Split::Whitespace, &[1]);
    assert_eq!(
        found(&spaces, &list, " a\tb\u{b}c \u{a0}a é\n"),
        [1, 3, 5, -1, 6]
    );
    assert_eq!(found(&spaces, &list, ""), []);
    assert_eq!(found(&spaces, &list, " \r\n"), []);
    let characters = reading(Split::Characters, &[1]);
    assert_eq!(found(&characters, &list, "aé 😀c"), [1, 6, -1, -1, 5]);
    let commas = reading(Split::At(b','), &[1]);
    assert_eq!(found(&commas, &list, ",a,,b c,"), [0, 1, 0, 4, 0]);
    assert_eq!(found(&commas, &list, ""), [0]);
    assert_eq!(found(&reading(Split::Whole, &[1]), &list, "b c"), [4]);
    let both = reading(Split::Whitespace, &[1, 2]);
    assert_eq!(found(&both, &list, "a b  c a"), [1, 3, 5, 1, 2, 4, -1]);
    let three = reading(Split::Whitespace, &[3]);
    assert_eq!(found(&three, &["a b c", "c a b"], "a b c a b"), [0, -1, 1]);
    assert_eq!(found(&three, &["a b"], "a b"), []);
}

#[test]
fn numbers_are_read_as_their_digits() {
    let list = [
        "-1",
        "-9223372036854775808",
        "0",
        "10",
        "9223372036854775807",
    ];
    let (bytes, ends) = words(&list);
    let words = Words {
        bytes: &bytes,
        ends: &ends,
    };
    let whole = reading(Split::Whole, &[1]);
    let numbers = [-1, i64::MIN, 0, 10, i64::MAX, 1];
    let mut out = [9; 6];
    values(
        &whole,
        &words,
        &numbers,
        (&[0, 1, 2, 3, 4, 5, 6], 1),
        &mut out,
    )
    .unwrap();
    assert_eq!(out, [0, 1, 2, 3, 4, 5]);
    values(
        &whole,
        &words,
        &[10_i32],
        (&[0, 1, 2, 3, 4, 5, 6], 1),
        &mut out[..1],
    )
    .unwrap();
    assert_eq!(out[0], 3);
}

#[test]
fn tokens_are_counted_in_bins() {
    let (bytes, ends) = words(&["a", "b", "c"]);
    let words = Words {
        bytes: &bytes,
        ends: &ends,
    };
    let spaces = reading(Split::Whitespace, &[1]);
    let mut out = [9.0_f32; 6];
    let bins = [2, -1, 7, 0];
    let texts = ["a b a c x y z", ""];
    counts(&spaces, &words, &texts, (&bins, 3, false), &mut out).unwrap();
    assert_eq!(out, [3.0, 0.0, 2.0, 0.0, 0.0, 0.0]);
    counts(&spaces, &words, &texts, (&bins, 3, true), &mut out).unwrap();
    assert_eq!(out, [1.0, 0.0, 1.0, 0.0, 0.0, 0.0]);
}

#[test]
fn what_does_not_fit_is_refused() {
    let (bytes, ends) = words(&["a", "b"]);
    let good = Words {
        bytes: &bytes,
        ends: &ends,
    };
    let spaces = reading(Split::Whitespace, &[1]);
    let mut out = [0; 2];
    assert!(values(&spaces, &good, &["a"], (&[0; 4], 2), &mut out).is_ok());
    assert!(values(&spaces, &good, &["a"], (&[0; 3], 2), &mut out).is_err());
    assert!(values(&spaces, &good, &["a"], (&[], 2), &mut out).is_err());
    assert!(values(&spaces, &good, &["a"], (&[0; 4], 3), &mut out).is_err());
    assert!(
        values(
            &reading(Split::Whole, &[0]),
            &good,
            &["a"],
            (&[0; 4], 2),
            &mut out
        )
        .is_err()
    );
    for ends in [[-1, 2], [2, 1], [1, 3], [1, 1]] {
        let bad = Words {
            bytes: &bytes,
            ends: &ends,
        };
        assert!(values(&spaces, &bad, &["a"], (&[0; 4], 2), &mut out).is_err());
    }
    let changes = &[Change::Every(b"", b"x")];
    let empty = Reading { changes, ..spaces };
    assert!(values(&empty, &good, &["a"], (&[0; 4], 2), &mut out).is_err());
}
