//! The exponentials of softmax.

// Indices keep vectors in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use crate::base::level::Level;
use crate::math::single::{LN_2_HIGH, LN_2_LOW, ROUNDER};
use crate::simd::Simd;

/// Coefficients of `(exp(r) - 1 - r) / r^2` for |r| up to half the logarithm of 2, fitted; relative
/// error 3.1e-9 of `exp(r)`.
const EXP: [f32; 5] = [
    0.499_999_94,
    0.166_665_2,
    0.041_668_393,
    0.008_368_781,
    0.001_381_446_7,
];

/// Parts that a power of 2 is cut into where looking them up is quick.
const PARTS: usize = 16;
/// The `f32` nearest to `2^(i / 16)`, whose bits are less by `i << 19`: as much as the number `i`
/// adds to them if it is shifted along with the exponent.
const POWERS: [f32; PARTS] = [
    1.0,
    0.990_886_87,
    0.982_753_9,
    0.975_644_3,
    0.969_603_54,
    0.964_678_9,
    0.960_919_8,
    0.958_377_8,
    0.957_106_77,
    0.957_163_1,
    0.958_605_4,
    0.961_495_16,
    0.965_896_4,
    0.971_876_1,
    0.979_504_05,
    0.988_853_3,
];
/// What they lack, relative to them.
const LACKS: [f32; PARTS] = [
    0.0,
    4.628_547e-8,
    -1.199_215_75e-8,
    4.729_782_4e-8,
    3.193_418e-8,
    3.621_057_2e-8,
    -3.099_072e-8,
    -7.475_213e-9,
    1.711_427_1e-8,
    -3.047_683_4e-8,
    5.233_334e-9,
    6.107_591_8e-9,
    -1.471_960_5e-8,
    -5.258_795e-9,
    -6.128_259_7e-9,
    5.140_609_3e-9,
];
/// As [`EXP`], for |r| up to a thirty-second of the logarithm of 2; relative error 1.7e-9 of
/// `exp(r)`.
const EXP_OF_PART: [f32; 2] = [0.500_016, 0.166_666_67];

/// Exponentials of numbers that are not positive, 0 below -87, where the result is hardly a normal
/// number; relative error 1e-7 elsewhere. Each operation is on all vectors before the next one,
/// because a single chain of them waits most of the time.
#[inline(always)]
pub(crate) fn exp_of_negative<S: Simd, const N: usize>(s: S, x: [S::F; N]) -> [S::F; N] {
    if S::LOOKS_UP {
        by_parts(s, x)
    } else if matches!(S::LEVEL, Level::Portable) {
        whole_apart(s, x)
    } else {
        whole(s, x)
    }
}

/// [`whole`] where lanes are worked on one by one: that is long, and saves next to nothing in line.
#[inline(never)]
fn whole_apart<S: Simd, const N: usize>(s: S, x: [S::F; N]) -> [S::F; N] {
    whole(s, x)
}

/// With powers of 2 from a table, which leave a polynomial of fewer multiplications: these, of
/// which a processor may do one at a time, are what limits a softmax.
#[inline(always)]
fn by_parts<S: Simd, const N: usize>(s: S, x: [S::F; N]) -> [S::F; N] {
    const SCALE: f32 = PARTS as f32;
    let least = s.splat(-87.0);
    // The low bits of a sum with it are the number of parts.
    let (rounder, one) = (s.splat(ROUNDER), s.splat(1.0));
    let (mut r, mut shifted) = (x, x);
    for v in 0..N {
        shifted[v] = s.mul_add(x[v], s.splat(core::f32::consts::LOG2_E * SCALE), rounder);
    }
    for v in 0..N {
        let parts = s.sub(shifted[v], rounder);
        r[v] = s.mul_add(parts, s.splat(-LN_2_HIGH / SCALE), x[v]);
        r[v] = s.mul_add(parts, s.splat(-LN_2_LOW / SCALE), r[v]);
    }
    let mut p = [s.splat(EXP_OF_PART[1]); N];
    for v in 0..N {
        p[v] = s.mul_add(p[v], r[v], s.splat(EXP_OF_PART[0]));
    }
    for v in 0..N {
        p[v] = s.mul_add(p[v], r[v], one);
    }
    for v in 0..N {
        let parts = s.to_bits(shifted[v]);
        p[v] = s.mul_add(p[v], r[v], s.look_up(&LACKS, parts));
        let power = s.to_bits(s.look_up(&POWERS, parts));
        let power = s.from_bits(s.add_i(power, s.shl_i::<19>(parts)));
        p[v] = s.zero_below(s.mul_add(p[v], power, power), x[v], least);
    }
    p
}

/// With a polynomial for all of the range between two whole powers of 2.
#[inline(always)]
fn whole<S: Simd, const N: usize>(s: S, x: [S::F; N]) -> [S::F; N] {
    let least = s.splat(-87.0);
    // The low bits of a sum with it are the biased exponent.
    let (rounder, one) = (s.splat(ROUNDER + 127.0), s.splat(1.0));
    let (mut r, mut shifted) = (x, x);
    for v in 0..N {
        shifted[v] = s.mul_add(x[v], s.splat(core::f32::consts::LOG2_E), rounder);
    }
    for v in 0..N {
        let whole = s.sub(shifted[v], rounder);
        r[v] = s.mul_add(whole, s.splat(-LN_2_HIGH), x[v]);
        r[v] = s.mul_add(whole, s.splat(-LN_2_LOW), r[v]);
    }
    let mut p = [s.splat(EXP[EXP.len() - 1]); N];
    for i in (0..EXP.len() - 1).rev() {
        for v in 0..N {
            p[v] = s.mul_add(p[v], r[v], s.splat(EXP[i]));
        }
    }
    for v in 0..N {
        p[v] = s.mul_add(p[v], r[v], one);
    }
    for v in 0..N {
        let power = s.from_bits(s.shl_i::<23>(s.to_bits(shifted[v])));
        let value = s.mul(s.mul_add(p[v], r[v], one), power);
        p[v] = s.zero_below(value, x[v], least);
    }
    p
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Body, available, dispatch};

    struct All<'a>(&'a [f32]);

    impl Body for All<'_> {
        type Out = Vec<f32>;

        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Vec<f32> {
            let vectors = self.0.chunks_exact(S::LANES);
            let results = vectors.flat_map(|x| {
                let [value] = exp_of_negative(s, [s.load(x)]);
                s.to_array(value).into_iter().take(S::LANES)
            });
            results.collect()
        }
    }

    /// Every 499th number down to the least.
    #[test]
    fn is_exact_to_a_rounding() {
        let bits = (0..=87.0_f32.to_bits()).step_by(499);
        let mut x: Vec<f32> = bits.map(|bits| -f32::from_bits(bits)).collect();
        x.resize(x.len().next_multiple_of(16), 0.0);
        for level in available() {
            for (&x, value) in x.iter().zip(dispatch(level, All(&x))) {
                let exact = f64::from(x).exp();
                let error = (f64::from(value) - exact).abs() / exact;
                assert!(error <= 1e-7, "{level:?}, {x}: {value}, {error}");
            }
        }
    }

    #[test]
    fn zero_gives_one_and_what_is_far_below_nothing() {
        let mut x = [-0.0; 16];
        x[1] = f32::NEG_INFINITY;
        x[2] = -87.1;
        x[3] = f32::MIN;
        for level in available() {
            let values = dispatch(level, All(&x));
            assert_eq!(values[..4], [1.0, 0.0, 0.0, 0.0], "{level:?}");
            let values = dispatch(level, All(&[f32::NAN; 16]));
            assert!(values.iter().all(|x| x.is_nan()), "{level:?}");
        }
    }
}
