//! Element-wise operations on `bool`, a byte of 0 or 1.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::{KernelDef, Variants};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::map::{Map, map, outputs_bool, outputs_like_first, run_map, run_map_to};
use crate::frame::zip::call::{outputs_broadcast, run_zip};
use crate::frame::zip::{Zip, zip};

const ONLY: &[Variants] = variants!([];);

macro_rules! logical {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident |$x:ident, $y:ident| $body:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        impl Zip<u8> for $op {
            type Out = u8;

            #[inline(always)]
            fn apply(self, $x: u8, $y: u8) -> u8 {
                $body
            }
        }

        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Incompatible`](crate::base::error::Error::Incompatible) if the shapes can't be
        /// broadcast, [`Error::Length`](crate::base::error::Error::Length) if a slice does not fit its
        /// shape.
        pub fn $function(
            x: (&[u8], &Shape),
            y: (&[u8], &Shape),
            out: &mut [u8],
            parallel: &dyn Parallel,
        ) -> Result<()> {
            zip($op, x, y, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: KernelDef = KernelDef {
            variants: ONLY,
            forward: &[(0, 0), (1, 0)],
            outputs: outputs_broadcast,
            run: |call| run_zip::<$op, u8>($op, call),
            ..KernelDef::of(stringify!($op))
        };
    )*};
}

logical! {
    /// Whether both are true.
    LOGICAL_AND LogicalAnd logical_and |x, y| x & y;
    /// Whether one is true.
    LOGICAL_OR LogicalOr logical_or |x, y| x | y;
}

/// Whether the value is false.
#[derive(Clone, Copy, Debug, Default)]
pub struct LogicalNot;

impl Map<u8> for LogicalNot {
    type Out = u8;

    #[inline(always)]
    fn apply(self, x: u8) -> u8 {
        x ^ 1
    }
}

/// Whether the value is false.
///
/// # Errors
/// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
pub fn logical_not(x: &[u8], out: &mut [u8], parallel: &dyn Parallel) -> Result<()> {
    map(LogicalNot, x, out, parallel)
}

/// `LogicalNot` of TensorFlow.
pub static LOGICAL_NOT: KernelDef = KernelDef {
    variants: ONLY,
    forward: &[(0, 0)],
    outputs: outputs_like_first,
    run: |call| run_map::<LogicalNot, u8>(LogicalNot, call),
    ..KernelDef::of("LogicalNot")
};

macro_rules! predicates {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident $test:ident;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        impl Map<f32> for $op {
            type Out = u8;

            #[inline(always)]
            fn apply(self, x: f32) -> u8 {
                u8::from(x.$test())
            }
        }

        impl Map<f64> for $op {
            type Out = u8;

            #[inline(always)]
            fn apply(self, x: f64) -> u8 {
                u8::from(x.$test())
            }
        }

        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Length`](crate::base::error::Error::Length) unless `out` is as long as `x`.
        pub fn $function<T: Element>(x: &[T], out: &mut [u8], parallel: &dyn Parallel) -> Result<()>
        where
            $op: Map<T, Out = u8>,
        {
            map($op, x, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: KernelDef = KernelDef {
            variants: variants!(["T": F32 F64];),
            outputs: outputs_bool,
            run: |call| by_type!(
                call.inputs.get(0, "x")?.dtype(),
                "x",
                T of [f32 f64] => run_map_to::<$op, T>($op, call)
            ),
            ..KernelDef::of(stringify!($op))
        };
    )*};
}

predicates! {
    /// Whether the value is neither infinite nor NaN.
    IS_FINITE IsFinite is_finite is_finite;
    /// Whether the value is infinite.
    IS_INF IsInf is_inf is_infinite;
    /// Whether the value is NaN.
    IS_NAN IsNan is_nan is_nan;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::trial::{Tensor, run};

    #[test]
    fn truth_tables() {
        let a = Tensor::new(DType::Bool, &[4], &[0, 0, 1, 1]);
        let b = Tensor::new(DType::Bool, &[4], &[0, 1, 0, 1]);
        for forward in [false, true] {
            let inputs = [a.clone(), b.clone()];
            let and = run(&LOGICAL_AND, &[], &inputs, forward).unwrap();
            let or = run(&LOGICAL_OR, &[], &inputs, forward).unwrap();
            let not = run(&LOGICAL_NOT, &[], &inputs[..1], forward).unwrap();
            assert_eq!(and[0].bytes(), [0, 0, 0, 1]);
            assert_eq!(or[0].bytes(), [0, 1, 1, 1]);
            assert_eq!(not[0].bytes(), [1, 1, 0, 0]);
        }
        let x = Tensor::f32(&[3], &[1.0, f32::INFINITY, f32::NAN]);
        let test = |def| {
            run(def, &[], std::slice::from_ref(&x), false).unwrap()[0]
                .bytes()
                .to_vec()
        };
        assert_eq!(test(&IS_FINITE), [1, 0, 0]);
        assert_eq!(test(&IS_INF), [0, 1, 0]);
        assert_eq!(test(&IS_NAN), [0, 0, 1]);
    }
}
