//! The product of one row and a packed matrix, where the blocks of [`crate::gemm`] would cost more
//! than a small product itself.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use crate::base::adapt::check_count;
use crate::base::error::Result;
use crate::base::level::Level;
use crate::base::parallel::Parallel;
use crate::base::worth::Work;
use crate::gemm::pack::{self, lanes, panel, panel_at};
use crate::gemm::{Activation, Packed};
use crate::simd::blocks::{Cut, for_each_block};
use crate::simd::{Body, Simd, dispatch};

mod pair;

pub use pair::Pair;

/// Elements of a matrix for each task of a thread, so that one that comes late finds work, ...
const ROUND: usize = 1 << 19;
/// ... and such tasks, at most.
const ROUNDS: usize = 4;

/// Columns that fit into half of a vector of AVX-512: some processors take as long for a whole one as
/// for two halves.
const HALF: usize = lanes(Level::Avx512) / 2;

/// What is done with the product of a row.
#[derive(Clone, Copy, Debug, Default)]
pub struct Thin<'a> {
    /// One element per column.
    pub bias: Option<&'a [f32]>,
    /// Applied last.
    pub activation: Activation,
    /// Add to what the output holds.
    pub accumulate: bool,
    /// Go through the matrix from its end: where it is read again and again and is larger than the
    /// first cache, every other time, so that what was read last is read first.
    pub backwards: bool,
}

impl Thin<'_> {
    /// `out = activation(x * matrix + bias)`.
    ///
    /// The error of an element is at most `(k + 2) * 2^-24 * sum(|x| * |b|)`.
    ///
    /// # Errors
    /// [`crate::base::error::Error::Length`] unless the slices are as long as the matrix says.
    #[inline]
    pub fn run(
        &self,
        x: &[f32],
        matrix: &Packed<'_>,
        out: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        check_count("x", x.len(), matrix.k)?;
        check_count("out", out.len(), matrix.n)?;
        if let Some(bias) = self.bias {
            check_count("bias", bias.len(), matrix.n)?;
        }
        if !Work::Weights(matrix.k * matrix.n).repays() || parallel.threads() == 1 {
            self.columns(x, matrix, 0, out);
        } else {
            // By value, so that what the other branch needs is not in memory.
            parts(*self, x, *matrix, out, parallel);
        }
        Ok(())
    }

    /// The columns from panel `first` on that `out` has room for, of as many rows as `x` has
    /// elements.
    #[inline(always)]
    fn columns(&self, x: &[f32], matrix: &Packed<'_>, first: usize, out: &mut [f32]) {
        if matrix.level == Level::Avx512 && (1..=HALF).contains(&matrix.n) {
            let few = Few {
                x,
                rows: matrix.data,
                how: How {
                    bias: self.bias,
                    clamp: self.activation.clamp(),
                    accumulate: self.accumulate,
                },
                out: &mut *out,
            };
            dispatch(Level::Avx2, few);
            if let Activation::Map(function) = self.activation {
                function(out);
            }
            return;
        }
        // Field by field, and made where it is used: a copy would wait for what has just been
        // written.
        let row = Row {
            x,
            panels: matrix.data,
            k: matrix.k,
            n: matrix.n,
            bias: self.bias,
            activation: self.activation,
            accumulate: self.accumulate,
            backwards: self.backwards,
            first,
            out: &mut *out,
        };
        dispatch(matrix.level, row);
        if let Activation::Map(function) = self.activation {
            function(out);
        }
    }
}

/// All columns, in parts for several threads.
#[inline(never)]
fn parts(thin: Thin<'_>, x: &[f32], matrix: Packed<'_>, out: &mut [f32], parallel: &dyn Parallel) {
    let (n, width) = (matrix.n, panel(matrix.level));
    let rounds = (matrix.k * n / ROUND).clamp(1, ROUNDS);
    let each = pack::panels(matrix.level, n).div_ceil(parallel.threads() * rounds);
    let cut = Cut {
        rows: 1,
        columns: each * width,
        // The last panel may be one vector wider.
        rest: lanes(matrix.level),
    };
    for_each_block(parallel, out, n, (1, n), cut, |mut block| {
        thin.columns(x, &matrix, block.column / width, block.row(0));
    });
}

/// Some columns of the product of a row.
struct Row<'a> {
    x: &'a [f32],
    /// All panels of the matrix.
    panels: &'a [f32],
    /// Rows of the matrix.
    k: usize,
    /// Columns of the matrix.
    n: usize,
    bias: Option<&'a [f32]>,
    activation: Activation,
    accumulate: bool,
    backwards: bool,
    /// First panel of `out`.
    first: usize,
    out: &'a mut [f32],
}

impl Body for Row<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(mut self, s: S) {
        // What finds the panels of others takes a small product longer than its multiplications.
        if self.n <= const { 2 * panel(S::LEVEL) - S::LANES } {
            self.first = 0;
            return match self.n.div_ceil(S::LANES) {
                0 => {}
                1 => self.panels::<S, 1, 1, 8, 2>(s, 0),
                2 => self.panels::<S, 1, 2, 4, 1>(s, 0),
                _ => self.panels::<S, 1, 3, 4, 1>(s, 0),
            };
        }
        // What a matrix is packed for is what its products run on.
        let count = pack::panels(S::LEVEL, self.n).saturating_sub(self.first);
        let count = count.min(self.out.len().div_ceil(panel(S::LEVEL)));
        // The last panel may be wider than the others, and is alone then.
        let whole = match count {
            0 => return,
            _ if panel_at(S::LEVEL, self.n, self.first + count - 1).1 == panel(S::LEVEL) => count,
            _ => count - 1,
        };
        let pairs = whole / 2;
        let steps = count - pairs;
        for step in 0..steps {
            let step = if self.backwards {
                steps - 1 - step
            } else {
                step
            };
            if step < pairs {
                match const { panel(S::LEVEL) / S::LANES } {
                    1 => self.panels::<S, 2, 1, 4, 1>(s, 2 * step),
                    _ => self.panels::<S, 2, 2, 2, 1>(s, 2 * step),
                }
            } else {
                self.one_panel(s, pairs + step);
            }
        }
    }
}

impl Row<'_> {
    /// The columns of panel `index` of those that there are.
    #[inline(always)]
    fn one_panel<S: Simd>(&mut self, s: S, index: usize) {
        let (_, width) = panel_at(S::LEVEL, self.n, self.first + index);
        match width / S::LANES {
            1 => self.panels::<S, 1, 1, 8, 2>(s, index),
            2 => self.panels::<S, 1, 2, 4, 1>(s, index),
            _ => self.panels::<S, 1, 3, 4, 1>(s, index),
        }
    }

    /// The columns of `P` panels from number `index` on, each `NV` vectors wide. `ROWS` rows are
    /// summed side by side, or `FEW` where registers are few: engines of WebAssembly load all
    /// factors of an iteration before they multiply, and these take registers, too.
    #[inline(always)]
    fn panels<S: Simd, const P: usize, const NV: usize, const ROWS: usize, const FEW: usize>(
        &mut self,
        s: S,
        index: usize,
    ) {
        let (at, first) = (
            index * panel(S::LEVEL),
            (self.first + index) * panel(S::LEVEL),
        );
        let panels = self.panels.get(self.k * first..);
        if let (Some(panels), Some(out)) = (panels, self.out.get_mut(at..)) {
            let how = How {
                bias: self.bias.and_then(|bias| bias.get(first..)),
                clamp: self.activation.clamp(),
                accumulate: self.accumulate,
            };
            let panels = (panels, self.k, NV * S::LANES);
            if const { S::REGISTERS > 8 } {
                columns_of::<S, P, NV, ROWS>(s, &how, self.x, panels, out);
            } else {
                columns_of::<S, P, NV, FEW>(s, &how, self.x, panels, out);
            }
        }
    }
}

/// All columns of the product of a row and a matrix that is packed for AVX-512, of which there are
/// so few that half of a vector holds them.
struct Few<'a> {
    x: &'a [f32],
    /// The only panel.
    rows: &'a [f32],
    how: How<'a>,
    out: &'a mut [f32],
}

impl Body for Few<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let panel = (self.rows, self.x.len(), const { lanes(Level::Avx512) });
        columns_of::<S, 1, 1, 8>(s, &self.how, self.x, panel, self.out);
    }
}

/// What becomes of sums.
struct How<'a> {
    bias: Option<&'a [f32]>,
    clamp: Option<(f32, f32)>,
    accumulate: bool,
}

/// The first `NV` vectors of the columns of `P` panels of `k` rows, each `width` columns wide; the
/// products of `ROWS` rows of the matrix are summed side by side, so that no sum waits for the one
/// before. `panels` and `out` may go on, and panels may have more rows than `x` has elements.
#[inline(always)]
fn columns_of<S: Simd, const P: usize, const NV: usize, const ROWS: usize>(
    s: S,
    how: &How<'_>,
    x: &[f32],
    (panels, k, width): (&[f32], usize, usize),
    out: &mut [f32],
) {
    let mut sums = [[[s.zero(); NV]; P]; ROWS];
    let (groups, rest) = x.as_chunks::<ROWS>();
    let mut rows = [&[][..]; P];
    for (p, rows) in rows.iter_mut().enumerate() {
        *rows = &panels[p * k * width..][..x.len() * width];
    }
    for x in groups {
        let mut at = [&[][..]; P];
        for p in 0..P {
            (at[p], rows[p]) = rows[p].split_at(ROWS * width);
        }
        for u in 0..ROWS {
            let factor = s.splat(x[u]);
            for p in 0..P {
                for v in 0..NV {
                    let row = s.load(&at[p][u * width + v * S::LANES..]);
                    sums[u][p][v] = s.mul_add(factor, row, sums[u][p][v]);
                }
            }
        }
    }
    for p in 0..P {
        let mut tail = rest.iter().zip(rows[p].chunks_exact(width));
        for u in 0..ROWS {
            let Some((x, row)) = tail.next() else {
                break;
            };
            for v in 0..NV {
                let row = s.load(&row[v * S::LANES..]);
                sums[u][p][v] = s.mul_add(s.splat(*x), row, sums[u][p][v]);
            }
        }
    }
    let clamp = how.clamp.map(|(low, high)| (s.splat(low), s.splat(high)));
    for p in 0..P {
        for v in 0..NV {
            let at = p * width + v * S::LANES;
            let Some(to) = out.get_mut(at..) else {
                return;
            };
            let mut half = const { ROWS / 2 };
            while half > 0 {
                for u in 0..half {
                    sums[u][p][v] = s.add(sums[u][p][v], sums[u + half][p][v]);
                }
                half /= 2;
            }
            let mut sum = sums[0][p][v];
            if let Some(bias) = how.bias.and_then(|bias| bias.get(at..)) {
                sum = s.add(sum, s.load_up_to(bias));
            }
            if how.accumulate {
                sum = s.add(sum, s.load_up_to(to));
            }
            if let Some((low, high)) = clamp {
                sum = s.min(high, s.max(low, sum));
            }
            s.store_forwarded(to, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::parallel::Serial;
    use crate::gemm::Matrix;
    use crate::simd::available;
    use crate::testing::{Interleaved, numbers};

    #[test]
    fn products_are_those_of_double_precision() {
        for (k, n) in [
            (1, 1),
            (6, 64),
            (64, 8),
            (8, 4),
            (13, 47),
            (0, 5),
            (33, 130),
            (5, 33),
            (600, 250),
            (450, 303),
        ] {
            let (x, b, bias) = (numbers(k, 1), numbers(k * n, 2), numbers(n, 3));
            let old = numbers(n, 4);
            for level in available() {
                let mut memory = vec![0.0; crate::gemm::pack::packed_len(level, k, n).unwrap()];
                let matrix = Matrix::rows(&b, n);
                let packed =
                    Packed::pack_for(level, &matrix, (k, n), &mut memory, &Serial).unwrap();
                for accumulate in [false, true] {
                    let mut out = old.clone();
                    let thin = Thin {
                        bias: Some(&bias),
                        activation: Activation::Clamp(-0.5, f32::INFINITY),
                        accumulate,
                        backwards: k % 2 == 0,
                    };
                    thin.run(&x, &packed, &mut out, &Interleaved).unwrap();
                    for j in 0..n {
                        let start = if accumulate { f64::from(old[j]) } else { 0.0 };
                        let exact = (0..k)
                            .map(|p| f64::from(x[p]) * f64::from(b[p * n + j]))
                            .sum::<f64>()
                            + f64::from(bias[j])
                            + start;
                        let error = (f64::from(out[j]) - exact.max(-0.5)).abs();
                        assert!(
                            error < 1e-5 + k as f64 * 5e-8,
                            "{k}x{n} {level:?}: {} {exact}",
                            out[j]
                        );
                    }
                    assert!(
                        thin.run(&x, &packed, &mut vec![0.0; n + 1], &Serial)
                            .is_err()
                    );
                }
            }
        }
    }
}
