//! Element-wise operations on the bits of integers. int32 is in host memory.

use crate::frame::zip::call::zip_kernels;

zip_kernels! {
    forward &[(0, 0), (1, 0)];
    outputs outputs_broadcast;
    /// Bits that are set in both.
    BITWISE_AND BitwiseAnd bitwise_and 1 {
        i32 I32 in host => |x, y| x & y;
        i64 I64 => |x, y| x & y;
        u32 U32 => |x, y| x & y;
        u64 U64 => |x, y| x & y;
    }
    /// Bits that are set in one.
    BITWISE_OR BitwiseOr bitwise_or 1 {
        i32 I32 in host => |x, y| x | y;
        i64 I64 => |x, y| x | y;
        u32 U32 => |x, y| x | y;
        u64 U64 => |x, y| x | y;
    }
    /// Bits that are set in exactly one.
    BITWISE_XOR BitwiseXor bitwise_xor 1 {
        i32 I32 in host => |x, y| x ^ y;
        i64 I64 => |x, y| x ^ y;
        u32 U32 => |x, y| x ^ y;
        u64 U64 => |x, y| x ^ y;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::frame::zip::Zip;

    #[test]
    fn bits() {
        assert_eq!(BitwiseAnd.apply(0b1100_i32, 0b1010), 0b1000);
        assert_eq!(BitwiseOr.apply(0b1100_u64, 0b1010), 0b1110);
        assert_eq!(BitwiseXor.apply(-1_i64, 1), -2);
    }
}
