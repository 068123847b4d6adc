//! Element-wise operations of two arguments whose result has the arguments' type.
//!
//! One row per op: its function broadcasts over slices, its `KernelDef` works in place where it
//! may. Results are those of one rounding unless the row says otherwise; integers wrap.

use crate::adapt::{Element, unserved};
use crate::def::{KernelDef, Variant, no_scratch};
use crate::dtype::DType;
use crate::error::Result;
use crate::parallel::Parallel;
use crate::shape::Shape;
use crate::zip::{Zip, outputs_broadcast, run_zip, zip};

macro_rules! binary {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident $cost:literal {
            $($type:ident $dtype:ident => |$x:ident, $y:ident| $body:expr;)*
        }
    )*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default)]
        pub struct $op;

        $(
            impl Zip<$type> for $op {
                type Out = $type;

                const COST: usize = $cost;

                #[inline(always)]
                fn apply(self, $x: $type, $y: $type) -> $type {
                    $body
                }
            }
        )*

        $(#[$doc])*
        ///
        /// # Errors
        /// [`Error::Incompatible`](crate::error::Error::Incompatible) if the shapes can't be
        /// broadcast, [`Error::Length`](crate::error::Error::Length) if a slice does not fit its
        /// shape.
        pub fn $function<T: Element>(
            x: (&[T], &Shape),
            y: (&[T], &Shape),
            out: &mut [T],
            parallel: &dyn Parallel,
        ) -> Result<()>
        where
            $op: Zip<T, Out = T>,
        {
            zip($op, x, y, out, parallel)
        }

        #[doc = concat!("`", stringify!($op), "` of TensorFlow.")]
        pub static $def: KernelDef = KernelDef {
            op: stringify!($op),
            variants: &[$(Variant { types: &[("T", DType::$dtype)], host: &[] }),*],
            attrs: &[],
            forward: &[(0, 0), (1, 0)],
            outputs: outputs_broadcast,
            scratch: no_scratch,
            run: |call| match call.inputs.get(0, "x")?.dtype() {
                $(DType::$dtype => run_zip::<$op, $type>($op, call),)*
                found => Err(unserved("x", found)),
            },
        };
    )*};
}

binary! {
    /// Sum.
    ADD Add add 1 {
        f32 F32 => |x, y| x + y;
        f64 F64 => |x, y| x + y;
        i64 I64 => |x, y| x.wrapping_add(y);
    }
    /// Sum.
    ADD_V2 AddV2 add_v2 1 {
        f32 F32 => |x, y| x + y;
        f64 F64 => |x, y| x + y;
        i64 I64 => |x, y| x.wrapping_add(y);
    }
    /// Product.
    MUL Mul mul 1 {
        f32 F32 => |x, y| x * y;
        f64 F64 => |x, y| x * y;
        i64 I64 => |x, y| x.wrapping_mul(y);
    }
    /// Difference.
    SUB Sub sub 1 {
        f32 F32 => |x, y| x - y;
        f64 F64 => |x, y| x - y;
        i64 I64 => |x, y| x.wrapping_sub(y);
    }
}
