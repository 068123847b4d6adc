//! Depthwise convolutions against their definition in f64, at every level.

use proptest::prelude::*;

use super::*;
use crate::base::parallel::Serial;
use crate::conv::Padding;
use crate::conv::tests::{conv, each_product};
use crate::simd::available;
use crate::testing::{Interleaved, Threads, close, numbers};

fn compare(found: &[f32], exact: &[(f64, f64)]) -> std::result::Result<(), TestCaseError> {
    for (i, (&found, exact)) in found.iter().zip(exact).enumerate() {
        let near = close(found, exact.0, exact.1 * 1e-6 + 1e-30);
        prop_assert!(near, "{}: {} instead of {}", i, found, exact.0);
    }
    Ok(())
}

/// The output, with a channel per group.
fn check_forward(conv: &Conv, seed: u64) -> std::result::Result<(), TestCaseError> {
    let input = numbers(conv.input_len(), seed);
    let filter = numbers(conv.filter_len(), seed.wrapping_add(1));
    let mut exact = vec![(0.0, 0.0); conv.output_len()];
    each_product(conv, |i, f, o| {
        let product = f64::from(input[i]) * f64::from(filter[f]);
        exact[o] = (exact[o].0 + product, exact[o].1 + product.abs());
    });
    for level in available() {
        let depthwise = Depthwise {
            level,
            ..Depthwise::new(*conv)
        };
        let mut found = vec![f32::NAN; conv.output_len()];
        depthwise
            .run(&input, &filter, &mut found, &Interleaved)
            .unwrap();
        compare(&found, &exact)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn all_three_match_f64(
        conv in conv(),
        many in prop_oneof![3 => Just(1_usize), 1 => 2..4_usize],
        seed in any::<u64>(),
    ) {
        let channels = conv.in_channels;
        let conv = Conv { groups: channels, out_channels: channels * many, ..conv };
        let input = numbers(conv.input_len(), seed);
        let filter = numbers(conv.filter_len(), seed + 1);
        let output = numbers(conv.output_len(), seed + 2);
        let mut forward = vec![(0.0, 0.0); output.len()];
        let mut backward_input = vec![(0.0, 0.0); input.len()];
        let mut backward_filter = vec![(0.0, 0.0); filter.len()];
        let add = |to: &mut (f64, f64), a: f32, b: f32| {
            let product = f64::from(a) * f64::from(b);
            *to = (to.0 + product, to.1 + product.abs());
        };
        // With one channel per group the filter's layout is the same as in a grouped one.
        each_product(&conv, |i, f, o| {
            add(&mut forward[o], input[i], filter[f]);
            add(&mut backward_input[i], output[o], filter[f]);
            add(&mut backward_filter[f], output[o], input[i]);
        });
        for level in available() {
            let depthwise = Depthwise { level, ..Depthwise::new(conv) };
            let mut found = vec![f32::NAN; output.len()];
            depthwise.run(&input, &filter, &mut found, &Interleaved).unwrap();
            compare(&found, &forward)?;
            let mut found = vec![f32::NAN; input.len()];
            depthwise.backward_input(&output, &filter, &mut found, &Interleaved).unwrap();
            compare(&found, &backward_input)?;
            let mut found = vec![f32::NAN; filter.len()];
            depthwise.backward_filter(&input, &output, &mut found, &Interleaved).unwrap();
            compare(&found, &backward_filter)?;
        }
    }
}

/// Filters whose taps are constants: lines of several tiles, tiles that end with a line, paddings
/// that are wider than a tile, and channels that do not fill whole vectors.
fn constant_taps() -> impl Strategy<Value = Conv> {
    let padding = || {
        prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..20_usize, 0..20_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ]
    };
    let taps = prop_oneof![Just(3_usize), Just(5_usize), Just(7_usize)];
    let x = (1..24_usize, taps, 1..3_usize, padding());
    let y = (1..12_usize, 1..6_usize, 1..3_usize, 1..3_usize, padding());
    let window = |(input, size, stride, dilation, padding)| {
        Window::new(input, size, stride, dilation, padding).ok()
    };
    (1..3_usize, y, x, 8..70_usize).prop_filter_map(
        "fits",
        move |(batch, y, (input, size, stride, padding), channels)| {
            Some(Conv {
                batch,
                y: window(y)?,
                x: window((input, size, stride, 1, padding))?,
                in_channels: channels,
                out_channels: channels,
                groups: channels,
            })
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn constant_taps_match_f64(conv in constant_taps(), seed in any::<u64>()) {
        check_forward(&conv, seed)?;
    }
}

/// Every width of a tile, several groups of lines, and images with and without an inside.
#[test]
fn wide_channels_match_f64() {
    let padding = Padding::Same;
    for (size, taps, stride, dilation) in [
        (7, 5, 1, 1),
        (13, 3, 1, 2),
        (18, 5, 2, 1),
        (2, 3, 1, 1),
        (16, 7, 1, 1),
        (9, 4, 1, 1),
        (9, 3, 3, 1),
    ] {
        for channels in [16, 64, 121, 300] {
            let w = Window::new(size, taps, stride, dilation, padding).unwrap();
            let conv = Conv {
                batch: 2,
                y: w,
                x: w,
                in_channels: channels,
                out_channels: channels,
                groups: channels,
            };
            check_forward(&conv, 1).unwrap();
        }
    }
}

#[test]
fn bias_and_activation() {
    let w = Window::new(7, 3, 1, 1, Padding::Same).unwrap();
    for many in [1, 2] {
        let conv = Conv {
            batch: 1,
            y: w,
            x: w,
            in_channels: 21,
            out_channels: 21 * many,
            groups: 21,
        };
        let (input, filter) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
        let bias = numbers(conv.out_channels, 3);
        let plain = Depthwise::new(conv);
        let full = Depthwise {
            bias: Some(&bias),
            activation: Activation::RELU6,
            ..plain
        };
        let (mut a, mut b) = (vec![0.0; conv.output_len()], vec![0.0; conv.output_len()]);
        plain.run(&input, &filter, &mut a, &Serial).unwrap();
        full.run(&input, &filter, &mut b, &Serial).unwrap();
        for (i, (a, b)) in a.iter().zip(&b).enumerate() {
            let expected = (a + bias[i % bias.len()]).clamp(0.0, 6.0);
            assert!((expected - b).abs() < 1e-5);
        }
    }
    assert!(
        Depthwise::new(Conv {
            groups: 1,
            ..Depthwise::new(Conv {
                batch: 1,
                y: w,
                x: w,
                in_channels: 2,
                out_channels: 2,
                groups: 2,
            })
            .conv
        })
        .run(&[0.0; 98], &[0.0; 36], &mut [0.0; 98], &Serial)
        .is_err()
    );
}

#[test]
fn tasks_have_some_lines_and_threads_the_same() {
    for threads in 1..=8 {
        for lines in 1..=300 {
            let each = lines_per_task(lines, &Threads(threads));
            let share = lines.div_ceil(threads);
            assert!(
                (LEAST_LINES.min(share)..=share).contains(&each),
                "{lines} for {threads}"
            );
            let most = lines.div_ceil(each).div_ceil(threads) * each;
            assert!(most <= share + share / 16, "{lines} for {threads}: {each}");
        }
    }
    assert_eq!(lines_per_task(7, &Threads(2)), 4);
}
