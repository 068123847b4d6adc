//! The micro-kernels of the tiles that most products consist of.
//!
//! Left to itself, a compiler loads an element of A into all lanes and then multiplies every vector
//! of B by it. A multiplication that does this loading itself saves an instruction, and where two
//! threads share a core, instructions are what limits a tile. But if all of them load, a core has
//! more to load than it can in the time of the multiplications. So every other row does.

use core::arch::asm;
use core::arch::x86_64::*;

use crate::simd::patch::Finish;

/// Columns of A that are multiplied at a time.
pub(super) const STEP: usize = 4;
/// The register of a sum, by its name of fewer lanes if it has one.
macro_rules! sum {
    ($sum:tt) => {
        $sum
    };
    ($sum:tt $name:tt) => {
        $name
    };
}

/// Where a row is, if rows are a constant apart.
macro_rules! fixed {
    ($row:literal $at:literal) => {
        concat!("{a} + ", $row, "*{row}")
    };
}

/// Where it is if they are not: `next` has row 7, the others lie some distances behind.
macro_rules! apart {
    ($row:literal $at:literal) => {
        $at
    };
}

/// The instructions of one column of A: `$column` is its number among [`STEP`], `$bytes` has a row
/// of B, whose vectors go to registers from where they are. The element of an `each` row is loaded
/// by each multiplication, that of a `once` row before them.
macro_rules! column {
    ($at:ident, $column:literal, $bytes:literal, $b:tt, $($kind:ident $row:literal $place:literal $sums:tt)*) => {
        concat!(
            column!(@load $column, $bytes, $b),
            $(column!(@$kind $at, $column, $row $place, $b, $sums),)*
        )
    };
    (@load $column:literal, $bytes:literal, [$($b:tt from $from:literal by $lanes:literal $element:literal)*]) => {
        concat!($("vmovups ", $b, ", [{b} + ", $column, "*", $bytes, " + ", $from, "]\n",)*)
    };
    (
        @each $at:ident, $column:literal, $row:literal $place:literal,
        [$($b:tt from $from:literal by $lanes:literal $element:literal)*], [$($sum:tt $(as $name:tt)? is $index:literal)*]
    ) => {
        concat!($(
            "vfmadd231ps ", sum!($sum $($name)?), ", ", $b,
            ", dword ptr [", $at!($row $place), " + ", $column, "*4]{{", $lanes, "}}\n",
        )*)
    };
    (
        @once $at:ident, $column:literal, $row:literal $place:literal,
        [$($b:tt from $from:literal by $lanes:literal $element:literal)*], [$($sum:tt $(as $name:tt)? is $index:literal)*]
    ) => {
        concat!(
            "vbroadcastss zmm31, dword ptr [", $at!($row $place), " + ", $column, "*4]\n",
            $("vfmadd231ps ", sum!($sum $($name)?), ", ", $b, ", ", $element, "\n",)*
        )
    };
}

/// Adds products to the sums of a tile: `$steps` times those of [`STEP`] columns of A, then those of
/// `$tail` single ones. `$at` names where the rows of A are, from operands with the next of which
/// they go on.
macro_rules! products {
    (
        $at:ident ($($operands:tt)*) [$($pointer:literal)*], $bytes:literal,
        [$($b:tt from $from:literal by $lanes:literal $element:literal)*],
        [$($kind:ident $row:literal $place:literal [$($sum:tt $(as $name:tt)? is $index:literal)*])*],
        $sums:ident, $a:expr, $b_rows:expr, $steps:expr, $tail:expr, $ahead:expr
    ) => {
        asm!(
            "test {steps}, {steps}", "je 3f", "2:",
            column!($at, 0, $bytes, [$($b from $from by $lanes $element)*], $($kind $row $place [$($sum $(as $name)? is $index)*])*),
            column!($at, 1, $bytes, [$($b from $from by $lanes $element)*], $($kind $row $place [$($sum $(as $name)? is $index)*])*),
            column!($at, 2, $bytes, [$($b from $from by $lanes $element)*], $($kind $row $place [$($sum $(as $name)? is $index)*])*),
            column!($at, 3, $bytes, [$($b from $from by $lanes $element)*], $($kind $row $place [$($sum $(as $name)? is $index)*])*),
            "prefetcht1 [{ahead}]", "prefetcht1 [{ahead} + 64]", "add {ahead}, {apart}",
            $(concat!("add ", $pointer, ", 4*4"),)*
            concat!("add {b}, 4*", $bytes), "dec {steps}", "jne 2b", "3:",
            "test {tail}, {tail}", "je 5f", "4:",
            column!($at, 0, $bytes, [$($b from $from by $lanes $element)*], $($kind $row $place [$($sum $(as $name)? is $index)*])*),
            $(concat!("add ", $pointer, ", 4"),)*
            concat!("add {b}, ", $bytes), "dec {tail}", "jne 4b", "5:",
            $($operands)*
            a = inout(reg) $a => _, b = inout(reg) $b_rows => _,
            steps = inout(reg) $steps => _, tail = inout(reg) $tail => _,
            ahead = inout(reg) $ahead.0 => _, apart = in(reg) $ahead.1,
            $($(inout($sum) $sums[$index],)*)*
            $(out($b) _,)*
            out("zmm31") _, options(nostack, readonly),
        )
    };
}

/// The columns of A: `lines` times `k`, the first ones of its lines `pitch` elements apart.
#[derive(Clone, Copy)]
pub(super) struct Lines {
    /// Elements from one row to the next, where that is not a constant.
    pub row: usize,
    pub lines: usize,
    pub pitch: usize,
    pub k: usize,
}

/// In which of a row's vectors the sum of this number is.
const fn vector(index: usize, vectors: usize) -> usize {
    index % vectors
}

/// Defines a micro-kernel that adds to the sums of a tile: rows of B as [`column`] has them, and
/// rows of A with the registers of their sums.
#[cfg(not(without = "images"))]
macro_rules! sums {
    (
        $(#[$doc:meta])*
        $name:ident, ($sums:literal, $vectors:literal, $half:literal), $bytes:literal,
        $b:tt,
        $($kind:ident $row:literal $place:literal [$($sum:tt $(as $half_sum:tt)? is $index:literal)*])*
    ) => {
        /// Adds to some sums
        $(#[$doc])*
        ///
        /// # Safety
        /// The processor has AVX-512 F. From `a` on there are rows of `ROW` elements, of each of
        /// which `STEP * steps` are there, and from `b` on as many rows. `ahead` may point
        /// anywhere.
        #[inline]
        #[target_feature(enable = "avx512f")]
        pub(super) unsafe fn $name<const ROW: usize>(
            sums: &mut [__m512],
            a: *const f32,
            b: *const f32,
            steps: usize,
            ahead: (*const f32, usize),
        ) {
            let Some(sums) = sums.first_chunk_mut::<$sums>() else { return };
            // SAFETY: the loop runs `steps` times, each time over `STEP` columns of A and rows of
            // B, which the caller has; it changes the registers that it names, and no memory. What
            // it asks for ahead has no effect, wherever that is.
            unsafe {
                products!(
                    fixed (row = const ROW * size_of::<f32>(),) ["{a}"], $bytes, $b,
                    [$($kind $row $place [$($sum $(as $half_sum)? is $index)*])*],
                    sums, a, b, steps, 0_usize, ahead
                );
            }
        }
    };
}

/// As [`sums`], for micro-kernels that finish and write their sums.
macro_rules! whole {
    (
        $(#[$doc:meta])*
        $whole:ident, ($sums:literal, $vectors:literal, $half:literal), $bytes:literal,
        $b:tt,
        $($kind:ident $row:literal $place:literal [$($sum:tt $(as $half_sum:tt)? is $index:literal)*])*
    ) => {
        /// Finishes and writes
        $(#[$doc])*
        /// Sums stay in registers from the first product to the output, which counts where there
        /// are few columns of A.
        ///
        /// # Safety
        /// The processor has AVX-512 F. Row `i` of A in line `j` has `k` elements from
        /// `a + i * row + j * pitch` on, where `row` is `ROW`, or `of.row` if that is 0; and B has
        /// a row for each of them, line after line, from `b` on. Bias and output have the columns
        /// of `mask` in their last vector and all in those before, and the output a row for each of
        /// A's, `ld` apart, that nobody else sees. `ahead` may point anywhere.
        #[target_feature(enable = "avx512f")]
        pub(super) unsafe fn $whole<const ROW: usize>(
            (a, b): (*const f32, *const f32),
            of: Lines,
            ahead: (*const f32, usize),
            (to, ld, mask): (*mut f32, usize, __mmask16),
            finish: &Finish<'_>,
        ) {
            let mut sums = [_mm512_setzero_ps(); $sums];
            for line in 0..of.lines {
                let (a, b) = (
                    a.wrapping_add(line * of.pitch),
                    b.wrapping_add(line * of.k * $vectors * super::LANES),
                );
                if ROW == 0 {
                    let one = of.row * size_of::<f32>();
                    // SAFETY: as for the sums alone, with a loop over what is left of the columns.
                    unsafe {
                        products!(
                            apart (
                                next = inout(reg) a.wrapping_add(7 * of.row) => _,
                                one = in(reg) one, three = in(reg) 3 * one, five = in(reg) 5 * one,
                            ) ["{a}" "{next}"], $bytes, $b,
                            [$($kind $row $place [$($sum $(as $half_sum)? is $index)*])*],
                            sums, a, b, of.k / STEP, of.k % STEP, ahead
                        );
                    }
                    continue;
                }
                // SAFETY: as above.
                unsafe {
                    products!(
                        fixed (row = const ROW * size_of::<f32>(),) ["{a}"], $bytes, $b,
                        [$($kind $row $place [$($sum $(as $half_sum)? is $index)*])*],
                        sums, a, b, of.k / STEP, of.k % STEP, ahead
                    );
                }
            }
            let lanes = |v: usize| if v + 1 == $vectors { mask } else { !0 };
            let mut bias = [_mm512_setzero_ps(); $vectors];
            if let Some(from) = finish.bias {
                for (v, bias) in bias.iter_mut().enumerate() {
                    let from = from.as_ptr().wrapping_add(v * super::LANES);
                    // SAFETY: the caller has these columns.
                    *bias = unsafe { _mm512_maskz_loadu_ps(lanes(v), from) };
                }
            }
            $($(sums[$index] = _mm512_add_ps(sums[$index], bias[vector($index, $vectors)]);)*)*
            let at = |row: usize, v: usize| to.wrapping_add(row * ld + v * super::LANES);
            if finish.accumulate {
                $($(
                    // SAFETY: a row of the output, and of it the columns that the caller has.
                    let old = unsafe {
                        _mm512_maskz_loadu_ps(lanes(vector($index, $vectors)), at($row, vector($index, $vectors)))
                    };
                    sums[$index] = _mm512_add_ps(sums[$index], old);
                )*)*
            }
            if let Some((low, high)) = finish.clamp {
                let (low, high) = (_mm512_set1_ps(low), _mm512_set1_ps(high));
                $($(
                    sums[$index] = _mm512_min_ps(high, _mm512_max_ps(low, sums[$index]));
                )*)*
            }
            // What is stored under a mask can't be read again at once, and takes some processors
            // several times as long.
            if mask == (if $half { 0xff } else { !0 }) {
                $($(
                    let to = at($row, vector($index, $vectors));
                    if $half && vector($index, $vectors) + 1 == $vectors {
                        // SAFETY: as for what it held; these are all columns of the last vector.
                        unsafe { _mm256_storeu_ps(to, _mm512_castps512_ps256(sums[$index])) };
                    } else {
                        // SAFETY: as for what it held; all columns are there.
                        unsafe { _mm512_storeu_ps(to, sums[$index]) };
                    }
                )*)*
            } else {
                $($(
                    let to = at($row, vector($index, $vectors));
                    if vector($index, $vectors) + 1 == $vectors {
                        // SAFETY: as for what it held.
                        unsafe { _mm512_mask_storeu_ps(to, mask, sums[$index]) };
                    } else {
                        // SAFETY: as for what it held; only the last vector may be cut.
                        unsafe { _mm512_storeu_ps(to, sums[$index]) };
                    }
                )*)*
            }
        }
    };
}

/// Both micro-kernels of a tile.
macro_rules! tile {
    ($(#[$doc:meta])* $name:ident, $whole:ident, $($tile:tt)*) => {
        #[cfg(not(without = "images"))]
        sums! { $(#[$doc])* $name, $($tile)* }
        whole! { $(#[$doc])* $whole, $($tile)* }
    };
}

tile! {
    /// the products of 14 rows and 2 vectors.
    tile_14x2, whole_14x2, (28, 2, false), 128,
    ["zmm28" from 0 by "1to16" "zmm31" "zmm29" from 64 by "1to16" "zmm31"],
    each 0 "{a}" ["zmm0" is 0 "zmm1" is 1] once 1 "{a} + {one}" ["zmm2" is 2 "zmm3" is 3]
    each 2 "{a} + 2*{one}" ["zmm4" is 4 "zmm5" is 5]
    once 3 "{a} + {three}" ["zmm6" is 6 "zmm7" is 7]
    each 4 "{a} + 4*{one}" ["zmm8" is 8 "zmm9" is 9]
    once 5 "{a} + {five}" ["zmm10" is 10 "zmm11" is 11]
    each 6 "{a} + 2*{three}" ["zmm12" is 12 "zmm13" is 13]
    once 7 "{next}" ["zmm14" is 14 "zmm15" is 15]
    each 8 "{next} + {one}" ["zmm16" is 16 "zmm17" is 17]
    once 9 "{next} + 2*{one}" ["zmm18" is 18 "zmm19" is 19]
    each 10 "{next} + {three}" ["zmm20" is 20 "zmm21" is 21]
    once 11 "{next} + 4*{one}" ["zmm22" is 22 "zmm23" is 23]
    each 12 "{next} + {five}" ["zmm24" is 24 "zmm25" is 25]
    once 13 "{next} + 2*{three}" ["zmm26" is 26 "zmm27" is 27]
}

tile! {
    /// the products of 7 rows and 3 vectors.
    tile_7x3, whole_7x3, (21, 3, false), 192,
    ["zmm28" from 0 by "1to16" "zmm31" "zmm29" from 64 by "1to16" "zmm31" "zmm30" from 128 by "1to16" "zmm31"],
    once 0 "{a}" ["zmm0" is 0 "zmm1" is 1 "zmm2" is 2]
    each 1 "{a} + {one}" ["zmm3" is 3 "zmm4" is 4 "zmm5" is 5]
    once 2 "{a} + 2*{one}" ["zmm6" is 6 "zmm7" is 7 "zmm8" is 8]
    once 3 "{a} + {three}" ["zmm9" is 9 "zmm10" is 10 "zmm11" is 11]
    each 4 "{a} + 4*{one}" ["zmm12" is 12 "zmm13" is 13 "zmm14" is 14]
    once 5 "{a} + {five}" ["zmm15" is 15 "zmm16" is 16 "zmm17" is 17]
    once 6 "{a} + 2*{three}" ["zmm18" is 18 "zmm19" is 19 "zmm20" is 20]
}

tile! {
    /// the products of 14 rows and a vector.
    tile_14x1, whole_14x1, (14, 1, false), 64,
    ["zmm28" from 0 by "1to16" "zmm31"],
    each 0 "{a}" ["zmm0" is 0] each 1 "{a} + {one}" ["zmm1" is 1]
    each 2 "{a} + 2*{one}" ["zmm2" is 2] each 3 "{a} + {three}" ["zmm3" is 3]
    each 4 "{a} + 4*{one}" ["zmm4" is 4] each 5 "{a} + {five}" ["zmm5" is 5]
    each 6 "{a} + 2*{three}" ["zmm6" is 6] each 7 "{next}" ["zmm7" is 7]
    each 8 "{next} + {one}" ["zmm8" is 8] each 9 "{next} + 2*{one}" ["zmm9" is 9]
    each 10 "{next} + {three}" ["zmm10" is 10] each 11 "{next} + 4*{one}" ["zmm11" is 11]
    each 12 "{next} + {five}" ["zmm12" is 12] each 13 "{next} + 2*{three}" ["zmm13" is 13]
}

whole! {
    /// the products of 14 rows, a vector and a half.
    whole_14x2_half, (28, 2, true), 128,
    ["zmm28" from 0 by "1to16" "zmm31" "ymm29" from 64 by "1to8" "ymm31"],
    each 0 "{a}" ["zmm0" is 0 "zmm1" as "ymm1" is 1]
    once 1 "{a} + {one}" ["zmm2" is 2 "zmm3" as "ymm3" is 3]
    each 2 "{a} + 2*{one}" ["zmm4" is 4 "zmm5" as "ymm5" is 5]
    once 3 "{a} + {three}" ["zmm6" is 6 "zmm7" as "ymm7" is 7]
    each 4 "{a} + 4*{one}" ["zmm8" is 8 "zmm9" as "ymm9" is 9]
    once 5 "{a} + {five}" ["zmm10" is 10 "zmm11" as "ymm11" is 11]
    each 6 "{a} + 2*{three}" ["zmm12" is 12 "zmm13" as "ymm13" is 13]
    once 7 "{next}" ["zmm14" is 14 "zmm15" as "ymm15" is 15]
    each 8 "{next} + {one}" ["zmm16" is 16 "zmm17" as "ymm17" is 17]
    once 9 "{next} + 2*{one}" ["zmm18" is 18 "zmm19" as "ymm19" is 19]
    each 10 "{next} + {three}" ["zmm20" is 20 "zmm21" as "ymm21" is 21]
    once 11 "{next} + 4*{one}" ["zmm22" is 22 "zmm23" as "ymm23" is 23]
    each 12 "{next} + {five}" ["zmm24" is 24 "zmm25" as "ymm25" is 25]
    once 13 "{next} + 2*{three}" ["zmm26" is 26 "zmm27" as "ymm27" is 27]
}

whole! {
    /// the products of 7 rows, 2 vectors and a half.
    whole_7x3_half, (21, 3, true), 192,
    ["zmm28" from 0 by "1to16" "zmm31" "zmm29" from 64 by "1to16" "zmm31" "ymm30" from 128 by "1to8" "ymm31"],
    once 0 "{a}" ["zmm0" is 0 "zmm1" is 1 "zmm2" as "ymm2" is 2]
    each 1 "{a} + {one}" ["zmm3" is 3 "zmm4" is 4 "zmm5" as "ymm5" is 5]
    once 2 "{a} + 2*{one}" ["zmm6" is 6 "zmm7" is 7 "zmm8" as "ymm8" is 8]
    once 3 "{a} + {three}" ["zmm9" is 9 "zmm10" is 10 "zmm11" as "ymm11" is 11]
    each 4 "{a} + 4*{one}" ["zmm12" is 12 "zmm13" is 13 "zmm14" as "ymm14" is 14]
    once 5 "{a} + {five}" ["zmm15" is 15 "zmm16" is 16 "zmm17" as "ymm17" is 17]
    once 6 "{a} + 2*{three}" ["zmm18" is 18 "zmm19" is 19 "zmm20" as "ymm20" is 20]
}
