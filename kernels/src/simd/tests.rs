//! Every level against scalar arithmetic, lane by lane, and its edges.

use proptest::prelude::*;

use super::{Body, One, Simd, available, dispatch};
use crate::base::level::{Level, best, level};
use crate::gemm::pack::packed_len;

#[cfg(all(target_arch = "x86_64", target_os = "linux", not(miri)))]
mod tiles;

/// Runs all lane-wise operations on `a`, `b`, `c` and compares with scalar code.
struct Lanes<'a>(&'a [f32; 16], &'a [f32; 16], &'a [f32; 16]);

fn same(found: f32, expected: f32) -> bool {
    found.to_bits() == expected.to_bits() || (found.is_nan() && expected.is_nan())
}

#[allow(clippy::type_complexity)]
impl Body for Lanes<'_> {
    type Out = Result<(), String>;

    #[inline(always)]
    fn run<S: Simd>(self, s: S) -> Self::Out {
        let (a, b, c) = (self.0, self.1, self.2);
        let (x, y, z) = (s.load(a), s.load(b), s.load(c));
        let table: [(&str, S::F, fn(f32, f32) -> f32); 9] = [
            ("add", s.add(x, y), |a, b| a + b),
            ("sub", s.sub(x, y), |a, b| a - b),
            ("mul", s.mul(x, y), |a, b| a * b),
            ("div", s.div(x, y), |a, b| a / b),
            ("min", s.min(x, y), |a, b| if a < b { a } else { b }),
            ("max", s.max(x, y), |a, b| if a > b { a } else { b }),
            ("sqrt", s.sqrt(x), |a, _| a.sqrt()),
            ("abs", s.abs(x), |a, _| a.abs()),
            ("neg", s.neg(x), |a, _| -a),
        ];
        for (name, found, expected) in table {
            let found = s.to_array(found);
            for i in 0..S::LANES {
                let expected = expected(a[i], b[i]);
                if !same(found[i], expected) {
                    return Err(format!("{name}({}, {}) = {}", a[i], b[i], found[i]));
                }
            }
        }
        let masks: [(&str, S::M, fn(f32, f32) -> bool); 3] = [
            ("lt", s.lt(x, y), |a, b| a < b),
            ("le", s.le(x, y), |a, b| a <= b),
            ("eq", s.eq(x, y), |a, b| a == b),
        ];
        for (name, mask, expected) in masks {
            let found = s.to_array(s.select(mask, x, z));
            for i in 0..S::LANES {
                let expected = if expected(a[i], b[i]) { a[i] } else { c[i] };
                if !same(found[i], expected) {
                    return Err(format!("{name}({}, {})", a[i], b[i]));
                }
            }
        }
        let fused = s.to_array(s.mul_add(x, y, z));
        let whole = s.to_array(s.from_int(s.to_int(x)));
        let shifted = s.to_array(s.from_bits(s.shl_i::<3>(s.shr_i::<5>(s.to_bits(x)))));
        for i in 0..S::LANES {
            let exact = f64::from(a[i]) * f64::from(b[i]) + f64::from(c[i]);
            let size = (f64::from(a[i]) * f64::from(b[i])).abs() + f64::from(c[i]).abs();
            if exact.is_finite()
                && size < 1e38
                && (f64::from(fused[i]) - exact).abs() > size * 1.2e-7 + 1e-44
            {
                return Err(format!("mul_add {} != {exact}", fused[i]));
            }
            let rounded = f64::from(a[i]).round_ties_even();
            let rounded = if rounded.abs() < 2_147_483_648.0 {
                rounded as i32
            } else {
                i32::MIN
            };
            if whole[i] != rounded as f32 {
                return Err(format!("to_int({}) = {} != {rounded}", a[i], whole[i]));
            }
            let bits = (a[i].to_bits().cast_signed() >> 5) << 3;
            if shifted[i].to_bits() != bits.cast_unsigned() {
                return Err(format!("shift of {:x}", a[i].to_bits()));
            }
        }
        let sum: f64 = a[..S::LANES].iter().map(|&v| f64::from(v)).sum();
        let size: f64 = a[..S::LANES].iter().map(|&v| f64::from(v.abs())).sum();
        if size < 1e38 && (f64::from(s.sum(x)) - sum).abs() > size * 1e-6 {
            return Err(format!("sum {} != {sum}", s.sum(x)));
        }
        Ok(())
    }
}

/// Copies with partial loads and stores of every length; canaries around must stay.
struct Edges;

impl Body for Edges {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for length in 0..=S::LANES {
            // A boxed slice, so that a sanitizer sees a read or write past its end.
            let from: Box<[f32]> = (1..=length).map(|v| v as f32).collect();
            let x = s.load_partial(&from);
            let lanes = s.to_array(x);
            assert_eq!(&lanes[..length], &from[..]);
            assert!(lanes[length..].iter().all(|&v| v == 0.0));
            let mut to = vec![0.0; length].into_boxed_slice();
            s.store_partial(&mut to, x);
            assert_eq!(to, from);
            let mut canary = [7.0; 18];
            s.store_up_to(&mut canary[1..=length], x);
            assert_eq!(&canary[1..=length], &from[..]);
            assert!(canary[0] == 7.0 && canary[length + 1..].iter().all(|&v| v == 7.0));
            to.fill(0.0);
            s.store_forwarded(&mut to, x);
            assert_eq!(to, from);
            let lanes = s.to_array(s.load_forwarded(&to, -3.0));
            assert_eq!(&lanes[..length], &from[..]);
            assert!(lanes[length..S::LANES].iter().all(|&v| v == -3.0));
        }
    }
}

fn any_f32() -> impl Strategy<Value = f32> {
    prop_oneof![
        any::<f32>(),
        -100.0..100.0_f32,
        -1e7..1e7_f32,
        (-40_i32..40).prop_map(|i| i as f32 * 0.5),
        (4_194_300_i32..4_194_310).prop_map(|i| i as f32 + 0.5),
        Just(f32::NAN),
        Just(f32::INFINITY),
        Just(-2_147_483_648.0),
    ]
}

proptest! {
    #[test]
    fn lanes_equal_scalars(
        a in prop::array::uniform16(any_f32()),
        b in prop::array::uniform16(any_f32()),
        c in prop::array::uniform16(any_f32()),
    ) {
        for level in available() {
            let result = dispatch(level, Lanes(&a, &b, &c));
            prop_assert!(result.is_ok(), "{}: {:?}", level.name(), result);
        }
    }
}

#[test]
fn levels_of_other_processors_are_not_here() {
    let here: Vec<Level> = available().collect();
    assert_eq!(here.first(), Some(&Level::Portable));
    assert_eq!(here.last(), Some(&best()));
    assert!(here.contains(&level()));
    assert_eq!(best() == Level::Neon, cfg!(target_feature = "neon"));
    assert_eq!(
        best() == Level::Simd128,
        cfg!(target_feature = "relaxed-simd")
    );
    for level in Level::ALL {
        // What is packed for a level is read by it alone.
        assert_eq!(packed_len(level, 3, 5).is_ok(), here.contains(&level));
    }
}

#[test]
fn edges_stay_inside() {
    for level in available() {
        dispatch(level, Edges);
    }
}

struct Reciprocals;

impl Body for Reciprocals {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        for i in 0..1_000_000_u32 {
            // All exponents whose reciprocal is normal, both signs.
            let bits = 0x0080_0000 + i * 2097;
            let x = f32::from_bits(bits | (i & 1) << 31);
            let found = s.to_array(s.reciprocal(s.splat(x)))[0];
            let exact = f64::from(x).recip();
            let error = (f64::from(found) - exact).abs();
            let normal = exact.abs() >= f64::from(f32::MIN_POSITIVE);
            assert!(
                !normal || error <= 2.0 * f64::from(f32::EPSILON) * exact.abs(),
                "{x:e}: {found:e}"
            );
        }
        assert!(s.to_array(s.reciprocal(s.splat(f32::NAN)))[0].is_nan());
    }
}

#[test]
fn reciprocals_are_near() {
    for level in available() {
        dispatch(level, Reciprocals);
    }
}

/// The operations that only some levels have an instruction for.
struct Composed<'a>(&'a [f32]);

impl Body for Composed<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let table: [f32; 32] = core::array::from_fn(|i| i as f32 + 0.5);
        let short = table.first_chunk::<16>().unwrap();
        for (i, &x) in self.0.iter().enumerate() {
            let v = s.splat(x);
            let (m, n) = s.parts(v);
            let (m, n) = (s.to_array(m)[0], s.to_array(n)[0]);
            if x == 0.0 {
                assert_eq!((m, n), (1.0_f32.copysign(x), f32::NEG_INFINITY));
            } else if x == f32::INFINITY {
                assert_eq!((m, n), (1.0, f32::INFINITY));
            } else if x > 0.0 {
                assert!((0.75..1.5).contains(&m), "{x:e}: {m}");
                assert_eq!(f64::from(m) * f64::from(n).exp2(), f64::from(x));
            } else {
                assert!(m.is_nan(), "{x:e}");
            }

            let whole = (i % 500) as f32 - 250.0;
            let found = s.to_array(s.scale(v, s.splat(whole)))[0];
            let exact = f64::from(x) * f64::from(whole).exp2();
            let unit = f64::from(f32::EPSILON) * exact.abs();
            let error = (f64::from(found) - exact).abs();
            let right = error <= unit.max(1.5e-45) || found == exact as f32;
            assert!(right || !x.is_normal(), "{x:e} {whole}: {found:e}");

            let divisor = 1.0 + (i % 977) as f32 * 0.37;
            let found = s.to_array(s.quotient(v, s.splat(divisor)))[0];
            let exact = f64::from(x) / f64::from(divisor);
            let error = (f64::from(found) - exact).abs();
            let normal = exact.abs() >= f64::from(f32::MIN_POSITIVE);
            assert!(
                !normal || !x.is_finite() || error <= f64::from(f32::EPSILON) * exact.abs(),
                "{x:e} / {divisor}: {found:e}"
            );
            assert!(!x.is_nan() || found.is_nan());

            let lanes: [f32; 16] = core::array::from_fn(|lane| f32::from_bits((i + lane) as u32));
            let index = s.to_bits(s.load(&lanes));
            let found = s.to_array(s.look_up(&table, index));
            let short = s.to_array(s.look_up(short, index));
            for lane in 0..S::LANES {
                assert_eq!(found[lane], table[(i + lane) % 32]);
                assert_eq!(short[lane], table[(i + lane) % 16]);
            }

            let found = s.to_array(s.permute(s.load(&table), index));
            for (lane, found) in found.iter().enumerate().take(S::LANES) {
                assert_eq!(*found, table[(i + lane) % S::LANES]);
            }

            let (low, high) = s.zip(s.load(&table), s.load(&table[16..]));
            let found = [low, high].map(|x| s.to_array(x));
            for place in 0..2 * S::LANES {
                let found = found[place / S::LANES][place % S::LANES];
                assert_eq!(found, table[place / 2 + place % 2 * 16]);
            }

            // The lanes are 0 to 15 in some order.
            let lanes = core::array::from_fn::<_, 16, _>(|lane| ((i + lane) % 16) as f32);
            let least = lanes[..S::LANES].iter().copied().fold(16.0, f32::min);
            let lanes = s.load(&lanes);
            assert!(s.any(s.le(lanes, s.splat(least))));
            assert!(!s.any(s.lt(lanes, s.splat(least))));
        }
    }
}

#[test]
fn composed_operations() {
    let special = [
        0.0,
        -0.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        1e-45,
        1e-40,
        0.75,
        1.5,
    ];
    let bits = (0..=u32::MAX).step_by(100_003).map(f32::from_bits);
    let x: Vec<f32> = special.into_iter().chain(bits).collect();
    Composed(&x).run(One);
    for level in available() {
        dispatch(level, Composed(&x));
    }
}

struct TooLong;

impl Body for TooLong {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let _ = s.load_partial(&[0.0; 17]);
    }
}

#[test]
fn a_long_partial_load_panics() {
    for level in available() {
        assert!(std::panic::catch_unwind(|| dispatch(level, TooLong)).is_err());
    }
}
