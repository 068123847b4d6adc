//! Minimal filtering against the definition in f64, at every level and with all kinds of tiles.

use proptest::prelude::*;

use super::tiles::CHANNELS;
use super::*;
use crate::base::error::Error;
use crate::base::parallel::Serial;
use crate::conv::geometry::{Padding, Window};
use crate::conv::tests::each_product;
use crate::conv::{Direction, Filter, Forward, PackedFilter};
use crate::gemm::Activation;
use crate::simd::available;
use crate::testing::{Interleaved, Threads, numbers};

/// The kinds of tiles that can compute a convolution, each at every level.
pub fn ways(conv: &Conv) -> impl Iterator<Item = (Tiles, Level)> + use<> {
    let tiles: &'static [Tiles] = match (conv.y.size, conv.x.size) {
        (3, 3) => &[Tiles::Two, Tiles::Four],
        (1, 3) => &[Tiles::LineOfThree, Tiles::LineOfFive],
        (1, 4 | 5) => &[Tiles::LineOfFive],
        taps => panic!("no tiles for {taps:?}"),
    };
    tiles
        .iter()
        .flat_map(|&tiles| available().map(move |level| (tiles, level)))
}

/// A convolution along lines, of so many taps so far apart.
pub fn along(
    batch: usize,
    sides: (usize, usize),
    channels: (usize, usize),
    (size, dilation): (usize, usize),
    padding: Padding,
) -> Conv {
    Conv {
        y: Window::new(sides.0, 1, 1, 1, Padding::Valid).unwrap(),
        x: Window::new(sides.1, size, 1, dilation, padding).unwrap(),
        ..conv(batch, (3, 3), channels, Padding::Same)
    }
}

pub fn conv(
    batch: usize,
    sides: (usize, usize),
    channels: (usize, usize),
    padding: Padding,
) -> Conv {
    let axis = |side| Window::new(side, 3, 1, 1, padding).unwrap();
    Conv {
        batch,
        y: axis(sides.0),
        x: axis(sides.1),
        in_channels: channels.0,
        out_channels: channels.1,
        groups: 1,
    }
}

/// Runs a convolution with a filter that is packed for some tiles.
pub fn run(
    (tiles, level): (Tiles, Level),
    change: impl Fn(&mut Forward<'_>),
    conv: &Conv,
    (input, filter): (&[f32], &[f32]),
    parallel: &dyn Parallel,
) -> Vec<f32> {
    let mut memory = vec![f32::NAN; tiles.packed_len(level, conv).unwrap()];
    let memory = (filter, &mut memory[..]);
    let direction = Direction::Forward;
    let packed = PackedFilter::tiled(level, direction, conv, Some(tiles), memory, &Serial);
    let mut forward = Forward::new(*conv, Filter::Packed(packed.unwrap()));
    change(&mut forward);
    let mut scratch = vec![f32::NAN; forward.scratch_len().unwrap()];
    let mut output = vec![0.25; conv.output_len()];
    forward
        .run(input, &mut output, &mut scratch, parallel)
        .unwrap();
    output
}

/// The exact output, and the largest sum of the magnitudes of its products. Tiles transform whole
/// windows: if the image has fewer places than one, the sum is taken for all of them.
pub fn exact(conv: &Conv, input: &[f32], filter: &[f32]) -> (Vec<f64>, f64) {
    let mut sums = vec![(0.0, 0.0); conv.output_len()];
    each_product(conv, |i, f, o| {
        let product = f64::from(input[i]) * f64::from(filter[f]);
        sums[o].0 += product;
        sums[o].1 += product.abs();
    });
    let most = sums.iter().fold(0.0, |most, sum| sum.1.max(most));
    let (y, x) = (&conv.y, &conv.x);
    let inside = |w: &Window| w.input.div_ceil(w.dilation).min(w.size);
    let taps = (y.size * x.size) as f64;
    let most = most * taps / (inside(y) * inside(x)).max(1) as f64;
    (sums.iter().map(|sum| sum.0).collect(), most)
}

/// The error that a sum may have, as a part of the magnitudes of its products. Over channels
/// roundings cancel out; with one the worst that was seen is 1.05e-6.
fn allowed(conv: &Conv) -> f64 {
    if conv.in_channels == 1 { 1.25e-6 } else { 1e-6 }
}

fn check(conv: &Conv, seed: u64) -> std::result::Result<(), TestCaseError> {
    let input = numbers(conv.input_len(), seed);
    let filter = numbers(conv.filter_len(), seed + 1);
    let bias = numbers(conv.out_channels, seed + 2);
    let (expected, most) = exact(conv, &input, &filter);
    for (tiles, level) in ways(conv) {
        let finish = |forward: &mut Forward<'_>| {
            forward.activation = Activation::RELU;
            forward.accumulate = true;
        };
        let with_bias = |plain: f64, i: usize| plain + f64::from(bias[i % bias.len()]) + 0.25;
        let plain = run(
            (tiles, level),
            |_| {},
            conv,
            (&input, &filter),
            &Interleaved,
        );
        let mut memory = vec![f32::NAN; tiles.packed_len(level, conv).unwrap()];
        let memory = (&filter[..], &mut memory[..]);
        let direction = Direction::Forward;
        let packed = PackedFilter::tiled(level, direction, conv, Some(tiles), memory, &Serial);
        let mut forward = Forward {
            bias: Some(&bias),
            ..Forward::new(*conv, Filter::Packed(packed.unwrap()))
        };
        finish(&mut forward);
        let mut scratch = vec![f32::NAN; forward.scratch_len().unwrap()];
        let mut finished = vec![0.25; conv.output_len()];
        forward
            .run(&input, &mut finished, &mut scratch, &Serial)
            .unwrap();
        for (i, &expected) in expected.iter().enumerate() {
            let error = (f64::from(plain[i]) - expected).abs();
            prop_assert!(
                error <= allowed(conv) * most,
                "{tiles:?} {level:?} {i}: {} {expected}",
                plain[i]
            );
            let whole = with_bias(expected, i).max(0.0);
            let error = (f64::from(finished[i]) - whole).abs();
            prop_assert!(
                error <= allowed(conv) * (most + 2.0),
                "{tiles:?} {level:?} {i}: {error}"
            );
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn outputs_match_f64(
        batch in 0..4_usize,
        sides in (1..22_usize, 1..22_usize),
        channels in (CHANNELS..70, 1..70_usize),
        padding in prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..4_usize, 0..4_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ],
        seed in 0..1000_u64,
    ) {
        let fits = |side| Window::new(side, 3, 1, 1, padding).is_ok();
        prop_assume!(fits(sides.0) && fits(sides.1));
        check(&conv(batch, sides, channels, padding), seed)?;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn outputs_of_lines_match_f64(
        batch in 0..4_usize,
        sides in prop_oneof![(Just(1_usize), 1..90_usize), (1..5_usize, 1..30_usize)],
        channels in (1..70_usize, 1..70_usize),
        taps in (3..6_usize, prop_oneof![Just(1_usize), 1..7_usize]),
        padding in prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..6_usize, 0..6_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ],
        seed in 0..1000_u64,
    ) {
        prop_assume!(Window::new(sides.1, taps.0, 1, taps.1, padding).is_ok());
        check(&along(batch, sides, channels, taps, padding), seed)?;
    }
}

#[test]
fn an_image_of_one_pixel_matches_f64() {
    check(&conv(2, (1, 1), (31, 10), Padding::Explicit(3, 2)), 341).unwrap();
    for size in [3, 4, 5] {
        let padding = Padding::Explicit(size, 2);
        check(&along(2, (1, 1), (31, 10), (size, 1), padding), 341).unwrap();
    }
}

#[test]
fn several_pieces_and_runs_of_channels() {
    // More points than are kept at a time, more channels than a run, panels of three vectors.
    check(&conv(1, (40, 150), (65, 5), Padding::Same), 1).unwrap();
    check(&conv(2, (6, 7), (530, 48), Padding::Same), 2).unwrap();
    check(&conv(3, (7, 7), (40, 80), Padding::Same), 3).unwrap();
    check(&along(2, (1, 3001), (33, 5), (5, 1), Padding::Same), 4).unwrap();
    check(
        &along(1, (1, 2000), (70, 9), (3, 8), Padding::causal(3, 8)),
        5,
    )
    .unwrap();
}

#[test]
fn the_error_of_a_layer_is_small() {
    // As large as they come, of inputs of quite different size, the largest error over the largest
    // element: the layers of models are held to 1e-5.
    for (scale, channels) in [(0.0, 512), (2.0, 512), (2.0, 64)] {
        for conv in [
            conv(1, (9, 9), (channels, 32), Padding::Same),
            along(1, (1, 81), (channels, 32), (3, 1), Padding::Same),
            along(1, (1, 81), (channels, 32), (5, 1), Padding::Same),
        ] {
            let mut input = numbers(conv.input_len(), 7);
            for (x, y) in input.iter_mut().zip(numbers(conv.input_len(), 8)) {
                *x = (*x * (scale * y).exp()).max(-0.1);
            }
            let filter = numbers(conv.filter_len(), 9);
            let (expected, _) = exact(&conv, &input, &filter);
            let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            for (tiles, level) in ways(&conv) {
                let found = run((tiles, level), |_| {}, &conv, (&input, &filter), &Serial);
                for (found, expected) in found.iter().zip(&expected) {
                    let error = (f64::from(*found) - expected).abs() / largest;
                    assert!(error < 6e-6, "{tiles:?} {level:?}: {error}");
                }
            }
        }
    }
}

#[test]
fn threads_change_no_bit() {
    for conv in [
        conv(1, (30, 13), (33, 100), Padding::Same),
        conv(3, (14, 14), (20, 40), Padding::Same),
        conv(2, (60, 60), (40, 40), Padding::Valid),
        along(1, (1, 98), (64, 64), (5, 1), Padding::Valid),
        along(3, (1, 101), (33, 100), (3, 1), Padding::Same),
        along(3, (1, 101), (33, 70), (3, 4), Padding::Same),
        along(2, (17, 30), (33, 40), (4, 1), Padding::Same),
    ] {
        let input = numbers(conv.input_len(), 1);
        let filter = numbers(conv.filter_len(), 2);
        for (tiles, level) in ways(&conv) {
            let with = |parallel: &dyn Parallel| {
                run((tiles, level), |_| {}, &conv, (&input, &filter), parallel)
            };
            let one = with(&Serial);
            for threads in [2, 3, 8, 100] {
                assert_eq!(
                    with(&Threads(threads)),
                    one,
                    "{tiles:?} {level:?} {threads}"
                );
            }
            assert_eq!(with(&Interleaved), one);
        }
    }
}

#[test]
fn what_is_not_finite_reaches_only_who_sees_it() {
    for conv in [
        conv(2, (11, 13), (35, 37), Padding::Same),
        along(2, (1, 143), (35, 37), (3, 1), Padding::Same),
        along(2, (11, 13), (35, 37), (4, 2), Padding::Same),
        along(2, (1, 143), (35, 37), (5, 1), Padding::Same),
    ] {
        check_not_finite(&conv);
    }
}

fn check_not_finite(conv: &Conv) {
    let filter = numbers(conv.filter_len(), 2);
    // The largest number overflows in the transforms of images, but not where it meets small
    // weights; along a line it does not, and who does not see it has an error of its size.
    let small: Vec<f32> = filter.iter().map(|x| x * 1e-3).collect();
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX] {
        let mut input = numbers(conv.input_len(), 1);
        for pixel in [0, 5 * 13 + 6, 143 + 10 * 13 + 12] {
            input[pixel * 35 + pixel % 35] = bad;
        }
        let mut expected = vec![0.0; conv.output_len()];
        let plain = Forward::new(*conv, Filter::Plain(&small));
        let mut scratch = vec![0.0; plain.scratch_len().unwrap()];
        plain
            .run(&input, &mut expected, &mut scratch, &Serial)
            .unwrap();
        let seen = |x: f32| !x.is_finite() || x.abs() > 1e6;
        assert!(expected.iter().any(|&x| seen(x)) && expected.iter().any(|&x| !seen(x)));
        for (tiles, level) in ways(conv) {
            let found = run((tiles, level), |_| {}, conv, (&input, &small), &Serial);
            for (i, (&found, &expected)) in found.iter().zip(&expected).enumerate() {
                let what = format!("{bad} {tiles:?} {level:?} {i}: {found} instead of {expected}");
                assert_eq!(found.is_finite(), expected.is_finite(), "{what}");
                if seen(expected) {
                    assert!(
                        found.is_nan() || found.signum() == expected.signum(),
                        "{what}"
                    );
                } else {
                    let most = if bad.is_finite() && conv.y.size == 1 {
                        1e-9 * bad
                    } else {
                        1e-6
                    };
                    assert!((found - expected).abs() < most, "{what}");
                }
            }
        }
    }
}

#[test]
fn short_memory_is_an_error() {
    let conv = conv(1, (20, 20), (32, 32), Padding::Same);
    let filter = numbers(conv.filter_len(), 1);
    let (level, direction) = (crate::base::level::level(), Direction::Forward);
    for tiles in [Tiles::Two, Tiles::Four] {
        let pack = |memory: &mut [f32]| {
            let memory = (&filter[..], memory);
            PackedFilter::tiled(level, direction, &conv, Some(tiles), memory, &Serial).map(|_| ())
        };
        let length = tiles.packed_len(level, &conv).unwrap();
        let short = |argument, expected| Error::Length {
            argument,
            found: expected - 1,
            expected,
        };
        assert_eq!(
            pack(&mut vec![0.0; length - 1]),
            Err(short("packed", length))
        );
        let mut memory = vec![0.0; length];
        let memory = (&filter[..], &mut memory[..]);
        let packed = PackedFilter::tiled(level, direction, &conv, Some(tiles), memory, &Serial);
        let forward = Forward::new(conv, Filter::Packed(packed.unwrap()));
        let needed = forward.scratch_len().unwrap();
        assert!(needed > 0);
        let input = vec![0.0; conv.input_len()];
        let mut output = vec![0.0; conv.output_len()];
        let found = forward.run(&input, &mut output, &mut vec![0.0; needed - 1], &Serial);
        assert_eq!(found, Err(short("scratch", needed)));
    }
}

#[test]
fn a_function_is_applied_once() {
    let conv = conv(1, (9, 9), (20, 50), Padding::Same);
    let (input, filter) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
    let level = crate::base::level::level();
    for tiles in [Tiles::Two, Tiles::Four] {
        let with = |activation| {
            let change = |forward: &mut Forward<'_>| forward.activation = activation;
            run(
                (tiles, level),
                change,
                &conv,
                (&input, &filter),
                &Interleaved,
            )
        };
        let plain = with(Activation::None);
        let mapped = with(Activation::Map(|x| x.iter_mut().for_each(|x| *x += 1.0)));
        assert!(
            plain
                .iter()
                .zip(&mapped)
                .all(|(plain, mapped)| plain + 1.0 == *mapped)
        );
    }
}

#[test]
fn tiles_of_lines_are_chosen_for_many_channels() {
    for (sides, channels, taps, chosen) in [
        ((1, 100), (64, 64), (3, 1), Some(Tiles::LineOfThree)),
        ((1, 100), (64, 64), (4, 1), Some(Tiles::LineOfFive)),
        ((1, 100), (64, 64), (5, 1), Some(Tiles::LineOfFive)),
        ((9, 30), (32, 40), (3, 2), Some(Tiles::LineOfThree)),
        ((1, 100), (64, 64), (2, 1), None),
        ((1, 100), (64, 64), (7, 1), None),
        ((1, 100), (31, 64), (3, 1), None),
        ((1, 11), (64, 64), (3, 1), None),
        ((1, 20), (1024, 1024), (3, 1), None),
        ((1, 100), (1024, 1024), (3, 1), Some(Tiles::LineOfThree)),
    ] {
        let conv = along(1, sides, channels, taps, Padding::Same);
        let expected = chosen.filter(|_| cfg!(feature = "std"));
        assert_eq!(
            Tiles::of(&conv),
            expected,
            "{sides:?} {channels:?} {taps:?}"
        );
    }
    let strided = Window::new(100, 3, 2, 1, Padding::Same).unwrap();
    let conv = along(1, (1, 100), (64, 64), (3, 1), Padding::Same);
    assert_eq!(Tiles::of(&Conv { x: strided, ..conv }), None);
    for (size, dilation) in [(3, 0), (3, 101), (3, usize::MAX), (0, 1)] {
        let x = Window {
            size,
            dilation,
            ..conv.x
        };
        let odd = Conv { x, ..conv };
        assert_eq!(Tiles::of(&odd), None, "{size} {dilation}");
        let once = Once::of(crate::base::level::level(), Direction::Backward, &odd);
        assert!(once.is_none(), "{size} {dilation}");
    }
}
