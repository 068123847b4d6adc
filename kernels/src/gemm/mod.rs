//! Matrix products: `C = activation(A * B + bias)`, or `C += A * B`.
//!
//! C is cut into blocks, one task each; a block is computed tile by tile ([`tile`]), where a tile
//! reads A in place and B in panels ([`pack`]). B is packed by a caller that uses it again
//! ([`Packed`]), else into scratch memory, some rows at a time. A vector on either side takes a
//! path of its own ([`gemv`], [`crate::gemm::thin`]). Convolutions run the same blocks over an image
//! ([`source`]).
//!
//! Sums are in f32, in an order that depends on the shape and the level; for products of one row it
//! depends on the threads, too. For finite values the error of an element is at most
//! `(k + 2) * 2^-24 * sum(|a| * |b|)`. Infinities and NaN follow IEEE 754 arithmetic.

mod activation;
pub(crate) mod block;
mod cut;
mod gemv;
pub mod pack;
pub(crate) mod scale;
pub(crate) mod source;
#[cfg(test)]
mod tests;
pub mod thin;
pub(crate) mod tile;
pub(crate) mod tiled;

use crate::base::adapt::check_count;
use crate::base::error::{Error, Result};
use crate::base::level::{Level, level};
use crate::base::parallel::Parallel;
use crate::base::worth::Work;
use crate::gemm::thin::Thin;
use crate::simd::blocks::{Cut, for_each_block};
use crate::simd::dispatch;
pub use activation::Activation;
use block::{A, B, DIRECT_ROWS, Multiply, turns};
pub(crate) use cut::{cut, cut_packing};
pub use pack::{Matrix, Packed, PackedSize};
#[cfg(not(without = "scaled"))]
pub use scale::Scale;
use source::Source;
use tile::Store;

/// Rows of B that are packed at a time.
const PACKED_ROWS: usize = tile::MAX_RUN;
/// Bytes of a cache line.
const LINE: usize = 64;

/// The right-hand side of a product.
#[derive(Clone, Copy, Debug)]
pub enum Right<'a> {
    #[cfg(not(without = "plain"))]
    /// As it lies in memory.
    Plain(Matrix<'a>),
    /// Packed before.
    Packed(Packed<'a>),
}

/// A product of an `m` x `k` and a `k` x `n` matrix.
#[derive(Clone, Copy, Debug)]
pub struct Gemm<'a> {
    /// Rows of A and C.
    pub m: usize,
    /// Columns of B and C.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Left-hand side.
    pub a: Matrix<'a>,
    /// Right-hand side.
    pub b: Right<'a>,
    /// `n` elements, added to every row of the result.
    pub bias: Option<&'a [f32]>,
    /// What becomes of A first, by its columns; only with a packed B, and where A is not
    /// transposed.
    #[cfg(not(without = "scaled"))]
    pub scale: Option<Scale<'a>>,
    /// Applied last.
    pub activation: Activation,
    /// Add the product to what C holds.
    pub accumulate: bool,
    /// Instruction set; that of a packed B wins.
    pub level: Level,
}

impl<'a> Gemm<'a> {
    #[cfg(not(without = "plain"))]
    /// A product without bias and activation.
    #[must_use]
    #[inline]
    pub fn new((m, n, k): (usize, usize, usize), a: Matrix<'a>, b: Matrix<'a>) -> Self {
        Self {
            m,
            n,
            k,
            a,
            b: Right::Plain(b),
            bias: None,
            #[cfg(not(without = "scaled"))]
            scale: None,
            activation: Activation::None,
            accumulate: false,
            level: level(),
        }
    }

    /// A product with a packed right-hand side.
    #[must_use]
    #[inline]
    pub fn packed(m: usize, a: Matrix<'a>, b: Packed<'a>) -> Self {
        Self {
            m,
            n: b.n,
            k: b.k,
            a,
            b: Right::Packed(b),
            bias: None,
            #[cfg(not(without = "scaled"))]
            scale: None,
            activation: Activation::None,
            accumulate: false,
            level: b.level,
        }
    }

    /// The elements of scratch memory that [`Gemm::run`] needs: none for a packed B, for vectors
    /// and for few rows, else those of a part of B, at most 512 rows and about 2^18 elements, or
    /// 2^19 with AMD's processors. Never more than half as much again as A and B have. Memory that
    /// does not start at a cache line serves better if it has 15 elements more.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub fn scratch_len(&self) -> Result<usize> {
        match self.b {
            #[cfg(not(without = "plain"))]
            Right::Plain(b) if self.needs_packing(&b) => {
                let (rows, columns) = self.part();
                pack::packed_len(self.level, rows, columns)
            }
            _ => Ok(0),
        }
    }

    /// Rows and columns of B that are packed at a time, as equal as may be.
    fn part(&self) -> (usize, usize) {
        let parts = self.k.div_ceil(PACKED_ROWS).max(1);
        let rows = self.k.div_ceil(parts).next_multiple_of(16).min(self.k);
        let most = (turns::packed_len() / rows.max(1)).max(1);
        let columns = self.n.div_ceil(self.n.div_ceil(most).max(1));
        let panel = pack::panel(self.level);
        (
            rows,
            columns.div_ceil(panel).saturating_mul(panel).min(self.n),
        )
    }

    /// Whether A is taken as it lies in memory, row by row.
    #[inline(always)]
    const fn is_plain(&self) -> bool {
        #[cfg(not(without = "scaled"))]
        if self.scale.is_some() {
            return false;
        }
        #[cfg(not(without = "transposed"))]
        if self.a.transposed {
            return false;
        }
        true
    }

    /// What there is to do.
    fn work(&self) -> Work {
        let sums = self.m.saturating_mul(self.n);
        let product = Work::Product(sums.saturating_mul(2 * self.k.max(1)), sums);
        let weights = match (self.m, self.n) {
            (1, lines) | (lines, 1) => lines.saturating_mul(self.k),
            _ => 0,
        };
        product.or(Work::Weights(weights))
    }

    fn needs_packing(&self, b: &Matrix<'_>) -> bool {
        let direct = self.m <= DIRECT_ROWS && !self.a.transposed && !b.transposed;
        self.k > 0 && !direct && !self.is_narrow()
    }

    /// Whether rows are multiplied one by one: packing would fill more memory with zeros than A
    /// and B have elements. So are such products of [`DIRECT_ROWS`] at most, which pack nothing.
    fn is_narrow(&self) -> bool {
        let lanes = pack::lanes(self.level);
        let narrow = self.m < lanes && self.n < 2 * lanes && {
            let padded = self.n.next_multiple_of(lanes);
            2 * padded > 3 * (self.m + self.n)
        };
        self.m <= 1 || self.n <= 1 || narrow
    }

    /// Computes the product into `c`, a matrix of `m` rows of `n` elements, `ldc` apart.
    ///
    /// # Errors
    /// [`Error::Length`], [`Error::Value`] or [`Error::Overflow`] if an argument is too short or
    /// its rows overlap.
    pub fn run(
        &self,
        c: &mut [f32],
        ldc: usize,
        scratch: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        #[cfg(not(without = "plain"))]
        if gemv::run_few(self, c) {
            return Ok(());
        }
        self.check(c, ldc)?;
        #[cfg(without = "plain")]
        #[cfg(not(without = "transposed"))]
        if self.a.transposed {
            let (argument, expected) = ("a", "rows in memory");
            return Err(Error::Value { argument, expected });
        }
        #[cfg(without = "plain")]
        let _ = scratch;
        #[cfg(not(without = "plain"))]
        let scratch = {
            let needed = self.scratch_len()?;
            if scratch.len() < needed {
                return Err(Error::Length {
                    argument: "scratch",
                    found: scratch.len(),
                    expected: needed,
                });
            }
            let line = scratch.as_ptr().align_offset(LINE);
            let line = line.min(scratch.len() - needed);
            &mut scratch[line..][..needed]
        };
        if self.m == 0 || self.n == 0 {
            return Ok(());
        }
        if let (1, true, Right::Packed(b)) = (self.m, self.is_plain(), &self.b) {
            let thin = Thin {
                bias: self.bias,
                activation: self.activation,
                accumulate: self.accumulate,
                backwards: false,
            };
            return thin.run(&self.a.data[..self.k], b, &mut c[..self.n], parallel);
        }
        let parallel = self.work().threads(parallel);
        let whole = |from: usize, k: usize| {
            #[cfg(not(without = "plain"))]
            if self.a.transposed {
                return A::Columns {
                    data: self.a.skip_columns(from),
                    ld: self.a.ld,
                    k,
                    far: block::are_far(self.a.ld, self.k),
                };
            }
            let ld = if self.k == 0 { 0 } else { self.a.ld };
            let rows = Source::plain(self.a.data, self.m, ld, from, k);
            #[cfg(not(without = "scaled"))]
            let rows = rows.scaled_by(self.scale.as_ref());
            A::Rows(rows)
        };
        let sizes = (self.m, self.n, self.k);
        match &self.b {
            Right::Packed(b) => {
                let cut = cut(self.level, sizes, parallel.threads());
                let b = B::Packed {
                    data: b.data,
                    k: self.k,
                    near: false,
                };
                self.blocks(
                    &whole(0, self.k),
                    &b,
                    true,
                    c,
                    ldc,
                    self.accumulate,
                    (cut, parallel),
                );
            }
            #[cfg(not(without = "plain"))]
            Right::Plain(b) if self.m == 1 || (self.n == 1 && ldc == 1) => {
                gemv::run(self, b, c, parallel);
            }
            #[cfg(not(without = "plain"))]
            Right::Plain(_) if self.is_narrow() => {
                for i in 0..self.m {
                    let row = Self {
                        m: 1,
                        a: self.a.skip_rows(i),
                        ..*self
                    };
                    row.run(&mut c[i * ldc..], 1, &mut [], parallel)?;
                }
            }
            #[cfg(not(without = "plain"))]
            Right::Plain(b) if self.k > 0 && !self.needs_packing(b) => {
                let b = B::Rows {
                    data: b.data,
                    ld: b.ld,
                };
                let a = A::Rows(Source::plain(self.a.data, self.m, self.a.ld, 0, self.k));
                let cut = cut(self.level, sizes, parallel.threads());
                self.blocks(&a, &b, true, c, ldc, self.accumulate, (cut, parallel));
            }
            #[cfg(not(without = "plain"))]
            Right::Plain(b) => {
                let (most_rows, most_columns) = self.part();
                for column in (0..self.n).step_by(most_columns) {
                    let columns = most_columns.min(self.n - column);
                    let b = b.skip_columns_of(column);
                    for from in (0..self.k.max(1)).step_by(most_rows.max(1)) {
                        let rows = most_rows.min(self.k - from);
                        let len = pack::packed_len(self.level, rows, columns)?;
                        let room = len.min(scratch.len());
                        let packed = &mut scratch[..room];
                        let (level, threads) = (self.level, parallel.threads());
                        let cut = cut_packing(level, (self.m, columns, rows), threads);
                        let part = pack::Stack::one(b.skip_rows(from));
                        pack::pack_blocks(level, &part, (rows, columns), cut, packed, parallel);
                        let panels = B::Packed {
                            data: packed,
                            k: rows,
                            near: true,
                        };
                        let part = Self {
                            n: columns,
                            bias: self.bias.map(|bias| &bias[column..column + columns]),
                            ..*self
                        };
                        part.blocks(
                            &whole(from, rows),
                            &panels,
                            from + rows == self.k,
                            &mut c[column..],
                            ldc,
                            self.accumulate || from > 0,
                            (cut, parallel),
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Multiplies all blocks of C by some rows of B; the last ones finish the elements.
    #[allow(clippy::too_many_arguments)]
    fn blocks(
        &self,
        a: &A<'_>,
        b: &B<'_>,
        last: bool,
        c: &mut [f32],
        ldc: usize,
        accumulate: bool,
        (cut, parallel): (Cut, &dyn Parallel),
    ) {
        let store = Store {
            accumulate,
            bias: self.bias.filter(|_| last),
            clamp: self.activation.clamp().filter(|_| last),
            map: self.activation.map().filter(|_| last),
        };
        for_each_block(parallel, c, ldc, (self.m, self.n), cut, |mut block| {
            dispatch(
                self.level,
                Multiply {
                    a,
                    b,
                    n: self.n,
                    level: self.level,
                    block: &mut block,
                    store,
                },
            );
        });
    }

    fn check(&self, c: &[f32], ldc: usize) -> Result<()> {
        pack::check_level(self.level)?;
        self.a.check("a", self.m, self.k)?;
        match &self.b {
            #[cfg(not(without = "plain"))]
            Right::Plain(b) => b.check("b", self.k, self.n)?,
            Right::Packed(b) => {
                let expected = pack::packed_len(b.level, self.k, self.n)?;
                if (b.k, b.n, b.level) != (self.k, self.n, self.level) || b.data.len() < expected {
                    return Err(Error::Length {
                        argument: "packed",
                        found: b.data.len(),
                        expected,
                    });
                }
            }
        }
        if let Some(bias) = self.bias.filter(|bias| bias.len() != self.n) {
            return Err(Error::Length {
                argument: "bias",
                found: bias.len(),
                expected: self.n,
            });
        }
        #[cfg(not(without = "scaled"))]
        if let Some(scale) = &self.scale {
            #[cfg(not(without = "plain"))]
            if self.a.transposed || !matches!(self.b, Right::Packed(_)) {
                return Err(Error::Value {
                    argument: "scale",
                    expected: "a packed matrix, and another that is not transposed",
                });
            }
            check_count("scale", scale.scale.len(), self.k)?;
            check_count("shift", scale.shift.map_or(self.k, <[f32]>::len), self.k)?;
        }
        check_rows("c", c.len(), ldc, self.m, self.n)
    }
}

/// Fails unless `rows` rows of `columns` elements, `ld` apart, fit into `found` elements.
fn check_rows(
    argument: &'static str,
    found: usize,
    ld: usize,
    rows: usize,
    columns: usize,
) -> Result<()> {
    if rows == 0 || columns == 0 {
        return Ok(());
    }
    if ld < columns && rows > 1 {
        return Err(Error::Value {
            argument,
            expected: "rows that do not overlap",
        });
    }
    let expected = (rows - 1)
        .checked_mul(ld)
        .and_then(|len| len.checked_add(columns))
        .ok_or(Error::Overflow { argument })?;
    if found < expected {
        return Err(Error::Length {
            argument,
            found,
            expected,
        });
    }
    Ok(())
}
