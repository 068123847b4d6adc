//! The micro-kernels of the tiles that most products consist of.
//!
//! Where two threads share a core, each has half of the instructions that it can begin in a cycle,
//! and those of a loop that a compiler makes of checked rows take longer than its multiplications.
//! So an iteration multiplies several columns, and nothing in it is checked.

use core::arch::asm;
use core::arch::x86_64::*;

/// The instructions of column `$column` of an iteration: `$bytes` has a row of B, whose vectors go to
/// registers from where they are, and an element of each row of A meets them.
macro_rules! column {
    (
        $column:literal, $bytes:literal, [$($b:literal from $from:literal)*],
        $($row:literal [$($sum:literal += $of:literal)*])*
    ) => {
        concat!(
            $("vmovups ", $b, ", [{b} + ", $column, "*", $bytes, " + ", $from, "]\n",)*
            $(
                "vbroadcastss ymm15, dword ptr [{a} + ", $row, " + ", $column, "*4]\n",
                $("vfmadd231ps ", $sum, ", ", $of, ", ymm15\n",)*
            )*
        )
    };
}

/// Defines a micro-kernel: rows of B as [`column`] has them, and where the rows of A are, with the
/// registers of their sums.
macro_rules! tile {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $b:tt, $($row:literal $sums:tt)*) => {
        /// Adds to sums
        $(#[$doc])*
        ///
        /// # Safety
        /// The processor has AVX2 and FMA. Row `i` of A has `k` elements from `a + i * row` on, and
        /// B has as many rows.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(super) unsafe fn $name(
            sums: &mut [__m256; 12],
            (a, b): (*const f32, *const f32),
            (row, k): (usize, usize),
        ) {
            let row = row * size_of::<f32>();
            // SAFETY: the loops go over `k` columns of A and rows of B, which the caller has, four
            // and then one at a time; they change the registers that they name, and no memory.
            unsafe {
                asm!(
                    // An operand has to be named.
                    "/* {three} {five} */", "test {steps}, {steps}", "je 3f", "2:",
                    column!(0, $bytes, $b, $($row $sums)*),
                    column!(1, $bytes, $b, $($row $sums)*),
                    column!(2, $bytes, $b, $($row $sums)*),
                    column!(3, $bytes, $b, $($row $sums)*),
                    "add {a}, 4*4", concat!("add {b}, 4*", $bytes), "dec {steps}", "jne 2b", "3:",
                    "test {rest}, {rest}", "je 5f", "4:",
                    column!(0, $bytes, $b, $($row $sums)*),
                    "add {a}, 4", concat!("add {b}, ", $bytes), "dec {rest}", "jne 4b", "5:",
                    a = inout(reg) a => _, b = inout(reg) b => _,
                    steps = inout(reg) k / 4 => _, rest = inout(reg) k % 4 => _,
                    row = in(reg) row, three = in(reg) 3 * row, five = in(reg) 5 * row,
                    inout("ymm0") sums[0], inout("ymm1") sums[1], inout("ymm2") sums[2],
                    inout("ymm3") sums[3], inout("ymm4") sums[4], inout("ymm5") sums[5],
                    inout("ymm6") sums[6], inout("ymm7") sums[7], inout("ymm8") sums[8],
                    inout("ymm9") sums[9], inout("ymm10") sums[10], inout("ymm11") sums[11],
                    out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
                    options(nostack, readonly),
                );
            }
        }
    };
}

tile! {
    /// the products of 6 rows and 2 vectors.
    tile_6x2, 64, ["ymm12" from 0 "ymm13" from 32],
    "0" ["ymm0" += "ymm12" "ymm1" += "ymm13"] "{row}" ["ymm2" += "ymm12" "ymm3" += "ymm13"]
    "2*{row}" ["ymm4" += "ymm12" "ymm5" += "ymm13"] "{three}" ["ymm6" += "ymm12" "ymm7" += "ymm13"]
    "4*{row}" ["ymm8" += "ymm12" "ymm9" += "ymm13"] "{five}" ["ymm10" += "ymm12" "ymm11" += "ymm13"]
}

tile! {
    /// the products of 6 rows and a vector.
    tile_6x1, 32, ["ymm12" from 0],
    "0" ["ymm0" += "ymm12"] "{row}" ["ymm1" += "ymm12"] "2*{row}" ["ymm2" += "ymm12"]
    "{three}" ["ymm3" += "ymm12"] "4*{row}" ["ymm4" += "ymm12"] "{five}" ["ymm5" += "ymm12"]
}

tile! {
    /// the products of 3 rows and 3 vectors.
    tile_3x3, 96, ["ymm12" from 0 "ymm13" from 32 "ymm14" from 64],
    "0" ["ymm0" += "ymm12" "ymm1" += "ymm13" "ymm2" += "ymm14"]
    "{row}" ["ymm3" += "ymm12" "ymm4" += "ymm13" "ymm5" += "ymm14"]
    "2*{row}" ["ymm6" += "ymm12" "ymm7" += "ymm13" "ymm8" += "ymm14"]
}
