//! Lines of memory that become the columns of a panel.

// Indices keep vectors in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use crate::simd::{Body, Simd};

/// Lines of a matrix, and the panel whose columns they become.
pub(super) struct Lines<'a> {
    /// From the first element of the first line on.
    pub(super) data: &'a [f32],
    /// Elements from one line to the next.
    pub(super) ld: usize,
    /// Lines.
    pub(super) count: usize,
    /// Elements of a line.
    pub(super) len: usize,
    /// Columns of the panel, a multiple of the vector length; those beyond the lines become 0.
    pub(super) width: usize,
    /// The panel: as many rows as a line has elements.
    pub(super) out: &'a mut [f32],
}

impl Body for Lines<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let rows = self.out.chunks_mut(S::LANES * self.width);
        for (block, out) in rows.enumerate() {
            let from = block * S::LANES;
            let len = S::LANES.min(self.len - from);
            for column in (0..self.width).step_by(S::LANES) {
                let mut square = [s.zero(); 16];
                for i in 0..S::LANES {
                    if column + i < self.count {
                        let line = &self.data[(column + i) * self.ld + from..][..len];
                        square[i] = s.load_up_to(line);
                    }
                }
                let square = transposed(s, square);
                for (row, x) in out.chunks_exact_mut(self.width).zip(square) {
                    s.store(&mut row[column..], x);
                }
            }
        }
    }
}

/// The columns of as many vectors as each has lanes; the others are of no use.
#[inline(always)]
fn transposed<S: Simd>(s: S, mut rows: [S::F; 16]) -> [S::F; 16] {
    let half = S::LANES / 2;
    // The number of a row, followed by that of a lane, is turned by a bit.
    for _ in 0..const { S::LANES.ilog2() } {
        let before = rows;
        for i in 0..half {
            (rows[2 * i], rows[2 * i + 1]) = s.zip(before[i], before[i + half]);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gemm::pack::{lanes, panel};
    use crate::simd::{available, dispatch};
    use crate::testing::numbers;

    #[test]
    fn every_element_finds_its_place() {
        for level in available() {
            let widths = [lanes(level), panel(level), panel(level) + lanes(level)];
            for width in widths {
                for len in [1, 3, 7, 8, 9, 15, 16, 17, 40] {
                    for count in [1, width / 2 + 1, width - 1, width] {
                        let ld = len + 5;
                        let data = numbers(count * ld - 5, 1);
                        let mut out = vec![f32::NAN; len * width];
                        let lines = Lines {
                            data: &data,
                            ld,
                            count,
                            len,
                            width,
                            out: &mut out,
                        };
                        dispatch(level, lines);
                        for (i, &found) in out.iter().enumerate() {
                            let (row, column) = (i / width, i % width);
                            let expected = match column < count {
                                true => data[column * ld + row],
                                false => 0.0,
                            };
                            let place = (level, width, len, count, row, column);
                            assert_eq!(found.to_bits(), expected.to_bits(), "{place:?}");
                        }
                    }
                }
            }
        }
    }
}
