//! Levels and products of them against what is written out, with each body.

use super::{Conv, ENDS, Real, levels};
use crate::base::parallel::{Parallel, Serial};
use crate::gemm::Activation;
use crate::quantized::tests::{Random, over, packed, same, sizes};

/// Numbers between two ends, some of them exactly half of a step.
fn reals(random: &mut Random, len: usize, (low, high): (f32, f32)) -> Vec<f32> {
    let mut one = || low + (high - low) * random.below(1 << 20) as f32 / (1 << 20) as f32;
    (0..len).map(|_| one()).collect()
}

fn leveled(x: &[f32], each: usize, parallel: &dyn Parallel) -> (Vec<i8>, Vec<f32>) {
    let mut found = vec![0; x.len()];
    let mut ends = vec![0.0; x.len() / each * ENDS];
    levels(x, each, (&mut found, &mut ends), parallel).unwrap();
    (found, ends)
}

#[test]
fn levels_are_those_of_the_range_of_an_example() {
    let mut random = Random(11);
    for (each, examples) in [
        (1, 5),
        (3, 4),
        (32, 3),
        (100, 7),
        (1031, 2),
        (40_000, 1),
        (40_000, 3),
    ] {
        for ends in [
            (-3.0, 5.0),
            (0.0, 6.0),
            (-1e-3, 0.0),
            (2.0, 3.0),
            (-1e30, 1e30),
        ] {
            let x = reals(&mut random, each * examples, ends);
            let found = same(|parallel| vec![leveled(&x, each, parallel)]);
            let (levels, ends) = &found[0];
            for (example, x) in x.chunks(each).enumerate() {
                let low = x.iter().fold(0.0_f32, |a, &b| a.min(b));
                let high = x.iter().fold(0.0_f32, |a, &b| a.max(b));
                let width = (high - low) / 255.0;
                let scale = if width == 0.0 { 1.0 } else { width };
                let zero = (-low / scale).clamp(0.0, 255.0).round_ties_even();
                assert_eq!(ends[example * ENDS..][..ENDS], [scale, zero - 128.0]);
                for (x, &level) in x.iter().zip(&levels[example * each..]) {
                    let expected = ((x / scale).round_ties_even() + zero).clamp(0.0, 255.0);
                    assert_eq!(f32::from(level), expected - 128.0);
                }
            }
        }
    }
}

#[test]
fn what_is_not_finite_is_not_hidden() {
    for odd in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for place in [0, 40, 69] {
            let mut x = vec![1.0; 140];
            x[70 + place] = odd;
            let (found, ends) = leveled(&x, 70, &Serial);
            assert!(ends[2].is_nan() && found[70..].iter().all(|&level| level == 0));
            assert_eq!(ends[..2], [1.0 / 255.0, -128.0]);
            assert!(found[..70].iter().all(|&level| level == 127));
        }
    }
    // A range that f32 does not have, and one that has not a step.
    let (found, ends) = leveled(&[f32::MAX, -f32::MAX, 0.0], 3, &Serial);
    assert!(ends[0].is_finite() && found[0] == 127 && found[1] == -128);
    let (found, ends) = leveled(&[1e-45, 0.0, 0.0], 3, &Serial);
    assert_eq!((found, ends), (vec![-128; 3], vec![1.0, -128.0]));
}

#[test]
fn lengths_are_checked() {
    let run = |x: usize, each, found: usize, ends: usize| {
        let to = (&mut vec![0; found][..], &mut vec![0.0; ends][..]);
        levels(&vec![0.0; x], each, to, &Serial).is_ok()
    };
    assert!(run(6, 3, 6, 4) && run(0, 3, 0, 0) && run(0, 0, 0, 0));
    assert!(!run(6, 3, 5, 4) && !run(6, 3, 6, 2) && !run(7, 3, 7, 4) && !run(4, 0, 4, 2));
}

#[test]
fn products_are_of_what_levels_stand_for() {
    let mut random = Random(12);
    let cases = [
        (1, 1, 1),
        (3, 5, 3),
        (16, 16, 1),
        (7, 50, 1),
        (40, 33, 3),
        (1030, 18, 1),
        (530, 2, 3),
    ];
    for (inputs, outputs, taps) in cases {
        let sizes = sizes(&mut random, (inputs, outputs), taps, 1);
        let window = taps * taps * inputs;
        let x = random.bytes(sizes.input_len());
        let kernel = random.bytes(outputs * window);
        let (filter, totals) = packed(&kernel, outputs);
        let factors = reals(&mut random, totals.len(), (1e-4, 1e-2));
        let bias = reals(&mut random, outputs, (-2.0, 2.0));
        let residual = reals(&mut random, sizes.output_len(), (-2.0, 2.0));
        let conv = Conv {
            sizes,
            filter: &filter,
            totals: &totals,
        };
        // Of both examples, or the same for both.
        for ends in [&[0.013, -7.0, 0.5, 101.0][..], &[0.25, -128.0]] {
            let found = same(|parallel| {
                let mut out = vec![0; sizes.output_len()];
                conv.sums((&x, ends), &mut out, parallel).unwrap();
                out
            });
            let at = |image: usize| ends[(image * ENDS) % ends.len()..][..ENDS].to_vec();
            let place = |i: usize| {
                let pixel = i / outputs;
                let (line, column) = (pixel / sizes.x.output, pixel % sizes.x.output);
                (line / sizes.y.output, line % sizes.y.output, column)
            };
            for (i, &found) in found.iter().enumerate() {
                let (place, output) = (place(i), i % outputs);
                let mut sum = 0;
                over(&sizes, place, |from, tap| {
                    for c in 0..from.map_or(0, |_| inputs) {
                        let w = kernel[output * window + tap * inputs + c];
                        let level = i32::from(x[from.unwrap() + c]) - at(place.0)[1] as i32;
                        sum += i32::from(w) * level;
                    }
                });
                assert_eq!(found, sum, "{sizes:?} {i}");
            }
            let kinds = [Activation::None, Activation::RELU6, Activation::Map(halved)];
            for (activation, (bias, residual)) in kinds.into_iter().zip([
                (Some(&bias[..]), Some(&residual[..])),
                (Some(&bias[..]), None),
                (None, None),
            ]) {
                let real = Real {
                    factors: &factors,
                    bias,
                    residual,
                    activation,
                };
                let results = same(|parallel| {
                    let mut out = vec![0.0; sizes.output_len()];
                    conv.run((&x, ends), real, &mut out, parallel).unwrap();
                    out.into_iter().map(f32::to_bits).collect()
                });
                for (i, (result, sum)) in results.into_iter().zip(&found).enumerate() {
                    let output = i % outputs;
                    let mut x = [*sum as f32 * (at(place(i).0)[0] * factors[output])];
                    x[0] += bias.map_or(0.0, |bias| bias[output]);
                    x[0] += residual.map_or(0.0, |residual| residual[i]);
                    activation.apply(&mut x, &Serial);
                    assert_eq!(f32::from_bits(result), x[0], "{sizes:?} {i}");
                }
            }
        }
        let short = conv.sums((&x, &[0.0; 3]), &mut vec![0; sizes.output_len()], &Serial);
        assert!(short.is_err());
    }
}

fn halved(x: &mut [f32]) {
    for x in x {
        *x *= 0.5;
    }
}
