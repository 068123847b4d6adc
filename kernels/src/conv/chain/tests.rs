//! Chains against their convolutions one after the other, at every level.

use proptest::prelude::*;

use super::*;
use crate::base::level::Level;
use crate::conv::{Direction, PackedFilter, Padding};
use crate::gemm::Activation;
use crate::simd::available;
use crate::testing::{Interleaved, Threads, numbers};

fn shifted(values: &mut [f32]) {
    values.iter_mut().for_each(|x| *x = *x * 0.5 - 0.25);
}

/// The sizes of a convolution and what comes after it.
type Part = (Conv, Activation);

/// A convolution's filter, packed unless it is depthwise, and its bias.
struct Weights {
    filter: Vec<f32>,
    bias: Vec<f32>,
}

fn is_depthwise(conv: &Conv) -> bool {
    conv.groups > 1
}

fn weights(level: Level, conv: &Conv, seed: u64) -> Weights {
    let mut filter = numbers(conv.filter_len(), seed);
    if !is_depthwise(conv) {
        let len = PackedFilter::len_for(level, Direction::Forward, conv).unwrap();
        let mut packed = vec![0.0; len];
        let memory = (&filter[..], &mut packed[..]);
        PackedFilter::tiled(level, Direction::Forward, conv, None, memory, &Serial).unwrap();
        filter = packed;
    }
    Weights {
        filter,
        bias: numbers(conv.out_channels, seed + 1),
    }
}

fn link<'a>(level: Level, &(conv, activation): &Part, weights: &'a Weights) -> Link<'a> {
    let bias = Some(&weights.bias[..]);
    if is_depthwise(&conv) {
        let depthwise = Depthwise {
            bias,
            activation,
            level,
            ..Depthwise::new(conv)
        };
        return Link::Depthwise(depthwise, &weights.filter);
    }
    let filter = Filter::Packed(PackedFilter {
        level,
        direction: Direction::Forward,
        tiles: None,
        data: &weights.filter,
    });
    Link::Forward(Forward {
        bias,
        activation,
        ..Forward::new(conv, filter)
    })
}

/// The results of the convolutions one after the other.
fn one_by_one(links: &[Link<'_>], input: &[f32]) -> Vec<f32> {
    let mut x = input.to_vec();
    for link in links {
        let mut y = vec![f32::NAN; link.conv().output_len()];
        match *link {
            Link::Forward(forward) => forward.run(&x, &mut y, &mut [], &Serial).unwrap(),
            Link::Depthwise(depthwise, filter) => {
                depthwise.run(&x, filter, &mut y, &Serial).unwrap();
            }
        }
        x = y;
    }
    x
}

fn same(found: &[f32], expected: &[f32], bits: bool) -> std::result::Result<(), TestCaseError> {
    prop_assert_eq!(found.len(), expected.len());
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        let near = (a - b).abs() <= 1e-4 * (1.0 + b.abs());
        prop_assert!(
            a.to_bits() == b.to_bits() || (!bits && near),
            "{i}: {a} {b}"
        );
    }
    Ok(())
}

fn check(parts: &[Part], seed: u64) -> std::result::Result<(), TestCaseError> {
    let input = numbers(parts[0].0.input_len(), seed);
    // A single pixel is multiplied in an order of its own.
    let bits = parts.iter().all(|(conv, _)| conv.x.output > 1);
    for level in available() {
        let weights: Vec<_> = parts
            .iter()
            .map(|(c, _)| weights(level, c, seed + 2))
            .collect();
        let links: Vec<_> = parts
            .iter()
            .zip(&weights)
            .map(|(p, w)| link(level, p, w))
            .collect();
        let expected = one_by_one(&links, &input);
        let chain = Chain { links: &links };
        let mut scratch = vec![f32::NAN; chain.scratch_len().unwrap()];
        let parallels: [&dyn Parallel; 4] = [&Serial, &Threads(2), &Interleaved, &Threads(9)];
        for parallel in parallels {
            scratch.fill(f32::NAN);
            let mut found = vec![f32::NAN; expected.len()];
            chain
                .run(&input, &mut found, &mut scratch, parallel)
                .unwrap();
            same(&found, &expected, bits)?;
        }
        // Bands of any height, and parts that begin inside an image.
        let last = &links[links.len() - 1];
        let (lines, line) = (last.conv().batch * last.conv().y.output, last.line());
        for height in 1..=last.conv().y.output.min(5) {
            let bands = Bands {
                links: &links,
                input: &input,
                lines: height,
            };
            let mut scratch = vec![f32::NAN; chain.band_len(height).unwrap()];
            let mut found = vec![f32::NAN; expected.len()];
            let (front, back) = found.split_at_mut(lines / 2 * line);
            bands.part(lines / 2, back, &mut scratch, &Serial);
            bands.part(0, front, &mut scratch, &Serial);
            same(&found, &expected, bits)?;
        }
    }
    Ok(())
}

/// Taps, stride, dilation and padding of an axis, with lines that see nothing but padding left out.
fn window(input: usize) -> impl Strategy<Value = Window> {
    let padding = prop_oneof![
        1 => Just(Padding::Valid),
        2 => Just(Padding::Same),
        1 => (0..4_usize, 0..4_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
    ];
    let size = prop_oneof![1 => Just(2_usize), 3 => Just(3_usize), 2 => Just(5_usize)];
    (size, 1..4_usize, 1..3_usize, padding).prop_map(move |(size, stride, dilation, padding)| {
        let last = |w: &Window| w.output.saturating_sub(1) * w.stride;
        Window::new(input, size, stride, dilation, padding)
            .ok()
            .filter(|w| w.output > 0 && w.before < reach(w) && last(w) < w.before + w.input)
            .unwrap_or(pixel(input))
    })
}

fn pixel(input: usize) -> Window {
    Window {
        input,
        output: input,
        ..Window::UNIT
    }
}

fn activation() -> impl Strategy<Value = Activation> {
    prop_oneof![
        Just(Activation::None),
        Just(Activation::RELU6),
        Just(Activation::Map(shifted)),
    ]
}

/// A convolution of another's output: of each channel, of pixels, or of all that the window sees.
fn next(before: Conv) -> impl Strategy<Value = Part> {
    let (y, x) = (before.y.output, before.x.output);
    let windows = (window(y), window(x));
    (0..4_usize, windows, 1..40_usize, activation()).prop_map(move |(kind, windows, out, after)| {
        let channels = before.out_channels;
        let depthwise = kind < 2 && channels > 1;
        let (y, x) = if kind == 2 {
            (pixel(y), pixel(x))
        } else {
            windows
        };
        let conv = Conv {
            batch: before.batch,
            y,
            x,
            in_channels: channels,
            out_channels: if depthwise { channels } else { out },
            groups: if depthwise { channels } else { 1 },
        };
        (conv, after)
    })
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    let image = (1..3_usize, 1..16_usize, 1..16_usize, 1..40_usize);
    let image = image.prop_map(|(batch, y, x, channels)| Conv {
        batch,
        y: pixel(y),
        x: pixel(x),
        in_channels: channels,
        out_channels: channels,
        groups: 1,
    });
    let two = image
        .prop_flat_map(next)
        .prop_flat_map(|first| (Just(first), next(first.0)));
    let more = two.prop_flat_map(|(a, b)| (Just(a), Just(b), next(b.0), 2..4_usize));
    more.prop_map(|(a, b, c, count)| [a, b, c][..count].to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]
    #[test]
    fn chains_are_their_convolutions(parts in parts(), seed in 0..1_u64 << 32) {
        check(&parts, seed)?;
    }
}

/// A block as in MobileNetV2: so large that threads have bands of their own, several each.
fn block(batch: usize, size: usize, stride: usize) -> [Part; 3] {
    let conv = |(y, x), in_channels, out_channels, groups| Conv {
        batch,
        y,
        x,
        in_channels,
        out_channels,
        groups,
    };
    let both = |w| (w, w);
    let window = Window::new(size, 3, stride, 1, Padding::Same).unwrap();
    let (whole, small) = (both(pixel(size)), both(pixel(window.output)));
    [
        (conv(whole, 8, 96, 1), Activation::RELU6),
        (conv(both(window), 96, 96, 96), Activation::RELU6),
        (conv(small, 96, 16, 1), Activation::None),
    ]
}

#[test]
fn large_blocks_are_their_convolutions() {
    for (batch, size, stride) in [(1, 57, 2), (2, 40, 1)] {
        let parts = block(batch, size, stride);
        check(&parts, 1).unwrap();
        check(&parts[..2], 2).unwrap();
        check(&parts[1..], 3).unwrap();
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let parts = block(1, 9, 2);
    let level = available().last().unwrap();
    let weights: Vec<_> = parts.iter().map(|(c, _)| weights(level, c, 1)).collect();
    let links: Vec<_> = parts
        .iter()
        .zip(&weights)
        .map(|(p, w)| link(level, p, w))
        .collect();
    let input = numbers(parts[0].0.input_len(), 1);
    let run = |links: &[Link<'_>], input: &[f32], output: usize, less: usize| {
        let chain = Chain { links };
        let mut scratch = vec![0.0; chain.scratch_len()? - less];
        chain.run(input, &mut vec![0.0; output], &mut scratch, &Serial)
    };
    let output = parts[2].0.output_len();
    let length = |result: Result<()>| match result {
        Err(Error::Length { argument, .. }) => argument,
        other => panic!("{other:?}"),
    };
    let value = |result: Result<()>| match result {
        Err(Error::Value { argument, .. }) => argument,
        other => panic!("{other:?}"),
    };
    assert!(run(&links, &input, output, 0).is_ok());
    assert_eq!(length(run(&links, &input[1..], output, 0)), "input");
    assert_eq!(length(run(&links, &input, output - 1, 0)), "output");
    assert_eq!(length(run(&links, &input, output, 1)), "scratch");
    assert_eq!(value(run(&links[..1], &input, output, 0)), "links");
    let five = [links[0], links[1], links[2], links[1], links[2]];
    assert_eq!(value(run(&five, &input, output, 0)), "links");
    assert_eq!(
        value(run(&[links[1], links[0]], &input, output, 0)),
        "links"
    );
    let Link::Forward(forward) = links[0] else {
        panic!("no product");
    };
    let with = |first: Forward<'_>| {
        run(
            &[Link::Forward(first), links[1], links[2]],
            &input,
            output,
            0,
        )
    };
    let filter = numbers(parts[0].0.filter_len(), 1);
    assert_eq!(
        value(with(Forward {
            filter: Filter::Plain(&filter),
            ..forward
        })),
        "filter"
    );
    assert_eq!(
        value(with(Forward {
            accumulate: true,
            ..forward
        })),
        "filter"
    );
    assert_eq!(
        length(with(Forward {
            bias: Some(&[1.0]),
            ..forward
        })),
        "bias"
    );
    let Link::Depthwise(depthwise, filter) = links[1] else {
        panic!("no depthwise convolution");
    };
    let with = |conv, filter| {
        let second = Link::Depthwise(Depthwise { conv, ..depthwise }, filter);
        run(&[links[0], second, links[2]], &input, output, 0)
    };
    assert_eq!(length(with(depthwise.conv, &filter[1..])), "filter");
    for y in [
        Window {
            before: 3,
            ..depthwise.conv.y
        },
        Window {
            before: 0,
            output: 6,
            ..depthwise.conv.y
        },
    ] {
        assert_eq!(
            value(with(
                Conv {
                    y,
                    ..depthwise.conv
                },
                filter
            )),
            "padding"
        );
    }
}

#[test]
fn no_examples_are_no_work() {
    let parts = block(0, 9, 1);
    let level = available().last().unwrap();
    let weights: Vec<_> = parts.iter().map(|(c, _)| weights(level, c, 1)).collect();
    let links: Vec<_> = parts
        .iter()
        .zip(&weights)
        .map(|(p, w)| link(level, p, w))
        .collect();
    assert!(
        Chain { links: &links }
            .run(&[], &mut [], &mut [], &Threads(2))
            .is_ok()
    );
}
