use proptest::prelude::*;

use super::*;
use crate::base::parallel::Serial;
use crate::conv::Padding;
use crate::simd::available;
use crate::simd::stream::forced;
use crate::testing::{Interleaved, numbers};

fn pooling() -> impl Strategy<Value = Pooling> {
    let padding = prop_oneof![
        Just(Padding::Valid),
        Just(Padding::Same),
        (0..3_usize, 0..3_usize).prop_map(|(a, b)| Padding::Explicit(a, b)),
    ];
    let axis = (1..12_usize, 1..5_usize, 1..4_usize, padding)
        .prop_filter_map("fits", |(input, size, stride, padding)| {
            Window::new(input, size, stride, 1, padding).ok()
        });
    let kind = prop_oneof![Just(Kind::Max), Just(Kind::Average)];
    let channels = prop_oneof![1..40_usize, 60..150_usize];
    (kind, 0..3_usize, channels, axis.clone(), axis).prop_map(|(kind, batch, channels, y, x)| {
        Pooling::new(kind, batch, channels, y, x).unwrap()
    })
}

proptest! {
    #[test]
    fn both_directions_match_their_definition(pooling in pooling(), seed in any::<u64>()) {
        let Pooling { kind, batch, channels, y, x, .. } = pooling;
        // Few distinct values, so that maxima repeat.
        let input: Vec<f32> =
            numbers(pooling.input_len(), seed).iter().map(|x| (x * 3.0).round()).collect();
        let slope = numbers(pooling.output_len(), seed + 1);
        let mut output = vec![0.0; pooling.output_len()];
        let mut gradient = vec![0.0_f64; input.len()];
        for (index, output) in output.iter_mut().enumerate() {
            let (pixel, channel) = (index / channels, index % channels);
            let (line, out_x) = (pixel / x.output, pixel % x.output);
            let (image, out_y) = (line / y.output, line % y.output);
            let mut seen = Vec::new();
            each_tap(&y, &x, (out_y, out_x), |_, in_y, in_x| {
                seen.push(((image * y.input + in_y) * x.input + in_x) * channels + channel);
            });
            let values = seen.iter().map(|&i| input[i]);
            if kind == Kind::Max {
                *output = values.fold(f32::MIN, f32::max);
                if let Some(&i) = seen.iter().find(|&&i| input[i] == *output) {
                    gradient[i] += f64::from(slope[index]);
                }
            } else {
                let count = seen.len().max(1) as f32;
                *output = values.sum::<f32>() / count;
                for &i in &seen {
                    gradient[i] += f64::from(slope[index]) / f64::from(count);
                }
            }
        }
        for level in available() {
            let pooling = Pooling { level, ..pooling };
            let mut found = vec![f32::NAN; output.len()];
            pooling.run(&input, &mut found, &Interleaved).unwrap();
            let mut far = vec![f32::NAN; output.len()];
            forced::far(|| pooling.run(&input, &mut far, &Interleaved)).unwrap();
            prop_assert_eq!(&found, &far);
            for (found, expected) in found.iter().zip(&output) {
                let same = found == expected || (found - expected).abs() < 1e-6;
                prop_assert!(same, "{} {}", found, expected);
            }
            let mut found = vec![f32::NAN; input.len()];
            pooling.backward(&input, &slope, &mut found, &Interleaved).unwrap();
            for (found, expected) in found.iter().zip(&gradient) {
                prop_assert!((f64::from(*found) - expected).abs() < 1e-5);
            }
        }
        prop_assert!(batch > 0 || output.is_empty());
    }
}

/// What TensorFlow 2.21 gives for windows of three.
#[test]
fn nan_counts_for_nothing() {
    let (nan, low, inf) = (f32::NAN, f32::MIN, f32::INFINITY);
    let y = Window::new(3, 3, 1, 1, Padding::Valid).unwrap();
    for level in available() {
        for (window, largest, taker) in [
            ([nan, 1.0, 2.0], 2.0, 0),
            ([1.0, nan, 2.0], 2.0, 2),
            ([1.0, 2.0, nan], 2.0, 1),
            ([nan, nan, nan], low, 0),
            ([-inf, -inf, nan], low, 0),
            ([-inf, -inf, -inf], low, 0),
            ([1.0, nan, inf], inf, 2),
        ] {
            for channels in [1, 17] {
                let pooling = Pooling {
                    level,
                    ..Pooling::new(Kind::Max, 1, channels, y, Window::UNIT).unwrap()
                };
                let input = window.map(|x| vec![x; channels]).concat();
                let mut output = vec![0.0; channels];
                pooling.run(&input, &mut output, &Serial).unwrap();
                assert_eq!(output, vec![largest; channels]);
                let (slope, mut gradient) = (vec![2.0; channels], vec![7.0; input.len()]);
                pooling
                    .backward(&input, &slope, &mut gradient, &Serial)
                    .unwrap();
                for (i, &found) in gradient.iter().enumerate() {
                    assert_eq!(found, if i / channels == taker { 2.0 } else { 0.0 });
                }
            }
        }
    }
}
