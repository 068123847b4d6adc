//! Element-wise comparisons of two arguments; the result is `bool`, a byte of 0 or 1.
//!
//! Every comparison with NaN is false, except that NaN is not equal to anything.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::{AttrKind, Inputs, KernelDef, OutputSink};
use crate::base::dtype::DType;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::zip::call::{outputs_broadcast_bool, run_zip_to};
use crate::frame::zip::{Zip, zip};

macro_rules! compare {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident $attrs:expr, $outputs:expr,
        [$($type:ident $dtype:ident)*] |$x:ident, $y:ident| $body:expr;
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        $(
            impl Zip<$type> for $op {
                type Out = u8;

                #[inline(always)]
                fn apply(self, $x: $type, $y: $type) -> u8 {
                    u8::from($body)
                }
            }
        )*

        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Incompatible`] if the shapes can't be broadcast, [`Error::Length`] if a slice
        /// does not fit its shape.
        pub fn $function<T: Element>(
            x: (&[T], &Shape),
            y: (&[T], &Shape),
            out: &mut [u8],
            parallel: &dyn Parallel,
        ) -> Result<()>
        where
            $op: Zip<T, Out = u8>,
        {
            zip($op, x, y, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: KernelDef = KernelDef {
            variants: variants!(["T": $($dtype)*];),
            attrs: $attrs,
            outputs: $outputs,
            run: |call| {
                if call.outputs.first().is_some_and(|z| z.shape() == &Shape::SCALAR)
                    && unequal_shapes(&call.inputs)?
                {
                    // The outcome for shapes that can't be broadcast, where the node allows them.
                    call.output(0)?.bytes_mut().fill(u8::from(stringify!($op) == "NotEqual"));
                    return Ok(());
                }
                by_type!(
                    call.inputs.get(0, "x")?.dtype(),
                    "x",
                    T of [$($type)*] => run_zip_to::<$op, T>($op, call)
                )
            },
            ..KernelDef::of(stringify!($op))
        };
    )*};
}

/// The attribute of the two ops that may be told to accept unequal shapes.
const EQUAL_ATTRS: &[(&str, AttrKind)] = &[("incompatible_shape_error", AttrKind::Bool)];

fn unequal_shapes(inputs: &Inputs<'_>) -> Result<bool> {
    let (x, y) = (inputs.shape(0, "x")?, inputs.shape(1, "y")?);
    Ok(x.broadcast(&y, ("x", "y")).is_err())
}

/// As for other comparisons, but a scalar for shapes that can't be broadcast if the node says so.
fn outputs_equal(inputs: &Inputs<'_>, sink: &mut OutputSink<'_>) -> Result<()> {
    match outputs_broadcast_bool(inputs, sink) {
        Err(Error::Incompatible { .. }) if !inputs.attrs.boolean("incompatible_shape_error")? => {
            sink(DType::Bool, Shape::SCALAR)
        }
        result => result,
    }
}

compare! {
    /// Whether `x == y`.
    EQUAL Equal equal EQUAL_ATTRS, outputs_equal,
        [f32 F32 f64 F64 i64 I64 u8 Bool] |x, y| x == y;
    /// Whether `x > y`.
    GREATER Greater greater &[], outputs_broadcast_bool, [f32 F32 f64 F64 i64 I64] |x, y| x > y;
    /// Whether `x >= y`.
    GREATER_EQUAL GreaterEqual greater_equal &[], outputs_broadcast_bool,
        [f32 F32 f64 F64 i64 I64] |x, y| x >= y;
    /// Whether `x < y`.
    LESS Less less &[], outputs_broadcast_bool, [f32 F32 f64 F64 i64 I64] |x, y| x < y;
    /// Whether `x <= y`.
    LESS_EQUAL LessEqual less_equal &[], outputs_broadcast_bool,
        [f32 F32 f64 F64 i64 I64] |x, y| x <= y;
    /// Whether `x != y`.
    NOT_EQUAL NotEqual not_equal EQUAL_ATTRS, outputs_equal,
        [f32 F32 f64 F64 i64 I64 u8 Bool] |x, y| x != y;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trial::{Attr, Tensor, run};

    #[test]
    fn nan_compares_as_unequal() {
        let values = [1.0, 2.0, f32::NAN];
        for (i, &x) in values.iter().enumerate() {
            for (j, &y) in values.iter().enumerate() {
                let nan = x.is_nan() || y.is_nan();
                assert_eq!(Equal.apply(x, y), u8::from(!nan && i == j));
                assert_eq!(NotEqual.apply(x, y), u8::from(nan || i != j));
                assert_eq!(Less.apply(x, y), u8::from(!nan && i < j));
                assert_eq!(LessEqual.apply(x, y), u8::from(!nan && i <= j));
                assert_eq!(Greater.apply(x, y), u8::from(!nan && i > j));
                assert_eq!(GreaterEqual.apply(x, y), u8::from(!nan && i >= j));
            }
        }
    }

    #[test]
    fn unequal_shapes_are_an_error_or_unequal() {
        let (a, b) = (Tensor::f32(&[2], &[1.0; 2]), Tensor::f32(&[3], &[1.0; 3]));
        let strict = [("incompatible_shape_error", Attr::Bool(true))];
        let lax = [("incompatible_shape_error", Attr::Bool(false))];
        assert!(run(&EQUAL, &strict, &[a.clone(), b.clone()], false).is_err());
        let out = run(&EQUAL, &lax, &[a.clone(), b.clone()], false).unwrap();
        assert_eq!((out[0].bytes(), &*out[0].dims), (&[0][..], &[][..]));
        let out = run(&NOT_EQUAL, &lax, &[a.clone(), b], false).unwrap();
        assert_eq!(out[0].bytes(), [1]);
        let out = run(&EQUAL, &lax, &[a.clone(), a], false).unwrap();
        assert_eq!(out[0].bytes(), [1, 1]);
    }
}
