//! B in the order in which the micro-kernels read it.
//!
//! B is cut into panels of columns. Each is `width` columns wide, a multiple of the vector length,
//! and holds its rows one after the other; missing columns are 0. All panels are as wide as
//! [`panel`] says but the last, which takes what is left, up to half as much again.

use core::ops::Range;

use crate::base::error::{Error, Result};
use crate::base::level::Level;
use crate::base::parallel::{Parallel, Serial};
use crate::simd::blocks::{Cut, for_each_block, for_each_chunk};
use crate::simd::dispatch;

mod turned;

use turned::Lines;

/// Lanes of the vectors of a level.
#[inline]
pub const fn lanes(level: Level) -> usize {
    match level {
        Level::Portable | Level::Simd128 | Level::Neon | Level::Avx2 => 8,
        Level::Avx512 => 16,
    }
}

/// Columns of all panels but the last.
#[inline]
pub const fn panel(level: Level) -> usize {
    match level {
        Level::Portable | Level::Simd128 => 8,
        Level::Neon | Level::Avx2 => 16,
        Level::Avx512 => 32,
    }
}

/// Fails unless the processor has the instructions of a level.
#[inline]
pub(crate) fn check_level(level: Level) -> Result<()> {
    if !level.is_here() {
        return Err(Error::Value {
            argument: "level",
            expected: "an instruction set that the processor has",
        });
    }
    Ok(())
}

/// Elements of a packed matrix of `k` x `n`.
///
/// # Errors
/// [`Error::Overflow`]; [`Error::Value`] for a level that the processor does not have.
#[inline]
pub fn packed_len(level: Level, k: usize, n: usize) -> Result<usize> {
    check_level(level)?;
    n.checked_next_multiple_of(lanes(level))
        .and_then(|n| n.checked_mul(k))
        .filter(|&len| len <= isize::MAX as usize / size_of::<f32>())
        .ok_or(Error::Overflow { argument: "b" })
}

/// The panels of a matrix of `n` columns.
#[inline]
pub fn panels(level: Level, n: usize) -> usize {
    (n.next_multiple_of(lanes(level)) / panel(level)).max(usize::from(n > 0))
}

/// First column and width, in memory, of panel `index`.
#[inline(always)]
pub fn panel_at(level: Level, n: usize, index: usize) -> (usize, usize) {
    let first = index * panel(level);
    if index + 1 < panels(level, n) {
        (first, panel(level))
    } else {
        (first, n.next_multiple_of(lanes(level)) - first)
    }
}

/// A matrix in memory: `data[row * ld + column]`, or, if `transposed`, `data[column * ld + row]`.
#[derive(Clone, Copy, Debug)]
pub struct Matrix<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Elements from one line to the next.
    pub ld: usize,
    /// Whether the lines are columns.
    #[cfg(not(without = "transposed"))]
    pub transposed: bool,
}

impl<'a> Matrix<'a> {
    /// A dense matrix of `ld` columns.
    #[must_use]
    pub const fn rows(data: &'a [f32], ld: usize) -> Self {
        Self {
            data,
            ld,
            #[cfg(not(without = "transposed"))]
            transposed: false,
        }
    }

    #[cfg(not(without = "transposed"))]
    /// The transpose of a dense matrix of `ld` columns.
    #[must_use]
    pub const fn columns(data: &'a [f32], ld: usize) -> Self {
        Self {
            data,
            ld,
            transposed: true,
        }
    }

    /// Fails unless a matrix of `rows` x `columns` fits.
    pub(crate) fn check(&self, argument: &'static str, rows: usize, columns: usize) -> Result<()> {
        #[cfg(not(without = "transposed"))]
        let (rows, columns) = if self.transposed {
            (columns, rows)
        } else {
            (rows, columns)
        };
        if rows == 0 || columns == 0 {
            return Ok(());
        }
        if self.ld < columns && rows > 1 {
            return Err(Error::Value {
                argument,
                expected: "lines that do not overlap",
            });
        }
        let expected = (rows - 1)
            .checked_mul(self.ld)
            .and_then(|len| len.checked_add(columns))
            .ok_or(Error::Overflow { argument })?;
        if self.data.len() < expected {
            return Err(Error::Length {
                argument,
                found: self.data.len(),
                expected,
            });
        }
        Ok(())
    }

    /// The elements of the same matrix without its first columns.
    pub(crate) fn skip_columns(&self, columns: usize) -> &'a [f32] {
        #[cfg(not(without = "transposed"))]
        let columns = if self.transposed {
            columns * self.ld
        } else {
            columns
        };
        self.data.get(columns..).unwrap_or(&[])
    }

    /// The same matrix without its first columns.
    pub(crate) fn skip_columns_of(&self, columns: usize) -> Self {
        Self {
            data: self.skip_columns(columns),
            ..*self
        }
    }

    #[cfg(not(without = "plain"))]
    /// The same matrix without its first rows.
    pub(crate) fn skip_rows(&self, rows: usize) -> Self {
        let skip = if self.transposed {
            rows
        } else {
            rows * self.ld
        };
        Self {
            data: self.data.get(skip..).unwrap_or(&[]),
            ..*self
        }
    }
}

/// Matrices of equal size that stand one below the other.
pub(crate) struct Stack<'a> {
    /// The first one.
    pub matrix: Matrix<'a>,
    /// How many there are.
    pub count: usize,
    /// Elements from one to the next.
    pub distance: usize,
}

impl<'a> Stack<'a> {
    /// A single matrix.
    pub fn one(matrix: Matrix<'a>) -> Self {
        Self {
            matrix,
            count: 1,
            distance: 0,
        }
    }
}

/// Packs `k` rows and `n` columns of `b` into `out`, which is exactly as long as [`packed_len`]
/// says. `b` has been checked.
pub(crate) fn pack(
    level: Level,
    b: &Stack<'_>,
    (k, n): (usize, usize),
    out: &mut [f32],
    parallel: &dyn Parallel,
) {
    if k == 0 || n == 0 {
        return;
    }
    let last = panels(level, n) - 1;
    let width = panel(level);
    // The last panel may be wider than the others, so it goes alone.
    let (body, tail) = out.split_at_mut(k * width * last);
    let group = GROUP.min(last / (2 * parallel.threads())).max(1);
    for_each_chunk(parallel, body, k * width * group, |start, out| {
        pack_panels(level, b, (k, n), start / k, width, out);
    });
    let (first, width) = panel_at(level, n, last);
    pack_panels(level, b, (k, n), first, width, tail);
}

/// Packs as [`pack`] does, in one task for the columns of each block of a product.
pub(crate) fn pack_blocks(
    level: Level,
    b: &Stack<'_>,
    (k, n): (usize, usize),
    cut: Cut,
    out: &mut [f32],
    parallel: &dyn Parallel,
) {
    if k == 0 || cut.columns + cut.rest >= n {
        pack(level, b, (k, n), out, parallel);
        return;
    }
    let cut = Cut {
        rows: 1,
        columns: cut.columns * k,
        rest: cut.rest * k,
    };
    let len = out.len();
    for_each_block(parallel, out, len, (1, len), cut, |mut block| {
        let first = block.column / k;
        let out = block.row(0);
        let b = Stack {
            matrix: b.matrix.skip_columns_of(first),
            ..*b
        };
        let columns = (out.len() / k).min(n - first);
        pack(level, &b, (k, columns), out, &Serial);
    });
}

/// Panels whose parts of a row are copied one after the other: memory is read in longer pieces.
const GROUP: usize = 8;

/// Packs columns `first ..` of matrices of `k` x `n` together, panels of `width` columns.
fn pack_panels(
    level: Level,
    b: &Stack<'_>,
    (k, n): (usize, usize),
    first: usize,
    width: usize,
    out: &mut [f32],
) {
    let rows = k / b.count;
    #[cfg(without = "transposed")]
    let _ = level;
    #[cfg(not(without = "transposed"))]
    if b.matrix.transposed {
        for (panel, out) in out.chunks_exact_mut(k * width).enumerate() {
            for (i, out) in out.chunks_exact_mut(rows * width).enumerate() {
                let column = first + panel * width;
                let lines = Lines {
                    data: &b.matrix.data[i * b.distance + column * b.matrix.ld..],
                    ld: b.matrix.ld,
                    count: width.min(n - column),
                    len: rows,
                    width,
                    out,
                };
                dispatch(level, lines);
            }
        }
        return;
    }
    let columns = (out.len() / k).min(n - first);
    for row in 0..k {
        let at = row / rows * b.distance + row % rows * b.matrix.ld + first;
        let line = &b.matrix.data[at..][..columns];
        let panels = out.chunks_exact_mut(k * width);
        for (panel, from) in panels.zip(line.chunks(width)) {
            let to = &mut panel[row * width..][..width];
            if let (Some(to), Some(from)) = (to.first_chunk_mut::<32>(), from.first_chunk::<32>())
                && width == 32
            {
                *to = *from;
            } else {
                let (to, pad) = to.split_at_mut(from.len());
                to.copy_from_slice(from);
                pad.fill(0.0);
            }
        }
    }
}

/// A packed matrix of `k` x `n`: of use where the same B meets many A.
#[derive(Clone, Copy, Debug)]
pub struct Packed<'a> {
    /// The level that it was packed for.
    pub(crate) level: Level,
    /// Rows.
    pub(crate) k: usize,
    /// Columns.
    pub(crate) n: usize,
    pub(crate) data: &'a [f32],
}

impl<'a> Packed<'a> {
    /// Elements of memory that [`Packed::pack`] fills for the level in use.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn len(k: usize, n: usize) -> Result<usize> {
        packed_len(crate::base::level::level(), k, n)
    }

    /// Packs `b` of `k` x `n` into the front of `out`.
    ///
    /// # Errors
    /// If `b` or `out` is too short.
    pub fn pack(
        b: &Matrix<'_>,
        (k, n): (usize, usize),
        out: &'a mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        Self::pack_for(crate::base::level::level(), b, (k, n), out, parallel)
    }

    /// As [`Packed::pack`], for a given level.
    ///
    /// # Errors
    /// As [`Packed::pack`].
    pub fn pack_for(
        level: Level,
        b: &Matrix<'_>,
        (k, n): (usize, usize),
        out: &'a mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<Self> {
        b.check("b", k, n)?;
        let len = packed_len(level, k, n)?;
        let found = out.len();
        let Some(data) = out.get_mut(..len) else {
            return Err(Error::Length {
                argument: "packed",
                found,
                expected: len,
            });
        };
        pack(level, &Stack::one(*b), (k, n), data, parallel);
        Ok(Self { level, k, n, data })
    }

    /// Rows of the matrix.
    #[must_use]
    pub const fn rows(&self) -> usize {
        self.k
    }

    /// Columns of the matrix.
    #[must_use]
    pub const fn columns(&self) -> usize {
        self.n
    }

    /// Some columns: whole panels.
    ///
    /// # Panics
    /// If the matrix has no such columns, or they begin or end within a panel.
    pub(crate) fn part(&self, columns: Range<usize>) -> Self {
        let end = |at| at == self.n || at % panel(self.level) == 0;
        let whole = panels(self.level, self.n) * panel(self.level);
        assert!(
            columns.end == self.n || columns.end < whole,
            "columns within the last panel"
        );
        assert!(
            end(columns.start) && end(columns.end),
            "columns within a panel"
        );
        let to = if columns.end == self.n {
            self.data.len()
        } else {
            columns.end * self.k
        };
        Self {
            n: columns.len(),
            data: &self.data[(columns.start * self.k).min(to)..to],
            ..*self
        }
    }

    /// A matrix that [`Packed::pack`] has packed before, on this processor, with the same level.
    ///
    /// # Errors
    /// [`Error::Length`] if `data` is shorter than [`Packed::len`].
    #[inline]
    pub fn from_packed((k, n): (usize, usize), data: &'a [f32]) -> Result<Self> {
        PackedSize::new(k, n)?.of(data)
    }
}

/// The size of a packed matrix, checked once for all products with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PackedSize {
    level: Level,
    k: usize,
    n: usize,
    len: usize,
}

impl PackedSize {
    /// A matrix of `k` x `n` that is packed for the level in use.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn new(k: usize, n: usize) -> Result<Self> {
        let level = crate::base::level::level();
        let len = packed_len(level, k, n)?;
        Ok(Self { level, k, n, len })
    }

    /// Elements of memory that [`Packed::pack`] fills.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether the matrix has no element.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The matrix of this size that [`Packed::pack`] has put into `data`, on this processor.
    ///
    /// # Errors
    /// [`Error::Length`] if `data` is shorter than [`Packed::len`].
    #[inline]
    pub fn of<'a>(&self, data: &'a [f32]) -> Result<Packed<'a>> {
        let Self { level, k, n, len } = *self;
        let found = data.len();
        let data = data.get(..len).ok_or(Error::Length {
            argument: "packed",
            found,
            expected: len,
        })?;
        Ok(Packed { level, k, n, data })
    }
}
