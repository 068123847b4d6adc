use super::*;
use crate::simd::body::forced;
use crate::testing::{Interleaved, numbers};

const SIZES: [(usize, usize, usize); 11] = [
    (6, 2, 1),
    (2, 2, 3),
    (900, 40, 1),
    (3, 17, 50),
    (0, 3, 1),
    (3, 0, 1),
    (2, 3, 0),
    (1, 16, 1),
    (131, 1, 1),
    (300, 15, 1),
    (70, 70, 1),
];

fn each_size(check: impl Fn(Channels, &[f32], &[f64])) {
    for (outer, channels, inner) in SIZES {
        let sizes = Channels {
            outer,
            channels,
            inner,
        };
        let own: Vec<f64> = (0..channels).map(|channel| channel as f64).collect();
        check(sizes, &numbers(outer * channels * inner, 3), &own);
    }
}

#[test]
fn sums_are_those_of_the_channel() {
    each_size(|sizes, x, own| {
        for parts in [1, 2, 7] {
            let all = forced::results(|| {
                let [mut firsts, mut seconds] =
                    [(); 2].map(|()| vec![f64::NAN; parts * sizes.channels]);
                sum(
                    &sizes,
                    ([x], own),
                    [&mut firsts, &mut seconds],
                    &Interleaved,
                    |[x], channel| [x, channel],
                );
                [firsts, seconds]
            });
            for [firsts, seconds] in all {
                for channel in 0..sizes.channels {
                    let of = |i: &usize| i / sizes.inner % sizes.channels == channel;
                    let own: Vec<usize> = (0..x.len()).filter(of).collect();
                    let exact: f64 = own.iter().map(|&i| f64::from(x[i])).sum();
                    let found = (firsts[channel], seconds[channel]);
                    assert_eq!(found, (exact, (channel * own.len()) as f64));
                }
            }
        }
    });
}

#[test]
fn values_are_those_of_the_channel() {
    each_size(|sizes, x, own| {
        let found = forced::same_bits(|| {
            let mut out = vec![f32::NAN; x.len()];
            let mut list = own.to_vec();
            list.resize(own.len() + MORE, f64::NAN);
            let inputs = ([x], [&mut list[..]]);
            apply(&sizes, inputs, &mut out, &Interleaved, |[x], [channel]| {
                x + channel
            });
            out
        });
        for (i, &found) in found.iter().enumerate() {
            let channel = (i / sizes.inner % sizes.channels) as f64;
            assert_eq!(found, (f64::from(x[i]) + channel) as f32);
        }
    });
}

#[test]
fn parts_are_those_of_the_sizes() {
    let of = |outer, channels, inner| {
        parts(&Channels {
            outer,
            channels,
            inner,
        })
    };
    assert_eq!([of(1, 8, 1), of(0, 0, 1), of(1 << 20, 8, 2)], [1; 3]);
    assert_eq!([of(2048, 16, 1), of(1 << 20, 64, 1)], [2, PARTS]);
}
