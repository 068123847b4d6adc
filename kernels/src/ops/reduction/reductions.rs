//! Reductions over axes, one row per op. Of no elements, a reduction gives its neutral element, and
//! the mean NaN. A maximum or minimum with a NaN in it is NaN.

use crate::base::adapt::{Element, by_type, variants};
use crate::base::def::{KernelDef, Variants};
use crate::base::error::Result;
use crate::base::parallel::Parallel;
use crate::base::shape::Shape;
use crate::frame::reduce::{Axes, KEEP_DIMS, Reduce, outputs_reduced, reduce, run_reduce};

macro_rules! reductions {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident $variants:expr, {
            $($type:ident $wide:ident $empty:expr,
              |$a:ident, $b:ident| $step:expr, |$total:ident, $count:ident| $finish:expr;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        $(
            impl Reduce<$type> for $op {
                type Wide = $wide;

                const EMPTY: $type = $empty;
                const EMPTY_WIDE: $wide = $empty as $wide;

                #[inline(always)]
                fn step(self, $a: $type, $b: $type) -> $type {
                    $step
                }

                #[inline(always)]
                fn widen(self, a: $wide, b: $type) -> $wide {
                    <Self as Reduce<$type>>::merge(self, a, b as $wide)
                }

                #[inline(always)]
                fn merge(self, $a: $wide, $b: $wide) -> $wide {
                    $step
                }

                #[inline(always)]
                fn finish(self, $total: $wide, $count: usize) -> $type {
                    $finish as $type
                }
            }
        )*

        $(#[$doc])*
        ///
        /// `out` has the kept axes, in order.
        ///
        /// # Errors
        /// [`Error::Length`](crate::base::error::Error::Length) if a slice does not fit the shape.
        pub fn $function<T: Element>(
            x: (&[T], &Shape),
            axes: &Axes,
            out: &mut [T],
            parallel: &dyn Parallel,
        ) -> Result<()>
        where
            $op: Reduce<T>,
        {
            reduce($op, x, axes, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: KernelDef = KernelDef {
            variants: $variants,
            attrs: KEEP_DIMS,
            outputs: outputs_reduced,
            run: |call| by_type!(
                call.inputs.get(0, "input")?.dtype(),
                "input",
                T of [$($type)*] => run_reduce::<$op, T>($op, call)
            ),
            ..KernelDef::of(stringify!($op))
        };
    )*};
}

const AXES: &[&str] = &["reduction_indices"];

const FLOATS: &[Variants] = variants!(["T": F32 F64, "Tidx": I32 I64] host AXES;);
const NUMBERS: &[Variants] = variants!(["T": F32 F64 I64, "Tidx": I32 I64] host AXES;);
const ALL_NUMBERS: &[Variants] = variants!(
    ["T": F32 F64 I64, "Tidx": I32 I64] host AXES;
    ["T": I32, "Tidx": I32 I64] host &["input", "reduction_indices", "output"];
);
const LOGICAL: &[Variants] = variants!(["Tidx": I32 I64] host AXES;);

/// The larger of two floats, NaN if one is.
macro_rules! max_nan {
    ($a:ident, $b:ident) => {
        if $a > $b || $a.is_nan() { $a } else { $b }
    };
}

/// The smaller of two floats, NaN if one is.
macro_rules! min_nan {
    ($a:ident, $b:ident) => {
        if $a < $b || $a.is_nan() { $a } else { $b }
    };
}

reductions! {
    /// Whether all are true.
    ALL All all LOGICAL, {
        u8 u8 1, |a, b| a & b, |total, _count| total;
    }
    /// Whether one is true.
    ANY Any any LOGICAL, {
        u8 u8 0, |a, b| a | b, |total, _count| total;
    }
    /// The largest.
    MAX Max max NUMBERS, {
        f32 f32 f32::NEG_INFINITY, |a, b| max_nan!(a, b), |total, _count| total;
        f64 f64 f64::NEG_INFINITY, |a, b| max_nan!(a, b), |total, _count| total;
        i32 i32 i32::MIN, |a, b| a.max(b), |total, _count| total;
        i64 i64 i64::MIN, |a, b| a.max(b), |total, _count| total;
    }
    /// The mean; the error is below 64 roundings of the sum.
    MEAN Mean mean FLOATS, {
        f32 f64 0.0, |a, b| a + b, |total, count| total / count as f64;
        f64 f64 0.0, |a, b| a + b, |total, count| total / count as f64;
    }
    /// The smallest.
    MIN Min min NUMBERS, {
        f32 f32 f32::INFINITY, |a, b| min_nan!(a, b), |total, _count| total;
        f64 f64 f64::INFINITY, |a, b| min_nan!(a, b), |total, _count| total;
        i32 i32 i32::MAX, |a, b| a.min(b), |total, _count| total;
        i64 i64 i64::MAX, |a, b| a.min(b), |total, _count| total;
    }
    /// The product; integers wrap.
    PROD Prod prod ALL_NUMBERS, {
        f32 f32 1.0, |a, b| a * b, |total, _count| total;
        f64 f64 1.0, |a, b| a * b, |total, _count| total;
        i32 i32 1, |a, b| a.wrapping_mul(b), |total, _count| total;
        i64 i64 1, |a, b| a.wrapping_mul(b), |total, _count| total;
    }
    /// The sum; the error is below 64 roundings, and integers wrap.
    SUM Sum sum ALL_NUMBERS, {
        f32 f64 0.0, |a, b| a + b, |total, _count| total;
        f64 f64 0.0, |a, b| a + b, |total, _count| total;
        i32 i32 0, |a, b| a.wrapping_add(b), |total, _count| total;
        i64 i64 0, |a, b| a.wrapping_add(b), |total, _count| total;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::dtype::DType;
    use crate::trial::{Attr, Tensor, run};

    #[test]
    fn definitions() {
        let keep = [("keep_dims", Attr::Bool(true))];
        let drop = [("keep_dims", Attr::Bool(false))];
        let x = Tensor::new(DType::Bool, &[2, 2], &[1, 1, 0, 1]);
        let axis = Tensor::i32(&[1], &[1]);
        let all = run(&ALL, &drop, &[x.clone(), axis.clone()], false).unwrap();
        assert_eq!((all[0].bytes(), &*all[0].dims), (&[1, 0][..], &[2][..]));
        let any = run(&ANY, &keep, &[x, axis.clone()], false).unwrap();
        assert_eq!((any[0].bytes(), &*any[0].dims), (&[1, 1][..], &[2, 1][..]));
        let x = Tensor::i64(&[2, 2], &[1, 2, 3, i64::MAX]);
        let sum = run(&SUM, &drop, &[x.clone(), axis.clone()], false).unwrap();
        assert_eq!(sum[0].to_i64(), [3, i64::MIN + 2]);
        let max = run(&MAX, &drop, &[x, axis.clone()], false).unwrap();
        assert_eq!(max[0].to_i64(), [2, i64::MAX]);
        let empty = Tensor::f32(&[2, 0], &[]);
        let mean = run(&MEAN, &drop, &[empty, axis], false).unwrap();
        assert!(mean[0].to_f32().iter().all(|x| x.is_nan()));
    }
}
