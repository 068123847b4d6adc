//! Matmuls of bfloat16 in tiles, see [`crate::simd::amx`]: packed, multiplied in `f32`, and rounded
//! once.

use crate::base::error::{Error, Result};
use crate::base::half::Half;
use crate::base::parallel::Parallel;
use crate::base::worth::Work;
use crate::simd::amx::{self, DEPTH, SIDE, Sums, TILE, Tiles};
use crate::simd::blocks::{Cut, for_each_block, for_each_chunk};

/// Multiplications from which on packing pays.
const LEAST: usize = 32 * 32 * 32;
/// Rows and columns that a task computes: the packed rows and columns of most products stay in the
/// second cache.
const PART: usize = 128;

/// A matrix of bfloat16, as its bits. `transposed` says that columns lie together, not rows.
#[derive(Clone, Copy)]
pub(crate) struct Bits<'a> {
    pub(crate) data: &'a [u16],
    pub(crate) transposed: bool,
}

/// The product of `m` x `k` and `k` x `n`.
#[derive(Clone, Copy)]
pub(crate) struct Tiled {
    size: (usize, usize, usize),
    begin: fn() -> Option<Tiles>,
}

impl Tiled {
    /// `None` where the processor has no tiles, or the product is too small.
    pub(crate) fn new(size: (usize, usize, usize)) -> Option<Self> {
        let (m, n, k) = size;
        let large = m.saturating_mul(n).saturating_mul(k) >= LEAST;
        #[cfg(test)]
        if forced::is_emulated() {
            let begin = Tiles::emulated;
            return large.then_some(Self { size, begin });
        }
        (large && amx::is_here()).then_some(Self {
            size,
            begin: Tiles::new,
        })
    }

    /// Steps of [`DEPTH`] that reach the inner size.
    fn steps(&self) -> usize {
        self.size.2.div_ceil(DEPTH)
    }

    /// Tiles of [`SIDE`] rows or columns.
    fn panel(&self) -> usize {
        2 * self.steps()
    }

    /// Tiles of each packed side.
    fn tiles(&self) -> [usize; 2] {
        [self.size.0, self.size.1].map(|side| side.div_ceil(SIDE).saturating_mul(self.panel()))
    }

    /// Numbers of scratch memory that [`Tiled::run`] needs.
    ///
    /// # Errors
    /// [`Error::Overflow`].
    pub(crate) fn scratch_len(&self) -> Result<usize> {
        let [a, b] = self.tiles();
        let tiles = a.checked_add(b).and_then(|tiles| tiles.checked_mul(TILE));
        tiles.ok_or(Error::Overflow {
            argument: "scratch",
        })
    }

    /// Computes `c`, row by row, from sides of the sizes that it has. Before they are rounded, some
    /// sums of a row are given to `finish`, with the column of the first one.
    ///
    /// # Errors
    /// [`Error::Length`] if a slice is too short.
    pub(crate) fn run(
        &self,
        (a, b): (Bits<'_>, Bits<'_>),
        c: &mut [u16],
        scratch: &mut [u16],
        finish: &(dyn Fn(usize, &mut [f32]) + Sync),
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let (m, n, k) = self.size;
        for (argument, found, expected) in [
            ("a", a.data.len(), m * k),
            ("b", b.data.len(), k * n),
            ("c", c.len(), m * n),
            ("scratch", scratch.len(), self.scratch_len()?),
        ] {
            if found < expected {
                return Err(Error::Length {
                    argument,
                    found,
                    expected,
                });
            }
        }
        let [a_tiles, b_tiles] = self.tiles();
        let (tiles, _) = scratch.as_chunks_mut::<TILE>();
        let (left, right) = tiles.split_at_mut(a_tiles);
        let right = &mut right[..b_tiles];
        let parallel = Work::Packed(m * n)
            .or(Work::Packed((m + n) * k))
            .threads(parallel);
        let panel = self.panel();
        let rows = Side {
            data: a.data,
            count: m,
            k,
            turned: a.transposed,
        };
        let columns = Side {
            data: b.data,
            count: n,
            k,
            turned: !b.transposed,
        };
        for_each_chunk(parallel, left, panel, |start, tiles| {
            pack(&rows, start / panel * SIDE, tiles, row_tile);
        });
        for_each_chunk(parallel, right, panel, |start, tiles| {
            pack(&columns, start / panel * SIDE, tiles, pair_tile);
        });
        let (left, right) = (&*left, &*right);
        let cut = Cut {
            rows: PART,
            columns: PART,
            rest: 0,
        };
        for_each_block(parallel, &mut c[..m * n], n, (m, n), cut, |mut block| {
            let Some(tiles) = (self.begin)() else {
                return;
            };
            let mut sums = Sums([[0.0; SIDE]; SIDE]);
            for column in (0..block.columns).step_by(SIDE) {
                let b = &right[(block.column + column) / SIDE * panel..][..panel];
                for row in (0..block.rows).step_by(SIDE) {
                    let a = &left[(block.row + row) / SIDE * panel..][..panel];
                    tiles.multiply(a, b, &mut sums);
                    let columns = column..(column + SIDE).min(block.columns);
                    for (i, sums) in sums.0.iter_mut().enumerate().take(block.rows - row) {
                        let first = block.column + column;
                        let out = &mut block.row(row + i)[columns.clone()];
                        let sums = &mut sums[..out.len()];
                        finish(first, sums);
                        Half::BF16.round(sums, out);
                    }
                }
            }
        });
        Ok(())
    }
}

/// Lines of `k` numbers: the rows of A, or the columns of B.
struct Side<'a> {
    data: &'a [u16],
    count: usize,
    k: usize,
    /// Whether the numbers of all lines at one place lie together, not those of one line.
    turned: bool,
}

/// What of a side becomes a tile.
struct Part {
    line: usize,
    lines: usize,
    place: usize,
    numbers: usize,
}

/// Packs [`SIDE`] lines from `first` on; what is outside is 0.
fn pack(
    side: &Side<'_>,
    first: usize,
    tiles: &mut [[u16; TILE]],
    tile: fn(&Side<'_>, &Part, &mut [u16; TILE]),
) {
    for (step, tiles) in tiles.chunks_mut(2).enumerate() {
        for (half, out) in tiles.iter_mut().enumerate() {
            let (line, place) = (first + 16 * half, step * DEPTH);
            let part = Part {
                line,
                lines: side.count.saturating_sub(line).min(16),
                place,
                numbers: (side.k - place).min(DEPTH),
            };
            if part.lines < 16 || part.numbers < DEPTH {
                out.fill(0);
            }
            if part.lines > 0 {
                tile(side, &part, out);
            }
        }
    }
}

/// A tile of rows: the numbers of a line one after the other.
fn row_tile(side: &Side<'_>, part: &Part, out: &mut [u16; TILE]) {
    if side.turned {
        for p in 0..part.numbers {
            let from = &side.data[(part.place + p) * side.count + part.line..][..part.lines];
            for (i, &bits) in from.iter().enumerate() {
                out[i * DEPTH + p] = bits;
            }
        }
    } else {
        for i in 0..part.lines {
            let from = &side.data[(part.line + i) * side.k + part.place..][..part.numbers];
            out[i * DEPTH..][..part.numbers].copy_from_slice(from);
        }
    }
}

/// A tile of columns: two numbers of each line, then the next two.
fn pair_tile(side: &Side<'_>, part: &Part, out: &mut [u16; TILE]) {
    if side.turned {
        for (p, row) in out.as_chunks_mut::<DEPTH>().0.iter_mut().enumerate() {
            for half in 0..part.numbers.saturating_sub(2 * p).min(2) {
                let place = part.place + 2 * p + half;
                let from = &side.data[place * side.count + part.line..][..part.lines];
                for (pair, &bits) in row.as_chunks_mut::<2>().0.iter_mut().zip(from) {
                    pair[half] = bits;
                }
            }
        }
    } else {
        for i in 0..part.lines {
            let from = &side.data[(part.line + i) * side.k + part.place..][..part.numbers];
            for (p, &bits) in from.iter().enumerate() {
                out[p / 2 * DEPTH + 2 * i + p % 2] = bits;
            }
        }
    }
}

/// Tests have tiles on every processor.
#[cfg(test)]
pub(crate) mod forced {
    use std::cell::Cell;

    thread_local! {
        static EMULATED: Cell<bool> = const { Cell::new(false) };
    }

    pub(super) fn is_emulated() -> bool {
        EMULATED.get()
    }

    /// Calls `body` with tiles that are emulated.
    pub(crate) fn emulated<T>(body: impl FnOnce() -> T) -> T {
        EMULATED.set(true);
        let result = body();
        EMULATED.set(false);
        result
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::parallel::Serial;
    use crate::testing::numbers;

    fn narrow(x: &[f32]) -> (Vec<u16>, Vec<f32>) {
        let (mut bits, mut rounded) = (vec![0; x.len()], vec![0.0; x.len()]);
        Half::BF16.round(x, &mut bits);
        Half::BF16.widen(&bits, &mut rounded);
        (bits, rounded)
    }

    /// Compares with sums in `f64`, rounded once.
    fn check(size: (usize, usize, usize), transposed: (bool, bool), begin: fn() -> Option<Tiles>) {
        let (m, n, k) = size;
        let ((a, wide_a), (b, wide_b)) = (narrow(&numbers(m * k, 1)), narrow(&numbers(k * n, 2)));
        let product = Tiled { size, begin };
        let mut c = vec![0x7fc0; m * n];
        let mut scratch = vec![0x7fc0; product.scratch_len().unwrap()];
        let sides = (
            Bits {
                data: &a,
                transposed: transposed.0,
            },
            Bits {
                data: &b,
                transposed: transposed.1,
            },
        );
        product
            .run(sides, &mut c, &mut scratch, &|_, _| {}, &Serial)
            .unwrap();
        let mut found = vec![0.0; m * n];
        Half::BF16.widen(&c, &mut found);
        for (index, &found) in found.iter().enumerate() {
            let (i, j) = (index / n, index % n);
            let exact: f64 = (0..k)
                .map(|p| {
                    let a = wide_a[if transposed.0 { p * m + i } else { i * k + p }];
                    let b = wide_b[if transposed.1 { j * k + p } else { p * n + j }];
                    f64::from(a) * f64::from(b)
                })
                .sum();
            // Half a unit of bfloat16, and what sums in f32 may lose.
            let apart = (f64::from(found) - exact).abs();
            assert!(
                apart <= exact.abs() / 256.0 + 1e-5,
                "{size:?} {i} {j}: {found} {exact}"
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(60))]
        #[test]
        fn products_match_f64(
            size in (0..70_usize, 0..150_usize, 0..100_usize),
            transposed in any::<(bool, bool)>(),
        ) {
            check(size, transposed, Tiles::emulated);
            if amx::is_here() {
                check(size, transposed, Tiles::new);
            }
        }
    }

    #[test]
    fn tasks_of_several_parts() {
        for size in [(300, 270, 40), (129, 128, 33), (1, 600, 64), (33, 0, 1)] {
            check(size, (true, false), Tiles::emulated);
            if amx::is_here() {
                check(size, (false, true), Tiles::new);
            }
        }
    }

    #[test]
    fn infinity_beside_padding_is_no_nan() {
        let begin = if amx::is_here() {
            Tiles::new
        } else {
            Tiles::emulated
        };
        let product = Tiled {
            size: (3, 5, 7),
            begin,
        };
        let (a, b) = (vec![0x7f80; 21], vec![0x3f80; 35]);
        let mut c = vec![0; 15];
        let mut scratch = vec![0; product.scratch_len().unwrap()];
        let side = |data| Bits {
            data,
            transposed: false,
        };
        product
            .run(
                (side(&a), side(&b)),
                &mut c,
                &mut scratch,
                &|_, _| {},
                &Serial,
            )
            .unwrap();
        assert_eq!(c, vec![0x7f80; 15]);
    }

    #[test]
    fn memory_that_is_too_short_is_refused() {
        let product = Tiled {
            size: (2, 2, 2),
            begin: Tiles::emulated,
        };
        let side = Bits {
            data: &[0; 4],
            transposed: false,
        };
        let mut scratch = vec![0; product.scratch_len().unwrap() - 1];
        let error = product
            .run((side, side), &mut [0; 4], &mut scratch, &|_, _| {}, &Serial)
            .unwrap_err();
        assert!(matches!(
            error,
            Error::Length {
                argument: "scratch",
                ..
            }
        ));
    }
}
