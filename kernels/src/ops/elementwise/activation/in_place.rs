//! Activations that end a layer, over the values that it has just written.
//!
//! The formulas are those of [`super`], and so are the bounds of errors.

use super::{Gelu, HardSigmoid, HardSilu, Silu};
use crate::frame::map::Function;
use crate::simd::body::dispatch_simd;
use crate::simd::{Body, Simd};

/// [`super::Silu`] of every element. What lies below -87 counts as -87, whose result is -1e-36.
pub fn silu(values: &mut [f32]) {
    dispatch_simd(Each {
        op: NotFarBelow,
        values,
    });
}

/// [`super::Gelu`] of every element, which is NaN for minus infinity, as that of Keras.
pub fn gelu(values: &mut [f32]) {
    let op = Gelu {};
    dispatch_simd(Each { op, values });
}

/// [`super::HardSigmoid`] of every element.
pub fn hard_sigmoid(values: &mut [f32]) {
    let op = HardSigmoid {};
    dispatch_simd(Each { op, values });
}

/// [`super::HardSilu`] of every element, which is NaN for minus infinity, as that of Keras.
pub fn hard_silu(values: &mut [f32]) {
    let op = HardSilu {};
    dispatch_simd(Each { op, values });
}

struct Each<'a, F> {
    op: F,
    values: &'a mut [f32],
}

impl<F: Function> Body for Each<'_, F> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let mut parts = self.values.chunks_exact_mut(S::LANES);
        for part in &mut parts {
            let x = s.load(part);
            s.store(part, self.op.of(s, x));
        }
        let rest = parts.into_remainder();
        let x = s.load_partial(rest);
        s.store_partial(rest, self.op.of(s, x));
    }
}

/// [`Silu`], finite also for minus infinity.
#[derive(Clone, Copy)]
struct NotFarBelow;

impl Function for NotFarBelow {
    #[inline(always)]
    fn of<S: Simd>(self, s: S, x: S::F) -> S::F {
        // A NaN stays.
        Silu {}.of(s, s.max(s.splat(-87.0), x))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::body::forced::results;

    /// `lowest` says whether a value is right for minus infinity.
    fn check(function: fn(&mut [f32]), exact: fn(f64) -> f64, lowest: fn(f32) -> bool) {
        let x: Vec<f32> = (-8000..=8003).map(|i| i as f32 / 256.0).collect();
        for found in results(|| {
            let mut values = x.clone();
            function(&mut values);
            values
        }) {
            for (&x, &found) in x.iter().zip(&found) {
                let expected = exact(f64::from(x));
                let error = (f64::from(found) - expected).abs();
                let limit = 5.0 * f64::from(f32::EPSILON) * expected.abs();
                assert!(error <= limit.max(1e-37), "{x}: {found:e} {expected:e}");
            }
        }
        for len in 0..40 {
            for values in results(|| {
                let mut values = vec![1.5; len + 1];
                function(&mut values[..len]);
                values
            }) {
                assert!(values[..len].iter().all(|&x| x == values[0]));
                assert_eq!(values[len], 1.5);
            }
        }
        for values in results(|| {
            let mut values = [f32::NAN, f32::INFINITY, 0.0, -1e38, f32::NEG_INFINITY, 1e38];
            function(&mut values);
            values
        }) {
            assert!(values[0].is_nan());
            for (i, x) in [(1, f64::INFINITY), (2, 0.0), (5, 1e38_f32.into())] {
                assert_eq!(values[i], exact(x) as f32);
            }
            assert!(values[3].abs() < 2e-36);
            assert!(lowest(values[4]));
        }
    }

    #[test]
    fn silu_in_double_precision() {
        check(silu, |x| x / (1.0 + (-x).exp()), |x| x.abs() < 2e-36);
    }

    #[test]
    fn hard_sigmoid_in_double_precision() {
        let exact = |x: f64| (x / 6.0 + 0.5).clamp(0.0, 1.0);
        check(hard_sigmoid, exact, |x| x == 0.0);
    }

    #[test]
    fn hard_silu_in_double_precision() {
        let exact = |x: f64| x * (x / 6.0 + 0.5).clamp(0.0, 1.0);
        check(hard_silu, exact, f32::is_nan);
    }

    #[test]
    fn gelu_in_double_precision() {
        let exact = |x| x * crate::math::tests::normal_cdf(x);
        check(gelu, exact, f32::is_nan);
    }
}
