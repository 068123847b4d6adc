//! The micro-kernels of the tiles that most products consist of.
//!
//! Where two threads share a core, each has half of the instructions that it can begin in a cycle,
//! and those of a loop that a compiler makes of checked rows take longer than its multiplications.
//! So several columns are a turn of the loop, and nothing in it is checked.

use core::arch::asm;
use core::arch::x86_64::*;

/// Columns of A that are multiplied in a turn.
const STEP: usize = 4;

/// Where rows are that are a constant apart.
macro_rules! fixed {
    (all) => {
        ""
    };
    ($row:literal) => {
        concat!("{a} + ", $row, "*{row}")
    };
}

/// Where rows are that are not. An operand of `asm!` has to be named, if only in a comment.
macro_rules! apart {
    (all) => {
        "/* {three} {five} */"
    };
    (0) => {
        "{a}"
    };
    (1) => {
        "{a} + {row}"
    };
    (2) => {
        "{a} + 2*{row}"
    };
    (3) => {
        "{a} + {three}"
    };
    (4) => {
        "{a} + 4*{row}"
    };
    (5) => {
        "{a} + {five}"
    };
}

/// The instructions of column `$column` of a turn; `$bytes` has a row of B, whose vectors go to
/// registers from where they are.
macro_rules! column {
    (
        $at:ident, $column:literal, $bytes:literal, [$($b:literal from $from:literal)*],
        $($row:tt [$($sum:literal += $of:literal)*])*
    ) => {
        concat!(
            $("vmovups ", $b, ", [{b} + ", $column, "*", $bytes, " + ", $from, "]\n",)*
            $(
                "vbroadcastss ymm15, dword ptr [", $at!($row), " + ", $column, "*4]\n",
                $("vfmadd231ps ", $sum, ", ", $of, ", ymm15\n",)*
            )*
        )
    };
}

/// Adds products to sums: `$steps` times those of [`STEP`] columns of A, then those of `$tail` single
/// ones. `$at` names where the rows of A are, from operands with which they go on.
macro_rules! products {
    (
        $at:ident ($($operands:tt)*), $bytes:literal, $b:tt,
        [$($row:tt [$($sum:literal += $of:literal)*])*],
        $sums:ident, $a:expr, $b_rows:expr, $steps:expr, $tail:expr
    ) => {
        asm!(
            "test {steps}, {steps}",
            "je 3f",
            "2:",
            column!($at, 0, $bytes, $b, $($row [$($sum += $of)*])*),
            column!($at, 1, $bytes, $b, $($row [$($sum += $of)*])*),
            column!($at, 2, $bytes, $b, $($row [$($sum += $of)*])*),
            column!($at, 3, $bytes, $b, $($row [$($sum += $of)*])*),
            "add {a}, 4*4",
            concat!("add {b}, 4*", $bytes),
            "dec {steps}",
            "jne 2b",
            "3:",
            "test {tail}, {tail}",
            "je 5f",
            "4:",
            column!($at, 0, $bytes, $b, $($row [$($sum += $of)*])*),
            "add {a}, 4",
            concat!("add {b}, ", $bytes),
            "dec {tail}",
            "jne 4b",
            "5:",
            $at!(all),
            $($operands)*
            a = inout(reg) $a => _,
            b = inout(reg) $b_rows => _,
            steps = inout(reg) $steps => _,
            tail = inout(reg) $tail => _,
            inout("ymm0") $sums[0], inout("ymm1") $sums[1], inout("ymm2") $sums[2],
            inout("ymm3") $sums[3], inout("ymm4") $sums[4], inout("ymm5") $sums[5],
            inout("ymm6") $sums[6], inout("ymm7") $sums[7], inout("ymm8") $sums[8],
            inout("ymm9") $sums[9], inout("ymm10") $sums[10], inout("ymm11") $sums[11],
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack, readonly),
        )
    };
}

/// Defines a micro-kernel: rows of B as [`column`] has them, and rows of A with the registers of their
/// sums.
macro_rules! tile {
    ($(#[$doc:meta])* $name:ident, $bytes:literal, $b:tt, $($rows:tt)*) => {
        /// Adds to sums
        $(#[$doc])*
        ///
        /// # Safety
        /// The processor has AVX2 and FMA. Row `i` of A has `k` elements from `a + i * row` on,
        /// where `row` is `ROW`, or that of the argument if `ROW` is 0, and B has as many rows.
        #[inline]
        #[target_feature(enable = "avx2,fma")]
        pub(super) unsafe fn $name<const ROW: usize>(
            sums: &mut [__m256; 12],
            (a, b): (*const f32, *const f32),
            row: usize,
            k: usize,
        ) {
            let row = row * size_of::<f32>();
            if ROW == 0 {
                // SAFETY: as below, with rows that are not a constant apart.
                unsafe {
                    products!(
                        apart (
                            row = in(reg) row,
                            three = in(reg) 3 * row,
                            five = in(reg) 5 * row,
                        ),
                        $bytes, $b, [$($rows)*], sums, a, b, k / STEP, k % STEP
                    );
                }
                return;
            }
            // SAFETY: the loops go over `k` columns of A and rows of B, which the caller has; they
            // change the registers that they name, and no memory.
            unsafe {
                products!(
                    fixed (row = const ROW * size_of::<f32>(),),
                    $bytes, $b, [$($rows)*], sums, a, b, k / STEP, k % STEP
                );
            }
        }
    };
}

tile! {
    /// the products of 6 rows and 2 vectors.
    tile_6x2, 64, ["ymm12" from 0 "ymm13" from 32],
    0 ["ymm0" += "ymm12" "ymm1" += "ymm13"] 1 ["ymm2" += "ymm12" "ymm3" += "ymm13"]
    2 ["ymm4" += "ymm12" "ymm5" += "ymm13"] 3 ["ymm6" += "ymm12" "ymm7" += "ymm13"]
    4 ["ymm8" += "ymm12" "ymm9" += "ymm13"] 5 ["ymm10" += "ymm12" "ymm11" += "ymm13"]
}

tile! {
    /// the products of 6 rows and a vector.
    tile_6x1, 32, ["ymm12" from 0],
    0 ["ymm0" += "ymm12"] 1 ["ymm1" += "ymm12"] 2 ["ymm2" += "ymm12"]
    3 ["ymm3" += "ymm12"] 4 ["ymm4" += "ymm12"] 5 ["ymm5" += "ymm12"]
}

tile! {
    /// the products of 3 rows and 3 vectors.
    tile_3x3, 96, ["ymm12" from 0 "ymm13" from 32 "ymm14" from 64],
    0 ["ymm0" += "ymm12" "ymm1" += "ymm13" "ymm2" += "ymm14"]
    1 ["ymm3" += "ymm12" "ymm4" += "ymm13" "ymm5" += "ymm14"]
    2 ["ymm6" += "ymm12" "ymm7" += "ymm13" "ymm8" += "ymm14"]
}
