//! Every kernel against sums that are written out, with each body.

use super::conv::{Conv, OFFSET};
use super::depthwise::Depthwise;
use super::pair::{Factor, Numbers, Pair, look_up, pair};
use super::pool::{Kind, Pool, mean};
use super::{Range, Rescaling, Scaling, cast, scaled, scaled_once, scaled_real, softmax};
use crate::base::parallel::{Parallel, Serial};
use crate::conv::geometry::Conv as Sizes;
use crate::conv::{Padding, Window};
use crate::simd::body::forced::results;
use crate::simd::dots::tests::each;
use crate::testing::Interleaved;

fn numbers(values: &[i8], zero: i8) -> Numbers<'_> {
    Numbers { values, zero }
}

/// Integers that depend on the seed alone.
pub(super) struct Random(pub(super) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    pub(super) fn below(&mut self, end: i64) -> i64 {
        self.next().cast_signed() % end
    }

    pub(super) fn bytes(&mut self, len: usize) -> Vec<i8> {
        (0..len).map(|_| (self.below(256) - 128) as i8).collect()
    }

    fn numbers(&mut self, len: usize, from: i64, to: i64) -> Vec<i32> {
        (0..len)
            .map(|_| (from + self.below(to - from)) as i32)
            .collect()
    }

    fn range(&mut self) -> Range {
        Range {
            zero: self.below(256) as i32 - 128,
            low: (self.below(40) - 128) as i8,
            high: (127 - self.below(40)) as i8,
        }
    }
}

fn held(range: Range, x: i64) -> i8 {
    (x + i64::from(range.zero)).clamp(i64::from(range.low), i64::from(range.high)) as i8
}

/// Every rescaling, and factors for it: bits of `f32` are made of integers, some are powers of
/// two so that ties are met.
fn rescalings(multiplier: &[i32], shift: &[i32]) -> [(Rescaling, Vec<i32>); 3] {
    let real = multiplier.iter().zip(shift).enumerate();
    let real = real.map(|(i, (&multiplier, &shift))| {
        let part = if i % 3 == 0 {
            0.5
        } else {
            f64::from(multiplier) / 2_f64.powi(31)
        };
        ((part * 2_f64.powi(shift)) as f32).to_bits().cast_signed()
    });
    [
        (Rescaling::Once, multiplier.to_vec()),
        (Rescaling::Twice, multiplier.to_vec()),
        (Rescaling::Real, real.collect()),
    ]
}

/// What a sum becomes.
fn rescaled(of: &Scaling<'_>, sum: i32, channel: usize) -> i8 {
    let (multiplier, shift) = (of.multiplier[channel], of.shift[channel]);
    let number = match of.rescaling {
        Rescaling::Once => i64::from(scaled_once(sum, multiplier, shift)),
        Rescaling::Twice => i64::from(scaled(sum, multiplier, shift)),
        Rescaling::Real => {
            let factor = f32::from_bits(multiplier.cast_unsigned());
            f64::from(sum as f32 * factor).round_ties_even() as i64
        }
    };
    held(of.range, number)
}

/// Runs with every level and with all instructions that multiply, alone and with threads, and
/// returns what all of them give.
pub(super) fn same<T: PartialEq + core::fmt::Debug>(
    run: impl Fn(&dyn Parallel) -> Vec<T>,
) -> Vec<T> {
    let [first, others @ ..] = results(|| run(&Serial));
    for other in others.into_iter().chain([run(&Interleaved)]) {
        assert_eq!(other, first);
    }
    for (dots, other) in each(|| run(&Serial)) {
        assert_eq!(other, first, "{dots:?}");
    }
    first
}

#[test]
fn factors_round_once_or_after_each_step() {
    let mut random = Random(1);
    for _ in 0..20_000 {
        let x = random.numbers(1, -1 << 24, 1 << 24)[0];
        let multiplier = random.numbers(1, 1 << 30, (1 << 31) - 1)[0];
        let shift = random.numbers(1, -24, 6)[0];
        let product = i128::from(x) * i128::from(multiplier);
        let (left, right) = (shift.max(0), (-shift).max(0));
        let high = ((product << left) + (1 << 30)).div_euclid(1 << 31);
        let half = (1_i128 << right) / 2;
        let twice = if high < 0 {
            -((-high + half) >> right)
        } else {
            (high + half) >> right
        };
        assert_eq!(i128::from(scaled(x, multiplier, shift)), twice);
        let whole = 31 - shift;
        let once = (product + (1 << (whole - 1))).div_euclid(1 << whole);
        assert_eq!(i128::from(scaled_once(x, multiplier, shift)), once);
    }
    for (x, expected) in [
        (1, 0),
        (3, 2),
        (-1, 0),
        (-3, -2),
        (5, 2),
        (7, 4),
        (i32::MAX, 99),
    ] {
        assert_eq!(scaled_real(x, 0.5, (-99, 99)), expected);
    }
    // Both halves: up after a product, away from zero after a shift.
    assert_eq!([scaled(-1, 1 << 30, 0), scaled(-3, 1 << 30, 0)], [0, -1]);
    assert_eq!([scaled(-2, 1 << 30, -1), scaled(2, 1 << 30, -1)], [-1, 1]);
    assert_eq!(
        [scaled_once(-2, 1 << 30, -1), scaled_once(2, 1 << 30, -1)],
        [0, 1]
    );
}

pub(super) fn sizes(
    random: &mut Random,
    channels: (usize, usize),
    taps: usize,
    groups: usize,
) -> Sizes {
    let mut axis = || {
        let dilation = 1 + random.below(2) as usize;
        let input = 1 + random.below(9) as usize + (taps - 1) * dilation;
        let pads = (random.below(taps as i64), random.below(taps as i64));
        let padding = Padding::Explicit(pads.0 as usize, pads.1 as usize);
        Window::new(input, taps, 1 + random.below(2) as usize, dilation, padding).unwrap()
    };
    Sizes {
        y: axis(),
        x: axis(),
        batch: 2,
        in_channels: channels.0,
        out_channels: channels.1,
        groups,
    }
}

/// The sum of `f(place in the input, tap)` over the taps inside of an image.
pub(super) fn over(
    sizes: &Sizes,
    (image, line, column): (usize, usize, usize),
    mut f: impl FnMut(Option<usize>, usize),
) {
    let (y, x) = (&sizes.y, &sizes.x);
    for tap in 0..y.size * x.size {
        let at = |window: &Window, stop: usize, tap: usize| {
            (stop * window.stride + tap * window.dilation)
                .checked_sub(window.before)
                .filter(|&at| at < window.input)
        };
        let (row, place) = (at(y, line, tap / x.size), at(x, column, tap % x.size));
        let found = row.zip(place);
        f(
            found.map(|(r, p)| ((image * y.input + r) * x.input + p) * sizes.in_channels),
            tap,
        );
    }
}

/// A filter as products read it, and the sum of each channel's weights, for whole blocks.
pub(super) fn packed(kernel: &[i8], outputs: usize) -> (Vec<i8>, Vec<i32>) {
    let window = kernel.len() / outputs;
    let (groups, blocks) = (window.div_ceil(4), outputs.div_ceil(16));
    let mut filter = vec![0; blocks * groups * 64];
    let mut totals = vec![0; blocks * 16];
    for output in 0..outputs {
        for (k, &w) in kernel[output * window..][..window].iter().enumerate() {
            filter[((output / 16 * groups + k / 4) * 16 + output % 16) * 4 + k % 4] = w;
            totals[output] += i32::from(w);
        }
    }
    (filter, totals)
}

#[test]
fn convolutions_are_sums_of_products() {
    let mut random = Random(2);
    let cases = [
        (1, 1, 1),
        (3, 5, 3),
        (4, 16, 1),
        (7, 50, 1),
        (40, 33, 3),
        (130, 17, 3),
        (1030, 18, 1),
        (4700, 3, 1),
        (530, 2, 3),
    ];
    // With shifts to the right alone, and among others.
    let shifts = [(-12, -5), (-25, 3)];
    let cases = shifts.map(|shifts| cases.map(|case| (case, shifts)));
    for (i, ((inputs, outputs, taps), shifts)) in cases.into_iter().flatten().enumerate() {
        let filter_zero = [0, -128, 97][i % 3];
        let sizes = sizes(&mut random, (inputs, outputs), taps, 1);
        let window = taps * taps * inputs;
        let blocks = outputs.div_ceil(16);
        let x = random.bytes(sizes.input_len());
        let kernel = random.bytes(outputs * window);
        let own_bias = random.numbers(outputs, -5000, 5000);
        let zero = random.bytes(1)[0];
        let (filter, totals) = packed(&kernel, outputs);
        let mut bias = vec![0; totals.len()];
        for (output, own) in own_bias.iter().enumerate() {
            let total = totals[output] - i32::from(filter_zero) * window as i32;
            bias[output] = own - (i32::from(zero) + OFFSET) * total;
        }
        let multiplier = random.numbers(blocks * 16, 1 << 30, (1 << 31) - 1);
        let shift = random.numbers(blocks * 16, shifts.0, shifts.1);
        for (rescaling, multiplier) in rescalings(&multiplier, &shift) {
            let scaling = Scaling {
                multiplier: &multiplier,
                shift: &shift,
                range: random.range(),
                rescaling,
            };
            let conv = Conv {
                sizes,
                filter: &filter,
                bias: &bias,
                zero,
                filter_zero,
                scaling,
            };
            let found = same(|parallel| {
                let mut out = vec![0; sizes.output_len()];
                conv.run(&x, &mut out, parallel).unwrap();
                out
            });
            for (i, &found) in found.iter().enumerate() {
                let (pixel, output) = (i / outputs, i % outputs);
                let (line, column) = (pixel / sizes.x.output, pixel % sizes.x.output);
                let place = (line / sizes.y.output, line % sizes.y.output, column);
                let mut sum = own_bias[output];
                over(&sizes, place, |at, tap| {
                    for c in 0..at.map_or(0, |_| inputs) {
                        let w = kernel[output * window + tap * inputs + c];
                        let w = i32::from(w) - i32::from(filter_zero);
                        sum += w * (i32::from(x[at.unwrap() + c]) - i32::from(zero));
                    }
                });
                assert_eq!(
                    found,
                    rescaled(&scaling, sum, output),
                    "{rescaling:?} {sizes:?} {i}"
                );
            }
        }
    }
}

#[test]
fn depthwise_convolutions_are_sums_of_products() {
    let mut random = Random(3);
    let cases = [(1, 1), (3, 3), (32, 3), (75, 3), (40, 5), (64, 2), (5, 6)];
    let shifts = [(-10, -4), (-25, 3)];
    let cases = shifts.map(|shifts| cases.map(|case| (case, shifts)));
    for (i, ((channels, taps), shifts)) in cases.into_iter().flatten().enumerate() {
        let filter_zero = [0, 0, 0, -128, 97][i % 5];
        let sizes = sizes(&mut random, (channels, channels), taps, channels);
        let x = random.bytes(sizes.input_len());
        let filter = random.bytes(taps * taps * channels);
        let bias = random.numbers(channels, -5000, 5000);
        let zero = random.bytes(1)[0];
        let multiplier = random.numbers(channels, 1 << 30, (1 << 31) - 1);
        let shift = random.numbers(channels, shifts.0, shifts.1);
        for (rescaling, multiplier) in rescalings(&multiplier, &shift) {
            let scaling = Scaling {
                multiplier: &multiplier,
                shift: &shift,
                range: random.range(),
                rescaling,
            };
            let layer = Depthwise {
                sizes,
                filter: &filter,
                bias: &bias,
                zero,
                filter_zero,
                scaling,
            };
            let found = same(|parallel| {
                let mut out = vec![0; sizes.output_len()];
                layer.run(&x, &mut out, parallel).unwrap();
                out
            });
            for (i, &found) in found.iter().enumerate() {
                let (pixel, c) = (i / channels, i % channels);
                let (line, column) = (pixel / sizes.x.output, pixel % sizes.x.output);
                let place = (line / sizes.y.output, line % sizes.y.output, column);
                let mut sum = bias[c];
                over(&sizes, place, |at, tap| {
                    if let Some(at) = at {
                        let w = i32::from(filter[tap * channels + c]) - i32::from(filter_zero);
                        sum += w * (i32::from(x[at + c]) - i32::from(zero));
                    }
                });
                assert_eq!(
                    found,
                    rescaled(&scaling, sum, c),
                    "{rescaling:?} {sizes:?} {i}"
                );
            }
        }
    }
}

#[test]
fn products_of_the_least_numbers_do_not_overflow() {
    let axis = Window::new(4, 3, 1, 1, Padding::Same).unwrap();
    for channels in [16, 40] {
        let sizes = Sizes {
            batch: 1,
            y: axis,
            x: axis,
            in_channels: channels,
            out_channels: channels,
            groups: channels,
        };
        let layer = Depthwise {
            sizes,
            filter: &vec![-128; 9 * channels],
            bias: &vec![0; channels],
            zero: 0,
            filter_zero: 0,
            scaling: Scaling {
                multiplier: &vec![1 << 30; channels],
                shift: &vec![-11; channels],
                range: Range::all(0),
                rescaling: Rescaling::Twice,
            },
        };
        let found = same(|parallel| {
            let mut out = vec![0; sizes.output_len()];
            layer
                .run(&vec![-128; sizes.input_len()], &mut out, parallel)
                .unwrap();
            out
        });
        // 2^14 of each of nine taps, or of the six and four of edges and corners; a 2^12th of it.
        let expected: Vec<i8> = (0..16)
            .map(|pixel| {
                let taps = |at| if at == 0 || at == 3 { 2 } else { 3 };
                4 * taps(pixel / 4) * taps(pixel % 4)
            })
            .collect();
        for (pixel, found) in found.chunks(channels).enumerate() {
            assert_eq!(found, vec![expected[pixel]; channels]);
        }
    }
}

fn factor(random: &mut Random, from: i64, to: i64) -> Factor {
    Factor {
        multiplier: random.numbers(1, 1 << 30, (1 << 31) - 1)[0],
        shift: random.numbers(1, from, to)[0],
    }
}

#[test]
fn pairs_and_tables() {
    let mut random = Random(4);
    for len in [1, 5, 64, 1000, 40_000] {
        let (a, b, table) = (random.bytes(len), random.bytes(len), random.bytes(256));
        let (a_zero, b_zero, range) = (random.bytes(1)[0], random.bytes(1)[0], random.range());
        let terms = [factor(&mut random, -3, 1), factor(&mut random, -3, 1)];
        for (kind, last) in [
            (Pair::Sum(terms[0], terms[1]), factor(&mut random, -19, -17)),
            (Pair::Product, factor(&mut random, -8, -5)),
        ] {
            let found = same(|parallel| {
                let mut out = vec![0; len];
                let ends = (last, range);
                pair(
                    kind,
                    numbers(&a, a_zero),
                    numbers(&b, b_zero),
                    ends,
                    &mut out,
                    parallel,
                )
                .unwrap();
                out
            });
            for (i, found) in found.into_iter().enumerate() {
                let (a, b) = (
                    i32::from(a[i]) - i32::from(a_zero),
                    i32::from(b[i]) - i32::from(b_zero),
                );
                let sum = match kind {
                    Pair::Sum(first, second) => first.of(a << 20) + second.of(b << 20),
                    Pair::Product => a * b,
                };
                assert_eq!(found, held(range, i64::from(last.of(sum))));
            }
        }
        let found = same(|parallel| {
            let mut out = vec![0; len];
            look_up(&a, &table, &mut out, parallel).unwrap();
            out
        });
        let expected: Vec<i8> = a
            .iter()
            .map(|&x| table[(i32::from(x) + 128) as usize])
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn pools_see_what_is_inside() {
    let mut random = Random(5);
    for (channels, taps) in [(1, 1), (3, 2), (32, 3), (50, 3)] {
        let mut sizes = sizes(&mut random, (channels, channels), taps, channels);
        for axis in [&mut sizes.y, &mut sizes.x] {
            *axis = Window::new(axis.input, taps, axis.stride, 1, Padding::Same).unwrap();
        }
        let x = random.bytes(sizes.input_len());
        for kind in [Kind::Max, Kind::Average, Kind::AverageUp] {
            let range = random.range();
            let pool = Pool {
                kind,
                batch: sizes.batch,
                channels,
                y: sizes.y,
                x: sizes.x,
                low: range.low,
                high: range.high,
            };
            let found = same(|parallel| {
                let mut out = vec![0; sizes.output_len()];
                pool.run(&x, &mut out, parallel).unwrap();
                out
            });
            for (i, &found) in found.iter().enumerate() {
                let (pixel, c) = (i / channels, i % channels);
                let (line, column) = (pixel / sizes.x.output, pixel % sizes.x.output);
                let place = (line / sizes.y.output, line % sizes.y.output, column);
                let mut seen = vec![];
                over(&sizes, place, |at, _| seen.extend(at.map(|at| x[at + c])));
                let expected = match kind {
                    Kind::Max => i64::from(*seen.iter().max().unwrap()),
                    Kind::AverageUp => {
                        let sum: i64 = seen.iter().map(|&x| i64::from(x) + 128).sum();
                        let count = seen.len() as i64;
                        (sum + count / 2) / count - 128
                    }
                    Kind::Average => {
                        let sum: f64 = seen.iter().map(|&x| f64::from(x)).sum();
                        (sum / seen.len() as f64).round() as i64
                    }
                };
                assert_eq!(found, held(Range { zero: 0, ..range }, expected));
            }
        }
    }
}

#[test]
fn means_are_scaled_sums() {
    let mut random = Random(6);
    for (outer, count, inner) in [(1, 1, 1), (2, 49, 3), (3, 7, 64), (1, 100, 70)] {
        let (x, zero) = (random.bytes(outer * count * inner), random.bytes(1)[0]);
        let (factor, range) = (factor(&mut random, -8, -3), random.range());
        let found = same(|parallel| {
            let mut out = vec![0; outer * inner];
            let ends = (factor, range);
            mean(numbers(&x, zero), (count, inner), ends, &mut out, parallel).unwrap();
            out
        });
        for (i, found) in found.into_iter().enumerate() {
            let numbers = (0..count).map(|k| x[(i / inner * count + k) * inner + i % inner]);
            let sum = numbers.map(|x| i32::from(x) - i32::from(zero)).sum();
            assert_eq!(found, held(range, i64::from(factor.of(sum))));
        }
    }
}

#[test]
fn softmax_rows_are_parts_of_their_sum() {
    let mut random = Random(7);
    let table: Vec<f32> = (0..256)
        .map(|i| (-0.05 * f64::from(255 - i)).exp() as f32)
        .collect();
    for (rows, columns) in [(1, 1), (3, 10), (40, 1000)] {
        let x = random.bytes(rows * columns);
        let found = same(|parallel| {
            let mut out = vec![0; x.len()];
            let ends = (1.0 / 256.0, Range::all(-128));
            softmax::softmax((&x, columns), &table, ends, &mut out, parallel).unwrap();
            out
        });
        for (x, found) in x.chunks(columns).zip(found.chunks(columns)) {
            let total: f64 = x.iter().map(|&x| (0.05 * f64::from(x)).exp()).sum();
            for (&x, &found) in x.iter().zip(found) {
                let exact = (0.05 * f64::from(x)).exp() / total * 256.0 - 128.0;
                // Half a step, and what sums of f32 lose.
                assert!(
                    (f64::from(found) - exact.min(127.0)).abs() <= 0.501,
                    "{found} {exact}"
                );
            }
        }
    }
}

#[test]
fn numbers_stand_for_real_ones() {
    let all: Vec<i8> = (i8::MIN..=i8::MAX).collect();
    for (scale, zero) in [(0.5_f32, 3_i8), (0.013, -128), (1.0, 127)] {
        let mut real = vec![0.0; 256];
        cast::dequantize(&all, (scale, zero), &mut real, &Serial).unwrap();
        for (&x, &real) in all.iter().zip(&real) {
            let exact = (f64::from(x) - f64::from(zero)) * f64::from(scale);
            assert_eq!(real, exact as f32);
        }
        let found = same(|parallel| {
            let mut out = vec![0; 256];
            cast::quantize(&real, (scale, zero), &mut out, parallel).unwrap();
            out
        });
        assert_eq!(found, all);
    }
    let odd = [
        0.5,
        -0.5,
        0.499_999_97,
        1.5,
        -2.5,
        f32::NAN,
        f32::INFINITY,
        -1e30,
        127.49,
    ];
    let mut out = [0; 9];
    cast::quantize(&odd, (1.0, 0), &mut out, &Serial).unwrap();
    assert_eq!(out, [1, -1, 0, 2, -3, 0, 127, -128, 127]);
}

#[test]
fn lengths_and_shifts_are_checked() {
    let window = Window::new(2, 1, 1, 1, Padding::Valid).unwrap();
    let sizes = Sizes {
        batch: 1,
        y: window,
        x: window,
        in_channels: 1,
        out_channels: 1,
        groups: 1,
    };
    let run = |filter: usize, shift: i32, out: usize| {
        let scaling = Scaling {
            multiplier: &[0; 16],
            shift: &[shift; 16],
            range: Range::all(0),
            rescaling: Rescaling::Once,
        };
        let conv = Conv {
            sizes,
            filter: &vec![0; filter],
            bias: &[0; 16],
            zero: 0,
            filter_zero: 0,
            scaling,
        };
        conv.run(&[0; 4], &mut vec![0; out], &Serial)
    };
    assert!(run(64, 30, 4).is_ok());
    assert!(
        run(60, 30, 4)
            .unwrap_err()
            .to_string()
            .contains("expected 64")
    );
    assert!(run(64, 31, 4).unwrap_err().to_string().contains("shift"));
    assert!(run(64, 0, 5).unwrap_err().to_string().contains("output"));
    let none = Factor {
        multiplier: 0,
        shift: -32,
    };
    let ends = (none, Range::all(0));
    let found = pair(
        Pair::Product,
        numbers(&[], 0),
        numbers(&[], 0),
        ends,
        &mut [],
        &Serial,
    );
    assert!(found.unwrap_err().to_string().contains("shift"));
}
