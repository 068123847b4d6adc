//! Filters that are transformed for one call, against the definition in f64 and other ways.

use proptest::prelude::*;

use crate::base::error::Error;
use crate::base::parallel::Serial;
use crate::conv::geometry::{Padding, Window};
use crate::conv::tests::each_product;
use crate::conv::winograd::tests::{along, conv, exact, ways};
use crate::conv::winograd::*;
use crate::conv::winograd::{filter, tests};
use crate::conv::{BackwardFilter, BackwardInput, Direction, Filter, Forward};
use crate::simd::available;
use crate::testing::{Interleaved, Threads, numbers};

const DIRECTIONS: [Direction; 2] = [Direction::Forward, Direction::Backward];
const PLAIN: Store<'_> = Store {
    accumulate: false,
    bias: None,
    clamp: None,
    map: None,
};

fn all(conv: &Conv) -> impl Iterator<Item = (Direction, Tiles, Level)> + use<> {
    let conv = *conv;
    DIRECTIONS
        .into_iter()
        .flat_map(move |direction| ways(&conv).map(move |(tiles, level)| (direction, tiles, level)))
}

/// Elements of the argument and of the result.
fn lengths(direction: Direction, conv: &Conv) -> (usize, usize) {
    match direction {
        Direction::Forward => (conv.input_len(), conv.output_len()),
        Direction::Backward => (conv.output_len(), conv.input_len()),
    }
}

/// Computes one direction of a convolution by tiles; `None` where its filter is not finite.
fn run(
    (direction, tiles, level): (Direction, Tiles, Level),
    conv: &Conv,
    (input, filter): (&[f32], &[f32]),
    parallel: &dyn Parallel,
) -> Option<Vec<f32>> {
    let once = Once::with_tiles(level, direction, conv, tiles).unwrap();
    let mut scratch = vec![f32::NAN; once.scratch_len()];
    let mut output = vec![f32::NAN; lengths(direction, conv).1];
    let images = (input, &mut output[..]);
    once.run(filter, images, PLAIN, &mut scratch, parallel)
        .then_some(output)
}

/// The exact result of one direction and the largest sum of the magnitudes of its products.
fn expected(direction: Direction, conv: &Conv, x: &[f32], filter: &[f32]) -> (Vec<f64>, f64) {
    let Direction::Backward = direction else {
        return exact(conv, x, filter);
    };
    let mirrored = filter::mirrored(conv).unwrap();
    let (depth, columns) = (conv.in_channels, conv.out_channels);
    let turned: Vec<f32> = (0..filter.len())
        .map(|i| {
            let (tap, o, c) = (i / (depth * columns), i / depth % columns, i % depth);
            let last = conv.y.size * conv.x.size - 1;
            filter[((last - tap) * depth + c) * columns + o]
        })
        .collect();
    exact(&mirrored, x, &turned)
}

fn check(conv: &Conv, seed: u64) -> std::result::Result<(), TestCaseError> {
    let filter = numbers(conv.filter_len(), seed);
    for direction in DIRECTIONS {
        let x = numbers(lengths(direction, conv).0, seed + 1);
        let (exact, most) = expected(direction, conv, &x, &filter);
        for how in all(conv).filter(|how| how.0 == direction) {
            let found = run(how, conv, (&x, &filter), &Interleaved).unwrap();
            for (i, (&found, &exact)) in found.iter().zip(&exact).enumerate() {
                let error = (f64::from(found) - exact).abs();
                prop_assert!(error <= 1e-6 * most, "{how:?} {i}: {found} {exact}");
            }
        }
    }
    Ok(())
}

/// The gradient of a filter by tiles; `None` where it is not finite or there are many threads.
fn gradient(
    level: Level,
    conv: &Conv,
    images: (&[f32], &[f32]),
    parallel: &dyn Parallel,
) -> Option<Vec<f32>> {
    let gradient = FilterGradient::new(level, conv).unwrap();
    let mut scratch = vec![f32::NAN; gradient.scratch_len()];
    let mut filter = vec![f32::NAN; conv.filter_len()];
    gradient
        .run(images, &mut filter, &mut scratch, parallel)
        .then_some(filter)
}

fn check_gradient(conv: &Conv, seed: u64) -> std::result::Result<(), TestCaseError> {
    let (x, y) = (
        numbers(conv.input_len(), seed),
        numbers(conv.output_len(), seed + 1),
    );
    let mut sums = vec![(0.0, 0.0); conv.filter_len()];
    each_product(conv, |i, f, o| {
        let product = f64::from(x[i]) * f64::from(y[o]);
        sums[f].0 += product;
        sums[f].1 += product.abs();
    });
    // Tiles transform whole windows: the middle tap sees most, but perhaps not all of one.
    let most = sums.iter().fold(0.0, |most, sum| sum.1.max(most));
    let inside = conv.y.input.min(3) * conv.x.input.min(3);
    let most = most * 9.0 / inside.max(1) as f64;
    for how in available() {
        let found = gradient(how, conv, (&x, &y), &Interleaved).unwrap();
        for (i, (&found, exact)) in found.iter().zip(&sums).enumerate() {
            let error = (f64::from(found) - exact.0).abs();
            prop_assert!(error <= 1e-6 * most, "{how:?} {i}: {found} {}", exact.0);
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn results_match_f64(
        batch in 0..4_usize,
        sides in (1..16_usize, 1..16_usize),
        channels in (1..70_usize, 1..70_usize),
        padding in prop_oneof![
            Just(Padding::Valid),
            Just(Padding::Same),
            (0..3_usize, 0..3_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
        ],
        seed in 0..1000_u64,
    ) {
        let fits = |side| Window::new(side, 3, 1, 1, padding).is_ok();
        prop_assume!(fits(sides.0) && fits(sides.1));
        let conv = conv(batch, sides, channels, padding);
        check(&conv, seed)?;
        check_gradient(&conv, seed)?;
    }

    #[test]
    fn results_of_lines_match_f64(
        batch in 0..4_usize,
        sides in prop_oneof![(Just(1_usize), 1..70_usize), (1..5_usize, 1..30_usize)],
        channels in (1..50_usize, 1..50_usize),
        taps in (3..6_usize, prop_oneof![Just(1_usize), 1..4_usize]),
        same in any::<bool>(),
        seed in 0..1000_u64,
    ) {
        let padding = if same { Padding::Same } else { Padding::Valid };
        prop_assume!(Window::new(sides.1, taps.0, 1, taps.1, padding).is_ok());
        check(&along(batch, sides, channels, taps, padding), seed)?;
    }
}

#[test]
fn a_gradient_of_many_tiles_and_threads() {
    let conv = conv(4, (40, 41), (33, 50), Padding::Same);
    check_gradient(&conv, 5).unwrap();
    let (x, y) = (numbers(conv.input_len(), 1), numbers(conv.output_len(), 2));
    for how in available() {
        let one = gradient(how, &conv, (&x, &y), &Serial);
        assert!(one.is_some());
        for threads in [2, 3, 4, 5, 8] {
            assert_eq!(gradient(how, &conv, (&x, &y), &Threads(threads)), one);
        }
        assert_eq!(gradient(how, &conv, (&x, &y), &Threads(13)), None);
    }
    let run = BackwardFilter::new(conv);
    let data = conv.input_len() + conv.filter_len() + conv.output_len();
    let needed = run.scratch_len().unwrap();
    assert!(needed > 0 && needed <= data + data / 2);
    let mut found = vec![f32::NAN; conv.filter_len()];
    for parallel in [&Serial as &dyn Parallel, &Threads(100)] {
        let mut scratch = vec![f32::NAN; needed];
        run.run(&x, &y, &mut found, &mut scratch, parallel).unwrap();
        assert!(found.iter().all(|x| x.is_finite()));
    }
    let short = run.run(&x, &y, &mut found, &mut vec![0.0; needed - 1], &Serial);
    assert!(matches!(
        short,
        Err(Error::Length {
            argument: "scratch",
            ..
        })
    ));
    // Only the taps of one channel see what is not finite.
    let mut x = x;
    x[((10 * 41) + 11) * 33 + 7] = f32::INFINITY;
    let mut scratch = vec![f32::NAN; needed];
    run.run(&x, &y, &mut found, &mut scratch, &Serial).unwrap();
    for (i, found) in found.iter().enumerate() {
        assert_eq!(found.is_infinite(), i / 50 % 33 == 7, "{i}: {found}");
    }
}

#[test]
fn the_filter_is_that_of_a_packed_one() {
    let conv = conv(2, (21, 22), (40, 70), Padding::Same);
    let (x, filter) = (numbers(conv.input_len(), 1), numbers(conv.filter_len(), 2));
    for (tiles, level) in ways(&conv) {
        let how = (Direction::Forward, tiles, level);
        let found = run(how, &conv, (&x, &filter), &Serial).unwrap();
        assert_eq!(
            found,
            tests::run((tiles, level), |_| {}, &conv, (&x, &filter), &Serial)
        );
        for threads in [2, 3, 100] {
            assert_eq!(
                run(how, &conv, (&x, &filter), &Threads(threads)).as_ref(),
                Some(&found)
            );
        }
    }
}

#[test]
fn a_filter_that_is_not_finite_is_left_to_others() {
    let conv = conv(1, (9, 9), (20, 40), Padding::Same);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        for at in [0, 20 * 40 + 7, conv.filter_len() - 1] {
            let mut filter = numbers(conv.filter_len(), 2);
            filter[at] = bad;
            for how in all(&conv) {
                let x = numbers(lengths(how.0, &conv).0, 1);
                assert_eq!(run(how, &conv, (&x, &filter), &Serial), None, "{how:?}");
            }
        }
    }
}

/// Calls the public functions, which choose tiles themselves.
fn plain(direction: Direction, conv: &Conv, x: &[f32], filter: &[f32]) -> (Vec<f32>, usize) {
    let mut out = vec![f32::NAN; lengths(direction, conv).1];
    let filter = Filter::Plain(filter);
    let scratch = match direction {
        Direction::Forward => {
            let forward = Forward::new(*conv, filter);
            let mut scratch = vec![f32::NAN; forward.scratch_len().unwrap()];
            forward.run(x, &mut out, &mut scratch, &Serial).unwrap();
            scratch.len()
        }
        Direction::Backward => {
            let backward = BackwardInput::new(*conv, filter);
            let mut scratch = vec![f32::NAN; backward.scratch_len().unwrap()];
            backward.run(x, &mut out, &mut scratch, &Serial).unwrap();
            scratch.len()
        }
    };
    (out, scratch)
}

#[test]
fn tiles_are_chosen_for_many_pixels_and_within_memory() {
    let level = crate::base::level::level();
    for (batch, side, channels, chosen) in [
        (2, 40, (32, 32), true),
        (8, 14, (64, 48), true),
        (1, 12, (64, 64), false),
        (8, 24, (8, 32), false),
        (8, 7, (64, 64), false),
    ] {
        let conv = conv(batch, (side, side), channels, Padding::Same);
        let filter = numbers(conv.filter_len(), 3);
        let data = conv.input_len() + conv.filter_len() + conv.output_len();
        for direction in DIRECTIONS {
            let once = Once::of(level, direction, &conv);
            assert_eq!(once.is_some(), chosen, "{batch} {side} {channels:?}");
            let x = numbers(lengths(direction, &conv).0, 4);
            let (found, scratch) = plain(direction, &conv, &x, &filter);
            assert!(scratch <= data + data / 2);
            let (exact, most) = expected(direction, &conv, &x, &filter);
            for (found, exact) in found.iter().zip(&exact) {
                assert!((f64::from(*found) - exact).abs() <= 1e-6 * most);
            }
        }
    }
}

#[test]
fn an_infinity_in_a_filter_reaches_only_who_meets_it() {
    let conv = conv(2, (40, 40), (32, 32), Padding::Same);
    let mut filter = numbers(conv.filter_len(), 3);
    // The first tap, of channel 5 for channel 7.
    filter[5 * 32 + 7] = f32::INFINITY;
    let x = vec![1.0; conv.input_len()];
    for direction in DIRECTIONS {
        let (found, _) = plain(direction, &conv, &x, &filter);
        for (i, found) in found.into_iter().enumerate() {
            let (row, column, channel) = (i / 32 / 40 % 40, i / 32 % 40, i % 32);
            let (meets, inside) = match direction {
                Direction::Forward => (channel == 7, row > 0 && column > 0),
                Direction::Backward => (channel == 5, row < 39 && column < 39),
            };
            assert_eq!(found == f32::INFINITY, meets && inside, "{direction:?} {i}");
            // Padding is zeros, which an infinity makes NaN.
            assert!(meets || found.is_finite(), "{direction:?} {i}");
        }
    }
}
