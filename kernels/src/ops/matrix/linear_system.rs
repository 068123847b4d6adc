//! Square matrices taken apart, and what is solved with them: `Cholesky`, `MatrixTriangularSolve`,
//! `MatrixSolve` and `LogMatrixDeterminant` of TensorFlow.
//!
//! Matrices are float32; every sum of products is one of float64, rounded once. All functions take
//! any number of matrices of `size` rows and columns, one after the other.

use crate::base::error::{Error, Result};
use crate::math::{log, sqrt};

/// Writes the lower triangular `l` with `l * transpose(l) = x`, of which only the lower triangle is
/// read. The triangle is NaN where the matrix is not positive definite, as in TensorFlow.
///
/// # Errors
/// [`Error::Length`] if the slices do not hold equally many whole matrices.
pub fn cholesky(x: &[f32], size: usize, out: &mut [f32]) -> Result<()> {
    let area = whole(x, size, size)?;
    crate::base::adapt::check_count("output", out.len(), x.len())?;
    for (x, l) in x.chunks(area).zip(out.chunks_mut(area)) {
        l.fill(0.0);
        if !factor(x, size, l) {
            for (i, row) in l.chunks_mut(size).enumerate() {
                row[..=i].fill(f32::NAN);
            }
        }
    }
    Ok(())
}

/// Returns whether the matrix has a factor.
fn factor(x: &[f32], size: usize, l: &mut [f32]) -> bool {
    for i in 0..size {
        for j in 0..=i {
            let (row, other) = (&l[i * size..][..j], &l[j * size..][..j]);
            let rest = f64::from(x[i * size + j]) - dot(row.iter().zip(other));
            l[i * size + j] = if i != j {
                (rest / f64::from(l[j * size + j])) as f32
            } else if rest <= 0.0 {
                return false;
            } else {
                sqrt(rest) as f32
            };
        }
    }
    true
}

fn dot<'a>(pairs: impl Iterator<Item = (&'a f32, &'a f32)>) -> f64 {
    pairs.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

/// How a matrix is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Triangle {
    /// Its lower triangle, not its upper one.
    pub lower: bool,
    /// Transposed, after the triangle was taken.
    pub transposed: bool,
}

/// Writes the `out` with `matrix * out = right`, whose rows have `columns` elements. Elements beside
/// the triangle are not read; a zero in its diagonal gives what the division by it gives.
///
/// # Errors
/// [`Error::Length`] if the slices do not hold equally many whole matrices.
pub fn triangular_solve(
    (matrix, size): (&[f32], usize),
    triangle: Triangle,
    (right, columns): (&[f32], usize),
    out: &mut [f32],
) -> Result<()> {
    let area = whole(matrix, size, size)?;
    start((matrix.len(), size), (right, columns), out)?;
    let lower = triangle.lower != triangle.transposed;
    for (matrix, x) in matrix
        .chunks(area)
        .zip(out.chunks_mut((size * columns).max(1)))
    {
        if triangle.transposed {
            substitute(|i, k| matrix[k * size + i], (size, lower, false), x);
        } else {
            substitute(|i, k| matrix[i * size + k], (size, lower, false), x);
        }
    }
    Ok(())
}

/// Solves a triangular system in place, from its first row on if it is `lower`, else from its last;
/// the diagonal counts as 1 if it is `unit`.
fn substitute(
    at: impl Fn(usize, usize) -> f32,
    (size, lower, unit): (usize, bool, bool),
    x: &mut [f32],
) {
    let columns = x.len() / size;
    for step in 0..size {
        let (i, known) = if lower {
            (step, 0..step)
        } else {
            (size - 1 - step, size - step..size)
        };
        for c in 0..columns {
            let products = known
                .clone()
                .map(|k| f64::from(at(i, k)) * f64::from(x[k * columns + c]));
            let rest = f64::from(x[i * columns + c]) - products.sum::<f64>();
            let divisor = if unit { 1.0 } else { f64::from(at(i, i)) };
            x[i * columns + c] = (rest / divisor) as f32;
        }
    }
}

/// Writes the `out` with `matrix * out = right`, or `transpose(matrix) * out = right`, whose rows
/// have `columns` elements; by elimination with pivots of a column. `scratch` has room for one
/// matrix.
///
/// # Errors
/// [`Error::Value`] for a matrix that has no inverse: a pivot is 0 or NaN. Then the results of
/// the matrices before it are written. [`Error::Length`] as [`triangular_solve`], or if the scratch
/// memory is too short.
pub fn solve(
    (matrix, size): (&[f32], usize),
    transposed: bool,
    (right, columns): (&[f32], usize),
    out: &mut [f32],
    scratch: &mut [f32],
) -> Result<()> {
    let area = whole(matrix, size, size)?;
    start((matrix.len(), size), (right, columns), out)?;
    let parts = room(scratch, size * size)?;
    for (matrix, x) in matrix
        .chunks(area)
        .zip(out.chunks_mut((size * columns).max(1)))
    {
        load(matrix, size, transposed, parts);
        let pivots = eliminate(parts, size, |i, j| swap(x, columns, i, j));
        if !pivots.is_some_and(|found| found.regular) {
            return Err(Error::Value {
                argument: "matrix",
                expected: "a matrix that has an inverse",
            });
        }
        let parts = &*parts;
        substitute(|i, k| parts[i * size + k], (size, true, true), x);
        substitute(|i, k| parts[i * size + k], (size, false, false), x);
    }
    Ok(())
}

/// Writes the sign of each determinant, -1, 0 or 1, and the logarithm of its magnitude; `signs` may
/// be empty. `scratch` has room for one matrix.
///
/// # Errors
/// [`Error::Length`] if there are not as many results as matrices, or the scratch memory is too
/// short.
pub fn log_determinant(
    matrix: &[f32],
    size: usize,
    (signs, logarithms): (&mut [f32], &mut [f32]),
    scratch: &mut [f32],
) -> Result<()> {
    let area = whole(matrix, size, size)?;
    if !signs.is_empty() {
        crate::base::adapt::check_count("signs", signs.len(), logarithms.len())?;
    }
    crate::base::adapt::check_count("matrix", matrix.len(), logarithms.len() * size * size)?;
    let parts = room(scratch, size * size)?;
    signs.fill(1.0);
    logarithms.fill(0.0);
    let mut signs = signs.iter_mut();
    for (matrix, logarithm) in matrix.chunks(area).zip(logarithms) {
        let (mut unread, sign) = (0.0, signs.next());
        let sign = sign.unwrap_or(&mut unread);
        load(matrix, size, false, parts);
        let Some(pivots) = eliminate(parts, size, |_, _| ()) else {
            (*sign, *logarithm) = (0.0, f32::NEG_INFINITY);
            continue;
        };
        let (mut negative, mut sum) = (pivots.odd, 0.0);
        for pivot in parts.iter().step_by(size + 1) {
            negative ^= *pivot < 0.0;
            sum += log(f64::from(pivot.abs()));
        }
        *sign = if sum.is_nan() {
            f32::NAN
        } else if negative {
            -1.0
        } else {
            1.0
        };
        *logarithm = sum as f32;
    }
    Ok(())
}

/// What an elimination found.
struct Pivots {
    /// Whether an odd number of rows changed places.
    odd: bool,
    /// Whether all pivots are numbers other than 0.
    regular: bool,
}

/// Makes a matrix the factors `l`, whose diagonal is 1 and not stored, and `u` of its rows in
/// another order, which `swapped` hears of. Returns nothing where a column has only zeros left.
fn eliminate(x: &mut [f32], size: usize, mut swapped: impl FnMut(usize, usize)) -> Option<Pivots> {
    let mut found = Pivots {
        odd: false,
        regular: true,
    };
    for j in 0..size {
        let (mut place, mut largest) = (j, -1.0);
        for i in 0..size {
            let column = x[j..].iter().step_by(size.max(1));
            let rest = dot(x[i * size..][..i.min(j)].iter().zip(column));
            let value = (f64::from(x[i * size + j]) - rest) as f32;
            x[i * size + j] = value;
            if i >= j && value.abs() > largest {
                (place, largest) = (i, value.abs());
            }
        }
        if largest == 0.0 {
            return None;
        }
        if place != j {
            swap(x, size, place, j);
            swapped(place, j);
            found.odd = !found.odd;
        }
        let pivot = x[j * size + j];
        found.regular &= pivot.abs() > 0.0;
        for i in j + 1..size {
            x[i * size + j] = (f64::from(x[i * size + j]) / f64::from(pivot)) as f32;
        }
    }
    Some(found)
}

fn swap(x: &mut [f32], columns: usize, i: usize, j: usize) {
    let (first, second) = (i.min(j), i.max(j));
    let (before, after) = x.split_at_mut(second * columns);
    before[first * columns..][..columns].swap_with_slice(&mut after[..columns]);
}

fn load(matrix: &[f32], size: usize, transposed: bool, out: &mut [f32]) {
    if !transposed {
        return out.copy_from_slice(matrix);
    }
    for (i, row) in out.chunks_mut(size.max(1)).enumerate() {
        for (k, x) in row.iter_mut().enumerate() {
            *x = matrix[k * size + i];
        }
    }
}

/// The length of a matrix, at least 1; the slice must hold whole ones.
fn whole(x: &[f32], rows: usize, columns: usize) -> Result<usize> {
    let area = rows.saturating_mul(columns).max(1);
    crate::base::adapt::check_count("matrix", x.len(), x.len() / area * area)?;
    Ok(area)
}

/// Copies the right side to the result, which has its shape.
fn start(
    (matrices, size): (usize, usize),
    (right, columns): (&[f32], usize),
    out: &mut [f32],
) -> Result<()> {
    if let Some(rows) = matrices.checked_div(size) {
        crate::base::adapt::check_count("right", right.len(), rows.saturating_mul(columns))?;
    }
    crate::base::adapt::check_count("output", out.len(), right.len())?;
    out.copy_from_slice(right);
    Ok(())
}

fn room(scratch: &mut [f32], expected: usize) -> Result<&mut [f32]> {
    let found = scratch.len();
    scratch.get_mut(..expected).ok_or(Error::Length {
        argument: "scratch",
        found,
        expected,
    })
}

#[cfg(test)]
mod tests;
