//! Element-wise operations on the bits of integers. int32 is in host memory.

use crate::adapt::{Element, unserved};
use crate::def::{KernelDef, Variant, no_scratch};
use crate::dtype::DType;
use crate::error::Result;
use crate::parallel::Parallel;
use crate::shape::Shape;
use crate::zip::{Zip, outputs_broadcast, run_zip, zip};

macro_rules! bitwise {
    ($(
        $(#[$doc:meta])*
        $def:ident $op:ident $function:ident $cost:literal {
            $($type:ident $dtype:ident $host:ident => |$x:ident, $y:ident| $body:expr;)*
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
            variants: &[$(Variant { types: &[("T", DType::$dtype)], host: $host }),*],
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

const HOST: &[&str] = &["x", "y", "z"];
const DEVICE: &[&str] = &[];

bitwise! {
    /// Bits that are set in both.
    BITWISE_AND BitwiseAnd bitwise_and 1 {
        i32 I32 HOST => |x, y| x & y;
        i64 I64 DEVICE => |x, y| x & y;
        u32 U32 DEVICE => |x, y| x & y;
        u64 U64 DEVICE => |x, y| x & y;
    }
    /// Bits that are set in one.
    BITWISE_OR BitwiseOr bitwise_or 1 {
        i32 I32 HOST => |x, y| x | y;
        i64 I64 DEVICE => |x, y| x | y;
        u32 U32 DEVICE => |x, y| x | y;
        u64 U64 DEVICE => |x, y| x | y;
    }
    /// Bits that are set in exactly one.
    BITWISE_XOR BitwiseXor bitwise_xor 1 {
        i32 I32 HOST => |x, y| x ^ y;
        i64 I64 DEVICE => |x, y| x ^ y;
        u32 U32 DEVICE => |x, y| x ^ y;
        u64 U64 DEVICE => |x, y| x ^ y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits() {
        assert_eq!(BitwiseAnd.apply(0b1100_i32, 0b1010), 0b1000);
        assert_eq!(BitwiseOr.apply(0b1100_u64, 0b1010), 0b1110);
        assert_eq!(BitwiseXor.apply(-1_i64, 1), -2);
    }
}
