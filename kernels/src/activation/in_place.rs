//! Activations that end a layer, over the values that it has just written.
//!
//! The formulas are those of [`super`], with fused operations where the level has them, so that the
//! last bits depend on the level; errors are bounded as there.

use crate::body::dispatch_simd;
use crate::math::single::{ERFC, EXP, LN_2_HIGH, LN_2_LOW, ROUNDER};
use crate::simd::{Body, Simd};

/// [`super::Silu`] of every element. What lies below -87 counts as -87, whose result is -1e-36.
pub fn silu(values: &mut [f32]) {
    dispatch_simd(Each { op: Silu, values });
}

/// [`super::Gelu`] of every element. What lies below -13 counts as -13, whose result is -8e-38.
pub fn gelu(values: &mut [f32]) {
    dispatch_simd(Each { op: Gelu, values });
}

/// A function of a vector.
trait Function: Copy {
    /// Its values. Must be `#[inline(always)]`.
    fn of<S: Simd>(self, s: S, x: S::F) -> S::F;
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

/// A polynomial, the coefficient of the highest power last.
#[inline(always)]
fn polynomial<S: Simd, const N: usize>(s: S, coefficients: &[f32; N], x: S::F) -> S::F {
    let mut value = s.splat(coefficients[N - 1]);
    for &coefficient in coefficients.iter().rev().skip(1) {
        value = s.mul_add(value, x, s.splat(coefficient));
    }
    value
}

/// `exp(high + low)` for a sum in -87 to 88, where `low` is small.
#[inline(always)]
fn exp<S: Simd>(s: S, high: S::F, low: S::F) -> S::F {
    let shifted = s.mul_add(high, s.splat(core::f32::consts::LOG2_E), s.splat(ROUNDER));
    let whole = s.sub(shifted, s.splat(ROUNDER));
    let r = s.mul_add(whole, s.splat(-LN_2_HIGH), high);
    let r = s.add(s.mul_add(whole, s.splat(-LN_2_LOW), r), low);
    let rest = s.mul_add(polynomial(s, &EXP, r), s.mul(r, r), r);
    let fraction = s.add(rest, s.splat(1.0));
    // The bits of the rounder end in zeros, which leaves the integer in the exponent.
    let power = s.shl_i::<23>(s.to_bits(shifted));
    s.from_bits(s.add_i(s.to_bits(fraction), power))
}

#[derive(Clone, Copy)]
struct Silu;

impl Function for Silu {
    #[inline(always)]
    fn of<S: Simd>(self, s: S, x: S::F) -> S::F {
        // A NaN stays.
        let x = s.max(s.splat(-87.0), x);
        let away = s.max(s.splat(-87.0), s.neg(x));
        let e = exp(s, away, s.zero());
        s.mul(x, s.reciprocal(s.add(s.splat(1.0), e)))
    }
}

#[derive(Clone, Copy)]
struct Gelu;

impl Function for Gelu {
    #[inline(always)]
    fn of<S: Simd>(self, s: S, x: S::F) -> S::F {
        let x = s.max(s.splat(-13.0), x);
        let far = s.min(s.splat(13.0), s.abs(x));
        // `-far * far / 2` in two parts: the first has twelve bits squared, which is exact.
        let high = s.from_bits(s.and_i(s.to_bits(far), s.splat_i(!0xFFF)));
        let low = s.mul(s.sub(far, high), s.add(far, high));
        let half = s.splat(-0.5);
        let e = exp(s, s.mul(half, s.mul(high, high)), s.mul(half, low));
        // `erfc(y) = polynomial((y - 2) / (y + 2)) / (1 + 2 y) * exp(-y * y)`, with one division.
        let y = s.mul(far, s.splat(core::f32::consts::FRAC_1_SQRT_2));
        let (two, up) = (s.splat(2.0), s.mul_add(s.splat(2.0), y, s.splat(1.0)));
        let plus = s.add(y, two);
        let inverse = s.reciprocal(s.mul(plus, up));
        let q = s.mul(s.mul(s.sub(y, two), up), inverse);
        let p = s.mul(polynomial(s, &ERFC, q), s.mul(plus, inverse));
        let tail = s.mul(s.mul(s.splat(0.5), e), p);
        let below = s.lt(x, s.zero());
        s.mul(x, s.select(below, tail, s.sub(s.splat(1.0), tail)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::forced::results;

    fn check(function: fn(&mut [f32]), exact: fn(f64) -> f64) {
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
            assert_eq!((values[1], values[2]), (f32::INFINITY, 0.0));
            assert!(values[3..5].iter().all(|x| x.abs() < 2e-36));
            assert_eq!(values[5], 1e38);
        }
    }

    #[test]
    fn silu_in_double_precision() {
        check(silu, |x| x / (1.0 + (-x).exp()));
    }

    #[test]
    fn gelu_in_double_precision() {
        check(gelu, |x| x * crate::math::tests::normal_cdf(x));
    }
}
