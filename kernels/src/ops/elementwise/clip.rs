//! Limits values to a range.

use crate::base::adapt::{Element, by_type, check_shape, variants};
use crate::base::def::{Call, KernelDef};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::map::outputs_like_first;
use crate::frame::zip::{Zip, zip, zip_in_place};

/// The larger of two values; keeps a NaN in the first.
#[derive(Clone, Copy, Debug)]
pub struct Raise;

/// The smaller of two values; keeps a NaN in the first.
#[derive(Clone, Copy, Debug)]
pub struct Lower;

macro_rules! limits {
    ($($type:ident)*) => {$(
        impl Zip<$type> for Raise {
            type Out = $type;

            #[inline(always)]
            fn apply(self, x: $type, low: $type) -> $type {
                if x < low { low } else { x }
            }
        }

        impl Zip<$type> for Lower {
            type Out = $type;

            #[inline(always)]
            fn apply(self, x: $type, high: $type) -> $type {
                if x > high { high } else { x }
            }
        }
    )*};
}

limits!(f32 f64 i64);

/// `out = max(min(x, high), low)`; the limits are scalars or of the shape of `x`. NaN stays.
///
/// # Errors
/// [`Error::Incompatible`](crate::base::error::Error::Incompatible) for limits of other shapes,
/// [`Error::Length`](crate::base::error::Error::Length) if a slice does not fit its shape.
pub fn clip<T: Element>(
    (x, shape): (&[T], &Shape),
    low: (&[T], &Shape),
    high: (&[T], &Shape),
    out: &mut [T],
    parallel: &dyn Parallel,
) -> Result<()>
where
    Raise: Zip<T, Out = T>,
    Lower: Zip<T, Out = T>,
{
    zip(Lower, (x, shape), high, out, parallel)?;
    zip_in_place::<Raise, T, true>(Raise, (out, shape), low, parallel)
}

/// `ClipByValue` of TensorFlow.
pub static CLIP_BY_VALUE: KernelDef = KernelDef {
    variants: variants!(["T": F32 F64 I64];),
    outputs: |inputs, sink| {
        let shape = inputs.shape(0, "t")?;
        for (index, argument) in [(1, "clip_value_min"), (2, "clip_value_max")] {
            let limit = inputs.shape(index, argument)?;
            if limit.rank() != 0 {
                check_shape(argument, &limit, &shape)?;
            }
        }
        outputs_like_first(inputs, sink)
    },
    run: |call| {
        by_type!(
            call.inputs.get(0, "t")?.dtype(),
            "t",
            T of [f32 f64 i64] => run::<T>(call)
        )
    },
    ..KernelDef::of("ClipByValue")
};

fn run<T: Element>(call: &mut Call<'_>) -> Result<()>
where
    Raise: Zip<T, Out = T>,
    Lower: Zip<T, Out = T>,
{
    let x = call.inputs.get(0, "t")?;
    let limit = |index, argument| -> Result<(&[T], Shape)> {
        let tensor = call.inputs.get(index, argument)?;
        Ok((T::view(&tensor, argument)?, *tensor.shape()))
    };
    let (low, high) = (limit(1, "clip_value_min")?, limit(2, "clip_value_max")?);
    let parallel = call.parallel;
    let out = T::view_mut(call.output(0)?, "output")?;
    let x = (T::view(&x, "t")?, x.shape());
    clip(x, (low.0, &low.1), (high.0, &high.1), out, parallel)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;

    #[test]
    fn limits_hold_and_the_lower_one_wins() {
        let x = [-5.0, 0.5, 5.0, f32::NAN];
        let shape = Shape::new(&[4]).unwrap();
        let mut out = [0.0; 4];
        let scalar = &Shape::SCALAR;
        clip(
            (&x, &shape),
            (&[-1.0], scalar),
            (&[1.0], scalar),
            &mut out,
            &Serial,
        )
        .unwrap();
        assert_eq!(out[..3], [-1.0, 0.5, 1.0]);
        assert!(out[3].is_nan());
        clip(
            (&x, &shape),
            (&[2.0], scalar),
            (&[1.0], scalar),
            &mut out,
            &Serial,
        )
        .unwrap();
        assert_eq!(out[..3], [2.0; 3]);
    }
}
