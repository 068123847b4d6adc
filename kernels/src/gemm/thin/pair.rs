//! Two products of one row, of which the second reads what the first gives, as one walk.
//!
//! Some columns of the first matrix are followed by the rows of the second one that meet their
//! sums. So the two are read in one order, which the next product may turn round as a whole: what
//! the caches hold of both matrices is what it reads first. Each matrix turned on its own would be
//! read again only after all of the other one.

use super::{How, Thin, columns_of};
use crate::base::adapt::check_count;
use crate::base::error::{Error, Result};
use crate::base::parallel::Parallel;
use crate::gemm::pack::{panel, panels};
use crate::gemm::{Activation, Packed};
use crate::simd::{Body, Simd, dispatch};

/// Parts of the walk, at most: more of them turn round better, but each has sums of its own.
const PARTS: usize = 8;
/// Parts from which on one walk is better than two.
const LEAST_PARTS: usize = 4;
/// Elements of memory for the sums of all parts.
const MEMORY: usize = 4 * 1024;
/// Elements of both matrices from which on they may not stay in the second cache.
const FAR: usize = 1 << 18;

/// Two products of one row: `activation1(activation0(x * matrix0 + bias0) * matrix1 + bias1)`.
#[derive(Clone, Copy, Debug)]
pub struct Pair<'a> {
    /// The second one has a row for every column of the first one.
    pub matrices: [Packed<'a>; 2],
    /// One element per column of each matrix.
    pub biases: [Option<&'a [f32]>; 2],
    /// Applied to the sums of each product.
    pub activations: [Activation; 2],
    /// As [`Thin::backwards`].
    pub backwards: bool,
}

impl Pair<'_> {
    /// Computes both; `between` has an element per column of the first one, and holds nothing of
    /// use afterwards.
    ///
    /// The sums are in f32, in an order that depends on the shapes, the level and the threads, but
    /// not on the direction.
    ///
    /// # Errors
    /// [`Error::Length`] unless the slices are as long as the matrices say, [`Error::Value`] unless
    /// these fit each other.
    pub fn run(
        &self,
        x: &[f32],
        between: &mut [f32],
        out: &mut [f32],
        parallel: &dyn Parallel,
    ) -> Result<()> {
        let [first, second] = &self.matrices;
        if first.n != second.k || first.level != second.level {
            return Err(Error::Value {
                argument: "matrices",
                expected: "a row of the second for every column of the first, of one level",
            });
        }
        check_count("x", x.len(), first.k)?;
        check_count("between", between.len(), first.n)?;
        check_count("out", out.len(), second.n)?;
        for (bias, matrix) in self.biases.iter().zip(&self.matrices) {
            if let Some(bias) = bias {
                check_count("bias", bias.len(), matrix.n)?;
            }
        }
        // Several threads have the caches of several, and each its own part of both matrices.
        if let Some(walk) = Walk::new(first, second).filter(|_| parallel.threads() == 1) {
            self.walk(&walk, x, between, out);
            return Ok(());
        }
        self.thin(0).run(x, first, between, parallel)?;
        self.thin(1).run(between, second, out, parallel)
    }

    fn thin(&self, index: usize) -> Thin<'_> {
        Thin {
            bias: self.biases[index],
            activation: self.activations[index],
            accumulate: false,
            backwards: self.backwards,
        }
    }

    fn walk(&self, walk: &Walk, x: &[f32], between: &mut [f32], out: &mut [f32]) {
        let [first, second] = &self.matrices;
        let &Walk { parts, width } = walk;
        let panel = panel(first.level);
        let mut memory = [0.0; MEMORY];
        let sums = &mut memory[..parts * second.n];
        for step in 0..parts {
            let part = match self.backwards {
                true => parts - 1 - step,
                false => step,
            };
            let start = part * width;
            let end = match part + 1 == parts {
                true => first.n,
                false => start + width,
            };
            let between = &mut between[start..end];
            self.thin(0).columns(x, first, start / panel, between);
            let meet = Meet {
                x: between,
                // All panels of the second matrix have the same width.
                panels: &second.data[start * panel..],
                k: second.k,
                out: &mut sums[part * second.n..][..second.n],
            };
            dispatch(first.level, meet);
        }
        let sum = Sum {
            parts: sums,
            bias: self.biases[1],
            clamp: self.activations[1].clamp(),
            out,
        };
        dispatch(first.level, sum);
        if let Activation::Map(function) = self.activations[1] {
            function(out);
        }
    }
}

/// How two products are one.
struct Walk {
    parts: usize,
    /// Columns of the first matrix in each part but the last, which may have more.
    width: usize,
}

impl Walk {
    /// `None` where two products are better.
    fn new(first: &Packed<'_>, second: &Packed<'_>) -> Option<Self> {
        let panel = panel(first.level);
        let weights = (first.k + second.n) * first.n;
        if weights < FAR || second.n == 0 || !second.n.is_multiple_of(panel) {
            return None;
        }
        let count = panels(first.level, first.n);
        let most = (MEMORY / second.n).min(PARTS);
        let width = count.div_ceil(most.max(1));
        let parts = count.div_ceil(width);
        let width = width * panel;
        (LEAST_PARTS..=most)
            .contains(&parts)
            .then_some(Self { parts, width })
    }
}

/// The product of a row and the rows of a matrix that it meets, in panels of `k` rows.
struct Meet<'a> {
    x: &'a [f32],
    /// From the first of these rows on.
    panels: &'a [f32],
    k: usize,
    /// Whole panels.
    out: &'a mut [f32],
}

impl Body for Meet<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        match const { (panel(S::LEVEL) / S::LANES, S::REGISTERS) } {
            (1, _) => self.columns::<S, 1, 1, 4>(s),
            (_, 32) => self.columns::<S, 2, 2, 4>(s),
            _ => self.columns::<S, 2, 1, 4>(s),
        }
    }
}

impl Meet<'_> {
    /// Four panels side by side: their rows are too few for the processor to look ahead in each.
    #[inline(always)]
    fn columns<S: Simd, const NV: usize, const ROWS: usize, const ALONE: usize>(self, s: S) {
        let how = How {
            bias: None,
            clamp: None,
            accumulate: false,
        };
        let width = NV * S::LANES;
        for (i, out) in self.out.chunks_mut(4 * width).enumerate() {
            let at = |panel: usize| {
                let panels = &self.panels[(4 * i + panel) * width * self.k..];
                (panels, self.k, width)
            };
            if out.len() == 4 * width {
                columns_of::<S, 4, NV, ROWS>(s, &how, self.x, at(0), out);
            } else {
                for (panel, out) in out.chunks_mut(width).enumerate() {
                    columns_of::<S, 1, NV, ALONE>(s, &how, self.x, at(panel), out);
                }
            }
        }
    }
}

/// `out = clamp(sum of all parts + bias)`, part after part.
struct Sum<'a> {
    parts: &'a [f32],
    bias: Option<&'a [f32]>,
    clamp: Option<(f32, f32)>,
    out: &'a mut [f32],
}

impl Body for Sum<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let clamp = self.clamp.map(|(low, high)| (s.splat(low), s.splat(high)));
        let n = self.out.len();
        for (i, out) in self.out.chunks_mut(S::LANES).enumerate() {
            let at = i * S::LANES;
            let of = |from: &[f32]| s.load_up_to(&from[at..at + out.len()]);
            let mut sum = s.zero();
            for part in self.parts.chunks_exact(n) {
                sum = s.add(sum, of(part));
            }
            if let Some(bias) = self.bias {
                sum = s.add(sum, of(bias));
            }
            if let Some((low, high)) = clamp {
                sum = s.min(high, s.max(low, sum));
            }
            s.store_up_to(out, sum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::level::Level;
    use crate::base::parallel::Serial;
    use crate::gemm::Matrix;
    use crate::simd::available;
    use crate::testing::{Interleaved, numbers};

    fn halve(x: &mut [f32]) {
        x.iter_mut().for_each(|x| *x *= 0.5);
    }

    struct Case {
        size: [usize; 3],
        x: Vec<f32>,
        matrices: [Vec<f32>; 2],
        biases: [Vec<f32>; 2],
    }

    impl Case {
        fn new(size: [usize; 3]) -> Self {
            let [k, between, n] = size;
            Self {
                size,
                x: numbers(k, 1),
                matrices: [numbers(k * between, 2), numbers(between * n, 3)],
                biases: [numbers(between, 4), numbers(n, 5)],
            }
        }

        /// Whether it was one walk, and the result.
        fn run(&self, level: Level, backwards: bool, parallel: &dyn Parallel) -> (bool, Vec<f32>) {
            let mut memory = [const { Vec::new() }; 2];
            for i in 0..2 {
                let (k, n) = (self.size[i], self.size[i + 1]);
                memory[i] = vec![0.0; crate::gemm::pack::packed_len(level, k, n).unwrap()];
                let matrix = Matrix::rows(&self.matrices[i], n);
                Packed::pack_for(level, &matrix, (k, n), &mut memory[i], &Serial).unwrap();
            }
            let packed = |i: usize| Packed {
                level,
                k: self.size[i],
                n: self.size[i + 1],
                data: &memory[i],
            };
            let pair = Pair {
                matrices: [packed(0), packed(1)],
                biases: [Some(&self.biases[0]), Some(&self.biases[1])],
                activations: [Activation::Clamp(-0.5, 2.0), Activation::Map(halve)],
                backwards,
            };
            let mut between = vec![f32::NAN; self.size[1]];
            let mut out = vec![f32::NAN; self.size[2]];
            pair.run(&self.x, &mut between, &mut out, parallel).unwrap();
            let more = |x, between, out| {
                let (x, mut b, mut out) = (vec![0.0; x], vec![0.0; between], vec![0.0; out]);
                pair.run(&x, &mut b, &mut out, &Serial).is_err()
            };
            let [k, n, columns] = self.size;
            assert!(more(k + 1, n, columns) && more(k, n + 1, columns) && more(k, n, columns + 1));
            let swapped = Pair {
                matrices: [packed(1), packed(0)],
                ..pair
            };
            assert!(
                self.size[0] == self.size[2]
                    || swapped
                        .run(&self.x, &mut between, &mut out, &Serial)
                        .is_err()
            );
            (Walk::new(&packed(0), &packed(1)).is_some(), out)
        }

        /// The results, and what the errors of f32 add up to at most.
        fn exact(&self) -> Vec<(f64, f64)> {
            let product = |i: usize, x: &[(f64, f64)]| -> Vec<(f64, f64)> {
                let n = self.size[i + 1];
                let column = |j: usize| {
                    let b = |p: usize| f64::from(self.matrices[i][p * n + j]);
                    let sum = |of: &dyn Fn(usize) -> f64| (0..x.len()).map(of).sum::<f64>();
                    let bias = f64::from(self.biases[i][j]);
                    let size = sum(&|p| (x[p].0 * b(p)).abs()) + bias.abs();
                    let rounded = (x.len() + 2) as f64 * size * 2f64.powi(-24);
                    let passed = sum(&|p| x[p].1 * b(p).abs());
                    (sum(&|p| x[p].0 * b(p)) + bias, rounded + passed)
                };
                (0..n).map(column).collect()
            };
            let x: Vec<_> = self.x.iter().map(|&x| (f64::from(x), 0.0)).collect();
            let mut between = product(0, &x);
            for (x, _) in &mut between {
                *x = x.clamp(-0.5, 2.0);
            }
            let halved = |(x, error): (f64, f64)| (x * 0.5, error * 0.5);
            product(1, &between).into_iter().map(halved).collect()
        }
    }

    #[test]
    fn products_are_those_of_double_precision_whatever_the_order() {
        for (size, walks) in [
            ([300, 512, 256], true),
            ([700, 330, 96], true),
            ([700, 330, 160], true),
            ([301, 491, 512], true),
            ([100, 2000, 64], true),
            ([40, 1024, 1024], true),
            // Too little to walk, ...
            ([40, 64, 32], false),
            ([5, 3, 4], false),
            ([5, 0, 4], false),
            ([600, 512, 0], false),
            // ... sums for too many columns, and a panel that is wider than others.
            ([100, 512, 2048], false),
            ([600, 512, 100], false),
        ] {
            let case = Case::new(size);
            let exact = case.exact();
            let check = |out: &[f32], level: Level| {
                for (j, (found, (exact, error))) in out.iter().zip(&exact).enumerate() {
                    let difference = (f64::from(*found) - exact).abs();
                    let place = (size, level, j);
                    assert!(difference <= *error, "{place:?}: {found} {exact}");
                }
            };
            for level in available() {
                let (walked, out) = case.run(level, false, &Serial);
                let wide = level == Level::Avx512;
                assert!(walked == walks || !wide, "{size:?}: {walked}");
                check(&out, level);
                let (_, again) = case.run(level, true, &Serial);
                assert!(out == again, "{size:?} {level:?}");
                let (_, apart) = case.run(level, true, &Interleaved);
                check(&apart, level);
            }
        }
    }
}
