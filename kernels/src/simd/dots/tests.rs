//! Every body against sums that are written out.

use super::*;
use std::cell::Cell;

std::thread_local! {
    static FORCED: Cell<Option<Dots>> = const { Cell::new(None) };
}

pub(super) fn forced() -> Option<Dots> {
    FORCED.get()
}

/// The results of `run` with all instructions that this processor has, and their names.
pub(crate) fn each<R>(run: impl Fn() -> R) -> Vec<(Dots, R)> {
    let found = Dots::available().into_iter().map(|dots| {
        FORCED.set(Some(dots));
        (dots, run())
    });
    let found = found.collect();
    FORCED.set(None);
    found
}

fn spaced<T>(data: &[T], pitch: usize, count: usize) -> Spaced<'_, T> {
    Spaced { data, pitch, count }
}

/// Bytes that depend on the seed alone, with the ends among them.
fn bytes(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            let byte = (state >> 56) as u8;
            if byte.is_multiple_of(7) { 255 } else { byte }
        })
        .collect()
}

#[test]
fn every_body_gives_the_sums_of_products() {
    for (rows, blocks, groups) in [
        (1, 1, 1),
        (1, 3, 7),
        (2, 2, 5),
        (3, 1, 9),
        (5, 4, 3),
        (8, 3, 64),
        (13, 5, 11),
    ] {
        let (pitch, pace) = (groups * GROUP + 3, groups * STEP + 5);
        let x = bytes(rows * pitch, 3);
        let weights: Vec<i8> = bytes(blocks * pace, 5)
            .iter()
            .map(|&b| if b == 255 { -128 } else { b.cast_signed() })
            .collect();
        let start: Vec<Sums> = (0..rows * blocks)
            .map(|i| core::array::from_fn(|c| (i * 31 + c) as i32 - 40))
            .collect();
        let mut expected = start.clone();
        for row in 0..rows {
            for block in 0..blocks {
                for (c, sum) in expected[row * blocks + block].iter_mut().enumerate() {
                    for k in 0..groups * GROUP {
                        let at = block * pace + k / GROUP * STEP + c * GROUP + k % GROUP;
                        *sum += i32::from(x[row * pitch + k]) * i32::from(weights[at]);
                    }
                }
            }
        }
        for dots in Dots::available() {
            let mut sums = start.clone();
            dots.add(
                &mut sums,
                spaced(&x, pitch, rows),
                spaced(&weights, pace, blocks),
                groups,
            );
            assert_eq!(sums, expected, "{dots:?} {rows} {blocks} {groups}");
        }
    }
}

#[test]
fn no_sum_saturates_or_overflows_on_the_way() {
    let groups = 300;
    for x in [0, 1, 127, 128, 255] {
        for w in [-128, -127, 0, 127] {
            let (rows, weights) = (vec![x; 9 * groups * GROUP], vec![w; groups * STEP]);
            let expected = i32::from(x) * i32::from(w) * (groups * GROUP) as i32;
            for dots in Dots::available() {
                for count in 1..=9 {
                    let mut sums = vec![[0; CHANNELS]; count];
                    let rows = spaced(&rows, groups * GROUP, count);
                    dots.add(&mut sums, rows, spaced(&weights, 0, 1), groups);
                    assert!(
                        sums.as_flattened().iter().all(|&sum| sum == expected),
                        "{dots:?} {x} {w}"
                    );
                }
            }
        }
    }
}

#[test]
#[should_panic(expected = "blocks of weights")]
fn short_weights_are_refused() {
    let (x, weights) = (spaced(&[0; 8], 8, 1), spaced(&[0; 127], 0, 1));
    Dots::Portable.add(&mut [[0; 16]], x, weights, 2);
}
