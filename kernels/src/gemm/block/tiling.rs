//! Which tiles a level has, and how tall they are.

use crate::base::level::Level;

/// Runs a block of code with the rows (`$mr`) and vectors (`$nv`) of a tile as constants, again
/// and again while there are rows left, from the tallest tile that the level has to those of one
/// row. The block takes rows away; `$enough` says how many must be left for a tile.
macro_rules! tiles {
    ($simd:ident, $vectors:expr, $enough:ident, $left:expr, |$mr:ident, $nv:ident| $body:block) => {
        // A panel has 1 to 3 vectors, or 1 where the level has no wider tile.
        match $vectors {
            1 => $crate::gemm::block::tiling::tiles!(@all $simd, 1, $enough, $left, $mr, $nv, $body),
            2 => $crate::gemm::block::tiling::tiles!(@all $simd, 2, $enough, $left, $mr, $nv, $body),
            _ => $crate::gemm::block::tiling::tiles!(@all $simd, 3, $enough, $left, $mr, $nv, $body),
        }
    };
    (@all $simd:ident, $v:literal, $enough:ident, $left:expr, $mr:ident, $nv:ident, $body:block) => {{
        $crate::gemm::block::tiling::tiles!(@one $simd, 14, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 8, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 7, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 6, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 4, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 3, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 1, $v, $enough, $left, $mr, $nv, $body);
    }};
    (@one $simd:ident, $r:literal, $v:literal, $enough:ident, $left:expr, $mr:ident, $nv:ident, $body:block) => {
        if const {
            $crate::gemm::block::tiling::has_tile($simd::REGISTERS, $r, $v)
                && $crate::gemm::block::tiling::$enough($r, $r)
        } {
            const $mr: usize = $r;
            const $nv: usize = $v;
            while $crate::gemm::block::tiling::$enough($r, $left) $body
        }
    };
}

pub(crate) use tiles;

/// Whether a level with so many registers has a tile of so many rows and vectors.
pub(crate) const fn has_tile(registers: usize, rows: usize, vectors: usize) -> bool {
    let tall = match registers {
        32 => matches!(rows, 14 | 8 | 7 | 4 | 1),
        // Two tiles of 3 rows and 3 vectors are a strip.
        16 if vectors == 3 => matches!(rows, 3 | 1),
        16 => matches!(rows, 6 | 4 | 1),
        _ => matches!(rows, 4 | 1),
    };
    tall && rows <= most_rows(registers)[vectors]
}

/// Whether so many rows that are left are for a tile that stores only those that are there. A tile
/// of one row takes as long as one of four: its sums wait for themselves.
pub(crate) const fn padded(rows: usize, left: usize) -> bool {
    match rows {
        8 => matches!(left, 8 | 12),
        7 => left >= 5 && left != 8,
        6 => left >= 5 && !matches!(left, 7 | 8),
        3 | 4 => left >= 2,
        _ => left >= rows,
    }
}

/// Whether tiles of so many rows are among those that a strip of all its rows is divided into.
pub(crate) const fn in_strip(registers: usize, rows: usize, vectors: usize) -> bool {
    let heights = [14, 7, 6, 4, 3, 1];
    let (mut left, mut i) = (most_rows(registers)[1], 0);
    while i < heights.len() {
        if has_tile(registers, heights[i], vectors) {
            if heights[i] == rows {
                return left >= rows;
            }
            left %= heights[i];
        }
        i += 1;
    }
    false
}

/// Whether tiles of so many rows are among those that a strip which is copied is divided into: it
/// has all its rows unless it is scaled.
pub(crate) const fn in_copy(registers: usize, rows: usize, vectors: usize) -> bool {
    #[cfg(not(without = "scaled"))]
    let cut = true;
    #[cfg(without = "scaled")]
    let cut = false;
    cut || in_strip(registers, rows, vectors)
}

/// Whether a level has a loop of its own for such tiles, which a strip of all its rows is divided into.
#[cfg(without = "images")]
pub(crate) const fn is_whole(level: Level, registers: usize, rows: usize, vectors: usize) -> bool {
    matches!(level, Level::Avx512 | Level::Avx2) && in_strip(registers, rows, vectors)
}

/// Whether rows that are not copied may be as many as the tallest tile of any level has: those of an
/// image, and those by a matrix that is not packed.
pub(crate) const fn in_rest(rows: usize) -> bool {
    const TALLEST: usize = 14;
    #[cfg(not(without = "images"))]
    if rows == TALLEST {
        return true;
    }
    #[cfg(not(without = "plain"))]
    if rows == TALLEST {
        return true;
    }
    rows < TALLEST
}

/// Whether so many rows that are left are for a tile that needs all its rows.
pub(crate) const fn exact(rows: usize, left: usize) -> bool {
    rows != 8 && left >= rows
}

/// Rows of the next strip of `left` that there are: few are divided so that no tile is nearly
/// empty.
#[inline(always)]
pub(crate) const fn next_strip(registers: usize, left: usize) -> usize {
    match (registers, left) {
        (32, 15 | 16) => 8,
        (16, 7 | 8) => left,
        _ => most_rows(registers)[1],
    }
}

/// Most rows of a tile of any level of the build.
pub const MAX_ROWS: usize = if cfg!(any(feature = "std", target_arch = "x86_64")) {
    14
} else if cfg!(target_arch = "aarch64") {
    6
} else {
    // Firmware: what is kept for each row is on its stack.
    4
};

/// Rows of a strip: the tallest tile of a level.
pub(crate) const fn strip_rows(level: Level) -> usize {
    match level {
        Level::Portable | Level::Simd128 => 4,
        Level::Neon | Level::Avx2 => 6,
        Level::Avx512 => 14,
    }
}

/// Most rows of a tile of 0 to 3 vectors, so that sums, a row of B and an element of A stay in
/// registers.
pub(crate) const fn most_rows(registers: usize) -> [usize; 4] {
    match registers {
        32 => [0, 14, 14, 7],
        16 => [0, 6, 6, 3],
        _ => [0, 4, 0, 0],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::gemm::{Gemm, Matrix, Packed, pack};
    use crate::simd::available;
    use crate::testing::numbers;

    /// The rows of the tiles of a strip that store only the rows that are there.
    fn tiles_of(registers: usize, vectors: usize, mut left: usize) -> Vec<usize> {
        let mut found = Vec::new();
        for rows in [14, 8, 7, 6, 4, 3, 1] {
            while has_tile(registers, rows, vectors) && padded(rows, left) {
                found.push(rows);
                left -= rows.min(left);
            }
        }
        assert_eq!(left, 0, "rows without a tile");
        found
    }

    /// The rows of the tiles of a strip of all its rows that need all their own.
    fn whole_tiles_of(registers: usize, vectors: usize) -> Vec<usize> {
        let (mut found, mut left) = (Vec::new(), most_rows(registers)[1]);
        for rows in [14, 8, 7, 6, 4, 3, 1] {
            while has_tile(registers, rows, vectors) && exact(rows, left) {
                found.push(rows);
                left -= rows;
            }
        }
        assert_eq!(left, 0, "rows without a tile");
        found
    }

    #[test]
    fn a_strip_has_the_tiles_that_are_made_for_it() {
        for registers in [8, 16, 32] {
            for vectors in (1..=3).filter(|&v| most_rows(registers)[v] > 0) {
                let found = whole_tiles_of(registers, vectors);
                for rows in [14, 8, 7, 6, 4, 3, 1] {
                    let made = in_strip(registers, rows, vectors);
                    let tile = (registers, rows, vectors);
                    assert_eq!(made, found.contains(&rows), "{tile:?}: {found:?}");
                }
            }
        }
        assert_eq!(whole_tiles_of(32, 1), [14]);
        assert_eq!(whole_tiles_of(32, 2), [14]);
        assert_eq!(whole_tiles_of(32, 3), [7, 7]);
        assert_eq!(whole_tiles_of(16, 3), [3, 3]);
    }

    #[test]
    fn a_tile_of_one_row_is_for_one_row_only() {
        for (registers, vectors) in [(32, 1), (32, 2), (32, 3), (16, 1), (16, 2)] {
            for rows in 1..=64 {
                let (mut left, mut found) = (rows, Vec::new());
                while left > 0 {
                    let strip = next_strip(registers, left).min(left);
                    assert!(strip <= MAX_ROWS);
                    found.extend(tiles_of(registers, vectors, strip));
                    left -= strip;
                }
                assert_eq!(found.contains(&1), rows == 1, "{rows}: {found:?}");
            }
        }
        assert_eq!(tiles_of(32, 2, 8), [8]);
        assert_eq!(tiles_of(32, 2, 12), [8, 4]);
        assert_eq!(tiles_of(16, 2, 8), [4, 4]);
        assert_eq!(
            (next_strip(32, 15), next_strip(32, 16), next_strip(16, 8)),
            (8, 8, 8)
        );
    }

    /// A row has the same bits in a product of any number of rows from two on.
    #[test]
    fn the_bits_of_a_row_do_not_depend_on_the_rows_beside_it() {
        const MOST: usize = 45;
        for (k, n) in [(1, 16), (70, 33), (129, 64), (600, 47)] {
            let (a, b, bias) = (numbers(MOST * k, 1), numbers(k * n, 2), numbers(n, 3));
            let before = numbers(MOST * n, 4);
            for level in available() {
                let mut memory = vec![f32::NAN; pack::packed_len(level, k, n).unwrap()];
                let b = Matrix::rows(&b, n);
                let b = Packed::pack_for(level, &b, (k, n), &mut memory, &Serial).unwrap();
                let run = |rows: usize| {
                    let mut c = before[..rows * n].to_vec();
                    let gemm = Gemm {
                        bias: Some(&bias),
                        accumulate: true,
                        ..Gemm::packed(rows, Matrix::rows(&a, k), b)
                    };
                    gemm.run(&mut c, n, &mut [], &Serial).unwrap();
                    c
                };
                let whole = run(MOST);
                for rows in 2..MOST {
                    for (i, (x, y)) in run(rows).iter().zip(&whole).enumerate() {
                        let at = (i / n, i % n);
                        let same = x.to_bits() == y.to_bits();
                        assert!(same, "{level:?} {rows}x{n}x{k} {at:?}: {x} {y}");
                    }
                }
            }
        }
    }
}
