//! Products with a vector on one side: bound by how fast the matrix is read.

// Indices keep sums in registers: an iterator over several arrays does not unroll as well.
#![allow(clippy::needless_range_loop)]

use super::pack::{Matrix, check_level};
use super::{Activation, Gemm, Right};
use crate::base::parallel::Parallel;
use crate::simd::blocks::for_each_chunk;
use crate::simd::grid::sum_of_lines;
use crate::simd::{Body, Simd, dispatch};

/// Elements of the result that a task computes, at least.
const CHUNK: usize = 256;
/// Lines of the matrix that are read side by side.
const LINES: usize = 4;
/// Vectors of results that stay in registers.
const FEW: usize = 4;

/// `C = x * B` for one row of at most [`CHUNK`] columns, if that is what `gemm` is and all operands
/// are long enough: what a product of any size checks and chooses takes longer than a small one.
#[inline]
pub fn run_few(gemm: &Gemm<'_>, c: &mut [f32]) -> bool {
    let (1, Right::Plain(b)) = (gemm.m, &gemm.b) else {
        return false;
    };
    #[cfg(not(without = "scaled"))]
    if gemm.scale.is_some() {
        return false;
    }
    let (k, n) = (gemm.k, gemm.n);
    let few = k > 0 && n > 0 && n <= CHUNK;
    let whole = !gemm.a.transposed && !b.transposed && b.ld >= n && gemm.a.data.len() >= k;
    let last = (k.wrapping_sub(1)).checked_mul(b.ld);
    let last = last.and_then(|at| at.checked_add(n));
    let there = last.is_some_and(|end| end <= b.data.len())
        && gemm.bias.is_none_or(|bias| bias.len() == n)
        && check_level(gemm.level).is_ok();
    match c.get_mut(..n) {
        Some(c) if few && whole && there => {
            columns(gemm, (&gemm.a, 1), b, 0, c);
            true
        }
        _ => false,
    }
}

/// `C = x * B` for one row, or `C = A * x` for one column of C.
pub fn run(gemm: &Gemm<'_>, b: &Matrix<'_>, c: &mut [f32], parallel: &dyn Parallel) {
    let (vector, matrix, length) = if gemm.m == 1 {
        (&gemm.a, *b, gemm.n)
    } else {
        // The same product, transposed.
        let matrix = Matrix {
            transposed: !gemm.a.transposed,
            ..gemm.a
        };
        (b, matrix, gemm.m)
    };
    // A row or column is dense unless it runs across the lines of its matrix.
    let across = if gemm.m == 1 {
        vector.transposed
    } else {
        !vector.transposed
    };
    let step = if across { vector.ld } else { 1 };
    let task = |first: usize, out: &mut [f32]| columns(gemm, (vector, step), &matrix, first, out);
    let c = &mut c[..length];
    if length <= CHUNK {
        return task(0, c);
    }
    let tasks = parallel.threads() * 2;
    let chunk = length.div_ceil(tasks).next_multiple_of(CHUNK);
    for_each_chunk(parallel, c, chunk, task);
}

/// Elements `first ..` of the product of a vector, whose elements are `step` apart, and a matrix.
#[inline]
fn columns(
    gemm: &Gemm<'_>,
    (vector, step): (&Matrix<'_>, usize),
    matrix: &Matrix<'_>,
    first: usize,
    out: &mut [f32],
) {
    let bias = match gemm.bias {
        Some(bias) if gemm.m == 1 => Bias::Each(&bias[first..]),
        Some(bias) => Bias::Same(bias[0]),
        None => Bias::Same(0.0),
    };
    dispatch(
        gemm.level,
        Vector {
            k: gemm.k,
            x: vector.data,
            step,
            matrix: Matrix {
                data: matrix.data,
                ld: matrix.ld,
                transposed: matrix.transposed,
            },
            first,
            accumulate: gemm.accumulate,
            bias,
            clamp: gemm.activation.clamp(),
            out: &mut *out,
        },
    );
    if let Activation::Map(function) = gemm.activation {
        function(out);
    }
}

/// What is added to the results.
#[derive(Clone, Copy)]
enum Bias<'a> {
    /// One number for each.
    Each(&'a [f32]),
    /// One number for all.
    Same(f32),
}

/// Elements `first ..` of the product of a vector and a matrix of `k` rows.
struct Vector<'a> {
    k: usize,
    x: &'a [f32],
    step: usize,
    matrix: Matrix<'a>,
    first: usize,
    accumulate: bool,
    bias: Bias<'a>,
    /// Bounds of the results; NaN passes.
    clamp: Option<(f32, f32)>,
    out: &'a mut [f32],
}

impl Body for Vector<'_> {
    type Out = ();

    #[inline(always)]
    fn run<S: Simd>(self, s: S) {
        let Self {
            k,
            x,
            step,
            matrix,
            first,
            accumulate,
            bias,
            clamp,
            out,
        } = self;
        let matrix = &matrix;
        let vectors = out.len().div_ceil(S::LANES);
        if k > 0 && !matrix.transposed && vectors <= FEW {
            let end = End {
                bias,
                accumulate,
                clamp,
            };
            let x = (x, step);
            return match vectors {
                0 => {}
                1 => few_sums::<S, 1, 8>(s, x, k, matrix, first, &end, out),
                2 => few_sums::<S, 2, 2>(s, x, k, matrix, first, &end, out),
                3 => few_sums::<S, 3, 2>(s, x, k, matrix, first, &end, out),
                _ => few_sums::<S, 4, 1>(s, x, k, matrix, first, &end, out),
            };
        }
        start(s, bias, accumulate, out);
        if k == 0 {
            // Nothing to add.
        } else if matrix.transposed && step == 1 {
            dots(s, &x[..k], matrix, first, out);
        } else if matrix.transposed {
            for (j, out) in out.iter_mut().enumerate() {
                let line = &matrix.data[(first + j) * matrix.ld..][..k];
                let terms = line.iter().zip(x.iter().step_by(step.max(1)));
                *out += terms.map(|(a, b)| a * b).sum::<f32>();
            }
        } else {
            sums(s, (x, step), k, matrix, first, out);
        }
        if let Some((low, high)) = clamp {
            let (low, high) = (s.splat(low), s.splat(high));
            for out in out.chunks_mut(S::LANES) {
                let x = s.load_up_to(out);
                s.store_up_to(out, s.min(high, s.max(low, x)));
            }
        }
    }
}

/// The results before the products are added.
#[inline(always)]
fn start<S: Simd>(s: S, bias: Bias<'_>, accumulate: bool, out: &mut [f32]) {
    for (i, out) in out.chunks_mut(S::LANES).enumerate() {
        let bias = match bias {
            Bias::Each(bias) => s.load_up_to(&bias[i * S::LANES..][..out.len()]),
            Bias::Same(bias) => s.splat(bias),
        };
        let x = if accumulate {
            s.add(s.load_up_to(out), bias)
        } else {
            bias
        };
        s.store_up_to(out, x);
    }
}

/// What becomes of sums.
struct End<'a> {
    bias: Bias<'a>,
    /// Whether they are added to what the output holds.
    accumulate: bool,
    clamp: Option<(f32, f32)>,
}

/// The results that are `NV` vectors, the last of which may be cut: they stay in registers until
/// they are complete, `CHAINS` times so that one sum need not wait for the one before.
#[inline(always)]
fn few_sums<S: Simd, const NV: usize, const CHAINS: usize>(
    s: S,
    x: (&[f32], usize),
    k: usize,
    matrix: &Matrix<'_>,
    first: usize,
    end: &End<'_>,
    out: &mut [f32],
) {
    let width = out.len();
    let lines = (&matrix.data[first..], matrix.ld);
    let sums = sum_of_lines::<S, NV, CHAINS>(s, x, k, lines, width);
    let clamp = end.clamp.map(|(low, high)| (s.splat(low), s.splat(high)));
    for v in 0..NV {
        let at = v * S::LANES;
        let to = &mut out[at..];
        let bias = match end.bias {
            Bias::Each(bias) => s.load_up_to(&bias[at..width]),
            Bias::Same(bias) => s.splat(bias),
        };
        let mut sum = s.add(sums[v], bias);
        if end.accumulate {
            sum = s.add(sum, s.load_up_to(to));
        }
        if let Some((low, high)) = clamp {
            sum = s.min(high, s.max(low, sum));
        }
        s.store_forwarded(to, sum);
    }
}

/// Adds the dot products of `x` with lines `first ..` of the matrix to `out`.
#[inline(always)]
fn dots<S: Simd>(s: S, x: &[f32], matrix: &Matrix<'_>, first: usize, out: &mut [f32]) {
    let k = x.len();
    for (group, out) in out.chunks_mut(LINES).enumerate() {
        let mut lines: [&[f32]; LINES] = [x; LINES];
        for (i, line) in lines.iter_mut().enumerate().take(out.len()) {
            *line = &matrix.data[(first + group * LINES + i) * matrix.ld..][..k];
        }
        let mut sums = [[s.zero(); 2]; LINES];
        let mut p = 0;
        while p + 2 * S::LANES <= k {
            for half in 0..2 {
                let at = p + half * S::LANES;
                let v = s.load(&x[at..]);
                for i in 0..LINES {
                    sums[i][half] = s.mul_add(s.load(&lines[i][at..]), v, sums[i][half]);
                }
            }
            p += 2 * S::LANES;
        }
        while p < k {
            let v = s.load_up_to(&x[p..]);
            for i in 0..LINES {
                sums[i][0] = s.mul_add(s.load_up_to(&lines[i][p..]), v, sums[i][0]);
            }
            p += S::LANES;
        }
        for (x, [a, b]) in out.iter_mut().zip(sums) {
            *x += s.sum(s.add(a, b));
        }
    }
}

/// Adds the rows of the matrix, each times its element of `x`, to `out`.
#[inline(always)]
fn sums<S: Simd>(
    s: S,
    (x, step): (&[f32], usize),
    k: usize,
    matrix: &Matrix<'_>,
    first: usize,
    out: &mut [f32],
) {
    let width = out.len();
    let mut p = 0;
    while p < k {
        let rows = (k - p).min(LINES);
        let mut lines: [&[f32]; LINES] = [&[]; LINES];
        let mut factors = [s.zero(); LINES];
        for i in 0..rows {
            lines[i] = &matrix.data[(p + i) * matrix.ld + first..][..width];
            factors[i] = s.splat(x[(p + i) * step]);
        }
        if rows == LINES {
            let mut j = 0;
            while j + S::LANES <= width {
                let to = &mut out[j..j + S::LANES];
                let mut sum = s.load(to);
                for i in 0..LINES {
                    sum = s.mul_add(factors[i], s.load(&lines[i][j..]), sum);
                }
                s.store(to, sum);
                j += S::LANES;
            }
            if j < width {
                let to = &mut out[j..];
                let mut sum = s.load_partial(to);
                for i in 0..LINES {
                    sum = s.mul_add(factors[i], s.load_partial(&lines[i][j..]), sum);
                }
                s.store_partial(to, sum);
            }
        } else {
            for i in 0..rows {
                let mut j = 0;
                while j < width {
                    let to = &mut out[j..];
                    let sum = s.load_up_to(to);
                    let sum = s.mul_add(factors[i], s.load_up_to(&lines[i][j..]), sum);
                    s.store_up_to(to, sum);
                    j += S::LANES;
                }
            }
        }
        p += rows;
    }
}
