//! Vectors that lie in lines, and whose places are checked once for many of them.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use core::ops::Range;

use super::Simd;
use crate::base::level::Level;

/// Elements of memory in lines: element (`y`, `x`) is that at `first + y * line + x * step`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Grid {
    /// The first element.
    pub first: usize,
    /// Elements from one line to the next.
    pub line: usize,
    /// Elements from one place of a line to the next.
    pub step: usize,
}

impl Grid {
    /// Panics unless a slice of `len` elements has `lanes` of them from each of `lines` x `columns`
    /// places on.
    #[inline(always)]
    fn check(&self, len: usize, (lines, columns): (usize, usize), lanes: usize) {
        let last = |step: usize, count: usize| step.checked_mul(count.saturating_sub(1));
        let end = last(self.line, lines)
            .zip(last(self.step, columns))
            .and_then(|(y, x)| {
                y.checked_add(x)?
                    .checked_add(self.first)?
                    .checked_add(lanes)
            });
        assert!(
            end.is_some_and(|end| end <= len),
            "a grid outside of its slice"
        );
    }
}

/// The element of `data` from which on the vectors of a grid are that a filter's taps see.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen<'a> {
    /// The elements.
    pub data: &'a [f32],
    /// Lines of taps.
    pub lines: usize,
    /// The places, of which the first is that of column `inside.start`.
    pub grid: Grid,
    /// The columns that are there; the others count as 0.
    pub inside: (usize, usize),
}

/// Adds to the sum of each of `STOPS` stops what `TAPS` taps in each of some lines see, times their
/// weights. Stops are `STRIDE` columns apart, so that all together see `SEEN` columns.
///
/// Panics if the columns that are there, or the weights, are not in their slices.
#[inline(always)]
pub(crate) fn add_taps<
    S: Simd,
    const STOPS: usize,
    const TAPS: usize,
    const STRIDE: usize,
    const SEEN: usize,
>(
    s: S,
    mut sums: [S::F; STOPS],
    seen: &Seen<'_>,
    (weights, places): (&[f32], &Grid),
) -> [S::F; STOPS] {
    const { assert!(SEEN == (STOPS - 1) * STRIDE + TAPS && SEEN < 32) };
    let Range { start, end } = seen.inside.0..seen.inside.1.min(SEEN);
    if start >= end || seen.lines == 0 {
        return sums;
    }
    seen.grid
        .check(seen.data.len(), (seen.lines, end - start), S::LANES);
    places.check(weights.len(), (seen.lines, TAPS), S::LANES);
    let inside = (1_u32 << end) - (1_u32 << start);
    let grid = &seen.grid;
    let mut pixels = seen.data.as_ptr().wrapping_add(grid.first);
    pixels = pixels.wrapping_sub(start * grid.step);
    let mut taps = weights.as_ptr().wrapping_add(places.first);
    for _ in 0..seen.lines {
        let mut w = [s.zero(); TAPS];
        for tap in 0..TAPS {
            // SAFETY: line and tap are among those that `check` found in the slice.
            w[tap] = unsafe { s.load_from(taps.wrapping_add(tap * places.step)) };
        }
        let mut x = [s.zero(); SEEN];
        for at in 0..SEEN {
            if inside & (1 << at) != 0 {
                // SAFETY: line and column are among those that `check` found in the slice.
                x[at] = unsafe { s.load_from(pixels.wrapping_add(at * grid.step)) };
            }
        }
        for tap in 0..TAPS {
            for px in 0..STOPS {
                sums[px] = s.mul_add(x[px * STRIDE + tap], w[tap], sums[px]);
            }
        }
        pixels = pixels.wrapping_add(grid.line);
        taps = taps.wrapping_add(places.line);
    }
    sums
}

/// The sum of `lines` lines of a matrix, `NV` vectors each, of which the last is cut to `width`
/// elements in all, times a factor each, `step` apart. There are `CHAINS` sums side by side, so
/// that none waits for the one before; they are joined in pairs.
///
/// Panics if a line or a factor is not in its slice, or if `width` is not that of so many vectors.
// A last vector that may be empty would have its mask made anew for each line.
#[inline(always)]
pub(crate) fn sum_of_lines<S: Simd, const NV: usize, const CHAINS: usize>(
    s: S,
    (factors, step): (&[f32], usize),
    lines: usize,
    (matrix, ld): (&[f32], usize),
    width: usize,
) -> [S::F; NV] {
    let cut = const { (NV - 1) * S::LANES };
    let rest = width.wrapping_sub(cut);
    assert!(rest.wrapping_sub(1) < S::LANES, "the last vector of a line");
    let places = |step| Grid {
        first: 0,
        line: step,
        step: 0,
    };
    places(ld).check(matrix.len(), (lines, 1), width);
    places(step).check(factors.len(), (lines, 1), 1);
    let mut sums = [[s.zero(); NV]; CHAINS];
    let (mut factor, mut line) = (factors.as_ptr(), matrix.as_ptr());
    let mut left = lines;
    while left > 0 {
        for chain in 0..CHAINS {
            if chain >= left {
                break;
            }
            // SAFETY: one of the lines whose factors `check` found in the slice.
            let x = s.splat(unsafe { *factor });
            for v in 0..NV - 1 {
                // SAFETY: a line that `check` found in the slice, `width` elements of it.
                let of = unsafe { s.load_from(line.wrapping_add(v * S::LANES)) };
                sums[chain][v] = s.mul_add(x, of, sums[chain][v]);
            }
            // SAFETY: as above; the elements of the line from `cut` on.
            let of = unsafe { core::slice::from_raw_parts(line.wrapping_add(cut), rest) };
            // A mask of all lanes costs less than a branch, where there are masks.
            let of = match S::LEVEL {
                Level::Avx2 | Level::Avx512 => s.load_partial(of),
                _ => s.load_up_to(of),
            };
            sums[chain][NV - 1] = s.mul_add(x, of, sums[chain][NV - 1]);
            factor = factor.wrapping_add(step);
            line = line.wrapping_add(ld);
        }
        left = left.saturating_sub(CHAINS);
    }
    let mut half = const { CHAINS / 2 };
    while half > 0 {
        for chain in 0..half {
            for v in 0..NV {
                sums[chain][v] = s.add(sums[chain][v], sums[chain + half][v]);
            }
        }
        half /= 2;
    }
    sums[0]
}

/// Writes the first `count` of some vectors to the places of a line.
///
/// Panics if they are not in the slice.
#[inline(always)]
pub(crate) fn store_line<S: Simd, const N: usize>(
    s: S,
    vectors: &[S::F; N],
    count: usize,
    (to, places): (&mut [f32], &Grid),
) {
    let count = count.min(N);
    places.check(to.len(), (1, count), S::LANES);
    let to = to.as_mut_ptr().wrapping_add(places.first);
    for at in 0..N {
        if at < count {
            // SAFETY: the place is among those that `check` found in the slice.
            unsafe { s.store_to(to.wrapping_add(at * places.step), vectors[at]) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::{Body, available, dispatch};
    use crate::testing::numbers;

    /// Two stops, two apart, of three taps in each of two lines.
    struct Taps<'a> {
        seen: Seen<'a>,
        weights: (&'a [f32], Grid),
        to: (&'a mut [f32], Grid),
    }

    impl Body for Taps<'_> {
        type Out = ();

        #[inline(always)]
        fn run<S: Simd>(self, s: S) {
            let (weights, places) = self.weights;
            let taps = (weights, &places);
            let sums = add_taps::<S, 2, 3, 2, 5>(s, [s.splat(1.0); 2], &self.seen, taps);
            store_line(s, &sums, 2, (self.to.0, &self.to.1));
        }
    }

    fn run(
        level: crate::base::level::Level,
        inside: (usize, usize),
        slack: [usize; 3],
    ) -> Vec<f32> {
        let lanes = crate::gemm::pack::lanes(level);
        let (seen_grid, weight_grid, to_grid) = (
            Grid {
                first: 3,
                line: 200,
                step: 20,
            },
            Grid {
                first: 1,
                line: 90,
                step: 30,
            },
            Grid {
                first: 2,
                line: 0,
                step: 17,
            },
        );
        let columns = inside.1.min(5) - inside.0;
        let data = numbers(3 + 200 + (columns - 1) * 20 + lanes - slack[0], 1);
        let weights = numbers(1 + 90 + 60 + lanes - slack[1], 2);
        let mut to = vec![0.0; 2 + 17 + lanes - slack[2]];
        let body = Taps {
            seen: Seen {
                data: &data,
                lines: 2,
                grid: seen_grid,
                inside,
            },
            weights: (&weights, weight_grid),
            to: (&mut to, to_grid),
        };
        dispatch(level, body);
        for stop in 0..2 {
            for lane in 0..lanes {
                let mut exact = 1.0;
                for (line, tap) in (0..2).flat_map(|line| (0..3).map(move |tap| (line, tap))) {
                    let column = stop * 2 + tap;
                    if (inside.0..inside.1).contains(&column) {
                        let x = data[3 + line * 200 + (column - inside.0) * 20 + lane];
                        let w = weights[1 + line * 90 + tap * 30 + lane];
                        exact += f64::from(x) * f64::from(w);
                    }
                }
                let found = f64::from(to[2 + stop * 17 + lane]);
                assert!((found - exact).abs() < 4e-6, "{found} instead of {exact}");
            }
        }
        to
    }

    #[test]
    fn taps_see_what_is_inside() {
        for level in available() {
            for inside in [(0, 5), (1, 5), (0, 4), (2, 3), (3, 9)] {
                run(level, inside, [0; 3]);
            }
        }
    }

    /// The sum of three lines of a matrix, two vectors each, the last of which is cut.
    struct Lines<'a> {
        factors: &'a [f32],
        matrix: &'a [f32],
        width: usize,
    }

    impl Body for Lines<'_> {
        type Out = [[f32; 16]; 2];

        #[inline(always)]
        fn run<S: Simd>(self, s: S) -> Self::Out {
            let matrix = (self.matrix, 40);
            let sums = sum_of_lines::<S, 2, 2>(s, (self.factors, 2), 3, matrix, self.width);
            [s.to_array(sums[0]), s.to_array(sums[1])]
        }
    }

    #[test]
    fn lines_are_read_up_to_their_width() {
        for level in available() {
            let lanes = crate::gemm::pack::lanes(level);
            for width in lanes + 1..=2 * lanes {
                let run = |factors: usize, elements: usize, width: usize| {
                    // Boxed, so that a sanitizer sees a read past the end.
                    let factors = numbers(factors, 1).into_boxed_slice();
                    let matrix = numbers(elements, 2).into_boxed_slice();
                    let body = Lines {
                        factors: &factors,
                        matrix: &matrix,
                        width,
                    };
                    (dispatch(level, body), factors, matrix)
                };
                let (sums, factors, matrix) = run(5, 80 + width, width);
                for at in 0..2 * lanes {
                    let term = |line: usize| {
                        f64::from(factors[2 * line]) * f64::from(matrix[line * 40 + at])
                    };
                    let exact: f64 = match at < width {
                        true => (0..3).map(term).sum(),
                        false => 0.0,
                    };
                    let found = f64::from(sums[at / lanes][at % lanes]);
                    assert!((found - exact).abs() < 1e-6, "{found} instead of {exact}");
                }
                for (factors, elements, width) in [
                    (4, 80 + width, width),
                    (5, 79 + width, width),
                    (5, 200, lanes),
                    (5, 200, 2 * lanes + 1),
                ] {
                    let refused = std::panic::catch_unwind(|| run(factors, elements, width));
                    assert!(refused.is_err(), "{factors} {elements} {width}");
                }
            }
        }
    }

    #[test]
    fn what_is_outside_of_a_slice_is_refused() {
        for level in available() {
            for slack in [[1, 0, 0], [0, 1, 0], [0, 0, 1]] {
                let refused = std::panic::catch_unwind(|| run(level, (1, 5), slack));
                assert!(refused.is_err(), "{slack:?}");
            }
        }
    }

    #[test]
    fn sizes_that_overflow_are_refused() {
        let grid = Grid {
            first: 0,
            line: usize::MAX,
            step: 1,
        };
        assert!(std::panic::catch_unwind(|| grid.check(100, (3, 1), 1)).is_err());
        let grid = Grid {
            first: usize::MAX,
            line: 0,
            step: 1,
        };
        assert!(std::panic::catch_unwind(|| grid.check(100, (1, 1), 1)).is_err());
    }
}
