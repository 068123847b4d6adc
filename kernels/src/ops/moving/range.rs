//! Evenly spaced numbers.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::{Call, Inputs, KernelDef};
use crate::base::error::{Error, Result};
use crate::base::shape::Shape;
use crate::simd::body::{Body, dispatch};

/// A type whose numbers can be spaced evenly.
pub trait Step: Element {
    /// How many numbers lie in `start..limit` in steps of `delta`, by the type's own arithmetic: 10
    /// between 0.1 and 1.1 in steps of 0.1 for `f32`, where the quotient rounds to 10.
    ///
    /// # Errors
    /// [`Error::Value`] for a step of 0 or one that leads away from the limit.
    fn count(start: Self, limit: Self, delta: Self) -> Result<usize>;

    /// `self + index * delta`, rounded twice or wrapped.
    #[must_use]
    fn step(self, index: usize, delta: Self) -> Self;

    /// Writes as many numbers as `out` has elements.
    fn fill(start: Self, delta: Self, out: &mut [Self]) {
        for (index, out) in out.iter_mut().enumerate() {
            *out = start.step(index, delta);
        }
    }
}

const REFUSED: Error = Error::Value {
    argument: "delta",
    expected: "a step that leads from start to limit",
};

macro_rules! float_step {
    ($($type:ident $({$($more:item)*})?)*) => {$(
        impl Step for $type {
            fn count(start: Self, limit: Self, delta: Self) -> Result<usize> {
                let leads = (delta > 0.0 && start <= limit) || (delta < 0.0 && start >= limit);
                if !leads {
                    return Err(REFUSED);
                }
                let count = ((limit - start) / delta).abs();
                // The difference of two infinities is NaN.
                if count.is_nan() || count >= isize::MAX as Self {
                    return Err(Error::Overflow { argument: "limit" });
                }
                let whole = count as usize;
                Ok(if (whole as Self) < count { whole + 1 } else { whole })
            }

            fn step(self, index: usize, delta: Self) -> Self {
                self + index as Self * delta
            }

            $($($more)*)?
        }
    )*};
}

float_step! {
    f32 {
        fn fill(start: Self, delta: Self, out: &mut [Self]) {
            dispatch(Steps { start, delta, out });
        }
    }
    f64
}

/// Elements whose indices have 31 bits, for which levels have an instruction.
const NEAR: usize = 1 << 30;

/// The numbers of [`range`].
struct Steps<'a> {
    start: f32,
    delta: f32,
    out: &'a mut [f32],
}

impl Body for Steps<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let (near, far) = self.out.split_at_mut(self.out.len().min(NEAR));
        for (index, out) in near.iter_mut().enumerate() {
            *out = self.start + index as i32 as f32 * self.delta;
        }
        for (index, out) in far.iter_mut().enumerate() {
            *out = self.start.step(NEAR + index, self.delta);
        }
    }
}

impl Step for i64 {
    fn count(start: Self, limit: Self, delta: Self) -> Result<usize> {
        let leads = (delta > 0 && start <= limit) || (delta < 0 && start >= limit);
        if !leads {
            return Err(REFUSED);
        }
        let count = limit.abs_diff(start).div_ceil(delta.unsigned_abs());
        usize::try_from(count).map_err(|_| Error::Overflow { argument: "limit" })
    }

    fn step(self, index: usize, delta: Self) -> Self {
        self.wrapping_add(delta.wrapping_mul(index as i64))
    }
}

/// Writes `start + i * delta`; [`Step::count`] says how many.
pub fn range<T: Step>(start: T, delta: T, out: &mut [T]) {
    T::fill(start, delta, out);
}

/// `Range` of TensorFlow.
pub static RANGE: KernelDef = KernelDef {
    variants: variants!(["Tidx": F32 F64 I64] host &["start", "limit", "delta"];),
    outputs: |inputs, sink| {
        let dtype = inputs.get(0, "start")?.dtype();
        let count = by_type!(dtype, "start", T of [f32 f64 i64] => count::<T>(inputs))?;
        sink(dtype, Shape::new(&[count])?)
    },
    run: |call| {
        by_type!(
            call.inputs.get(0, "start")?.dtype(),
            "start",
            T of [f32 f64 i64] => run::<T>(call)
        )
    },
    ..KernelDef::of("Range")
};

fn scalar<T: Element>(inputs: &Inputs<'_>, index: usize, argument: &'static str) -> Result<T> {
    match *T::view(&inputs.get(index, argument)?, argument)? {
        [value] => Ok(value),
        ref values => Err(Error::Length {
            argument,
            found: values.len(),
            expected: 1,
        }),
    }
}

fn count<T: Step>(inputs: &Inputs<'_>) -> Result<usize> {
    T::count(
        scalar(inputs, 0, "start")?,
        scalar(inputs, 1, "limit")?,
        scalar(inputs, 2, "delta")?,
    )
}

fn run<T: Step>(call: &mut Call<'_>) -> Result<()> {
    let start = scalar::<T>(&call.inputs, 0, "start")?;
    let delta = scalar::<T>(&call.inputs, 2, "delta")?;
    range(start, delta, T::view_mut(call.output(0)?, "output")?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::body::forced;

    #[test]
    fn counts() {
        assert_eq!(f32::count(0.0, 1.0, 0.25), Ok(4));
        assert_eq!(f32::count(0.0, 1.1, 0.25), Ok(5));
        assert_eq!(i64::count(10, -5, -3), Ok(5));
        assert_eq!(i64::count(3, 3, 1), Ok(0));
        for (start, limit, delta) in [(0, 1, 0), (0, 1, -1), (1, 0, 1)] {
            assert!(i64::count(start, limit, delta).is_err());
            assert!(f64::count(start as f64, limit as f64, delta as f64).is_err());
        }
        assert!(f32::count(0.0, f32::INFINITY, 1.0).is_err());
        assert!(f32::count(0.0, f32::NAN, 1.0).is_err());
        assert!(f32::count(f32::INFINITY, f32::INFINITY, 1.0).is_err());
        assert!(f32::count(0.0, 1.0, f32::NAN).is_err());
        assert_eq!(f32::count(0.0, 1.0, f32::INFINITY), Ok(0));
        assert_eq!(f32::count(0.1, 1.1, 0.1), Ok(10));
        assert_eq!(f64::count(0.1, 1.1, 0.1), Ok(10));
        let mut out = [0; 3];
        range(10, -3, &mut out);
        assert_eq!(out, [10, 7, 4]);
    }

    #[test]
    fn every_level_steps_alike() {
        for (start, delta) in [(0.0, 1.0), (-3.5, 0.1), (1e6, -0.3), (2.0, 1e30)] {
            for len in [0, 1, 15, 16, 17, 1000] {
                let found = forced::same_bits(|| {
                    let mut out = vec![f32::NAN; len];
                    range(start, delta, &mut out);
                    out
                });
                for (index, found) in found.iter().enumerate() {
                    let expected = start.step(index, delta);
                    assert_eq!(found.to_bits(), expected.to_bits());
                }
            }
        }
    }
}
