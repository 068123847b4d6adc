//! Conversion between element types.
//!
//! A float becomes an integer by dropping its fraction; one that does not fit, NaN included,
//! becomes the smallest integer, as on x86. A number becomes `bool` by comparison with 0.

use crate::base::adapt::{Element, unserved};
use crate::base::def::{AttrKind, Call, KernelDef, Variant, no_scratch};
use crate::base::dtype::DType;
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::frame::map::{Map, map, run_map_to};
use crate::simd::scalar::Truncate;

/// The conversion to `U`.
#[derive(Clone, Copy, Debug)]
pub struct Cast<U>(core::marker::PhantomData<fn() -> U>);

impl<U> Cast<U> {
    /// The conversion.
    #[must_use]
    pub const fn new() -> Self {
        Self(core::marker::PhantomData)
    }
}

impl<U> Default for Cast<U> {
    fn default() -> Self {
        Self::new()
    }
}

macro_rules! casts {
    ($($from:ident => $to:ident |$x:ident| $body:expr;)*) => {$(
        impl Map<$from> for Cast<$to> {
            type Out = $to;

            #[inline(always)]
            fn apply(self, $x: $from) -> $to {
                $body
            }
        }
    )*};
}

casts! {
    f32 => f32 |x| x;
    f32 => f64 |x| f64::from(x);
    f32 => i32 |x| x.truncate();
    f32 => i64 |x| x.truncate();
    f32 => u8 |x| u8::from(x != 0.0);
    f64 => f32 |x| x as f32;
    f64 => f64 |x| x;
    f64 => i32 |x| x.truncate();
    f64 => i64 |x| x.truncate();
    f64 => u8 |x| u8::from(x != 0.0);
    i32 => f32 |x| x as f32;
    i32 => f64 |x| f64::from(x);
    i32 => i32 |x| x;
    i32 => i64 |x| i64::from(x);
    i32 => u8 |x| u8::from(x != 0);
    i64 => f32 |x| x as f32;
    i64 => f64 |x| x as f64;
    i64 => i32 |x| x as i32;
    i64 => i64 |x| x;
    i64 => u8 |x| u8::from(x != 0);
    u8 => f32 |x| f32::from(x);
    u8 => f64 |x| f64::from(x);
    u8 => i32 |x| i32::from(x);
    u8 => i64 |x| i64::from(x);
    u8 => u8 |x| x;
}

/// Converts each element; `u8` stands for `bool`.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
pub fn cast<T: Element, U: Element>(x: &[T], out: &mut [U], parallel: &dyn Parallel) -> Result<()>
where
    Cast<U>: Map<T, Out = U>,
{
    map(Cast::<U>::new(), x, out, parallel)
}

macro_rules! pairs {
    ($([$from:ident: $($to:ident)*])*) => {
        &[$($(
            Variant { types: &[("SrcT", DType::$from), ("DstT", DType::$to)], host: &[] },
        )*)*]
    };
}

/// `Cast` of TensorFlow.
pub static CAST: KernelDef = KernelDef {
    op: "Cast",
    variants: pairs!(
        [F32: F32 F64 I32 I64 Bool]
        [F64: F32 F64 I32 I64 Bool]
        [I32: F32 F64 I32 I64 Bool]
        [I64: F32 F64 I32 I64 Bool]
        [Bool: F32 F64 I32 I64 Bool]
        [U8: F32 F64 I32 I64]
    ),
    attrs: &[("DstT", AttrKind::Type)],
    forward: &[],
    outputs: |inputs, sink| sink(inputs.attrs.dtype("DstT")?, inputs.shape(0, "x")?),
    scratch: no_scratch,
    run: |call| match call.inputs.get(0, "x")?.dtype() {
        DType::F32 => from::<f32>(call),
        DType::F64 => from::<f64>(call),
        DType::I32 => from::<i32>(call),
        DType::I64 => from::<i64>(call),
        DType::Bool => from::<u8>(call),
        DType::U8 => from_u8(call),
        found => Err(unserved("x", found)),
    },
};

fn from<T: Element>(call: &mut Call<'_>) -> Result<()>
where
    Cast<f32>: Map<T, Out = f32>,
    Cast<f64>: Map<T, Out = f64>,
    Cast<i32>: Map<T, Out = i32>,
    Cast<i64>: Map<T, Out = i64>,
    Cast<u8>: Map<T, Out = u8>,
{
    match call.output(0)?.dtype() {
        DType::F32 => run_map_to::<_, T>(Cast::<f32>::new(), call),
        DType::F64 => run_map_to::<_, T>(Cast::<f64>::new(), call),
        DType::I32 => run_map_to::<_, T>(Cast::<i32>::new(), call),
        DType::I64 => run_map_to::<_, T>(Cast::<i64>::new(), call),
        DType::Bool => run_map_to::<_, T>(Cast::<u8>::new(), call),
        found => Err(unserved("y", found)),
    }
}

/// From unsigned bytes, whose values are those of `bool` widened.
fn from_u8(call: &mut Call<'_>) -> Result<()> {
    let x = call.inputs.get(0, "x")?.bytes();
    let parallel = call.parallel;
    let output = call.output(0)?;
    match output.dtype() {
        DType::F32 => cast(x, output.f32_mut("y")?, parallel),
        DType::F64 => cast(x, output.f64_mut("y")?, parallel),
        DType::I32 => cast(x, output.i32_mut("y")?, parallel),
        DType::I64 => cast(x, output.i64_mut("y")?, parallel),
        found => Err(unserved("y", found)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Attr, Tensor, run};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn floats_that_fit_are_truncated(x in -2.0e9_f32..2.0e9) {
            prop_assert_eq!(Map::<f32>::apply(Cast::<i32>::new(), x), x as i32);
            prop_assert_eq!(Map::<f32>::apply(Cast::<i64>::new(), x), x as i64);
        }
    }

    #[test]
    fn what_does_not_fit_becomes_the_smallest() {
        for x in [
            f32::NAN,
            f32::INFINITY,
            f32::NEG_INFINITY,
            2_147_483_648.0,
            -3.0e9,
        ] {
            assert_eq!(Map::<f32>::apply(Cast::<i32>::new(), x), i32::MIN);
            assert_eq!(
                Map::<f64>::apply(Cast::<i32>::new(), f64::from(x)),
                i32::MIN
            );
        }
        assert_eq!(
            Map::<f64>::apply(Cast::<i32>::new(), -2_147_483_648.9),
            i32::MIN
        );
        assert_eq!(Map::<f32>::apply(Cast::<i64>::new(), 1e19), i64::MIN);
        assert_eq!(Map::<f32>::apply(Cast::<u8>::new(), f32::NAN), 1);
        assert_eq!(Map::<f32>::apply(Cast::<u8>::new(), -0.0), 0);
        assert_eq!(Map::<i64>::apply(Cast::<i32>::new(), 1 << 32), 0);
    }

    #[test]
    fn every_variant_runs() {
        for variant in CAST.variants {
            let ((_, from), (_, to)) = (variant.types[0], variant.types[1]);
            let x = Tensor::new(from, &[2], &vec![0; 2 * from.size()]);
            let out = run(&CAST, &[("DstT", Attr::Type(to))], &[x], false).unwrap();
            assert_eq!(
                (out[0].dtype, out[0].bytes()),
                (to, &*vec![0; 2 * to.size()])
            );
        }
    }
}
