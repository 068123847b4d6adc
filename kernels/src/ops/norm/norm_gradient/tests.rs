use proptest::prelude::*;

use super::*;
use crate::testing::{Interleaved, numbers};

/// The sum of the results times `slope`, in double precision.
fn loss(of: &NormGradient<'_>, x: &[f64], scale: &[f64], shift: &[f64], slope: &[f32]) -> f64 {
    let (positions, channels) = (of.positions, of.channels);
    let (width, sample) = (channels / of.groups, positions * channels);
    let mut total = 0.0;
    for (x, slope) in x.chunks(sample).zip(slope.chunks(sample)) {
        for group in 0..of.groups {
            let inside = |i: &usize| i % channels / width == group;
            let count = (positions * width) as f64;
            let values = || (0..sample).filter(inside).map(|i| x[i]);
            let mean = match of.kind {
                Kind::Layer => values().sum::<f64>() / count,
                Kind::Rms => 0.0,
            };
            let square = values().map(|x| (x - mean) * (x - mean)).sum::<f64>() / count;
            let factor = 1.0 / (square + f64::from(of.epsilon)).sqrt();
            for i in (0..sample).filter(inside) {
                let c = i % channels;
                let y = (x[i] - mean) * factor * scale[c] + shift[c];
                total += y * f64::from(slope[i]);
            }
        }
    }
    total
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    #[test]
    fn gradients_are_slopes(
        samples in 1..4_usize,
        positions in 1..4_usize,
        groups in 1..4_usize,
        width in 1..20_usize,
        layer in any::<bool>(),
        scaled in any::<bool>(),
    ) {
        let channels = groups * width;
        let scale = numbers(channels, 3);
        let of = NormGradient {
            kind: if layer { Kind::Layer } else { Kind::Rms },
            positions,
            channels,
            groups,
            scale: scaled.then_some(&scale[..]),
            epsilon: 0.1,
        };
        let x = numbers(samples * positions * channels, 1);
        let slope = numbers(x.len(), 2);
        let mut out = vec![f32::NAN; x.len()];
        let (mut by_scale, mut by_shift) = (vec![f32::NAN; channels], vec![f32::NAN; channels]);
        let mut scratch = vec![f32::NAN; of.scratch_len(x.len()).unwrap()];
        let parameters = (Some(&mut by_scale[..]), Some(&mut by_shift[..]));
        of.run((&x, &slope), &mut out, parameters, &mut scratch, &Interleaved).unwrap();
        let wide = |x: &[f32]| x.iter().map(|&x| f64::from(x)).collect::<Vec<_>>();
        let factors = if scaled { wide(&scale) } else { vec![1.0; channels] };
        let all = [wide(&x), factors, vec![0.25; channels]];
        let found = [out, by_scale, by_shift];
        let step = 1e-5;
        for (part, found) in found.iter().enumerate() {
            for (i, &found) in found.iter().enumerate() {
                let value = |step: f64| {
                    let mut all = all.clone();
                    all[part][i] += step;
                    loss(&of, &all[0], &all[1], &all[2], &slope)
                };
                let expected = (value(step) - value(-step)) / (2.0 * step);
                let error = (f64::from(found) - expected).abs();
                prop_assert!(error < 1e-5 * expected.abs().max(1.0), "{} {}", found, expected);
            }
        }
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let of = NormGradient::rows(Kind::Layer, 4, None, 1e-3);
    let (x, mut out) = ([0.0; 8], [0.0; 8]);
    let mut run = |of: &NormGradient<'_>, scale: Option<&mut [f32]>, scratch: &mut [f32]| {
        of.run((&x, &x), &mut out, (scale, None), scratch, &Interleaved)
    };
    assert!(run(&of, None, &mut [0.0; 4]).is_ok());
    assert!(run(&of, None, &mut [0.0; 3]).is_err());
    assert!(run(&of, Some(&mut [0.0; 3]), &mut [0.0; 4]).is_err());
    assert!(run(&NormGradient { channels: 3, ..of }, None, &mut [0.0; 9]).is_err());
    assert!(run(&NormGradient { groups: 3, ..of }, None, &mut [0.0; 9]).is_err());
}
