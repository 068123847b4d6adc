//! Convolutions against their definition in f64, at every level.

use proptest::prelude::*;

use super::*;
use crate::base::parallel::Serial;
use crate::gemm::Activation;
use crate::ops::elementwise::activation::in_place::hard_silu;
use crate::simd::available;
use crate::testing::{Interleaved, close, numbers};

/// Any convolution of at most some thousand products.
pub fn conv() -> impl Strategy<Value = Conv> {
    let padding = || {
        prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..4_usize, 0..4_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ]
    };
    let axis = move || {
        (1..14_usize, 1..5_usize, 1..4_usize, 1..3_usize, padding()).prop_filter_map(
            "fits",
            |(input, size, stride, dilation, padding)| {
                Window::new(input, size, stride, dilation, padding).ok()
            },
        )
    };
    let channels = || prop_oneof![3 => 1..6_usize, 2 => 6..50_usize];
    let groups = prop_oneof![4 => Just(1_usize), 1 => 2..4_usize];
    (1..3_usize, axis(), axis(), channels(), channels(), groups).prop_map(
        |(batch, y, x, in_channels, out_channels, groups)| Conv {
            batch,
            y,
            x,
            in_channels: in_channels * groups,
            out_channels: out_channels * groups,
            groups,
        },
    )
}

/// Calls `product(input, filter, output)` with the indices of every product of the convolution.
pub fn each_product(conv: &Conv, mut product: impl FnMut(usize, usize, usize)) {
    let (depth, columns) = (conv.group_in(), conv.group_out());
    for image in 0..conv.batch {
        for (oy, ox) in (0..conv.y.output).flat_map(|y| (0..conv.x.output).map(move |x| (y, x))) {
            for (ky, kx) in (0..conv.y.size).flat_map(|y| (0..conv.x.size).map(move |x| (y, x))) {
                let at = |w: &Window, stop: usize, tap: usize| {
                    (stop * w.stride + tap * w.dilation)
                        .checked_sub(w.before)
                        .filter(|&i| i < w.input)
                };
                let (Some(iy), Some(ix)) = (at(&conv.y, oy, ky), at(&conv.x, ox, kx)) else {
                    continue;
                };
                let input = ((image * conv.y.input + iy) * conv.x.input + ix) * conv.in_channels;
                let output =
                    ((image * conv.y.output + oy) * conv.x.output + ox) * conv.out_channels;
                let filter = (ky * conv.x.size + kx) * depth;
                for o in 0..conv.out_channels {
                    let group = o / columns;
                    for i in 0..depth {
                        product(
                            input + group * depth + i,
                            (filter + i) * conv.out_channels + o,
                            output + o,
                        );
                    }
                }
            }
        }
    }
}

/// The exact sum and the sum of magnitudes.
#[derive(Clone, Copy, Default)]
struct Exact(f64, f64);

impl Exact {
    fn add(&mut self, a: f32, b: f32) {
        let product = f64::from(a) * f64::from(b);
        self.0 += product;
        self.1 += product.abs();
    }
}

fn compare(found: &[f32], exact: &[Exact]) -> std::result::Result<(), TestCaseError> {
    for (i, (&found, exact)) in found.iter().zip(exact).enumerate() {
        let tolerance = exact.1 * 1e-6 + 1e-30;
        prop_assert!(
            close(found, exact.0, tolerance),
            "{i}: {found} instead of {}",
            exact.0
        );
    }
    Ok(())
}

fn check(conv: &Conv, seed: u64) -> std::result::Result<(), TestCaseError> {
    let input = numbers(conv.input_len(), seed);
    let filter = numbers(conv.filter_len(), seed + 1);
    let output = numbers(conv.output_len(), seed + 2);
    let mut forward = vec![Exact::default(); output.len()];
    let mut backward_input = vec![Exact::default(); input.len()];
    let mut backward_filter = vec![Exact::default(); filter.len()];
    each_product(conv, |i, f, o| {
        forward[o].add(input[i], filter[f]);
        backward_input[i].add(output[o], filter[f]);
        backward_filter[f].add(output[o], input[i]);
    });
    for level in available() {
        let mut found = vec![f32::NAN; output.len()];
        let run = Forward {
            level,
            ..Forward::new(*conv, Filter::Plain(&filter))
        };
        let mut scratch = vec![f32::NAN; run.scratch_len().unwrap()];
        run.run(&input, &mut found, &mut scratch, &Interleaved)
            .unwrap();
        compare(&found, &forward)?;

        let mut found = vec![f32::NAN; input.len()];
        let run = BackwardInput {
            level,
            ..BackwardInput::new(*conv, Filter::Plain(&filter))
        };
        let mut scratch = vec![f32::NAN; run.scratch_len().unwrap()];
        run.run(&output, &mut found, &mut scratch, &Interleaved)
            .unwrap();
        compare(&found, &backward_input)?;

        let mut found = vec![f32::NAN; filter.len()];
        let run = BackwardFilter {
            level,
            ..BackwardFilter::new(*conv)
        };
        let mut scratch = vec![f32::NAN; run.scratch_len().unwrap()];
        run.run(&input, &output, &mut found, &mut scratch, &Interleaved)
            .unwrap();
        compare(&found, &backward_filter)?;
    }
    Ok(())
}

/// What an output sees is a run of the image: short and long ones, with and without gaps.
#[test]
fn one_line_of_outputs_matches_f64() {
    for (steps, taps, stride, in_channels, out_channels) in [
        (40, 3, 1, 64, 70),
        (33, 5, 2, 130, 20),
        (61, 1, 3, 8, 9),
        (31, 4, 4, 16, 33),
        (300, 9, 1, 1, 40),
        (50, 8, 2, 5, 100),
    ] {
        let conv = Conv {
            batch: 1,
            y: Window::UNIT,
            x: Window::new(steps, taps, stride, 1, Padding::Valid).unwrap(),
            in_channels,
            out_channels,
            groups: 1,
        };
        check(&conv, 11).unwrap();
        check_packed(&conv, 12).unwrap();
    }
}

/// Enough channels for the gradient of the filter to be a product that packs.
#[test]
fn one_tap_of_many_channels_matches_f64() {
    let window = |size| Window::new(size, 1, 1, 1, Padding::Valid).unwrap();
    for (in_channels, out_channels) in [(63, 5), (64, 70), (65, 1), (300, 33)] {
        let conv = Conv {
            batch: 2,
            y: window(3),
            x: window(5),
            in_channels,
            out_channels,
            groups: 1,
        };
        check(&conv, 7).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn all_three_match_f64(conv in conv(), seed in 0..1000_u64) {
        check(&conv, seed)?;
    }
}

/// Groups of few channels, which share a vector, or of about as many as a vector has.
fn grouped() -> impl Strategy<Value = Conv> {
    let padding = || {
        prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..4_usize, 0..4_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ]
    };
    let window = |most: usize, padding| {
        let sizes = prop_oneof![1 => 1..3_usize, 3 => Just(3_usize), 1 => 4..6_usize];
        let strides = prop_oneof![3 => Just(1_usize), 1 => 2..4_usize];
        let dilations = prop_oneof![2 => Just(1_usize), 1 => 2..5_usize];
        (1..most, sizes, strides, dilations, padding).prop_filter_map(
            "fits",
            |(input, size, stride, dilation, padding)| {
                Window::new(input, size, stride, dilation, padding).ok()
            },
        )
    };
    let depths = || prop_oneof![3 => 1..9_usize, 1 => 9..20_usize];
    let depths = prop_oneof![3 => depths().prop_map(|x| (x, x)), 1 => (depths(), depths())];
    let (y, x) = (window(6, padding()), window(40, padding()));
    (1..3_usize, y, x, depths, 2..20_usize).prop_map(|(batch, y, x, (inputs, outputs), groups)| {
        Conv {
            batch,
            y,
            x,
            in_channels: inputs * groups,
            out_channels: outputs * groups,
            groups,
        }
    })
}

fn squares(values: &mut [f32]) {
    values.iter_mut().for_each(|x| *x *= *x);
}

/// Both directions with packed filters and with what may come after the sums.
fn check_packed(conv: &Conv, seed: u64) -> std::result::Result<(), TestCaseError> {
    let input = numbers(conv.input_len(), seed);
    let filter = numbers(conv.filter_len(), seed + 1);
    let output = numbers(conv.output_len(), seed + 2);
    let [bias_in, bias_out] = [conv.in_channels, conv.out_channels].map(|n| numbers(n, seed + 3));
    let mut forward = vec![0.0; output.len()];
    let mut backward = vec![0.0; input.len()];
    for (i, sum) in forward.iter_mut().enumerate() {
        *sum = f64::from(output[i]) + f64::from(bias_out[i % conv.out_channels]);
    }
    for (i, sum) in backward.iter_mut().enumerate() {
        *sum = f64::from(bias_in[i % conv.in_channels]);
    }
    each_product(conv, |i, f, o| {
        forward[o] += f64::from(input[i]) * f64::from(filter[f]);
        backward[i] += f64::from(output[o]) * f64::from(filter[f]);
    });
    let depth = conv.group_in().max(conv.group_out());
    let terms = (conv.y.size * conv.x.size * depth + 2) as f64;
    // Of a square, whose slope is twice its root.
    let bound = |exact: f64| 1e-6 * terms * (1.0 + 2.0 * exact.abs());
    for level in available() {
        let pack = |direction| {
            let len = PackedFilter::len_for(level, direction, conv).unwrap();
            let mut memory = vec![f32::NAN; len];
            let (filter, out) = (&filter[..], &mut memory[..]);
            PackedFilter::tiled(level, direction, conv, None, (filter, out), &Serial).unwrap();
            memory
        };
        for activation in [Activation::Clamp(-0.5, 0.75), Activation::Map(squares)] {
            let after = |x: f64| match activation {
                Activation::Map(_) => x * x,
                _ => x.clamp(-0.5, 0.75),
            };
            let memory = pack(Direction::Forward);
            let of = |direction, data| PackedFilter {
                level,
                direction,
                tiles: None,
                data,
            };
            let mut found = output.clone();
            let run = Forward {
                bias: Some(&bias_out),
                activation,
                accumulate: true,
                ..Forward::new(*conv, Filter::Packed(of(Direction::Forward, &memory)))
            };
            run.run(&input, &mut found, &mut [], &Interleaved).unwrap();
            for (found, exact) in found.iter().zip(&forward) {
                prop_assert!(
                    close(*found, after(*exact), bound(*exact)),
                    "{found} {exact}"
                );
            }
            let memory = pack(Direction::Backward);
            let mut found = vec![f32::NAN; input.len()];
            let run = BackwardInput {
                bias: Some(&bias_in),
                activation,
                ..BackwardInput::new(*conv, Filter::Packed(of(Direction::Backward, &memory)))
            };
            run.run(&output, &mut found, &mut [], &Interleaved).unwrap();
            for (found, exact) in found.iter().zip(&backward) {
                prop_assert!(
                    close(*found, after(*exact), bound(*exact)),
                    "{found} {exact}"
                );
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn groups_match_f64(conv in grouped(), seed in 0..1000_u64) {
        check(&conv, seed)?;
        check_packed(&conv, seed)?;
    }
}

/// Images of few channels, whose neighbours see almost the same elements: lines of several strips,
/// strips that end with a line, and paddings that are wider than a strip.
fn few_channels() -> impl Strategy<Value = Conv> {
    let padding = || {
        prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..40_usize, 0..40_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ]
    };
    let window = |sizes: core::ops::Range<usize>, padding| {
        (sizes, 1..8_usize, 1..3_usize, 1..3_usize, padding).prop_filter_map(
            "fits",
            |(input, size, stride, dilation, padding)| {
                Window::new(input, size, stride, dilation, padding).ok()
            },
        )
    };
    let channels = prop_oneof![1..4_usize, Just(6_usize)];
    let outputs = prop_oneof![1..20_usize, 30..70_usize];
    let (y, x) = (window(1..6, padding()), window(1..60, padding()));
    (1..3_usize, y, x, channels, outputs).prop_map(|(batch, y, x, in_channels, out_channels)| {
        Conv {
            batch,
            y,
            x,
            in_channels,
            out_channels,
            groups: 1,
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn few_channels_match_f64(conv in few_channels(), seed in 0..1000_u64) {
        check(&conv, seed)?;
    }
}

#[test]
fn few_channels_with_a_function() {
    let y = Window::new(7, 3, 2, 1, Padding::Same).unwrap();
    let x = Window::new(75, 3, 2, 1, Padding::Same).unwrap();
    for (in_channels, out_channels) in [(3, 16), (3, 40), (1, 33)] {
        let conv = Conv {
            batch: 2,
            y,
            x,
            in_channels,
            out_channels,
            groups: 1,
        };
        let input = numbers(conv.input_len(), 1);
        let filter = numbers(conv.filter_len(), 2);
        for level in available() {
            let [a, b] = [Activation::None, Activation::Map(hard_silu)].map(|activation| {
                let forward = Forward {
                    level,
                    activation,
                    ..Forward::new(conv, Filter::Plain(&filter))
                };
                let mut scratch = vec![0.0; forward.scratch_len().unwrap()];
                let mut output = vec![f32::NAN; conv.output_len()];
                let done = forward.run(&input, &mut output, &mut scratch, &Interleaved);
                done.unwrap();
                output
            });
            let mut mapped = a;
            hard_silu(&mut mapped);
            assert_eq!(mapped, b);
        }
    }
}

#[test]
fn large_enough_for_several_blocks() {
    let y = Window::new(20, 3, 1, 1, Padding::Same).unwrap();
    let x = Window::new(23, 3, 2, 1, Padding::Same).unwrap();
    let conv = Conv {
        batch: 2,
        y,
        x,
        in_channels: 40,
        out_channels: 72,
        groups: 1,
    };
    check(&conv, 5).unwrap();
    // Many channels: a tap is more than one run.
    let tall = Conv {
        batch: 1,
        y: Window::new(4, 2, 1, 1, Padding::Same).unwrap(),
        x: Window::UNIT,
        in_channels: 1500,
        out_channels: 3,
        groups: 1,
    };
    check(&tall, 6).unwrap();
    check(
        &Conv {
            in_channels: 3,
            out_channels: 1500,
            ..tall
        },
        7,
    )
    .unwrap();
}

#[test]
fn nothing_in_or_out_is_fine() {
    let y = Window::new(0, 3, 1, 1, Padding::Same).unwrap();
    for (batch, y, channels) in [(0, Window::UNIT, 2), (1, y, 2), (1, Window::UNIT, 0)] {
        let conv = Conv {
            batch,
            y,
            x: Window::UNIT,
            in_channels: channels,
            out_channels: 3,
            groups: 1,
        };
        check(&conv, 1).unwrap();
    }
}

#[test]
fn bias_activation_and_packing() {
    let w = Window::new(9, 3, 1, 1, Padding::Same).unwrap();
    let conv = Conv {
        batch: 1,
        y: w,
        x: w,
        in_channels: 6,
        out_channels: 10,
        groups: 2,
    };
    let input = numbers(conv.input_len(), 1);
    let filter = numbers(conv.filter_len(), 2);
    let bias = numbers(10, 3);
    let plain = Forward::new(conv, Filter::Plain(&filter));
    let mut scratch = vec![0.0; plain.scratch_len().unwrap()];
    let (mut a, mut b) = (vec![0.0; conv.output_len()], vec![0.0; conv.output_len()]);
    plain.run(&input, &mut a, &mut scratch, &Serial).unwrap();
    let mut memory = vec![0.0; PackedFilter::len(Direction::Forward, &conv).unwrap()];
    let packed = PackedFilter::pack(Direction::Forward, &conv, &filter, &mut memory, &Serial);
    let packed = Forward {
        bias: Some(&bias),
        activation: Activation::RELU,
        ..Forward::new(conv, Filter::Packed(packed.unwrap()))
    };
    packed.run(&input, &mut b, &mut [], &Serial).unwrap();
    for (i, (a, b)) in a.iter().zip(&b).enumerate() {
        assert_eq!((a + bias[i % 10]).max(0.0), *b);
    }
    // Packed for the other direction.
    let backward = BackwardInput::new(conv, packed.filter);
    let mut dx = vec![0.0; conv.input_len()];
    assert!(backward.run(&b, &mut dx, &mut [], &Serial).is_err());
}
