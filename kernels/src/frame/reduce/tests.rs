use super::*;
use crate::ops::reduction::reductions::{Max, Mean, Min, Prod, Sum};
use crate::simd::body::forced::same_bits;
use crate::testing::{Interleaved, numbers};
use crate::trial::{cases, indices, shapes};
use proptest::prelude::*;

/// The reduction, element by element in double precision.
fn naive(x: &[f32], shape: &Shape, axes: &Axes, start: f64, step: fn(f64, f64) -> f64) -> Vec<f64> {
    let kept = axes.output(shape, true).unwrap();
    let mut out = vec![start; kept.elements()];
    for (i, &x) in x.iter().enumerate() {
        let at = indices(shape, i);
        let slot = &mut out[crate::trial::number(&kept, &at)];
        *slot = step(*slot, f64::from(x));
    }
    out
}

fn check<R: Reduce<f32>>(
    op: R,
    x: &[f32],
    shape: &Shape,
    axes: &Axes,
    expected: &[f64],
    slack: f64,
) {
    let out = same_bits(|| {
        let mut out = vec![f32::NAN; expected.len()];
        reduce(op, (x, shape), axes, &mut out, &Interleaved).unwrap();
        out
    });
    for (&found, &expected) in out.iter().zip(expected) {
        let close = (f64::from(found) - expected).abs() <= slack + 4e-6 * expected.abs().max(1.0);
        let same = f64::from(found) == expected || (found.is_nan() && expected.is_nan());
        assert!(close || same, "{found} {expected} {shape} {axes:?}");
    }
}

fn check_all(shape: &Shape, flags: &[bool]) {
    let axes: Vec<i64> = (0..shape.rank())
        .filter(|&i| flags[i])
        .map(|i| i as i64)
        .collect();
    let axes = Axes::new(shape, &axes).unwrap();
    let x = numbers(shape.elements(), 11);
    let sum = naive(&x, shape, &axes, 0.0, |a, b| a + b);
    let count = shape.elements() as f64 / sum.len() as f64;
    // Terms that cancel leave the roundings of the larger partial sums.
    check(Sum, &x, shape, &axes, &sum, 2e-9 * count);
    let mean: Vec<f64> = sum.iter().map(|sum| sum / count).collect();
    check(Mean, &x, shape, &axes, &mean, 0.0);
    check(
        Max,
        &x,
        shape,
        &axes,
        &naive(&x, shape, &axes, f64::NEG_INFINITY, f64::max),
        0.0,
    );
    check(
        Min,
        &x,
        shape,
        &axes,
        &naive(&x, shape, &axes, f64::INFINITY, f64::min),
        0.0,
    );
    check(
        Prod,
        &x,
        shape,
        &axes,
        &naive(&x, shape, &axes, 1.0, |a, b| a * b),
        0.0,
    );
}

proptest! {
    #![proptest_config(cases())]

    #[test]
    fn any_axes_of_any_shape(shape in shapes(), flags: [bool; 8]) {
        check_all(&shape, &flags);
    }
}

#[test]
fn large_tensors() {
    for (dims, flags) in [
        (&[200_000][..], &[true][..]),
        (&[3, 50_000], &[false, true]),
        (&[50_000, 3], &[true, false]),
        (&[70, 1000], &[true, false]),
        (&[5, 300, 40], &[true, false, true]),
        (&[5, 300, 40], &[false, true, false]),
    ] {
        check_all(&Shape::new(dims).unwrap(), flags);
    }
}

/// A naive single-precision sum would stop at 2^24.
#[test]
fn long_sums_are_exact() {
    let x = vec![1.0_f32; (1 << 24) + 64];
    let shape = Shape::new(&[x.len()]).unwrap();
    let axes = Axes::new(&shape, &[0]).unwrap();
    let mut out = [0.0];
    reduce(Sum, (&x, &shape), &axes, &mut out, &Interleaved).unwrap();
    assert_eq!(out[0], x.len() as f32);
}

#[test]
fn nan_reaches_the_extremes() {
    let mut x = vec![1.0_f32; 300];
    for place in [0, 63, 64, 150, 299] {
        x[place] = f32::NAN;
        let shape = Shape::new(&[300]).unwrap();
        let axes = Axes::new(&shape, &[0]).unwrap();
        let mut out = [0.0];
        reduce(Max, (&x, &shape), &axes, &mut out, &Interleaved).unwrap();
        assert!(out[0].is_nan());
        reduce(Min, (&x, &shape), &axes, &mut out, &Interleaved).unwrap();
        assert!(out[0].is_nan());
        x[place] = 1.0;
    }
}

#[test]
fn bad_axes_are_refused() {
    let shape = Shape::new(&[2, 3]).unwrap();
    assert!(matches!(Axes::new(&shape, &[2]), Err(Error::Axis { .. })));
    assert!(matches!(
        Axes::new(&shape, &[0, -2]),
        Err(Error::Value { .. })
    ));
    let axes = Axes::new(&shape, &[0]).unwrap();
    let result = reduce(Sum, (&[0.0; 6], &shape), &axes, &mut [0.0; 2], &Interleaved);
    assert!(matches!(
        result,
        Err(Error::Length {
            argument: "output",
            ..
        })
    ));
}
