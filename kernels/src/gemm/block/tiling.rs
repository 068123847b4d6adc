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
        $crate::gemm::block::tiling::tiles!(@one $simd, 7, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 6, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 4, $v, $enough, $left, $mr, $nv, $body);
        $crate::gemm::block::tiling::tiles!(@one $simd, 1, $v, $enough, $left, $mr, $nv, $body);
    }};
    (@one $simd:ident, $r:literal, $v:literal, $enough:ident, $left:expr, $mr:ident, $nv:ident, $body:block) => {
        if const { $crate::gemm::block::tiling::has_tile($simd::REGISTERS, $r, $v) } {
            const $mr: usize = $r;
            const $nv: usize = $v;
            while $left >= const { $crate::gemm::block::tiling::$enough($r) } $body
        }
    };
}

pub(crate) use tiles;

/// Whether a level with so many registers has a tile of so many rows and vectors.
pub(crate) const fn has_tile(registers: usize, rows: usize, vectors: usize) -> bool {
    let tall = match registers {
        32 => matches!(rows, 14 | 7 | 4 | 1),
        16 => matches!(rows, 6 | 4 | 1),
        _ => matches!(rows, 4 | 1),
    };
    tall && rows <= most_rows(registers)[vectors]
}

/// Rows that must be left for a tile that stores only those that are there.
pub(crate) const fn padded(rows: usize) -> usize {
    match rows {
        7 | 6 => 5,
        4 => 2,
        _ => rows,
    }
}

/// Rows that must be left for a tile that needs all its rows.
pub(crate) const fn exact(rows: usize) -> usize {
    rows
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
        16 => [0, 6, 6, 4],
        _ => [0, 4, 0, 0],
    }
}
