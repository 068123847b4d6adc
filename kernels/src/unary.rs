//! Element-wise operations of one argument whose result has the argument's type.
//!
//! One row per op: its function works on slices, its `KernelDef` in place where it may. Tolerances
//! against exact arithmetic are 1 ulp unless the row says otherwise.

use crate::adapt::{Element, unserved};
use crate::def::{KernelDef, Variant, no_scratch};
use crate::dtype::DType;
use crate::error::Result;
use crate::map::{Map, map, outputs_like_first, run_map};
use crate::math;
use crate::parallel::Parallel;

macro_rules! unary {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident $cost:literal {
            $($type:ident $dtype:ident => |$x:ident| $body:expr;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        $(
            impl Map<$type> for $op {
                type Out = $type;

                const COST: usize = $cost;

                #[inline(always)]
                fn apply(self, $x: $type) -> $type {
                    $body
                }
            }
        )*

        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Length`](crate::error::Error::Length) unless `out` is as long as `x`.
        pub fn $function<T: Element>(x: &[T], out: &mut [T], parallel: &dyn Parallel) -> Result<()>
        where
            $op: Map<T, Out = T>,
        {
            map($op, x, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: KernelDef = KernelDef {
            op: stringify!($op),
            variants: &[$(Variant { types: &[("T", DType::$dtype)], host: &[] }),*],
            attrs: &[],
            forward: &[(0, 0)],
            outputs: outputs_like_first,
            scratch: no_scratch,
            run: |call| match call.inputs.get(0, "x")?.dtype() {
                $(DType::$dtype => run_map::<$op, $type>($op, call),)*
                found => Err(unserved("x", found)),
            },
        };
    )*};
}

unary! {
    /// Absolute value.
    ABS Abs abs 1 { f32 F32 => |x| x.abs(); f64 F64 => |x| x.abs(); i64 I64 => |x| x.wrapping_abs(); }
    /// Smallest integer not below.
    CEIL Ceil ceil 1 { f32 F32 => |x| math::ceil(x); }
    /// Largest integer not above.
    FLOOR Floor floor 1 { f32 F32 => |x| math::floor(x); }
    /// Negation.
    NEG Neg neg 1 { f32 F32 => |x| -x; f64 F64 => |x| -x; i64 I64 => |x| x.wrapping_neg(); }
    /// Zero for negative values; NaN stays.
    RELU Relu relu 1 {
        f32 F32 => |x| if x < 0.0 { 0.0 } else { x };
        f64 F64 => |x| if x < 0.0 { 0.0 } else { x };
        i64 I64 => |x| x.max(0);
    }
    /// Square.
    SQUARE Square square 1 { f32 F32 => |x| x * x; f64 F64 => |x| x * x; i64 I64 => |x| x.wrapping_mul(x); }
}
